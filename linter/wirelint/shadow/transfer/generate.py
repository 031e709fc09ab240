"""Transfer functions of operators that make a tensor from a few numbers, or read a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op, Tensor
from wirelint.shadow.labels import COUNT, LENGTH, NO_LABELS, ROUTED
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.movement import axis_of, constant_ints, dynamic_labels
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, DataDependentError, ExecutionError, Shadow, bounded, present

__all__: list[str] = []

_LONGEST = 1 << 22


@transfer("Shape")
def shape_of(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """A shape depends on no element; the padded length in it is marked, so that arithmetic with it can be followed."""
    x = given(operands[0])
    dims = np.asarray(x.shape, dtype=np.int64)[op.attrs.get("start", 0) : op.attrs.get("end")]
    labels = (
        np.where(dims == context.length, LENGTH, NO_LABELS)
        if context.length is not None
        else np.zeros(dims.shape, dtype=np.uint64)
    )
    if present(x.labels) & ROUTED:
        labels = labels | COUNT
    return [Shadow.known(dims, DType.I64, labels)]


@transfer("Size")
def size_of(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    labels = LENGTH if context.length in x.shape else NO_LABELS
    return [Shadow.known(np.asarray(x.size), DType.I64, labels | COUNT if present(x.labels) & ROUTED else labels)]


@transfer("Range")
def range_of(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Element i is start + i * delta: the limit decides how many there are, not what they are."""
    start, limit, delta = (given(operand) for operand in operands)
    if not (start.is_exact and limit.is_exact and delta.is_exact):
        raise DataDependentError("the bounds of a Range depend on data")
    first, last, step = (float(bound.full_value().reshape(-1)[0]) for bound in (start, limit, delta))
    if step == 0 or not all(map(math.isfinite, (first, last, step))):
        raise ExecutionError(f"Range from {first:g} to {last:g} by {step:g}")
    count = max(0, math.ceil((last - first) / step))
    if count > _LONGEST:
        raise ExecutionError(f"Range of {count} elements")
    dtype = op.outputs[0].dtype if op.outputs[0].dtype is not DType.UNKNOWN else start.dtype
    value = np.asarray(start.full_value().reshape(-1)[0] + np.arange(count) * delta.full_value().reshape(-1)[0])
    return [Shadow.known(value.astype(dtype.numpy), dtype, dynamic_labels(start, limit, delta))]


@transfer("ConstantOfShape")
def constant_of_shape(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    shape = constant_ints(operands[0], "the shape")
    if any(dim < 0 for dim in shape):
        raise ExecutionError(f"shape {shape}")
    fill: Tensor | None = op.attrs.get("value")
    held = None if fill is None else fill.load()
    dtype = DType.F32 if fill is None else fill.dtype
    value: Array = np.zeros(1, dtype=dtype.numpy) if held is None else held
    one = (1,) * len(shape)
    labels = np.full(one, dynamic_labels(operands[0]), dtype=np.uint64)
    return [Shadow(tuple(shape), dtype, labels, value.reshape(-1)[:1].reshape(one), np.ones(one, dtype=bool), labels)]


def _diagonal(rows: int, columns: int, offset: int, dtype: DType, context: Context) -> Shadow:
    if rows < 0 or columns < 0:
        raise ExecutionError(f"identity matrix of shape {rows} x {columns}")
    bounded([rows, columns])
    context.charge(rows * columns)
    return Shadow.known(np.eye(rows, columns, offset), dtype)


@transfer("EyeLike")
def eye_like(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    if x.rank != 2:
        raise ExecutionError(f"EyeLike of rank {x.rank}")
    rows, columns = x.shape
    return [_diagonal(rows, columns, op.attrs.get("k", 0), op.attrs.get("dtype") or x.dtype, context)]


@transfer("Eye")
def eye(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    rows, columns, offset = (constant_ints(operand, "the size of an identity matrix")[0] for operand in operands[:3])
    return [_diagonal(rows, columns, offset, op.attrs.get("dtype") or DType.F32, context)]


@transfer("OneHot")
def one_hot(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    indices, values = given(operands[0]), given(operands[2])
    depth = constant_ints(operands[1], "the depth")[0]
    rank = indices.rank + 1
    axis = axis_of(op.attrs.get("axis", -1), rank)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    labels = np.expand_dims(indices.labels, axis) | dynamic_labels(values)
    if not indices.is_exact or not values.is_exact or depth < 0:
        return [Shadow(_possible(shape), values.dtype, labels)]
    bounded(shape)
    context.charge(math.prod(shape))
    off, on = values.full_value().reshape(-1)[:2]
    wide = np.expand_dims(indices.full_value().astype(np.int64), axis)
    wide = np.where(wide < 0, wide + depth, wide)
    at = np.arange(depth).reshape([-1 if pos == axis else 1 for pos in range(rank)])
    value = np.where(wide == at, on, off).astype(values.dtype.numpy)
    return [Shadow(shape, values.dtype, labels, value, np.ones((1,) * rank, dtype=bool), labels)]


def _possible(shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(dim < 0 for dim in shape):
        raise ExecutionError(f"shape {shape}")
    return shape


@transfer("Random")
def random(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    if operands and operands[0] is not None:
        shape = tuple(constant_ints(operands[0], "the shape"))
    else:
        declared = context.declared_shape(op.outputs[0])
        if declared is None:
            raise DataDependentError("the shape of random numbers is not declared")
        shape = declared
    return [Shadow.unknown(_possible(shape), op.attrs.get("dtype") or op.outputs[0].dtype)]
