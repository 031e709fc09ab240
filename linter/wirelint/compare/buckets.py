"""Models that were compiled from one source for several fixed shapes must differ in these alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from wirelint.compare.difference import file_name
from wirelint.compare.inputs import input_differences
from wirelint.compare.outputs import output_differences
from wirelint.compare.wiring import wiring_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.facts import ModelFacts

__all__ = ["bucket_mismatches"]

_SHAPES = frozenset({"axis-fixed", "axis-opened", "table-shortened"})


def bucket_mismatches(models: Sequence[ModelFacts]) -> dict[str, tuple[str, ...]]:
    """What besides the shape differs from the first model, in sentences by path; empty for a sound set.

    Two models of the same shape are a mismatch too: one of them is never chosen, or stands where another should.
    """
    found: dict[str, tuple[str, ...]] = {}
    shapes: dict[tuple[object, ...], str] = {}
    for model in models:
        twin = shapes.setdefault(_shape_of(model), model.path)
        sentences = [] if twin == model.path else [f"it has the same input shapes as {file_name(twin)}"]
        if model is not models[0]:
            sentences += _besides_shape(models[0], model)
        if sentences:
            found[model.path] = tuple(sentences)
    return found


def _shape_of(model: ModelFacts) -> tuple[object, ...]:
    return tuple(entry.shape for entry in model.inputs if not entry.weight)


def _besides_shape(first: ModelFacts, model: ModelFacts) -> list[str]:
    """Both ways, as what the first lacks is a mismatch as well."""
    forth = [*input_differences(first, model), *wiring_differences(first, model), *output_differences(first, model)]
    there = {(entry.kind, entry.input, entry.output) for entry in forth}
    back = [
        dataclasses.replace(entry, sentence=f"seen from {file_name(first.path)}: {entry.sentence}")
        for entry in (*wiring_differences(model, first), *output_differences(model, first))
        if entry.lost and (entry.kind, entry.input, entry.output) not in there and not entry.kind.endswith(("order", "dropped"))
    ]
    return [
        entry.sentence
        for entry in (*forth, *back)
        if entry.kind not in _SHAPES and (entry.lost or entry.kind.endswith("-added"))
    ]
