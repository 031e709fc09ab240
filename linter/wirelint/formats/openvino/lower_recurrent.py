"""Recurrent sequences and cells, and state between calls.

OpenVINO orders the gates otherwise than ONNX (LSTM: f, i, c, o; GRU: z, r, h) and adds the two biases up; weights are
handed on as they are, because no analysis looks into the gates.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirelint.formats.openvino.site import Lowering, Site

__all__ = ["LOWERINGS"]


def _sequence(kind: str, site: Site) -> None:
    """Operands: x, initial states, sequence lengths, w, r, b; x is [batch, sequence, size].

    The first result is [batch, directions, sequence, size]; the canonical one, of layout 1, has the sequence before the
    directions.
    """
    states = 2 if kind == "LSTM" else 1
    initial = [site.operand(1 + index) for index in range(states)]
    lengths, w, r, b = (site.operand(1 + states + index) for index in range(4))
    y = site.temporary(site.output().dtype)
    finals = [site.output(1 + index) for index in range(states)]
    attrs = {"direction": site.text("direction", "forward"), "hidden_size": site.integer("hidden_size"), "layout": 1}
    site.emit(kind, [site.operand(0), w, r, b, lengths, *initial], [y, *finals], **attrs)
    site.emit("Transpose", [y], [site.output()], perm=[0, 2, 1, 3])


def _cell(kind: str, site: Site) -> None:
    count = 2 if kind == "LSTMCell" else 1
    operands = [site.operand(index) for index in range(3 + count)]
    outputs = [site.output(index) for index in range(count)]
    site.emit(kind, [*operands, site.optional(3 + count)], outputs, hidden_size=site.integer("hidden_size"))


def _variable(site: Site) -> str:
    site.text("variable_id")
    return site.layer.data["variable_id"]


def _read_value(site: Site) -> None:
    site.emit("ReadValue", [site.optional(0)], [site.output()], variable=_variable(site))


def _assign(site: Site) -> None:
    site.emit("Assign", [site.operand(0)], site.outputs, variable=_variable(site))


LOWERINGS: dict[str, Lowering] = {
    "lstmsequence": partial(_sequence, "LSTM"),
    "grusequence": partial(_sequence, "GRU"),
    "rnnsequence": partial(_sequence, "RNN"),
    "lstmcell": partial(_cell, "LSTMCell"),
    "grucell": partial(_cell, "GRUCell"),
    "rnncell": partial(_cell, "RNNCell"),
    "readvalue": _read_value,
    "assign": _assign,
}
