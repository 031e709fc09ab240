"""Holds execution paths against one another: what the same inputs give in each, at real positions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirelint.verify.compare import Change, Layout, change, worst
from wirelint.verify.paths import OPTIMISATION_LEVELS, Path
from wirelint.verify.process import Feed, RunError, Runner, Worker
from wirelint.verify.protocol import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TOLERANCES", "Agreement", "Difference", "compare_paths", "differences", "paths_for", "tolerance"]

TOLERANCES = {"fp32": 1e-3, "fp16": 3e-2, "bf16": 1e-1, "mixed": 3e-2, "int8": 1e-1}
"""Relative difference up to which two paths agree, by what the model, or the coarser of the paths, computes in.

They are some thousand units of the last place of fp32, some thirty of fp16, a dozen of bf16: sums in another order, one
after the other through all layers.  A quantised model rounds to one step in 127 at every layer.
"""
_HINTS = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
_CAPABILITIES = {"BF16": "bf16", "FP16": "f16"}


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two paths are apart on one output.

    Attributes:
        output: its name.
        one, other: names of the paths.
        change: the largest difference; None when the shapes differ.
        tolerance: what counts as rounding.
    """

    output: str
    one: str
    other: str
    change: Change | None
    tolerance: float

    @property
    def beyond(self) -> bool:
        """Farther apart than rounding explains."""
        return self.change is None or self.change.relative > self.tolerance

    def as_dict(self) -> dict[str, Any]:
        return {
            "output": self.output,
            "paths": [self.one, self.other],
            "change": None if self.change is None else self.change.as_dict(),
            "tolerance": self.tolerance,
            "beyond_rounding": self.beyond,
        }


@dataclass(slots=True)
class Agreement:
    """What the paths gave.

    Attributes:
        ran: names of the paths that ran.
        failed: those that did not, with the reason.
        differences: every pair on every output.
    """

    ran: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def parted(self) -> list[Difference]:
        """The pairs that differ beyond rounding, the farthest apart first."""
        found = [entry for entry in self.differences if entry.beyond]
        return sorted(found, key=lambda entry: -(float("inf") if entry.change is None else entry.change.relative))

    def as_dict(self) -> dict[str, Any]:
        return {"ran": self.ran, "failed": self.failed, "differences": [entry.as_dict() for entry in self.differences]}


def paths_for(model_format: str, capabilities: Sequence[str], runtimes: Sequence[str]) -> list[Path]:
    """The paths that this machine offers for a model.

    Args:
        model_format: ``onnx`` or ``openvino-ir``.
        capabilities: what OpenVINO's CPU plugin says that it computes in.
        runtimes: those that are installed.
    """
    found = []
    if model_format == "onnx" and "onnxruntime" in runtimes:
        found += [Path("onnxruntime", level=level) for level in OPTIMISATION_LEVELS]
    if "openvino" in runtimes:
        found += [Path("openvino", precision="f32"), Path("openvino", precision="f32", static=True)]
        found += [Path("openvino", precision=hint) for name, hint in _CAPABILITIES.items() if name in capabilities]
    return found


def tolerance(precision: str, *paths: Path) -> float:
    """What counts as rounding between paths that compute in these precisions."""
    kinds = [precision, *(_HINTS[path.precision] for path in paths if path.precision)]
    return max(TOLERANCES[kind] for kind in kinds)


def compare_paths(
    worker: Worker,
    model: str,
    paths: Sequence[Path],
    feeds: Sequence[Feed],
    layouts: Sequence[Layout | None],
    names: Sequence[str],
    precision: str,
) -> Agreement:
    """Runs one batch on every path and compares every pair.

    Args:
        worker: runs them.
        model: the file.
        paths: where to run it.
        feeds: the inputs.
        layouts: of the outputs.
        names: of the outputs.
        precision: what the model computes in, a key of :data:`TOLERANCES`.
    """
    made = Agreement()
    given: dict[Path, list[Array | None]] = {}
    for path in paths:
        try:
            given[path] = Runner(worker, model, path).run(feeds)
        except RunError as error:  # noqa: PERF203 -- one path that fails does not keep the others from running
            made.failed[path.name] = str(error)
        else:
            made.ran.append(path.name)
    for one, other in itertools.combinations(given, 2):
        allowed = tolerance(precision, one, other)
        made.differences += differences(names, layouts, (one.name, given[one]), (other.name, given[other]), allowed)
    return made


def differences(
    names: Sequence[str],
    layouts: Sequence[Layout | None],
    one: tuple[str, Sequence[Array | None]],
    other: tuple[str, Sequence[Array | None]],
    allowed: float,
) -> list[Difference]:
    """How far two runs of one batch are apart, output by output, at real positions."""
    found = []
    for name, layout, left, right in zip(names, layouts, one[1], other[1], strict=False):
        if left is None or right is None or layout is None:
            continue
        found.append(Difference(name, one[0], other[0], _apart(layout, left, right), allowed))
    return found


def _apart(layout: Layout, left: Array, right: Array) -> Change | None:
    if left.shape != right.shape:
        return None
    rows = [
        change(layout.row(left, row), layout.row(right, row), row=row, pooled=layout.axis is None)
        for row in range(layout.row_count)
    ]
    return worst([entry for entry in rows if entry is not None])
