"""Lowerings of normalisations and softmax, and of the embedding layer that ends in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.onnx.infer import infer_rank
from wirelint.formats.onnx.lower_math import add_bias, scalar
from wirelint.formats.onnx.registry import MICROSOFT, lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__ = ["embed"]


@lower("LayerNormalization")
@lower("LayerNormalization", domain=MICROSOFT)
def _layer_normalization(node: Node) -> None:
    data, axis, epsilon = node.need(0), node.integer("axis", -1), node.real("epsilon", 1e-5)
    node.give(0, node.compute("LayerNormalization", data, node.operand(1), node.operand(2), axis=axis, epsilon=epsilon))
    _give_statistics(node, data, axis, epsilon)


def _give_statistics(node: Node, data: Value, axis: int, epsilon: float) -> None:
    """The results 1 and 2 of a layer normalisation, mean and inverse deviation, where the file names them."""
    if not (node.wants(1) or node.wants(2)):
        return
    axes = node.axes_from(data, axis)
    mean = node.compute("ReduceMean", data, axes, keepdims=1, noop_with_empty_axes=0)
    if node.wants(1):
        mean = node.give(1, mean)
    if node.wants(2):
        centred = node.compute("Sub", data, mean)
        variance = node.compute("ReduceMean", node.compute("Mul", centred, centred), axes, keepdims=1, noop_with_empty_axes=0)
        deviation = node.compute("Sqrt", node.compute("Add", variance, scalar(node, epsilon, data)))
        node.give(2, node.compute("Reciprocal", deviation))


@lower("SimplifiedLayerNormalization")
@lower("SimplifiedLayerNormalization", domain=MICROSOFT)
def _simplified_layer_normalization(node: Node) -> None:
    attrs = {"axis": node.integer("axis", -1), "epsilon": node.real("epsilon", 1e-5)}
    node.give(0, node.compute("RMSNormalization", node.need(0), node.operand(1), **attrs))


@lower("SkipLayerNormalization", domain=MICROSOFT)
def _skip_layer_normalization(node: Node) -> None:
    """``layer_norm(input + skip + bias)``; result 3 is the sum."""
    total = _skip_sum(node, node.operand(4))
    epsilon = node.real("epsilon", 1e-12)
    node.give(0, node.compute("LayerNormalization", total, node.operand(2), node.operand(3), axis=-1, epsilon=epsilon))
    _give_statistics(node, total, -1, epsilon)


@lower("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_simplified_layer_normalization(node: Node) -> None:
    """``rms_norm(input + skip + bias)``; result 3 is the sum."""
    total = _skip_sum(node, node.operand(3))
    node.give(0, node.compute("RMSNormalization", total, node.operand(2), axis=-1, epsilon=node.real("epsilon", 1e-12)))


def _skip_sum(node: Node, bias: Value | None) -> Value:
    total = add_bias(node, node.compute("Add", node.need(0), node.need(1)), bias)
    return node.give(3, total) if node.wants(3) else total


@lower("EmbedLayerNormalization", domain=MICROSOFT)
def _embed_layer_normalization(node: Node) -> None:
    tables = (node.need(2), node.need(3), node.operand(4))
    embed(node, tables, (node.operand(5), node.operand(6)), node.operand(8))


def embed(
    node: Node, tables: tuple[Value, Value, Value | None], affine: tuple[Value | None, Value | None], positions: Value | None
) -> None:
    """The embedding layer of BERT: ids and segments in operands 0 and 1, the mask in operand 7.

    Results: the normalised sum [batch, sequence, size], the number of kept positions per row (i32, [batch]) and the sum.

    Args:
        node: the node to lower.
        tables: word, position and segment embeddings, the last one optional.
        affine: scale and bias of the normalisation.
        positions: position ids; 0, 1, ... when absent.
    """
    ids, segments = node.need(0), node.operand(1)
    words, position_table, segment_table = tables
    if positions is None:
        positions = node.compute("Range", node.constant(0), node.dim(ids, 1), node.constant(1))
    total = node.compute("Gather", words, ids, axis=0)
    total = node.compute("Add", total, node.compute("Gather", position_table, positions, axis=0))
    if segments is not None and segment_table is not None:
        total = node.compute("Add", total, node.compute("Gather", segment_table, segments, axis=0))
    if node.wants(2):
        total = node.give(2, total)
    scale, bias = affine
    epsilon = node.real("epsilon", 1e-12)
    node.give(0, node.compute("LayerNormalization", total, scale, bias, axis=-1, epsilon=epsilon))
    if len(node.outputs) > 1:
        node.give(1, _kept_positions(node, ids, node.operand(7)))


def _kept_positions(node: Node, ids: Value, mask: Value | None) -> Value:
    """How many positions of each row the mask keeps; zeros without a mask, as ONNX Runtime has it."""
    if mask is None:
        return node.compute("Expand", node.constant(0, DType.I32), node.dim_vector(ids, 0))
    counted = node.compute("ReduceSum", mask, node.constant([1]), keepdims=0, noop_with_empty_axes=0)
    return node.compute("Cast", counted, dtype=DType.I32)


@lower("MeanVarianceNormalization")
def _mean_variance_normalization(node: Node) -> None:
    axes = node.constant(list(node.integers("axes", (0, 2, 3))))
    node.emit("MeanVarianceNormalization", [node.need(0), axes], epsilon=1e-9, variance=1)


@lower("LpNormalization")
def _lp_normalization(node: Node) -> None:
    axes = node.constant([node.integer("axis", -1)])
    node.emit("LpNormalization", [node.need(0), axes], p=node.integer("p", 2))


@lower("BatchNormalization")
def _batch_normalization(node: Node) -> None:
    """Inference; of the results for training the running statistics pass unchanged.

    In training mode the statistics are those of the whole batch, so every row hears every other.
    """
    operands = [node.need(slot) for slot in range(5)]
    if node.integer("training_mode", 0):
        _training_batch_norm(node, *operands)
        return
    node.give(0, node.compute("BatchNormalization", *operands, epsilon=node.real("epsilon", 1e-5)))
    for slot in (1, 2):
        if node.wants(slot):
            node.give(slot, operands[slot + 2])


def _training_batch_norm(node: Node, data: Value, scale: Value, bias: Value, *running: Value) -> None:
    rank = infer_rank(data)
    if rank is None or rank < 2:
        node.emit("Opaque", node.inputs)
        return
    others = [axis for axis in range(rank) if axis != 1]
    axes = node.constant(others)
    scale, bias = (node.compute("Unsqueeze", value, node.constant(list(range(1, rank - 1)))) for value in (scale, bias))
    settled = node.compute("MeanVarianceNormalization", data, axes, epsilon=node.real("epsilon", 1e-5), variance=1)
    node.give(0, node.compute("Add", node.compute("Mul", settled, scale), bias))
    momentum = node.constant(node.real("momentum", 0.9), DType.F32)
    rest = node.constant(1 - node.real("momentum", 0.9), DType.F32)
    mean = node.compute("ReduceMean", data, axes, keepdims=0)
    spread = node.compute("SquaredDifference", data, node.compute("ReduceMean", data, axes, keepdims=1))
    variance = node.compute("ReduceMean", spread, axes, keepdims=0)
    for slot, (old, new) in enumerate(zip(running, (mean, variance), strict=True), start=1):
        if node.wants(slot):
            kept, added = node.compute("Mul", old, momentum), node.compute("Mul", new, rest)
            node.give(slot, node.compute("Add", kept, added))


@lower("GroupNormalization")
def _group_normalization(node: Node) -> None:
    """Opset 18 has scale and bias for each group, opset 21 for each channel."""
    data, scale, bias = (node.need(slot) for slot in range(3))
    groups = node.integer("num_groups", 1)
    if node.version < 21:
        per_group = node.compute("Div", node.dim_vector(data, 1), node.constant([groups]))
        shape = node.compute("Concat", node.constant([groups]), per_group, axis=0)
        scale, bias = (_repeated(node, value, shape) for value in (scale, bias))
    node.emit("GroupNormalization", [data, scale, bias], num_groups=groups, epsilon=node.real("epsilon", 1e-5))


def _repeated(node: Node, value: Value, shape: Value) -> Value:
    column = node.compute("Unsqueeze", value, node.constant([1]))
    return node.compute("Reshape", node.compute("Expand", column, shape), node.constant([-1]), zero_copies=True)


@lower("GroupNorm", domain=MICROSOFT)
def _microsoft_group_norm(node: Node) -> None:
    """Images with channels last by default, and optionally ``x * sigmoid(x)`` on the result."""
    data, scale, bias = (node.need(slot) for slot in range(3))
    last = node.integer("channels_last", 1)
    data = node.compute("Transpose", data, perm=(0, 3, 1, 2)) if last else data
    attrs = {"num_groups": node.integer("groups", 1), "epsilon": node.real("epsilon", 1e-5)}
    result = node.compute("GroupNormalization", data, scale, bias, **attrs)
    result = node.compute("Transpose", result, perm=(0, 2, 3, 1)) if last else result
    node.give(0, node.compute("Swish", result, beta=1.0) if node.integer("activation", 0) else result)


@lower("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: Node) -> None:
    """Before opset 13 the axis and all that follow are one, and the default axis is 1 instead of -1."""
    data = node.need(0)
    axis = node.integer("axis", 1 if node.version < 13 else -1)
    rank = infer_rank(data)
    coerce = node.version < 13 and axis != -1 and (rank is None or axis != rank - 1)
    node.emit(node.op_type, [data], axis=axis, coerce_2d=coerce)
