"""Transfer functions of operators that write elements at computed indices.

An index decides where its element is written *and* where it is not, so its labels reach every place that it might name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH, NO_LABELS, ROUTED, SIGNATURE
from wirelint.shadow.transfer.elementwise import center, given
from wirelint.shadow.transfer.movement import axis_of, constant_ints, dynamic_labels, expand, reshape
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, ExecutionError, Shadow, join

__all__: list[str] = []

_LARGEST_SIZE = 1 << 26
"""Elements that are placed one by one: a compact shadow may stand for any number of them."""

_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _counted(indices: Array, size: int) -> Array:
    """Indices counted from the front.

    Raises:
        ExecutionError: one is out of range.
    """
    wide = indices.astype(np.int64)
    if wide.size and (wide.min() < -size or wide.max() >= size):
        raise ExecutionError(f"an index outside an axis of length {size}")
    return np.where(wide < 0, wide + size, wide)


def _placed(data: Shadow, updates: Shadow, at: tuple[Array, ...], width: Sequence[int], reduction: str) -> Shadow:
    """``data`` with ``updates`` written at ``at``.

    Args:
        data: what is written into.
        updates: as many leading axes as the arrays in ``at`` have.
        at: full indices into the leading axes of ``data``, all of the same shape.
        width: lengths to which ``data``'s arrays are spread; 1 where nothing varies.
        reduction: none, add, mul, max or min.
    """
    rest = tuple(width[len(at) :])
    times = np.zeros(tuple(width[: len(at)]), dtype=np.int64)
    np.add.at(times, at, 1)
    hit, again = (mark.reshape(mark.shape + (1,) * len(rest)) for mark in (times > 0, times > 1))

    def source(array: Array) -> Array:
        return np.broadcast_to(array, at[0].shape + rest)

    def joined(before: Array, news: Array) -> Array:
        made = np.array(np.broadcast_to(before, width))
        if reduction == "none":
            made = np.where(hit, NO_LABELS, made)
        np.bitwise_or.at(made, at, source(news))
        return made

    labels = joined(data.labels, updates.labels)
    if data.value is None and updates.value is None:
        return Shadow(data.shape, data.dtype, labels)
    value, exact, anchor = center(data, data.rank)
    news, news_exact, news_anchor = center(updates, updates.rank)
    made, sure = np.array(np.broadcast_to(value, width)), np.array(np.broadcast_to(exact, width))
    if reduction == "none":
        made[at], sure[at] = source(news), source(news_exact)
        # Of several elements for one place, a runtime may take any.
        sure &= ~again
    else:
        _REDUCTIONS[reduction].at(made, at, source(news).astype(made.dtype))
        np.logical_and.at(sure, at, source(news_exact))
        made = np.where(sure | ~hit, made, np.zeros_like(made))
    return Shadow.partly(data.shape, data.dtype, labels, made, sure, joined(anchor, news_anchor))


def _reduction(op: Op, data: Shadow) -> str:
    reduction = str(op.attrs.get("reduction") or "none")
    if reduction != "none" and reduction not in _REDUCTIONS:
        raise ExecutionError(f"scatter reduction {reduction}")
    return "max" if data.dtype is DType.BOOL and reduction == "add" else reduction


def _arrays(*shadows: Shadow) -> list[Array]:
    return [array for x in shadows for array in (x.labels, x.value, x.exact, x.anchor) if array is not None]


def _along(data: Shadow, indices: Shadow, updates: Shadow, axis: int, reduction: str, context: Context) -> Shadow:
    """Writes ``updates`` along ``axis``; all three have the same rank, indices and updates the same shape."""
    if not (data.rank == indices.rank == updates.rank) or indices.shape != updates.shape:
        raise ExecutionError(f"updates of shape {updates.shape} at indices of shape {indices.shape} of {data.shape}")
    if any(at != axis and have > room for at, (have, room) in enumerate(zip(indices.shape, data.shape, strict=True))):
        raise ExecutionError(f"updates of shape {updates.shape} do not fit {data.shape}")
    if not indices.size:
        return data
    region = tuple(room if at == axis else have for at, (have, room) in enumerate(zip(indices.shape, data.shape, strict=True)))

    def over(marks: Array) -> Array:
        """What reaches every place along the axis, as far as the indices go along the others."""
        marks = join(marks, [axis])
        short = [at for at in range(data.rank) if region[at] != data.shape[at]]
        if not short or not marks.any():
            return marks
        wide = [data.shape[at] if at in short else marks.shape[at] for at in range(data.rank)]
        made = np.zeros(wide, dtype=np.uint64)
        within = tuple(slice(region[at]) if at in short else slice(None) for at in range(data.rank))
        made[within] = marks
        return made

    marks = over(indices.labels & ~LENGTH)
    arrays = _arrays(data, indices, updates)
    flat = [
        at != axis and indices.shape[at] == data.shape[at] and all(array.shape[at] == 1 for array in arrays)
        for at in range(data.rank)
    ]
    width = [1 if flat[at] else data.shape[at] for at in range(data.rank)]
    block = [1 if flat[at] else indices.shape[at] for at in range(data.rank)]
    if not indices.is_exact or max(math.prod(width), indices.size) > _LARGEST_SIZE:
        return Shadow(data.shape, data.dtype, data.labels | over(updates.labels) | marks)
    picked = _counted(np.asarray(indices.value), data.shape[axis])
    context.charge(math.prod(width) + math.prod(block))
    grid = list(np.indices(block, sparse=True))
    grid[axis] = picked
    at = tuple(np.broadcast_to(part, block) for part in grid)
    named, written = indices.spread([axis]).labels, updates.spread([axis]).labels
    if _by_choice(named, written, axis, context):
        return _back(data, named | written, at, width)
    return _placed(data, updates, at, width, reduction).joined(marks)


def _by_choice(indices: Array, updates: Array, axis: int, context: Context) -> bool:
    """Labels of indices and updates say that both have all rows of one choice, in its order, along ``axis``."""
    rows = []
    for labels in (indices, updates):
        lines = np.moveaxis(labels & (SIGNATURE | ROUTED), axis, 0).reshape(labels.shape[axis], -1)
        if not (lines == lines[:, :1]).all() or not (lines & ROUTED).all():
            return False
        rows.append(lines[:, 0])
    return rows[0].shape == rows[1].shape and bool((rows[0] == rows[1]).all()) and context.layout.is_choice(rows[0])


def _back(data: Shadow, labels: Array, at: tuple[Array, ...], width: Sequence[int]) -> Shadow:
    """``data`` where each chosen row may have been written back to its own place: no place hears of another's being chosen.

    Args:
        data: what is written into.
        labels: those of each place's being chosen and of what is then written there, in the shape of updates.
        at: as in :func:`_placed`.
        width: likewise.
    """
    news = labels & ~(SIGNATURE | ROUTED | LENGTH)
    return _placed(data.without_value(), Shadow(news.shape, data.dtype, news), at, width, "add")


@transfer("ScatterElements")
def scatter_elements(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    data, indices, updates = (given(operand) for operand in operands[:3])
    axis = axis_of(op.attrs.get("axis", 0), data.rank)
    return [_along(data, indices, updates, axis, _reduction(op, data), context)]


@transfer("ScatterUpdate")
def scatter_update(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Whole slices along an axis (OpenVINO specification of ScatterUpdate-3): the same indices for all other axes."""
    data, indices, updates = (given(operand) for operand in operands[:3])
    axis = axis_of(constant_ints(operands[3], "the axis")[0], data.rank)
    expected = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    if updates.shape != expected:
        raise ExecutionError(f"updates of shape {updates.shape} instead of {expected}")
    shape = (*data.shape[:axis], indices.size, *data.shape[axis + 1 :])
    column = reshape(indices, [indices.size if at == axis else 1 for at in range(data.rank)])
    return [
        _along(data, expand(column, shape), reshape(updates, shape), axis, "none", context).joined(dynamic_labels(operands[3]))
    ]


def _within_reach(data: Shadow, indices: Shadow, picked: Array) -> Array:
    """The labels of indices at the places that they might name: a coordinate without labels names one place for certain,
    such as the row in which a mask's length is written.
    """
    depth = picked.shape[-1]
    wide = np.broadcast_to(indices.labels & ~LENGTH, picked.shape)
    free = [bool(wide[..., column].any()) for column in range(depth)]
    marks = np.zeros([1 if free[axis] else data.shape[axis] for axis in range(depth)], dtype=np.uint64)
    lead = tuple(
        np.zeros(picked.shape[:-1], dtype=np.int64) if free[axis] else _counted(picked[..., axis], data.shape[axis])
        for axis in range(depth)
    )
    np.bitwise_or.at(marks, lead, np.bitwise_or.reduce(wide, axis=-1))
    made: Array = marks.reshape(marks.shape + (1,) * (data.rank - depth))
    return made


@transfer("ScatterND")
def scatter_nd(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    data, indices, updates = (given(operand) for operand in operands[:3])
    depth = indices.shape[-1] if indices.rank else 0
    if not 1 <= depth <= data.rank or updates.shape != (*indices.shape[:-1], *data.shape[depth:]):
        raise ExecutionError(f"updates of shape {updates.shape} at indices of shape {indices.shape} of {data.shape}")
    if not indices.size:
        return [data]
    lead = list(range(indices.rank - 1))
    width = list(data.shape[:depth])
    for axis in range(depth, data.rank):
        beside = len(lead) + axis - depth
        flat = all(array.shape[axis] == 1 for array in _arrays(data)) and all(
            array.shape[beside] == 1 for array in _arrays(updates)
        )
        width.append(1 if flat else data.shape[axis])
    if not indices.is_exact or max(math.prod(width), indices.size) > _LARGEST_SIZE:
        news = join(updates.labels, lead)
        news = news.reshape((1,) * depth + news.shape[len(lead) :])
        return [Shadow(data.shape, data.dtype, data.labels | news | (indices.every_label() & ~LENGTH))]
    picked = indices.full_value()
    marks = _within_reach(data, indices, picked)
    at = tuple(_counted(picked[..., column], data.shape[column]) for column in range(depth))
    context.charge(math.prod(width) + at[0].size * math.prod(width[depth:]))
    if indices.rank == 2:
        named, written = join(indices.spread().labels, [1])[:, 0], updates.spread([0]).labels
        if _by_choice(named, written, 0, context):
            return [_back(data, named.reshape((-1,) + (1,) * (updates.rank - 1)) | written, at, width)]
    return [_placed(data, updates, at, width, _reduction(op, data)).joined(marks)]
