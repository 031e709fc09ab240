"""Execution paths: a runtime with the settings that decide which of its code runs a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["OPTIMISATION_LEVELS", "RUNTIMES", "Path", "default_path"]

OPTIMISATION_LEVELS = ("disabled", "basic", "extended", "all")
"""Graph optimisation levels of ONNX Runtime."""
RUNTIMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO CPU"}
"""Import name of each runtime, with the name that people know it by."""


@dataclass(frozen=True, slots=True)
class Path:
    """One way to run a model.

    Attributes:
        runtime: ``onnxruntime`` or ``openvino``.
        level: graph optimisation level, for ONNX Runtime.
        precision: inference precision hint, for OpenVINO: ``f32``, ``bf16`` or ``f16``.
        static: OpenVINO gets the model reshaped to the shapes that are fed.
    """

    runtime: str
    level: str = ""
    precision: str = ""
    static: bool = False

    @property
    def name(self) -> str:
        """The path for people."""
        if self.runtime == "onnxruntime":
            return f"{RUNTIMES[self.runtime]}, optimisation {self.level}"
        return f"{RUNTIMES[self.runtime]} {self.precision}, {'static shapes' if self.static else 'shapes as declared'}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def default_path(model_format: str) -> Path:
    """The path on which verdicts are measured: the format's own runtime, as it runs by default."""
    return Path("openvino", precision="f32") if model_format == "openvino-ir" else Path("onnxruntime", level="all")
