"""What padding and other rows can reach in each output, read off the shadow runs."""

from __future__ import annotations

import numpy as np

from wirelint.facts import OutputFacts, PaddingFacts
from wirelint.graph import Graph, Model, Op, Value
from wirelint.ops import Family, family
from wirelint.shadow.attempts import Execution
from wirelint.shadow.interpreter import Run
from wirelint.shadow.labels import COUNT, LENGTH, NO_LABELS, ROUTED, SCALE_PADDED, SHIFTED, UNSETTLED
from wirelint.shadow.positions import Axis, at_real_positions, batch_axis, position_axis, rows_mixed, rows_share_scale
from wirelint.shadow.scenario import Scenario
from wirelint.shadow.value import Shadow, present
from wirelint.shadow.witness import Entry, find_leaks
from wirelint.trace.roles import Trace
from wirelint.trace.sites import Site

__all__ = ["cause_of", "chain_text", "output_facts"]


def _changed_axes(right: Shadow | None, left: Shadow | None, execution: Execution) -> set[int] | None:
    """Axes whose length changed with the padded length, or None when both runs had the same lengths."""
    first, second = execution.right[0].main, execution.left[0].main
    if right is None or left is None or first is None or second is None or first.length == second.length:
        return None
    if right.rank != left.rank:
        return None
    rows = (execution.right[0].batch, execution.left[0].batch)
    return {at for at, sizes in enumerate(zip(right.shape, left.shape, strict=True)) if sizes[0] != sizes[1] and sizes != rows}


def _row_axes(shadows: dict[str, Shadow | None], execution: Execution, axes: dict[str, Axis | None]) -> dict[str, int | None]:
    """The axis over rows, of each run.  The two runs have different numbers of rows, so that a leading axis of two states or
    of keys and values is not taken for the rows of a batch of two.
    """
    right, left = shadows["right"], shadows["left"]
    rows = (execution.right[0].batch, execution.left[0].batch)
    if right is not None and left is not None and right.rank == left.rank and rows[0] != rows[1]:
        moved = [at for at, sizes in enumerate(zip(right.shape, left.shape, strict=True)) if sizes == rows]
        if moved:
            return dict.fromkeys(shadows, moved[0])
    return {
        side: None if shadow is None else batch_axis(shadow.shape, execution.sides[side][0], axes[side])
        for side, shadow in shadows.items()
    }


def _verdict(shadow: Shadow | None, scenario: Scenario, axis: Axis | None, rows: int | None) -> str:
    if not scenario.sequences:
        return "unknown" if scenario.damaged else "n/a"
    if shadow is None:
        return "unknown"
    found = at_real_positions(shadow, scenario, axis, rows)
    padded = bool(found & (scenario.layout.padded | SHIFTED | SCALE_PADDED))
    if found & UNSETTLED:
        return "unknown"
    return "leaks" if padded else "safe"


def _batch_verdict(shadow: Shadow | None, scenario: Scenario, rows: int | None) -> str:
    if shadow is None:
        return "unknown"
    if scenario.batch < 2:
        return "independent"
    if present(shadow.labels) & UNSETTLED:
        return "unknown"
    return "mixes" if rows_mixed(shadow, scenario, rows) else "independent"


def cause_of(op: Op, sites: list[Site]) -> str:
    """What kind of operator lets padding through."""
    if any(site.op is op or _sums_weights(op, site) for site in sites):
        return "attention"
    group = family(op.kind)
    if group is Family.RECURRENT:
        return "recurrence"
    if op.kind in ("Conv", "ConvTranspose") or group is Family.POOL:
        return "convolution"
    if group in (Family.REDUCE, Family.CONTRACT):
        return "pooling"
    if group is Family.SCAN:
        return "running-sum"
    if group in (Family.LOOKUP, Family.MOVE):
        return "selection"
    return "normalisation" if group is Family.NORMALISE else "other"


def _sums_weights(op: Op, site: Site) -> bool:
    """The product of attention weights and values."""
    return site.value is not None and family(op.kind) is Family.CONTRACT and any(value is site.value for value in op.inputs)


def chain_text(entry: Entry, output: Value, name: str) -> tuple[str, ...]:
    """The witness of a leak, as the file names it: from the input to the operator that lets padding through."""
    steps: list[str] = []
    for value in entry.chain:
        step = f"'{value.name}' at padded positions" if value.producer is None else _step(value.producer)
        if not steps or steps[-1] != step:
            steps.append(step)
    last = _step(entry.op)
    if not steps or steps[-1] != last:
        steps.append(last)
    if entry.op.outputs and entry.op.outputs[0] is not output:
        steps.append(f"output '{name}'")
    return tuple(steps)


def _step(op: Op) -> str:
    kind = op.origin.op_type or op.kind
    return f"{kind} '{op.origin.name}'" if op.origin.name else kind


def _weak(shadow: Shadow | None, scenario: Scenario, axis: Axis | None, rows: int | None) -> bool:
    if shadow is None or not scenario.sequences:
        return False
    found = at_real_positions(shadow, scenario, axis, rows)
    return bool(found & SCALE_PADDED) and not bool(found & (scenario.layout.padded | SHIFTED))


def _unmodelled(graph: Graph, run: Run, labels: np.uint64) -> tuple[str, ...]:
    """Operators without a transfer function, those whose choice of rows counts, and the one at which the run stopped."""
    names = [op.origin.op_type or op.kind for op in run.unmodelled]
    if labels & (ROUTED | COUNT):
        names += [op.origin.op_type or op.kind for op in graph.walk() if op.kind == "NonZero" and _chooses(run, op)]
    if run.stop is not None:
        names.append(run.stop.op.origin.op_type or run.stop.op.kind)
    return tuple(dict.fromkeys(names))


def _chooses(run: Run, op: Op) -> bool:
    made = run.values.get(op.outputs[0])
    return made is not None and bool(present(made.labels) & ROUTED)


def _value(run: Run, value: Value) -> Shadow | None:
    shadow = run.values.get(value)
    if shadow is None and value.constant is not None:
        return Shadow.unknown(value.constant.shape, value.constant.dtype)
    return shadow


def output_facts(model: Model, trace: Trace, execution: Execution) -> list[OutputFacts]:
    """The facts about every output."""
    graph, made = model.graph, []
    for at, (value, name) in enumerate(zip(graph.outputs, graph.output_names, strict=True)):
        shadows = {side: _value(run, value) for side, (scenario, run) in execution.sides.items()}
        changed = _changed_axes(shadows["right"], shadows["left"], execution)
        fact = OutputFacts(at, name, str(value.dtype), value.shape, line=value.origin.line)
        fact.padding = PaddingFacts()
        axes = {
            side: None if shadow is None else position_axis(shadow, execution.sides[side][0], changed)
            for side, shadow in shadows.items()
        }
        row_axes = _row_axes(shadows, execution, axes)
        for side, (scenario, run) in execution.sides.items():
            shadow, axis, rows = shadows[side], axes[side], row_axes[side]
            setattr(fact.padding, side, _verdict(shadow, scenario, axis, rows))
            setattr(fact, f"scale_{side}", _weak(shadow, scenario, axis, rows))
            if getattr(fact.padding, side) == "leaks":
                entries = find_leaks(graph, scenario, run, value)
                if getattr(fact, f"scale_{side}"):
                    setattr(fact, f"cause_{side}", "quantiser-scale")
                elif not entries and shadow is not None and present(shadow.labels) & SHIFTED:
                    setattr(fact, f"cause_{side}", "positions-from-ids")
                elif entries:
                    setattr(fact, f"witness_{side}", chain_text(entries[0], value, name))
                    setattr(fact, f"cause_{side}", cause_of(entries[0].op, trace.sites))
            if getattr(fact.padding, side) == "unknown":
                fact.unmodelled = _unmodelled(graph, run, NO_LABELS if shadow is None else present(shadow.labels))
            if side == "right":
                fact.sequence_axis = None if axis is None else axis.at
                fact.batch = _batch_verdict(shadow, scenario, rows)
                labels = NO_LABELS if shadow is None else present(shadow.labels)
                fact.depends_on = scenario.layout.names(labels)
                fact.length_right = axis is None and bool(labels & LENGTH) and shadow is not None and shadow.dtype.is_float
                fact.constant = not trace.flow[value].reach
                fact.finite = not _has_nan(shadow)
                if fact.batch == "independent" and shadow is not None and scenario.batch > 1:
                    fact.rows_by_scale = rows_share_scale(shadow, rows)
                if fact.rows_by_scale:
                    fact.batch = "mixes"
        made.append(fact)
    return made


def _has_nan(shadow: Shadow | None) -> bool:
    return shadow is not None and shadow.value is not None and shadow.dtype.is_float and bool(np.isnan(shadow.value).any())
