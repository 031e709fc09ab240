"""Where the positions of a sequence are joined into one value, outside attention."""

from __future__ import annotations

from collections import deque

import numpy as np

from wirelint.analysis.sites import place_of
from wirelint.facts import ReductionFacts
from wirelint.graph import Graph, Op, Value
from wirelint.ops import Family, family
from wirelint.shadow.attempts import Execution
from wirelint.shadow.interpreter import Run
from wirelint.shadow.labels import LENGTH, NO_LABELS
from wirelint.shadow.positions import Axis, axes_over_positions
from wirelint.shadow.scenario import Scenario
from wirelint.shadow.value import Array, Shadow, present
from wirelint.trace.roles import Trace

__all__ = ["reduction_facts"]

_KINDS = {
    "ReduceMean": "mean",
    "ReduceSum": "sum",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceL2": "norm",
    "ReduceLogSumExp": "sum",
    "GlobalAveragePool": "mean",
}
_JOINS = ("mean", "sum", "norm", "max", "min")
_SELECT = {"Gather", "GatherND", "GatherElements", "Slice", "StridedSlice", "Split"}


def _reached(graph: Graph) -> dict[Value, set[str]]:
    """For each value, the names of the outputs that it reaches."""
    reach: dict[Value, set[str]] = {}
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        reach.setdefault(value, set()).add(name)
    for op in reversed(graph.ops):
        names = set[str]().union(*(reach.get(value, set()) for value in op.outputs))
        if names:
            for operand in op.inputs:
                if operand is not None:
                    reach.setdefault(operand, set()).update(names)
    return reach


def _candidate(op: Op, run: Run, scenario: Scenario) -> tuple[int, Shadow] | None:
    """The operand whose positions an operator joins, and its shadow."""
    if not op.outputs:
        return None
    made = run.values.get(op.outputs[0])
    if made is None or axes_over_positions(made.shape, scenario):
        return None
    for slot, value in enumerate(op.inputs[:2]):
        shadow = None if value is None else run.values.get(value)
        if (
            shadow is None
            or not shadow.dtype.is_float
            or not present(shadow.labels) & (scenario.layout.padded | _real(scenario))
        ):
            continue
        if len(axes_over_positions(shadow.shape, scenario)) == 1:
            return slot, shadow
    return None


def _over_positions(operand: Value, shadow: Shadow, execution: Execution) -> bool:
    """The axis runs over positions and has not merely as many elements: it grows with the sequence.

    Where the length is fixed, so that both runs have the same, labels vary along it: along hidden units they don't.
    """
    axis = axes_over_positions(shadow.shape, execution.right[0])[0]
    scenario, run = execution.left
    other = run.values.get(operand)
    same = next((entry for entry in scenario.sequences if entry.role == axis.sequence.role), None)
    if same is None or other is None or other.rank != shadow.rank or same.length == axis.sequence.length:
        return bool(shadow.labels.shape[axis.at] != 1)
    return bool(other.shape[axis.at] != shadow.shape[axis.at])


def _part(op: Op, execution: Execution) -> Shadow | None:
    """The operand of a reduction over some of the positions, such as all but the first, in the right-padded run.

    Its axis has not as many elements as there are positions, but it grows with the sequence, and nothing in the result does.
    """
    (scenario, run), (other, other_run) = execution.right, execution.left
    if op.kind not in _KINDS or scenario.main is None or other.main is None or scenario.main.length == other.main.length:
        return None
    values = (op.inputs[0], op.outputs[0])
    pairs = [(run.values.get(value), other_run.values.get(value)) for value in values if value is not None]
    more = other.main.length - scenario.main.length
    growing = [
        sum(1 for a, b in zip(first.shape, second.shape, strict=True) if b - a == more)
        for first, second in pairs
        if first is not None and second is not None and first.rank == second.rank
    ]
    shadow = pairs[0][0]
    if growing != [1, 0] or shadow is None or not shadow.dtype.is_float:
        return None
    return shadow if present(shadow.labels) & (scenario.layout.padded | _real(scenario)) else None


def _real(scenario: Scenario) -> np.uint64:
    bits: np.uint64 = NO_LABELS
    for sequence in scenario.sequences:
        bits |= sequence.part.real[0] | sequence.part.real[1]
    return bits


def _kind(op: Op, slot: int, shadow: Shadow, execution: Execution) -> str | None:
    if op.kind in _KINDS:
        return _KINDS[op.kind]
    if op.kind in ("MatMul", "Einsum"):
        return "weighted"
    if op.kind in _SELECT:
        if slot != 0:
            return None
        scenario = execution.right[0]
        found = axes_over_positions(shadow.shape, scenario)[0]
        axis = found.at
        if op.kind in ("Gather", "GatherElements", "GatherND"):
            return _read_at(op, found, shadow.rank, execution)
        if op.kind in ("Slice", "StridedSlice", "Split"):
            taken = execution.right[1].values[op.outputs[0]]
            return None if taken.rank == shadow.rank and taken.shape[axis] != 1 else "slice"
    return None


def _read_at(op: Op, axis: Axis, rank: int, execution: Execution) -> str:
    """Which position a lookup along the sequence takes: a fixed one, the first real one, or one counted from the inputs."""
    scenario, run = execution.right
    held = _index(op, run)
    taken = None if held is None else _positions_taken(op, axis, rank, held, axis.sequence.length)
    if held is None or taken is None:
        return "counted"
    if not present(held.labels) & ~LENGTH:
        numbers = {int(number) for number in taken.ravel()}
        return "first" if numbers <= {0} else "last" if numbers <= {-1, axis.sequence.length - 1} else "position"
    # Right padding leaves the first real token where the row begins, so only left padding tells.
    scenario, run = execution.left
    held = _index(op, run)
    main = scenario.main
    taken = None if held is None or main is None else _positions_taken(op, axis, rank, held, main.length)
    if main is None or taken is None or taken.ndim < 2 - axis.folded or len(taken) != len(main.real):
        return "counted"
    begins = np.argmax(main.real, axis=1).reshape(-1, *(1,) * (taken.ndim - 1))
    return "first" if bool((taken == begins).all()) else "counted"


def _index(op: Op, run: Run) -> Shadow | None:
    index = op.inputs[1]
    held = None if index is None else run.values.get(index) or _constant(index)
    return held if held is not None and held.size and held.integers() is not None else None


def _positions_taken(op: Op, axis: Axis, rank: int, held: Shadow, length: int) -> Array | None:
    """The positions that indices name along an axis of what is read, or None when none of them runs along it.

    Where rows and positions are folded into one axis, position p of row r stands at ``r * length + p``.

    ``Gather`` takes whole slices along its axis, ``GatherElements`` an index for each element along its axis, and the last
    axis of the indices of ``GatherND`` holds one number for each axis that it reads after its batch axes.
    """
    indices = held.full_value()
    if op.kind == "GatherND":
        at = axis.at - int(op.attrs.get("batch_dims", 0))
        return indices[..., at : at + 1] if indices.ndim and 0 <= at < indices.shape[-1] else None
    if int(op.attrs.get("axis", 0)) % rank != axis.at:
        return None
    return indices % length if axis.folded else indices


def _constant(value: Value) -> Shadow | None:
    held = None if value.constant is None else value.constant.load(1024)
    return None if held is None or value.constant is None else Shadow.known(held, value.constant.dtype)


def _slice_end(op: Op, shadow: Shadow, run: Run, scenario: Scenario) -> str:
    """Whether a slice of one position takes the first or the last one, by where its labels come from."""
    starts = op.inputs[1] if len(op.inputs) > 1 else None
    held = None if starts is None else run.values.get(starts) or _constant(starts)
    numbers = None if held is None else held.integers()
    axis = axes_over_positions(shadow.shape, scenario)[0].at
    if numbers is None:
        return "position"
    if any(number < 0 or number >= shadow.shape[axis] - 1 for number in numbers):
        return "last"
    return "first" if not any(numbers) else "position"


def _masked(shadow: Shadow, scenario: Scenario, kind: str) -> bool:
    """Padded positions hold exact zeros or, for an extreme, some fill that does not depend on what stands there."""
    settled = shadow.zero() if kind not in ("max", "min") else shadow.exact
    if settled is None:
        return False
    axis = axes_over_positions(shadow.shape, scenario)[0]
    moved = np.moveaxis(np.broadcast_to(settled, shadow.shape), axis.at, 0)
    padded = np.logical_and.reduce(~axis.sequence.real, axis=0)
    real = axis.sequence.real_of(0, shadow.shape[axis.at])
    if axis.folded or real is None or len(real) != len(padded):
        return False
    return bool(padded.any()) and bool(moved[padded].all())


def _divided_by(op: Op) -> Value | None:
    """What a sum or mean over positions is divided by, behind operators that move or scale it."""
    frontier: deque[tuple[Value, int]] = deque((value, 0) for value in op.outputs)
    while frontier:
        value, depth = frontier.popleft()
        for consumer, slot in value.consumers:
            if consumer.kind == "Div" and slot == 0 and consumer.inputs[1] is not None:
                return consumer.inputs[1]
            if depth < 6 and (family(consumer.kind) is Family.MOVE or consumer.kind == "Mul"):
                frontier += ((made, depth + 1) for made in consumer.outputs)
    return None


def _divisor(op: Op, trace: Trace, run: Run) -> tuple[str, bool]:
    """By what a sum over positions is divided, and whether that can't become zero."""
    divisor = _divided_by(op)
    if divisor is None:
        return "none", True
    shadow = run.values.get(divisor) or _constant(divisor)
    guarded = _guarded(divisor)
    if shadow is None:
        return "unknown", guarded
    labels = present(shadow.labels)
    if trace.flow[divisor].derived and labels & ~LENGTH:
        return "mask", guarded
    return ("length" if labels & LENGTH else "none"), True


def _length_cancels(op: Op, trace: Trace, run: Run) -> bool:
    """A mean over positions is divided by the mean of the mask: the padded length stands in both."""
    divisor = _divided_by(op)
    shadow = None if divisor is None else run.values.get(divisor)
    return shadow is not None and bool(trace.flow[divisor].derived) and bool(present(shadow.labels) & LENGTH)


def _guarded(value: Value) -> bool:
    for _ in range(8):
        op = value.producer
        if op is None:
            return False
        if op.kind in ("Clip", "Max", "Add", "Where"):
            return True
        if not op.inputs or op.inputs[0] is None or family(op.kind) not in (Family.MOVE, Family.UNARY):
            return False
        value = op.inputs[0]
    return False


def _hidden(trace: Trace, value: Value) -> bool:
    """Hidden states, not the sum of a mask."""
    state = trace.flow[value]
    return state.mixed or bool(state.indexed) or bool(state.reach & ~state.derived)


def reduction_facts(graph: Graph, trace: Trace, execution: Execution) -> list[ReductionFacts]:
    """The facts about every reduction over positions that reaches an output."""
    scenario, run = execution.right
    if not scenario.sequences:
        return []
    reached = _reached(graph)
    inside = {site.op for site in trace.sites}
    products = {value for site in trace.sites for value in site.op.outputs}
    made = []
    for op in graph.ops:
        if (
            op in inside
            or not op.outputs
            or op.outputs[0] not in reached
            or any(value in products for value in op.inputs if value is not None)
        ):
            continue
        found = _candidate(op, run, scenario)
        part = None if found is not None else _part(op, execution)
        if found is None and part is None:
            continue
        slot, shadow = found or (0, part)
        operand = op.inputs[slot]
        if operand is None or shadow is None or not _hidden(trace, operand):
            continue
        if part is None and not _over_positions(operand, shadow, execution):
            continue
        kind = _kind(op, slot, shadow, execution)
        if kind is None:
            continue
        if kind == "slice":
            kind = _slice_end(op, shadow, run, scenario)
        result = run.values[op.outputs[0]]
        fact = ReductionFacts(place_of(op), kind, outputs=tuple(sorted(reached[op.outputs[0]])))
        fact.leaks_right = bool(present(result.labels) & scenario.layout.padded)
        left_scenario, left_run = execution.left
        left = left_run.values.get(op.outputs[0])
        fact.leaks_left = left is not None and bool(present(left.labels) & left_scenario.layout.padded)
        fact.masked = _masked(shadow, scenario, kind) if kind in _JOINS and part is None else not fact.leaks_right
        if kind == "mean":
            fact.divisor = "mask" if _length_cancels(op, trace, run) else "length"
        elif kind in ("sum", "weighted"):
            fact.divisor, fact.divisor_guarded = _divisor(op, trace, run)
        made.append(fact)
    return made
