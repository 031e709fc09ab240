"""Transfer function of resampling: every result hears the few elements around the place it is read at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wirelint.graph import Op
from wirelint.shadow.labels import NO_LABELS
from wirelint.shadow.transfer.elementwise import center, given
from wirelint.shadow.transfer.movement import axis_of, constant_ints, dynamic_labels
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, DataDependentError, ExecutionError, Shadow

__all__: list[str] = []

_LARGEST_SIZE = 1 << 40
_LONGEST = 1 << 24
_BLUR = 1e-4
"""Runtimes compute coordinates in single precision, each in its own order; by whole factors they all come out the same."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """One resampled axis: its index, its length before and after, and the scale between them."""

    at: int
    size: int
    made: int
    scale: float


def _resized(op: Op, x: Shadow, scales: Shadow | None, sizes: Shadow | None) -> list[_Axis]:
    """The axes along which anything changes.

    Raises:
        DataDependentError: the new size is not known.
        ExecutionError: it is negative or beyond reason, or an empty axis is to be filled.
    """
    axes = [axis_of(axis, x.rank) for axis in op.attrs.get("axes") or range(x.rank)]
    if sizes is not None and sizes.size:
        wanted = constant_ints(sizes, "the new size")
        factors = [size / max(x.shape[at], 1) for at, size in zip(axes, wanted, strict=False)]
    elif scales is not None and scales.is_exact:
        factors = [float(factor) for factor in scales.full_value().ravel()]
        wanted = [
            math.floor(np.float32(x.shape[at]) * np.float32(factor)) if math.isfinite(factor) else -1
            for at, factor in zip(axes, factors, strict=False)
        ]
    else:
        raise DataDependentError("the new size depends on data")
    if any(not 0 <= size <= _LONGEST or (size and not x.shape[at]) for at, size in zip(axes, wanted, strict=False)):
        raise ExecutionError(f"{list(x.shape)} can't be resized to {wanted} along axes {axes}")
    every = op.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    return [
        _Axis(at, x.shape[at], size, factor)
        for at, size, factor in zip(axes, wanted, factors, strict=False)
        if every or size != x.shape[at] or factor != 1
    ]


def _places(axis: _Axis, mode: str) -> Array:
    """Where each result is read, as a number among the elements (ONNX specification of Resize, coordinate transformations)."""
    made = np.arange(axis.made, dtype=np.float64)
    middle = (made + 0.5) / axis.scale - 0.5
    if mode == "align_corners":
        return made * (axis.size - 1) / max(axis.made - 1, 1)
    if mode == "asymmetric":
        return made / axis.scale
    if mode == "tf_half_pixel_for_nn":
        return middle + 0.5
    if mode == "pytorch_half_pixel" and axis.made == 1:
        return np.zeros(1)
    if mode == "half_pixel_symmetric":
        return middle + axis.size / 2 * (1 - axis.made / (axis.scale * axis.size))
    return middle


def _rounding(mode: str, scale: float) -> Callable[[Array], Array]:
    if mode == "simple":
        mode = "ceil" if scale < 1 else "floor"
    functions: dict[str, Callable[[Array], Array]] = {
        "round_prefer_ceil": lambda place: np.floor(place + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    return functions.get(mode, lambda place: np.ceil(place - 0.5))


def _range(axis: _Axis, op: Op) -> tuple[Array, Array]:
    """The first and the last element that each result may hear."""
    mode, coordinates = op.attrs.get("mode", "nearest"), op.attrs.get("coordinate_transformation_mode", "half_pixel")
    if coordinates == "tf_crop_and_resize" or (op.attrs.get("antialias") and axis.scale < 1):
        return np.zeros(axis.made, dtype=np.int64), np.full(axis.made, axis.size - 1, dtype=np.int64)
    place = _places(axis, coordinates)
    blur = 0.0 if coordinates != "align_corners" and (axis.scale % 1 == 0 or math.log2(axis.scale) % 1 == 0) else _BLUR
    if mode == "nearest":
        rounded = _rounding(op.attrs.get("nearest_mode", "round_prefer_floor"), axis.scale)
        first, last = rounded(place - blur), rounded(place + blur)
    else:
        before, after = (1, 2) if mode == "cubic" else (0, 1)
        first, last = np.floor(place - blur) - before, np.floor(place + blur) + after
    end = max(axis.size - 1, 0)
    return np.clip(first, 0, end).astype(np.int64), np.clip(last, 0, end).astype(np.int64)


@transfer("Resize")
def resize(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Nearest-neighbour resampling moves elements; the other modes mix two or four of each axis."""
    x, roi, scales, sizes = [*operands, *[None] * (4 - len(operands))][:4]
    data = given(x)
    axes = _resized(op, data, scales, sizes)
    shape = list(data.shape)
    for axis in axes:
        shape[axis.at] = axis.made
    if math.prod(shape) > _LARGEST_SIZE:
        raise ExecutionError(f"shape {shape} is not possible")
    value, exact, anchor = center(data, data.rank)
    labels, moves = data.labels, data.value is not None and op.attrs.get("mode", "nearest") == "nearest"
    for axis in axes:
        first, last = _range(axis, op)
        labels, anchor = _united(labels, axis, first, last, context), _united(anchor, axis, first, last, context)
        if moves and (value.shape[axis.at] != 1 or exact.shape[axis.at] != 1):
            sure = (first == last).reshape([-1 if at == axis.at else 1 for at in range(data.rank)])
            value, exact = _taken(value, axis, first), _taken(exact, axis, first) & sure
    marks = dynamic_labels(scales, sizes)
    if op.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        marks |= dynamic_labels(roi)
        moves = False
    made = Shadow.partly(shape, data.dtype, labels, value, exact, anchor) if moves else Shadow(tuple(shape), data.dtype, labels)
    return [made.joined(marks)]


def _taken(array: Array, axis: _Axis, index: Array) -> Array:
    return array if array.shape[axis.at] == 1 else np.take(array, index, axis=axis.at)


def _united(labels: Array, axis: _Axis, first: Array, last: Array, context: Context) -> Array:
    """The labels of all elements from ``first`` to ``last`` of each result."""
    if labels.shape[axis.at] == 1:
        return labels
    made = np.full_like(_taken(labels, axis, first), NO_LABELS)
    if not made.size:
        return made
    if not first.any() and bool((last == axis.size - 1).all()):
        made |= np.bitwise_or.reduce(labels, axis=axis.at, keepdims=True)
        return made
    for step in range(int((last - first).max()) + 1):
        context.charge(made.size)
        made |= _taken(labels, axis, np.minimum(first + step, last))
    return made
