"""Holds a model against the one that it was made from: the same inputs, by role, and the outputs that both have."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.verify.agreement import Difference, differences, tolerance
from wirelint.verify.inputs import Batch, Content, Inputs, UnfeedableError
from wirelint.verify.paths import Path
from wirelint.verify.process import Feed, Runner, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.analysis import Examination
    from wirelint.shadow.shapes import Sizes
    from wirelint.verify.bisect import Parting
    from wirelint.verify.compare import Layout

__all__ = ["Against", "Side", "compare", "shared_batches", "shared_feeds"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two models.

    Attributes:
        path: its file.
        on: where it runs.
        examined: what is known about it.
        inputs: makes its inputs.
    """

    path: str
    on: Path
    examined: Examination
    inputs: Inputs


@dataclass(slots=True)
class Against:
    """What comparing with a reference gave.

    Attributes:
        reference: its path, as it was given.
        paired: outputs of the model with those of the reference that they were compared with.
        alone: outputs of the model that the reference does not have.
        own_inputs: inputs that only one of the two has, in words.
        differences: output by output.
        stopped: why nothing could be compared; empty when something was.
        parting: where they part, when that was looked for.
    """

    reference: str
    paired: dict[str, str] = field(default_factory=dict)
    alone: list[str] = field(default_factory=list)
    own_inputs: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    stopped: str = ""
    parting: Parting | None = None

    @property
    def parted(self) -> list[Difference]:
        """Outputs that differ beyond rounding."""
        return [entry for entry in self.differences if entry.beyond]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "outputs": self.paired,
            "only_in_model": self.alone,
            "inputs_of_one": self.own_inputs,
            "differences": [entry.as_dict() for entry in self.differences],
            "stopped": self.stopped or None,
            "parting": None if self.parting is None else self.parting.as_dict(),
        }


def compare(
    worker: Worker, model: Side, reference: Side, batches: tuple[Batch, Batch], layouts: Sequence[Layout | None]
) -> tuple[Against, tuple[list[Feed], list[Feed]]]:
    """Runs both on the same rows and compares what they give at real positions.

    Args:
        worker: runs them.
        model: the one.
        reference: the other.
        batches: of each; see :func:`shared_batches`.
        layouts: of the model's outputs.

    Returns:
        What was found, and what was fed to each.

    Raises:
        RunError: one of them does not run.
    """
    made = Against(reference.path)
    feeds, made.own_inputs = shared_feeds(model, reference, batches)
    given = Runner(worker, model.path, model.on).run(feeds[0])
    expected = Runner(worker, reference.path, reference.on).run(feeds[1])
    names = [output.name for output in model.examined.facts.outputs]
    others = [output.name for output in reference.examined.facts.outputs]
    pairs = _paired(names, others)
    made.alone = [name for at, name in enumerate(names) if at not in pairs]
    allowed = max(
        tolerance(kind, side.on) for side in (model, reference) for kind in (side.examined.facts.precision, _stored(side))
    )
    for at, to in pairs.items():
        made.paired[names[at]] = others[to]
        made.differences += differences(
            [names[at]], [layouts[at]], (reference.path, [expected[to]]), (model.path, [given[at]]), allowed
        )
    return made, feeds


def _stored(side: Side) -> str:
    """The coarsest type that weights are stored in: converters compress them although the model computes in fp32."""
    kinds = {
        value.constant.dtype
        for op in side.inputs.graph.walk()
        for value in op.inputs
        if value is not None and value.constant is not None and len(value.constant.shape) > 1
    }
    coarse = {DType.BF16: "bf16", DType.F16: "fp16"}
    return next((name for kind, name in coarse.items() if kind in kinds), "fp32")


def _paired(names: Sequence[str], others: Sequence[str]) -> dict[int, int]:
    """Outputs by name; by position where the names were changed and the numbers agree."""
    found = {at: others.index(name) for at, name in enumerate(names) if name in others}
    if not found and len(names) == len(others):
        return {at: at for at in range(len(names))}
    return found


def shared_feeds(model: Side, reference: Side, batches: tuple[Batch, Batch]) -> tuple[tuple[list[Feed], list[Feed]], list[str]]:
    """The inputs of both; those of the same role hold the same numbers.

    Returns:
        The inputs of each, and in words those that only one of them has.
    """
    mine = model.inputs.feeds(batches[0], Content())
    theirs = reference.inputs.feeds(batches[1], Content())
    left = list(range(len(mine)))
    made: list[Feed] = []
    said: list[str] = []
    for feed in theirs:
        same = next((at for at in left if mine[at].role == feed.role and mine[at].array.shape == feed.array.shape), None)
        if same is None:
            made.append(feed)
            said.append(f"only the reference takes {_named(feed)}")
            continue
        left.remove(same)
        made.append(replace(feed, array=mine[same].array.astype(feed.array.dtype)))
    said += [f"only the model takes {_named(mine[at])}" for at in left]
    return (mine, made), said


def _named(feed: Feed) -> str:
    return f"'{feed.names[0]}' ({feed.role})" if feed.names else f"an unnamed input ({feed.role})"


def shared_batches(model: Side, reference: Side, sizes: Sizes) -> tuple[Batch, Batch]:
    """Batches of the same rows, padded alike, that the shapes of both models allow.

    Raises:
        UnfeedableError: there are none, because both fix their shapes.
    """
    mine, theirs = model.inputs.batch("right", sizes), reference.inputs.batch("right", sizes)
    if not _alike(mine, theirs):
        # One of them fixes its shapes: the other takes those.
        for fixed in (theirs, mine):
            main = fixed.scenario.main
            again = replace(sizes, batch=fixed.scenario.batch, length=sizes.length if main is None else main.length)
            mine, theirs = model.inputs.batch("right", again), reference.inputs.batch("right", again)
            if _alike(mine, theirs):
                break
    if not _alike(mine, theirs):
        raise UnfeedableError("the model and the reference fix different shapes")
    return mine, theirs


def _alike(one: Batch, other: Batch) -> bool:
    first, second = one.scenario.main, other.scenario.main
    if one.scenario.batch != other.scenario.batch:
        return False
    return (
        first is None
        or second is None
        or (first.real.shape == second.real.shape and bool(np.array_equal(first.real, second.real)))
    )
