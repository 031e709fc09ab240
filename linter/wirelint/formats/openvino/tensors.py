"""Element types of an IR and the constants in its ``.bin`` file.

Nothing is read until a constant is loaded, and then its slice alone.  A declared size is checked against the file
before anything is allocated.
"""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.graph import Problem, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Weights", "element_type", "parse_shape"]

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

_ELEMENT_TYPES = {
    **{dtype.value: dtype for dtype in DType if dtype not in (DType.UNKNOWN, DType.I2, DType.C64, DType.C128)},
    "boolean": DType.BOOL,
    "fp64": DType.F64,
    "fp32": DType.F32,
    "fp16": DType.F16,
    "bin": DType.U1,
}
"""Element types in lower case: the spelling of ``element_type`` attributes and, but for floats, of port precisions."""

# The 16 levels of NormalFloat4 (QLoRA, arXiv:2305.14314, appendix E), which OpenVINO uses for nf4.
_NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    dtype=np.float32,
)  # fmt: skip


@functools.lru_cache(maxsize=64)
def element_type(text: str) -> DType:
    """The element type that a port precision (``FP32``) or an ``element_type`` attribute (``f32``) names.

    ``dynamic``, ``undefined``, ``UNSPECIFIED`` and types that do not exist are ``DType.UNKNOWN``.
    """
    return _ELEMENT_TYPES.get(text.strip().lower(), DType.UNKNOWN)


def parse_shape(text: str) -> tuple[int | None, ...] | None:
    """The shape in a ``shape`` attribute: ``2, 3``, ``?,1..10,-1`` or ``...`` for an unknown rank (None).

    Raises:
        ValueError: the text is no shape.

    Examples:
        >>> parse_shape("?,1..10,3"), parse_shape(""), parse_shape("...")
        ((None, None, 3), (), None)
    """
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    if inner == "...":
        return None
    return tuple(_dim(part.strip()) for part in inner.split(",")) if inner else ()


def _dim(text: str) -> int | None:
    if text in ("?", "-1") or re.fullmatch(r"[0-9]{0,18}\.\.[0-9]{0,18}", text):
        return None
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    raise ValueError(f"{text!r} is no dimension")


class Weights:
    """The ``.bin`` file beside an IR.

    Attributes:
        problems: what is wrong with the file and with the constants in it, each said once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._mapping: mmap.mmap | None = None
        self._size, self._state = _inspect(path)

    def tensor(self, dtype: DType, shape: tuple[int, ...], data: dict[str, str], name: str, line: int) -> Tensor:
        """The constant that the ``offset`` and ``size`` of a Const layer describe.

        A constant that cannot be had is not available and has its problem noted in ``problems``.
        """
        offset, size = _number(data.get("offset")), _number(data.get("size"))
        fault = self._fault(dtype, shape, offset, size)
        if fault:
            reason = f"constant {name!r}: {fault}; the .xml and the .bin are not from the same export, or one is damaged"
            self.problems.append(Problem("weights-out-of-bounds", reason, line, name))
        elif self._state and size:
            self._note_absence()
        available = not fault and not (self._state and size)
        start, length = offset or 0, size or 0
        return Tensor(dtype, shape, lambda: self._fetch(dtype, shape, start, length), available, self.path.name)

    def _fault(self, dtype: DType, shape: tuple[int, ...], offset: int | None, size: int | None) -> str:
        if offset is None or size is None:
            return "its offset or size is no number"
        needed = packed_size(dtype, math.prod(shape))
        # OpenVINO itself writes one byte for a constant of no elements.
        if needed is not None and needed != size and (needed or size > 1):
            return f"its size is {size} bytes but its shape {list(shape)} of {dtype} takes {needed}"
        if not self._state and offset + size > self._size:
            return f"it ends at byte {offset + size} but {self.path.name} has {self._size}"
        return ""

    def _note_absence(self) -> None:
        if any(problem.rule == self._state for problem in self.problems):
            return
        if self._state == "lfs-pointer":
            reason = f"{self.path.name} is a Git LFS pointer, so constants are unknown; run 'git lfs pull' to fetch the weights"
        else:
            reason = f"{self.path.name} is missing, so constants are unknown; put the weights beside the .xml"
        self.problems.append(Problem(self._state, reason, None, self.path.name))

    def _fetch(self, dtype: DType, shape: tuple[int, ...], offset: int, size: int) -> npt.NDArray[Any]:
        count = math.prod(shape)
        try:
            return unpack(self._bytes(offset, size) if count else b"", dtype, count).reshape(shape)
        except ValueError as error:
            reason = f"holds other elements at byte {offset} than the .xml says: {error}"
            raise ModelFileError(self.path, "weights-out-of-bounds", reason) from error

    def _bytes(self, offset: int, size: int) -> bytes:
        if self._mapping is None:
            try:
                with self.path.open("rb") as stream:
                    self._mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise ModelFileError(self.path, "weights-out-of-bounds", f"cannot be mapped: {error}") from error
        held = self._mapping[offset : offset + size]
        if len(held) != size:
            raise ModelFileError(self.path, "weights-out-of-bounds", f"ends before byte {offset + size}; it was cut short")
        return held


def _inspect(path: Path) -> tuple[int, str]:
    """Size of the file and, when it holds no weights, the rule that says why."""
    try:
        with path.open("rb") as stream:
            head = stream.read(len(_LFS_POINTER))
        return path.stat().st_size, "lfs-pointer" if head == _LFS_POINTER else ""
    except OSError:
        return 0, "missing-weights"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def packed_size(dtype: DType, count: int) -> int | None:
    """Bytes that ``count`` elements take in the file, or None where that depends on the elements.

    Three-bit and six-bit types are stored in blocks of three bytes (eight and four elements).
    """
    if dtype in (DType.STRING, DType.UNKNOWN):
        return None
    if dtype in (DType.U3, DType.U6):
        return -(-count * dtype.bits // 24) * 3
    return -(-count * dtype.bits // 8)


def unpack(held: bytes, dtype: DType, count: int) -> npt.NDArray[Any]:
    """The elements of a constant as a flat array of ``dtype.numpy``.

    Layouts of sub-byte types are those of OpenVINO's ``element::Iterator``: nibbles (u4, i4, nf4, f4e2m1) and u2 lowest
    bits first, u1 highest bit first.  u3 and u6 come in blocks of three bytes: two with the low bits of the elements, one
    with the high bits, both highest first.

    Raises:
        ValueError: a table of strings that contradicts itself.
    """
    raw = np.frombuffer(held, np.uint8)
    unpacker = _UNPACKERS.get(dtype) if count else None
    if unpacker is None:
        return raw[: count * dtype.numpy.itemsize].view(dtype.numpy)
    return unpacker(raw)[:count]


def _nibbles(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.stack([raw & 0xF, raw >> 4], axis=-1).reshape(-1).astype(np.uint8)


def _signed_nibbles(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    return ((_nibbles(raw) ^ 8).astype(np.int8) - 8).astype(np.int8)


def _nf4(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    levels: npt.NDArray[np.float32] = _NF4[_nibbles(raw)]
    return levels


def _f4(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return _nibbles(raw).view(ml_dtypes.float4_e2m1fn)


def _single_bits(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.unpackbits(raw)


def _pairs(raw: npt.NDArray[np.uint8], shifts: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    return np.stack([raw >> shift & 3 for shift in shifts], axis=-1).reshape(-1).astype(np.uint8)


def _low_pairs_first(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return _pairs(raw, (0, 2, 4, 6))


def _high_pairs_first(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return _pairs(raw, (6, 4, 2, 0))


def _triples(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    blocks = raw[: len(raw) // 3 * 3].reshape(-1, 3)
    low = _high_pairs_first(blocks[:, :2].reshape(-1)).reshape(-1, 8)
    high = np.unpackbits(blocks[:, 2:], axis=-1)
    joined: npt.NDArray[np.uint8] = (low | high << 2).reshape(-1).astype(np.uint8)
    return joined


def _sixes(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    blocks = raw[: len(raw) // 3 * 3].reshape(-1, 3)
    low = np.stack([blocks[:, 0] >> 4, blocks[:, 0] & 0xF, blocks[:, 1] >> 4, blocks[:, 1] & 0xF], axis=-1)
    high = _high_pairs_first(blocks[:, 2]).reshape(-1, 4)
    joined: npt.NDArray[np.uint8] = (low | high << 4).reshape(-1).astype(np.uint8)
    return joined


def _booleans(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return np.not_equal(raw, 0)


def _strings(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
    """The strings of a packed string tensor: their number, then an offset before and after each (int32), then UTF-8."""
    header = raw[: len(raw) // 4 * 4].view("<i4")
    count = int(header[0]) if len(header) else 0
    bounds = header[1 : count + 2].astype(np.int64)
    start = 4 * (count + 2)
    chars = raw[start:].tobytes() if start >= 0 else b""
    if count < 0 or len(bounds) != count + 1 or (np.diff(bounds, prepend=0) < 0).any() or bounds[-1] > len(chars):
        raise ValueError("a table of strings contradicts itself")
    words = [chars[begin:end].decode("utf-8", "replace") for begin, end in itertools.pairwise(bounds)]
    return np.array(words, dtype=object)


_UNPACKERS: dict[DType, Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]] = {
    DType.U4: _nibbles,
    DType.I4: _signed_nibbles,
    DType.NF4: _nf4,
    DType.F4E2M1: _f4,
    DType.U1: _single_bits,
    DType.U2: _low_pairs_first,
    DType.U3: _triples,
    DType.U6: _sixes,
    DType.BOOL: _booleans,
    DType.STRING: _strings,
}
