"""Lowerings of matrix products, activations and the fused operators that only chain them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.onnx.infer import infer_rank
from wirelint.formats.onnx.registry import AI_ONNX_ML, MICROSOFT, lower

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__ = ["activate", "add_bias", "conv_lists", "gemm", "scalar", "scaled"]


def scalar(node: Node, number: float, like: Value) -> Value:
    """``number`` as a scalar in the type of ``like``."""
    return node.constant(number, like.dtype if like.dtype is not DType.UNKNOWN else DType.F32)


def scaled(node: Node, value: Value, factor: float) -> Value:
    """``value * factor``; ``value`` itself when the factor is one."""
    return value if factor == 1.0 else node.compute("Mul", value, scalar(node, factor, value))


def add_bias(node: Node, value: Value, bias: Value | None) -> Value:
    """``value + bias``; ``value`` itself without a bias."""
    return value if bias is None else node.compute("Add", value, bias)


def gemm(node: Node, a: Value, b: Value, c: Value | None) -> Value:
    """``alpha * A' * B' + beta * C`` of shape [M, N], with the attributes that all Gemm variants share."""
    product = node.compute("MatMul", a, b, **_transposes(node))
    product = scaled(node, product, node.real("alpha", 1.0))
    beta = node.real("beta", 1.0)
    return product if c is None or beta == 0.0 else node.compute("Add", product, scaled(node, c, beta))


def _transposes(node: Node) -> dict[str, bool]:
    return {"transpose_a": bool(node.integer("transA", 0)), "transpose_b": bool(node.integer("transB", 0))}


@lower("Gemm")
def _gemm(node: Node) -> None:
    node.give(0, gemm(node, node.need(0), node.need(1), node.operand(2)))


@lower("SwiGLU")
def _swiglu(node: Node) -> None:
    """``swish(a) * b``."""
    gate = node.compute("Swish", node.need(0), beta=node.real("alpha", 1.0))
    node.give(0, node.compute("Mul", gate, node.need(1)))


def _centred(node: Node, codes: Value, zero_point: Value) -> Value:
    """Codes without their zero point, as int32."""
    wide, point = (node.compute("Cast", value, dtype=DType.I32) for value in (codes, zero_point))
    return node.compute("Sub", wide, point)


@lower("ConvInteger")
def _conv_integer(node: Node) -> None:
    """The data's zero point is taken off; a constant one of the weights, which no analysis reads, is dropped."""
    data, weight, zero_point, shift = node.need(0), node.need(1), node.operand(2), node.operand(3)
    if zero_point is not None:
        data = _centred(node, data, zero_point)
    if shift is not None and shift.constant is None:
        rank = infer_rank(weight)
        per_filter = infer_rank(shift) == 1 and rank is not None
        weight = _centred(
            node, weight, node.compute("Unsqueeze", shift, node.constant(list(range(1, rank or 1)))) if per_filter else shift
        )
    attrs = {"auto_pad": node.text("auto_pad", "NOTSET"), "group": node.integer("group", 1)}
    node.give(0, node.compute("Conv", data, weight, **attrs, **conv_lists(node)))
    node.outputs[0].dtype = DType.I32


def conv_lists(node: Node) -> dict[str, tuple[int, ...]]:
    """The list attributes of a convolution that are given."""
    names = ("kernel_shape", "strides", "pads", "dilations")
    return {name: node.integers(name, ()) for name in names if node.has(name)}


_GLOBAL_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}


@lower(*_GLOBAL_POOLS)
def _global_pool(node: Node) -> None:
    """A reduction over all axes after batch and channels."""
    data = node.need(0)
    node.emit(_GLOBAL_POOLS[node.op_type], [data, node.axes_from(data, 2)], keepdims=1, noop_with_empty_axes=1)


@lower("GlobalLpPool")
def _global_lp_pool(node: Node) -> None:
    kind = {1: "ReduceL1", 2: "ReduceL2"}.get(node.integer("p", 2))
    data = node.need(0)
    if kind is None:
        node.emit("Opaque", [data])
    else:
        node.emit(kind, [data, node.axes_from(data, 2)], keepdims=1, noop_with_empty_axes=1)


# -- activations that optimisers fuse into other operators ---------------------------------------------------------------

_PLAIN_ACTIVATIONS = frozenset(("Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish"))


def activate(node: Node, value: Value, name: str, parameters: Sequence[float]) -> Value | None:
    """``name(value)``, or None for an activation that is not known.

    Args:
        node: the node into which the activation was fused.
        value: what the node computes before it.
        name: operator name of the activation; empty for none.
        parameters: its attributes in the order of the operator's documentation.
    """
    if not name:
        return value
    if name in _PLAIN_ACTIVATIONS:
        return node.compute(name, value)
    given = [*parameters, None, None]
    first, second = given[0], given[1]
    if name == "LeakyRelu":
        return node.compute("LeakyRelu", value, alpha=0.01 if first is None else first)
    if name == "Elu":
        return node.compute("Elu", value, alpha=1.0 if first is None else first)
    if name == "HardSigmoid":
        return node.compute("HardSigmoid", value, alpha=0.2 if first is None else first, beta=0.5 if second is None else second)
    if name == "Clip":
        bounds = (None if bound is None else scalar(node, bound, value) for bound in (first, second))
        return node.compute("Clip", value, *bounds)
    if name == "Gelu":
        return node.compute("Gelu", value, approximate="none")
    return None


def _give_activated(node: Node, value: Value, parameters: Sequence[float]) -> None:
    activated = activate(node, value, node.text("activation", ""), parameters)
    if activated is None:
        node.emit("Opaque", [value])
    else:
        node.give(0, activated)


def _activation_attributes(node: Node) -> list[float]:
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return [node.real(name, 0.0) for name in names if node.has(name)]


# -- com.microsoft -------------------------------------------------------------------------------------------------------


@lower("FusedGemm", domain=MICROSOFT)
def _fused_gemm(node: Node) -> None:
    result = gemm(node, node.need(0), node.need(1), node.operand(2))
    _give_activated(node, result, _activation_attributes(node))


@lower("FusedConv", domain=MICROSOFT)
def _fused_conv(node: Node) -> None:
    """Conv, then ``+ Z``, then the activation."""
    attrs = {"auto_pad": node.text("auto_pad", "NOTSET"), "group": node.integer("group", 1)}
    result = node.compute("Conv", node.need(0), node.need(1), node.operand(2), **attrs, **conv_lists(node))
    _give_activated(node, add_bias(node, result, node.operand(3)), node.reals("activation_params", ()))


@lower("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def _fused_matmul(node: Node) -> None:
    """``activation(alpha * A' * B')``; ``transBatch`` moves the first axis behind the other batch axes first."""
    a, b = _batch_moved(node, 0, "transBatchA"), _batch_moved(node, 1, "transBatchB")
    if a is None or b is None:
        node.emit("Opaque", node.inputs)
        return
    product = scaled(node, node.compute("MatMul", a, b, **_transposes(node)), node.real("alpha", 1.0))
    _give_activated(node, product, _activation_attributes(node))


def _batch_moved(node: Node, slot: int, attribute: str) -> Value | None:
    """The operand with its first axis before the last one; None when its rank is not known."""
    value = node.need(slot)
    if not node.integer(attribute, 0):
        return value
    rank = infer_rank(value)
    if rank is None or rank < 2:
        return None
    return node.compute("Transpose", value, perm=(*range(1, rank - 1), 0, rank - 1))


@lower("BiasGelu", domain=MICROSOFT)
def _bias_gelu(node: Node) -> None:
    node.give(0, node.compute("Gelu", node.compute("Add", node.need(0), node.need(1)), approximate="none"))


@lower("FastGelu", domain=MICROSOFT)
def _fast_gelu(node: Node) -> None:
    node.give(0, node.compute("Gelu", add_bias(node, node.need(0), node.operand(1)), approximate="tanh"))


@lower("GemmFastGelu", domain=MICROSOFT)
def _gemm_fast_gelu(node: Node) -> None:
    product = node.compute("MatMul", node.need(0), node.need(1))
    node.give(0, node.compute("Gelu", add_bias(node, product, node.operand(2)), approximate="tanh"))


@lower("BiasSplitGelu", domain=MICROSOFT)
def _bias_split_gelu(node: Node) -> None:
    """The biased input's last axis in halves: ``first * gelu(second)``."""
    total = node.compute("Add", node.need(0), node.need(1))
    first, second = node.compute_many("Split", 2, total, axis=-1)
    node.give(0, node.compute("Mul", first, node.compute("Gelu", second, approximate="none")))


@lower("BiasAdd", domain=MICROSOFT)
def _bias_add(node: Node) -> None:
    node.give(0, add_bias(node, node.compute("Add", node.need(0), node.need(1)), node.operand(2)))


@lower("BiasDropout", "BitmaskBiasDropout", domain=MICROSOFT)
def _bias_dropout(node: Node) -> None:
    """Inference: ``data + bias + residual``."""
    node.give(0, add_bias(node, node.compute("Add", node.need(0), node.need(1)), node.operand(2)))


@lower("BiasSoftmax", domain=MICROSOFT)
def _bias_softmax(node: Node) -> None:
    """``softmax(data + bias)``; the axis and all that follow are one, as in opset 12."""
    total = node.compute("Add", node.need(0), node.need(1))
    node.give(0, node.compute("Softmax", total, axis=node.integer("axis", 1), coerce_2d=True))


# -- ai.onnx.ml ----------------------------------------------------------------------------------------------------------


@lower("Scaler", domain=AI_ONNX_ML)
def _scaler(node: Node) -> None:
    """``(x - offset) * scale``, always in f32."""
    data = node.compute("Cast", node.need(0), dtype=DType.F32)
    shifted = node.compute("Sub", data, node.constant(node.reals("offset", (0.0,)), DType.F32))
    node.give(0, node.compute("Mul", shifted, node.constant(node.reals("scale", (1.0,)), DType.F32)))


@lower("ArrayFeatureExtractor", domain=AI_ONNX_ML)
def _array_feature_extractor(node: Node) -> None:
    """Picks features along the last axis."""
    node.emit("Gather", [node.need(0), node.need(1)], axis=-1)
