"""Lowerings of quantised operators: dequantise, compute in real numbers, quantise again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from wirelint.dtypes import DType
from wirelint.formats.onnx.dtypes import BY_NUMBER
from wirelint.formats.onnx.infer import infer_rank
from wirelint.formats.onnx.lower_attention import fused_attention
from wirelint.formats.onnx.lower_math import add_bias, conv_lists, scaled
from wirelint.formats.onnx.lower_norm import embed
from wirelint.formats.onnx.lower_recurrent import recurrent_attributes
from wirelint.formats.onnx.registry import MICROSOFT, lower
from wirelint.graph import Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.formats.onnx.context import Node

__all__: list[str] = []


def _dequantised(node: Node, x: Value, scale: Value, zero_point: Value | None, axis: int = -1) -> Value:
    """The real numbers that ``x`` stands for; a scale with one element holds for all of them."""
    return node.compute("DequantizeLinear", x, scale, zero_point, axis=axis, block_size=0, dtype=_real_type(scale))


def _real_type(scale: Value) -> DType:
    return scale.dtype if scale.dtype.is_float else DType.F32


def _give_quantised(node: Node, result: Value, scale: Value | None, zero_point: Value | None) -> None:
    """The node's result, quantised to the type of ``zero_point``; without a scale the real numbers are the result."""
    if scale is None:
        node.give(0, result)
        return
    declared = node.outputs[0].dtype if node.outputs else DType.UNKNOWN
    dtype = zero_point.dtype if zero_point is not None else declared if declared is not DType.UNKNOWN else DType.U8
    node.give(0, node.compute("QuantizeLinear", result, scale, zero_point, axis=-1, block_size=0, dtype=dtype))


def _operand_dequantised(node: Node, slot: int, axis: int = -1) -> Value:
    """Operands ``slot`` to ``slot + 2``: elements, scale, zero point."""
    return _dequantised(node, node.need(slot), node.need(slot + 1), node.operand(slot + 2), axis)


@lower("QuantizeLinear")
@lower("QuantizeLinear", domain=MICROSOFT)
def _quantize_linear(node: Node) -> None:
    zero_point = node.operand(2)
    dtype = zero_point.dtype if zero_point is not None else DType.U8
    attrs: dict[str, Any] = {"axis": node.integer("axis", 1), "block_size": node.integer("block_size", 0)}
    node.emit("QuantizeLinear", node.inputs[:3], dtype=BY_NUMBER.get(node.integer("output_dtype", 0), dtype), **attrs)


@lower("DequantizeLinear")
@lower("DequantizeLinear", domain=MICROSOFT)
def _dequantize_linear(node: Node) -> None:
    dtype = BY_NUMBER.get(node.integer("output_dtype", 0), _real_type(node.need(1)))
    attrs: dict[str, Any] = {"axis": node.integer("axis", 1), "block_size": node.integer("block_size", 0)}
    node.emit("DequantizeLinear", node.inputs[:3], dtype=dtype, **attrs)


@lower("QLinearMatMul")
def _qlinear_matmul(node: Node) -> None:
    """Scales of the first factor are per row, those of the second per column."""
    product = node.compute("MatMul", _operand_dequantised(node, 0, -2), _operand_dequantised(node, 3))
    _give_quantised(node, product, node.need(6), node.operand(7))


@lower("QLinearConv")
@lower("QLinearConv", domain=MICROSOFT)
def _qlinear_conv(node: Node) -> None:
    """Weights are scaled per output channel; the bias by the product of both scales."""
    if node.integer("channels_last", 0):
        node.emit("Opaque", node.inputs)
        return
    x, w, bias = _operand_dequantised(node, 0), _operand_dequantised(node, 3, 0), node.operand(8)
    if bias is not None:
        bias = _dequantised(node, bias, node.compute("Mul", node.need(1), node.need(4)), None, 0)
    attrs = {"auto_pad": node.text("auto_pad", "NOTSET"), "group": node.integer("group", 1)}
    _give_quantised(node, node.compute("Conv", x, w, bias, **attrs, **conv_lists(node)), node.need(6), node.operand(7))


@lower("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def _qlinear_binary(node: Node) -> None:
    kind = node.op_type.removeprefix("QLinear")
    result = node.compute(kind, _operand_dequantised(node, 0), _operand_dequantised(node, 3))
    _give_quantised(node, result, node.need(6), node.operand(7))


@lower(
    "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearReduceMean", "QLinearGlobalAveragePool", domain=MICROSOFT
)
def _qlinear_unary(node: Node) -> None:
    x = _operand_dequantised(node, 0)
    if node.op_type == "QLinearSigmoid":
        result = node.compute("Sigmoid", x)
    elif node.op_type == "QLinearLeakyRelu":
        result = node.compute("LeakyRelu", x, alpha=node.real("alpha", 0.01))
    elif node.op_type == "QLinearSoftmax":
        axis, rank = node.integer("axis", -1), infer_rank(node.need(0))
        coerce = node.integer("opset", 13) < 13 and axis != -1 and (rank is None or axis != rank - 1)
        result = node.compute("Softmax", x, axis=axis, coerce_2d=coerce)
    elif node.op_type == "QLinearReduceMean":
        axes = node.integers("axes", None)
        over = None if axes is None else node.constant(list(axes))
        result = node.compute("ReduceMean", x, over, keepdims=node.integer("keepdims", 1), noop_with_empty_axes=0)
    else:
        axes_value = _spatial_axes(node, x)
        result = node.compute("ReduceMean", x, axes_value, keepdims=1, noop_with_empty_axes=1)
    _give_quantised(node, result, node.need(3), node.operand(4))


def _spatial_axes(node: Node, x: Value) -> Value:
    """All axes but those of batch and channels."""
    return node.axes_from(x, 2) if not node.integer("channels_last", 0) else node.constant([1, 2])


@lower("QLinearConcat", domain=MICROSOFT)
def _qlinear_concat(node: Node) -> None:
    """Operands: scale and zero point of the result, then elements, scale and zero point of each part."""
    parts = [_operand_dequantised(node, slot) for slot in range(2, len(node.inputs), 3)]
    _give_quantised(node, node.compute("Concat", *parts, axis=node.integer("axis", 0)), node.need(0), node.operand(1))


@lower("QLinearWhere", domain=MICROSOFT)
def _qlinear_where(node: Node) -> None:
    picked = node.compute("Where", node.need(0), _operand_dequantised(node, 1), _operand_dequantised(node, 4))
    _give_quantised(node, picked, node.need(7), node.operand(8))


@lower("QGemm", domain=MICROSOFT)
def _qgemm(node: Node) -> None:
    """C is i32 with the product of both scales times alpha as its scale; without a result scale the result is real."""
    transpose_b = bool(node.integer("transB", 0))
    a, b = _operand_dequantised(node, 0), _operand_dequantised(node, 3, 0 if transpose_b else -1)
    product = node.compute("MatMul", a, b, transpose_a=bool(node.integer("transA", 0)), transpose_b=transpose_b)
    alpha = node.real("alpha", 1.0)
    result, addend = scaled(node, product, alpha), node.operand(6)
    if addend is not None:
        scale = scaled(node, node.compute("Mul", node.need(1), node.need(4)), alpha)
        result = node.compute("Add", result, _dequantised(node, addend, scale, None))
    _give_quantised(node, result, node.operand(7), node.operand(8))


@lower("MatMulIntegerToFloat", domain=MICROSOFT)
def _matmul_integer_to_float(node: Node) -> None:
    """Operands: a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias."""
    a = _dequantised(node, node.need(0), node.need(2), node.operand(4))
    b = _dequantised(node, node.need(1), node.need(3), node.operand(5))
    node.give(0, add_bias(node, node.compute("MatMul", a, b), node.operand(6)))


@lower("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_quantize_matmul(node: Node) -> None:
    """The first factor is quantised by its own range on the way; operands: a, b, b_scale, b_zero_point, bias."""
    b = _dequantised(node, node.need(1), node.need(2), node.operand(3))
    product = node.compute("MatMul", _dynamically_quantised(node, node.need(0)), b)
    node.give(0, add_bias(node, product, node.operand(4)))


def _dynamically_quantised(node: Node, x: Value) -> Value:
    """``x`` as it is after quantisation by its own range and back."""
    elements, scale, zero_point = node.compute_many("DynamicQuantizeLinear", 3, x)
    return _dequantised(node, elements, scale, zero_point)


@lower("DynamicQuantizeLSTM", domain=MICROSOFT)
def _dynamic_quantize_lstm(node: Node) -> None:
    """Weights are [directions, size, 4 * hidden], the last two axes swapped against LSTM."""
    w, r = (_lstm_weight(node, slot, scale) for slot, scale in ((1, 8), (2, 10)))
    operands = [_dynamically_quantised(node, node.need(0)), w, r, *(node.operand(slot) for slot in range(3, 7))]
    node.emit("LSTM", operands, **recurrent_attributes(node, r))


def _lstm_weight(node: Node, slot: int, scale_slot: int) -> Value:
    """Scales are [directions] or [directions, 4 * hidden]; both are spread over the weights by broadcasting."""
    weight, scale, zero_point = node.need(slot), node.need(scale_slot), node.operand(scale_slot + 1)
    real = node.compute("Cast", weight, dtype=_real_type(scale))
    per_channel = infer_rank(scale) == 2
    axes = node.constant([1] if per_channel else [1, 2])
    if zero_point is not None:
        shift = node.compute("Cast", zero_point, dtype=_real_type(scale))
        real = node.compute("Sub", real, node.compute("Unsqueeze", shift, axes))
    real = node.compute("Mul", real, node.compute("Unsqueeze", scale, axes))
    return node.compute("Transpose", real, perm=(0, 2, 1))


@lower("QAttention", domain=MICROSOFT)
def _qattention(node: Node) -> None:
    """Operands: input, weight, bias, input_scale, weight_scale, mask_index, input and weight zero points, past."""
    data = _dequantised(node, node.need(0), node.need(3), node.operand(6))
    weight = _dequantised(node, node.need(1), node.need(4), node.operand(7))
    fused_attention(node, data, weight, node.operand(2), mask=node.operand(5), past=node.operand(8))


@lower("QEmbedLayerNormalization", domain=MICROSOFT)
def _qembed_layer_normalization(node: Node) -> None:
    """Operands 2 to 6 are the quantised tables, scale and bias; their scales begin at 8, their zero points at 13."""
    words, positions, scale, bias = (
        _dequantised(node, node.need(2 + at), node.need(8 + at), node.operand(13 + at)) for at in (0, 1, 3, 4)
    )
    table = node.operand(4)
    segments = None if table is None else _dequantised(node, table, node.need(10), node.operand(15))
    embed(node, (words, positions, segments), (scale, bias), None)


# -- weights in packed low-bit blocks ------------------------------------------------------------------------------------


@lower("MatMulNBits", "MatMulBnb4", domain=MICROSOFT)
def _matmul_nbits(node: Node) -> None:
    """A product with a constant matrix of K x N; which numbers the packed blocks hold matters to no analysis."""
    data, packed = node.need(0), node.need(1)
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    if packed.constant is None or rows <= 0 or columns <= 0:
        node.emit("Opaque", node.inputs)
        return
    if not node.integer("transB", 1):
        rows, columns = columns, rows
    weight = _unpacked(node, packed, (rows, columns), data.dtype)
    bias = node.operand(5) if node.op_type == "MatMulNBits" else None
    node.give(0, add_bias(node, node.compute("MatMul", data, weight), bias))


@lower("GatherBlockQuantized", domain=MICROSOFT)
def _gather_block_quantized(node: Node) -> None:
    """A lookup in a constant table; bytes hold ``8 / bits`` elements each along the last axis."""
    table, indices, scales = node.need(0), node.need(1), node.need(2)
    if table.constant is None:
        node.emit("Opaque", node.inputs)
        return
    shape = table.constant.shape
    bits = node.integer("bits", 4)
    if table.dtype is DType.U8 and 0 < bits < 8 and shape:
        shape = (*shape[:-1], shape[-1] * (8 // bits))
    node.emit("Gather", [_unpacked(node, table, shape, scales.dtype), indices], axis=node.integer("gather_axis", 0))


def _unpacked(node: Node, packed: Value, shape: Sequence[int], dtype: DType) -> Value:
    """A constant that knows its type and shape only."""

    def fetch() -> NoReturn:
        raise ValueError("packed low-bit weights are not decoded")

    real = dtype if dtype.is_float else DType.F32
    return node.constant_tensor(Tensor(real, tuple(shape), fetch, available=False), packed.name)
