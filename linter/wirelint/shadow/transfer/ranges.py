"""Recognises a dynamic quantiser that is written out: the range of a tensor, from which a scale is taken, by which the tensor
is divided before it is rounded.

What a converter makes of ``DynamicQuantizeLinear`` (OpenVINO), and what quantisation in PyTorch exports, is such a sequence.
What depends on the range alone depends on the tensor as on the scale of a quantiser: really, and little.
"""

from __future__ import annotations

from wirelint.graph import Op, Value
from wirelint.ops import Family, family

__all__ = ["is_quantiser_range"]

_EXTREMES = {"ReduceMax", "ReduceMin"}
_ROUNDS = {"Round", "RoundHalfAway"}
_BY_ELEMENT = {Family.UNARY, Family.BINARY, Family.COMPARE, Family.SELECT, Family.MOVE}
_RESCALES = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Clip", "Where", "QuantizeLinear", "DequantizeLinear"}
_FURTHEST = 64
"""Values that are looked at on the way; a scale and a zero point take about twenty."""


def is_quantiser_range(op: Op) -> bool:
    """Whether a reduction gives nothing but the range of a quantiser.

    That is so when some data are divided by what is computed from it (and from other extremes and single numbers) and
    are then rounded, and when all else that it does is to scale or to shift data.
    """
    if op.kind not in _EXTREMES or op.inputs[0] is None or not op.inputs[0].dtype.is_float:
        return False
    frontier, numbers, rounds = list(op.outputs), set(op.outputs), False
    while frontier:
        value = frontier.pop()
        for consumer, slot in value.consumers:
            others = [entry for at, entry in enumerate(consumer.inputs) if at != slot and entry is not None]
            if family(consumer.kind) in _BY_ELEMENT and all(_is_number(entry, numbers) for entry in others):
                news = [made for made in consumer.outputs if made not in numbers]
                numbers.update(news)
                frontier += news
                if len(numbers) > _FURTHEST:
                    return False
            elif consumer.kind not in _RESCALES or consumer.bodies:
                return False
            else:
                rounds = rounds or _quantises(consumer, slot)
    return rounds


def _is_number(value: Value, numbers: set[Value]) -> bool:
    """Computed from extremes and single numbers alone; shapes and axes may stand beside them."""
    frontier, seen = [value], set[Value]()
    while frontier:
        entry = frontier.pop()
        if entry in numbers or entry in seen:
            continue
        if entry.constant is not None:
            if entry.constant.size > 1 and entry.dtype.is_float:
                return False
            continue
        op = entry.producer
        if op is None or len(seen) > _FURTHEST:
            return False
        seen.add(entry)
        if op.kind in _EXTREMES:
            continue
        if family(op.kind) not in _BY_ELEMENT:
            return False
        frontier += [operand for operand in op.inputs if operand is not None]
    return True


def _quantises(op: Op, slot: int) -> bool:
    """The operator divides data by the operand in ``slot``, and they are rounded after it."""
    if op.kind == "QuantizeLinear":
        return slot == 1
    if op.kind not in ("Div", "Mul") or (op.kind == "Div" and slot != 1):
        return False
    frontier, seen = list(op.outputs), set[Value]()
    while frontier and len(seen) < _FURTHEST:
        value = frontier.pop()
        if value in seen:
            continue
        seen.add(value)
        for consumer, at in value.consumers:
            if consumer.kind in _ROUNDS:
                return True
            if consumer.kind in ("Add", "Sub", "Max", "Min", "Clip", "Identity", "Cast") or (
                family(consumer.kind) is Family.MOVE and not at
            ):
                frontier += consumer.outputs
    return False
