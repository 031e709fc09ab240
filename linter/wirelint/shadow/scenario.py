"""Shadow inputs: a small batch with a known amount of padding, shaped as the model declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Graph, Value
from wirelint.shadow.labels import UNMODELLED, Layout, Part
from wirelint.shadow.shapes import PADDED_ROLES, Shapes, Sizes, bag_offsets, second_masks
from wirelint.shadow.value import Array, Shadow
from wirelint.trace.evidence import Use
from wirelint.trace.roles import Trace

__all__ = ["MaskForm", "Scenario", "Sequence", "build"]

_COMPACT_ROLES = ("encoder_states", "features", "pixels", "past", "other")
"""Roles of inputs that hold hidden features: whatever their size, their shadows stay small."""

MaskForm = str
"""How a mask input says what is padding: ``keep1``, ``keep0`` or ``additive``."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """The positions of one padded sequence.

    Attributes:
        role: role of the input that carries it.
        length: positions, padding included.
        real: for each row, which positions are real.
        part: its labels.
        past: cached positions that stand before it wherever keys are joined with a cache.
        static: the length is declared as a number.
        packed: the input has one axis, along which the rows stand one behind the other, unpadded.
        frames: for each length to which convolutions bring it down, which frames of each row are real; filled in after a run.
    """

    role: str
    length: int
    real: Array
    part: Part
    past: int = 0
    static: bool = False
    packed: bool = False
    frames: dict[int, Array] = field(default_factory=dict)

    def real_of(self, row: int, length: int) -> Array | None:
        """Which positions of an axis of ``length`` are real in a row; None when the axis does not run over this sequence."""
        own: Array = self.real[min(row, len(self.real) - 1)]
        if length == self.length:
            return own
        if self.past and length == self.past + self.length:
            return np.concatenate([np.ones(self.past, dtype=bool), own])
        if length in self.frames:
            found: Array = self.frames[length][min(row, len(self.real) - 1)]
            return found
        if self.role == "features" and 1 < length < self.length:
            # Downsampled: a frame is real when its whole share of the axis is.
            first = (np.arange(length) * self.length / length).astype(int)
            last = np.minimum(np.ceil((np.arange(length) + 1) * self.length / length).astype(int), self.length) - 1
            inside: Array = own[first] & own[last]
            return inside
        return None

    def padded_of(self, row: int, length: int) -> Array | None:
        """Which positions of an axis of ``length`` hold nothing but padding.

        A downsampled frame at the edge is neither that nor real.
        """
        real = self.real_of(row, length)
        if real is None or length >= self.length:
            return None if real is None else ~real
        own: Array = self.real[min(row, len(self.real) - 1)]
        edges = (np.arange(length + 1) * self.length / length).astype(int)
        return ~np.logical_or.reduceat(own, edges[:-1])


@dataclass(slots=True)
class Scenario:
    """Bindings for one shadow run.

    Attributes:
        side: ``right`` or ``left``: where the padding is.
        sizes: the open dimensions.
        batch: rows.
        layout: labels.
        bindings: a shadow for each graph input.
        symbols: sizes of symbolic dimensions.
        sequences: padded sequences, the main one first.
        length: the main length, when it was free to choose.
        pad_id: the id at padded positions.
        damaged: an input is declared with a shape that nothing could have, so that it stays unknown.
    """

    side: str
    sizes: Sizes
    batch: int
    layout: Layout
    bindings: dict[Value, Shadow] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    sequences: list[Sequence] = field(default_factory=list)
    length: int | None = None
    pad_id: int = 0
    damaged: bool = False

    @property
    def main(self) -> Sequence | None:
        return self.sequences[0] if self.sequences else None


def build(
    graph: Graph,
    trace: Trace,
    side: str,
    sizes: Sizes,
    mask_form: Mapping[int, MaskForm],
    *,
    pad_id: int | None = None,
    branch: bool = False,
    counts: Mapping[str, tuple[int, ...]] | None = None,
    unpadded: frozenset[str] = frozenset(),
) -> Scenario:
    """Makes the shadow inputs of one run.

    Args:
        graph: main graph.
        trace: its trace.
        side: ``right`` or ``left``.
        sizes: the dimensions that are open.
        mask_form: how each mask input (by index) says what is padding; ``keep1`` where it is not listed.
        pad_id: the id at padded positions; by default the constant with which the graph compares ids, or 0.
        branch: the value of flags that choose a branch.
        counts: how many positions of each row are real, by the role that carries the sequence; by default a share of
            its length.
        unpadded: roles whose sequences are never padded.
    """
    scenario = Scenario(side, sizes, sizes.batch, Layout())
    shapes = Shapes(graph, trace, sizes, scenario.symbols)
    resolved = [shapes.of(at) for at in range(len(graph.inputs))]
    beyond = {at for at, shape in enumerate(resolved) if _is_beyond(trace.roles[at].name, shape, graph.inputs[at].dtype)}
    for at in beyond:
        value = graph.inputs[at]
        scenario.bindings[value] = Shadow.unknown(resolved[at], value.dtype, UNMODELLED)
        scenario.damaged = True
        resolved[at] = ()
    order = sorted(range(len(graph.inputs)), key=lambda at: (_rank_of(trace.roles[at].name), at))
    rows = shapes.rows(resolved)
    scenario.batch = rows
    cached = shapes.past(resolved)
    has_pixel_mask = bool(trace.inputs_of("pixel_mask"))
    bags = bag_offsets(trace)
    for at in order:
        role = trace.roles[at].name
        if bags and role in ("ids", "decoder_ids") and len(resolved[at]) == 1:
            _packed(scenario, role, graph.inputs[at], resolved[at][0])
        elif (role in PADDED_ROLES and role not in unpadded) or (role == "pixels" and has_pixel_mask):
            past = cached if role in ("ids", "decoder_ids") else 0
            _sequence(scenario, role, graph.inputs[at], resolved[at], shapes.axis(at), past, (counts or {}).get(role))
    if scenario.main is not None:
        scenario.length = scenario.main.length if not scenario.main.static else None
    constants = _compared(trace)
    scenario.pad_id = pad_id if pad_id is not None else constants.get("pad", 0)
    for at, value in enumerate(graph.inputs):
        if at in beyond:
            continue
        role = trace.roles[at].name
        form = mask_form.get(at, "keep1")
        scenario.bindings[value] = _bind(
            scenario, at, value, resolved[at], shapes.axes[at], trace, form, constants, branch=branch
        )
    return scenario


_LONGEST_AXIS = 1 << 22
_MOST_NUMBERS = 1 << 24


def _is_beyond(role: str, shape: tuple[int, ...], dtype: DType) -> bool:
    """Declared so large, so empty or so strangely that nothing could feed it: damaged or a trap; no array is made of it."""
    if max(shape, default=0) > _LONGEST_AXIS or (role in PADDED_ROLES and 0 in shape):
        return True
    return role not in _COMPACT_ROLES and (math.prod(shape) > _MOST_NUMBERS or dtype in (DType.C64, DType.C128))


def _rank_of(role: str) -> int:
    """The main sequence is the one whose positions the outputs have: a decoder's own before what it attends to."""
    order = ("decoder_ids", "ids", "features", "pixels", "encoder_states")
    return order.index(role) if role in order else len(order)


def _counts(rows: int, length: int) -> list[int]:
    """How many positions of each row are real: two different amounts of padding, wherever there is room.

    The second row is padded by more than half, so that a position counted from the wrong end falls into the padding.  One of
    the counts is even and the other odd where there is room, so that windows of two positions meet the edge of the padding.
    """
    if length < 2:
        return [length] * rows
    first, second = length - max(2, length // 4) if length > 3 else length - 1, max(1, length - (length // 2 + 1))
    if (first - second) % 2 == 0 and second > 1:
        second -= 1
    shares = (first, second)
    return [shares[row % 2] for row in range(rows)]


def _sequence(
    scenario: Scenario, role: str, value: Value, shape: tuple[int, ...], axis: int, past: int, counts: tuple[int, ...] | None
) -> None:
    if any(sequence.role == role for sequence in scenario.sequences) or not shape:
        return
    length = shape[axis]
    real = np.zeros((scenario.batch, length), dtype=bool)
    # A decoder's own ids beside an encoder are padded on the right whatever side the encoder's are.
    left = scenario.side == "left" and role != "decoder_ids"
    for row, count in enumerate(counts or _counts(scenario.batch, length)):
        real[row, slice(length - count, None) if left else slice(count)] = True
    static = value.shape is not None and isinstance(value.shape[axis], int)
    scenario.sequences.append(Sequence(role, length, real, scenario.layout.part(role, padded=True), past, static))


def _packed(scenario: Scenario, role: str, value: Value, length: int) -> None:
    """A sequence of all rows' positions, of which each row has its share."""
    rows = scenario.batch
    real = np.arange(length)[None, :] * rows // max(length, 1) == np.arange(rows)[:, None]
    static = value.shape is not None and isinstance(value.shape[0], int)
    part = scenario.layout.part(role, padded=True)
    scenario.sequences.append(Sequence(role, length, real, part, static=static, packed=True))


def _compared(trace: Trace) -> dict[str, int]:
    """The padding id and the end-of-text id, as far as the graph compares ids with constants.

    An id that is compared in order to find its position (the result reaches an ArgMax) ends a text; any other is padding.
    """
    found: dict[str, int] = {}
    for role in ("ids", "decoder_ids"):
        for at in trace.inputs_of(role):
            for use in trace.observations.get(at, ()):
                if use.use is not Use.COMPARE or use.number is None:
                    continue
                name = "end" if _locates(use.op.outputs[0]) else "pad"
                found.setdefault(name, int(use.number))
    return found


def _locates(value: Value) -> bool:
    frontier = [(value, 0)]
    while frontier:
        entry, depth = frontier.pop()
        for op, _ in entry.consumers:
            if op.kind in ("ArgMax", "ArgMin", "TopK", "NonZero"):
                return True
            if depth < 6 and op.kind in ("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "ReduceSum"):
                frontier += [(made, depth + 1) for made in op.outputs]
    return False


def _row_labels(part: Part, batch: int, shape: tuple[int, ...], axis: int | None = 0) -> Array:
    """Labels that tell rows apart along an axis, for an input without positions of its own.

    Without an axis, or with a single entry along it, the input belongs to no row.
    """
    if axis is None or batch == 1 or not shape or shape[axis] == 1:
        return _shared_labels(part, shape)
    if shape[axis] == batch:
        rows = np.asarray([part.real[0 if row == 0 else 1] for row in range(batch)], dtype=np.uint64)
        return rows.reshape((1,) * axis + (batch,) + (1,) * (len(shape) - axis - 1))
    return np.full((1,) * len(shape), part.real[0] | part.real[1], dtype=np.uint64)


def _shared_labels(part: Part, shape: tuple[int, ...]) -> Array:
    """Labels of an input without a batch axis: it belongs to no row."""
    return np.full((1,) * len(shape), part.real[0], dtype=np.uint64)


def _sequence_labels(sequence: Sequence, shape: tuple[int, ...], axis: int) -> Array:
    rows, length = sequence.real.shape
    part = sequence.part
    grid: Array = np.empty((rows, length), dtype=np.uint64)
    for row in range(rows):
        side = 0 if row == 0 else 1
        grid[row] = np.where(sequence.real[row], part.real[side], part.padded[side])
    dims = [1] * len(shape)
    dims[axis] = length
    if sequence.packed:
        owners: Array = np.bitwise_or.reduce(np.where(sequence.real, grid, np.uint64(0)), axis=0)
        return owners
    if len(shape) > 1 and axis != 0:
        dims[0] = rows
        return grid.reshape(dims)
    if len(shape) == 3:
        dims[1] = rows
        steps_first: Array = grid.T.reshape(dims)
        return steps_first
    first: Array = grid[0]
    return first.reshape(dims)


def _bind(
    scenario: Scenario,
    at: int,
    value: Value,
    shape: tuple[int, ...],
    axes: tuple[str, ...],
    trace: Trace,
    form: MaskForm,
    constants: dict[str, int],
    *,
    branch: bool,
) -> Shadow:
    role = trace.roles[at].name
    dtype = value.dtype if value.dtype is not DType.UNKNOWN else DType.F32
    sequence = next((entry for entry in scenario.sequences if entry.role == role), None)
    if role in ("ids", "decoder_ids") and sequence is not None:
        return _ids(scenario, sequence, shape, dtype, trace, at, constants)
    if role in ("encoder_states", "features") and sequence is not None:
        axis = next((place for place, size in enumerate(shape) if place and size == sequence.length), len(shape) - 1)
        if axes[:1] == ("frames",):
            axis = 0
        return Shadow.unknown(shape, dtype, _sequence_labels(sequence, shape, axis))
    if role == "pixels" and sequence is not None:
        return Shadow.unknown(shape, dtype, _sequence_labels(sequence, shape, len(shape) - 1))
    part = scenario.layout.part(role)
    if role in ("mask", "decoder_mask", "pixel_mask"):
        return _mask(scenario, shape, dtype, part, form, encoder=at in second_masks(trace))
    labels = _row_labels(part, scenario.batch, shape, axes.index("batch") if "batch" in axes else None)
    if role == "segment":
        return Shadow.known(np.zeros(shape, dtype=dtype.numpy), dtype, labels)
    if role == "position":
        return _positions(scenario, shape, dtype, part)
    if role == "cache_position":
        start = scenario.main.past if scenario.main is not None else 0
        return Shadow.known(np.arange(start, start + shape[0]), dtype, _shared_labels(part, shape))
    if role == "lengths" and at in bag_offsets(trace) and scenario.main is not None and scenario.main.packed:
        starts = np.resize([int(np.argmax(row)) for row in scenario.main.real], shape)
        return Shadow.known(starts.astype(dtype.numpy), dtype, labels)
    if role == "lengths" and not dtype.is_float and scenario.main is not None and shape:
        counts = scenario.main.real.sum(axis=1) + scenario.main.past
        grid = np.broadcast_to(np.resize(counts, shape[0]).reshape((shape[0],) + (1,) * (len(shape) - 1)), shape)
        return Shadow.known(grid.astype(dtype.numpy), dtype, labels)
    if role == "bbox":
        return Shadow.known(np.zeros(shape, dtype=dtype.numpy), dtype, labels)
    if dtype is DType.BOOL and np.prod(shape, dtype=int) <= 1:
        return Shadow.known(np.full(shape, branch), dtype, _shared_labels(part, shape))
    if dtype.is_integer and np.prod(shape, dtype=int) <= 1:
        return Shadow.known(np.zeros(shape), dtype, _shared_labels(part, shape))
    return Shadow.unknown(shape, dtype, labels)


def _ids(
    scenario: Scenario,
    sequence: Sequence,
    shape: tuple[int, ...],
    dtype: DType,
    trace: Trace,
    at: int,
    constants: dict[str, int],
) -> Shadow:
    """Concrete ids, all different at real positions, the last of them an end-of-text id; the pad id elsewhere.

    The end-of-text id is the one with which the graph compares, or else the highest (CLIP finds it by ArgMax over the ids).
    """
    rows = max((use.rows for use in trace.observations.get(at, ()) if use.use is Use.INDEX and use.direct), default=1000)
    end = constants.get("end", max(rows - 1, 1))
    grid = np.empty(sequence.real.shape, dtype=np.int64)
    for row, real in enumerate(sequence.real):
        count = int(real.sum())
        grid[row] = scenario.pad_id
        numbers = 4 + (np.arange(count) + 5 * row) % max(rows - 6, 1)
        numbers = np.where(numbers == scenario.pad_id, numbers + 1, numbers)
        if count:
            numbers[-1] = end
        grid[row, real] = numbers
    axis = len(shape) - 1
    dims = [1] * len(shape)
    dims[axis] = sequence.length
    if len(shape) > 1:
        dims[0] = len(grid)
    held = np.where(sequence.real, grid, 0).sum(axis=0)[None] if sequence.packed else grid if len(shape) > 1 else grid[:1]
    return Shadow.known(
        np.broadcast_to(held.reshape(dims), shape).astype(dtype.numpy), dtype, _sequence_labels(sequence, shape, axis)
    )


def _mask(scenario: Scenario, shape: tuple[int, ...], dtype: DType, part: Part, form: MaskForm, *, encoder: bool) -> Shadow:
    sequence = scenario.main
    if encoder:
        sequence = next((entry for entry in scenario.sequences if entry.role in ("encoder_states", "ids", "features")), None)
    keys = shape[-1] if shape else 1
    rows = shape[0] if len(shape) > 1 else 1
    grid = np.ones((rows, keys), dtype=bool)
    for row in range(rows):
        real = None if sequence is None else sequence.real_of(row, keys)
        if real is not None:
            grid[row] = real
        elif sequence is None and scenario.batch and keys > 2:
            grid[row, keys - 1 - row % 2 :] = False  # keys that are all cached: the last ones are padding
    wide = np.broadcast_to(grid.reshape((rows,) + (1,) * (len(shape) - 2) + (keys,)) if len(shape) > 1 else grid[0], shape)
    if form == "additive":
        with np.errstate(over="ignore"):
            numbers: Array = np.where(wide, 0.0, -dtype.largest if dtype.is_float else 0).astype(dtype.numpy)
    else:
        numbers = (wide if form == "keep1" else ~wide).astype(dtype.numpy)
    return Shadow.known(numbers, dtype, _row_labels(part, scenario.batch, shape))


def _positions(scenario: Scenario, shape: tuple[int, ...], dtype: DType, part: Part) -> Shadow:
    length = shape[-1] if shape else 1
    rows = shape[-2] if len(shape) > 1 else 1
    start = scenario.main.past if scenario.main is not None else 0
    grid = np.tile(np.arange(start, start + length), (rows, 1))
    main = scenario.main
    if main is not None and scenario.side == "left" and main.length == length:
        for row in range(rows):
            grid[row] = start + np.maximum(np.arange(length) - int((~main.real[min(row, len(main.real) - 1)]).sum()), 0)
    held = np.broadcast_to(grid if len(shape) > 1 else grid[0], shape).astype(dtype.numpy)
    if len(shape) == 2:
        return Shadow.known(held, dtype, _row_labels(part, scenario.batch, shape))
    return Shadow.known(held, dtype, _shared_labels(part, shape))
