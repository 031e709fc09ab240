"""Transfer functions of control flow: branches and loops are run on shadows, as often as is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Graph, Op
from wirelint.shadow.labels import COUNT, NO_LABELS, UNMODELLED
from wirelint.shadow.transfer.elementwise import center, either, given
from wirelint.shadow.transfer.movement import axis_of, concatenate, constant_ints, cut, dynamic_labels, reshape
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, DataDependentError, ExecutionError, Shadow, join, present

__all__: list[str] = []

_MOST_ITERATIONS = 1024
"""Iterations that are run one by one; a longer loop is run until its labels no longer change."""

_ENDLESS = 1 << 62
"""The trip count of a loop that only its condition ends."""

_PATIENCE = 8
"""Rounds after which the labels of all elements of all states are taken together, so that they soon stop changing."""


def _truth(condition: Shadow) -> bool | None:
    """A condition's value, or None when it is not known."""
    if condition.size != 1:
        raise ExecutionError(f"a condition of shape {condition.shape}")
    return bool(condition.full_value().ravel()[0]) if condition.is_exact else None


@transfer("If")
def branch(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Runs the branch that is taken; both, when that is not known.

    A branch that can't be executed is left out if the other one can; its results are then not wholly modelled.
    """
    condition = given(operands[0])
    taken = _truth(condition)
    marks = dynamic_labels(condition)
    if taken is not None:
        return [made.joined(marks) for made in context.run_body(op.bodies["then" if taken else "else"], [])]
    found: list[list[Shadow]] = []
    failed: ExecutionError | None = None
    for role in ("then", "else"):
        try:
            found.append(context.run_body(op.bodies[role], []))
        except ExecutionError as error:  # noqa: PERF203 - two turns
            failed = error
    if not found:
        raise failed or ExecutionError("a branch is missing")
    if failed is not None:
        return [made.without_value().joined(marks | UNMODELLED) for made in found[0]]
    return [either(one, other).joined(marks) for one, other in zip(*found, strict=True)]


# -- loops -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Loop:
    """A Loop whose operands are sorted by what they are.

    Attributes:
        body: run once per iteration.
        initial: the states before the first iteration; None where nothing is carried in.
        sliced: scan inputs, with axis and whether they are read backwards.
        stacked: axis of each scan output, and whether its elements are put in front.
        keep_axis: slices keep their axis with length 1.
        trips: how many iterations there are at most; None when that is not known.
        condition: whether the first iteration runs.
        marks: labels of the trip count and of the conditions so far.
    """

    body: Graph
    initial: list[Shadow | None]
    sliced: list[tuple[Shadow, int, bool]]
    stacked: list[tuple[int, bool]]
    keep_axis: bool
    trips: int | None
    condition: Shadow
    marks: np.uint64

    def slices(self, at: int) -> list[Shadow]:
        """What iteration ``at`` reads of the scan inputs."""
        made = []
        for x, axis, backwards in self.sliced:
            if at >= x.shape[axis]:
                raise ExecutionError(f"iteration {at} of a loop over {x.shape[axis]} elements")
            place = x.shape[axis] - 1 - at if backwards else at
            made.append(self._sliced(cut(x, axis, place, place + 1), axis))
        return made

    def any_slices(self) -> list[Shadow]:
        """What some iteration reads of the scan inputs."""
        made = []
        for x, axis, _ in self.sliced:
            shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            made.append(self._sliced(Shadow(shape, x.dtype, join(x.labels, [axis])), axis))
        return made

    def _sliced(self, x: Shadow, axis: int) -> Shadow:
        if self.keep_axis:
            return x
        return x.moved(
            x.shape[:axis] + x.shape[axis + 1 :], lambda array: array.reshape(array.shape[:axis] + array.shape[axis + 1 :])
        )

    def states(self) -> list[Shadow]:
        """The states before the first iteration.

        A state that is not carried in is read by nothing; whatever stands for it has the declared rank.
        """
        places = self.body.inputs[2 : 2 + len(self.initial)]
        return [
            Shadow.unknown((1,) * len(place.shape or ()), place.dtype) if state is None else state
            for state, place in zip(self.initial, places, strict=True)
        ]

    def head(self, iteration: int | None, goes_on: Shadow) -> list[Shadow]:
        """The iteration number, or an unknown one, and the condition, in the shapes that the body declares."""
        number, truth = self.body.inputs[:2]
        dtype = DType.I64 if number.dtype is DType.UNKNOWN else number.dtype
        shape = (1,) * len(number.shape or ())
        counted = Shadow.unknown(shape, dtype) if iteration is None else Shadow.known(np.full(shape, iteration), dtype)
        return [counted, reshape(goes_on, (1,) * len(truth.shape or ()))]


def _numbered(op: Op, name: str, count: int) -> list[int]:
    found = [int(number) for number in op.attrs.get(name) or ()]
    if found and len(found) != count:
        raise ExecutionError(f"{len(found)} {name} for {count} operands")
    return found or [0] * count


def _arranged(op: Op, operands: Sequence[Shadow | None]) -> _Loop:
    body, carried = op.bodies["body"], int(op.attrs.get("carried", 0))
    held = [*operands, *[None] * (len(body.inputs) - len(operands))]
    count, condition, states, scanned = held[0], held[1], held[2 : 2 + carried], held[2 + carried :]
    if len(held) != len(body.inputs) or len(body.outputs) < 1 + carried:
        raise ExecutionError(
            f"a loop with {len(held)} operands, whose body has {len(body.inputs)} inputs and {len(body.outputs)} outputs"
        )
    if count is not None and present(count.labels) & COUNT:
        raise DataDependentError("the number of iterations of a loop depends on data")
    parts = [given(x) for x in scanned]
    axes, directions = _numbered(op, "scan_input_axes", len(parts)), _numbered(op, "scan_input_directions", len(parts))
    sliced = [(x, axis_of(axis, x.rank), bool(way)) for x, axis, way in zip(parts, axes, directions, strict=True)]
    outputs = len(body.outputs) - 1 - carried
    ways = _numbered(op, "scan_output_directions", outputs)
    stacked = list(zip(_numbered(op, "scan_output_axes", outputs), map(bool, ways), strict=True))
    trips: int | None
    if count is None:
        trips = min((x.shape[axis] for x, axis, _ in sliced), default=_ENDLESS)
    else:
        trips = max(0, constant_ints(count, "the trip count")[0]) if count.is_exact else None
    marks = dynamic_labels(count, condition)
    first = Shadow.known(np.asarray(True), DType.BOOL) if condition is None else condition
    return _Loop(body, states, sliced, stacked, bool(op.attrs.get("keep_axis")), trips, first, marks)


@transfer("Loop")
def loop(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Runs the body as often as the runtime would; as soon as that is not known, until its labels no longer change."""
    arranged = _arranged(op, operands)
    if arranged.trips is not None and (arranged.trips <= _MOST_ITERATIONS or arranged.trips == _ENDLESS):
        made = _iterated(arranged, arranged.trips, context)
        if made is not None:
            return made
    return _settled(arranged, context)


def _iterated(arranged: _Loop, trips: int, context: Context) -> list[Shadow] | None:
    """One iteration after the other; None when a condition is not known, or holds for too long."""
    goes_on, states, marks = arranged.condition, arranged.states(), arranged.marks
    rows: list[list[Shadow]] = []
    for at in range(trips):
        truth = _truth(goes_on)
        if truth is None or at >= _MOST_ITERATIONS:
            return None
        if not truth:
            break
        outputs = context.run_body(arranged.body, [*arranged.head(at, goes_on), *states, *arranged.slices(at)])
        goes_on, states = outputs[0], outputs[1 : 1 + len(states)]
        marks |= dynamic_labels(goes_on)
        rows.append(outputs[1 + len(states) :])
    if not rows and any(state is None for state in arranged.initial):
        raise DataDependentError("a loop without iterations leaves a value open")
    stacks = [_stack([row[at] for row in rows], arranged, at) for at in range(len(arranged.stacked))]
    return [made.joined(marks) for made in (*states, *stacks)]


def _stack(parts: list[Shadow], arranged: _Loop, at: int) -> Shadow:
    """One scan output from the elements that the iterations left."""
    axis, front = arranged.stacked[at]
    if not parts:
        # No iteration, no elements: what the body declares gives the other dimensions.
        value = arranged.body.outputs[len(arranged.body.outputs) - len(arranged.stacked) + at]
        dims = [dim if isinstance(dim, int) else 0 for dim in value.shape or ()]
        place = axis_of(axis, len(dims) + (not arranged.keep_axis))
        shape = [*dims[:place], 0, *dims[place + arranged.keep_axis :]]
        return Shadow.known(np.zeros(shape), value.dtype)
    if not arranged.keep_axis:
        place = axis_of(axis, parts[0].rank + 1)
        parts = [_raised(part, place) for part in parts]
    return concatenate(parts[::-1] if front else parts, axis_of(axis, parts[0].rank))


def _raised(x: Shadow, axis: int) -> Shadow:
    def move(array: Array) -> Array:
        return np.expand_dims(array, axis)

    return x.moved((*x.shape[:axis], 1, *x.shape[axis:]), move)


def _settled(arranged: _Loop, context: Context) -> list[Shadow]:
    """Any number of iterations: states joined until another one adds no label.

    Raises:
        DataDependentError: the body changes the shape of a state, or the length of a scan output depends on data.
    """
    goes_on, states, marks = arranged.condition, arranged.states(), arranged.marks
    rounds = 0
    while True:
        outputs = context.run_body(arranged.body, [*arranged.head(None, goes_on), *states, *arranged.any_slices()])
        made = [
            after.without_value() if initial is None else either(before, after)
            for initial, before, after in zip(arranged.initial, states, outputs[1 : 1 + len(states)], strict=True)
        ]
        marks |= dynamic_labels(outputs[0])
        onward = either(goes_on, reshape(outputs[0], goes_on.shape))
        rounds += 1
        if rounds > _PATIENCE:
            made = _levelled(made)
        if all(map(_alike, [goes_on, *states], [onward, *made])):
            break
        goes_on, states = onward, made
    stacks = outputs[1 + len(states) :]
    if stacks and (arranged.trips is None or not _truth(goes_on)):
        raise DataDependentError("the number of iterations of a loop depends on data")
    return [x.joined(marks) for x in (*states, *(_repeated(x, arranged, at) for at, x in enumerate(stacks)))]


def _levelled(states: Sequence[Shadow]) -> list[Shadow]:
    """Every element of every state with the labels of all; values are forgotten where labels are."""
    union = NO_LABELS
    for state in states:
        union |= present(state.labels)
    return [Shadow.unknown(state.shape, state.dtype, union) for state in states]


def _alike(x: Shadow, y: Shadow) -> bool:
    """The same labels, and the same values, known for the same elements."""
    if x.shape != y.shape or not bool((x.labels == y.labels).all()):
        return False
    (xv, xe, _), (yv, ye, _) = center(x, x.rank), center(y, y.rank)
    same = xv == yv
    if x.dtype.is_float:
        same = same | (np.isnan(xv) & np.isnan(yv))
    return bool(np.all(same)) and bool(np.all(xe == ye))


def _repeated(x: Shadow, arranged: _Loop, at: int) -> Shadow:
    """A scan output each of whose elements may be what any iteration leaves."""
    axis, _ = arranged.stacked[at]
    place = axis_of(axis, x.rank + (not arranged.keep_axis))
    once = x if arranged.keep_axis else _raised(x, place)
    shape = list(once.shape)
    shape[place] *= 0 if arranged.trips is None else arranged.trips
    return Shadow(tuple(shape), x.dtype, join(once.labels, [place]))
