"""Which lowering belongs to which operator of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirelint.formats.onnx.context import Lowering

__all__ = ["AI_ONNX", "AI_ONNX_ML", "MICROSOFT", "NCHWC", "find", "lower"]

AI_ONNX = ""
AI_ONNX_ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"
NCHWC = "com.microsoft.nchwc"

_LOWERINGS: dict[tuple[str, str], Lowering] = {}


def lower(*op_types: str, domain: str = AI_ONNX) -> Callable[[Lowering], Lowering]:
    """Register the decorated function for operators of ``domain``."""

    def register(lowering: Lowering) -> Lowering:
        for op_type in op_types:
            _LOWERINGS[domain, op_type] = lowering
        return lowering

    return register


def find(domain: str, op_type: str) -> Lowering | None:
    """The lowering of an operator, or None when it has no canonical form."""
    return _LOWERINGS.get((domain, op_type))
