"""Compares outputs where it counts: at real positions, row by row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from wirelint.shadow.positions import Axis, axes_over_positions, batch_axis
from wirelint.verify.protocol import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.shadow.scenario import Scenario

__all__ = ["Change", "Layout", "change", "layout_of", "share", "worst"]

_SMALLEST_SCALE = 1e-12


@dataclass(frozen=True, slots=True)
class Layout:
    """How one output is laid out in one batch.

    Attributes:
        axis: the axis over positions, or None for a pooled output.
        rows: the axis over rows, or None.
        scenario: of the batch.
    """

    axis: Axis | None
    rows: int | None
    scenario: Scenario

    def row(self, array: Array, row: int) -> Array:
        """What counts of one row, positions first: ``[real positions, ...]``, or ``[1, ...]`` for a pooled output."""
        if self.axis is None:
            chosen: Array = array if self.rows is None else np.take(array, row, axis=self.rows)
            return np.expand_dims(chosen, 0)
        if self.axis.folded:
            sequence = self.axis.sequence
            folded = np.moveaxis(array, self.axis.at, 0)
            folded = folded.reshape(self.scenario.batch, sequence.length, *folded.shape[1:])
            return np.compress(sequence.real[row], folded[row], axis=0)
        real = self._real(array.shape[self.axis.at], row)
        moved: Array = np.moveaxis(array, self.axis.at, 0)
        if self.rows is not None:
            moved = np.take(moved, row, axis=self.rows + (self.rows < self.axis.at))
        return moved if real is None else np.compress(real, moved, axis=0)

    def _real(self, length: int, row: int) -> Array | None:
        assert self.axis is not None
        if self.rows is not None or self.scenario.batch == 1:
            return self.axis.sequence.real_of(row, length)
        # Rows stand within another axis (heads): only what is real in all of them is known to be real.
        every = [self.axis.sequence.real_of(each, length) for each in range(self.scenario.batch)]
        known = [entry for entry in every if entry is not None]
        return np.logical_and.reduce(known) if known else None

    @property
    def row_count(self) -> int:
        """Rows that can be told apart."""
        return self.scenario.batch if self.rows is not None or (self.axis is not None and self.axis.folded) else 1


def layout_of(shape: tuple[int, ...], scenario: Scenario, sequence_axis: int | None) -> Layout:
    """The layout of an output.

    Args:
        shape: as it came from the run.
        scenario: of the batch that was fed.
        sequence_axis: which axis runs over positions, as the static analysis found it.
    """
    axis = None
    if sequence_axis is not None and sequence_axis < len(shape):
        axis = next((found for found in axes_over_positions(shape, scenario) if found.at == sequence_axis), None)
        if axis is None and scenario.main is not None:
            axis = Axis(sequence_axis, scenario.main)
    return Layout(axis, batch_axis(shape, scenario, axis), scenario)


_TELLING_UNITS = 100_000
"""Of more units of the last place than this, their number says nothing beside the part of the output's scale."""


@dataclass(frozen=True, slots=True)
class Change:
    """The largest difference between two runs of one output.

    Attributes:
        relative: to the largest magnitude of the output where it was compared; infinite where one is NaN or infinite
            and the other is not.
        units: the same in units of the last place of the output's type at that magnitude.
        row, position: where it is; the position counts real ones from 0, and is None for a pooled output.
        before, after: the two numbers.
    """

    relative: float
    units: float
    row: int = 0
    position: int | None = None
    before: float = 0.0
    after: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            key: value if not isinstance(value, float) or np.isfinite(value) else str(value)
            for key, value in asdict(self).items()
        }

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"row {self.row}" if self.position is None else f"row {self.row}, position {self.position}"

    def __str__(self) -> str:
        if np.isinf(self.relative):
            return f"{self.before:.6g} became {self.after:.6g} at {self.place}"
        units = f" ({self.units:.3g} units of the last place)" if self.units < _TELLING_UNITS else ""
        return f"{share(self.relative)} of the output's scale{units}: {self.before:.6g} became {self.after:.6g} at {self.place}"


def share(relative: float) -> str:
    """A part of the whole as people read it: in percent, unless it is very small."""
    return f"{relative:.0%}" if relative >= 0.01 else f"{relative:.1e}"


def change(one: Array, other: Array, *, row: int = 0, pooled: bool = False) -> Change | None:
    """The largest difference between what one row gave in two runs; None when the shapes do not match.

    Args:
        one: ``[positions, ...]``.
        other: the same in the other run.
        row: for the answer.
        pooled: the first axis is no axis over positions.
    """
    if one.shape != other.shape:
        return None
    if not one.size:
        return Change(0.0, 0.0, row)
    left, right = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(left - right)
    apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.abs(left[np.isfinite(left)])
    scale = max(float(finite.max(initial=0.0)), _SMALLEST_SCALE)
    at = int(np.argmax(apart))
    largest = float(apart.reshape(-1)[at]) / scale
    position = None if pooled else int(np.unravel_index(at, one.shape)[0])
    return Change(
        largest, largest / _last_place(one.dtype), row, position, float(left.reshape(-1)[at]), float(right.reshape(-1)[at])
    )


def worst(changes: Sequence[Change]) -> Change:
    """The largest of several changes.

    Raises:
        ValueError: there are none.
    """
    return max(changes, key=lambda entry: entry.relative)


def _last_place(dtype: np.dtype[Any]) -> float:
    """The relative distance of neighbouring numbers; integers are exact."""
    if dtype.kind in "biu":
        return 1.0
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
