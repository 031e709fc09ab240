"""What each axis of an input stands for, and which size it gets in a shadow run.

Symbolic dimensions get small sizes that differ from one another, so that an axis can be told by its length; static ones
are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wirelint.graph import Dim, Graph, Value
from wirelint.trace.evidence import Observation, Use
from wirelint.trace.flow import bits
from wirelint.trace.roles import Trace

__all__ = ["PADDED_ROLES", "Shapes", "Sizes", "bag_offsets", "second_masks"]

PADDED_ROLES = ("ids", "decoder_ids", "encoder_states", "features")
"""Roles of inputs whose positions may be padding."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes for the dimensions that a model leaves open.

    Attributes:
        batch: rows.
        length: tokens (or frames) per row.
        other: length of a second sequence: encoder states beside decoder ids.
        past: cached positions.
        frames: length of continuous sequences.
        pixels: height and width of images.
    """

    batch: int = 2
    length: int = 7
    other: int = 11
    past: int = 3
    frames: int = 67
    pixels: int = 32


def _meanings(role: str, value: Value, uses: Iterable[Observation], batch: Dim, *, stream: bool) -> tuple[str, ...]:
    """What each axis of an input stands for, by its role and rank.

    Args:
        role: of the input.
        value: the input.
        uses: what the graph does with it.
        batch: what the model declares the number of rows to be.
        stream: the model is fed one row, step by step.
    """
    rank = 0 if value.shape is None else len(value.shape)
    if value.shape is None:
        rank = {
            "lengths": 1,
            "cache_position": 1,
            "past": 4,
            "pixels": 4,
            "encoder_states": 3,
            "features": 3,
            "bbox": 3,
            "other": 0,
        }.get(role, 2)
    if role in ("ids", "decoder_ids", "segment"):
        return {1: ("length",), 2: ("batch", "length"), 3: ("batch", "one", "length")}.get(rank, ("one",) * rank)
    if role == "position":
        return {1: ("length",), 2: ("batch", "length"), 3: ("one", "batch", "length")}.get(rank, ("one",) * rank)
    if role in ("mask", "decoder_mask"):
        return {1: ("keys",), 2: ("batch", "keys"), 3: ("batch", "length", "keys"), 4: ("batch", "one", "length", "keys")}.get(
            rank, ("one",) * rank
        )
    if role == "encoder_states":
        return ("batch", *("one",) * (rank - 3), "other", "one") if rank >= 3 else ("batch", "other")[:rank]
    if role == "bbox":
        return ("batch", "length", "four")
    if role == "lengths":
        return ("batch", *("one",) * (rank - 1)) if rank else ()
    if role == "cache_position":
        return ("length",)
    if role == "past":
        return {
            4: ("batch", "heads", "past", "size"),
            5: ("two", "batch", "heads", "past", "size"),
            3: ("batch", "past", "size"),
        }.get(rank, ("one",) * rank)
    if role == "pixels":
        return (
            ("batch", *("one",) * (rank - 4), "three", "pixels", "pixels")
            if rank >= 4
            else ("batch", "pixels", "pixels")[:rank]
        )
    if role == "pixel_mask":
        return ("batch", "pixels", "pixels")[:rank]
    if stream and rank == 2 and value.shape is not None and not isinstance(value.shape[0], int):
        return ("frames", "size")
    if role == "features":
        convolved = any(use.use is Use.CONVOLVE for use in uses)
        if rank == 3 and _time_first(value, uses):
            return ("frames", "batch", "size")
        if rank == 3:
            known = [isinstance(dim, int) for dim in value.shape or ()]
            channels_first = known[1:] == [True, False] or (known[1:] != [False, True] and convolved)
            return ("batch", "size", "frames") if channels_first else ("batch", "frames", "size")
        return {2: ("batch", "frames"), 1: ("frames",)}.get(rank, ("batch", *("frames",) * (rank - 1)))
    if rank == 3 and _is_state(uses):
        return ("one", "batch", "size")
    rows = _rows_of_other(value.shape, batch) if value.shape else 0
    return tuple("batch" if axis == rows else "one" for axis in range(rank))


def _rows_of_other(declared: tuple[Dim, ...], batch: Dim) -> int | None:
    """The axis that runs over the rows in an input that is nothing in particular: a state, a setting, numbers beside a text.

    It is the first one, unless the declaration says otherwise: the open axis that bears the name of the batch, or the only
    open one behind a first axis of fixed length (layers, directions) in a model whose batch is open.
    """
    if isinstance(batch, int) or not isinstance(declared[0], int):
        return 0
    if batch is not None and batch in declared:
        return declared.index(batch)
    free = [axis for axis, dim in enumerate(declared) if not isinstance(dim, int)]
    return free[0] if len(free) == 1 else None


def _declared_batch(graph: Graph, trace: Trace) -> Dim:
    """The first axis of the main input, or else of the first input that leaves it open."""
    shapes = [(role.name, value.shape) for role, value in zip(trace.roles, graph.inputs, strict=True) if value.shape]
    main = [shape[0] for role, shape in shapes if role in (*PADDED_ROLES, "pixels") and len(shape) > 1]
    others = [shape[0] for _, shape in shapes if not isinstance(shape[0], int)]
    return next(iter(main or others), 0)


def _is_stream(graph: Graph, trace: Trace) -> bool:
    """Recurrent operators begin with the state of a single row, declared so."""
    states = [value.shape for at, value in enumerate(graph.inputs) if _is_state(trace.observations.get(at, ()))]
    return bool(states) and all(shape is not None and len(shape) == 3 and shape[1] == 1 for shape in states)


def _is_state(uses: Iterable[Observation]) -> bool:
    """The first state of a recurrent operator: directions, rows, hidden units."""
    return any(use.use is Use.STATE for use in uses)


def _time_first(value: Value, uses: Iterable[Observation]) -> bool:
    """A recurrent operator reads the input as it comes, steps first and rows second, as most frameworks do by default."""
    return any(
        use.use is Use.STEP
        and use.op.operand(0) is value
        and use.op.kind in ("LSTM", "GRU", "RNN")
        and not use.op.attrs.get("layout")
        for use in uses
    )


def bag_offsets(trace: Trace) -> list[int]:
    """The inputs that say where the ids of each row begin, where those of all rows stand along one axis."""
    return [at for at in trace.inputs_of("lengths") if any(use.use is Use.BAG for use in trace.observations.get(at, ()))]


def second_masks(trace: Trace) -> set[int]:
    """Masks of the second sequence, by what they act on."""
    decoders = sum(1 << at for at in trace.inputs_of("decoder_ids"))
    if not decoders:
        return set()
    found = set()
    for at in trace.inputs_of("mask"):
        sites = trace.roles[at].sites
        if sites and not any(trace.flow[site.key].reach & decoders for site in sites):
            found.add(at)
    return found


class Shapes:
    """Resolves declared shapes; a symbol has one size throughout.

    Attributes:
        axes: what each axis of each input stands for.
    """

    def __init__(self, graph: Graph, trace: Trace, sizes: Sizes, symbols: dict[str, int]) -> None:
        self.graph, self.trace, self.sizes, self.symbols = graph, trace, sizes, symbols
        batch, stream = _declared_batch(graph, trace), _is_stream(graph, trace)
        self.axes = [
            _meanings(
                role.name,
                value,
                trace.observations.get(at, ()),
                batch,
                stream=stream and role.name in ("features", "other"),
            )
            for at, (role, value) in enumerate(zip(trace.roles, graph.inputs, strict=True))
        ]
        self.has_past = bool(trace.inputs_of("past"))
        self.encoder_only_masks = second_masks(trace)
        self.cached_whole = self._cached_whole()

    def _cached_whole(self) -> set[int]:
        """Caches of a second sequence: cross-attention takes its keys and values from them as they are."""
        trace, found = self.trace, 0
        past = sum(1 << at for at in trace.inputs_of("past"))
        for site in trace.sites:
            for value in (site.key, site.value):
                reach = trace.flow[value].reach
                found |= reach if not reach & ~past else 0
        return set(bits(found))

    def axis(self, at: int) -> int:
        """The axis of an input that runs over its sequence."""
        axes = self.axes[at]
        for name in ("length", "other", "frames", "pixels"):
            if name in axes:
                return axes.index(name) if name != "pixels" else len(axes) - 1
        return 0

    def of(self, at: int) -> tuple[int, ...]:
        value = self.graph.inputs[at]
        axes = self.axes[at]
        declared: tuple[Dim, ...] = value.shape if value.shape is not None else (None,) * len(axes)
        shape = []
        for axis, dim in enumerate(declared):
            meaning = axes[axis] if axis < len(axes) else "one"
            shape.append(self._size(at, dim, meaning))
        return tuple(shape)

    def _size(self, at: int, dim: Dim, meaning: str) -> int:
        if isinstance(dim, int):
            return max(dim, 0)
        if isinstance(dim, str) and dim in self.symbols:
            return self.symbols[dim]
        size = self._default(at, meaning)
        if isinstance(dim, str):
            self.symbols[dim] = size
        return size

    def _default(self, at: int, meaning: str) -> int:
        sizes = self.sizes
        if meaning == "keys":
            if at in self.encoder_only_masks:
                return self._second_length()
            length = self._token_length()
            return length + (self.past_length() if self.has_past else 0)
        if meaning == "length":
            return self._token_length() if self.trace.roles[at].name not in ("ids", "decoder_ids") else self._own_length(at)
        if meaning == "past" and at in self.cached_whole:
            return self._second_length()
        table = {
            "batch": sizes.batch, "other": sizes.other, "frames": sizes.frames, "pixels": sizes.pixels, "past": sizes.past,
            "one": 1, "two": 2, "three": 3, "four": 4, "heads": 2, "size": self._channels(at),
        }  # fmt: skip
        return table[meaning]

    def _channels(self, at: int) -> int:
        for use in self.trace.observations.get(at, ()):
            weight = use.op.operand(1)
            shape = () if weight is None or weight.shape is None else weight.shape
            channels = (
                shape[1]
                if use.use is Use.CONVOLVE and len(shape) > 1
                else shape[0]
                if use.use is Use.PROJECT and shape
                else None
            )
            if isinstance(channels, int):
                return channels * (int(use.op.attrs.get("group", 1)) if use.use is Use.CONVOLVE else 1)
        return 8

    def _own_length(self, at: int) -> int:
        """Ids of an encoder beside a decoder's get a length of their own."""
        if self.trace.roles[at].name == "ids" and self.trace.inputs_of("decoder_ids"):
            return self.sizes.other
        return self.sizes.length

    def _token_length(self) -> int:
        """Positions of the main sequence: of tokens, or of features in a model without tokens."""
        return self._length_of(("decoder_ids", "ids", "features"), self.sizes.length)

    def _second_length(self) -> int:
        """Positions of the sequence that a decoder attends to."""
        return self._length_of(("ids", "features", "encoder_states"), self.sizes.other)

    def _length_of(self, roles: tuple[str, ...], fallback: int) -> int:
        for role in roles:
            for at in self.trace.inputs_of(role):
                shape = self.graph.inputs[at].shape
                dim = shape[self.axis(at)] if shape else None
                if isinstance(dim, int):
                    return dim
                if isinstance(dim, str) and dim in self.symbols:
                    return self.symbols[dim]
                if role in ("ids", "decoder_ids"):
                    return self._own_length(at)
                return self.sizes.frames if role == "features" else self.sizes.other
        return fallback

    def past_length(self) -> int:
        return self.sizes.past

    def past(self, resolved: list[tuple[int, ...]]) -> int:
        """Cached positions that stand before the new ones."""
        for at in self.trace.inputs_of("past"):
            axes = self.axes[at]
            if at not in self.cached_whole and "past" in axes and axes.index("past") < len(resolved[at]):
                return resolved[at][axes.index("past")]
        return 0

    def rows(self, resolved: list[tuple[int, ...]]) -> int:
        """How many rows a batch has: as many as the first input that holds a sequence or images."""
        for role, axes, shape in zip(self.trace.roles, self.axes, resolved, strict=True):
            if role.name in (*PADDED_ROLES, "pixels") and len(shape) >= 2:
                return 1 if axes == ("frames", "size") else shape[axes.index("batch") if "batch" in axes else 0]
        return next((resolved[at][0] for at in bag_offsets(self.trace) if resolved[at]), self.sizes.batch)
