"""Models that were compiled from one source for several fixed shapes must differ in these alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.compare.difference import Difference, file_name
from wirelint.compare.inputs import input_differences
from wirelint.compare.outputs import output_differences
from wirelint.compare.wiring import wiring_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.facts import ModelFacts

__all__ = ["bucket_mismatches"]

_SHAPES = frozenset({"axis-fixed", "axis-opened", "table-shortened"})


def bucket_mismatches(models: Sequence[ModelFacts]) -> dict[str, tuple[str, ...]]:
    """What besides the shape differs from what most of the models are, in sentences by path; empty for a sound set.

    The yardstick is the model that the fewest others differ from, the first of several: the odd one out is named, wherever it
    stands. Two models of the same shape are a mismatch too: one of them is never chosen, or stands where another should.
    """
    differing = [{id(other): _besides_shape(model, other) for other in models if other is not model} for model in models]
    besides = min(differing, key=lambda said: sum(map(bool, said.values())), default={})
    found: dict[str, tuple[str, ...]] = {}
    shapes: dict[tuple[object, ...], str] = {}
    for model in models:
        twin = shapes.setdefault(_shape_of(model), model.path)
        sentences = [] if twin == model.path else [f"it has the same input shapes as {file_name(twin)}"]
        sentences += besides.get(id(model), [])
        if sentences:
            found[model.path] = tuple(sentences)
    return found


def _shape_of(model: ModelFacts) -> tuple[object, ...]:
    return tuple(entry.shape for entry in model.inputs if not entry.weight)


def _besides_shape(first: ModelFacts, model: ModelFacts) -> list[str]:
    """What the model lost or changed against another, and then what it has that the other lacks."""
    here, there = file_name(first.path), file_name(model.path)
    forth = _differences(first, model, here)
    known = {(entry.kind, entry.input, entry.output) for entry in forth}
    back = [
        f"for {here}: {entry.sentence}"
        for entry in _differences(model, first, there)
        if entry.lost
        and (entry.kind, entry.input, entry.output) not in known
        and not entry.kind.startswith(("input-", "output-"))
    ]
    return [entry.sentence for entry in forth if entry.lost or entry.kind.endswith("-added")] + back


def _differences(reference: ModelFacts, model: ModelFacts, source: str) -> list[Difference]:
    found = (
        *input_differences(reference, model, source),
        *wiring_differences(reference, model, source),
        *output_differences(reference, model, source),
    )
    return [entry for entry in found if entry.kind not in _SHAPES]
