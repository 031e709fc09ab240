"""Reads an ONNX file by walking its protobuf wire format, leaving weights on disk.

The walk goes over a memory map and descends only into messages that are large enough to hold a large tensor, so its cost
grows with the number of nodes and large tensors, never with their bytes.  What comes out is an ordinary ``ModelProto``
in which each large tensor has become an external-data reference into the very same file.

References:
    https://protobuf.dev/programming-guides/encoding/ for the wire format,
    https://github.com/onnx/onnx/blob/main/onnx/onnx.proto for the field numbers.
"""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError
from wirelint.formats.onnx.proto import parse_model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onnx import ModelProto

__all__ = ["FIELD_KEY", "LFS_PREFIX", "read_skeleton"]

LFS_PREFIX = b"version https://git-lfs.github.com/spec/"
"""How a Git LFS pointer file begins (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md)."""

FIELD_KEY = "wirelint.field"
"""Key of the ``external_data`` entry that marks a reference into the model file itself and names the field left there."""

_ON_DISK = 1024
"""Elements that take fewer bytes stay in memory."""

_MAX_DEPTH = 100
"""The nesting that protobuf itself accepts."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT = 10


@dataclass(frozen=True, slots=True, eq=False)
class _Message:
    """What the walk does with the large fields of one message type, by field number.

    Attributes:
        descend: messages that may hold large tensors.
        leave: the elements of a tensor, which stay on disk.
        drop: what no analysis reads: documentation, training graphs, opaque binaries.
    """

    descend: dict[int, _Message] = field(default_factory=dict)
    leave: Mapping[int, str] = field(default_factory=dict)
    drop: frozenset[int] = frozenset()


def _model_message() -> _Message:
    tensor = _Message(
        leave={4: "float_data", 5: "int32_data", 7: "int64_data", 9: "raw_data", 10: "double_data", 11: "uint64_data"},
        drop=frozenset({12}),
    )
    sparse = _Message({1: tensor, 2: tensor})
    attribute = _Message({5: tensor, 10: tensor, 22: sparse, 23: sparse}, drop=frozenset({4, 13}))
    node = _Message({5: attribute}, drop=frozenset({6}))
    graph = _Message({1: node, 5: tensor, 15: sparse}, drop=frozenset({10}))
    attribute.descend.update({6: graph, 11: graph})
    function = _Message({7: node, 11: attribute}, drop=frozenset({8}))
    return _Message({7: graph, 25: function}, drop=frozenset({6, 20}))


_MODEL = _model_message()


@dataclass(slots=True)
class _Frame:
    """A message that is being walked: what was kept of it so far."""

    message: _Message
    tag: bytes
    end: int
    kept: list[bytes] = field(default_factory=list)
    left: tuple[str, int, int] | None = None


class _WireError(ValueError):
    """The bytes are not protobuf."""


def read_skeleton(path: Path) -> ModelProto:
    """The model in ``path`` without its large tensors.

    Each tensor whose elements take a kilobyte or more comes back with ``data_location`` EXTERNAL and ``external_data``
    entries ``location`` (the file's own name), ``offset``, ``length`` and :data:`FIELD_KEY`.

    Raises:
        ModelFileError: the file can't be opened, is a Git LFS pointer, or holds no ONNX model.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(path, "unreadable", "not a regular file")
            if status.st_size == 0:
                raise ModelFileError(path, "unreadable", "the file is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(path, data)
    except OSError as error:
        raise ModelFileError(path, "unreadable", f"can't be read: {error.strerror or error}") from error


def _parse(path: Path, data: mmap.mmap) -> ModelProto:
    head = data[:512]
    if head.startswith(LFS_PREFIX):
        reason = "a Git LFS pointer, not the model; fetch it with 'git lfs pull'"
        raise ModelFileError(path, "lfs-pointer", reason)
    try:
        model = parse_model(_without_tensors(data, path.name))
    except ValueError as error:
        reason = _foreign_format(head) or f"no ONNX model: {error} (truncated, encrypted or of another format)"
        raise ModelFileError(path, "unreadable", reason) from error
    if not model.HasField("graph"):
        reason = _foreign_format(head) or "no ONNX model: it holds no graph"
        raise ModelFileError(path, "unreadable", reason)
    return model


_SIGNATURES = (
    (0, b"PK\x03\x04", "a zip archive; unpack the model from it"),
    (0, b"\x1f\x8b", "a gzip archive; unpack the model from it"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed data; unpack the model from it"),
    (0, b"\x89HDF", "an HDF5 (Keras) file, not an ONNX model"),
    (0, b"GGUF", "a GGUF file, not an ONNX model"),
    (4, b"TFL3", "a TensorFlow Lite file, not an ONNX model"),
    (4, b"ORTM", "an ONNX Runtime flatbuffer (.ort), not an ONNX protobuf; check the .onnx file that it was made from"),
    (0, b"\x80\x02", "a Python pickle, not an ONNX model"),
    (0, b"<", "an XML or HTML page, not an ONNX model"),
    (0, b"{", "a JSON document, not an ONNX model"),
)


def _foreign_format(head: bytes) -> str:
    """What a file that begins with ``head`` is instead of a model, or an empty string."""
    for at, signature, meaning in _SIGNATURES:
        if head[at : at + len(signature)] == signature:
            return meaning
    if not any(head):
        return "begins with zero bytes only; the download or copy was cut short"
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in head):
        return "a text file, not an ONNX model"
    return ""


def _without_tensors(data: mmap.mmap, name: str) -> bytes:
    """The encoded message without the fields that stay on disk; lengths of the messages around them are adapted."""
    stack = [_Frame(_MODEL, b"", len(data))]
    position = 0
    while True:
        frame = stack[-1]
        position, child = _walk(data, position, frame)
        if child is not None:
            if len(stack) >= _MAX_DEPTH:
                raise _WireError(f"messages are nested deeper than {_MAX_DEPTH} levels")
            stack.append(child)
            continue
        if frame.left is not None:
            frame.kept.append(_reference(name, *frame.left))
        stack.pop()
        if not stack:
            return b"".join(frame.kept)
        kept = stack[-1].kept
        kept += (frame.tag, _varint(sum(map(len, frame.kept))))
        kept += frame.kept


def _walk(data: mmap.mmap, position: int, frame: _Frame) -> tuple[int, _Frame | None]:
    """Go on in ``frame`` until it ends or a message worth descending into begins there.

    Returns:
        Where to go on, and the frame of the message that begins there.
    """
    end, message = frame.end, frame.message
    kept_from = position
    while position < end:
        begin = position
        key = data[position]
        position += 1
        if key >= 0x80:
            key, position = _read_varint(data, begin, end)
        wire_type = key & 7
        if key < 8:
            raise _WireError(f"field number 0 at byte {begin}")
        if wire_type == _BYTES:
            if position >= end:
                raise _WireError(f"the data end within a field at byte {begin}")
            length = data[position]
            position += 1
            if length >= 0x80:
                length, position = _read_varint(data, position - 1, end)
            stop = position + length
            if stop > end:
                raise _WireError(f"a field at byte {begin} is longer than what holds it")
            if length >= _ON_DISK:
                number = key >> 3
                if number in message.leave:
                    if frame.left is not None:
                        raise _WireError(f"a tensor has its elements twice, at byte {begin}")
                    frame.kept.append(data[kept_from:begin])
                    frame.left = (message.leave[number], position, length)
                    _release(data, position, stop)
                    kept_from = stop
                elif number in message.drop:
                    frame.kept.append(data[kept_from:begin])
                    kept_from = stop
                elif number in message.descend:
                    frame.kept.append(data[kept_from:begin])
                    return position, _Frame(message.descend[number], _varint(key), stop)
            position = stop
        elif wire_type == _VARINT:
            _, position = _read_varint(data, position, end)
        elif wire_type == _FIXED32:
            position += 4
        elif wire_type == _FIXED64:
            position += 8
        else:
            raise _WireError(f"wire type {wire_type} at byte {begin}")
    if position > end:
        raise _WireError(f"the data end within a field at byte {end}")
    frame.kept.append(data[kept_from:end])
    return end, None


def _release(data: mmap.mmap, begin: int, end: int) -> None:
    """Unmap the pages of an element range: the kernel maps whole runs of pages around each byte that is read."""
    advice = getattr(mmap, "MADV_DONTNEED", None)
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    if advice is not None and end - first >= mmap.PAGESIZE:
        data.madvise(advice, first, end - first)


def _read_varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    """The number that begins at ``position``, and where it ends."""
    value = shift = 0
    for at in range(position, min(end, position + _MAX_VARINT)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise _WireError(f"a number that does not end at byte {position}")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _reference(name: str, field_name: str, offset: int, length: int) -> bytes:
    """``external_data`` entries (field 13) and ``data_location`` EXTERNAL (field 14) of a TensorProto."""
    entries = {"location": name, "offset": str(offset), "length": str(length), FIELD_KEY: field_name}
    encoded = b""
    for key, value in entries.items():
        entry = _text(b"\x0a", key) + _text(b"\x12", value)
        encoded += b"\x6a" + _varint(len(entry)) + entry
    return encoded + b"\x70\x01"


def _text(tag: bytes, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return tag + _varint(len(data)) + data
