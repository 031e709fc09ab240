"""The claim that shadow execution rests on, as a check: whatever moves in a runtime carries the label of what was changed.

A subject is a model together with a way to run it.  Each element of its inputs gets a bit of its own, a few dozen at a
time, or several elements share one, as all padded tokens of a row do.  The graph is executed on shadows, once with the
values known and once with as many of them hidden as it can do without.  Then the elements of a bit are changed, and the
runtime says what moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Graph, Value
from wirelint.shadow.interpreter import Run, run
from wirelint.shadow.labels import ROUTED, SCALE_ROWS, UNSETTLED, Layout
from wirelint.shadow.value import Shadow, present

FIRST_BIT = 5
BITS = 48
EVERY_BIT = np.uint64(((1 << BITS) - 1) << FIRST_BIT)
COARSE = {2: 0.02, 1: 0.3}  # rounding by width in bytes: f16 and bf16, 8-bit floats
ORDINARY = 1e3


@dataclasses.dataclass
class Subject:
    """A model and a runtime for it; results that differ by less than ``noise`` count as equal."""

    name: str
    graph: Graph
    feeds: dict[str, np.ndarray]
    execute: Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]
    noise: float = 1e-9

    def inputs(self) -> list[tuple[Value, np.ndarray]]:
        return [(value, self.feeds[value.name]) for value in self.graph.inputs if value.name in self.feeds]


@dataclasses.dataclass
class Outcome:
    """What checking a subject gave: ``checked`` runs of the runtime, or the reason why there were none."""

    checked: int = 0
    hidden: tuple[str, ...] = ()
    skipped: str = ""
    unmodelled: tuple[str, ...] = ()
    faults: list[str] = dataclasses.field(default_factory=list)


Place = tuple[str, int]
"""An element of an input: the input's name and the flat index."""


# -- shadows of inputs -----------------------------------------------------------------------------------------------------


def layout() -> Layout:
    """A layout in which every bit belongs to row 0, so that a quantiser's scale keeps a trace of all of them."""
    made = Layout()
    made.rows = [EVERY_BIT, np.uint64(0)]
    return made


def shadow_of(value: Value, array: np.ndarray, bits: Mapping[int, int], *, hidden: bool) -> Shadow:
    labels = np.zeros(array.shape, dtype=np.uint64)
    for at, bit in bits.items():
        labels.reshape(-1)[at] = np.uint64(1 << (FIRST_BIT + bit))
    if hidden:
        return Shadow.unknown(array.shape, value.dtype, labels)
    return Shadow.known(array.astype(value.dtype.numpy), value.dtype, labels)


def execute(subject: Subject, bits: Mapping[Place, int], hidden: Sequence[str]) -> Run:
    bindings = {}
    for value, array in subject.inputs():
        own = {at: bit for (name, at), bit in bits.items() if name == value.name}
        bindings[value] = shadow_of(value, array, own, hidden=value.name in hidden)
    return run(subject.graph, bindings, layout())


def results(subject: Subject, found: Run) -> list[Shadow | None]:
    made = []
    for value in subject.graph.outputs:
        shadow = found.values.get(value)
        if shadow is None and value.constant is not None:
            shadow = Shadow.known(value.constant.fetch(), value.dtype)
        made.append(shadow)
    return made


def complete(found: Run) -> bool:
    return found.stop is None and not found.unmodelled


def finite_places(array: np.ndarray) -> np.ndarray:
    return np.isfinite(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))


def hideable(subject: Subject) -> tuple[str, ...]:
    """The inputs whose values the graph can do without, chosen greedily in order."""
    hidden: list[str] = []
    for value, array in subject.inputs():
        # What is hidden is taken to be finite.
        if finite_places(array).all() and complete(execute(subject, {}, [*hidden, value.name])):
            hidden.append(value.name)
    return tuple(hidden)


# -- changes -----------------------------------------------------------------------------------------------------------


def changed(array: np.ndarray, at: Sequence[int], turn: int) -> np.ndarray:
    """The array with other elements at flat indices ``at``; ``turn`` chooses in which way they differ."""
    made = np.array(array)
    flat = made.reshape(-1)
    for place in at:
        old = flat[place]
        if made.dtype == bool:
            flat[place] = not old
        elif made.dtype.kind in "iu":
            step = (1, -1, 2)[turn % 3]
            limits = np.iinfo(made.dtype)
            new = int(old) + step
            flat[place] = new if limits.min <= new <= limits.max else int(old) - step
        elif made.dtype.kind == "c":
            flat[place] = old + (0.7 + 0.4j, -1.3 + 0.2j, -old * 2)[turn % 3]
        else:
            number = float(old) if np.isfinite(float(old)) else 0.0
            new = (number + 0.6 * (1 + abs(number)), -1.7 * number - 0.3, 0.0 if number else 1.0)[turn % 3]
            flat[place] = np.asarray(new).astype(made.dtype)
    return made


def moved(before: np.ndarray, after: np.ndarray, noise: float = 1e-9) -> np.ndarray:
    """Which elements differ by more than the order of summation explains."""
    if before.dtype.kind in "biu":
        return before != after
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    one, other = before.astype(wide), after.astype(wide)
    with np.errstate(all="ignore"):
        slack = 1e-6 * np.abs(one) + noise
        return ~((np.abs(one - other) <= slack) | (one == other) | (np.isnan(one) & np.isnan(other)))


def places(subject: Subject, limit: int, seed: int) -> list[Place]:
    """Elements to be changed: all of a small input, a sample of a large one."""
    draw = np.random.default_rng(seed)
    made: list[Place] = []
    for value, array in subject.inputs():
        chosen = np.arange(array.size) if array.size <= limit else np.sort(draw.choice(array.size, limit, replace=False))
        made += [(value.name, int(at)) for at in chosen]
    return made


def shared(every: Sequence[Place], seed: int, joint: int) -> Iterator[list[list[Place]]]:
    """Elements split into a few groups at random, ``joint`` times; each group is to have one bit."""
    draw = np.random.default_rng(seed)
    for _ in range(joint if len(every) > 1 else 0):
        count = int(draw.integers(1, 4))
        owner = draw.integers(0, count + 1, size=len(every))
        made = [[place for place, at in zip(every, owner, strict=True) if at == group] for group in range(count)]
        yield [group for group in made if group]


# -- checks ------------------------------------------------------------------------------------------------------------


def wrong_values(shadow: Shadow, truth: np.ndarray, noise: float) -> str:
    """What a shadow says that the runtime's result contradicts; empty when nothing is.

    Rows of an unknown choice are all that might be chosen: they claim nothing about how many there are.
    """
    if present(shadow.labels) & ROUTED:
        return ""
    if shadow.shape != truth.shape:
        return f"shape {shadow.shape} instead of {truth.shape}"
    if shadow.dtype.is_float and shadow.dtype.bits <= 8:
        # One canonical type stands for several variants; ONNX Runtime hands them out as bytes.
        truth = truth.view(shadow.dtype.numpy) if truth.dtype == np.uint8 else truth
    elif shadow.dtype is not DType.STRING and shadow.dtype.bits >= 8 and np.dtype(shadow.dtype.numpy) != truth.dtype:
        return f"dtype {shadow.dtype} instead of {truth.dtype}"
    if shadow.value is None or shadow.exact is None or truth.dtype == object:
        return ""
    kind = np.complex128 if truth.dtype.kind == "c" else np.float64
    value, exact = np.broadcast_to(shadow.value, shadow.shape).astype(kind), np.broadcast_to(shadow.exact, shadow.shape)
    real = truth.astype(kind)
    with np.errstate(all="ignore"):
        rough = COARSE.get(truth.dtype.itemsize, 2e-3) if truth.dtype.kind not in "iub" else 0
        near = (
            (np.abs(value - real) <= rough * np.maximum(np.abs(real), 0.05) + noise)
            | (value == real)
            | (np.isnan(value) & np.isnan(real))
        )
        far = np.isfinite(value) & (np.abs(value) > ORDINARY)
        ordinary = ~far | (np.abs(value - real) <= ORDINARY + 1e-2 * np.abs(value)) | ~np.isfinite(real)
    wrong = exact & ~near
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        return f"the value at {tuple(map(int, at))} is {real[at]}, not {value[at]}"
    if (~exact & ~ordinary).any():
        at = tuple(np.argwhere(~exact & ~ordinary)[0])
        return f"the value at {tuple(map(int, at))} is {real[at]}, far from {value[at]}"
    return ""


def unheard(shadow: Shadow, before: np.ndarray, after: np.ndarray, bits: np.uint64, noise: float) -> tuple[int, ...] | None:
    """A place that moved without carrying any of ``bits``; None when there is none.

    A zero hides finite numbers only, so what became infinite or NaN is beyond the claim.
    """
    if before.shape != after.shape or (present(shadow.labels) & ROUTED and shadow.shape != before.shape):
        return None
    labels = np.broadcast_to(shadow.labels, shadow.shape)
    lost = finite_places(before) & ~finite_places(after)
    silent = moved(before, after, noise) & ~lost & ((labels & (bits | SCALE_ROWS[0] | UNSETTLED)) == 0)
    return tuple(int(at) for at in np.argwhere(silent)[0]) if silent.any() else None


def check(subject: Subject, *, limit: int = 96, turns: int = 3, joint: int = 4, seed: int = 0) -> Outcome:
    """Changes elements of the inputs and compares what moves with the labels.

    Args:
        subject: what to check.
        limit: elements of one input that are changed.
        turns: in how many ways each is changed.
        joint: how often the elements are split into a few groups that share a bit.
        seed: of the samples.
    """
    outcome = Outcome()
    first = execute(subject, {}, [])
    if not complete(first):
        outcome.unmodelled = tuple(sorted({op.origin.op_type or op.kind for op in first.unmodelled}))
        outcome.skipped = "" if first.stop is None else f"{first.stop.op.kind}: {first.stop.reason}"
        if first.stop is not None and first.stop.refused:
            outcome.faults.append(f"refused what the runtime accepts: {outcome.skipped}")
        return outcome
    base = list(subject.execute(subject.feeds))
    again = list(subject.execute(subject.feeds))
    if any(one.shape != other.shape or moved(one, other, subject.noise).any() for one, other in zip(base, again, strict=True)):
        outcome.skipped = "not deterministic"
        return outcome
    outcome.hidden = hideable(subject)
    modes = [(), outcome.hidden] if outcome.hidden else [()]
    every = places(subject, limit, seed)
    alone = [[[place] for place in every[start : start + BITS]] for start in range(0, max(len(every), 1), BITS)]
    for groups in [*alone, *shared(every, seed, joint)]:
        bits = {place: at for at, group in enumerate(groups) for place in group}
        claims = []
        for mode in modes:
            shadows = results(subject, execute(subject, bits, mode))
            claims.append((mode, shadows))
            for name, shadow, truth in zip(subject.graph.output_names, shadows, base, strict=True):
                wrong = "not computed" if shadow is None else wrong_values(shadow, truth, subject.noise)
                if wrong:
                    outcome.faults.append(f"'{name}' (hidden: {list(mode)}): {wrong}")
        if outcome.faults:
            return outcome
        for group in groups:
            for turn in range(turns):
                outcome.checked += compare(subject, claims, base, group, bits, turn, outcome.faults)
                if outcome.faults:
                    return outcome
    return outcome


def compare(subject, claims, base, group, bits, turn, faults) -> int:
    """Runs the subject with ``group`` changed; 0 when the runtime refuses that."""
    feeds = dict(subject.feeds)
    for name in {name for name, _ in group}:
        feeds[name] = changed(feeds[name], [at for other, at in group if other == name], turn)
    try:
        made = list(subject.execute(feeds))
    except Exception:  # noqa: BLE001 - an index out of range, a shape that does not fit: each runtime says so in its way
        return 0
    mask = np.uint64(1 << (FIRST_BIT + bits[group[0]]))
    for mode, shadows in claims:
        for name, shadow, before, after in zip(subject.graph.output_names, shadows, base, made, strict=True):
            at = unheard(shadow, before, after, mask, subject.noise)
            if at is not None:
                told = ", ".join(f"{place[0]}[{place[1]}]" for place in group[:4])
                faults.append(f"'{name}' at {at} moved with {told} (hidden: {list(mode)}, turn {turn}) unlabelled")
    return 1
