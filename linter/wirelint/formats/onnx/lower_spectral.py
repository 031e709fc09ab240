"""Lowering of the discrete Fourier transform to a product with its matrix of cosines and sines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.onnx.infer import constant_ints, infer_rank
from wirelint.formats.onnx.lower_math import scalar
from wirelint.formats.onnx.registry import lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__: list[str] = []


@lower("DFT")
def _dft(node: Node) -> None:
    """``y[k] = sum over n of x[n] * exp(-2 pi i k n / N)``; the last axis holds the real and the imaginary part.

    Which axis is transformed, the rank and the size of the last axis have to be known; the inverse of a one-sided
    spectrum has no canonical form.
    """
    data, inverse, onesided = node.need(0), bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    axis, rank = _transformed_axis(node), infer_rank(data)
    parts = data.shape[-1] if data.shape else None
    if axis is not None and rank is not None and axis < 0:
        axis += rank
    if axis is None or rank is None or not 0 <= axis < rank - 1 or parts not in (1, 2) or (inverse and onesided):
        node.emit("Opaque", node.inputs)
        return
    cosines, sines = _matrices(node, data, axis, inverse=inverse, onesided=onesided)
    to_last = (*range(axis), *range(axis + 1, rank - 1), axis)
    back = (*range(axis), rank - 2, *range(axis, rank - 2))

    def transformed(part: Value, matrix: Value) -> Value:
        return node.compute("MatMul", node.compute("Transpose", part, perm=to_last), matrix)

    real = node.compute("Gather", data, node.constant(0), axis=-1)
    result_real, result_imaginary = transformed(real, cosines), node.compute("Neg", transformed(real, sines))
    if parts == 2:
        imaginary = node.compute("Gather", data, node.constant(1), axis=-1)
        result_real = node.compute("Add", result_real, transformed(imaginary, sines))
        result_imaginary = node.compute("Add", result_imaginary, transformed(imaginary, cosines))
    columns = [
        node.compute("Unsqueeze", node.compute("Transpose", part, perm=back), node.constant([-1]))
        for part in (result_real, result_imaginary)
    ]
    node.give(0, node.compute("Concat", *columns, axis=-1))


def _transformed_axis(node: Node) -> int | None:
    """An attribute (default 1) in opset 17, an operand (default -2) since opset 20."""
    if node.version < 20:
        return node.integer("axis", 1)
    if node.operand(2) is None:
        return -2
    given = constant_ints(node.operand(2))
    return given[0] if given else None


def _matrices(node: Node, data: Value, axis: int, *, inverse: bool, onesided: bool) -> tuple[Value, Value]:
    """Cosines and sines [n, k] of the angles; positions from the transform's length on count for nothing."""
    dtype = data.dtype if data.dtype.is_float else DType.F32
    positions = node.dim(data, axis)
    given = node.operand(1)
    length = positions if given is None else _scalar_length(node, given)
    frequencies = length
    if onesided:
        half = node.compute("Div", length, node.constant(2))
        frequencies = node.compute("Add", half, node.constant(1))
    rows = node.compute("Unsqueeze", _numbers(node, positions), node.constant([1]))
    turns = node.compute("Cast", node.compute("Mul", rows, _numbers(node, frequencies)), dtype=dtype)
    real_length = node.compute("Cast", length, dtype=dtype)
    angles = node.compute("Div", node.compute("Mul", turns, scalar(node, 2 * math.pi, turns)), real_length)
    weight = node.compute("Cast", node.compute("Less", rows, length), dtype=dtype)
    if inverse:
        angles = node.compute("Neg", angles)
        weight = node.compute("Div", weight, real_length)
    cosines, sines = (node.compute("Mul", node.compute(kind, angles), weight) for kind in ("Cos", "Sin"))
    return cosines, sines


def _scalar_length(node: Node, value: Value) -> Value:
    wide = node.compute("Cast", value, dtype=DType.I64)
    return node.compute("Reshape", wide, node.constant([], DType.I64), zero_copies=True)


def _numbers(node: Node, count: Value) -> Value:
    return node.compute("Range", node.constant(0), count, node.constant(1))
