"""What running a sample shows: does padding reach an output, does the mask act, do rows mix, is everything finite?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.feeding import Batch, is_padded, make
from builders.runner import Array, Runner, open_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from builders.registry import Sample

__all__ = ["Truth", "assert_clean", "measure"]

Truth = dict[str, Any]
_SAME, _ROUNDING, _ACTS = 1e-5, 1e-3, 1e-2


@dataclass(frozen=True)
class _Trial:
    """A sample, its runner, and the roles of its inputs in the file's order."""

    sample: Sample
    runner: Runner
    roles: tuple[str, ...]

    def run(self, batch: Batch) -> list[Array]:
        feeds = self.sample.feeds
        assert feeds is not None
        return self.runner.run(make(self.roles, self.runner.inputs, feeds, batch))


def measure(sample: Sample, path: Path) -> Truth | None:
    """Run a sample; None for a file that cannot be run.

    Raises:
        AssertionError: the file's inputs are not the ones that the sample says.
    """
    if sample.feeds is None:
        return None
    trial = _open(sample, path)
    batch = _fitting(trial)
    base = trial.run(batch)
    fixed = _declared(trial)
    truth: Truth = {"runtime": trial.runner.runtime, "static": fixed, "finite": _finite(base)}
    if is_padded(trial.roles, sample.feeds):
        truth |= _padding(trial, batch)
    truth["batch_independent"] = _rows_apart(trial, batch) if batch.rows > 1 else None
    truth["runs_at_other_batch"] = None if fixed["batch"] else _runs(trial, replace(batch, rows=batch.rows + 2))
    truth["runs_at_other_length"] = (
        None if fixed["sequence"] or not is_padded(trial.roles, sample.feeds) else _longer(trial, batch)
    )
    return truth


def assert_clean(sample: Sample, truth: Truth) -> None:
    """Raise AssertionError when running a sample that nothing must be reported for shows a fault all the same."""
    leaks = any(truth.get("pad_content_matters", {}).get("right", {}).values())
    shifts = truth.get("same_as_alone", {}).get("right") is False
    apart = truth["batch_independent"] is not False
    runs = truth["runs_at_other_batch"] is not False and truth["runs_at_other_length"] is not False
    clean = truth["finite"] and apart and runs and not leaks and not shifts
    assert clean, f"{sample.path} is not clean: {truth}"


def _open(sample: Sample, path: Path) -> _Trial:
    runner = open_model(path)
    assert len(runner.inputs) == len(sample.inputs), f"{path}: {[sorted(port.names) for port in runner.inputs]}"
    for port, name in zip(runner.inputs, sample.inputs, strict=True):
        assert name in port.names or not port.names, f"{path}: {name!r} is not in {sorted(port.names)}"
    return _Trial(sample, runner, tuple(sample.inputs.values()))


def _main_port(trial: _Trial) -> tuple[int | None, ...]:
    """Shape of the input that says how many rows and positions there are."""
    for role in ("ids", "decoder_ids", "features", "pixels"):
        if role in trial.roles:
            return trial.runner.inputs[trial.roles.index(role)].shape
    return trial.runner.inputs[0].shape


def _declared(trial: _Trial) -> dict[str, int | None]:
    shape = _main_port(trial)
    sequence = shape[1] if len(shape) > 1 and is_padded(trial.roles, trial.sample.feeds) else None  # type: ignore[arg-type]
    return {"batch": shape[0] if shape else None, "sequence": sequence}


def _fitting(trial: _Trial) -> Batch:
    feeds, fixed = trial.sample.feeds, _declared(trial)
    assert feeds is not None
    length = fixed["sequence"] or feeds.length
    return Batch(rows=fixed["batch"] or feeds.rows, length=length, encoder_length=length + 3, past=feeds.past)


def _padding(trial: _Trial, batch: Batch) -> Truth:
    feeds = trial.sample.feeds
    assert feeds is not None
    matters: Truth = {}
    largest: Truth = {}
    by_pad_id: Truth = {}
    alone: Truth = {}
    for side in feeds.sides:
        sided = replace(batch, side=side)
        alone[side] = _against_alone(trial, sided)
        if feeds.mask_from_ids:
            matters[side] = dict.fromkeys(trial.runner.outputs)
            continue
        pad, first, second = (trial.run(replace(sided, content=content)) for content in ("pad", "first", "second"))
        from_pad, between = _changes(trial, sided, pad, first), _changes(trial, sided, first, second)
        worst = {name: max(from_pad[name], between[name]) for name in from_pad}
        matters[side] = {name: change > _SAME for name, change in worst.items()}
        largest[side] = {name: _digit(change) for name, change in worst.items() if change > _SAME}
        by_pad_id[side] = [name for name in worst if from_pad[name] > _SAME >= between[name]]
    truth: Truth = {"pad_content_matters": matters, "largest_change": largest}
    if any(by_pad_id.values()):
        truth["only_as_pad_id"] = by_pad_id
    truth["same_as_alone"] = alone
    if {"mask", "decoder_mask"} & set(trial.roles):
        truth["mask_matters"] = _mask_acts(trial, batch)
        truth["finite_when_all_masked"] = _finite(trial.run(replace(batch, mask="zeros")))
    return truth


def _changes(
    trial: _Trial, batch: Batch, one: Sequence[Array], other: Sequence[Array], row: int | None = None
) -> dict[str, float]:
    """Largest change of each output at real positions, relative to the output's scale; infinite where NaN comes or goes."""
    return {
        name: _change(*_kept(trial, batch, [left, right], row))
        for name, left, right in zip(trial.runner.outputs, one, other, strict=True)
    }


def _kept(trial: _Trial, batch: Batch, arrays: Sequence[Array], row: int | None) -> Iterator[Array]:
    """What counts of an output: its real positions where it has a sequence axis, all of it elsewhere."""
    for array in arrays:
        axis, real = _sequence_axis(trial, batch, array)
        held = array if axis is None else np.moveaxis(array, axis, 1)
        where = np.ones(held.shape[:1], dtype=bool) if axis is None else real
        if row is not None and held.shape[:1] == (batch.rows,):
            held, where = held[row : row + 1], where[row : row + 1]
        yield held[where] if held.shape[:1] == where.shape[:1] else held


def _sequence_axis(trial: _Trial, batch: Batch, array: Array) -> tuple[int | None, np.ndarray]:
    feeds, real = trial.sample.feeds, batch.real()
    assert feeds is not None
    if array.shape[:1] != (batch.rows,):
        return None, real
    if "past" in trial.roles and batch.length + batch.past in array.shape[1:]:
        cached = np.ones((batch.rows, batch.past), dtype=bool)
        return array.shape.index(batch.length + batch.past, 1), np.concatenate([cached, real], axis=1)
    if feeds.frames is not None and feeds.frames(batch.length) in array.shape[1:]:
        length = feeds.frames(batch.length)
        counts = np.array([feeds.frames(int(count)) for count in real.sum(axis=1)])
        return array.shape.index(length, 1), np.arange(length)[None, :] < counts[:, None]
    return (array.shape.index(batch.length, 1), real) if batch.length in array.shape[1:] else (None, real)


def _change(one: Array, other: Array) -> float:
    if one.size == 0 or not np.issubdtype(one.dtype, np.floating):
        return float(not np.array_equal(one, other))
    left, right = one.astype(np.float64), other.astype(np.float64)
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return float("inf")
    scale = max(float(np.nanmax(np.abs(left), initial=0.0)), 1e-6)
    return float(np.nanmax(np.abs(left - right), initial=0.0)) / scale


def _digit(change: float) -> float:
    """One significant digit: more would differ between machines."""
    return float(f"{change:.0e}") if np.isfinite(change) else change


def _finite(outputs: Sequence[Array]) -> bool:
    return all(bool(np.isfinite(array.astype(np.float64)).all()) for array in outputs)


def _mask_acts(trial: _Trial, batch: Batch) -> bool:
    """Whether the mask changes any output beyond rounding, with something else than the pad id in padded positions."""
    assert trial.sample.feeds is not None
    for side in trial.sample.feeds.sides:
        sided = replace(batch, side=side, content="first")
        changed = _changes(trial, sided, trial.run(sided), trial.run(replace(sided, mask="ones")))
        if any(change > _ACTS for change in changed.values()):
            return True
    return False


def _rows_apart(trial: _Trial, batch: Batch) -> bool:
    """Whether row 0 stays when the real content of the other rows is replaced."""
    changed = _changes(trial, batch, trial.run(batch), trial.run(replace(batch, others=2)), row=0)
    return all(change <= _SAME for change in changed.values())


def _against_alone(trial: _Trial, batch: Batch) -> bool | None:
    """Whether row 0 gives what it gives without padding and company; None where it cannot run so."""
    try:
        alone = trial.run(replace(batch, alone=True))
    except Exception:  # noqa: BLE001  # a runtime's own error type: the file does not run at that shape
        return None
    together = trial.run(batch)
    for one, both in zip(alone, together, strict=True):
        kept = next(_kept(trial, batch, [both], 0))
        if one.size != kept.size:
            return None
        axis, _ = _sequence_axis(trial, batch, both)
        single = one if axis is None else np.moveaxis(one, axis, 1)
        if _change(kept.ravel(), single.ravel()) > _ROUNDING:
            return False
    return True


def _runs(trial: _Trial, batch: Batch) -> bool:
    """Whether it runs and gives a row for each row: a runtime may answer a shape that does not fit with what it had before."""
    try:
        outputs = trial.run(batch)
    except Exception:  # noqa: BLE001  # a runtime's own error type: the file does not run at that shape
        return False
    return all(array.shape[:1] == (batch.rows,) for array in outputs)


def _longer(trial: _Trial, batch: Batch) -> bool:
    stretched = batch.length * 2 if trial.sample.feeds and trial.sample.feeds.frames else batch.length + 3
    return _runs(trial, replace(batch, length=stretched, encoder_length=stretched + 2))
