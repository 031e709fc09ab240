"""Transfer functions of recurrent operators: a state hears everything that was read before it.

All hidden units behave alike, since the recurrent weights mix them at every step, so the hidden axis stays compact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH, NO_LABELS
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.movement import concatenate, transpose
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, ExecutionError, Shadow, join, present

__all__: list[str] = []

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1, "LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}


def _of_direction(x: Shadow | None, at: int) -> np.uint64:
    """What one direction's part of a weight depends on; axis 0 holds the directions."""
    if x is None:
        return NO_LABELS
    part: Array = x.labels if x.labels.shape[0] == 1 else x.labels[at]
    return present(part)


def _by_row(x: Shadow | None, at: int) -> Array:
    """What the initial state of each row depends on, [rows or 1]; ``x`` is [directions, rows, hidden]."""
    if x is None:
        return np.zeros(1, dtype=np.uint64)
    marks = join(x.labels, [2])
    return marks[0 if marks.shape[0] == 1 else at, :, 0]


def _steps(kind: str, x: Shadow, w: Shadow, lengths: Shadow | None, states: Sequence[Shadow | None]) -> int:
    """The hidden size, after all shapes have been checked; ``x`` is [sequence, rows, size]."""
    if x.rank != 3 or w.rank != 3 or w.shape[2] != x.shape[2] or w.shape[1] % _GATES[kind]:
        raise ExecutionError(f"{kind} over a tensor of shape {x.shape} with weights of shape {w.shape}", w.shape[2:3])
    hidden = w.shape[1] // _GATES[kind]
    if lengths is not None and lengths.shape != (x.shape[1],):
        raise ExecutionError(f"{lengths.size} sequence lengths for {x.shape[1]} rows", [x.shape[1], lengths.size])
    for state in states:
        if state is not None and state.shape != (w.shape[0], x.shape[1], hidden):
            raise ExecutionError(f"an initial state of shape {state.shape} instead of {(w.shape[0], x.shape[1], hidden)}")
    return hidden


def _within(lengths: Shadow | None, steps: int) -> Array | None:
    """Which steps of each row are computed, bool [sequence, rows]; None when all are, or when that is not known."""
    if lengths is None or not lengths.is_exact:
        return None
    within = np.arange(steps)[:, None] < lengths.full_value().astype(np.int64)[None, :]
    return None if within.all() else within


@transfer("LSTM", "GRU", "RNN")
def sequence(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """A row's steps from its length on are not computed: their results are zero and its last state is the one before.

    Backwards a row begins at its last step within the length.
    """
    x, w, r, bias, lengths, *states = [*operands, *[None] * (7 - len(operands))][:7]
    data, weight = given(x), given(w)
    given(r)
    batch_first = bool(op.attrs.get("layout"))
    if batch_first:
        data = transpose(data, [1, 0, 2])
        states = [None if state is None else transpose(state, [1, 0, 2]) for state in states]
    hidden = _steps(op.kind, data, weight, lengths, states)
    steps, rows = data.shape[:2]
    within = _within(lengths, steps)
    marks = np.zeros(1, dtype=np.uint64) if lengths is None else lengths.labels & ~LENGTH
    direction = op.attrs.get("direction", "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if backwards is None or len(backwards) != weight.shape[0]:
        raise ExecutionError(f"{weight.shape[0]} directions of weights for {direction}")
    heard = join(data.labels, [2])[:, :, 0]
    context.charge(steps * rows)
    outputs, finals = [], []
    for at, reverse in enumerate(backwards):
        constant = np.bitwise_or.reduce([_of_direction(part, at) for part in (weight, r, bias)], dtype=np.uint64)
        start = np.bitwise_or.reduce(np.stack(np.broadcast_arrays(*(_by_row(state, at) for state in states))), axis=0)
        reached = _reached(heard, within, steps, reverse=reverse) | start | constant
        # A row of length 0 keeps its initial state.
        last = reached[0 if reverse else -1] if steps else start
        outputs.append(_result((steps, 1, rows, hidden), data, reached, within, marks))
        finals.append(Shadow((1, rows, hidden), data.dtype, (last | marks)[None, :, None]))
    y, final = concatenate(outputs, 1), concatenate(finals, 0)
    if batch_first:
        y, final = transpose(y, [2, 0, 1, 3]), transpose(final, [1, 0, 2])
    return [y, *[final] * (2 if op.kind == "LSTM" else 1)][: max(1, len(op.outputs))]


def _reached(heard: Array, within: Array | None, steps: int, *, reverse: bool) -> Array:
    """What has been read up to and including each step, [sequence or 1, rows or 1]; compact if every step reads the same."""
    if within is not None:
        heard = np.where(within, heard, NO_LABELS)
    if heard.shape[0] != steps or steps < 2:
        return heard
    if reverse:
        return np.flip(np.bitwise_or.accumulate(np.flip(heard, 0), axis=0), 0)
    return np.bitwise_or.accumulate(heard, axis=0)


def _result(shape: tuple[int, ...], x: Shadow, reached: Array, within: Array | None, marks: Array) -> Shadow:
    """The results of all steps, [sequence, 1, rows, hidden]; exactly zero beyond a row's length."""
    if within is None:
        return Shadow(shape, x.dtype, (reached | marks)[:, None, :, None])
    labels = (np.where(within, reached, NO_LABELS) | marks)[:, None, :, None]
    zero = ~within[:, None, :, None]
    return Shadow.partly(shape, x.dtype, labels, np.zeros(zero.shape, dtype=x.dtype.numpy), zero, labels)


@transfer("LSTMCell", "GRUCell", "RNNCell")
def cell(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """One step: every hidden unit of a row hears the row's operand and states."""
    count = 3 if op.kind == "LSTMCell" else 2
    parts = [given(operand) for operand in operands[:count]]
    x, state, weight = parts[0], parts[1], given(operands[count])
    if any(part.rank != 2 or part.shape[0] != x.shape[0] for part in parts) or weight.rank != 2:
        raise ExecutionError(f"{op.kind} of shapes {', '.join(str(part.shape) for part in parts)}")
    if weight.shape[1] != x.shape[1] or weight.shape[0] != _GATES[op.kind] * state.shape[1]:
        raise ExecutionError(
            f"{op.kind} over a tensor of shape {x.shape} with weights of shape {weight.shape}", [weight.shape[1]]
        )
    labels = np.zeros((1, 1), dtype=np.uint64)
    for part in parts:
        labels = labels | join(part.labels, [1])
    for operand in operands[count:]:
        if operand is not None:
            labels = labels | present(operand.labels)
    return [Shadow(state.shape, x.dtype, labels)] * (count - 1)
