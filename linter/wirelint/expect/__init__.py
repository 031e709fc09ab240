"""What companions of a model say it should be."""

from __future__ import annotations

from pathlib import Path

from wirelint.facts import ExpectationFacts, ModelFacts

__all__ = ["gather", "judge"]


def gather(path: Path) -> ExpectationFacts:
    """Reads the companions beside a model."""
    return ExpectationFacts()


def judge(facts: ModelFacts) -> dict[str, tuple[str, ...]]:
    """Contradictions between the companions and the graph."""
    return {}
