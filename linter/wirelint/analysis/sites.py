"""What the padding mask does at one attention site, read off the shadow runs."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from wirelint.analysis.names import best_name
from wirelint.facts import Place, SiteFacts
from wirelint.graph import Op, Value
from wirelint.ops import Family, family
from wirelint.shadow.attempts import Execution
from wirelint.shadow.interpreter import Run
from wirelint.shadow.labels import LENGTH, NO_LABELS
from wirelint.shadow.positions import reaches_real
from wirelint.shadow.scenario import Scenario, Sequence
from wirelint.shadow.value import HUGE, Array, present
from wirelint.trace.flow import bits
from wirelint.trace.roles import Trace
from wirelint.trace.sites import Site

__all__ = ["place_of", "site_facts"]

_MASK_ROLES = ("mask", "decoder_mask", "pixel_mask", "lengths")
_DRAWN = 24
_FURTHEST = 60
_KEY_LENGTHS = 6
"""The operand of the canonical ``Attention`` that says how many keys of each row count."""


def place_of(op: Op) -> Place:
    """Where an operator stands, in the file's words."""
    return Place(
        op.origin.name or (op.outputs[0].name if op.outputs else ""),
        op.origin.op_type or op.kind,
        op.origin.line,
        op.origin.scope,
    )


@dataclass(frozen=True, slots=True)
class _View:
    """One site in one run, with axes brought to [row, heads, query, key].

    Attributes:
        scenario: of the run.
        keys: the sequence of the keys, or None.
        queries: the sequence of the queries, or None.
        zero: bool, [rows, heads or 1, queries, keys]: the weight is exactly zero.
        nan: likewise: the weight is NaN.
        score: the approximate scores, or None where nothing is known of them.
        exact: the scores that are known exactly.
        anchor: what the approximate scores depend on.
        shape: [queries, keys].
    """

    scenario: Scenario
    keys: Sequence | None
    queries: Sequence | None
    zero: Array
    nan: Array
    score: Array | None
    exact: Array | None
    anchor: np.uint64
    shape: tuple[int, int]

    def real_keys(self, row: int) -> Array:
        real = None if self.keys is None else self.keys.real_of(row, self.shape[1])
        return np.ones(self.shape[1], dtype=bool) if real is None else real

    def padded_keys(self, row: int) -> Array:
        padded = None if self.keys is None else self.keys.padded_of(row, self.shape[1])
        return np.zeros(self.shape[1], dtype=bool) if padded is None else padded

    def real_queries(self, row: int) -> Array:
        real = None if self.queries is None else self.queries.real_of(row, self.shape[0])
        return np.ones(self.shape[0], dtype=bool) if real is None else real


def _rows(array: Array, shape: tuple[int, ...], axis: int, rows: int) -> Array:
    """A compact array as [rows or 1, heads, queries, keys], the softmaxed axis last."""
    moved = np.moveaxis(array, axis, -1)
    full = [size for at, size in enumerate(shape) if at != axis]
    if moved.ndim == 1:
        return moved.reshape(1, 1, 1, -1)
    if moved.ndim == 2:  # one query for each row, or one row
        return moved.reshape(moved.shape[0], 1, 1, -1) if full[0] == rows else moved.reshape(1, 1, *moved.shape)
    lead = moved.shape[0]
    if not (lead == 1 or full[0] == rows):
        lead = rows if rows and full[0] % rows == 0 else 1
    # Spelled out, not -1: an empty tensor fits any number of heads.
    return moved.reshape(lead, math.prod(moved.shape[:-2]) // max(lead, 1), *moved.shape[-2:])


def _view(site: Site, trace: Trace, scenario: Scenario, run: Run) -> _View | None:
    observed = run.observed.get(site.op, {})
    weights = observed.get("weights") or observed.get("result")
    scores = observed.get("scores") or run.values.get(site.scores)
    if weights is None or scores is None or scores.rank < 2 or weights.shape != scores.shape:
        return None
    axis = int(site.op.attrs.get("axis", -1)) % scores.rank if site.op.kind == "Softmax" else scores.rank - 1
    rows = scenario.batch
    keys = scores.shape[axis]
    queries = [size for at, size in enumerate(scores.shape) if at != axis][-1]
    if scores.rank == 2 and queries == rows:
        queries = 1
    wide = [1] * scores.rank
    wide[axis] = keys

    def arranged(array: Array) -> Array:
        full = np.broadcast_to(array, np.broadcast_shapes(array.shape, tuple(wide)))
        return _rows(full, scores.shape, axis, rows)

    blank = np.zeros((1,) * weights.rank, dtype=bool)
    zero = weights.zero()
    nan = np.isnan(weights.value) if weights.value is not None and weights.dtype.is_float else blank
    known = scores.value is not None and scores.exact is not None and scores.anchor is not None
    return _View(
        scenario,
        _sequence_of(site.key, trace, scenario, keys),
        _sequence_of(site.query, trace, scenario, queries),
        arranged(blank if zero is None else zero),
        arranged(nan),
        arranged(np.asarray(scores.value, dtype=np.float64)) if known else None,
        arranged(np.asarray(scores.exact)) if known else None,
        present(np.asarray(scores.anchor)) if known else NO_LABELS,
        (queries, keys),
    )


def _sequence_of(value: Value | None, trace: Trace, scenario: Scenario, length: int) -> Sequence | None:
    """The padded sequence whose positions an axis of keys or queries runs over."""
    roles = {trace.roles[at].name for at in bits(trace.flow[value].reach)}
    for sequence in scenario.sequences:
        if sequence.role in roles and sequence.real_of(0, length) is not None:
            return sequence
    cached = {"past", "mask"} & roles
    for sequence in scenario.sequences:
        if cached and sequence.real_of(0, length) is not None:
            return sequence
    return None


def _each_row(array: Array, row: int) -> Array:
    return array[min(row, array.shape[0] - 1)] if array.shape[0] > 1 else array[0]  # type: ignore[no-any-return]


def _wide(view: _View, array: Array, row: int) -> Array:
    """One row of an array of the view as [heads or 1, queries, keys]."""
    chosen = _each_row(array, row)
    return np.broadcast_to(chosen, (chosen.shape[0], *view.shape))


def _heard(view: _View) -> str:
    """Whether real queries give weight to padded keys."""
    if view.keys is None:
        return "hidden"
    for row in range(view.scenario.batch):
        padded, real = view.padded_keys(row), view.real_queries(row)
        zero = _wide(view, view.zero, row)
        if not zero[:, real][:, :, padded].all():
            return "heard"
    return "hidden"


def _counts(view: _View) -> bool:
    """No query hears padded keys, padded queries included, before which causality leaves them: the mask does its work under
    right padding, as one that only counts keys can.
    """
    if view.keys is None:
        return False
    for row in range(view.scenario.batch):
        padded, zero = view.padded_keys(row), _wide(view, view.zero, row)
        if not padded.any() or not zero[:, :, padded].all() or zero.all():
            return False
    return True


def _deaf(view: _View) -> bool:
    """Real queries give no weight to any real key but perhaps themselves."""
    for row in range(view.scenario.batch):
        keys, queries = view.real_keys(row), view.real_queries(row)
        zero = _wide(view, view.zero, row)
        if not zero[:, queries][:, :, keys].all():
            return False
    return True


def _nan(view: _View) -> bool:
    for row in range(view.scenario.batch):
        nan = _wide(view, view.nan, row)
        if nan[:, view.real_queries(row)].any():
            return True
    return False


def _is_causal(view: _View) -> bool:
    """No query hears a key after it, counted from the end of the keys."""
    queries, keys = view.shape
    if queries < 2 or keys < queries:
        return False
    later = np.arange(keys)[None, :] > np.arange(queries)[:, None] + (keys - queries)
    row = int(np.argmax([view.real_keys(row).sum() for row in range(view.scenario.batch)]))
    real = view.real_keys(row)[None, :] & view.real_queries(row)[:, None]
    zero = _wide(view, view.zero, row)
    return bool((later & real).any()) and bool(zero[:, later & real].all()) and not bool(zero[:, ~later & real].all())


@dataclass(frozen=True, slots=True)
class _Gap:
    """How the scores of padded keys stand below those of real keys, for the last real query of a row."""

    gap: float
    fill: float
    along_queries: bool


def _gap(view: _View) -> _Gap | None:
    if view.score is None:
        return None
    for row in range(view.scenario.batch):
        score = _wide(view, view.score, row)[0]
        padded, real = view.padded_keys(row), view.real_keys(row)
        queries = np.flatnonzero(view.real_queries(row))
        if not padded.any() or not real.any() or not queries.size:
            continue
        query = queries[-1]
        low, high = float(score[query, padded].max()), float(score[query, real].max())
        along = bool(np.ptp(np.nan_to_num(score[:, real], neginf=-1e308, posinf=1e308).max(axis=1)) > 0)
        return _Gap(high - low if np.isfinite(high) or np.isfinite(low) else float("nan"), low, along)
    return None


def _quantised(view: _View) -> bool:
    """Scores of real keys that are known exactly: a quantiser with a coarse step left nothing of them."""
    if view.exact is None or view.score is None:
        return False
    exact, score = np.broadcast_arrays(_wide(view, view.exact, 0), _wide(view, view.score, 0))
    chosen = np.ix_(np.arange(len(exact)), view.real_queries(0), view.real_keys(0))
    cells, values = exact[chosen], score[chosen]
    return bool(cells.any()) and bool((np.abs(values[cells]) < HUGE).any())


def _dequantised(value: Value) -> bool:
    """A quantiser stands right before the softmax."""
    for _ in range(6):
        op = value.producer
        if op is None or not op.inputs or op.inputs[0] is None or family(op.kind) not in (Family.MOVE, Family.QUANTISE):
            return False
        if family(op.kind) is Family.QUANTISE:
            return True
        value = op.inputs[0]
    return False


def _folded(site: Site, trace: Trace, run: Run) -> bool:
    """A term of the scores that no input decides, that is the same for every key, and that comes from a mask: a hugely
    negative number stands behind it.
    """
    for term in site.terms:
        if trace.flow[term].reach:
            continue
        shadow = run.values.get(term)
        if term.constant is not None:
            held = term.constant.load() if term.constant.size > 1 else None
            if held is not None and np.all(held == held.flat[0]) and (held.dtype == bool or held.flat[0] != 0):
                return True
        elif shadow is not None and shadow.size > 1 and shadow.is_exact and shadow.value is not None:
            same = bool(shadow.value.size) and bool(np.all(shadow.value == shadow.value.flat[0]))
            if same and not present(shadow.labels) & ~LENGTH and (shadow.value.dtype == bool or _fills(term)):
                return True
    return False


def _fills(term: Value) -> bool:
    """A hugely negative constant, the fill of a mask, takes part in computing a value."""
    frontier, seen = deque([term]), {term}
    while frontier and len(seen) < _FURTHEST:
        value = frontier.popleft()
        op = value.producer
        if value.constant is not None:
            held = value.constant.load(1) if value.dtype.is_float else None
            if held is not None and held.size == 1 and float(held.reshape(-1)[0]) < -HUGE:
                return True
        elif op is not None:
            # Shapes and bounds are not what is computed with.
            data = op.inputs[:1] if family(op.kind) is Family.MOVE and op.kind != "Concat" else op.inputs
            for operand in data if family(op.kind) is not Family.GENERATE else ():
                if operand is not None and operand not in seen:
                    seen.add(operand)
                    frontier.append(operand)
    return False


def _status(view: _View, site: Site, trace: Trace, run: Run, mask_labels: np.uint64, masks: int) -> str:
    if _nan(view):
        return "not-finite"
    acts = bool(view.anchor & mask_labels)
    if _heard(view) == "hidden":
        return "effective" if acts or any(trace.flow[term].derived & masks for term in site.terms) else "absent"
    gap = _gap(view)
    if acts and gap is not None:
        if _deaf(view):
            return "inverted"
        if np.isnan(gap.gap) or gap.gap < 0:
            return "inverted"
        if gap.gap > 0:
            return "weak"
        return "query-axis" if gap.along_queries else "noop"
    if acts and _deaf(view):
        return "inverted"
    if any(trace.flow[term].derived & masks for term in site.terms):
        return "noop"
    return "constant" if _folded(site, trace, run) else "absent"


def _drawn(view: _View) -> tuple[str, ...]:
    queries, keys = view.shape
    if queries > _DRAWN or keys > _DRAWN:
        return ()
    zero: Array = np.all(_wide(view, view.zero, 0), axis=0)
    return tuple("".join("." if cell else "#" for cell in line) for line in zero)


def _marks(padded: Array) -> str:
    return "".join("#" if cell else "." for cell in padded)


def _spoilt(site: Site, scenario: Scenario, run: Run) -> bool:
    """Padded content stands at real positions of what makes the queries and keys."""
    for value in (site.query, site.key):
        shadow = None if value is None else run.values.get(value)
        if shadow is not None and reaches_real(shadow, scenario):
            return True
    return False


def _after_softmax(site: Site, trace: Trace, masks: int) -> int:
    """The masks that blank weights after the softmax: too late, padded keys have had their share of it."""
    found, frontier = 0, [] if site.fused else list(site.op.outputs)
    for _ in range(_FURTHEST):
        if not frontier:
            break
        for op, slot in frontier.pop().consumers:
            if op.kind in ("Mul", "Where"):
                others = [value for place, value in enumerate(op.inputs) if place != slot and not trace.flow[value].mixed]
                found |= masks & reduce(or_, (trace.flow[value].derived for value in others), 0)
                frontier += op.outputs
            elif family(op.kind) is Family.MOVE and slot == 0:
                frontier += op.outputs
    return found


def _guarded(site: Site) -> bool:
    """NaN weights are replaced right after the softmax."""
    return any(op.kind in ("IsNaN", "Where") for value in site.op.outputs for op, _ in value.consumers)


def _fully_masked(fill: float | None, status: str, site: Site) -> str:
    """What a row without any real key yields: every score is the fill."""
    if status not in ("effective", "weak") or fill is None or site.fused:  # a fused operator's fill is its own affair
        return "unknown"
    if fill == -np.inf:
        return "zero" if _guarded(site) else "nan"
    return "uniform"


def _as_length(site: Site, trace: Trace, masks: int) -> bool:
    """A fused operator takes the mask as the number of keys that each row has."""
    lengths = site.op.inputs[_KEY_LENGTHS] if site.op.kind == "Attention" and len(site.op.inputs) > _KEY_LENGTHS else None
    return lengths is not None and bool(trace.flow[lengths].derived & masks)


def _carried(inputs: int, trace: Trace) -> bool:
    """Some of these inputs carry a sequence."""
    return bool({trace.roles[at].name for at in bits(inputs)} & {"ids", "decoder_ids", "encoder_states", "features", "pixels"})


def site_facts(site: Site, trace: Trace, execution: Execution, graph_inputs: list[Value]) -> SiteFacts:
    """The facts about one attention site."""
    made = SiteFacts(place_of(site.op))
    views = {side: _view(site, trace, scenario, run) for side, (scenario, run) in execution.sides.items()}
    query, key = trace.flow[site.query], trace.flow[site.key]
    learned = not query.reach and bool(key.reach)
    if learned and all(view is None or view.shape[0] == 1 for view in views.values()):
        made.kind = "pooling"
    elif learned or _carried(key.reach & ~query.reach, trace) or _carried(query.reach & ~key.reach, trace):
        made.kind = "cross"
    made.spoilt_right, made.spoilt_left = (_spoilt(site, *execution.sides[side]) for side in ("right", "left"))
    for side, view in views.items():
        if view is None:
            continue
        if view.keys is not None:
            made.keys = view.keys.role
        else:
            made.needs_mask = False
        if side == "right":
            made.heard_right, made.matrix = _heard(view), _drawn(view)
            if made.matrix:
                made.padded_queries, made.padded_keys = _marks(~view.real_queries(0)), _marks(~view.real_keys(0))
            made.causal = made.kind == "self" and _is_causal(view)
        else:
            made.heard_left = _heard(view)
    masks = sum(1 << at for at, role in enumerate(trace.roles) if role.name in _MASK_ROLES)
    # Causal attention hides right padding by itself: what the mask does shows under left padding, unless it becomes a length,
    # which is made for right padding alone.
    side = "left" if made.causal and not _as_length(site, trace, masks) else "right"
    view, (scenario, run) = views[side], execution.sides[side]
    if view is None:
        made.needs_mask = any(
            trace.roles[at].name in ("ids", "decoder_ids", "encoder_states", "features") for at in bits(key.reach)
        )
        return made
    parts = scenario.layout.parts
    mask_labels = NO_LABELS
    for name in _MASK_ROLES:
        if name in parts:
            mask_labels |= parts[name].every
    mask_labels |= scenario.layout.gaps
    made.mask = _status(view, site, trace, run, mask_labels, masks)
    made.quantised = _quantised(view)
    if made.mask == "not-finite" and _dequantised(site.scores):
        # The range of the quantiser took in the fill: its scale is infinite, and 0 times it is NaN.
        made.mask, made.quantised = "unknown", True
    if made.causal and made.mask in ("noop", "inverted", "weak", "query-axis"):
        prompt = views["right"]
        if prompt is not None and prompt.anchor & mask_labels and _counts(prompt):
            made.mask, view, (scenario, run) = "effective", prompt, execution.right
    names = scenario.layout.names(view.anchor & mask_labels)
    made.mask_inputs = tuple(best_name(graph_inputs[at]) for at, role in enumerate(trace.roles) if role.name in names)
    if made.mask == "absent":
        made.mask_inputs = tuple(best_name(graph_inputs[at]) for at in bits(_after_softmax(site, trace, masks)))
    gap = _gap(view)
    if gap is not None and made.mask in ("effective", "weak", "inverted"):
        made.fill = gap.fill
        made.fill_dtype = str(site.scores.dtype if not site.fused else site.op.outputs[0].dtype)
    made.fully_masked = _fully_masked(made.fill, made.mask, site)
    return made
