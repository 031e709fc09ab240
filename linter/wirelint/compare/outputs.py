"""What became of a reference's outputs and of what was guaranteed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.compare.difference import ERROR, NOTE, REFERENCE, WARNING, Difference
from wirelint.compare.matching import match_outputs, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import ModelFacts, OutputFacts

__all__ = ["output_differences"]

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


def output_differences(reference: ModelFacts, model: ModelFacts, source: str = REFERENCE) -> Iterator[Difference]:
    """Outputs that were dropped, added, renamed, reordered or retyped, and guarantees that no longer hold."""
    matched = match_outputs(reference.outputs, model.outputs)
    pairs = [(old, new) for old, new in matched if new is not None]
    for old, new in matched:
        if new is None:
            yield Difference("output-dropped", ERROR, f"output '{old.name}' of {source} is gone", output=old.index)
    kept = {new.index for _, new in pairs}
    for entry in model.outputs:
        if entry.index not in kept:
            yield Difference("output-added", NOTE, f"output '{entry.name}' is not in {source}", output=entry.index)
    acting = {entry.role for entry in model.inputs if entry.used}
    for old, new in pairs:
        yield from _form(old, new, source)
        yield from _guarantees(old, new, source, model.expect.pads or reference.expect.pads or "right")
        lost = [role for role in old.depends_on if role in acting and role not in new.depends_on]
        if lost and new.finite and not new.unmodelled:
            sentence = f"output '{new.name}' does not depend on {', '.join(lost)} here, and does in {source}"
            yield Difference("dependence-lost", ERROR, sentence, output=new.index)
    yield from _order(pairs, source)


def _form(old: OutputFacts, new: OutputFacts, source: str) -> Iterator[Difference]:
    if not names_of(old) & names_of(new):
        sentence = f"output {new.index} is called '{new.name}' here and '{old.name}' in {source}"
        yield Difference("output-renamed", WARNING, sentence, output=new.index)
    if old.dtype != new.dtype and "unknown" not in (old.dtype, new.dtype):
        sentence = f"output '{new.name}' is {new.dtype} here and {old.dtype} in {source}"
        # Another width goes with another precision, which is chosen.
        severity = NOTE if {old.dtype, new.dtype} <= _FLOATS else WARNING
        yield Difference("output-retyped", severity, sentence, output=new.index)
    if old.pooled != new.pooled:
        sentence = f"output '{new.name}' {_per(new)} here and {_per(old)} in {source}"
        yield Difference("output-pooled", ERROR, sentence, output=new.index)


def _per(entry: OutputFacts) -> str:
    return "is pooled" if entry.pooled else "has one value per position"


def _guarantees(old: OutputFacts, new: OutputFacts, source: str, pads: str) -> Iterator[Difference]:
    """Padding that can't be seen, rows that do not depend on each other, values that are numbers.

    What could be shown for the reference and can't be for the model is a note: it may still hold.  So is what happens under
    padding on the other side than the tokenizer pads.
    """
    for side in ("right", "left"):
        was, now = getattr(old.padding, side), getattr(new.padding, side)
        if was != "safe" or now not in ("leaks", "unknown"):
            continue
        if now == "leaks":
            severity = ERROR if side == pads else NOTE
            sentence = f"padding on the {side} changes output '{new.name}' here and not in {source}"
        else:
            severity = NOTE
            sentence = f"that padding on the {side} can't change output '{new.name}' is shown for {source} only"
        yield Difference("padding-lost", severity, sentence, output=new.index)
    if old.batch == "independent" and new.batch == "mixes":
        sentence = f"rows of a batch change each other's output '{new.name}' here and not in {source}"
        yield Difference("rows-lost", ERROR, sentence, output=new.index)
    if new.length_right and not old.length_right:
        sentence = f"output '{new.name}' depends on how much padding there is here and not in {source}"
        yield Difference("padding-lost", ERROR, sentence, output=new.index)
    if old.finite and not new.finite:
        yield Difference("not-finite", ERROR, f"output '{new.name}' is NaN here and not in {source}", output=new.index)


def _order(pairs: Sequence[tuple[OutputFacts, OutputFacts]], source: str) -> Iterator[Difference]:
    indices = [new.index for _, new in pairs]
    if indices != sorted(indices):
        sentence = f"the outputs come in another order than in {source}; read them by name"
        yield Difference("output-order", WARNING, sentence)
