"""Writes an OpenVINO IR of a BERT whose ``.bin`` is one hole, of any size, without OpenVINO."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from xml.sax.saxutils import quoteattr

__all__ = ["save_ir"]

_PRECISION = {"f32": "FP32", "i64": "I64"}
_Port = tuple[int, int, tuple[int, ...], str]
"""Layer, port, dims and element type of an output."""


class _Ir:
    """Layers, edges and constants under construction; every method returns an output port."""

    def __init__(self) -> None:
        self._layers: list[str] = []
        self._edges: list[str] = []
        self.small = bytearray()
        self.offset = 4096
        """Where the next weight goes; small constants come before."""

    def layer(
        self, kind: str, inputs: list[_Port], dims: tuple[int, ...], dtype: str, *, opset: str = "opset1", **data: object
    ) -> _Port:
        number = len(self._layers)
        attributes = "".join(f" {name}={quoteattr(str(value))}" for name, value in data.items())
        text = f'<layer id="{number}" name="{kind}_{number}" type="{kind}" version="{opset}">'
        text += f"<data{attributes}/>" if attributes else ""
        for port, entry in enumerate(inputs):
            self._edges.append(f'<edge from-layer="{entry[0]}" from-port="{entry[1]}" to-layer="{number}" to-port="{port}"/>')
        ports = [_port(port, entry[3], entry[2]) for port, entry in enumerate(inputs)]
        text += f"<input>{''.join(ports)}</input>" if ports else ""
        text += f"<output>{_port(len(inputs), dtype, dims)}</output></layer>"
        self._layers.append(text)
        return number, len(inputs), dims, dtype

    def parameter(self, name: str) -> _Port:
        number = len(self._layers)
        self._layers.append(
            f'<layer id="{number}" name="{name}" type="Parameter" version="opset1"><data shape="?,?" element_type="i64"/>'
            f'<output><port id="0" precision="I64" names="{name}"><dim>-1</dim><dim>-1</dim></port></output></layer>'
        )
        return number, 0, (-1, -1), "i64"

    def result(self, value: _Port) -> None:
        number = len(self._layers)
        self._edges.append(f'<edge from-layer="{value[0]}" from-port="{value[1]}" to-layer="{number}" to-port="0"/>')
        port = _port(0, value[3], value[2])
        self._layers.append(f'<layer id="{number}" name="result" type="Result" version="opset1"><input>{port}</input></layer>')

    def _const(self, offset: int, size: int, dims: tuple[int, ...], dtype: str) -> _Port:
        shape = ",".join(map(str, dims))
        return self.layer("Const", [], dims, dtype, element_type=dtype, shape=shape, offset=offset, size=size)

    def ints(self, *numbers: int) -> _Port:
        offset = len(self.small)
        self.small += struct.pack(f"<{len(numbers)}q", *numbers)
        return self._const(offset, 8 * len(numbers), (len(numbers),), "i64")

    def number(self, value: float) -> _Port:
        offset = len(self.small)
        self.small += struct.pack("<ff", value, 0.0)  # padded, so that integers stay aligned
        return self._const(offset, 4, (1,), "f32")

    def weight(self, *dims: int) -> _Port:
        offset = self.offset
        self.offset += 4 * math.prod(dims)
        return self._const(offset, 4 * math.prod(dims), dims, "f32")

    def save(self, path: Path) -> None:
        path.write_text(
            f'<?xml version="1.0"?>\n<net name="main_graph" version="11">\n<layers>\n{chr(10).join(self._layers)}\n</layers>\n'
            f"<edges>\n{chr(10).join(self._edges)}\n</edges>\n<rt_info/>\n</net>\n",
            encoding="utf-8",
        )
        weights = path.with_suffix(".bin")
        weights.write_bytes(bytes(self.small))
        os.truncate(weights, self.offset)


def _port(number: int, dtype: str, dims: tuple[int, ...]) -> str:
    return f'<port id="{number}" precision="{_PRECISION[dtype]}">{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'


def save_ir(path: Path, hidden: int, layers: int, heads: int, vocabulary: int) -> None:
    """Saves a BERT encoder; ``path`` is the ``.xml``."""
    made = _Ir()
    wide = (-1, -1, hidden)

    def two(kind: str, first: _Port, second: _Port, dims: tuple[int, ...] | None = None) -> _Port:
        return made.layer(kind, [first, second], first[2] if dims is None else dims, "f32", auto_broadcast="numpy")

    def linear(value: _Port, inside: int, outside: int) -> _Port:
        dims = (-1, -1, outside)
        product = made.layer(
            "MatMul", [value, made.weight(outside, inside)], dims, "f32", transpose_a="false", transpose_b="true"
        )
        return two("Add", product, made.weight(1, 1, outside))

    def split(value: _Port) -> _Port:
        dims = (-1, -1, heads, hidden // heads)
        apart = made.layer("Reshape", [value, made.ints(0, 0, *dims[2:])], dims, "f32", special_zero="true")
        return made.layer("Transpose", [apart, made.ints(0, 2, 1, 3)], (-1, heads, -1, hidden // heads), "f32")

    def norm(value: _Port) -> _Port:
        centred = made.layer(
            "MVN",
            [value, made.ints(-1)],
            wide,
            "f32",
            opset="opset6",
            eps=1e-12,
            normalize_variance="true",
            eps_mode="INSIDE_SQRT",
        )
        return two("Add", two("Multiply", centred, made.weight(1, 1, hidden)), made.weight(1, 1, hidden))

    ids, mask = made.parameter("input_ids"), made.parameter("attention_mask")
    zero = made.ints(0)
    hidden_states = made.layer(
        "Gather", [made.weight(vocabulary, hidden), ids, zero], wide, "f32", opset="opset8", batch_dims=0
    )
    bias = made.layer("Unsqueeze", [mask, made.ints(1, 2)], (-1, 1, 1, -1), "i64")
    bias = made.layer("Convert", [bias], (-1, 1, 1, -1), "f32", destination_type="f32")
    bias = two("Multiply", two("Subtract", made.number(1.0), bias, bias[2]), made.number(-3.4028234663852886e38))
    hidden_states = norm(hidden_states)
    for _ in range(layers):
        query, key, value = (split(linear(hidden_states, hidden, hidden)) for _ in range(3))
        scores = made.layer("MatMul", [query, key], (-1, heads, -1, -1), "f32", transpose_a="false", transpose_b="true")
        scores = two("Add", two("Divide", scores, made.number((hidden // heads) ** 0.5)), bias)
        weights = made.layer("SoftMax", [scores], scores[2], "f32", opset="opset8", axis=-1)
        context = made.layer("MatMul", [weights, value], value[2], "f32", transpose_a="false", transpose_b="false")
        context = made.layer("Transpose", [context, made.ints(0, 2, 1, 3)], (-1, -1, heads, hidden // heads), "f32")
        context = made.layer("Reshape", [context, made.ints(0, 0, hidden)], wide, "f32", special_zero="true")
        hidden_states = norm(two("Add", linear(context, hidden, hidden), hidden_states))
        grown = made.layer(
            "Gelu",
            [linear(hidden_states, hidden, 4 * hidden)],
            (-1, -1, 4 * hidden),
            "f32",
            opset="opset7",
            approximation_mode="ERF",
        )
        hidden_states = norm(two("Add", linear(grown, 4 * hidden, hidden), hidden_states))
    made.result(hidden_states)
    made.save(path)
