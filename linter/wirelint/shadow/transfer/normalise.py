"""Transfer functions of normalisations and of softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirelint.graph import Op
from wirelint.shadow.transfer.elementwise import given, infected
from wirelint.shadow.transfer.movement import axis_of, constant_ints
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import HUGE, Shadow, join

__all__ = ["softmax"]


def _rescaled(x: Shadow, axes: Sequence[int], *, zero_stays: bool) -> Shadow:
    """Elements divided by a statistic over axes."""
    labels = join(x.labels, axes)
    zero = x.zero() if zero_stays else None
    if zero is None:
        return infected(Shadow(x.shape, x.dtype, labels), [x], axes)
    labels = np.where(zero, x.labels, labels)
    return Shadow.partly(x.shape, x.dtype, labels, np.zeros(zero.shape, dtype=x.dtype.numpy), zero, labels)


@transfer("LayerNormalization", "RMSNormalization")
def layer_norm(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", -1), x.rank)
    made = _rescaled(x, range(axis, x.rank), zero_stays=op.kind == "RMSNormalization")
    for extra in operands[1:]:
        if extra is not None and extra.labels.any():
            made = made.joined(extra.labels.reshape((1,) * (x.rank - extra.rank) + extra.labels.shape))
    if len(op.outputs) == 1:
        return [made]
    statistic = Shadow(
        tuple(dim if at < axis else 1 for at, dim in enumerate(x.shape)), x.dtype, join(x.labels, range(axis, x.rank))
    )
    return [made, *([statistic] * (len(op.outputs) - 1))]


@transfer("MeanVarianceNormalization", "LpNormalization")
def over_axes(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axes = [axis_of(axis, x.rank) for axis in constant_ints(operands[1], "axes")]
    return [_rescaled(x, axes, zero_stays=op.kind == "LpNormalization")]


@transfer("BatchNormalization")
def batch_norm(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    made = infected(Shadow(x.shape, x.dtype, x.labels), [x])
    for extra in operands[1:]:
        if extra is not None and extra.labels.any():
            made = made.joined(extra.labels.reshape((1, -1) + (1,) * (x.rank - 2)))
    return [made]


@transfer("InstanceNormalization", "GroupNormalization")
def group_norm(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    made = _rescaled(x, range(2 if op.kind == "InstanceNormalization" else 1, x.rank), zero_stays=False)
    for extra in operands[1:]:
        if extra is not None and extra.labels.any():
            made = made.joined(extra.labels.reshape((1, -1) + (1,) * (x.rank - 2)))
    return [made]


@transfer("LRN")
def local_response(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [_rescaled(given(operands[0]), [1], zero_stays=True)]


def softmax(x: Shadow, axes: Sequence[int]) -> Shadow:
    """Weights along axes; scores that are certainly far below the row's largest get exactly zero.

    Which scores those are depends on the anchors alone (the mask), so a zero weight carries no content.  A row whose
    scores are all -inf, or that holds a NaN or +inf, is NaN, as in every runtime here.
    """
    axes = tuple(axes)
    labels = join(x.labels, axes)
    if x.value is None or x.exact is None or x.anchor is None or all(x.value.shape[axis] == 1 for axis in axes):
        if x.value is None or x.exact is None or x.anchor is None or not x.dtype.is_float:
            return Shadow(x.shape, x.dtype, labels)
        # The same approximate score everywhere: softmax ignores a common shift, but not infinities.
        lost = ~np.isfinite(x.value)
        if not lost.any():
            return Shadow(x.shape, x.dtype, labels)
        nan = np.full(lost.shape, np.nan, dtype=x.dtype.numpy)
        return Shadow.partly(x.shape, x.dtype, labels, nan, lost, x.anchor)
    score = x.value.astype(np.float64)
    highest = score.max(axis=axes, keepdims=True)
    with np.errstate(all="ignore"):
        gap = highest - score
    lost = ~np.isfinite(highest)
    beaten = (gap > HUGE) & ~lost
    anchor = join(x.anchor, axes)
    live = join(np.where(beaten, x.anchor, x.labels), axes)
    exact = beaten | lost
    value = np.where(lost, np.nan, 0.0).astype(x.dtype.numpy)
    if x.is_exact:
        with np.errstate(all="ignore"):
            wide = np.broadcast_to(
                score, np.broadcast_shapes(score.shape, tuple(x.shape[at] if at in axes else 1 for at in range(x.rank)))
            )
            weight = np.exp(wide - highest)
            value = (weight / weight.sum(axis=axes, keepdims=True)).astype(x.dtype.numpy)
        return Shadow(x.shape, x.dtype, labels, value, np.ones((1,) * x.rank, dtype=bool), labels)
    return Shadow.partly(x.shape, x.dtype, live | anchor, value, exact, anchor)


@transfer("Softmax")
def softmax_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", -1), x.rank) if x.rank else 0
    made = softmax(x, range(axis, x.rank) if op.attrs.get("coerce_2d") else [axis])
    context.charge(made.labels.size)
    context.observe("scores", x)
    context.observe("weights", made)
    return [made]


@transfer("LogSoftmax", "Hardmax")
def other_softmax(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", -1), x.rank)
    labels = join(x.labels, range(axis, x.rank) if op.attrs.get("coerce_2d") else [axis])
    return [Shadow(x.shape, x.dtype, labels)]
