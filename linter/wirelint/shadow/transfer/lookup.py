"""Transfer functions of operators that read elements at computed indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.movement import axis_of
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, ExecutionError, Shadow, bounded, join

__all__ = ["gather"]


def _wrapped(indices: Array, size: int) -> Array:
    """Indices counted from the front, those out of range clamped.

    A runtime refuses an index that is out of range; here ids are only representative, so it is no fault of the graph.
    """
    wide = indices.astype(np.int64)
    counted: Array = np.where(wide < 0, wide + size, wide)
    return np.minimum(np.maximum(counted, 0), max(size - 1, 0))


def gather(x: Shadow, indices: Shadow, axis: int) -> Shadow:
    """``x`` at ``indices`` along ``axis``, the indices' axes in its place."""
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    before, after = (1,) * axis, (1,) * (x.rank - axis - 1)
    marks = (indices.labels & ~LENGTH).reshape(before + indices.labels.shape + after)
    if not indices.is_exact or x.shape[axis] == 0:
        if 0 not in shape and x.shape[axis] == 0:
            raise ExecutionError("lookup in an empty axis")
        heard = join(x.labels, [axis])
        spot = heard.reshape(heard.shape[:axis] + (1,) * indices.rank + heard.shape[axis + 1 :])
        return Shadow.unknown(shape, x.dtype, spot | marks)
    picked = _wrapped(indices.full_value(), x.shape[axis])

    def move(array: Array) -> Array:
        if array.shape[axis] == 1:
            return array.reshape(array.shape[:axis] + (1,) * indices.rank + array.shape[axis + 1 :])
        bounded([*array.shape[:axis], picked.size, *array.shape[axis + 1 :]])
        return np.take(array, picked, axis=axis)

    made = x.moved(shape, move)
    return made.joined(marks)


@transfer("Gather")
def gather_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x, indices = given(operands[0]), given(operands[1])
    axis = axis_of(op.attrs.get("axis", 0), x.rank)
    batch = op.attrs.get("batch_dims", 0)
    batch = batch + indices.rank if batch < 0 else batch
    if not batch:
        made_size = x.size // max(x.shape[axis], 1) * indices.size
        context.charge(made_size if x.labels.shape[axis] != 1 or x.value is not None else indices.size)
        return [gather(x, indices, axis)]
    if x.shape[:batch] != indices.shape[:batch]:
        raise ExecutionError(f"batch dimensions of {x.shape} and {indices.shape} differ")
    # Batched lookup: bring the axis behind the batch dimensions of both and take along it.
    shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
    marks = (indices.labels & ~LENGTH).reshape(
        indices.labels.shape[:batch] + (1,) * (axis - batch) + indices.labels.shape[batch:] + (1,) * (x.rank - axis - 1)
    )
    if not indices.is_exact:
        heard = join(x.labels, [axis])
        spot = heard.reshape(heard.shape[:axis] + (1,) * (indices.rank - batch) + heard.shape[axis + 1 :])
        return [Shadow.unknown(shape, x.dtype, spot | marks)]
    context.charge(math.prod(shape))
    picked = _wrapped(indices.full_value(), x.shape[axis])
    flat = picked.reshape(*picked.shape[:batch], *(1,) * (axis - batch), -1, *(1,) * (x.rank - axis - 1))

    def move(array: Array) -> Array:
        if array.shape[axis] == 1:
            return np.reshape(array, array.shape[:axis] + (1,) * (indices.rank - batch) + array.shape[axis + 1 :])
        wide = [max(one, other) for one, other in zip(array.shape, flat.shape, strict=True)]
        wide[axis] = array.shape[axis]
        at = list(wide)
        at[axis] = flat.shape[axis]
        taken = np.take_along_axis(np.broadcast_to(array, wide), np.broadcast_to(flat, at), axis=axis)
        return taken.reshape(taken.shape[:axis] + picked.shape[batch:] + taken.shape[axis + 1 :])

    return [x.moved(shape, move).joined(marks)]


@transfer("GatherElements")
def gather_elements(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x, indices = given(operands[0]), given(operands[1])
    if x.rank != indices.rank:
        raise ExecutionError(f"data of rank {x.rank}, indices of rank {indices.rank}")
    axis = axis_of(op.attrs.get("axis", 0), x.rank)
    marks = indices.labels & ~LENGTH
    for at in range(x.rank):
        if at != axis and indices.shape[at] > x.shape[at]:
            raise ExecutionError(f"indices of shape {indices.shape} for data of shape {x.shape}")

    def fitted(array: Array) -> Array:
        """Off the axis, element ``i`` is read at ``i``: only as far as the indices go."""
        return array[tuple(slice(None) if at == axis else slice(indices.shape[at]) for at in range(x.rank))]

    if not indices.is_exact:
        heard = fitted(join(x.labels, [axis]))
        return [Shadow.unknown(indices.shape, x.dtype, heard | marks)]
    context.charge(indices.size)
    picked = _wrapped(np.asarray(indices.value), x.shape[axis])

    def move(array: Array) -> Array:
        if array.shape[axis] == 1:
            return fitted(array)
        held = fitted(array)
        wide = [max(one, other) for one, other in zip(held.shape, picked.shape, strict=True)]
        wide[axis] = held.shape[axis]
        at = list(wide)
        at[axis] = picked.shape[axis]
        return np.take_along_axis(np.broadcast_to(held, wide), np.broadcast_to(picked, at), axis=axis)

    made = x.moved(indices.shape, move)
    return [made.joined(marks)]


@transfer("GatherND")
def gather_nd(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x, indices = given(operands[0]), given(operands[1])
    batch = op.attrs.get("batch_dims", 0)
    depth = indices.shape[-1]
    if batch + depth > x.rank or x.shape[:batch] != indices.shape[:batch]:
        raise ExecutionError(f"indices of shape {indices.shape} for data of shape {x.shape}")
    shape = (*indices.shape[:-1], *x.shape[batch + depth :])
    rest = (1,) * (x.rank - batch - depth)
    marks = join(indices.labels & ~LENGTH, [indices.rank - 1])
    marks = marks.reshape(marks.shape[:-1] + rest)
    if not indices.is_exact:
        heard = join(x.labels, list(range(batch, batch + depth)))
        spot = heard.reshape(heard.shape[:batch] + (1,) * (indices.rank - 1 - batch) + heard.shape[batch + depth :])
        return [Shadow.unknown(shape, x.dtype, spot | marks)]
    context.charge(math.prod(indices.shape[:-1]) * max(1, math.prod(x.labels.shape[batch + depth :])))
    picked = indices.full_value()
    columns = [_wrapped(picked[..., at], x.shape[batch + at]) for at in range(depth)]
    grid: tuple[Array, ...] = np.indices(picked.shape[:-1], sparse=True)[:batch] if batch else ()

    def move(array: Array) -> Array:
        where: list[Array] = [np.minimum(np.asarray(index), array.shape[pos] - 1) for pos, index in enumerate(grid)]
        where += [np.minimum(at, array.shape[batch + pos] - 1) for pos, at in enumerate(columns)]
        return array[tuple(np.broadcast_arrays(*where))] if where else array

    return [x.moved(shape, move).joined(marks)]
