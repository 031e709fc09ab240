"""Transfer functions of convolutions and pools: every result hears what stands in its window.

Windows run over the spatial axes only as far as anything varies along them; channels are mixed as a whole, group by group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import NO_LABELS
from wirelint.shadow.transfer.elementwise import center, given
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import HUGE, Array, ExecutionError, Shadow, join

__all__: list[str] = []

_EXACT_WORK = 1 << 20
"""Products that an exact convolution may take: masks are small."""

_LONGEST = 1 << 24
_WIDEST_PADDING = 1 << 16
"""Results along an axis, and padding, beyond which windows are not followed: a file may claim anything."""

_Index = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """How windows run along one spatial axis.

    Attributes:
        size: length of the axis that is read.
        kernel: elements of a window.
        stride: distance of neighbouring windows.
        dilation: distance of neighbouring elements of a window.
        before: padding in front.
        after: padding behind.
        count: how many windows there are.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int

    def reads(self, offset: int) -> tuple[slice, slice] | None:
        """Which windows have their element ``offset`` inside the axis, and where; None when none has."""
        shift = offset * self.dilation - self.before
        first = max(0, -(shift // self.stride))
        last = min(self.count - 1, (self.size - 1 - shift) // self.stride)
        if first > last:
            return None
        return slice(first, last + 1), slice(first * self.stride + shift, last * self.stride + shift + 1, self.stride)

    def heard(self, *, padding: bool) -> Array:
        """How many elements of each window are inside the axis, or inside the axis with its padding."""
        place = np.arange(self.count)[:, None] * self.stride + np.arange(self.kernel)[None, :] * self.dilation - self.before
        low, high = (-self.before, self.size + self.after) if padding else (0, self.size)
        heard: Array = ((place >= low) & (place < high)).sum(axis=1)
        return heard


def _numbers(op: Op, name: str, count: int, default: int) -> list[int]:
    found = [int(number) for number in op.attrs.get(name) or ()] or [default] * count
    if len(found) != count:
        raise ExecutionError(f"{len(found)} {name} for {count} numbers")
    return found


def _same_pads(total: int, auto_pad: str) -> tuple[int, int]:
    total = max(total, 0)
    less = total // 2
    return (less, total - less) if auto_pad == "SAME_UPPER" else (total - less, less)


def _axes(op: Op, space: Sequence[int], kernel: Sequence[int]) -> list[_Axis]:
    """The windows of a convolution or a pool (ONNX operator specification of Conv and MaxPool)."""
    rank = len(space)
    if len(kernel) != rank:
        raise ExecutionError(f"a window of rank {len(kernel)} over {rank} axes")
    strides, dilations = _numbers(op, "strides", rank, 1), _numbers(op, "dilations", rank, 1)
    pads = _numbers(op, "pads", 2 * rank, 0)
    auto_pad = op.attrs.get("auto_pad", "NOTSET")
    if min([*strides, *dilations, *kernel], default=1) < 1 or min(pads, default=0) < 0:
        raise ExecutionError("a window with a stride, dilation or size below 1, or with negative padding")
    if max(pads, default=0) > _WIDEST_PADDING:
        raise ExecutionError(f"padding of {max(pads)} elements")
    axes = []
    for at, (size, length, stride, dilation) in enumerate(zip(space, kernel, strides, dilations, strict=True)):
        extent = (length - 1) * dilation + 1
        before, after = pads[at], pads[at + rank]
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // stride)
            before, after = _same_pads((count - 1) * stride + extent - size, auto_pad)
        else:
            if auto_pad == "VALID":
                before = after = 0
            room = size + before + after - extent
            if room < 0:
                raise ExecutionError(f"a window of {extent} over {size + before + after} elements", [extent - before - after])
            count = room // stride + 1
            if op.attrs.get("ceil_mode"):
                count = -(-room // stride) + 1
                # A window that would begin in the padding behind is left out.
                count -= (count - 1) * stride >= size + before
        axes.append(_Axis(size, length, stride, dilation, before, after, count))
    return axes


def _regions(
    axes: Sequence[_Axis], compact: Sequence[bool], context: Context
) -> Iterator[tuple[tuple[int, ...], _Index, _Index]]:
    """For each element of the window: its offsets, and which results hear which elements there.

    Args:
        axes: the spatial axes.
        compact: along which of them nothing varies; there one offset stands for all.
        context: takes the number of offsets off the budget.
    """
    context.charge(1024 * math.prod(1 if flat else axis.kernel for axis, flat in zip(axes, compact, strict=True)))
    everything = (slice(None), slice(None))
    choices = [
        [(0, everything)] if flat else [(at, reads) for at in range(axis.kernel) if (reads := axis.reads(at)) is not None]
        for axis, flat in zip(axes, compact, strict=True)
    ]
    for chosen in itertools.product(*choices):
        made = tuple(reads[0] for _, reads in chosen)
        read = tuple(reads[1] for _, reads in chosen)
        yield tuple(offset for offset, _ in chosen), _after(2, made), _after(2, read)


def _after(count: int, index: Sequence[Any]) -> _Index:
    """An index into the axes behind the first ``count``."""
    return (slice(None),) * count + tuple(index)


def _flat(array: Array) -> list[bool]:
    return [dim == 1 for dim in array.shape[2:]]


def _length(axes: Sequence[_Axis], compact: Sequence[bool]) -> list[int]:
    return [1 if flat else axis.count for axis, flat in zip(axes, compact, strict=True)]


def _fold(
    array: Array, axes: Sequence[_Axis], compact: Sequence[bool], start: Any, function: Callable[..., Any], context: Context
) -> Array:
    """Joins the elements of each window by a ufunc, beginning with ``start``; padding leaves no trace."""
    made = np.full((*array.shape[:2], *_length(axes, compact)), start, dtype=array.dtype)
    for _, to, at in _regions(axes, compact, context):
        context.charge(made[to].size)
        made[to] = function(made[to], array[at])
    return made


def _united(labels: Array, axes: Sequence[_Axis], context: Context) -> Array:
    """Joins the labels of each window; compact along the axes along which they don't vary."""
    return _fold(labels, axes, _flat(labels), NO_LABELS, np.bitwise_or, context)


# -- convolutions ------------------------------------------------------------------------------------------------------


def _by_group(labels: Array, channels: int, group: int) -> Array:
    """[batch, channels, ...] as [batch, group, ...], joined within each group; compact when nothing varies along channels."""
    if labels.shape[1] == 1:
        return labels
    grouped = labels.reshape(labels.shape[0], group, channels // group, *labels.shape[2:])
    return np.bitwise_or.reduce(grouped, axis=2)  # type: ignore[no-any-return]


def _for_filters(labels: Array, filters: int) -> Array:
    """[batch, group, ...] as [batch, filters, ...], where the filters of a group hear the same."""
    return labels if labels.shape[1] == 1 else np.repeat(labels, filters // labels.shape[1], axis=1)


def _weight_labels(w: Shadow, filters: Array, bias: Shadow | None) -> Array:
    """What the weights and the bias bring in, [1, filters, 1, ...] or compact.

    Args:
        w: the weight.
        filters: labels of the weight, [filters or 1].
        bias: rank 1.
    """
    heard = filters if bias is None else filters | bias.labels
    return heard.reshape((1, -1) + (1,) * (w.rank - 2))


def _live(w: Shadow) -> Array | None:
    """Where weights are not exactly zero for every input channel: bool [filters or 1, *kernel], or None for everywhere."""
    zero = w.zero()
    if zero is None:
        return None
    live = ~zero.all(axis=1)
    return None if live.all() else np.broadcast_to(live, (live.shape[0], *w.shape[2:]))


def _exact_convolution(
    x: Shadow, w: Shadow, bias: Shadow | None, axes: Sequence[_Axis], group: int, context: Context
) -> Array | None:
    """The result itself, when everything is known and small: a mask that is brought to a coarser scale."""
    if not x.is_exact or not w.is_exact or (bias is not None and not bias.is_exact) or x.dtype.is_integer:
        return None
    batch, channels = x.shape[:2]
    filters, counts = w.shape[0], [axis.count for axis in axes]
    if batch * filters * w.shape[1] * math.prod(w.shape[2:]) * math.prod(counts) > _EXACT_WORK:
        return None
    value = x.full_value().astype(np.float64).reshape(batch, group, channels // group, *x.shape[2:])
    kernel = w.full_value().astype(np.float64).reshape(group, filters // group, *w.shape[1:])
    made = np.zeros((batch, group, filters // group, *counts))
    for offsets, to, at in _regions(axes, [False] * len(axes), context):
        heard, tap = value[_after(3, at[2:])], kernel[_after(3, offsets)]
        made[_after(3, to[2:])] += np.einsum("bgc...,gfc->bgf...", heard, tap)
    made = made.reshape(batch, filters, *counts)
    if bias is not None:
        made = made + bias.full_value().astype(np.float64).reshape((1, -1) + (1,) * len(axes))
    return made.astype(x.dtype.numpy)


@transfer("Conv")
def convolution(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """A filter hears all channels of its group; where all of its weights are exactly zero, it hears nothing.

    Integers are codes of a quantiser, whose zero stands elsewhere, and are summed up in int32.
    """
    x, w = given(operands[0]), given(operands[1])
    bias = operands[2] if len(operands) > 2 else None
    group = op.attrs.get("group", 1)
    if x.rank < 3 or w.rank != x.rank:
        raise ExecutionError(f"convolution of rank {x.rank} with a weight of rank {w.rank}")
    if group < 1 or w.shape[1] * group != x.shape[1] or w.shape[0] % group:
        raise ExecutionError(
            f"convolution of {x.shape[1]} channels with a weight of shape {w.shape} in {group} groups", [w.shape[1] * group]
        )
    axes = _axes(op, x.shape[2:], w.shape[2:])
    shape = (x.shape[0], w.shape[0], *(axis.count for axis in axes))
    heard = _by_group(x.labels, x.shape[1], group)
    dtype = DType.I32 if x.dtype.is_integer else x.dtype
    live = None if w.dtype.is_integer else _live(w)
    if live is None:
        labels = _for_filters(_united(heard, axes, context), w.shape[0])
    else:
        labels = _fold_live(_for_filters(heard, w.shape[0]), axes, live, context)
    labels = labels | _weight_labels(w, join(w.labels, range(1, w.rank)).reshape(-1), bias)
    value = _exact_convolution(x, w, bias, axes, group, context)
    if value is None:
        return [Shadow(shape, dtype, labels)]
    return [Shadow(shape, dtype, labels, value, np.ones((1,) * x.rank, dtype=bool), labels)]


def _fold_live(heard: Array, axes: Sequence[_Axis], live: Array, context: Context) -> Array:
    """Joins the labels within each window, except where the weight of a filter is zero."""
    alike = bool((live == live[_after(1, [slice(1)] * len(axes))]).all())
    compact = [dim == 1 and alike for dim in heard.shape[2:]]
    filters = max(heard.shape[1], live.shape[0])
    made = np.zeros((heard.shape[0], filters, *_length(axes, compact)), dtype=np.uint64)
    full = [1 if flat else axis.size for axis, flat in zip(axes, compact, strict=True)]
    heard = np.broadcast_to(heard, (*heard.shape[:2], *full))
    for offsets, to, at in _regions(axes, compact, context):
        alive = live[_after(1, offsets)]
        if alive.any():
            context.charge(made[to].size)
            made[to] |= np.where(alive.reshape((1, -1) + (1,) * len(axes)), heard[at], NO_LABELS)
    return made


@transfer("ConvTranspose")
def transposed_convolution(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Each element is spread over a window of the result: the windows of a convolution, read the other way round."""
    x, w = given(operands[0]), given(operands[1])
    bias = operands[2] if len(operands) > 2 else None
    group = op.attrs.get("group", 1)
    if x.rank < 3 or w.rank != x.rank:
        raise ExecutionError(f"convolution of rank {x.rank} with a weight of rank {w.rank}")
    if group < 1 or w.shape[0] != x.shape[1] or w.shape[0] % group:
        raise ExecutionError(
            f"convolution of {x.shape[1]} channels with a weight of shape {w.shape} in {group} groups", [w.shape[0]]
        )
    axes = _transposed_axes(op, x.shape[2:], w.shape[2:])
    filters = w.shape[1] * group
    heard = _by_group(x.labels, x.shape[1], group)
    compact = _flat(heard)
    spots = [1 if flat else axis.size for axis, flat in zip(axes, compact, strict=True)]
    made = np.zeros((*heard.shape[:2], *spots), dtype=np.uint64)
    for _, at, to in _regions(axes, compact, context):
        context.charge(made[to].size)
        made[to] |= heard[at]
    marks = join(w.labels, [0, *range(2, w.rank)]).reshape(-1)
    marks = np.tile(marks, group) if marks.size > 1 else marks
    labels = _for_filters(made, filters) | _weight_labels(w, marks, bias)
    return [Shadow((x.shape[0], filters, *(axis.size for axis in axes)), x.dtype, labels)]


def _transposed_axes(op: Op, space: Sequence[int], kernel: Sequence[int]) -> list[_Axis]:
    """The windows over the result: ``size`` is the result's, ``count`` the operand's (ONNX specification of ConvTranspose)."""
    rank = len(space)
    if len(kernel) != rank:
        raise ExecutionError(f"a window of rank {len(kernel)} over {rank} axes")
    strides, dilations = _numbers(op, "strides", rank, 1), _numbers(op, "dilations", rank, 1)
    pads, more = _numbers(op, "pads", 2 * rank, 0), _numbers(op, "output_padding", rank, 0)
    wanted = list(op.attrs.get("output_shape") or ())[-rank:]
    auto_pad = op.attrs.get("auto_pad", "NOTSET")
    if min([*strides, *dilations, *kernel], default=1) < 1 or min(more, default=0) < 0 or (wanted and len(wanted) != rank):
        raise ExecutionError("a window with a stride, dilation or size below 1, or an output shape that does not fit")
    axes = []
    for at, (size, length, stride, dilation) in enumerate(zip(space, kernel, strides, dilations, strict=True)):
        extent = (length - 1) * dilation + 1
        total = stride * (size - 1) + more[at] + extent
        before, after = (0, 0) if auto_pad == "VALID" else (pads[at], pads[at + rank])
        if wanted or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            result = int(wanted[at]) if wanted else size * stride
            if auto_pad != "NOTSET" or not any(pads):
                before, after = _same_pads(total - result, auto_pad)
        else:
            result = total - before - after
        if not 1 <= result <= _LONGEST or before < 0:
            raise ExecutionError(f"a transposed convolution that leaves {result} of {total} elements")
        axes.append(_Axis(result, length, stride, dilation, before, after, size))
    return axes


# -- pools -------------------------------------------------------------------------------------------------------------


def _pool_axes(op: Op, x: Shadow) -> list[_Axis]:
    if x.rank < 3:
        raise ExecutionError(f"a pool over a tensor of rank {x.rank}")
    return _axes(op, x.shape[2:], [int(size) for size in op.attrs.get("kernel_shape") or ()])


def _values(x: Shadow, context: Context) -> tuple[Array, Array, Array] | None:
    """Value, exactness and anchor, spread over the spatial axes; None when nothing is known, or integers only in part."""
    if x.value is None or (not x.is_exact and x.dtype.is_integer):
        return None
    value, exact, anchor = center(x.spread(range(2, x.rank)), x.rank)
    context.charge(value.size)
    return value, exact, anchor


@transfer("MaxPool")
def max_pool(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """The largest of each window; what is certainly far below it leaves no label but that of its being so."""
    x = given(operands[0])
    axes = _pool_axes(op, x)
    shape = (*x.shape[:2], *(axis.count for axis in axes))
    labels = _united(x.labels, axes, context)
    made = Shadow(shape, x.dtype, labels)
    found = _values(x, context)
    if found is not None:
        value, exact, anchor = found
        every = [False] * len(axes)
        lowest = False if x.dtype is DType.BOOL else np.iinfo(value.dtype).min if x.dtype.is_integer else -np.inf
        highest = _fold(value, axes, every, lowest, np.maximum, context)
        sure = _fold(exact, axes, every, True, np.logical_and, context)
        if x.dtype.is_float:
            labels = _without_beaten(x, value, anchor, highest, axes, context)
        made = Shadow.partly(shape, x.dtype, labels, highest, sure, _united(anchor, axes, context))
    return [made, Shadow(shape, DType.I64, made.labels)][: max(1, len(op.outputs))]


def _without_beaten(x: Shadow, value: Array, anchor: Array, highest: Array, axes: Sequence[_Axis], context: Context) -> Array:
    """Labels of each window without those of elements that are far below the largest and so can't become it."""
    wide = x.spread(range(2, x.rank)).labels
    spots = np.broadcast_shapes(value.shape[:2], wide.shape[:2], anchor.shape[:2])
    labels = np.zeros((*spots, *highest.shape[2:]), dtype=np.uint64)
    for _, to, at in _regions(axes, [False] * len(axes), context):
        gap = highest[to].astype(np.float64) - value[at].astype(np.float64)
        labels[to] |= np.where(gap > HUGE, anchor[at], wide[at])
    return labels


@transfer("AveragePool", "LpPool")
def mean_pool(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Means and p-norms of windows: known where the whole window is."""
    x = given(operands[0])
    axes = _pool_axes(op, x)
    shape = (*x.shape[:2], *(axis.count for axis in axes))
    labels = _united(x.labels, axes, context)
    found = _values(x, context)
    if found is None or not x.dtype.is_float or not found[1].any():
        return [Shadow(shape, x.dtype, labels)]
    value, exact, anchor = found
    every = [False] * len(axes)
    sure = _fold(exact, axes, every, True, np.logical_and, context)
    wide = value.astype(np.float64)
    if op.kind == "LpPool":
        power = op.attrs.get("p", 2)
        made = _fold(np.abs(wide) ** power, axes, every, 0, np.add, context) ** (1 / power)
    else:
        counts = [axis.heard(padding=bool(op.attrs.get("count_include_pad"))) for axis in axes]
        made = _fold(wide, axes, every, 0, np.add, context)
        for at, count in enumerate(counts):
            made = made / np.maximum(count, 1).reshape([-1 if axis == at else 1 for axis in range(len(axes))])
    anchor = _united(anchor, axes, context)
    return [Shadow.partly(shape, x.dtype, labels, np.where(sure, made, 0).astype(x.dtype.numpy), sure, anchor)]
