"""Messages between wirelint and the process that runs a model: a JSON header, then the bytes of arrays.

Nothing is pickled, so that whatever a damaged model does to the process that runs it, its answers are numbers only.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import IO, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Message", "read_message", "write_message"]

Array = npt.NDArray[Any]

_LARGEST_HEADER = 1 << 24
_LARGEST_ARRAYS = 1 << 32


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        header: what is asked or answered.
        arrays: numbers that go with it; None for a tensor that holds none (strings, optional values that are absent).
    """

    header: dict[str, Any]
    arrays: list[Array | None] = field(default_factory=list)


def write_message(stream: IO[bytes], message: Message) -> None:
    """Writes a message.

    Raises:
        OSError: the other side has gone away.
    """
    held = [
        None if array is None or array.dtype.hasobject else np.array(array, order="C", copy=None) for array in message.arrays
    ]
    described = [None if array is None else {"dtype": array.dtype.name, "shape": array.shape} for array in held]
    header = json.dumps({**message.header, "arrays": described}).encode()
    stream.write(len(header).to_bytes(8, "little"))
    stream.write(header)
    for array in held:
        if array is not None:
            stream.write(array.tobytes())
    stream.flush()


def read_message(stream: IO[bytes]) -> Message | None:
    """Reads a message; None at the end of the stream.

    Raises:
        ValueError: what comes is no message, or one larger than any that is sent.
    """
    start = stream.read(8)
    if len(start) < 8:
        return None
    length = int.from_bytes(start, "little")
    if length > _LARGEST_HEADER:
        raise ValueError("a message with a header that is too large")
    text = stream.read(length)
    if len(text) < length:
        return None
    header = json.loads(text)
    described = header.pop("arrays")
    wanted = sum(_bytes_of(entry) for entry in described if entry is not None)
    if wanted > _LARGEST_ARRAYS:
        raise ValueError(f"a message with {wanted} bytes of numbers")
    arrays: list[Array | None] = []
    for entry in described:
        if entry is None:
            arrays.append(None)
            continue
        size = _bytes_of(entry)
        raw = stream.read(size)
        if len(raw) < size:
            return None
        arrays.append(np.frombuffer(raw, dtype=_dtype(entry["dtype"])).reshape(entry["shape"]))
    return Message(header, arrays)


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _bytes_of(described: dict[str, Any]) -> int:
    size: int = math.prod(described["shape"]) * _dtype(described["dtype"]).itemsize
    return size
