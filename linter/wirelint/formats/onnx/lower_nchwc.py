"""Lowerings of ONNX Runtime's blocked convolutions, which its optimiser writes into saved models at the level ``all``.

The layout [batch, channels / block, height, width, block] is the runtime's own affair: a file declares plain
[batch, channels, height, width], with channels rounded up to the block, and only ``ReorderOutput`` drops the excess
(operator schemas of the domain ``com.microsoft.nchwc`` in ONNX Runtime).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.formats.onnx.registry import AI_ONNX, MICROSOFT, NCHWC, find, lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node

__all__: list[str] = []


@lower("Conv", domain=NCHWC)
def _conv(node: Node) -> None:
    """As ``FusedConv``: a sum and an activation may be folded in."""
    _as(node, MICROSOFT, "FusedConv")


@lower("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", domain=NCHWC)
def _pool(node: Node) -> None:
    _as(node, AI_ONNX, node.op_type)


@lower("ReorderInput", domain=NCHWC)
def _reorder_input(node: Node) -> None:
    value = node.need(0)
    node.give(0, node.compute("Transpose", value, perm=(0, 3, 1, 2)) if node.integer("channels_last", 0) else value)


@lower("ReorderOutput", domain=NCHWC)
def _reorder_output(node: Node) -> None:
    bounds = (node.constant([0]), node.constant([node.integer("channels", 0)]), node.constant([1]))
    value = node.compute("Slice", node.need(0), *bounds)
    node.give(0, node.compute("Transpose", value, perm=(0, 2, 3, 1)) if node.integer("channels_last", 0) else value)


def _as(node: Node, domain: str, op_type: str) -> None:
    lowering = find(domain, op_type)
    if lowering is None:
        node.emit("Opaque", node.inputs)
    else:
        lowering(node)
