"""Refuses operators that lack an operand: whatever reads a graph may count on those that its vocabulary requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError
from wirelint.ops import VOCABULARY

if TYPE_CHECKING:
    from pathlib import Path

    from wirelint.graph import Graph, Op

__all__ = ["check_operands"]

_REQUIRED = {
    kind: sum(1 for operand in signature.operands if operand[-1] not in "?*") for kind, signature in VOCABULARY.items()
}


def check_operands(path: Path, graph: Graph) -> None:
    """Checks that every operator, those of subgraphs included, has all operands that its kind requires.

    Raises:
        ModelFileError: one lacks an operand.
    """
    for op in graph.walk():
        count = _REQUIRED[op.kind]
        if len(op.inputs) < count or None in op.inputs[:count]:
            raise ModelFileError(path, "invalid-graph", _reason(op, count), op.origin.line)


def _reason(op: Op, count: int) -> str:
    missing = next(slot for slot in range(count) if op.operand(slot) is None)
    operand = VOCABULARY[op.kind].operands[missing]
    return f"node {op.origin.name!r} ({op.origin.op_type or op.kind!r}) lacks its operand {operand!r}; export the model again"
