"""Operators that make tensors from a few numbers, and those that map between real numbers and integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError
from wirelint.formats.openvino.tensors import element_type

if TYPE_CHECKING:
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]


def _range(site: Site) -> None:
    """Since opset4 the result's element type is chosen freely; the numbers are computed in the operands' own."""
    output = site.output()
    numbers = [site.scalar(index) for index in range(3)]
    dtypes = {number.dtype for number in numbers}
    if len(dtypes) > 1:
        # Real numbers among integers make the sequence real.
        wide = DType.F32 if any(dtype.is_float for dtype in dtypes) else DType.I64
        numbers = [site.cast(number, wide) for number in numbers]
    computed = output if output.dtype in (numbers[0].dtype, DType.UNKNOWN) else site.temporary(numbers[0].dtype, output.shape)
    site.emit("Range", numbers, [computed])
    site.settle(computed)


def _eye(site: Site) -> None:
    batch = site.static(3)
    if site.optional(3) is not None and (batch is None or batch.size):
        raise UnmodelledError("it repeats over batch dimensions")
    operands = [site.operand(0), site.operand(1), site.operand(2)]
    site.emit("Eye", operands, [site.output()], dtype=site.output().dtype)


def _one_hot(site: Site) -> None:
    on, off = site.static(2), site.static(3)
    dtype = site.operand(2).dtype
    values: Value
    if on is not None and off is not None and on.size == off.size == 1:
        values = site.constant(np.concatenate([off.reshape(-1), on.reshape(-1)]), dtype)
    else:
        values = site.through("Concat", site.vector(3), site.vector(2), axis=0, yields=dtype)
    operands = [site.operand(0), site.operand(1), values]
    site.emit("OneHot", operands, [site.output()], axis=site.integer("axis", -1))


def _random_uniform(site: Site) -> None:
    site.emit("Random", [site.operand(0)], [site.output()], dtype=site.output().dtype)


def _fake_quantize(site: Site) -> None:
    operands = [site.operand(index) for index in range(5)]
    site.emit("FakeQuantize", operands, [site.output()], levels=site.integer("levels"))


def _fake_convert(site: Site) -> None:
    """``(f8(x * scale - shift) + shift) / scale``."""
    x, scale, shift = site.operand(0), site.operand(1), site.optional(2)
    small = element_type(site.text("destination_type", "f8e4m3"))
    scaled = site.through("Mul", x, scale)
    if shift is not None:
        scaled = site.through("Sub", scaled, shift)
    rounded = site.cast(site.cast(scaled, small), x.dtype)
    if shift is not None:
        rounded = site.through("Add", rounded, shift)
    site.emit("Div", [rounded, scale], [site.output()])


LOWERINGS: dict[str, Lowering] = {
    "range": _range,
    "eye": _eye,
    "onehot": _one_hot,
    "randomuniform": _random_uniform,
    "fakequantize": _fake_quantize,
    "fakeconvert": _fake_convert,
}
