"""Finds sizes at which a model executes, and runs it there under right and left padding.

A model that refuses the first sizes is tried at others, nearest first: what it refuses and what it accepts tell which
dimensions an export has baked in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wirelint.graph import Graph, Op
from wirelint.shadow.frames import settle_frames
from wirelint.shadow.interpreter import Constants, Run, run
from wirelint.shadow.scenario import MaskForm, Scenario, build
from wirelint.shadow.shapes import Sizes
from wirelint.trace.roles import Trace

__all__ = ["Execution", "Refusal", "execute"]

_MOST_ATTEMPTS = 14
_LONGEST = 4096
_MOST_FRAMES = 4000
_FEWEST = 6


@dataclass(frozen=True, slots=True)
class Refusal:
    """Sizes that the declared shapes allow and an operator does not.

    Attributes:
        sizes: what was tried.
        op: where it failed.
        reason: why.
    """

    sizes: Sizes
    op: Op
    reason: str


@dataclass(slots=True)
class Execution:
    """The shadow runs of a model.

    Attributes:
        right, left: scenario and run for each padding side.
        refusals: sizes that were refused before one was accepted.
        sizes: the sizes of the right-padded run.
        sides: both, for iteration.
    """

    right: tuple[Scenario, Run]
    left: tuple[Scenario, Run]
    refusals: list[Refusal] = field(default_factory=list)
    sizes: Sizes = field(default_factory=Sizes)
    accepted: bool = True

    @property
    def sides(self) -> dict[str, tuple[Scenario, Run]]:
        return {"right": self.right, "left": self.left}


class _Runner:
    def __init__(
        self, graph: Graph, trace: Trace, constants: Constants, pad_id: int | None, unpadded: frozenset[str], *, branch: bool
    ) -> None:
        self.graph, self.trace, self.constants, self.pad_id, self.branch = graph, trace, constants, pad_id, branch
        self.unpadded = unpadded
        self.watch = {site.op for site in trace.sites}

    def run(self, side: str, sizes: Sizes, forms: Mapping[int, MaskForm]) -> tuple[Scenario, Run]:
        scenario = build(
            self.graph, self.trace, side, sizes, forms, pad_id=self.pad_id, branch=self.branch, unpadded=self.unpadded
        )
        free = scenario.length if scenario.length is not None and scenario.length == sizes.length else None
        done = run(
            self.graph,
            scenario.bindings,
            scenario.layout,
            length=free,
            symbols=scenario.symbols,
            constants=self.constants,
            watch=self.watch,
        )
        settle_frames(self.graph, scenario, done)
        return scenario, done


def _neighbours(sizes: Sizes, stopped: Run, scenario: Scenario, trace: Trace) -> list[Sizes]:
    """Other sizes worth a try, given what was refused."""
    assert stopped.stop is not None
    # A prompt comes first: some operators take several tokens of several rows only before there is a cache.
    found: list[Sizes] = [replace(sizes, past=0)] if sizes.past and trace.inputs_of("past") else []
    accepted = [size for size in stopped.stop.sizes if 1 < size <= _LONGEST and size not in (sizes.length, sizes.batch)]
    if sizes.batch != 1:
        found.append(replace(sizes, batch=1))
    roles = {sequence.role for sequence in scenario.sequences}
    if roles & {"ids", "decoder_ids"}:
        found += [replace(sizes, length=size) for size in accepted]
        found += [replace(sizes, batch=1, length=size) for size in accepted if sizes.batch != 1]
        if sizes.batch != 1:
            # A baked batch of another size shows as a multiple: batch times heads, for example.
            found += [replace(sizes, batch=size) for size in accepted if size <= 64]
    if "encoder_states" in roles or {"ids", "decoder_ids"} <= roles:
        found += [replace(sizes, other=size) for size in accepted]
    if "features" in roles:
        found += [replace(sizes, frames=size) for size in (16, *accepted, 64, 128, 400, 1600, 3000) if size != sizes.frames]
    if not roles & {"ids", "decoder_ids"} or "pixels" in roles:
        found += [replace(sizes, pixels=size) for size in (*accepted, 64, 224, 30, 28, 384) if size != sizes.pixels]
    found.append(replace(sizes, length=16, other=24))
    return found


def _too_short(trace: Trace, scenario: Scenario, done: Run) -> bool:
    """Attention over continuous features sees only a handful of positions."""
    if scenario.main is None or scenario.main.role != "features" or scenario.main.static:
        return False
    lengths = [seen["weights"].shape[-1] for seen in done.observed.values() if "weights" in seen and seen["weights"].rank]
    return bool(trace.sites) and bool(lengths) and min(lengths) < _FEWEST


def execute(
    graph: Graph,
    trace: Trace,
    constants: Constants,
    forms: Mapping[int, MaskForm],
    *,
    pad_id: int | None = None,
    branch: bool = False,
    unpadded: frozenset[str] = frozenset(),
) -> Execution:
    """Runs a model right-padded and left-padded, at sizes that it accepts; roles in ``unpadded`` never get any padding.

    The two runs have different lengths where the model leaves the length open, so that an axis over positions shows by
    its change.
    """
    runner = _Runner(graph, trace, constants, pad_id, unpadded, branch=branch)
    # Where new keys stand behind each row's own past ones, rows of other lengths share a batch in a prompt only.
    prompt = any(site.op.attrs.get("append") == "row" for site in trace.sites)
    first = Sizes(past=0) if prompt else Sizes()
    queue, tried, refusals = [first], {first}, list[Refusal]()
    best: tuple[Sizes, Scenario, Run] | None = None
    furthest = -1
    for _ in range(_MOST_ATTEMPTS):
        if not queue:
            break
        sizes = queue.pop(0)
        scenario, done = runner.run("right", sizes, forms)
        reached = len(done.values)
        if done.stop is None or not done.stop.refused:
            best = (sizes, scenario, done)
            break
        refusals.append(Refusal(sizes, done.stop.op, done.stop.reason))
        if reached > furthest:
            furthest, best = reached, (sizes, scenario, done)
        for other in _neighbours(sizes, done, scenario, trace):
            if other not in tried:
                tried.add(other)
                queue.append(other)
    assert best is not None
    sizes, scenario, done = best
    if refusals and done.stop is None and sizes.batch == 1:
        # Was it the batch? The same sizes with two rows tell.
        more = replace(sizes, batch=first.batch)
        if more not in {refusal.sizes for refusal in refusals}:
            wider, again = runner.run("right", more, forms)
            if again.stop is not None and again.stop.refused:
                refusals.append(Refusal(more, again.stop.op, again.stop.reason))
            else:
                sizes, scenario, done = more, wider, again
    accepted = done.stop is None or not done.stop.refused
    while accepted and sizes.frames < _MOST_FRAMES and _too_short(trace, scenario, done):
        # A waveform that is downsampled to a frame or two shows nothing of padding.
        longer = replace(sizes, frames=sizes.frames * 8)
        another, again = runner.run("right", longer, forms)
        if again.stop is not None:
            break
        sizes, scenario, done = longer, another, again
    left = _elsewhere(runner, sizes, forms, refusals) if accepted else runner.run("left", sizes, forms)
    return Execution((scenario, done), left, refusals, sizes, accepted)


def _elsewhere(runner: _Runner, sizes: Sizes, forms: Mapping[int, MaskForm], refusals: list[Refusal]) -> tuple[Scenario, Run]:
    """The left-padded run, at another batch size and another length if the model takes them.

    A model that was traced at the very sizes of the first run shows only here what it has baked in.
    """
    longer = replace(sizes, length=_other(sizes.length, sizes), other=_other(sizes.other, sizes) + 4, frames=sizes.frames + 16)
    wider = replace(sizes, batch=sizes.batch + 1) if sizes.batch > 1 else sizes
    for other in (replace(longer, batch=wider.batch), longer, wider):
        if other == sizes:
            continue
        scenario, done = runner.run("left", other, forms)
        if done.stop is None or not done.stop.refused:
            if other == longer and wider != sizes:
                # Both together were refused and the length alone is not: it is the batch.
                refusals.append(replace(refusals[-1], sizes=wider))
            return scenario, done
        refusals.append(Refusal(other, done.stop.op, done.stop.reason))
    return runner.run("left", sizes, forms)


def _other(length: int, sizes: Sizes) -> int:
    """A length for the second run that no other open dimension has."""
    taken = {sizes.batch, sizes.past, sizes.length, sizes.past + sizes.length}
    return next(size for size in range(length + 2, length + 2 + len(taken) + 1) if size not in taken and math.gcd(size, 2) == 1)
