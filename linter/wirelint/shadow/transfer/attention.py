"""Transfer functions of fused attention and of rotary embeddings, spelled out in terms of the plain operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH, UNMODELLED
from wirelint.shadow.transfer.contract import matmul
from wirelint.shadow.transfer.elementwise import combine, given, multiply, select
from wirelint.shadow.transfer.lookup import gather
from wirelint.shadow.transfer.movement import concatenate, cut, expand, reshape, transpose
from wirelint.shadow.transfer.normalise import softmax
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import ExecutionError, Shadow, join, present

__all__: list[str] = []


def _by_heads(x: Shadow, heads: int | None) -> Shadow:
    """[batch, sequence, heads * size] as [batch, heads, sequence, size]."""
    if x.rank == 4:
        return x
    if x.rank != 3 or not heads or x.shape[2] % heads:
        raise ExecutionError(f"attention over a tensor of shape {x.shape} with {heads} heads")
    return transpose(reshape(x, [x.shape[0], x.shape[1], heads, x.shape[2] // heads]), [0, 2, 1, 3])


def _appended(past: Shadow, new: Shadow, lengths: Shadow | None) -> Shadow:
    """New keys or values behind those of the past; both are [batch, heads, sequence, size].

    Args:
        past: what the cache holds.
        new: what comes to it.
        lengths: how many keys each row has in the end; with it, a row's new keys stand behind its own past ones, in front of
            the padding of the cache.
    """
    made = concatenate([past, new], 2)
    if lengths is None or not past.shape[2]:
        return made
    marks = reshape(lengths, [lengths.size, 1, 1, 1]).labels & ~LENGTH
    ends = lengths.integers()
    if ends is None or len(ends) != past.shape[0]:
        return Shadow(made.shape, made.dtype, made.labels | join(new.labels, [2]) | marks)
    rows = []
    for row, start in enumerate(_first_new(ends, new.shape[2], past.shape[2])):
        old, added = cut(past, 0, row, row + 1), cut(new, 0, row, row + 1)
        rows.append(concatenate([cut(old, 2, 0, start), added, cut(old, 2, start, past.shape[2]).without_value()], 2))
    return concatenate(rows, 0).joined(marks)


def _first_new(ends: Sequence[int], new: int, past: int) -> list[int]:
    """Where the first of ``new`` keys stands in each row, given how many keys the row has in the end."""
    return [min(max(end - new, 0), past) for end in ends]


def _repeated(x: Shadow, heads: int) -> Shadow:
    """Key or value heads shared by groups of query heads."""
    batch, have, length, size = x.shape
    if have == heads:
        return x
    if heads % have:
        raise ExecutionError(f"{heads} query heads share {have} key heads")
    return reshape(
        expand(reshape(x, [batch, have, 1, length, size]), [batch, have, heads // have, length, size]),
        [batch, heads, length, size],
    )


def _bias(keeps: Any, fill: float, dtype: DType, labels: Any) -> Shadow:
    """0 where a key is kept and ``fill`` where it is not; labels are compact and of rank 4."""
    with np.errstate(over="ignore"):
        value = np.where(keeps, 0.0, fill).astype(dtype.numpy)
    return Shadow(value.shape, dtype, labels, value, np.ones((1, 1, 1, 1), dtype=bool), labels)


def _add(x: Shadow, y: Shadow) -> Shadow:
    return combine(np.add, [x, y], x.dtype, keeps_size=True)


def _scaled(scores: Shadow, op: Op, size: int) -> Shadow:
    """Scores times the scale, by default 1 over the root of the head size, then capped by a tanh."""
    scale = op.attrs.get("scale") or 1 / math.sqrt(max(size, 1))
    made = multiply(scores, Shadow.known(np.full((1, 1, 1, 1), scale), scores.dtype))
    cap = op.attrs.get("softcap")
    return combine(lambda x: cap * np.tanh(x / cap), [made], made.dtype, keeps_size=False) if cap else made


def _emptied(weights: Shadow, scores: Shadow) -> Shadow:
    """Weights of zero instead of NaN where a query sees no key at all."""
    if weights.value is None or scores.value is None:
        return weights
    empty = np.isneginf(scores.value).all(axis=3, keepdims=True)
    value = np.where(empty, 0, weights.value).astype(weights.dtype.numpy)
    return Shadow(weights.shape, weights.dtype, weights.labels, value, weights.exact, weights.anchor)


def _structural(op: Op, queries: int, keys: int, dtype: DType, lengths: Shadow | None) -> Shadow | None:
    """The bias of causal and windowed attention, which no input decides but for where each row's new keys stand.

    Args:
        op: says whether and how attention is causal.
        queries: their number.
        keys: their number.
        dtype: of the scores.
        lengths: how many keys each row has in the end, where new keys stand behind a row's own past ones: a query counts
            from there then, not from the end of the cache.
    """
    causal, window = op.attrs.get("causal", "none"), op.attrs.get("window", -1)
    if causal == "none" and window < 0:
        return None
    first = np.array([keys - queries if causal == "bottom-right" else 0])
    labels = np.zeros((1, 1, 1, 1), dtype=np.uint64)
    ends = None if lengths is None else lengths.integers()
    if lengths is not None and ends is not None and causal == "bottom-right" and keys > queries:
        first = np.array(_first_new(ends, queries, keys - queries))
        labels = reshape(lengths, [lengths.size, 1, 1, 1]).labels & ~LENGTH
    query, key = first[:, None, None, None] + np.arange(queries)[:, None], np.arange(keys)
    keeps = np.broadcast_to(True, (len(first), 1, queries, keys)) if causal == "none" else key <= query
    if window >= 0:
        keeps = keeps & (key >= query - window)
    return _bias(keeps, -np.inf, dtype, labels)


def _by_length(lengths: Shadow, keys: int, dtype: DType, *, start: bool) -> Shadow:
    """The bias by which only the first ``lengths`` keys of each row (or all but those) are seen."""
    flat = reshape(lengths, [lengths.size, 1, 1, 1])
    marks = flat.labels & ~LENGTH
    if not lengths.is_exact or flat.value is None:
        return Shadow.unknown((lengths.size, 1, 1, keys), dtype, marks)
    column, bound = np.arange(keys)[None, None, None, :], flat.value.astype(np.int64)
    return _bias(column >= bound if start else column < bound, -np.inf, dtype, marks)


def _mask_bias(mask: Shadow, op: Op, dtype: DType) -> Shadow:
    """The mask operand as a term of the scores, of rank 4."""
    mask = reshape(mask, [1] * (4 - mask.rank) + list(mask.shape)) if mask.rank < 4 else mask
    if mask.dtype is not DType.BOOL:
        return Shadow(
            mask.shape,
            dtype,
            mask.labels,
            None if mask.value is None else mask.value.astype(dtype.numpy),
            mask.exact,
            mask.anchor,
        )
    # Fused kernels mask in fp32 whatever the tensors are: a finite fill stays finite.
    number = op.attrs.get("mask_fill", -np.inf)
    fill = np.asarray(max(number, -dtype.largest) if np.isfinite(number) else number).astype(dtype.numpy)
    kept = Shadow.known(np.zeros((1, 1, 1, 1)), dtype)
    return select(mask, kept, Shadow.known(fill.reshape(1, 1, 1, 1), dtype))


@transfer("Attention")
def attention(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    query, key, value, mask, past_key, past_value, ends, starts, bias = [*operands, *[None] * (9 - len(operands))][:9]
    q_heads, kv_heads = op.attrs.get("q_num_heads"), op.attrs.get("kv_num_heads") or op.attrs.get("q_num_heads")
    flat = given(query).rank == 3
    q, k, v = _by_heads(given(query), q_heads), _by_heads(given(key), kv_heads), _by_heads(given(value), kv_heads)
    by_row = ends if op.attrs.get("append") == "row" else None
    if by_row is not None and past_key is not None and past_key.shape[2] and q.shape[2] > 1 and q.shape[0] > 1:
        # ONNX Runtime: "batch_size must be 1 when sequence_length > 1 and past context is given".
        raise ExecutionError("several new tokens of several rows beside a cache")
    if past_key is not None and past_key.rank == 4:
        k = _appended(past_key, k, by_row)
    if past_value is not None and past_value.rank == 4:
        v = _appended(past_value, v, by_row)
    present_key, present_value = k, v
    k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    scores = _scaled(matmul(q, transpose(k, [0, 1, 3, 2]), q.dtype, context), op, q.shape[3])
    queries, keys = scores.shape[2:]
    terms = [_structural(op, queries, keys, q.dtype, by_row)]
    if mask is not None:
        terms.append(_mask_bias(mask, op, q.dtype))
    if bias is not None:
        terms.append(_mask_bias(bias, op, q.dtype))
    if ends is not None:
        terms.append(_by_length(ends, keys, q.dtype, start=False))
    if starts is not None:
        terms.append(_by_length(starts, keys, q.dtype, start=True))
    for term in terms:
        if term is not None:
            scores = _add(scores, term)
    weights = softmax(scores, [3])
    if op.attrs.get("empty_row") == "zero":
        weights = _emptied(weights, scores)
    context.charge(weights.labels.size + scores.labels.size)
    context.observe("scores", scores)
    context.observe("weights", weights)
    made = matmul(weights, v, q.dtype, context)
    if flat:
        made = reshape(transpose(made, [0, 2, 1, 3]), [made.shape[0], made.shape[2], made.shape[1] * made.shape[3]])
    return [made, present_key, present_value, scores][: max(1, len(op.outputs))]


@transfer("PackedAttention")
def packed(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Every token may hear every other: which ones do is not modelled."""
    query, value = given(operands[0]), given(operands[2])
    labels = UNMODELLED
    for operand in operands:
        if operand is not None:
            labels |= present(operand.labels)
    return [Shadow.unknown((*query.shape[:-1], value.shape[-1]), query.dtype, labels)]


@transfer("RotaryEmbedding")
def rotary(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Each feature is mixed with one other of the same position and head, by angles that depend on the position."""
    x, cos, sin = given(operands[0]), given(operands[1]), given(operands[2])
    positions = operands[3] if len(operands) > 3 else None
    angle = join(cos.labels, [cos.rank - 1]) | join(sin.labels, [sin.rank - 1])
    if positions is not None:
        table = Shadow(cos.shape, cos.dtype, angle)
        if positions.rank == 1 and positions.size == 1:
            # One offset for the whole batch: the positions are offset, offset + 1, ...
            angle = np.full((1, 1, 1), present(angle) | (present(positions.labels) & ~LENGTH), dtype=np.uint64)
        else:
            angle = gather(table, positions, 0).labels
    if angle.ndim < 3:
        angle = angle.reshape((1,) * (3 - angle.ndim) + angle.shape)
    labels = join(x.labels, [3]) | angle[:, None] if x.rank == 4 else join(x.labels, [2]) | angle
    size = math.prod(np.broadcast_shapes(labels.shape, (1,) * x.rank))
    context.charge(size)
    return [Shadow(x.shape, x.dtype, labels)]
