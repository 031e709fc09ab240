"""A forward dataflow analysis: which graph inputs stand in each value, and in what form.

Sets of inputs are bit sets (bit i for input i), so a step costs a few integer operations whatever the number of inputs.
The forms are ordered from "the input itself" to "anything":

- ``linear``: the input's own values, moved, converted, shifted or scaled by values without inputs;
- ``derived``: computed from the input element by element (compared, counted, multiplied with another mask), so that it
  still speaks about the input's own positions;
- ``reach``: it arrives in any way;
- ``shape``: its shape was read.

What went through a matrix product, a normalisation or a table is no longer derived: it is a hidden state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wirelint.dtypes import DType
from wirelint.graph import Graph, Op, Value
from wirelint.ops import Family, family

__all__ = ["EMPTY", "Flow", "State", "bits", "is_table", "trace_flow"]


@dataclass(frozen=True, slots=True)
class State:
    """What is known of one value.

    Attributes:
        reach, derived, linear, shape: bit sets of inputs, as the module says.
        indexed: inputs that index a floating table whose rows stand here, not yet mixed with anything.
        counted: inputs of which a running sum stands here.
        mixed: it is a hidden state: a matrix product, convolution, normalisation or table stands behind it.
        bare: inputs that stand here unchanged but for movement and conversion, or standardised by their own mean and spread.
        summed: inputs over an axis of which a sum or another statistic stands here.
        truth: truth values stand here, or zeros and ones made of them.
    """

    reach: int = 0
    derived: int = 0
    linear: int = 0
    shape: int = 0
    indexed: int = 0
    counted: int = 0
    mixed: bool = False
    bare: int = 0
    summed: int = 0
    truth: bool = False


EMPTY = State()

_ORDERLY = {"Abs", "Neg", "Clip", "Ceil", "Floor", "Round", "RoundHalfAway", "Relu", "Sign"}
_LINEAR = {"Add", "Sub", "Mul", "Div", "Sum", "Neg", "Clip", "Cast"}


def bits(number: int) -> list[int]:
    """The positions of the set bits, in ascending order."""
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


class Flow:
    """The result: a :class:`State` for every value.

    Attributes:
        inputs: the graph inputs; bit i stands for the i-th.
    """

    def __init__(self, graph: Graph) -> None:
        self.inputs = graph.inputs
        self._states: dict[Value, State] = {}

    def __getitem__(self, value: Value | None) -> State:
        return EMPTY if value is None else self._states.get(value, EMPTY)

    def __setitem__(self, value: Value, state: State) -> None:
        self._states[value] = state


def _union(states: Iterable[State]) -> State:
    reach = derived = linear = shape = indexed = counted = bare = summed = 0
    mixed = False
    for state in states:
        reach |= state.reach
        derived |= state.derived
        linear |= state.linear
        shape |= state.shape
        indexed |= state.indexed
        counted |= state.counted
        bare |= state.bare
        summed |= state.summed
        mixed |= state.mixed
    return State(reach, derived, linear, shape, indexed, counted, mixed, bare, summed)


def trace_flow(graph: Graph) -> Flow:
    """Runs the analysis over a main graph and its subgraphs."""
    flow = Flow(graph)
    integral = 0
    for at, value in enumerate(graph.inputs):
        bit = 1 << at
        flow[value] = State(reach=bit, derived=bit, linear=bit, bare=bit)
        if value.dtype.is_integer or value.dtype is DType.BOOL:
            integral |= bit
    _over(graph, flow, integral, 0)
    return flow


_DEEPEST = 48


def _over(graph: Graph, flow: Flow, integral: int, depth: int) -> None:
    for op in graph.ops:
        operands = [flow[value] for value in op.inputs]
        if op.bodies and depth < _DEEPEST:
            results = _control(op, operands, flow, integral, depth)
        else:
            results = [_step(op, operands, integral)] * len(op.outputs)
            if op.kind == "DynamicQuantizeLinear":  # the scale and the zero point stand for the whole tensor
                whole = State(results[0].reach, shape=results[0].shape)
                results = [results[0], whole, whole]
        for value, state in zip(op.outputs, results, strict=False):
            flow[value] = state


def _control(op: Op, operands: list[State], flow: Flow, integral: int, depth: int) -> list[State]:
    """The results of a subgraph operator; a loop's states are traced twice, so that the second turn sees the first."""
    chosen = operands[0] if op.kind == "If" else EMPTY
    results = [EMPTY] * len(op.outputs)
    for body in op.bodies.values():
        for _ in range(2 if op.kind == "Loop" else 1):
            carried = op.attrs.get("carried", 0)
            for at, value in enumerate(body.inputs):
                arriving = [flow[value], operands[at] if at < len(operands) and op.kind == "Loop" else EMPTY]
                if op.kind == "Loop" and 2 <= at < 2 + carried and at - 1 < len(body.outputs):
                    arriving.append(flow[body.outputs[at - 1]])
                flow[value] = _union(arriving)
            _over(body, flow, integral, depth + 1)
        leaving = body.outputs[1:] if op.kind == "Loop" else body.outputs
        results = [_union([have, flow[value]]) for have, value in zip(results, leaving, strict=False)]
    return [
        State(
            state.reach | chosen.reach,
            state.derived,
            state.linear,
            state.shape,
            state.indexed,
            state.counted,
            state.mixed,
            state.bare,
            state.summed,
        )
        for state in results
    ]


def _step(op: Op, operands: list[State], integral: int) -> State:
    kind, group = op.kind, family(op.kind)
    if group is Family.SHAPE:
        everything = _union(operands)
        return State(shape=everything.reach | everything.shape)
    every = _union(operands)
    if not every.reach:
        return State(shape=every.shape, mixed=every.mixed) if every.shape or every.mixed else EMPTY
    first = operands[0]
    if kind == "ReadValue":
        return first  # a variable of the model holds what it was first given
    if group is Family.MOVE:
        data = _union(operands) if kind == "Concat" else first
        bounds = EMPTY if kind == "Concat" else _union(operands[1:])
        return State(
            data.reach | bounds.reach, data.derived | bounds.derived, data.linear, data.shape | bounds.shape, data.indexed,
            data.counted, data.mixed, data.bare, data.summed, data.truth and kind != "Concat",
        )  # fmt: skip
    if kind == "Gather":
        return _gather(op, operands)
    if group is Family.LOOKUP or group is Family.SCATTER:
        return State(every.reach, every.derived, 0, every.shape, 0, every.counted, every.mixed, 0)
    if group in (Family.COMPARE, Family.SEARCH):
        return State(
            every.reach,
            0 if every.mixed and group is Family.SEARCH else every.derived,
            0,
            every.shape,
            0,
            every.counted,
            every.mixed,
            truth=group is Family.COMPARE,
        )
    if group is Family.SCAN:
        return State(every.reach, every.derived, 0, every.shape, 0, every.counted | every.derived, every.mixed)
    if group is Family.UNARY:
        keeps = not every.mixed or kind in _ORDERLY
        linear = every.linear if kind in _LINEAR else 0
        derived = every.derived if keeps else 0
        return State(every.reach, derived, linear, every.shape, 0, every.counted, every.mixed, summed=every.summed)
    if group is Family.QUANTISE:
        return State(
            every.reach, first.derived, first.linear, every.shape, first.indexed, first.counted, first.mixed, first.bare,
            first.summed,
        )  # fmt: skip
    if group in (Family.BINARY, Family.SELECT):
        others_free = sum(1 for state in operands if state.reach) == 1
        linear = every.linear if kind in _LINEAR and (others_free or _by_own_statistic(operands)) else 0
        if kind == "Where" or not linear:
            linear = _chosen(op, operands)
        indexed = every.indexed if others_free or (kind == "Add" and not every.mixed) else 0
        bare = every.bare if kind == "Sub" and linear and not others_free else 0
        summed = every.summed
        if kind in ("Sub", "Div") and _standardises(*operands[:2]):
            bare, summed = first.bare, 0
        return State(every.reach, every.derived, linear, every.shape, indexed, every.counted, every.mixed, bare, summed)
    if group is Family.REDUCE:
        derived = 0 if every.mixed else every.derived
        return State(every.reach, derived, 0, every.shape, 0, every.counted, every.mixed, summed=every.reach)
    outer = kind in ("MatMul", "Einsum") and not every.mixed and sum(1 for state in operands if state.reach) == 1
    if outer and every.derived and every.derived == every.reach and not every.derived & ~integral:
        # Integers times constants: angles computed from positions by an outer product, not a projection of features.
        return State(every.reach, every.derived, every.linear, every.shape, 0, every.counted, mixed=False)
    if group is Family.GENERATE:
        return State(every.reach, every.derived, 0, every.shape, 0, every.counted)
    return State(every.reach, 0, 0, every.shape, 0, 0, mixed=True)


def _chosen(op: Op, operands: list[State]) -> int:
    """The inputs whose own values stand here whichever way they themselves decide: negative indices that count from the end,
    ``Where(x < 0, x + n, x)``, also spelled out as ``(x < 0) * (x + n) + (x >= 0) * x``.
    """
    *condition, first, second = operands[:3]
    both = first.linear if first.linear == second.linear else 0
    if op.kind == "Where":
        return both if not condition[0].reach & ~both else 0
    if op.kind == "Add" and all(value is not None and value.producer and value.producer.kind == "Mul" for value in op.inputs):
        return both
    if op.kind == "Mul" and first.truth != second.truth:
        decides, value = (first, second) if first.truth else (second, first)
        return value.linear if not decides.reach & ~value.linear else 0
    return 0


def _by_own_statistic(operands: list[State]) -> bool:
    """An input is shifted or scaled by a number computed from itself as a whole, such as the zero point of a quantiser."""
    own = [state for state in operands if state.linear]
    rest = [state for state in operands if not state.linear]
    return len(own) == 1 and all(not state.derived and not state.mixed and not state.reach & ~own[0].reach for state in rest)


def _standardises(value: State, by: State) -> bool:
    """An input is centred on its own mean, or divided by its own spread."""
    return bool(value.bare) and bool(by.summed) and not by.mixed and not by.reach & ~value.bare and not by.reach & ~by.summed


def is_table(value: Value) -> bool:
    """A constant of rows of numbers: an embedding, or the sines and cosines of positions; quantised ones included."""
    dtype, rank = value.dtype, 2 if value.shape is None else len(value.shape)
    return rank >= 2 and (dtype.is_float or (dtype.is_integer and dtype.bits <= 8))


def _gather(op: Op, operands: list[State]) -> State:
    data, index = operands[0], operands[1]
    table = op.inputs[0]
    reach, shape = data.reach | index.reach, data.shape | index.shape
    if table is not None and not data.reach and is_table(table):
        return State(reach, 0, 0, shape, indexed=index.derived, mixed=False)
    if not data.reach:
        return State(reach, index.derived, 0, shape, 0, index.counted)
    return State(
        reach,
        data.derived | index.derived,
        data.linear,
        shape,
        data.indexed,
        data.counted | index.counted,
        data.mixed,
        data.bare,
    )
