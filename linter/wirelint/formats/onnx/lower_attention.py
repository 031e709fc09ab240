"""Lowerings of fused attention: ONNX ``Attention`` and the operators of ``com.microsoft``.

References:
    https://onnx.ai/onnx/operators/onnx__Attention.html,
    https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirelint.dtypes import DType
from wirelint.formats.onnx.infer import infer_rank
from wirelint.formats.onnx.lower_masks import KeyMask, key_mask
from wirelint.formats.onnx.lower_math import add_bias
from wirelint.formats.onnx.registry import MICROSOFT, lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Dim, Value

__all__ = ["fused_attention"]

_MINUS_INFINITY = float("-inf")


@dataclass(slots=True)
class _Operands:
    """What a canonical Attention takes, as its lowering puts it together."""

    query: Value
    key: Value
    value: Value
    mask: KeyMask = field(default_factory=KeyMask)
    past_key: Value | None = None
    past_value: Value | None = None
    bias: Value | None = None

    def listed(self) -> list[Value | None]:
        """In the order of the vocabulary."""
        mask = self.mask
        past = (self.past_key, self.past_value)
        return [self.query, self.key, self.value, mask.keep, *past, mask.lengths, mask.starts, self.bias]


def _given(**attrs: Any) -> dict[str, Any]:
    return {name: value for name, value in attrs.items() if value is not None}


# -- ai.onnx -------------------------------------------------------------------------------------------------------------


@lower("Attention")
def _attention(node: Node) -> None:
    """Opset 23 and later.

    ``is_causal`` counts from the keys that precede the queries: none without a cache (top-left), the past with one
    (bottom-right), ``nonpad_kv_seqlen - queries`` of each row with an external cache, for which the mask is written out.
    """
    query, key, value, mask = node.need(0), node.need(1), node.need(2), _full_width_mask(node)
    past_key, past_value, lengths = node.operand(4), node.operand(5), node.operand(6)
    left, right = node.integer("left_window_size", -1), node.integer("right_window_size", -1)
    causal = bool(node.integer("is_causal", 0)) or right == 0
    if _needs_window_mask(node, causal=causal, left=left, right=right):
        mask = _window_mask(node, mask, lengths, (left, 0 if causal else right))
        causal, left = False, -1
    attrs = _given(
        q_num_heads=node.integer("q_num_heads", None),
        kv_num_heads=node.integer("kv_num_heads", None),
        scale=node.real("scale", None),
        softcap=node.real("softcap", None),
    )
    attrs["causal"] = "none" if not causal else "top-left" if past_key is None else "bottom-right"
    operands = [query, key, value, mask, past_key, past_value, lengths]
    results = node.compute_many("Attention", 3, *operands, mask_fill=_MINUS_INFINITY, window=left, empty_row="zero", **attrs)
    for slot, result in enumerate(results[: len(node.outputs)]):
        node.give(slot, result)


def _full_width_mask(node: Node) -> Value | None:
    """The mask; where it is declared narrower than the keys of an external cache, the rest is masked."""
    mask, key = node.operand(3), node.need(1)
    if mask is None or node.operand(4) is not None:
        return mask
    width, keys = _declared_dim(mask, -1), _declared_dim(key, -2)
    if not isinstance(width, int) or not isinstance(keys, int) or width in (1, keys) or width > keys:
        return mask
    outside = node.constant(mask.dtype is not DType.BOOL and _MINUS_INFINITY, mask.dtype)
    return node.compute("Pad", mask, node.constant([0, keys - width]), outside, node.constant([-1]), mode="constant")


def _declared_dim(value: Value, axis: int) -> Dim:
    """The declared length along a negative ``axis``; None when there is none."""
    return value.shape[axis] if value.shape is not None and len(value.shape) >= -axis else None


def _needs_window_mask(node: Node, *, causal: bool, left: int, right: int) -> bool:
    """True when the canonical ``causal`` and ``window`` can't say what the queries see.

    They count from the last key, which is right for new keys and queries of equal number only; and a window without
    causality has a right side.
    """
    if right > 0 or (left >= 0 and not causal):
        return True
    if not causal:
        return False
    queries, keys = _declared_dim(node.need(0), -2), _declared_dim(node.need(1), -2)
    uneven = isinstance(queries, int) and isinstance(keys, int) and queries != keys
    return node.operand(6) is not None or (node.operand(4) is not None and uneven)


def _window_mask(node: Node, mask: Value | None, lengths: Value | None, window: tuple[int, int]) -> Value:
    """``mask`` and what a window around each query sees, as [batch or 1, 1, queries, keys].

    Query i stands at ``offset + i`` among the keys and sees ``left`` keys before and ``right`` keys after that; a side of
    -1 is open.  The offset is the past's length, or ``lengths - queries`` of each row.
    """
    query, key, past_key = node.need(0), node.need(1), node.operand(4)
    queries, keys = node.dim(query, -2), node.dim(key, -2)
    offset: Value | None = None
    if past_key is not None:
        offset = node.dim(past_key, 2)
        keys = node.compute("Add", keys, offset)
    elif lengths is not None:
        wide = node.compute("Cast", lengths, dtype=DType.I64)
        rows = node.compute("Reshape", wide, node.constant([-1, 1, 1, 1]), zero_copies=True)
        offset = node.compute("Sub", rows, queries)
    places = _steps(node, queries)
    places = node.compute("Unsqueeze", places, node.constant([1]))
    if offset is not None:
        places = node.compute("Add", places, offset)
    distance = node.compute("Sub", _steps(node, keys), places)
    left, right = window
    seen: list[Value] = []
    if right >= 0:
        seen.append(node.compute("LessOrEqual", distance, node.constant(right)))
    if left >= 0:
        seen.append(node.compute("GreaterOrEqual", distance, node.constant(-left)))
    keep = seen[0] if len(seen) == 1 else node.compute("And", *seen)
    if mask is None:
        return keep
    if mask.dtype is DType.BOOL:
        return node.compute("And", mask, keep)
    dtype = mask.dtype if mask.dtype.is_float else DType.F32
    return node.compute("Where", keep, mask, node.constant(_MINUS_INFINITY, dtype))


def _steps(node: Node, count: Value) -> Value:
    """0, 1, ... below ``count`` (i64)."""
    return node.compute("Range", node.constant(0), count, node.constant(1))


# -- com.microsoft: projections inside -------------------------------------------------------------------------------------


@lower("Attention", domain=MICROSOFT)
def _microsoft_attention(node: Node) -> None:
    """Operands: input, weights, bias, mask_index, past, attention_bias, past_sequence_length."""
    fused_attention(
        node,
        node.need(0),
        node.need(1),
        node.operand(2),
        mask=node.operand(3),
        past=node.operand(4),
        attention_bias=node.operand(5),
        past_length=node.operand(6),
    )


@lower("DecoderMaskedSelfAttention", domain=MICROSOFT)
def _decoder_masked_self_attention(node: Node) -> None:
    """Operands: input, weights, bias, mask_index, past, attention_bias, past_sequence_length."""
    _microsoft_attention(node)


def fused_attention(
    node: Node,
    data: Value,
    weights: Value,
    bias: Value | None,
    *,
    mask: Value | None,
    past: Value | None = None,
    attention_bias: Value | None = None,
    past_length: Value | None = None,
) -> None:
    """Self-attention with the projections of query, key and value in one matrix product.

    Args:
        node: the node to lower; its results are the output [batch, sequence, size] and the present
            [2, batch, heads, sequence, size].
        data: [batch, sequence, size].
        weights: [size, query + key + value].
        bias: [query + key + value].
        mask: any of the forms that :func:`key_mask` knows.
        past: [2, batch, heads, past, size].
        attention_bias: added to the scores.
        past_length: how many positions of ``past`` are in use when it is a buffer.
    """
    projected = add_bias(node, node.compute("MatMul", data, weights), bias)
    query, key, value = _three_parts(node, projected, _part_sizes(node))
    past_key = past_value = None
    if past is not None:
        past_key, past_value = (node.compute("Gather", past, node.constant(at), axis=0) for at in (0, 1))
    found = key_mask(node, mask, data, past_key)
    operands = _Operands(query, key, value, found or KeyMask(), past_key, past_value, attention_bias)
    _shorten_past(node, operands, past_length)
    if found is None:
        _give_unmodelled(node, operands, mask)
        return
    output, *present = _emit_attention(node, operands, node.integer("num_heads", None))
    node.give(0, output)
    if len(node.outputs) > 1:
        stacked = [node.compute("Unsqueeze", part, node.constant([0])) for part in present]
        node.give(1, node.compute("Concat", *stacked, axis=0))


def _part_sizes(node: Node) -> tuple[int, ...] | None:
    """How wide query, key and value are; None for three equal parts."""
    sizes = node.integers("qkv_hidden_sizes", None)
    return sizes if sizes is not None and len(sizes) == 3 and all(size >= 0 for size in sizes) else None


def _three_parts(node: Node, joined: Value, sizes: tuple[int, ...] | None) -> list[Value]:
    lengths = None if sizes is None else node.constant(list(sizes))
    return node.compute_many("Split", 3, joined, lengths, axis=-1)


def _shorten_past(node: Node, operands: _Operands, length: Value | None) -> None:
    """Keep the positions of a past buffer that are in use."""
    if length is None or operands.past_key is None or operands.past_value is None:
        return
    end = node.compute("Reshape", node.compute("Cast", length, dtype=DType.I64), node.constant([1]), zero_copies=True)
    bounds = (node.constant([0]), end, node.constant([2]))
    operands.past_key = node.compute("Slice", operands.past_key, *bounds)
    operands.past_value = node.compute("Slice", operands.past_value, *bounds)


def _emit_attention(node: Node, operands: _Operands, heads: int | None, **attrs: Any) -> list[Value]:
    """A canonical Attention with the attributes that its com.microsoft forms share.

    ``unidirectional`` lets a query see the whole past and the new keys up to its own.
    """
    shared = _given(q_num_heads=heads, kv_num_heads=heads, scale=node.real("scale", None))
    shared["causal"] = "bottom-right" if node.integer("unidirectional", 0) else "none"
    shared["mask_fill"] = node.real("mask_filter_value", -10000.0)
    return node.compute_many("Attention", 3, *operands.listed(), **{**shared, **attrs})


def _give_unmodelled(node: Node, operands: _Operands, mask: Value | None) -> None:
    """Attention whose mask has an unknown form."""
    inputs = [operands.query, operands.key, operands.value, mask, operands.past_key, operands.past_value]
    node.emit("PackedAttention", inputs)


# -- com.microsoft: query, key and value apart -----------------------------------------------------------------------------


@lower("MultiHeadAttention", domain=MICROSOFT)
def _multi_head_attention(node: Node) -> None:
    """Operands: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length."""
    _multi_head(node, bias=3, mask=4, attention_bias=5, past=6, past_length=8)


@lower("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def _decoder_masked_multi_head_attention(node: Node) -> None:
    """Operands: query, key, value, mask_index, attention_bias, past_key, past_value, past_sequence_length, ..., bias (10)."""
    _multi_head(node, bias=10, mask=3, attention_bias=4, past=5, past_length=7)


def _multi_head(node: Node, *, bias: int, mask: int, attention_bias: int, past: int, past_length: int) -> None:
    query, key, value = _unpacked_operands(node, bias)
    past_key, past_value = node.operand(past), node.operand(past + 1)
    found = key_mask(node, node.operand(mask), query, past_key)
    operands = _Operands(query, key, value, found or KeyMask(), past_key, past_value, node.operand(attention_bias))
    _shorten_past(node, operands, node.operand(past_length))
    if found is None:
        _give_unmodelled(node, operands, node.operand(mask))
        return
    for slot, result in enumerate(_emit_attention(node, operands, node.integer("num_heads", None))[: len(node.outputs)]):
        node.give(slot, result)


def _unpacked_operands(node: Node, bias_slot: int) -> tuple[Value, Value, Value]:
    """Query, key and value as [batch, sequence, size], biased, from whichever packing the node uses.

    Query alone is [batch, sequence, heads, 3, size] (or, for decoding, [batch, 1, 3 parts]); key alone beside it is
    [batch, sequence, heads, 2, size]; keys and values of rank 4 are [batch, heads, sequence, size] as cached, without bias.
    """
    query, key, value, bias = node.need(0), node.operand(1), node.operand(2), node.operand(bias_slot)
    query_bias, key_bias, value_bias = _bias_parts(node, query, bias)
    if key is None:
        if infer_rank(query) == 5:
            query, key, value = (_packed_part(node, query, at) for at in range(3))
        else:
            query, key, value = _three_parts(node, query, None)
    elif value is None:
        key, value = (_packed_part(node, key, at) for at in range(2))
    elif infer_rank(key) == 4:
        return add_bias(node, query, query_bias), _heads_joined(node, key), _heads_joined(node, value)
    return add_bias(node, query, query_bias), add_bias(node, key, key_bias), add_bias(node, value, value_bias)


def _bias_parts(node: Node, query: Value, bias: Value | None) -> tuple[Value | None, Value | None, Value | None]:
    if bias is None:
        return None, None, None
    size = query.shape[-1] if query.shape is not None and len(query.shape) == 3 else None
    total = bias.shape[0] if bias.shape else None
    sizes = None
    if isinstance(size, int) and isinstance(total, int) and total > 2 * size and total != 3 * size:
        sizes = (size, size, total - 2 * size)
    first, second, third = _three_parts(node, bias, sizes)
    return first, second, third


def _packed_part(node: Node, packed: Value, at: int) -> Value:
    """Part ``at`` of [batch, sequence, heads, parts, size] as [batch, sequence, heads * size]."""
    part = node.compute("Gather", packed, node.constant(at), axis=3)
    return node.compute("Reshape", part, node.constant([0, 0, -1]), zero_copies=True)


def _heads_joined(node: Node, value: Value) -> Value:
    """[batch, heads, sequence, size] as [batch, sequence, heads * size]."""
    swapped = node.compute("Transpose", value, perm=(0, 2, 1, 3))
    return node.compute("Reshape", swapped, node.constant([0, 0, -1]), zero_copies=True)


# -- com.microsoft: grouped queries ----------------------------------------------------------------------------------------


@lower("GroupQueryAttention", domain=MICROSOFT)
def _group_query_attention(node: Node) -> None:
    """Operands: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache,
    position_ids, attention_bias, head_sink, k_scale, v_scale, q_norm_weight, k_norm_weight, query_seqlens.

    ``seqlens_k`` is the last key's index in each row, so keys from ``seqlens_k + 1`` on are not seen.  New tokens stand
    behind those of the past: at 0, 1, ... in a prompt, at ``seqlens_k + 1 - queries`` and on while decoding.
    """
    if node.text("k_quant_type", "NONE") != "NONE" or node.operand(16) is not None:
        _emit_packed(node, lengths=5)
        return
    heads, kv_heads = node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    query, key, value = _grouped_operands(node, heads, kv_heads)
    lengths = node.compute("Reshape", node.need(5), node.constant([-1]), zero_copies=True)
    lengths = node.compute("Add", lengths, node.constant(1, DType.I32 if lengths.dtype is DType.UNKNOWN else lengths.dtype))
    query, key = _normalised_heads(node, query, 14, heads), _normalised_heads(node, key, 15, kv_heads)
    if node.integer("do_rotary", 0):
        positions = node.operand(9) or _new_positions(node, query, lengths)
        query, key = _rotated(node, query, positions, heads), _rotated(node, key, positions, kv_heads)
    window = node.integer("local_window_size", -1)
    softcap = node.real("softcap", 0.0)
    operands = _Operands(query, key, value, KeyMask(lengths=lengths), node.operand(3), node.operand(4), node.operand(10))
    results = _emit_attention(
        node,
        operands,
        heads,
        kv_num_heads=kv_heads,
        causal="bottom-right" if node.integer("causal", 1) else "none",
        mask_fill=_MINUS_INFINITY,
        append="row",
        # A query beyond the keys of its row multiplies nothing: no NaN comes of it.
        empty_row="zero",
        # The window of the file counts the query's own position.
        window=window - 1 if window > 0 else -1,
        **({"softcap": softcap} if softcap else {}),
    )
    for slot, result in enumerate(results[: len(node.outputs)]):
        node.give(slot, result)


def _emit_packed(node: Node, lengths: int) -> None:
    """Attention with an unusual cache or mask; query, key, value, past_key and past_value are the first operands."""
    query, key, value, past_key, past_value = (node.operand(slot) for slot in range(5))
    node.emit("PackedAttention", [query, key, value, None, past_key, past_value, node.operand(lengths)])


def _grouped_operands(node: Node, heads: int, kv_heads: int) -> tuple[Value, Value, Value]:
    """Query, key and value as [batch, sequence, heads * size]; packed ones stand side by side along the last axis."""
    query, key, value = node.need(0), node.operand(1), node.operand(2)
    if key is not None and value is not None:
        return query, key, value
    total = heads + 2 * kv_heads
    apart = node.compute("Reshape", query, node.constant([0, 0, total, -1]), zero_copies=True)
    parts = node.compute_many("Split", 3, apart, node.constant([heads, kv_heads, kv_heads]), axis=2)
    first, second, third = (node.compute("Reshape", part, node.constant([0, 0, -1]), zero_copies=True) for part in parts)
    return first, second, third


def _normalised_heads(node: Node, value: Value, slot: int, heads: int) -> Value:
    """``value`` with each head normalised by its root mean square, when the node has the weight for it."""
    weight = node.operand(slot)
    if weight is None:
        return value
    epsilon = node.real("qk_norm_epsilon", 1e-6)
    apart = node.compute("Reshape", value, node.constant([0, 0, heads, -1]), zero_copies=True)
    normalised = node.compute("RMSNormalization", apart, weight, axis=-1, epsilon=epsilon)
    return node.compute("Reshape", normalised, node.constant([0, 0, -1]), zero_copies=True)


def _new_positions(node: Node, query: Value, lengths: Value) -> Value:
    """Where the new tokens stand: ``max(lengths - queries, 0) + 0, 1, ...``, as [batch, sequence]."""
    queries = node.dim(query, 1)
    before = node.compute("Sub", node.compute("Cast", lengths, dtype=DType.I64), queries)
    before = node.compute("Unsqueeze", node.compute("Max", before, node.constant(0)), node.constant([1]))
    return node.compute("Add", before, _steps(node, queries))


def _rotated(node: Node, value: Value, positions: Value, heads: int) -> Value:
    attrs = {"interleaved": node.integer("rotary_interleaved", 0), "rotary_dim": 0, "num_heads": heads}
    return node.compute("RotaryEmbedding", value, node.need(7), node.need(8), positions, **attrs)


@lower("SparseAttention", domain=MICROSOFT)
def _sparse_attention(node: Node) -> None:
    """Which blocks of keys a query sees is written in two index tensors; of them only the lengths (operand 8) are kept."""
    _emit_packed(node, lengths=8)


@lower("RotaryEmbedding", domain=MICROSOFT)
def _microsoft_rotary_embedding(node: Node) -> None:
    """Operands: input, position_ids, cos_cache, sin_cache; one position id of shape [1] is that of the first token."""
    data, positions = node.need(0), node.need(1)
    attrs: dict[str, Any] = {
        "interleaved": node.integer("interleaved", 0),
        "rotary_dim": node.integer("rotary_embedding_dim", 0),
        "num_heads": node.integer("num_heads", 0),
    }
    if infer_rank(positions) == 1:
        steps = node.compute("Add", _steps(node, node.dim(data, -2)), node.compute("Cast", positions, dtype=DType.I64))
        shape = node.compute("Concat", node.dim_vector(data, 0), node.constant([1]), axis=0)
        positions = node.compute("Expand", steps, shape)
    node.emit("RotaryEmbedding", [data, node.need(2), node.need(3), positions], **attrs)


# -- com.microsoft: packed sequences ---------------------------------------------------------------------------------------


@lower("PackedAttention", domain=MICROSOFT)
def _packed_attention(node: Node) -> None:
    """Operands: input [tokens, size], weights, bias, token_offset, cumulative_sequence_length, attention_bias."""
    projected = add_bias(node, node.compute("MatMul", node.need(0), node.need(1)), node.operand(2))
    parts = _three_parts(node, projected, _part_sizes(node))
    node.emit("PackedAttention", [*parts, node.operand(5), None, None, node.operand(4)])


@lower("PackedMultiHeadAttention", domain=MICROSOFT)
def _packed_multi_head_attention(node: Node) -> None:
    """Operands: query, key, value, bias, token_offset, cumulative_sequence_length, attention_bias."""
    query, key, value = node.need(0), node.operand(1), node.operand(2)
    if key is None or value is None:
        shape = node.constant([0, -1])
        parts = (node.compute("Gather", query, node.constant(at), axis=2) for at in range(3))
        query, key, value = (node.compute("Reshape", part, shape, zero_copies=True) for part in parts)
    bias = node.operand(3)
    if bias is not None:
        biases = _three_parts(node, bias, None)
        query, key, value = (node.compute("Add", part, own) for part, own in zip((query, key, value), biases, strict=True))
    node.emit("PackedAttention", [query, key, value, node.operand(6), None, None, node.operand(5)])
