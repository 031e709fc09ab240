"""Lowerings of operators that move, look up, generate or cast elements and need more than a row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.formats.onnx.dtypes import BY_NUMBER
from wirelint.formats.onnx.infer import infer_rank
from wirelint.formats.onnx.registry import MICROSOFT, lower
from wirelint.graph import Tensor, Value

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node

__all__: list[str] = []


@lower("Constant")
def _constant(node: Node) -> None:
    """The result is a constant; no operator is left of the node."""
    tensor = _constant_tensor(node)
    result = node.outputs[0] if node.outputs else Value("")
    result.constant, result.dtype, result.shape, result.origin = tensor, tensor.dtype, tensor.shape, node.origin


def _constant_tensor(node: Node) -> Tensor:
    held = node.tensor("value") or node.tensor("sparse_value")
    if held is not None:
        return held
    if node.has("value_float"):
        return Tensor.of(node.real("value_float", 0.0), DType.F32)
    if node.has("value_floats"):
        return Tensor.of(node.reals("value_floats", ()), DType.F32)
    if node.has("value_int"):
        return Tensor.of(node.integer("value_int", 0), DType.I64)
    if node.has("value_ints"):
        return Tensor.of(node.integers("value_ints", ()), DType.I64)
    if node.has("value_string"):
        return Tensor.of(node.text("value_string", ""), DType.STRING)
    if node.has("value_strings"):
        return Tensor.of(node.texts("value_strings", ()), DType.STRING)
    raise node.fault("holds no value")


@lower("Reshape")
def _reshape(node: Node) -> None:
    shape = node.operand(1)
    if shape is None:
        target = node.integers("shape", None)
        if target is None:
            raise node.fault("lacks its input 1")
        shape = node.constant(list(target))
    node.emit("Reshape", [node.need(0), shape], zero_copies=not node.integer("allowzero", 0))


@lower("Transpose")
def _transpose(node: Node) -> None:
    """Without ``perm`` the axes are reversed, for which the rank has to be known."""
    data, perm = node.need(0), node.integers("perm", None)
    rank = infer_rank(data) if perm is None else None
    if perm is None and rank is not None:
        perm = tuple(reversed(range(rank)))
    if perm is None:
        node.emit("Opaque", [data])
    else:
        node.emit("Transpose", [data], perm=perm)


@lower("Cast")
def _cast(node: Node) -> None:
    node.emit("Cast", [node.need(0)], dtype=BY_NUMBER.get(node.integer("to", 0), DType.UNKNOWN))


@lower("CastLike")
def _cast_like(node: Node) -> None:
    """Only the type of the second operand matters, never its elements."""
    dtype = node.need(1).dtype
    if dtype is DType.UNKNOWN:
        dtype = node.outputs[0].dtype if node.outputs else dtype
    if dtype is DType.UNKNOWN:
        node.emit("Opaque", node.inputs)
    else:
        node.emit("Cast", [node.need(0)], dtype=dtype)


@lower("BitCast")
def _bit_cast(node: Node) -> None:
    node.emit("BitCast", [node.need(0)], dtype=BY_NUMBER.get(node.integer("to", 0), DType.UNKNOWN))


@lower("Dropout")
def _dropout(node: Node) -> None:
    """Inference: the data pass; the mask, where asked for, is all True.  In training it is left unmodelled."""
    data, training = node.need(0), node.operand(2)
    if training is not None and training.constant is None:
        node.emit("Opaque", node.inputs)
        return
    node.give(0, data)
    if node.wants(1):
        ones = Tensor.of([True], DType.BOOL)
        node.give(1, node.compute("ConstantOfShape", node.compute("Shape", data, start=0), value=ones))


@lower("ConstantOfShape")
def _constant_of_shape(node: Node) -> None:
    value = node.tensor("value") or Tensor.of([0.0], DType.F32)
    node.emit("ConstantOfShape", [node.need(0)], value=value)


@lower("EyeLike")
def _eye_like(node: Node) -> None:
    data = node.need(0)
    dtype = BY_NUMBER.get(node.integer("dtype", 0), data.dtype)
    node.emit("EyeLike", [data], dtype=dtype, k=node.integer("k", 0))


@lower("RandomNormal", "RandomUniform")
def _random(node: Node) -> None:
    shape = node.constant(list(node.integers("shape", ())))
    node.emit("Random", [shape], dtype=BY_NUMBER.get(node.integer("dtype", 1), DType.F32))


@lower("RandomNormalLike", "RandomUniformLike")
def _random_like(node: Node) -> None:
    data = node.need(0)
    dtype = BY_NUMBER.get(node.integer("dtype", 0), data.dtype)
    node.emit("Random", [node.compute("Shape", data, start=0)], dtype=dtype)


@lower("Upsample")
def _upsample(node: Node) -> None:
    """Upsample (until opset 9) is Resize with asymmetric coordinates that are rounded down."""
    scales = node.operand(1) or node.constant(list(node.reals("scales", ())), DType.F32)
    mode = node.text("mode", "nearest")
    attrs: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
        "antialias": 0,
    }
    node.emit("Resize", [node.need(0), None, scales], **attrs)


@lower("Resize")
def _resize(node: Node) -> None:
    """Opset 10 takes ``(x, scales)`` and has the coordinates of Upsample; later ones ``(x, roi, scales, sizes)``."""
    if node.version < 11:
        _upsample(node)
        return
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        node.emit("Opaque", node.inputs)
        return
    attrs: dict[str, Any] = {
        "mode": node.text("mode", "nearest"),
        "coordinate_transformation_mode": node.text("coordinate_transformation_mode", "half_pixel"),
        "nearest_mode": node.text("nearest_mode", "round_prefer_floor"),
        "antialias": node.integer("antialias", 0),
    }
    axes = node.integers("axes", None)
    if axes is not None:
        attrs["axes"] = axes
    # Exporters leave an operand out by giving an empty constant as well.
    operands = [_unless_empty(node.operand(slot)) for slot in range(4)]
    node.emit("Resize", operands, **attrs)


def _unless_empty(value: Value | None) -> Value | None:
    empty = value is not None and value.constant is not None and value.constant.size == 0
    return None if empty else value


@lower("GridSample")
def _grid_sample(node: Node) -> None:
    """Opset 20 renamed the modes of opset 16."""
    mode = node.text("mode", "linear")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    attrs: dict[str, Any] = {
        "padding_mode": node.text("padding_mode", "zeros"),
        "align_corners": node.integer("align_corners", 0),
    }
    node.emit("GridSample", [node.need(0), node.need(1)], mode=mode, **attrs)


_MAX_RANK = 64
"""Axes beyond it are no axes of any tensor."""


@lower("TensorScatter")
def _tensor_scatter(node: Node) -> None:
    """``present[b, ..., write_indices[b] + i, ...] = update[b, ..., i, ...]``, as a scatter of elements.

    The index tensor is the write index of each row plus 0, 1, ... along ``axis``, broadcast to the shape of ``update``.
    """
    cache, update, axis = node.need(0), node.need(1), node.integer("axis", -2)
    if not -_MAX_RANK <= axis < _MAX_RANK:
        raise node.fault(f"names axis {axis}")
    shape = node.compute("Shape", update, start=0)
    rank = node.compute("Shape", shape, start=0)
    length = node.dim(update, axis)
    steps = node.compute("Range", node.constant(0), length, node.constant(1))
    indices = node.compute("Reshape", steps, _along(node, rank, axis), zero_copies=True)
    if node.operand(2) is not None:
        first = node.compute("Reshape", node.operand(2), _along(node, rank, 0), zero_copies=True)
        indices = node.compute("Add", indices, node.compute("Cast", first, dtype=DType.I64))
    if node.text("mode", "linear") == "circular":
        indices = node.compute("Mod", indices, node.dim(cache, axis), fmod=0)
    indices = node.compute("Expand", indices, shape)
    node.emit("ScatterElements", [cache, indices, update], axis=axis, reduction="none")


def _along(node: Node, rank: Value, axis: int) -> Value:
    """The shape ``[1, ..., -1, ..., 1]`` of a tensor that lies along ``axis``; ``rank`` is its length (i64, [1])."""
    one = Tensor.of([1], DType.I64)
    if axis >= 0:
        before: Value = node.constant(np.ones(axis))
        after = node.compute("ConstantOfShape", node.compute("Sub", rank, node.constant([axis + 1])), value=one)
    else:
        before = node.compute("ConstantOfShape", node.compute("Add", rank, node.constant([axis])), value=one)
        after = node.constant(np.ones(-axis - 1))
    return node.compute("Concat", before, node.constant([-1]), after, axis=0)


@lower("Dropout", "BitmaskDropout", domain=MICROSOFT)
def _microsoft_dropout(node: Node) -> None:
    node.give(0, node.need(0))
