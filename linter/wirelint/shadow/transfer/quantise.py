"""Transfer functions of quantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.transfer.elementwise import center, combine, convert, given, lift
from wirelint.shadow.transfer.movement import axis_of, reshape
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, ExecutionError, Shadow

__all__: list[str] = []

_RANGES = {
    DType.I8: (-128, 127), DType.U8: (0, 255), DType.I16: (-32768, 32767), DType.U16: (0, 65535), DType.I4: (-8, 7),
    DType.U4: (0, 15),
    DType.I2: (-2, 1), DType.U2: (0, 3), DType.I32: (-(2**31), 2**31 - 1),
}  # fmt: skip

_ORDINARY = 40.0
"""Scores differ by a few tens at most in trained models."""


def _aligned(parameter: Shadow | None, x: Shadow, op: Op) -> Shadow | None:
    """A scale or zero point shaped so that it broadcasts against the data; blocked ones lose their values."""
    if parameter is None or parameter.size == 1:
        return None if parameter is None else reshape(parameter, [1] * x.rank)
    axis = axis_of(op.attrs.get("axis", 1), x.rank)
    if parameter.rank == 1 and parameter.shape[0] == x.shape[axis]:
        return reshape(parameter, [parameter.shape[0] if at == axis else 1 for at in range(x.rank)])
    return Shadow.unknown((1,) * x.rank, parameter.dtype, parameter.every_label())


@transfer("QuantizeLinear")
def quantize(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """An exact value (zero, or the fill of a mask) becomes an exact code; what lies out of range saturates, and a NaN becomes
    the lowest code, as in ONNX Runtime.
    """
    x = given(operands[0])
    scale, point = _aligned(operands[1], x, op), _aligned(operands[2] if len(operands) > 2 else None, x, op)
    dtype = op.attrs.get("dtype") or (operands[2].dtype if len(operands) > 2 and operands[2] is not None else DType.U8)
    parts = [x, given(scale)] + ([point] if point is not None else [])
    if dtype.is_float:
        return [convert(combine(lambda value, step, *_: value / step, parts, x.dtype, keeps_size=False), dtype)]
    low, high = _RANGES.get(dtype, (-np.inf, np.inf))

    def codes(value: Array, step: Array, offset: Array | int = 0) -> Array:
        # Runtimes divide in single precision, so that halves fall as they do there.
        single = np.float64 if value.dtype == np.float64 else np.float32
        code = np.rint(value.astype(single) / step.astype(single)).astype(np.float64) + np.asarray(offset).astype(np.float64)
        return np.clip(np.where(np.isnan(code), low, code), low, high)

    made = combine(codes, parts, dtype, keeps_size=False)
    if x.value is not None and scale is not None and scale.is_exact and not made.is_exact and dtype in _RANGES:
        # The fill of a mask keeps its size beside ordinary scores; with a step as huge as the fill the scores all get one code.
        value, exact, anchor = center(made, x.rank)
        xv, xe, xa = center(x, x.rank)
        with np.errstate(all="ignore"):
            code = codes(xv, center(scale, x.rank)[0], 0 if point is None else center(point, x.rank)[0])
            slack = _ORDINARY / np.abs(center(scale, x.rank)[0].astype(np.float64))
        settled = (slack < 0.25) & ~xe
        value = np.where(exact, value, code).astype(dtype.numpy)
        labels = np.where(settled, xa, made.labels)
        made = Shadow.partly(made.shape, dtype, labels, value, exact | settled, np.where(exact, anchor, xa))
    return [made]


@transfer("DequantizeLinear")
def dequantize(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    scale, point = _aligned(operands[1], x, op), _aligned(operands[2] if len(operands) > 2 else None, x, op)
    dtype = op.attrs.get("dtype") or given(operands[1]).dtype
    parts = [x, given(scale)] + ([point] if point is not None else [])
    made = combine(
        lambda code, step, offset=0: (code.astype(np.float64) - np.asarray(offset, np.float64)) * step.astype(np.float64),
        parts, dtype, keeps_size=x.value is not None and given(scale).is_exact,
    )  # fmt: skip
    if made.is_exact or x.value is None or x.exact is None or (point is not None and not point.is_exact):
        return [made]
    # The code of zero is zero whatever the scale is.
    offset = np.zeros((1,) * x.rank) if point is None else center(point, x.rank)[0]
    zero = x.exact & (x.value.astype(np.float64) == offset.astype(np.float64))
    if not zero.any():
        return [made]
    value, exact, anchor = center(made, x.rank)
    labels = np.where(zero, lift(x.labels, x.rank), made.labels)
    return [
        Shadow.partly(
            made.shape,
            dtype,
            labels,
            np.where(zero, 0, value).astype(dtype.numpy),
            exact | zero,
            np.where(zero, labels, anchor),
        )
    ]


@transfer("DynamicQuantizeLinear")
def dynamic_quantize(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """One scale for the whole tensor: every element depends on every other, weakly.

    The zero point is not known; codes are given relative to it, so that zero stays exactly zero.
    """
    x = given(operands[0])
    scale_labels = context.layout.as_scale(np.asarray(x.every_label()))
    zero = x.zero()
    labels = np.asarray(x.labels | scale_labels)
    codes = Shadow(x.shape, DType.U8, labels)
    if zero is not None:
        codes = Shadow.partly(x.shape, DType.U8, labels, np.zeros(zero.shape, dtype=np.uint8), zero, labels)
    return [codes, Shadow.unknown((), DType.F32, scale_labels), Shadow.known(np.asarray(0), DType.U8, scale_labels)]


@transfer("FakeQuantize")
def fake_quantize(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    low_in, high_in, low_out, high_out = (given(operand) for operand in operands[1:5])
    levels = int(op.attrs.get("levels", 256))
    if levels < 2:
        raise ExecutionError(f"{levels} quantisation levels")

    def requantised(value: Array, a: Array, b: Array, c: Array, d: Array) -> Array:
        lowest, highest = np.minimum(a, b), np.maximum(a, b)
        inner = np.rint((value - a) / np.where(b == a, 1, b - a) * (levels - 1)) / (levels - 1) * (d - c) + c
        return np.where(value <= lowest, c, np.where(value > highest, d, inner))

    ranges = [low_in, high_in, low_out, high_out]
    # The fill of a mask keeps its size beside ordinary scores, as in QuantizeLinear.
    known = x.value is not None and all(bound.is_exact for bound in ranges)
    made = combine(requantised, [x, *ranges], x.dtype, keeps_size=known)
    if not known or made.is_exact or x.rank < max(bound.rank for bound in ranges):
        return [made]
    # With a step as huge as the fill, all ordinary scores get the level of zero.
    value, exact, anchor = center(made, x.rank)
    _, xe, xa = center(x, x.rank)
    with np.errstate(all="ignore"):
        step = np.abs(center(high_in, x.rank)[0].astype(np.float64) - center(low_in, x.rank)[0].astype(np.float64)) / (
            levels - 1
        )
    settled = (_ORDINARY / step < 0.25) & ~xe
    labels = np.where(settled, xa, made.labels)
    return [Shadow.partly(made.shape, made.dtype, labels, value, exact | settled, np.where(exact, anchor, xa))]
