"""What the consumers of each graph input say about it, collected in one pass over the graph.

An observation names the operator that decides and what it does with the input.  Which role that makes is for
:mod:`wirelint.trace.roles` to say.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass

from wirelint.dtypes import DType
from wirelint.graph import Graph, Op, Value
from wirelint.ops import Family, family
from wirelint.trace.flow import EMPTY, Flow, bits
from wirelint.trace.sites import Lookup, Site

__all__ = ["Observation", "Observations", "Use", "observe"]


class Use(enum.Enum):
    """What an operator does with an input."""

    INDEX = "indexes a table"
    ANGLE = "gives the angles of a rotary or sinusoidal encoding"
    SCORE = "acts on attention scores"
    LENGTH = "says how many keys or steps count"
    CACHE = "is joined with new keys or values"
    CROSS = "gives the keys of cross-attention"
    PROJECT = "is projected by weights"
    CONVOLVE = "is convolved"
    STEP = "runs through a recurrent operator"
    WEIGH = "weighs hidden states"
    STATE = "is the first state of a recurrent operator"
    WRITE = "says where values are written"
    BRANCH = "chooses a branch"
    BOUND = "bounds a slice, a range or a shape"
    BAG = "says where the numbers of each row begin among those of all rows"
    COMPARE = "is compared with a constant"
    COUNT = "is counted up along an axis"
    TEXT = "is text"
    BLANK = "is multiplied into ids before they are looked up"
    PAIR = "is compared with itself, position by position"
    CARRY = "stands among hidden states"


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One use of one input.

    Attributes:
        use: what is done.
        op: the operator that does it.
        direct: the input's own values arrive there, moved, shifted or scaled at most.
        rows: rows of the table, for ``INDEX``.
        site: the attention site, for ``SCORE``, ``CACHE``, ``CROSS`` and ``LENGTH`` at one.
        rank: number of spatial axes, for ``CONVOLVE``.
        number: the constant, for ``COMPARE``.
        slot: operand index.
    """

    use: Use
    op: Op
    direct: bool = True
    rows: int = 0
    site: Site | None = None
    rank: int = 0
    number: float | None = None
    slot: int = 0


Observations = dict[int, list[Observation]]
"""Observations by index of the graph input."""


def observe(graph: Graph, flow: Flow, sites: list[Site], lookups: list[Lookup]) -> Observations:
    """Collects every decisive use of every graph input."""
    found: Observations = defaultdict(list)

    def note(inputs: int, use: Use, op: Op, **more: object) -> None:
        for at in bits(inputs):
            found[at].append(Observation(use, op, **more))  # type: ignore[arg-type]

    for lookup in lookups:
        state = flow[lookup.index]
        if not state.linear and state.derived & ~state.counted:
            blanked = _blanked(lookup.index, flow)
            if blanked is not None:
                ids, mask = blanked
                note(ids, Use.INDEX, lookup.op, rows=lookup.rows)
                note(mask, Use.BLANK, lookup.op)
                continue
        angle = _turns(lookup.op, flow)
        use = Use.ANGLE if angle else Use.INDEX
        note(state.linear, use, lookup.op, rows=lookup.rows)
        note(state.derived & ~state.linear, use, lookup.op, rows=lookup.rows, direct=False)
    for site in sites:
        _at_site(site, flow, note)
    for op in graph.walk():
        _at_operator(op, flow, note)
    return found


def _blanked(index: Value, flow: Flow) -> tuple[int, int] | None:
    """Two inputs that are multiplied before a lookup: ids, and what blanks them.

    Which is which can't be told from a product; ids are written first (``input_ids * mask``), unless the other one stands
    for them elsewhere.
    """
    for _ in range(8):
        op = index.producer
        if op is None:
            return None
        if op.kind == "Mul" and op.inputs[0] is not None and op.inputs[1] is not None:
            first, second = flow[op.inputs[0]].linear, flow[op.inputs[1]].linear
            return (first, second) if first and second and not first & second else None
        if family(op.kind) is not Family.MOVE or op.inputs[0] is None:
            return None
        index = op.inputs[0]
    return None


def _turns(op: Op, flow: Flow) -> bool:
    """The rows of a table that are looked up are multiplied with hidden states: sines and cosines, not an embedding."""
    frontier = [(value, 0) for value in op.outputs]
    while frontier:
        value, depth = frontier.pop()
        for consumer, slot in value.consumers:
            if consumer.kind == "Mul":
                other = flow[consumer.inputs[1 - slot]]
                if other.mixed:
                    return True
            elif consumer.kind == "RotaryEmbedding" and slot in (1, 2):
                return True
            elif depth < 8 and (family(consumer.kind) is Family.MOVE or consumer.kind in ("Sin", "Cos")):
                frontier += [(made, depth + 1) for made in consumer.outputs]
    return False


def _at_site(site: Site, flow: Flow, note: object) -> None:
    assert callable(note)
    for slot, term in enumerate(site.terms):
        state = flow[term]
        lengths = site.fused and site.op.kind == "Attention" and term in (site.op.operand(6), site.op.operand(7))
        note(state.derived, Use.LENGTH if lengths else Use.SCORE, site.op, site=site, direct=bool(state.linear), slot=slot)
    fused_past = [value for value in (site.op.operand(4), site.op.operand(5)) if value is not None] if site.fused else []
    for value in fused_past:
        note(flow[value].bare, Use.CACHE, site.op, site=site)
    query = flow[site.query]
    for slot, operand in enumerate((site.key, site.value)):
        if operand is None:
            continue
        joined = _cached(operand, flow)
        if joined:
            note(joined, Use.CACHE, site.op, site=site, slot=slot)
        # Hidden states of another sequence: they make keys and values but not queries.
        note(flow[operand].reach & ~query.reach & ~joined, Use.CROSS, site.op, site=site, direct=flow[operand].mixed, slot=slot)


def _cached(value: Value, flow: Flow) -> int:
    """The inputs whose own values stand among these keys or values, before the new ones."""
    found, frontier, seen = 0, [value], set[Value]()
    while frontier and len(seen) < 64:
        entry = frontier.pop()
        if entry in seen:
            continue
        seen.add(entry)
        found |= flow[entry].bare if not flow[entry].mixed else 0
        op = entry.producer
        if op is None:
            continue
        if family(op.kind) is Family.MOVE or op.kind in (
            "Add",
            "Mul",
            "Div",
            "Where",
            "ScatterND",
            "ScatterUpdate",
            "ScatterElements",
            "Gather",
            "ReadValue",
        ):
            frontier += [operand for operand in op.inputs if operand is not None and operand.dtype.is_float]
        elif op.kind in ("If", "Loop"):
            for body in op.bodies.values():
                frontier += [result for result, own in zip(body.outputs, op.outputs, strict=False) if own is entry]
    return found


def _are_weights(value: Value | None) -> bool:
    """What a softmax gives, moved or selected from at most: it weighs, and what it is multiplied with is weighed."""
    frontier, seen = [value], set[Value]()
    while frontier and len(seen) < 64:
        entry = frontier.pop()
        op = None if entry is None or entry in seen else entry.producer
        if op is None or entry is None:
            continue
        seen.add(entry)
        if op.kind == "Softmax":
            return True
        if op.kind == "Where":
            frontier += op.inputs[1:3]
        elif family(op.kind) is Family.MOVE and op.inputs:
            frontier.append(op.inputs[0])
    return False


def _at_operator(op: Op, flow: Flow, note: object) -> None:
    assert callable(note)
    kind, group = op.kind, family(op.kind)
    operands = [flow[value] for value in op.inputs]
    first = operands[0] if operands else EMPTY
    if kind in ("MatMul", "Einsum", "MatMulInteger"):
        for slot, state in enumerate(operands[:2]):
            other = operands[1 - slot] if len(operands) > 1 else EMPTY
            if not other.reach:
                note(state.bare, Use.PROJECT, op, slot=slot)
            elif state.derived and not state.mixed and other.mixed and not _are_weights(op.inputs[1 - slot]):
                note(state.derived, Use.WEIGH, op, slot=slot, direct=bool(state.linear))
    elif kind in ("Conv", "ConvTranspose"):
        rank = len(op.inputs[1].shape or ()) - 2 if len(op.inputs) > 1 and op.inputs[1] is not None else 0
        note(first.bare, Use.CONVOLVE, op, rank=rank)
    elif group is Family.RECURRENT:
        note(first.bare, Use.STEP, op)
        if len(operands) > 4 and kind in ("LSTM", "GRU", "RNN"):
            note(operands[4].derived, Use.LENGTH, op, slot=4)
        for state in operands[5:7]:
            note(state.bare, Use.STATE, op)
    elif kind == "Add":
        for slot, state in enumerate(operands[:2]):
            if operands[1 - slot].mixed or operands[1 - slot].indexed:
                note(state.bare, Use.CARRY, op, slot=slot)
    elif kind == "Mul":
        for slot, state in enumerate(operands[:2]):
            other = operands[1 - slot]
            if state.derived and not state.mixed and (other.mixed or other.indexed) and not state.indexed:
                note(state.derived, Use.WEIGH, op, slot=slot, direct=bool(state.linear))
    elif kind == "Where":
        if operands[0].derived and any(state.mixed or state.indexed for state in operands[1:]):
            note(operands[0].derived, Use.WEIGH, op, slot=0, direct=bool(operands[0].linear))
    elif kind in ("Sin", "Cos", "RotaryEmbedding"):
        state = operands[3] if kind == "RotaryEmbedding" and len(operands) > 3 else first
        if not state.mixed:
            note(state.derived, Use.ANGLE, op, direct=bool(state.linear))
    elif kind == "GatherElements":
        # Rows of a table of sines that are picked number by number.
        index = operands[1] if len(operands) > 1 else EMPTY
        if not first.reach and op.inputs[0] is not None and op.inputs[0].dtype.is_float and _turns(op, flow):
            note(index.derived, Use.ANGLE, op, direct=bool(index.linear), slot=1)
    elif kind in ("Equal", "NotEqual"):
        if len(operands) > 1:
            note(operands[0].linear & operands[1].linear, Use.PAIR, op)
        for slot, state in enumerate(operands[:2]):
            constant = op.inputs[1 - slot] if len(op.inputs) > 1 else None
            number = _number(constant)
            if state.linear and number is not None:
                note(state.linear, Use.COMPARE, op, number=number)
    elif kind == "EmbeddingBag":
        note(operands[2].derived if len(operands) > 2 else 0, Use.BAG, op, slot=2)
    elif group is Family.SCATTER:
        note(operands[1].derived if len(operands) > 1 else 0, Use.WRITE, op, slot=1)
    elif group is Family.SCAN:
        note(first.derived, Use.COUNT, op)
    elif kind == "If":
        note(first.derived, Use.BRANCH, op)
    elif kind == "Range" or (group is Family.MOVE and kind not in ("Identity", "Concat", "Cast")):
        for slot, state in enumerate(operands if kind == "Range" else operands[1:]):
            note(state.derived, Use.BOUND, op, slot=slot)
        if kind == "Slice" and len(operands) > 1 and op.inputs[0] is not None and not op.inputs[0].dtype.is_float:
            note(operands[1].derived if first.linear & ~operands[1].derived else 0, Use.BAG, op, slot=1)
    elif group is Family.OPAQUE and op.inputs and op.inputs[0] is not None and op.inputs[0].dtype is DType.STRING:
        note(first.reach, Use.TEXT, op)


def _number(value: Value | None) -> float | None:
    """A constant of one element, followed through conversions."""
    for _ in range(6):
        if value is None:
            return None
        if value.constant is not None:
            held = value.constant.load(16) if value.constant.size == 1 else None
            return None if held is None else float(held.reshape(-1)[0])
        op = value.producer
        if op is None or op.kind not in ("Identity", "Cast", "Expand", "Reshape", "Unsqueeze"):
            return None
        value = op.inputs[0]
    return None
