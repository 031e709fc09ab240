"""The protobuf classes of ONNX, without the rest of the ``onnx`` package.

``import onnx`` costs about 100 ms more than the generated message classes alone, because it pulls in the checker, shape
inference and the helpers.  The generated module depends on protobuf only, so it is loaded by itself, under its own name:
a later ``import onnx`` finds it there and the classes stay the same objects.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

    from onnx import ModelProto

__all__ = ["parse_model"]

_MODULE = "onnx.onnx_ml_pb2"


@functools.cache
def _messages() -> ModuleType:
    package = importlib.util.find_spec("onnx")
    if _MODULE in sys.modules or package is None or not package.submodule_search_locations:
        return importlib.import_module(_MODULE)
    spec = importlib.util.spec_from_file_location(_MODULE, Path(package.submodule_search_locations[0]) / "onnx_ml_pb2.py")
    if spec is None or spec.loader is None:
        return importlib.import_module(_MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_MODULE] = module
    return module


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
