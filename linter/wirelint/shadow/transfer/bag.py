"""Transfer function of embedding bags: sums, means or maxima of looked-up rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH, NO_LABELS
from wirelint.shadow.transfer.elementwise import given, multiply
from wirelint.shadow.transfer.lookup import gather
from wirelint.shadow.transfer.movement import cut, reshape
from wirelint.shadow.transfer.reduce import reduce_over
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import ExecutionError, Shadow, join, present

__all__: list[str] = []


@transfer("EmbeddingBag")
def embedding_bag(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """OpenVINO EmbeddingBagOffsets and EmbeddingBagPacked: a bag hears its rows and, with offsets, where it begins and ends.

    A row whose weight is exactly zero leaves no trace.
    """
    table, indices, offsets, default, weights = [*operands, *[None] * (5 - len(operands))][:5]
    rows = gather(given(table), given(indices), 0)
    context.charge(given(indices).size)
    if weights is not None:
        if weights.shape != given(indices).shape:
            raise ExecutionError(f"weights of shape {weights.shape} for indices of shape {given(indices).shape}")
        rows = multiply(rows, reshape(weights, [*weights.shape, *[1] * (given(table).rank - 1)]))
    if offsets is None:
        if given(indices).rank != 2:
            raise ExecutionError(f"bags of indices of shape {given(indices).shape} without offsets")
        reduced = reduce_over("ReduceSum", rows, [1])
        labels = reduced.labels.reshape(reduced.labels.shape[:1] + reduced.labels.shape[2:])
        return [Shadow((rows.shape[0], *rows.shape[2:]), rows.dtype, labels)]
    empty = None if default is None else gather(given(table), reshape(default, [1]), 0)
    return [_by_offsets(rows, offsets, empty, context)]


def _by_offsets(rows: Shadow, offsets: Shadow, empty: Shadow | None, context: Context) -> Shadow:
    """One bag per offset, from there to the next; ``empty`` is the row that stands for an empty bag."""
    if offsets.rank != 1 or rows.rank < 2:
        raise ExecutionError(f"bags of rows of shape {rows.shape} with offsets of shape {offsets.shape}")
    count = offsets.shape[0]
    shape = (count, *rows.shape[1:])
    marks = offsets.labels & ~LENGTH
    if marks.size > 1:
        # A bag hears the offset at which it begins and the one at which it ends.
        marks = marks | np.append(marks[1:], NO_LABELS)
    marks = marks.reshape((-1,) + (1,) * (rows.rank - 1))
    places = offsets.integers()
    fallback = np.zeros((1,) * rows.rank, dtype=np.uint64) if empty is None else empty.labels
    if places is None:
        return Shadow(shape, rows.dtype, join(rows.labels, [0]) | marks | fallback)
    if any(not 0 <= first <= last for first, last in zip(places, [*places[1:], rows.shape[0]], strict=True)):
        raise ExecutionError(f"offsets of bags beyond {rows.shape[0]} indices")
    context.charge(rows.labels.size)
    heard = [
        join(cut(rows, 0, first, last).labels, [0]) if last > first else fallback
        for first, last in zip(places, [*places[1:], rows.shape[0]], strict=True)
    ]
    if not present(rows.labels):
        return Shadow(shape, rows.dtype, fallback | marks)
    wide = np.broadcast_shapes(*(array.shape for array in heard))
    return Shadow(shape, rows.dtype, np.concatenate([np.broadcast_to(array, wide) for array in heard]) | marks)
