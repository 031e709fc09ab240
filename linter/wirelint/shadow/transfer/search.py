"""Transfer functions of operators whose result has as many elements as their operand happens to hold of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import ROUTED
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.movement import axis_of, dynamic_labels, reshape
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, DataDependentError, ExecutionError, Shadow, join

__all__: list[str] = []

_LARGEST_CHOICE = 1 << 16
"""Elements among which an unknown choice is followed."""

_LARGEST_SIZE = 1 << 24
"""Elements that are looked through: a compact shadow may stand for any number of them."""


def _seen(x: Shadow, what: str) -> Array:
    if not x.is_exact or x.dtype is DType.STRING or x.size > _LARGEST_SIZE:
        raise DataDependentError(f"the number of {what} depends on data")
    return x.full_value()


@transfer("NonZero")
def non_zero(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Where elements differ from zero: a question of structure, as a comparison is.

    Those of one row stand together in the result; of the other rows they only tell how many there were.  Where that is not
    known, every element that may is taken, so that what is computed for the chosen ones and written back to their places
    (tokens that are routed to an expert) can be followed; see :mod:`wirelint.shadow.labels`.
    """
    x = given(operands[0])
    if not x.is_exact and x.rank and x.dtype is not DType.STRING and 0 < x.size <= _LARGEST_CHOICE:
        return [_every_choice(x, context)]
    value = _seen(x, "non-zero elements")
    context.charge(x.size)
    if x.rank < 2:
        found = np.stack(np.nonzero(np.atleast_1d(value)))[-x.rank or 0 :] if x.rank else np.zeros((0, int(value != 0)))
        return [Shadow.known(found, DType.I64, context.layout.as_structure(np.asarray(x.every_label())))]
    found = np.stack(np.nonzero(value))
    own = np.broadcast_to(join(x.labels, range(1, x.rank)).reshape(-1), x.shape[:1])[found[0]]
    labels = context.layout.as_structure(own | context.layout.as_count(x.every_label()))
    return [Shadow.known(found, DType.I64, labels.reshape(1, -1))]


def _every_choice(x: Shadow, context: Context) -> Shadow:
    """The places of all elements that may differ from zero, each labelled by its element and signed."""
    zero = x.zero()
    open_ = np.ones(x.shape, dtype=bool) if zero is None else ~np.broadcast_to(zero, x.shape)
    context.charge(x.size)
    found = np.stack(np.nonzero(open_))
    marks = np.broadcast_to(x.labels, x.shape)[open_] | context.layout.choice(found.shape[1]) | ROUTED
    return Shadow.known(found, DType.I64, marks[None])


@transfer("Unique")
def unique(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Results: the unique elements or slices, where each stands first, which one each is, how often each occurs."""
    x = given(operands[0])
    value = _seen(x, "unique elements")
    axis = op.attrs.get("axis")
    context.charge(8 * x.size)
    made: tuple[Any, ...]
    if axis is None:
        made = np.unique(value.reshape(-1), return_index=True, return_inverse=True, return_counts=True)
    else:
        axis = axis_of(axis, x.rank)
        made = np.unique(value, axis=axis, return_index=True, return_inverse=True, return_counts=True)
    kept, first, inverse, counts = made
    if not op.attrs.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        kept, first, counts = np.take(kept, order, axis=axis or 0), first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    labels = x.every_label()
    numbers = [Shadow.known(part.reshape(-1), DType.I64, labels) for part in (first, inverse, counts)]
    return [Shadow.known(kept, x.dtype, labels), *numbers]


@transfer("Compress")
def compress(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """The slices for which the condition holds: which ones these are is the condition's doing."""
    x, condition = given(operands[0]), given(operands[1])
    chosen = np.flatnonzero(_seen(condition, "chosen elements"))
    axis = op.attrs.get("axis")
    if axis is None:
        x, axis = reshape(x, [x.size]), 0
    axis = axis_of(axis, x.rank)
    if condition.rank != 1 or (chosen.size and chosen[-1] >= x.shape[axis]):
        raise ExecutionError(f"a condition of shape {condition.shape} along an axis of length {x.shape[axis]}", [x.shape[axis]])
    context.charge(x.size)

    def move(array: Array) -> Array:
        return (
            array if array.shape[axis] == 1 and chosen.size else np.take(np.broadcast_to(array, wide(array)), chosen, axis=axis)
        )

    def wide(array: Array) -> list[int]:
        return [x.shape[axis] if at == axis else dim for at, dim in enumerate(array.shape)]

    made = x.moved((*x.shape[:axis], len(chosen), *x.shape[axis + 1 :]), move)
    return [made.joined(dynamic_labels(condition))]
