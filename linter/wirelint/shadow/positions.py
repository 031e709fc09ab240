"""Which axis of a tensor runs over positions, and whether padded content stands at real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wirelint.shadow.labels import NO_LABELS, SCALE_ROWS
from wirelint.shadow.scenario import Scenario, Sequence
from wirelint.shadow.value import Array, Shadow, present

__all__ = [
    "Axis",
    "at_real_positions",
    "axes_over_positions",
    "batch_axis",
    "position_axis",
    "reaches_real",
    "rows_mixed",
    "rows_share_scale",
]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that runs over the positions of a sequence.

    Attributes:
        at: which axis.
        sequence: over which sequence.
        folded: the axis runs over rows and positions at once (``batch * length``), row by row.
    """

    at: int
    sequence: Sequence
    folded: bool = False


def axes_over_positions(shape: tuple[int, ...], scenario: Scenario) -> list[Axis]:
    """Every axis whose length is that of a sequence (or of a sequence with its cache), in order."""
    found = []
    for at, size in enumerate(shape):
        if size < 2:
            continue
        for sequence in scenario.sequences:
            exact = size in (sequence.length, sequence.past + sequence.length)
            if exact and not (at == 0 and len(shape) > 1 and size == scenario.batch):
                found.append(Axis(at, sequence))
                break
            if scenario.batch > 1 and sequence.length > 1 and size == scenario.batch * sequence.length:
                found.append(Axis(at, sequence, folded=True))
                break
    return found


def position_axis(shadow: Shadow, scenario: Scenario, changed: set[int] | None = None) -> Axis | None:
    """The axis over positions of an output.

    Args:
        shadow: the output.
        scenario: of the run.
        changed: axes whose length changed with the padded length in another run, when the length was open; the first of
            them is the one, whatever its length is (a downsampled sequence).
    """
    shape = shadow.shape
    axes = axes_over_positions(shape, scenario)
    if changed is None:
        return next((axis for axis in axes if not _by_chance(shadow, scenario, axis)), None)
    for axis in axes:
        if axis.at in changed:
            return axis
    main = scenario.main
    for at in sorted(changed):
        if main is not None and main.real_of(0, shape[at]) is not None:
            return Axis(at, main)
    return axes[0] if axes and any(axis.sequence.static for axis in axes) else None


def _by_chance(shadow: Shadow, scenario: Scenario, axis: Axis) -> bool:
    """A hidden axis has the fixed length of a sequence: nothing varies along it, and nothing of padded positions stands there.

    Padded positions keep their own content through every residual connection, so that an axis over positions shows it
    somewhere.
    """
    padded = _padded(scenario)
    return shadow.labels.shape[axis.at] == 1 and not present(shadow.labels) & (padded[0] | padded[1])


def batch_axis(shape: tuple[int, ...], scenario: Scenario, positions: Axis | None) -> int | None:
    """The axis over rows: the first of the batch's size that is not the axis over positions."""
    if scenario.batch < 2:
        return None
    for at, size in enumerate(shape):
        if size == scenario.batch and (positions is None or positions.at != at):
            return at
    return None


def _padded(scenario: Scenario) -> tuple[np.uint64, np.uint64]:
    bits = [NO_LABELS, NO_LABELS]
    for sequence in scenario.sequences:
        for side in (0, 1):
            bits[side] |= sequence.part.padded[side]
    return bits[0], bits[1]


def at_real_positions(shadow: Shadow, scenario: Scenario, axis: Axis | None, row_axis: int | None) -> np.uint64:
    """The union of the labels at real positions; of all elements for a tensor without an axis over positions."""
    if axis is None:
        return present(shadow.labels)
    size = shadow.shape[axis.at]
    wide = shadow.spread([axis.at]).labels
    rows = scenario.batch
    found: np.uint64 = NO_LABELS
    if axis.folded:
        parts = np.moveaxis(wide, axis.at, 0).reshape(rows, axis.sequence.length, -1)
        for row in range(rows):
            found |= present(parts[row][axis.sequence.real[row]])
        return found
    moved = np.moveaxis(wide, axis.at, 0)
    if row_axis is not None:
        place = row_axis + (1 if row_axis < axis.at else 0)
        for row in range(rows):
            real = axis.sequence.real_of(row, size)
            chosen = moved if moved.shape[place] == 1 else np.take(moved, [row], axis=place)
            found |= present(chosen if real is None else chosen[real])
        return found
    # Rows are folded into another axis (heads, for example): each row's labels are judged at its own real positions.
    padded = _padded(scenario)
    for row in range(min(rows, 2)):
        real = axis.sequence.real_of(row, size)
        part = present(moved if real is None else moved[real])
        found |= part & ~(padded[1 - row] if rows > 1 else NO_LABELS)
    return found


def reaches_real(shadow: Shadow, scenario: Scenario) -> bool:
    """Padded content stands at a real position, or in a tensor that no longer has positions.

    Tensors over pairs of positions (attention scores and weights) are passed over: what they hold matters where they
    are summed.
    """
    padded = _padded(scenario)
    bits = padded[0] | padded[1]
    if not present(shadow.labels) & bits:
        return False
    axes = axes_over_positions(shadow.shape, scenario)
    if len(axes) >= 2:
        return False
    if not axes:
        return shadow.size > 0
    row_axis = batch_axis(shadow.shape, scenario, axes[0])
    return bool(at_real_positions(shadow, scenario, axes[0], row_axis) & bits)


def rows_mixed(shadow: Shadow, scenario: Scenario, row_axis: int | None) -> np.uint64:
    """Labels of the content of other rows that stand in row 0, and of row 0 in others; of all rows when no axis runs over
    them.

    Masks, lengths and positions of other rows do not count: graphs take the longest row of a batch to size what they
    make, and cut it to each row again.
    """
    layout = scenario.layout
    content = ~_about_rows(scenario)
    if scenario.batch < 2:
        return NO_LABELS
    first, rest = _by_row(shadow, row_axis)
    if row_axis is None:
        every = first & content
        return every if every & layout.rows[0] and every & layout.rows[1] else NO_LABELS
    # Labels that an input without a batch axis brings to every row are no mixing.
    foreign: np.uint64 = ((first & layout.rows[1]) | (rest & layout.rows[0])) & content & ~_shared(scenario)
    return foreign


def rows_share_scale(shadow: Shadow, row_axis: int | None) -> bool:
    """The scale of a dynamic quantiser was taken over row 0 and other rows; over any rows when no axis runs over them."""
    first, rest = _by_row(shadow, row_axis)
    if row_axis is None:
        return bool(first & SCALE_ROWS[0]) and bool(first & SCALE_ROWS[1])
    return bool(first & SCALE_ROWS[1]) or bool(rest & SCALE_ROWS[0])


def _by_row(shadow: Shadow, row_axis: int | None) -> tuple[np.uint64, np.uint64]:
    """The labels of row 0 and of all other rows; of all elements, twice, when no axis runs over rows."""
    if row_axis is None:
        every = present(shadow.labels)
        return every, every
    wide: Array = np.moveaxis(shadow.spread([row_axis]).labels, row_axis, 0)
    return present(wide[:1]), present(wide[1:])


def _about_rows(scenario: Scenario) -> np.uint64:
    """Labels of inputs that say which positions count, and of what the graph finds out about that itself."""
    found: np.uint64 = scenario.layout.gaps
    for name, part in scenario.layout.parts.items():
        if name in ("mask", "decoder_mask", "pixel_mask", "lengths", "position", "cache_position"):
            found |= part.every
    return found


def _shared(scenario: Scenario) -> np.uint64:
    """Labels of inputs that have no batch axis: every row may carry them, unless the rows stand along another one."""
    shared: np.uint64 = NO_LABELS
    for value, shadow in scenario.bindings.items():
        if not (value.shape is not None and scenario.batch in shadow.shape[:2]):
            shared |= present(shadow.labels)
    for sequence in scenario.sequences:
        if sequence.packed:
            shared &= ~sequence.part.every
    return shared
