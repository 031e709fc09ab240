"""wirelint: a static linter for the wiring of ONNX and OpenVINO IR models."""

from wirelint._version import __version__

__all__ = ["__version__"]
