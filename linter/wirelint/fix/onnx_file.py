"""Edits the names in an ONNX file on the protobuf wire; everything else is copied byte for byte.

References:
    https://protobuf.dev/programming-guides/encoding/ for the wire format,
    https://github.com/onnx/onnx/blob/main/onnx/onnx.proto for the field numbers.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError
from wirelint.fix.writing import Piece, Span
from wirelint.formats.onnx.wire import FIELD_KEY, read_skeleton

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from onnx import GraphProto, TensorProto

    from wirelint.fix.plan import Plan

__all__ = ["external_files", "pieces_of", "refusals"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 100
"""The nesting that protobuf itself accepts."""


@dataclass(eq=False)
class _Message:
    """Where names of values stand in a message type.

    Attributes:
        names: fields that are such names.
        inner: fields that are messages which hold some, by number.
        default: field whose messages are the initializers, of which some go.
    """

    names: frozenset[int] = frozenset()
    inner: dict[int, _Message] = field(default_factory=dict)
    default: int = 0


def _model_message() -> _Message:
    tensor, value = _Message(frozenset({8})), _Message(frozenset({1}))
    sparse = _Message(inner={1: tensor})
    annotation = _Message(frozenset({1}), {2: _Message(frozenset({2}))})
    devices = _Message(inner={2: _Message(frozenset({1}))})
    attribute = _Message()
    node = _Message(frozenset({1}), {5: attribute, 10: devices})
    common = {1: node, 5: tensor, 13: value, 14: annotation, 15: sparse}
    # A subgraph's outputs may be values of the graph around it; those of the main graph keep their names.
    subgraph = _Message(inner={**common, 12: value})
    attribute.inner |= {6: subgraph, 11: subgraph}
    return _Message(inner={7: _Message(inner={**common, 11: value}, default=5)})


_MODEL = _model_message()
_TENSOR_NAME = 8


def refusals(path: Path, plan: Plan) -> dict[int, str]:
    """Renames that the file does not allow, by the input's position, with the reason.

    Names must be unique among all values of a graph and of its subgraphs (ONNX IR, "Names Within a Graph").

    Raises:
        ModelFileError: the file can't be read.
    """
    graph = read_skeleton(path).graph
    inner: set[str] = {name for sub in _subgraphs(graph) for name in _defined(sub)}
    values = {name for node in graph.node for name in node.output} | inner
    values |= {tensor.name for tensor in graph.initializer} - {entry.name for entry in graph.input}
    leaving = {entry.old for entry in plan.renames}
    found = {}
    for entry in plan.renames:
        if entry.new in values and entry.new not in leaving:
            found[entry.index] = "a value inside the graph has this name; rename that one or export again"
        elif entry.old in inner:
            found[entry.index] = "a subgraph has a value of the same name; export again"
    return found


def _defined(graph: GraphProto) -> Iterator[str]:
    yield from (entry.name for entry in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (name for node in graph.node for name in node.output)


def _subgraphs(graph: GraphProto) -> Iterator[GraphProto]:
    """All graphs inside a graph, without recursion."""
    stack = [graph]
    while stack:
        for node in stack.pop().node:
            for attribute in node.attribute:
                inner = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
                stack += inner
                yield from inner


def external_files(path: Path) -> list[str]:
    """Locations of the files beside a model that hold its tensors, as the model writes them.

    Raises:
        ModelFileError: the model can't be read.
    """
    model = read_skeleton(path)
    graphs = [model.graph, *_subgraphs(model.graph)]
    nodes = [*(node for graph in graphs for node in graph.node), *(node for entry in model.functions for node in entry.node)]
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    tensors += [tensor for graph in graphs for entry in graph.sparse_initializer for tensor in (entry.values, entry.indices)]
    tensors += [tensor for node in nodes for attribute in node.attribute for tensor in (attribute.t, *attribute.tensors)]
    return list(dict.fromkeys(location for tensor in tensors if (location := _location(tensor))))


def _location(tensor: TensorProto) -> str:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return "" if FIELD_KEY in entries else entries.get("location", "")


def pieces_of(path: Path, plan: Plan) -> list[Piece]:
    """The file with its inputs renamed and defaults taken out, as pieces of the old file and new bytes.

    Raises:
        ModelFileError: the file is no sound protobuf, or is nested deeper than protobuf allows.
    """
    names = {entry.old.encode(): entry.new.encode() for entry in plan.renames}
    required = frozenset(name.encode() for name in plan.required)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            pieces = _Rewriter(path, data, names, required).message(_MODEL, 0, len(data), 0)
            return [Span(0, len(data))] if pieces is None else pieces
    except OSError as error:
        raise ModelFileError(path, "unreadable", f"can't be read: {error.strerror or error}") from error


@dataclass
class _Rewriter:
    path: Path
    data: mmap.mmap
    names: dict[bytes, bytes]
    required: frozenset[bytes]

    def message(self, kind: _Message, begin: int, end: int, depth: int) -> list[Piece] | None:
        """The message between two offsets with the new names in it, or None when it holds none.

        The depth is bounded by what protobuf accepts, and the lengths of the messages around a new name are adapted.
        """
        if depth > _DEEPEST:
            raise self.error(begin)
        pieces: list[Piece] = []
        copied = begin
        for number, start, body, stop in self.fields(begin, end):
            if number == kind.default and self.required and self.name_of(body, stop) in self.required:
                pieces.append(Span(copied, start))
                copied = stop
                continue
            inner = self.content(kind, number, body, stop, depth)
            if inner is not None:
                pieces += (Span(copied, start), _varint(number << 3 | _BYTES) + _varint(sum(map(_length, inner))), *inner)
                copied = stop
        if not pieces:
            return None
        pieces.append(Span(copied, end))
        return pieces

    def content(self, kind: _Message, number: int, body: int, stop: int, depth: int) -> list[Piece] | None:
        if number in kind.names:
            new = self.names.get(self.data[body:stop])
            return None if new is None else [new]
        inner = kind.inner.get(number)
        return None if inner is None else self.message(inner, body, stop, depth + 1)

    def name_of(self, begin: int, end: int) -> bytes:
        """The name of a tensor; of several the last, as protobuf has it."""
        found = b""
        for number, _, body, stop in self.fields(begin, end):
            if number == _TENSOR_NAME:
                found = self.data[body:stop]
        return found

    def fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Length-delimited fields: number, offset of the key, offsets of the content and of its end."""
        at = begin
        while at < end:
            key, body = self.varint(at, end)
            kind = key & 7
            if kind == _BYTES:
                length, body = self.varint(body, end)
                stop = body + length
                if stop > end:
                    raise self.error(at)
                yield key >> 3, at, body, stop
            elif kind == _VARINT:
                _, stop = self.varint(body, end)
            elif kind in (_FIXED32, _FIXED64):
                stop = body + (4 if kind == _FIXED32 else 8)
            else:
                raise self.error(at)
            at = stop
        if at != end:
            raise self.error(at)

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 70:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise self.error(at)

    def error(self, at: int) -> ModelFileError:
        return ModelFileError(self.path, "unreadable", f"no sound protobuf at byte {at}; export or download the model again")


def _length(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.end - piece.begin


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
