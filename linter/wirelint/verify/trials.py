"""Runs a model on batches that differ in one thing, and says by how much each output differs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from wirelint.shadow.shapes import Sizes
from wirelint.verify.compare import Change, Layout, change, layout_of, worst
from wirelint.verify.inputs import Batch, Content, Inputs, UnfeedableError
from wirelint.verify.process import Feed, RunError, Runner
from wirelint.verify.protocol import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirelint.facts import OutputFacts

__all__ = ["CONTENTS", "Measured", "SideTrials", "Trial", "fitting", "run_side"]

CONTENTS = (Content(padded=1), Content(padded=2), Content(padded=3, scale=30.0))
"""What is put into padded positions in place of the padding id, or of zeros."""


@dataclass(slots=True)
class Trial:
    """One thing that was changed.

    Attributes:
        changes: by output, in order; None where nothing can be compared.
        failed: why it did not run; empty when it did.
    """

    changes: list[Change | None] = field(default_factory=list)
    failed: str = ""


@dataclass(slots=True)
class Measured:
    """What running showed of one output under one padding side.

    Attributes:
        numbers: it holds numbers.
        discrete: integers or truth values.
        finite: it is free of NaN and infinities at real positions.
        rows: rows that can be told apart in it.
    """

    numbers: bool
    discrete: bool = False
    finite: bool = True
    rows: int = 1


@dataclass(slots=True)
class SideTrials:
    """All trials under one padding side.

    Attributes:
        batch: what was fed.
        feeds: the inputs, with the padding id, or zeros, in padded positions.
        outputs: what the model gave for them.
        measured: each output.
        layouts: of each output, None for one that holds no numbers.
        content: other content in padded positions; the largest change over :data:`CONTENTS`.
        between: the change between two other contents, neither of which is the padding id.
        longer: the same rows with more padding.
        alone: the first row without padding and company.
        others: other content in the other rows; what the first row gives.
        unmasked: a mask that says that nothing is padding; the whole output.
        real: other content at the real positions of all rows but the first; the whole output.
    """

    batch: Batch
    feeds: list[Feed]
    outputs: list[Array | None]
    measured: list[Measured]
    layouts: list[Layout | None]
    content: Trial = field(default_factory=Trial)
    between: Trial = field(default_factory=Trial)
    longer: Trial = field(default_factory=Trial)
    alone: Trial = field(default_factory=Trial)
    others: Trial = field(default_factory=Trial)
    unmasked: Trial = field(default_factory=Trial)
    real: Trial = field(default_factory=Trial)

    @property
    def padded(self) -> bool:
        """Some position is padding."""
        return any(not sequence.real.all() for sequence in self.batch.scenario.sequences)


def fitting(runner: Runner, inputs: Inputs, sizes: Sizes, outputs: Sequence[OutputFacts]) -> tuple[Sizes, list[str]]:
    """Sizes at which the runtime takes the model: three rows, else what the shadow run took.

    Returns:
        The sizes, and what was refused before, in words.

    Raises:
        RunError: none of them runs.
        UnfeedableError: no inputs can be made.
    """
    tries = dict.fromkeys([replace(sizes, batch=3) if sizes.batch == 2 else sizes, sizes, replace(sizes, batch=1)])
    refused: list[str] = []
    for attempt in tries:
        batch = inputs.batch("right", attempt)
        try:
            made = runner.run(inputs.feeds(batch, Content()))
        except RunError as error:
            refused.append(f"at {_said(batch)}: {error}")
            continue
        wrong = _wrong_rows(made, batch, outputs)
        if not wrong:
            return attempt, refused
        refused.append(f"at {_said(batch)}: {wrong}")
    raise RunError(refused[0])


def _said(batch: Batch) -> str:
    rows, main = batch.scenario.batch, batch.scenario.main
    return f"{rows} row{'s' if rows != 1 else ''}" + ("" if main is None else f" of {main.length} positions")


def _wrong_rows(made: Sequence[Array | None], batch: Batch, outputs: Sequence[OutputFacts]) -> str:
    """A runtime may answer a shape that does not fit a baked one with fewer rows than it was fed."""
    rows = batch.scenario.batch
    for array, fact in zip(made, outputs, strict=False):
        symbolic = fact.shape is not None and bool(fact.shape) and not isinstance(fact.shape[0], int)
        if array is not None and symbolic and array.ndim and array.shape[0] < rows and rows > 1 and array.shape[0] > 1:
            return f"output '{fact.name}' has {array.shape[0]} rows for {rows}"
    return ""


def run_side(runner: Runner, inputs: Inputs, side: str, sizes: Sizes, outputs: Sequence[OutputFacts]) -> SideTrials:
    """Runs every trial under one padding side.

    Raises:
        RunError: the model does not run with this padding at all.
        UnfeedableError: no inputs can be made.
    """
    batch = inputs.batch(side, sizes)
    feeds = inputs.feeds(batch, Content())
    base = runner.run(feeds)
    layouts = [None if array is None else _layout(array, batch, fact) for array, fact in zip(base, outputs, strict=True)]
    trials = SideTrials(batch, feeds, base, [_measured(*pair) for pair in zip(base, layouts, strict=True)], layouts)
    run = _Comparison(runner, inputs, trials)
    if trials.padded:
        _padding(run, trials)
        trials.longer = run.reshaped(lambda: inputs.longer(batch), outputs)
        trials.alone = run.reshaped(lambda: inputs.alone(batch), outputs, rows=1)
        if any(feed.role in ("mask", "decoder_mask", "pixel_mask") for feed in feeds):
            trials.unmasked = run.whole(Content(padded=1), Content(padded=1, masked=False))
    if batch.scenario.batch > 1:
        trials.others = run.first_row(Content(others=1))
        trials.real = run.whole(Content(), Content(others=1))
    return trials


def _padding(run: _Comparison, trials: SideTrials) -> None:
    made = [run.outputs(content) for content in CONTENTS]
    failed = next((entry for entry in made if isinstance(entry, str)), "")
    given = [entry for entry in made if not isinstance(entry, str)]
    if not given:
        trials.content = trials.between = Trial(failed=failed)
        return
    trials.content = _largest([run.real(trials.outputs, other) for other in given])
    trials.between = _largest([run.real(given[0], other) for other in given[1:]]) if len(given) > 1 else Trial(failed=failed)


def _largest(trials: Sequence[Trial]) -> Trial:
    columns = zip(*(trial.changes for trial in trials), strict=True)
    return Trial([worst(known) if (known := [entry for entry in column if entry is not None]) else None for column in columns])


def _layout(array: Array, batch: Batch, fact: OutputFacts) -> Layout:
    return layout_of(array.shape, batch.scenario, fact.sequence_axis)


def _measured(array: Array | None, layout: Layout | None) -> Measured:
    if array is None or layout is None:
        return Measured(numbers=False)
    rows = [layout.row(array, row) for row in range(layout.row_count)]
    discrete = array.dtype.kind in "biu"
    finite = discrete or all(bool(np.isfinite(row.astype(np.float64)).all()) for row in rows)
    return Measured(numbers=True, discrete=discrete, finite=finite, rows=layout.row_count)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Runs with other content or shapes, held against the first run."""

    runner: Runner
    inputs: Inputs
    trials: SideTrials

    def outputs(self, content: Content) -> list[Array | None] | str:
        """The outputs, or why there are none."""
        try:
            return self.runner.run(self.inputs.feeds(self.trials.batch, content))
        except RunError as error:
            return str(error)

    def real(self, one: Sequence[Array | None], other: Sequence[Array | None]) -> Trial:
        """All rows, at real positions."""
        return Trial([self._rows(*entry) for entry in zip(one, other, self.trials.layouts, strict=True)])

    def _rows(self, one: Array | None, other: Array | None, layout: Layout | None) -> Change | None:
        if one is None or other is None or layout is None or one.shape != other.shape:
            return None
        rows = range(layout.row_count)
        found = [change(layout.row(one, row), layout.row(other, row), row=row, pooled=layout.axis is None) for row in rows]
        known = [entry for entry in found if entry is not None]
        return worst(known) if known else None

    def first_row(self, content: Content) -> Trial:
        """The first row, when something else was changed."""
        made = self.outputs(content)
        if isinstance(made, str):
            return Trial(failed=made)
        found: list[Change | None] = []
        for one, other, layout in zip(self.trials.outputs, made, self.trials.layouts, strict=True):
            comparable = one is not None and other is not None and layout is not None and one.shape == other.shape
            found.append(
                change(layout.row(one, 0), layout.row(other, 0), pooled=layout.axis is None)
                if comparable and one is not None and other is not None and layout is not None
                else None
            )
        return Trial(found)

    def whole(self, one: Content, other: Content) -> Trial:
        """Everything, padded positions too."""
        first, second = self.outputs(one), self.outputs(other)
        if isinstance(first, str) or isinstance(second, str):
            return Trial(failed=first if isinstance(first, str) else str(second))
        return Trial(
            [
                None if left is None or right is None else change(left[None], right[None], pooled=True)
                for left, right in zip(first, second, strict=True)
            ]
        )

    def reshaped(self, make: Callable[[], Batch], outputs: Sequence[OutputFacts], rows: int | None = None) -> Trial:
        """The first rows in another batch, at real positions."""
        try:
            batch = make()
            made = self.runner.run(self.inputs.feeds(batch, Content()))
        except (RunError, UnfeedableError) as error:
            return Trial(failed=str(error))
        found: list[Change | None] = []
        for one, other, layout, fact in zip(self.trials.outputs, made, self.trials.layouts, outputs, strict=True):
            if one is None or other is None or layout is None or one.ndim != other.ndim:
                found.append(None)
                continue
            there = replace(_layout(other, batch, fact), rows=layout.rows)
            changes = [
                change(layout.row(one, row), there.row(other, row), row=row, pooled=layout.axis is None)
                for row in range(min(layout.row_count, rows or layout.row_count))
            ]
            known = [entry for entry in changes if entry is not None]
            found.append(worst(known) if known else None)
        return Trial(found)
