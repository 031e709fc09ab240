"""Holds each static verdict against what running showed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelint.verify.compare import Change, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.facts import ModelFacts, OutputFacts
    from wirelint.verify.trials import SideTrials, Trial

__all__ = ["ROUNDING", "Claim", "Status", "judge_batch", "judge_mask", "judge_padding"]

ROUNDING = 16.0
"""Units of the last place up to which two runs of one model on the same shapes count as the same."""
_RESHAPED = 1e-3
"""Relative difference up to which a row counts as the same in another shape: other kernels sum in another order."""
_COARSE = ("int8", "fp16", "bf16", "mixed")
"""Precisions that may round a small influence away."""


class Status(str, enum.Enum):
    """How a verdict fared."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_MEASURABLE = "not measurable"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Claim:
    """One static verdict beside its measurement.

    Attributes:
        question: ``padding right``, ``padding left``, ``batch`` or ``mask``.
        output: name of the output.
        verdict: what the static analysis says.
        status: how it fared.
        measured: what running showed, or why nothing could be shown.
        counterexample: the change that shows a dependence.
        fault: what running showed is a fault for those who use the model as its companions say.
    """

    question: str
    output: str
    verdict: str
    status: Status
    measured: str
    counterexample: Change | None = None
    fault: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "output": self.output,
            "verdict": self.verdict,
            "status": self.status.value,
            "measured": self.measured,
            "counterexample": None if self.counterexample is None else self.counterexample.as_dict(),
            "fault": self.fault,
        }


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about one output."""

    question: str
    output: str
    verdict: str

    def confirmed(self, measured: str, found: Change | None = None, *, fault: bool = False) -> Claim:
        return Claim(self.question, self.output, self.verdict, Status.CONFIRMED, measured, found, fault)

    def refuted(self, measured: str, found: Change | None = None) -> Claim:
        return Claim(self.question, self.output, self.verdict, Status.REFUTED, measured, found)

    def open(self, why: str, found: Change | None = None, *, fault: bool = False) -> Claim:
        return Claim(self.question, self.output, self.verdict, Status.NOT_MEASURABLE, why, found, fault)


def _moved(found: Change | None) -> bool:
    return found is not None and found.units > ROUNDING


def _at(trial: Trial, index: int) -> Change | None:
    return trial.changes[index] if index < len(trial.changes) else None


def judge_padding(facts: ModelFacts, trials: SideTrials, side: str, *, told_by_id: bool) -> Iterator[Claim]:
    """The padding verdict of each output on one side.

    Args:
        facts: of the model.
        trials: under that side.
        side: ``right`` or ``left``.
        told_by_id: the graph compares ids with a constant, so that a padded position with another id is none any more.
    """
    for fact in facts.outputs:
        verdict = getattr(fact.padding, side)
        if verdict == "n/a":
            continue
        asked = _Asked(f"padding {side}", fact.name, verdict)
        why = _incomparable(fact.index, trials) or ("" if trials.padded else "its length leaves no room for padding")
        counts = facts.expect.pads == side or (side == "right" and facts.expect.pads != "left")
        yield asked.open(why) if why else _padding(asked, fact, facts, trials, side, told_by_id=told_by_id, counts=counts)


def _padding(
    asked: _Asked, fact: OutputFacts, facts: ModelFacts, trials: SideTrials, side: str, *, told_by_id: bool, counts: bool
) -> Claim:
    if trials.content.failed:
        return asked.open(f"with other content in padded positions it does not run: {trials.content.failed}")
    found = _at(trials.content, fact.index)
    if found is None:
        return asked.open("its shape depends on what stands in padded positions")
    if asked.verdict == "unknown":
        seen = f"with other content in padded positions it changes: {found}" if _moved(found) else "running shows no dependence"
        return asked.open(f"there is no verdict to measure; {seen}", found if _moved(found) else None)
    if asked.verdict == "safe":
        return _safe(asked, fact, trials, found, told_by_id=told_by_id)
    if _moved(found):
        scale = getattr(fact, f"scale_{side}")
        how = ", through a quantisation scale alone" if scale else ""
        return asked.confirmed(
            f"other content in padded positions changes it{how} by {found}", found, fault=counts and not scale
        )
    return _unseen(asked, fact, facts, trials, "padded positions")


def _safe(asked: _Asked, fact: OutputFacts, trials: SideTrials, found: Change, *, told_by_id: bool) -> Claim:
    if not _moved(found):
        exactly = (
            "does not change one bit of it"
            if found.units == 0
            else f"changes it by no more than {found.units:.2g} units of the last place"
        )
        return asked.confirmed(f"other content in padded positions {exactly}{_further(fact, trials, asked)}")
    if not told_by_id:
        return asked.refuted(f"other content in padded positions changes it by {found}", found)
    same = [
        trial.failed == "" and (entry := _at(trial, fact.index)) is not None and entry.relative <= _RESHAPED
        for trial in (trials.longer, trials.alone)
    ]
    if any(same):
        which = " and ".join(
            name for name, held in zip(("with more padding", "alone without padding"), same, strict=True) if held
        )
        return asked.confirmed(
            f"padding is told by its id, so that no other content can stand there; each row gives the same {which}"
        )
    return asked.open(
        "padding is told by its id, so that no other content can stand there, and no other amount of it can be compared"
    )


def _further(fact: OutputFacts, trials: SideTrials, asked: _Asked) -> str:
    """What else was seen of an output that does not read padded content."""
    said = []
    for words, trial in (("more padding", trials.longer), ("no padding and no other row", trials.alone)):
        entry = _at(trial, fact.index)
        if not trial.failed and entry is not None:
            moved = ", since real positions move" if asked.question == "padding left" else ""
            same = entry.relative <= _RESHAPED
            said.append(f"with {words} it {'stays the same' if same else f'changes by {_size(entry)}{moved}'}")
    return "".join(f"; {text}" for text in said)


def _unseen(asked: _Asked, fact: OutputFacts, facts: ModelFacts, trials: SideTrials, what: str) -> Claim:
    """A dependence that running did not show: refuted where real content moves the output and nothing rounds or hides it."""
    if trials.measured[fact.index].discrete:
        why = "it holds whole numbers, which small influences do not move"
    elif facts.precision in _COARSE:
        why = f"{facts.precision} may round the influence away"
    elif not _moved(_at(trials.real, fact.index)):
        why = "nor does real content"
    else:
        return asked.refuted(f"no content of {what} that was tried changes it by one bit, and real content does")
    return asked.open(f"no content of {what} that was tried changes it; {why}")


def _incomparable(index: int, trials: SideTrials) -> str:
    measured = trials.measured[index]
    if not measured.numbers:
        return "it holds no numbers"
    if not measured.finite:
        return "it is NaN or infinite for an ordinary batch, and a comparison with that means nothing"
    return ""


def judge_batch(facts: ModelFacts, trials: SideTrials) -> Iterator[Claim]:
    """The batch verdict of each output."""
    for fact in facts.outputs:
        asked = _Asked("batch", fact.name, fact.batch)
        if trials.batch.scenario.batch < 2:
            yield asked.open("it takes one row at a time")
        elif why := _incomparable(fact.index, trials):
            yield asked.open(why)
        elif trials.others.failed:
            yield asked.open(f"with other rows it does not run: {trials.others.failed}")
        else:
            yield _batch(asked, fact, facts, trials)


def _batch(asked: _Asked, fact: OutputFacts, facts: ModelFacts, trials: SideTrials) -> Claim:
    found = _at(trials.others, fact.index)
    if found is None:
        return asked.open("its shape depends on the other rows")
    moved = _moved(found)
    if asked.verdict == "unknown":
        seen = f"other rows change it: {found}" if moved else "running shows no dependence"
        return asked.open(f"there is no verdict to measure; {seen}", found if moved else None)
    if asked.verdict == "mixes":
        if moved:
            how = ", through a quantisation scale alone," if fact.rows_by_scale else ""
            return asked.confirmed(
                f"other rows change{how} what the first one gives by {found}", found, fault=not fact.rows_by_scale
            )
        return _unseen(asked, fact, facts, trials, "other rows")
    if not moved:
        return asked.confirmed("other rows do not change what the first one gives")
    if trials.measured[fact.index].rows < 2:
        return asked.open("its rows can't be told apart")
    return asked.refuted(f"other rows change what the first one gives by {found}", found)


def judge_mask(facts: ModelFacts, trials: SideTrials) -> Iterator[Claim]:
    """Whether the mask acts on each output, padded positions included."""
    masks = {"mask", "decoder_mask", "pixel_mask"} & facts.roles()
    if not masks or not trials.padded:
        return
    for fact in facts.outputs:
        acts = bool(masks & set(fact.depends_on))
        asked = _Asked("mask", fact.name, "acts" if acts else "does not act")
        found = _at(trials.unmasked, fact.index)
        if why := _incomparable(fact.index, trials):
            yield asked.open(why)
        elif trials.unmasked.failed:
            yield asked.open(f"with a mask of nothing but ones it does not run: {trials.unmasked.failed}")
        elif found is None:
            yield asked.open("its shape depends on the mask")
        elif _moved(found) and acts:
            yield asked.confirmed(f"a mask that hides nothing changes it by {_size(found)}", found)
        elif _moved(found):
            yield (asked.open if not facts.executed else asked.refuted)(
                f"a mask that hides nothing changes it by {_size(found)}", found
            )
        elif acts:
            yield asked.open("a mask that hides nothing gives the same: for these inputs it has no effect")
        else:
            yield asked.confirmed("a mask that hides nothing gives the same")


def _size(found: Change) -> str:
    """A change without its place, where places are of the whole output."""
    if np.isinf(found.relative):
        return f"{found.before:.6g} to {found.after:.6g}"
    return f"{share(found.relative)} of the output's scale"
