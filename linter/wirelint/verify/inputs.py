"""Inputs to run a model on: those of the shadow run, with numbers where shadows hold none.

Where a shadow input is known (a mask, positions, lengths) it is fed as it is.  Ids, hidden states and other continuous
inputs are drawn, each row from its own seed, so that a row keeps its content when padding or other rows change.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.graph import Graph, Value
from wirelint.shadow.frames import settle_frames
from wirelint.shadow.interpreter import run
from wirelint.shadow.scenario import MaskForm, Scenario, build
from wirelint.shadow.shapes import Sizes
from wirelint.shadow.value import Shadow
from wirelint.trace.evidence import Use
from wirelint.trace.roles import Trace
from wirelint.verify.process import Feed
from wirelint.verify.protocol import Array

__all__ = ["Batch", "Content", "Inputs", "UnfeedableError"]

_MOST_ELEMENTS = 1 << 27
_SPECIAL_IDS = 5
"""Vocabularies begin with special tokens; real ids are drawn from beyond them."""
_MASKS = ("mask", "decoder_mask", "pixel_mask")


class UnfeedableError(Exception):
    """No inputs can be made for this model; the message says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """What stands where.

    Attributes:
        padded: 0 for the padding id, or zeros, in padded positions; any other number seeds other content.
        others: seeds the real content of every row but the first.
        masked: masks say what is padding; else they say that nothing is.
        scale: of continuous content in padded positions.
    """

    padded: int = 0
    others: int = 0
    masked: bool = True
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Shapes and padding: a scenario that can be filled with content."""

    scenario: Scenario

    @property
    def counts(self) -> dict[str, tuple[int, ...]]:
        """How many positions of each row are real, by the role that carries the sequence."""
        return {sequence.role: tuple(int(count) for count in sequence.real.sum(axis=1)) for sequence in self.scenario.sequences}


class Inputs:
    """Makes inputs for one model.

    Attributes:
        seed: of everything that is drawn.
    """

    def __init__(self, graph: Graph, traced: Trace, forms: Mapping[int, MaskForm], pad_id: int | None, seed: int) -> None:
        self.graph, self.traced, self.forms, self.pad_id, self.seed = graph, traced, forms, pad_id, seed

    def batch(self, side: str, sizes: Sizes, counts: Mapping[str, tuple[int, ...]] | None = None) -> Batch:
        """Rows of different lengths, padded on one side.

        Args:
            side: ``right`` or ``left``.
            sizes: of dimensions that the model leaves open.
            counts: real positions of each row, by the role that carries the sequence.

        Raises:
            UnfeedableError: an input holds text or is too large, or the padding does not fit the model's fixed shapes.
        """
        total = 0
        for value in self.graph.inputs:
            if value.dtype in (DType.STRING, DType.UNKNOWN):
                kind = "text" if value.dtype is DType.STRING else "a type that is not known"
                raise UnfeedableError(f"input '{value.name}' takes {kind}, for which verify makes no inputs")
            total += math.prod(dim for dim in value.shape or () if isinstance(dim, int))
        if total > _MOST_ELEMENTS:
            raise UnfeedableError(f"its inputs have {total} elements, more than verify feeds")
        scenario = build(self.graph, self.traced, side, sizes, self.forms, pad_id=self.pad_id, counts=counts)
        if any(sequence.role == "features" for sequence in scenario.sequences):
            seen = run(self.graph, scenario.bindings, scenario.layout, symbols=scenario.symbols)
            settle_frames(self.graph, scenario, seen)
        for sequence in scenario.sequences:
            wanted = (counts or {}).get(sequence.role)
            if wanted is not None and (len(wanted) != scenario.batch or tuple(sequence.real.sum(axis=1)) != wanted):
                raise UnfeedableError("the model fixes its shapes")
        return Batch(scenario)

    def longer(self, batch: Batch, by: int = 3) -> Batch:
        """The same rows with more padding.

        Raises:
            UnfeedableError: the model fixes its lengths.
        """
        scenario = batch.scenario
        if any(sequence.static for sequence in scenario.sequences):
            raise UnfeedableError("the model fixes its length")
        sizes = scenario.sizes
        # Continuous sequences are strided over: a step that is a multiple of the usual strides leaves frames where they are.
        sizes = replace(sizes, length=sizes.length + by, other=sizes.other + by, frames=sizes.frames + 64)
        return self.batch(scenario.side, sizes, batch.counts)

    def alone(self, batch: Batch) -> Batch:
        """The first row without padding and company.

        Raises:
            UnfeedableError: the model fixes its length or its batch.
        """
        scenario, counts = batch.scenario, {role: numbers[:1] for role, numbers in batch.counts.items()}
        if any(sequence.static for sequence in scenario.sequences):
            raise UnfeedableError("the model fixes its length")
        sizes = replace(scenario.sizes, batch=1)
        own = {"ids": "length", "decoder_ids": "length", "encoder_states": "other", "features": "frames", "pixels": "pixels"}
        for role, (count, *_) in counts.items():
            name = "other" if role == "ids" and "decoder_ids" in counts else own[role]
            sizes = replace(sizes, **{name: count})
        return self.batch(scenario.side, sizes, counts)

    def feeds(self, batch: Batch, content: Content) -> list[Feed]:
        """The numbers for every input, in the order of the graph's inputs."""
        return [
            Feed(
                value.names or ((value.name,) if value.name else ()),
                self.traced.roles[at].name,
                self._array(batch, at, value, content),
            )
            for at, value in enumerate(self.graph.inputs)
        ]

    def ids_compared(self) -> bool:
        """The graph compares ids with a constant: padded positions may be told by what stands in them."""
        carriers = (*self.traced.inputs_of("ids"), *self.traced.inputs_of("decoder_ids"))
        return any(use.use is Use.COMPARE for at in carriers for use in self.traced.observations.get(at, ()))

    def padded(self, batch: Batch, at: int) -> Array:
        """bool, in the shape of an input: the elements that stand in padded positions."""
        shadow = batch.scenario.bindings[self.graph.inputs[at]]
        cells = (shadow.labels & batch.scenario.layout.padded) != 0
        return np.broadcast_to(cells, shadow.shape)

    # -- one input -----------------------------------------------------------------------------------------------------

    def _array(self, batch: Batch, at: int, value: Value, content: Content) -> Array:
        scenario, role = batch.scenario, self.traced.roles[at].name
        shadow = scenario.bindings[value]
        if role in _MASKS and not content.masked:
            keeps = self.forms.get(at, "keep1") == "keep1"
            return np.full(shadow.shape, keeps, dtype=shadow.dtype.numpy)
        if role in ("ids", "decoder_ids") and any(sequence.role == role for sequence in scenario.sequences):
            return self._ids(batch, at, shadow, content)
        if shadow.value is not None:
            return np.array(np.broadcast_to(shadow.value, shadow.shape), dtype=shadow.dtype.numpy)
        return self._drawn(batch, at, shadow, content)

    def _key(self, at: int) -> tuple[int, int]:
        """What identifies an input across files: its role, and which of the inputs of that role it is."""
        role = self.traced.roles[at].name
        return zlib.crc32(role.encode()), self.traced.inputs_of(role).index(at)

    def _real(self, at: int, row: int, content: Content) -> np.random.Generator:
        """For the real content of one row of one input."""
        return np.random.default_rng((self.seed, *self._key(at), row, content.others if row else 0))

    def _other(self, at: int, row: int, content: Content) -> np.random.Generator:
        """For what stands in the padded positions of one row of one input."""
        return np.random.default_rng((self.seed, *self._key(at), row, content.padded, 1))

    def _axis(self, shadow: Shadow) -> int:
        """The axis over positions: the one along which labels vary within a row."""
        sizes = shadow.labels.shape
        return max((axis for axis, size in enumerate(sizes) if size > 1 and (axis or len(sizes) == 1)), default=len(sizes) - 1)

    def _ids(self, batch: Batch, at: int, shadow: Shadow, content: Content) -> Array:
        """Random ids in place of the shadow's consecutive ones, which a model may hold for something special."""
        assert shadow.value is not None
        ids = np.array(np.broadcast_to(shadow.value, shadow.shape)).astype(np.int64)
        padded, axis = self.padded(batch, at), self._axis(shadow)
        uses = self.traced.observations.get(at, ())
        rows = min((use.rows for use in uses if use.use is Use.INDEX and use.direct), default=1000)
        low = min(_SPECIAL_IDS, max(rows - 2, 0))
        reserved = {
            batch.scenario.pad_id,
            *(int(use.number) for use in uses if use.use is Use.COMPARE and use.number is not None),
        }
        allowed = np.array(
            [number for number in range(low, max(min(rows - 1, low + 50_000), low + 1)) if number not in reserved] or [low]
        )
        moved, gaps = np.moveaxis(ids, axis, -1), np.moveaxis(padded, axis, -1)
        packed = [sequence.real for sequence in batch.scenario.sequences if sequence.packed and moved.ndim == 1]
        for row in range(moved.shape[0] if moved.ndim > 1 else len(packed[0]) if packed else 1):
            line, gap = (moved[row], gaps[row]) if moved.ndim > 1 else (moved, ~packed[0][row] if packed else gaps)
            real = np.flatnonzero(~gap.reshape(-1, gap.shape[-1])[0])
            # The last real id stays: it may be the one that ends a text.
            line[..., real[:-1]] = self._real(at, row, content).choice(allowed, size=max(len(real) - 1, 0))
            if content.padded and not packed:
                drawn = self._other(at, row, content).choice(allowed, size=gap.shape[-1])
                line[...] = np.where(gap, drawn, line)
        return ids.astype(shadow.dtype.numpy)

    def _drawn(self, batch: Batch, at: int, shadow: Shadow, content: Content) -> Array:
        shape, rows = shadow.shape, batch.scenario.batch
        if not shape:
            return _as(self._real(at, 0, content).normal(size=()), shadow.dtype)
        padded, axis = self.padded(batch, at), self._axis(shadow)
        by_row = len(shape) > 1 and shape[0] == rows
        made = np.empty(shape)
        for row in range(rows if by_row else 1):
            part: tuple[slice, ...] = (slice(row, row + 1),) if by_row else ()
            target, gap = np.moveaxis(made[part], axis, 0), np.moveaxis(padded[part], axis, 0)
            real = ~gap.reshape(gap.shape[0], -1)[:, 0] if gap.size else np.ones(gap.shape[:1], dtype=bool)
            target[real] = self._real(at, row, content).normal(size=(int(real.sum()), *target.shape[1:]))
            other = self._other(at, row, content).normal(size=target.shape) * content.scale
            target[~real] = other[~real] if content.padded else 0.0
        return _as(made, shadow.dtype)


def _as(drawn: npt.ArrayLike, dtype: DType) -> Array:
    numbers: Array = np.asarray(drawn)
    if dtype is DType.BOOL:
        return np.ones(numbers.shape, dtype=bool)
    if dtype.is_integer:
        return np.abs(numbers).astype(dtype.numpy)
    return numbers.astype(dtype.numpy)
