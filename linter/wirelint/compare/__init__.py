"""What conversion or optimisation changed: two models compared by what their inputs do, whatever their formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.compare.buckets import bucket_mismatches
from wirelint.compare.difference import ERROR, SEVERITIES, Difference
from wirelint.compare.inputs import input_differences
from wirelint.compare.outputs import output_differences
from wirelint.compare.wiring import wiring_differences

if TYPE_CHECKING:
    from wirelint.facts import ModelFacts

__all__ = ["Difference", "bucket_mismatches", "differences", "mismatches"]


def differences(reference: ModelFacts, model: ModelFacts) -> list[Difference]:
    """What is in a model otherwise than in the model that it was made from, the worst first."""
    found = [
        *input_differences(reference, model),
        *wiring_differences(reference, model),
        *output_differences(reference, model),
    ]
    return sorted(found, key=lambda difference: SEVERITIES.index(difference.severity))


def mismatches(reference: ModelFacts, model: ModelFacts) -> dict[str, tuple[str, ...]]:
    """The same as sentences by the id of the rule that reports them.

    The order of inputs is ``input-order``, what breaks callers or changes results ``reference-drift``, what may be meant
    ``reference-change``; what takes nothing away is left out.
    """
    sentences: dict[str, list[str]] = {}
    for difference in differences(reference, model):
        if difference.kind == "input-order":
            sentences.setdefault("input-order", []).append(difference.sentence)
        elif difference.lost:
            rule = "reference-drift" if difference.severity == ERROR else "reference-change"
            sentences.setdefault(rule, []).append(difference.sentence)
    return {rule: tuple(said) for rule, said in sentences.items()}
