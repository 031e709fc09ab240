"""The forms in which com.microsoft operators take a padding mask.

A tensor called ``mask_index`` or ``key_padding_mask`` is told by its rank:

- [batch, keys], 1 keeps; [batch, queries, keys]; [batch, 1, longest, longest];
- [batch]: how many keys are real (padding on the right);
- [2 * batch]: where the real keys end, then where they begin;
- [3 * batch + 2]: how many keys are real, then cumulative lengths of queries and keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.onnx.infer import infer_rank
from wirelint.ops.vocabulary import VOCABULARY, Family

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__ = ["KeyMask", "key_mask"]


@dataclass(frozen=True, slots=True)
class KeyMask:
    """Which keys are seen: a bool tensor [batch, 1, queries or 1, keys], or bounds [batch]."""

    keep: Value | None = None
    lengths: Value | None = None
    starts: Value | None = None


def key_mask(node: Node, mask: Value | None, query: Value, past_key: Value | None) -> KeyMask | None:
    """The canonical form of ``mask``; None when its rank is not known.

    Args:
        node: the attention node.
        mask: in any of the forms above; absent when every key is seen.
        query: [batch, queries, ...].
        past_key: [batch, heads, past, size].
    """
    if mask is None:
        return KeyMask()
    rank = infer_rank(mask)
    if rank == 1:
        return _bounds(node, mask, query)
    if rank not in (2, 3, 4):
        return None
    keep = node.compute("Cast", mask, dtype=DType.BOOL)
    if rank == 2:
        return KeyMask(node.compute("Unsqueeze", keep, node.constant([1, 2])))
    if rank == 3:
        return KeyMask(node.compute("Unsqueeze", keep, node.constant([1])))
    return KeyMask(_cut_out(node, keep, query, past_key))


def _cut_out(node: Node, keep: Value, query: Value, past_key: Value | None) -> Value:
    """Of a mask for the longest sequence, the rows of the new positions and the columns of all positions."""
    queries = node.dim_vector(query, 1)
    first = node.constant([0]) if past_key is None else node.dim_vector(past_key, 2)
    last = queries if past_key is None else node.compute("Add", first, queries)
    starts = node.compute("Concat", first, node.constant([0]), axis=0)
    ends = node.compute("Concat", last, last, axis=0)
    return node.compute("Slice", keep, starts, ends, node.constant([2, 3]))


def _bounds(node: Node, mask: Value, query: Value) -> KeyMask:
    """Lengths, and starts where the mask holds them; its own length against the batch tells."""
    form = _bounds_form(mask, query)
    if form == "lengths":
        return KeyMask(lengths=mask)
    if form == "ends and starts":
        ends, starts = node.compute_many("Split", 2, mask, axis=0)
        return KeyMask(lengths=ends, starts=starts)
    batch, zero = node.dim_vector(query, 0), node.constant([0])
    lengths = node.compute("Slice", mask, zero, batch, zero)
    if form == "cumulative":
        return KeyMask(lengths=lengths)
    # Not known before the batch is: zeros behind the mask are the starts when it holds none.
    zeros = node.compute("Expand", node.constant(0, mask.dtype if mask.dtype.is_integer else DType.I32), batch)
    padded = node.compute("Concat", mask, zeros, axis=0)
    twice = node.compute("Add", batch, batch)
    return KeyMask(lengths=lengths, starts=node.compute("Slice", padded, batch, twice, zero))


def _bounds_form(mask: Value, query: Value) -> str:
    length = mask.shape[0] if mask.shape else None
    batch = query.shape[0] if query.shape else None
    if isinstance(length, int) and isinstance(batch, int):
        return {batch: "lengths", 2 * batch: "ends and starts", 3 * batch + 2: "cumulative"}.get(length, "open")
    if length is not None and length == batch:
        return "lengths"
    source = mask
    while (
        source.producer is not None and source.producer.kind in ("Cast", "Identity") and source.producer.inputs[0] is not None
    ):
        source = source.producer.inputs[0]
    op = source.producer
    if op is not None and VOCABULARY[op.kind].family is Family.REDUCE:
        return "lengths"
    return "ends and starts" if op is not None and op.kind == "Concat" and len(op.inputs) == 2 else "open"
