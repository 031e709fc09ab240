"""Transfer functions of reductions, running sums and orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH, NO_LABELS, SHIFTED
from wirelint.shadow.transfer.elementwise import given, infected
from wirelint.shadow.transfer.movement import axis_of, constant_ints, dynamic_labels
from wirelint.shadow.transfer.ranges import is_quantiser_range
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import HUGE, Array, ExecutionError, Shadow, join

__all__ = ["reduce_over", "without_axes"]


def _log_sum_exp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    made: Array = np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
    return made


_REDUCERS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, axis, keepdims: np.sum(np.abs(x), axis=axis, keepdims=keepdims),
    "ReduceL2": lambda x, axis, keepdims: np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims)),
    "ReduceSumSquare": lambda x, axis, keepdims: np.sum(np.square(x), axis=axis, keepdims=keepdims),
    "ReduceLogSum": lambda x, axis, keepdims: np.log(np.sum(x, axis=axis, keepdims=keepdims)),
    "ReduceLogSumExp": _log_sum_exp,
}


def without_axes(x: Shadow, axes: Sequence[int]) -> Shadow:
    """Drops axes of length 1."""
    kept = [axis for axis in range(x.rank) if axis not in set(axes)]
    return x.moved([x.shape[axis] for axis in kept], lambda array: array.reshape([array.shape[axis] for axis in kept]))


def reduce_over(kind: str, x: Shadow, axes: Sequence[int]) -> Shadow:
    """Reduces along axes, which stay with length 1."""
    shape = tuple(1 if axis in axes else dim for axis, dim in enumerate(x.shape))
    labels = join(x.labels, axes)
    if 0 in x.shape or x.value is None or x.exact is None or x.anchor is None:
        return Shadow(shape, x.dtype, labels)
    wide = x.spread([axis for axis in axes if x.value.shape[axis] != x.shape[axis] or x.exact.shape[axis] != x.shape[axis]])
    value, exact, anchor = wide.value, wide.exact, join(x.anchor, axes)
    assert value is not None
    assert exact is not None
    where = tuple(axes)
    sure: Array = np.all(exact, axis=where, keepdims=True)
    if kind in ("ReduceMax", "ReduceMin") and x.dtype.is_float:
        # An approximate extreme stays an approximate extreme.
        made = _REDUCERS[kind](value, axis=where, keepdims=True)
        reach = _certain_extreme(kind, x, value, made, where)
        return Shadow.partly(shape, x.dtype, labels if reach is None else reach, made, sure, anchor)
    if kind == "ReduceProd":
        zero: Array = np.any(exact & (value == 0), axis=where, keepdims=True)
        made = np.where(sure, _REDUCERS[kind](value, axis=where, keepdims=True).astype(x.dtype.numpy), 0)
        return Shadow.partly(shape, x.dtype, labels, made.astype(x.dtype.numpy), sure | zero, np.where(sure, anchor, labels))
    if not sure.any():
        if kind in ("ReduceSum", "ReduceMean") and x.dtype.is_float and (np.abs(value) > HUGE).any():
            made = _REDUCERS[kind](value, axis=where, keepdims=True).astype(x.dtype.numpy)
            return Shadow.partly(shape, x.dtype, labels, made, np.zeros((1,) * x.rank, dtype=bool), anchor)
        return infected(Shadow(shape, x.dtype, labels), [x], axes)
    made = _REDUCERS[kind](np.broadcast_to(value, np.broadcast_shapes(value.shape, exact.shape)), axis=where, keepdims=True)
    made = np.where(sure, made, 0).astype(x.dtype.numpy)
    return Shadow.partly(shape, x.dtype, labels, made, sure, anchor)


def _certain_extreme(kind: str, x: Shadow, value: Array, extreme: Array, axes: tuple[int, ...]) -> Array | None:
    """Labels without those of elements that are far below (above) the extreme and so can't become it."""
    with np.errstate(all="ignore"):
        gap = np.abs(extreme.astype(np.float64) - value.astype(np.float64))
    beaten = gap > HUGE
    if not beaten.any() or x.anchor is None:
        return None
    marks = np.where(beaten, x.anchor, x.labels)
    return join(marks, axes)


def _as_scale(x: Shadow, context: Context) -> Shadow:
    anchor = None if x.anchor is None else context.layout.as_scale(x.anchor)
    return Shadow(x.shape, x.dtype, context.layout.as_scale(x.labels), x.value, x.exact, anchor)


@transfer(*_REDUCERS)
def reduce_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    listed = operands[1] if len(operands) > 1 else None
    if listed is None or listed.shape == (0,):
        if op.attrs.get("noop_with_empty_axes"):
            return [x]
        axes = list(range(x.rank))
    else:
        axes = sorted({axis_of(axis, x.rank) for axis in constant_ints(listed, "axes")})
    context.charge(x.labels.size)
    made = reduce_over(op.kind, x, axes).joined(dynamic_labels(listed))
    if op.kind == "ReduceMean" and context.length is not None and any(x.shape[axis] == context.length for axis in axes):
        made = made.joined(LENGTH)
    if made.labels.any() and is_quantiser_range(op):
        made = _as_scale(made, context)
    return [made if op.attrs.get("keepdims", 1) else without_axes(made, axes)]


@transfer("CumSum", "CumProd")
def running(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(constant_ints(operands[1], "the axis")[0], x.rank)
    exclusive, reverse = bool(op.attrs.get("exclusive")), bool(op.attrs.get("reverse"))
    wide = x.spread([axis])
    context.charge(wide.labels.size)
    marks = dynamic_labels(operands[1])
    accumulate = np.cumsum if op.kind == "CumSum" else np.cumprod
    start = 0 if op.kind == "CumSum" else 1

    def shifted(array: Array, first: Any) -> Array:
        head = np.full_like(np.take(array, [0], axis=axis), first)
        return np.concatenate([head, np.delete(array, -1, axis=axis)], axis=axis)

    def over(array: Array, run: Callable[[Array], Array], first: Any) -> Array:
        array = np.flip(array, axis) if reverse else array
        made = run(array)
        made = shifted(made, first) if exclusive else made
        return np.flip(made, axis) if reverse else made

    if x.shape[axis] == 0:
        return [x]
    labels = over(wide.labels, lambda array: np.bitwise_or.accumulate(array, axis=axis), NO_LABELS)
    labels = np.where(labels & context.layout.gaps, labels | SHIFTED, labels)
    if not x.is_exact or wide.value is None:
        return [Shadow(x.shape, x.dtype, labels).joined(marks)]
    value = over(wide.value, lambda array: accumulate(array, axis=axis).astype(x.dtype.numpy), start)
    return [Shadow(x.shape, x.dtype, labels, value, np.ones((1,) * x.rank, dtype=bool), labels).joined(marks)]


def _undefined(value: Array) -> bool:
    """A NaN among the numbers: runtimes do not agree where it stands in an order."""
    return value.dtype.kind not in "iub" and bool(np.isnan(value).any())


@transfer("ArgMax", "ArgMin")
def arg_extreme(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Over concrete ids it finds a position (of the end-of-text id), so the result carries structure, not content."""
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", 0), x.rank)
    shape = tuple(1 if at == axis else dim for at, dim in enumerate(x.shape))
    labels = join(x.labels, [axis])
    if x.is_exact and x.value is not None and x.shape[axis] and not _undefined(x.value):
        find = np.argmax if op.kind == "ArgMax" else np.argmin
        wide = np.broadcast_to(x.value, [x.shape[axis] if at == axis else dim for at, dim in enumerate(x.value.shape)])
        if op.attrs.get("select_last_index"):
            value = x.shape[axis] - 1 - find(np.flip(wide, axis), axis=axis, keepdims=True)
        else:
            value = find(wide, axis=axis, keepdims=True)
        labels = context.layout.as_structure(labels)
        made = Shadow(shape, DType.I64, labels, value.astype(np.int64), np.ones((1,) * x.rank, dtype=bool), labels)
    else:
        made = Shadow(shape, DType.I64, labels)
    return [made if op.attrs.get("keepdims", 1) else without_axes(made, [axis])]


@transfer("TopK")
def top_k(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", -1), x.rank)
    k = constant_ints(operands[1], "k")[0]
    if not 0 <= k <= x.shape[axis]:
        raise ExecutionError(f"the {k} largest of {x.shape[axis]}", [k])
    labels = join(x.labels, [axis]) | dynamic_labels(operands[1])
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    if (
        not x.is_exact or not op.attrs.get("sorted", 1) or _undefined(x.full_value())
    ):  # without an order the runtime chooses one
        return [Shadow(shape, x.dtype, labels), Shadow(shape, DType.I64, labels)]
    value = x.full_value()
    context.charge(x.size * max(1, int(math.log2(x.size + 1))))
    keys = value if not op.attrs.get("largest", 1) else _descending(value)
    order = np.argsort(keys, axis=axis, kind="stable").take(range(k), axis=axis)
    picked = np.take_along_axis(value, order, axis=axis)
    sure = np.ones((1,) * x.rank, dtype=bool)
    return [
        Shadow(shape, x.dtype, labels, picked, sure, labels),
        Shadow(shape, DType.I64, labels, order.astype(np.int64), sure, labels),
    ]


def _descending(value: Array) -> Array:
    return (
        -value.astype(np.float64)
        if value.dtype.kind in "fb" or value.dtype.kind == "V"
        else np.iinfo(np.int64).max - value.astype(np.int64)
    )
