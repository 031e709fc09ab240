"""Writes ONNX models whose weights are holes in the file: of any size, in no time, on next to no disk."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto, helper

__all__ = ["Weight", "save_external", "save_inline"]

_WIDTH = {TensorProto.FLOAT: 4, TensorProto.FLOAT16: 2, TensorProto.INT8: 1}
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""Fields of ModelProto, GraphProto and TensorProto."""


@dataclass(frozen=True)
class Weight:
    """An initializer of zeros that are never written."""

    name: str
    shape: tuple[int, ...]
    dtype: int = TensorProto.FLOAT

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * _WIDTH[self.dtype]

    def declared(self) -> TensorProto:
        """The tensor without its elements."""
        return TensorProto(name=self.name, dims=self.shape, data_type=self.dtype)


def save_external(graph: onnx.GraphProto, weights: list[Weight], path: Path, **model: object) -> None:
    """Saves a model with its weights in one sparse file beside it."""
    offset = 0
    for weight in weights:
        tensor = weight.declared()
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", f"{path.name}.data"), ("offset", offset), ("length", weight.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        graph.initializer.append(tensor)
        offset += weight.nbytes
    path.write_bytes(_model(graph, **model).SerializeToString())
    data = path.with_name(f"{path.name}.data")
    data.touch()
    os.truncate(data, offset)


def save_inline(graph: onnx.GraphProto, weights: list[Weight], path: Path, **model: object) -> None:
    """Saves a model as one file whose ``raw_data`` fields are holes.

    Protobuf can't write holes, so the messages around them are put together here: a field may be given in pieces, and the
    pieces of a message are merged.
    """
    body = graph.SerializeToString()
    heads = []
    for weight in weights:
        head = weight.declared().SerializeToString() + _tag(_RAW_DATA) + _varint(weight.nbytes)
        heads.append(_tag(_INITIALIZER) + _varint(len(head) + weight.nbytes) + head)
    length = len(body) + sum(map(len, heads)) + sum(weight.nbytes for weight in weights)
    with path.open("wb") as file:
        file.write(_model(onnx.GraphProto(), **model).SerializeToString())
        file.write(_tag(_GRAPH) + _varint(length) + body)
        for head, weight in zip(heads, weights, strict=True):
            file.write(head)
            file.seek(weight.nbytes, os.SEEK_CUR)
        file.truncate()


def _model(graph: onnx.GraphProto, **model: object) -> onnx.ModelProto:
    return helper.make_model(graph, **{"opset_imports": [helper.make_opsetid("", 17)], "ir_version": 8, **model})


def _tag(number: int) -> bytes:
    return _varint(number << 3 | 2)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
