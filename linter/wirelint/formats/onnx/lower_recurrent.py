"""Lowerings of recurrent operators.

Activations, clipping and peepholes change numbers only, not what depends on what; the canonical form leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirelint.formats.onnx.registry import lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__ = ["recurrent_attributes"]

_OPERANDS = {"LSTM": 7, "GRU": 6, "RNN": 6}


@lower(*_OPERANDS)
def _recurrent(node: Node) -> None:
    node.need(0)
    node.emit(node.op_type, node.inputs[: _OPERANDS[node.op_type]], **recurrent_attributes(node, node.need(2)))


def recurrent_attributes(node: Node, recurrence: Value) -> dict[str, Any]:
    """``direction``, ``layout`` and ``hidden_size``, which the recurrence weights [directions, gates * size, size] settle."""
    attrs: dict[str, Any] = {"direction": node.text("direction", "forward"), "layout": node.integer("layout", 0)}
    declared = recurrence.shape[-1] if recurrence.shape else None
    size = node.integer("hidden_size", declared if isinstance(declared, int) else None)
    if size is not None:
        attrs["hidden_size"] = size
    return attrs
