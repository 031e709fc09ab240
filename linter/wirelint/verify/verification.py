"""What verifying a model gave, and the whole of verifying one."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from wirelint.analysis import examine
from wirelint.errors import ConfigurationError, ModelFileError, NotAModelError
from wirelint.formats import load
from wirelint.verify.agreement import Agreement, compare_paths, paths_for
from wirelint.verify.bisect import find_parting
from wirelint.verify.claims import Claim, Status, judge_batch, judge_mask, judge_padding
from wirelint.verify.compare import layout_of
from wirelint.verify.inputs import Inputs, UnfeedableError
from wirelint.verify.paths import RUNTIMES, default_path
from wirelint.verify.process import Feed, Limits, RunError, Runner, Worker, require
from wirelint.verify.reference import Against, Side, compare, shared_batches
from wirelint.verify.trials import SideTrials, fitting, run_side

if TYPE_CHECKING:
    from wirelint.analysis import Examination

__all__ = ["Verification", "verify"]

_UNSAFE = ("external-path-escape", "missing-weights", "weights-out-of-bounds", "lfs-pointer")
"""Problems of the file with which no runtime is given it."""


@dataclass(slots=True)
class Verification:
    """What verifying one model gave.

    Attributes:
        path: the model, as it was given.
        path_name: the execution path on which verdicts were measured.
        seed: of the inputs.
        claims: every static verdict beside its measurement.
        feeds: the inputs of the right-padded batch.
        refused: shapes at which the model did not run although they are declared, in words.
        stopped: why nothing could be measured; empty when something was.
        infinite: outputs that hold NaN or infinities for an ordinary right-padded batch.
        agreement: of the execution paths, when they were compared.
        against: what comparing with a reference gave.
        seconds: time taken.
    """

    path: str
    path_name: str = ""
    seed: int = 0
    claims: list[Claim] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stopped: str = ""
    infinite: list[str] = field(default_factory=list)
    agreement: Agreement | None = None
    against: Against | None = None
    seconds: float = 0.0

    def with_status(self, status: Status) -> list[Claim]:
        return [claim for claim in self.claims if claim.status is status]

    @property
    def faults(self) -> bool:
        """Running showed something that hurts those who use the model as its companions say, or it does not run."""
        parted = self.agreement is not None and bool(self.agreement.parted)
        parted |= self.against is not None and bool(self.against.parted or self.against.stopped)
        return parted or bool(self.stopped or self.infinite or self.refused) or any(claim.fault for claim in self.claims)


def verify(
    path: str | os.PathLike[str],
    *,
    worker: Worker | None = None,
    seed: int = 0,
    paths: bool = False,
    reference: str | os.PathLike[str] | None = None,
    bisect: bool = False,
) -> Verification:
    """Runs a model and holds every static verdict about padding, batch and mask against what running shows.

    Args:
        path: an ONNX or OpenVINO IR file.
        worker: the process to run it in, with its limits; by default one of its own.
        seed: of the inputs.
        paths: compare the execution paths that this machine offers, too.
        reference: the model that it was made from, in either format; compare the outputs.
        bisect: where they differ, find the first operator that does.

    Raises:
        ConfigurationError: a runtime that is needed is not installed, or the reference can't be read.
        ModelFileError: the file is damaged.
        NotAModelError: the file is no model.
        OSError: the file can't be read.
    """
    start = time.perf_counter()
    side, unsafe = _side(path, seed)
    made = Verification(side.path, side.on.name, seed)
    other = None if reference is None else _reference(reference, seed)
    if unsafe:
        made.stopped = unsafe
    else:
        with contextlib.ExitStack() as stack:
            worker = worker or stack.enter_context(Worker(Limits()))
            trials = _measure(made, Runner(worker, side.path, side.on), side.inputs, side.examined)
            if paths and trials is not None:
                made.agreement = _compared(worker, made.path, trials, side.examined)
            if other is not None and trials is not None:
                made.against = _against(worker, side, other, trials, bisect=bisect)
    made.seconds = time.perf_counter() - start
    return made


def _side(path: str | os.PathLike[str], seed: int) -> tuple[Side, str]:
    """A model with what is known about it, and why no runtime is given it; empty when there is no reason."""
    model = load(FilePath(path))
    on = default_path(model.format)
    require(on.runtime)
    examined = examine(model)
    inputs = Inputs(model.graph, examined.traced, examined.forms, examined.facts.expect.pad_id, seed)
    unsafe = next((problem.message for problem in model.problems if problem.rule in _UNSAFE), "")
    return Side(os.fspath(path), on, examined, inputs), unsafe


def _reference(path: str | os.PathLike[str], seed: int) -> Side:
    try:
        side, unsafe = _side(path, seed)
    except (ModelFileError, NotAModelError) as error:
        raise ConfigurationError(f"reference {error}") from error
    except OSError as error:
        raise ConfigurationError(f"reference {os.fspath(path)}: can't be read: {error.strerror or error}") from error
    if unsafe:
        raise ConfigurationError(f"reference {side.path}: not run: {unsafe}")
    return side


def _against(worker: Worker, side: Side, other: Side, trials: SideTrials, *, bisect: bool) -> Against:
    try:
        batches = shared_batches(side, other, trials.batch.scenario.sizes)
        shapes = [None if array is None else array.shape for array in trials.outputs]
        facts = side.examined.facts
        layouts = [
            None if shape is None else layout_of(shape, batches[0].scenario, fact.sequence_axis)
            for shape, fact in zip(shapes, facts.outputs, strict=True)
        ]
        made, feeds = compare(worker, side, other, batches, layouts)
        if bisect and made.parted:
            parted = made.parted[0]
            made.parting = find_parting(worker, (side, other), feeds, parted.output, parted.tolerance)
    except (RunError, UnfeedableError) as error:
        return Against(other.path, stopped=str(error))
    return made


def _measure(made: Verification, runner: Runner, inputs: Inputs, examined: Examination) -> SideTrials | None:
    """Measures every verdict; returns the right-padded trials, or None when the model does not run."""
    facts = examined.facts
    try:
        sizes, made.refused = fitting(runner, inputs, examined.execution.sizes, facts.outputs)
    except (RunError, UnfeedableError) as error:
        made.stopped = str(error)
        return None
    first: SideTrials | None = None
    told_by_id = inputs.ids_compared()
    for side in ("right", "left"):
        if side == "left" and not inputs.batch("right", sizes).scenario.sequences:
            break
        try:
            trials = run_side(runner, inputs, side, sizes, facts.outputs)
        except (RunError, UnfeedableError) as error:
            if side == "right":
                made.stopped = str(error)
                return None
            made.claims += _unmeasured(examined, side, str(error))
            continue
        made.claims += judge_padding(facts, trials, side, told_by_id=told_by_id)
        if side == "right":
            first, made.feeds = trials, trials.feeds
            made.infinite = [fact.name for fact in facts.outputs if not trials.measured[fact.index].finite]
            made.claims += judge_batch(facts, trials)
            made.claims += judge_mask(facts, trials)
    return first


def _compared(worker: Worker, path: str, trials: SideTrials, examined: Examination) -> Agreement:
    runtimes = [name for name in RUNTIMES if importlib.util.find_spec(name) is not None]
    capabilities: list[str] = []
    if "openvino" in runtimes:
        with contextlib.suppress(RunError):
            capabilities = worker.capabilities()
    facts = examined.facts
    found = paths_for(facts.format, capabilities, runtimes)
    names = [output.name for output in facts.outputs]
    return compare_paths(worker, path, found, trials.feeds, trials.layouts, names, facts.precision)


def _unmeasured(examined: Examination, side: str, why: str) -> list[Claim]:
    verdicts = [(output.name, getattr(output.padding, side)) for output in examined.facts.outputs]
    return [
        Claim(f"padding {side}", name, verdict, Status.NOT_MEASURABLE, f"it does not run with this padding: {why}")
        for name, verdict in verdicts
        if verdict != "n/a"
    ]
