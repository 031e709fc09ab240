"""The protobuf classes of ONNX, without the rest of the ``onnx`` package.

``import onnx`` costs about 100 ms more than the generated message classes alone, because it pulls in the checker, shape
inference and the helpers.  The generated module depends on protobuf only, so it is loaded by itself.  Protobuf keeps one
class for each message type: those of a later ``import onnx`` are the same objects.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

    from onnx import ModelProto

__all__ = ["parse_model", "text"]


@functools.cache
def _messages() -> ModuleType:
    package = importlib.util.find_spec("onnx")
    folders = (package.submodule_search_locations if package is not None else None) or []
    files = [Path(folder) / "onnx_ml_pb2.py" for folder in folders]
    for file in filter(Path.is_file, files):
        spec = importlib.util.spec_from_file_location("wirelint.formats.onnx.messages", file)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return importlib.import_module("onnx.onnx_ml_pb2")


def parse_model(data: bytes) -> ModelProto:
    """The message that ``data`` encodes.

    Raises:
        ValueError: ``data`` is no ``ModelProto``, or is nested deeper than protobuf allows.
    """
    decode_error: type[Exception] = importlib.import_module("google.protobuf.message").DecodeError
    try:
        return cast("ModelProto", _messages().ModelProto.FromString(data))
    except (decode_error, RecursionError) as error:
        raise ValueError(str(error) or "not a ModelProto") from error


def text(field: str | bytes) -> str:
    """A string of a message.  Protobuf hands out what is no UTF-8 as bytes, whatever the type of the field is."""
    return field if isinstance(field, str) else field.decode("utf-8", "backslashreplace")
