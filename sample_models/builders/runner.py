"""One way to run a model file, whichever runtime it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import openvino as ov

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Array", "Port", "Runner", "open_model"]

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Port:
    """An input as the runtime declares it; a dimension is None where it is not fixed."""

    names: frozenset[str]
    dtype: np.dtype
    shape: tuple[int | None, ...]


class Runner(Protocol):
    """A loaded model.

    Attributes:
        runtime: ``onnxruntime`` or ``openvino``.
        inputs: in the file's order.
        outputs: names, in the file's order.
    """

    runtime: str
    inputs: Sequence[Port]
    outputs: Sequence[str]

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Outputs for inputs, both in the file's order."""


class _Onnx:
    runtime = "onnxruntime"
    _DTYPES = {"int64": "int64", "int32": "int32", "float": "float32", "float16": "float16", "bool": "bool"}  # noqa: RUF012

    def __init__(self, path: Path) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.outputs = [port.name for port in self.session.get_outputs()]
        ports = [*self.session.get_inputs(), *self.session.get_overridable_initializers()]
        self.inputs = [
            Port(
                frozenset({port.name}),
                np.dtype(self._DTYPES[port.type.removeprefix("tensor(").removesuffix(")")]),
                tuple(dim if isinstance(dim, int) else None for dim in port.shape),
            )
            for port in ports
        ]

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        named = {next(iter(port.names)): value for port, value in zip(self.inputs, feeds, strict=True)}
        return list(self.session.run(None, named))


class _OpenVino:
    runtime = "openvino"

    def __init__(self, path: Path) -> None:
        self.compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        self.outputs = [
            min(port.names) if port.names else f"output {index}" for index, port in enumerate(self.compiled.outputs)
        ]
        self.inputs = [
            Port(
                frozenset(port.names),
                np.dtype(port.element_type.to_dtype()),
                tuple(None if dim.is_dynamic else dim.get_length() for dim in port.partial_shape),
            )
            for port in self.compiled.inputs
        ]

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        result = self.compiled(dict(enumerate(feeds)))
        return [np.array(result[index]) for index in range(len(self.outputs))]


def open_model(path: Path) -> Runner:
    """Load an ONNX file into ONNX Runtime, an IR into OpenVINO."""
    return _Onnx(path) if path.suffix == ".onnx" else _OpenVino(path)
