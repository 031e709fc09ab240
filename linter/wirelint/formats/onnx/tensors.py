"""Lazy constants from ``TensorProto`` messages: inline, in the model file or in external files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.formats.onnx.dtypes import BY_NUMBER, FNUZ, TYPED_FIELD
from wirelint.formats.onnx.proto import text
from wirelint.formats.onnx.wire import FIELD_KEY
from wirelint.graph import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from onnx import SparseTensorProto, TensorProto

    from wirelint.formats.onnx.external import ExternalFiles

__all__ = ["TensorReader"]

_Array = npt.NDArray[Any]

_EXTERNAL = 1
"""``TensorProto.DataLocation.EXTERNAL``."""

_PACKED_FIELDS: dict[str, np.dtype[Any] | None] = {
    "float_data": np.dtype("<f4"),
    "double_data": np.dtype("<f8"),
    "int32_data": None,
    "int64_data": None,
    "uint64_data": None,
}
"""How a packed field is encoded: fixed-width numbers of that type, or varints (None)."""


class TensorReader:
    """Makes lazy constants of the tensors of one model file.

    Args:
        path: the model file.
        files: the external files beside it; what is wrong with them is noted there.
    """

    def __init__(self, path: Path, files: ExternalFiles) -> None:
        self._path = path
        self._files = files
        self._size = path.stat().st_size

    def read(self, proto: TensorProto) -> Tensor:
        """The constant that ``proto`` describes; its elements are not looked at.

        Raises:
            ModelFileError: a dimension is negative.
        """
        shape = tuple(proto.dims)
        if any(dim < 0 for dim in shape):
            raise ModelFileError(self._path, "invalid-graph", f"tensor {proto.name!r} has a negative dimension: {list(shape)}")
        dtype = BY_NUMBER.get(proto.data_type, DType.UNKNOWN)
        if dtype is DType.UNKNOWN or (dtype is DType.STRING and proto.data_location == _EXTERNAL):
            return _unavailable(DType.UNKNOWN if dtype is DType.UNKNOWN else dtype, shape)
        if proto.data_location == _EXTERNAL:
            return self._on_disk(proto, dtype, shape)
        return self._inline(proto, dtype, shape)

    def read_sparse(self, proto: SparseTensorProto) -> Tensor:
        """The dense constant that a sparse tensor stands for.

        Raises:
            ModelFileError: a dimension is negative.
        """
        values, indices = self.read(proto.values), self.read(proto.indices)
        shape = tuple(proto.dims)
        if any(dim < 0 for dim in shape):
            raise ModelFileError(self._path, "invalid-graph", f"sparse tensor {proto.values.name!r} has a negative dimension")

        def fetch() -> _Array:
            dense = np.zeros(shape, dtype=values.dtype.numpy)
            where = indices.fetch().astype(np.int64)
            if where.ndim == 2:
                where = np.ravel_multi_index(tuple(where.T), shape) if where.size else where.reshape(-1)
            dense.reshape(-1)[where] = values.fetch()
            return dense

        def checked() -> _Array:
            try:
                return fetch()
            except (IndexError, ValueError) as error:
                reason = f"sparse tensor {proto.values.name!r} has indices outside its shape {list(shape)}"
                raise ModelFileError(self._path, "weights-out-of-bounds", reason) from error

        return Tensor(values.dtype, shape, checked, available=values.available and indices.available)

    def _on_disk(self, proto: TensorProto, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        entries = {text(entry.key): text(entry.value) for entry in proto.external_data}
        field = entries.get(FIELD_KEY, "")
        location = "" if field else entries.get("location", "")
        found = (self._path, self._size) if field else self._files.locate(location, proto.name)
        if found is None:
            return _unavailable(dtype, shape, location)
        file, size = found
        needed = _stored_bytes(dtype, shape)
        try:
            offset, length = int(entries.get("offset", "0") or "0"), int(entries.get("length", "-1") or "-1")
        except ValueError:
            offset, length = -1, -1
        if length == -1:
            length = needed
        reason = ""
        if offset < 0 or length < 0 or offset + length > size:
            reason = f"bytes {offset} to {offset + length} of a file of {size} bytes"
        elif field in ("", "raw_data") and length != needed:
            reason = f"{dtype} {list(shape)} takes {needed} bytes, {length} are there"
        elif field not in ("", "raw_data") and field != TYPED_FIELD.get(dtype, "int32_data"):
            reason = f"{dtype} elements are not kept in {field}"
        if reason:
            self._files.out_of_bounds(location, proto.name, reason)
            return _unavailable(dtype, shape, location)

        def read_bytes() -> bytes:
            try:
                with file.open("rb") as stream:
                    stream.seek(offset)
                    data = stream.read(length)
            except OSError as error:
                raise ModelFileError(self._path, "weights-out-of-bounds", f"{file.name!r} can't be read any more") from error
            if len(data) != length:
                raise ModelFileError(self._path, "weights-out-of-bounds", f"{file.name!r} ends before byte {offset + length}")
            return data

        packing = _PACKED_FIELDS.get(field, np.dtype(np.uint8))
        return self._tensor(proto, dtype, shape, lambda: _packed(read_bytes(), packing), location)

    def _inline(self, proto: TensorProto, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        name = proto.name
        if dtype is DType.STRING:
            strings = list(proto.string_data)
            if len(strings) != math.prod(shape):
                return self._misfit(name, dtype, shape, f"{list(shape)} strings, {len(strings)} are there")
            return Tensor(dtype, shape, lambda: _texts(strings).reshape(shape))
        if proto.HasField("raw_data"):
            raw = proto.raw_data
            needed = _stored_bytes(dtype, shape)
            if len(raw) != needed:
                return self._misfit(name, dtype, shape, f"{dtype} {list(shape)} takes {needed} bytes, {len(raw)} are there")
            return self._tensor(proto, dtype, shape, lambda: np.frombuffer(raw, dtype=np.uint8))
        field = TYPED_FIELD.get(dtype, "int32_data")
        held = np.array(
            getattr(proto, field), dtype=_PACKED_FIELDS[field] or (np.uint64 if field == "uint64_data" else np.int64)
        )
        needed = _typed_count(dtype, shape)
        if held.size != needed and not (held.size > needed and dtype.bits < 8):
            return self._misfit(name, dtype, shape, f"{list(shape)} needs {needed} elements, {held.size} are there")
        return self._tensor(proto, dtype, shape, lambda: held)

    def _tensor(
        self, proto: TensorProto, dtype: DType, shape: tuple[int, ...], stored: Callable[[], _Array], location: str = ""
    ) -> Tensor:
        name, number = proto.name, proto.data_type

        def fetch() -> _Array:
            try:
                return _decode(stored(), number, dtype, shape)
            except ValueError as error:
                raise ModelFileError(
                    self._path, "weights-out-of-bounds", f"the elements of {name!r} can't be decoded"
                ) from error

        return Tensor(dtype, shape, fetch, location=location)

    def _misfit(self, name: str, dtype: DType, shape: tuple[int, ...], reason: str) -> Tensor:
        self._files.out_of_bounds("", name, reason)
        return _unavailable(dtype, shape)


def _texts(strings: Sequence[bytes]) -> _Array:
    return np.array([text.decode("utf-8", "replace") for text in strings], dtype=object)


def _unavailable(dtype: DType, shape: tuple[int, ...], location: str = "") -> Tensor:
    def fetch() -> _Array:
        raise ValueError("the elements of an unavailable constant were asked for")

    return Tensor(dtype, shape, fetch, available=False, location=location)


def _stored_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    return (math.prod(shape) * dtype.bits + 7) // 8


def _typed_count(dtype: DType, shape: tuple[int, ...]) -> int:
    """Numbers in the typed field: complex elements take two, sub-byte elements share one."""
    if dtype in (DType.C64, DType.C128):
        return 2 * math.prod(shape)
    return _stored_bytes(dtype, shape) if dtype.bits < 8 else math.prod(shape)


def _packed(data: bytes, packing: np.dtype[Any] | None) -> _Array:
    """Bytes of a field as numbers: raw bytes (u8), fixed-width numbers, or varints as i64."""
    if packing is not None:
        return np.frombuffer(data, dtype=packing)
    return _varints(np.frombuffer(data, dtype=np.uint8))


def _varints(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Decode concatenated varints without a loop over them.

    Raises:
        ValueError: the last one does not end, or one is longer than ten bytes.
    """
    if not data.size:
        return np.empty(0, dtype=np.int64)
    ends = np.flatnonzero(data < 0x80)
    if not ends.size or ends[-1] != data.size - 1:
        raise ValueError("a varint does not end")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > 10:
        raise ValueError("a varint is too long")
    places = np.arange(data.size) - np.repeat(starts, lengths)
    groups = (data & 0x7F).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.add.reduceat(groups, starts).view(np.int64)


def _decode(stored: _Array, number: int, dtype: DType, shape: tuple[int, ...]) -> _Array:
    """Elements from raw bytes (a u8 array) or from the numbers of a typed field.

    Raises:
        ValueError: there are too few or too many of them.
    """
    if stored.dtype != np.uint8:
        stored = _bytes_of_numbers(stored, dtype)
    if number in FNUZ:
        kind = np.dtype(getattr(ml_dtypes, FNUZ[number]))
        real: _Array = stored.view(kind).reshape(shape).astype(np.float32).astype(dtype.numpy)
        return real
    if dtype.bits < 8:
        return _unpack(stored, dtype, math.prod(shape)).reshape(shape)
    if dtype is DType.BOOL:
        truths: _Array = (stored != 0).reshape(shape)
        return truths
    elements: _Array = stored.view(dtype.numpy.newbyteorder("<")).reshape(shape).astype(dtype.numpy, copy=False)
    return elements


def _bytes_of_numbers(numbers: _Array, dtype: DType) -> npt.NDArray[np.uint8]:
    """The little-endian bytes that ``raw_data`` would hold; small floats stand in ``int32_data`` as their bits."""
    if numbers.dtype.kind == "f":
        return np.ascontiguousarray(numbers).view(np.uint8)
    width = max(dtype.bits, 8) // 8
    return np.ascontiguousarray(numbers.astype(f"<u{width}")).view(np.uint8)


def _unpack(data: npt.NDArray[np.uint8], dtype: DType, count: int) -> _Array:
    """Sub-byte elements, the first in the low bits."""
    bits = dtype.bits
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.uint8)
    if dtype is DType.F4E2M1:
        return codes.view(dtype.numpy)
    if dtype in (DType.I4, DType.I2):
        sign = 1 << (bits - 1)
        return ((codes ^ sign).astype(np.int16) - sign).astype(np.int8)
    return codes
