"""Transfer functions of operators that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wirelint.graph import Op, Value
from wirelint.ops import Family, family
from wirelint.shadow.labels import COUNT, LENGTH, NO_LABELS, ROUTED
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, DataDependentError, ExecutionError, Shadow, bounded, join, present, spread

__all__ = ["axis_of", "concatenate", "constant_ints", "cut", "dynamic_labels", "expand", "reshape", "split", "transpose"]

_LARGEST_RANK = 32
_LARGEST_SIZE = 1 << 40


def constant_ints(shadow: Shadow | None, what: str) -> list[int]:
    """The values of an operand that gives a shape, axes or bounds.

    Raises:
        DataDependentError: they depend on data that the shadow run does not know.
    """
    numbers = None if shadow is None else shadow.integers()
    if numbers is None:
        raise DataDependentError(f"{what} depends on data")
    return numbers


def dynamic_labels(*shadows: Shadow | None) -> np.uint64:
    """The labels that shapes and bounds bring along: all of theirs but the padded length, which is no content.

    What is sized by the number of rows of an unknown choice has rows of that choice.
    """
    found: np.uint64 = NO_LABELS
    for shadow in shadows:
        if shadow is not None:
            found |= present(shadow.labels) & ~LENGTH
    return found & ~COUNT | ROUTED if found & COUNT else found


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ExecutionError: the tensor has no such axis.
    """
    if not -rank <= axis < rank:
        raise ExecutionError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) > _LARGEST_RANK or any(dim < 0 for dim in shape) or math.prod(shape) > _LARGEST_SIZE:
        raise ExecutionError(f"shape {list(shape)[:8]} is not possible")
    return tuple(shape)


# -- as functions of shadows, for other transfer functions too -----------------------------------------------------------


def transpose(x: Shadow, perm: Sequence[int]) -> Shadow:
    """Permutes the axes."""
    if sorted(perm) != list(range(x.rank)):
        raise ExecutionError(f"permutation {list(perm)} of a tensor of rank {x.rank}")
    return x.moved([x.shape[axis] for axis in perm], lambda array: np.transpose(array, perm))


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]]:
    """The finest split of two shapes of equal size into runs of dimensions with equal products."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        start_i, start_j = i, j
        left = right = 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new):
            right, j = new[j], j + 1
        while left != right:
            if left < right and i < len(old):
                left, i = left * old[i], i + 1
            elif j < len(new):
                right, j = right * new[j], j + 1
            else:
                left, i = left * old[i], i + 1
        while i < len(old) and old[i] == 1 and (j >= len(new) or new[j] != 1):
            i += 1
        while j < len(new) and new[j] == 1 and (i >= len(old) or old[i] != 1):
            j += 1
        groups.append((range(start_i, i), range(start_j, j)))
    return groups


def reshape(x: Shadow, shape: Sequence[int]) -> Shadow:
    """The same elements in another shape of the same size; runs of dimensions along which nothing varies stay compact."""
    shape = _checked(shape)
    if shape == x.shape:
        return x
    if 0 in x.shape or 0 in shape:
        if math.prod(shape) != x.size:
            raise ExecutionError(f"{x.size} elements do not fit shape {list(shape)}")
        return Shadow.unknown(shape, x.dtype, x.every_label())
    groups = _groups(x.shape, shape)

    def move(array: Array) -> Array:
        wide, target = list(array.shape), []
        for before, after in groups:
            if all(array.shape[axis] == 1 for axis in before):
                target += [1] * len(after)
            else:
                for axis in before:
                    wide[axis] = x.shape[axis]
                target += [shape[axis] for axis in after]
        return spread(array, wide).reshape(target)

    return x.moved(shape, move)


def expand(x: Shadow, shape: Sequence[int]) -> Shadow:
    """Numpy broadcast to a shape."""
    target = _checked(shape)
    lead = len(target) - x.rank
    for have, want in zip(x.shape, target[lead:], strict=True):
        if have not in (1, want):
            raise ExecutionError(f"shape {x.shape} does not expand to {target}", [have, want])
    return x.moved(target, lambda array: array.reshape((1,) * lead + array.shape))


def cut(x: Shadow, axis: int, start: int, stop: int, step: int = 1) -> Shadow:
    """A numpy slice along one axis; ``stop`` may be -1 for a negative step that runs to the front."""
    index: Any = slice(start, None if stop < 0 else stop, step)
    count = len(range(x.shape[axis])[index])
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    where = (slice(None),) * axis + (index,)

    def move(array: Array) -> Array:
        if array.shape[axis] == 1 and (x.shape[axis] != 1 or count == 1):
            return array
        return array[where]

    return x.moved(shape, move)


def split(x: Shadow, axis: int, lengths: Sequence[int]) -> list[Shadow]:
    """Consecutive parts along one axis."""
    if sum(lengths) != x.shape[axis] or any(length < 0 for length in lengths):
        raise ExecutionError(f"parts {list(lengths)} of an axis of length {x.shape[axis]}", [sum(lengths)])
    ends = np.cumsum([0, *lengths]).tolist()
    return [cut(x, axis, start, stop) for start, stop in pairwise(ends)]


def concatenate(parts: Sequence[Shadow], axis: int) -> Shadow:
    """Parts one after the other along an axis."""
    first = parts[0]
    for part in parts[1:]:
        if part.rank != first.rank:
            raise ExecutionError(f"concatenation of ranks {first.rank} and {part.rank}")
        for at, (one, other) in enumerate(zip(first.shape, part.shape, strict=True)):
            if at != axis and one != other:
                raise ExecutionError(f"concatenation of shapes {first.shape} and {part.shape}", [one, other])
    parts = [part for part in parts if part.shape[axis]] or [first]
    if len(parts) == 1:
        return parts[0]
    shape = list(first.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)

    def glue(arrays: Sequence[Array]) -> Array:
        if all(array.size == 1 for array in arrays) and len({array.item() for array in arrays}) == 1:
            return arrays[0]
        wide = [max(lengths) for lengths in zip(*(array.shape for array in arrays), strict=True)]
        bounded([*wide[:axis], shape[axis], *wide[axis + 1 :]])
        pieces = []
        for part, array in zip(parts, arrays, strict=True):
            wide[axis] = part.shape[axis]
            pieces.append(spread(array, wide))
        return np.concatenate(pieces, axis=axis)

    labels = glue([part.labels for part in parts])
    if all(part.value is None for part in parts):
        return Shadow(tuple(shape), first.dtype, labels)
    dot = (1,) * first.rank
    blank = np.zeros(dot, dtype=first.dtype.numpy), np.zeros(dot, dtype=bool), np.zeros(dot, dtype=np.uint64)
    known = [blank if part.value is None else (part.value, part.exact, part.anchor) for part in parts]
    value, exact, anchor = (glue([entry[place] for entry in known]) for place in range(3))  # type: ignore[misc]
    return Shadow.partly(shape, first.dtype, labels, value, exact, anchor)


# -- operators ---------------------------------------------------------------------------------------------------------


@transfer("Identity")
def identity(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [given(operands[0])]


@transfer("Reshape")
def reshape_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    target = constant_ints(operands[1], "the target shape")
    if op.attrs.get("zero_copies", True):
        target = [x.shape[at] if dim == 0 and at < x.rank else dim for at, dim in enumerate(target)]
    if target.count(-1) > 1:
        raise ExecutionError(f"shape {target} has more than one -1")
    if -1 in target:
        rest = math.prod(dim for dim in target if dim != -1)
        if rest == 0 or x.size % rest:
            raise ExecutionError(f"{list(x.shape)} does not fit shape {target}", target)
        target[target.index(-1)] = x.size // rest
    if math.prod(target) != x.size:
        raise ExecutionError(f"{list(x.shape)} does not fit shape {target}", target)
    return [reshape(x, target).joined(dynamic_labels(operands[1]))]


@transfer("Transpose")
def transpose_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [transpose(given(operands[0]), [axis_of(axis, given(operands[0]).rank) for axis in op.attrs["perm"]])]


@transfer("Squeeze")
def squeeze(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axes = operands[1] if len(operands) > 1 else None
    if axes is None:
        gone = {axis for axis, dim in enumerate(x.shape) if dim == 1}
    else:
        gone = {axis_of(axis, x.rank) for axis in constant_ints(axes, "axes")}
        if any(x.shape[axis] != 1 for axis in gone):
            raise ExecutionError(f"axes {sorted(gone)} of shape {list(x.shape)} are not all 1", [1])
    kept = [axis for axis in range(x.rank) if axis not in gone]
    return [x.moved([x.shape[axis] for axis in kept], lambda array: array.reshape([array.shape[axis] for axis in kept]))]


@transfer("Unsqueeze")
def unsqueeze(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axes = constant_ints(operands[1], "axes")
    rank = x.rank + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise ExecutionError(f"axes {axes} repeat")

    def insert(dims: Sequence[int]) -> list[int]:
        rest = iter(dims)
        return [1 if axis in new else next(rest) for axis in range(rank)]

    return [x.moved(insert(x.shape), lambda array: array.reshape(insert(array.shape)))]


@transfer("Flatten")
def flatten(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = op.attrs.get("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return [reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])]


@transfer("Expand")
def expand_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    target = constant_ints(operands[1], "the target shape")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(target))
    except ValueError:
        raise ExecutionError(f"shape {list(x.shape)} does not expand to {target}", [*x.shape, *target]) from None
    return [expand(x, shape).joined(dynamic_labels(operands[1]))]


@transfer("BroadcastAlong")
def broadcast_along(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    target, axes = constant_ints(operands[1], "the target shape"), constant_ints(operands[2], "axes")
    if len(axes) != x.rank or any(not 0 <= axis < len(target) for axis in axes):
        raise ExecutionError(f"axes {axes} for shape {list(x.shape)}")
    between = [1] * len(target)
    for axis, dim in zip(axes, x.shape, strict=True):
        between[axis] = dim
    return [expand(reshape(x, between), target)]


@transfer("Tile")
def tile(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    repeats = constant_ints(operands[1], "repeats")
    if any(count < 0 for count in repeats):
        raise ExecutionError(f"repeats {repeats}")
    lead = len(repeats) - x.rank
    x = expand(x, [1] * lead + list(x.shape)) if lead > 0 else x
    repeats = [1] * -lead + repeats if lead < 0 else repeats
    shape = _checked([dim * count for dim, count in zip(x.shape, repeats, strict=True)])
    context.charge(math.prod(shape) if x.value is not None or x.labels.size > 1 else 1)

    def move(array: Array) -> Array:
        counts = [1 if array.shape[at] == 1 else count for at, count in enumerate(repeats)]
        bounded([array.size, *counts])
        return np.tile(array, counts)

    return [x.moved(shape, move)]


@transfer("Concat")
def concat(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    parts = [given(operand) for operand in operands]
    if not parts:
        raise ExecutionError("nothing to concatenate")
    made = concatenate(parts, axis_of(op.attrs["axis"], parts[0].rank))
    return [made.joined(present(made.labels) & ROUTED)]  # what stands behind rows of an unknown choice has no known place


@transfer("Split")
def split_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axis = axis_of(op.attrs.get("axis", 0), x.rank)
    count = len(op.outputs)
    if len(operands) > 1 and operands[1] is not None:
        lengths = constant_ints(operands[1], "the lengths of the parts")
        if lengths.count(-1) == 1:
            lengths[lengths.index(-1)] = x.shape[axis] - sum(length for length in lengths if length != -1)
    else:
        part = -(-x.shape[axis] // count)
        lengths = [max(0, min(part, x.shape[axis] - part * at)) for at in range(count)]
    marks = dynamic_labels(*operands[1:])
    if len(operands) > 1 and not marks and sum(lengths) == x.shape[axis] and _is_whole_choice(op.inputs[0], x, axis, context):
        # As many elements are chosen as there are, or a runtime refuses: then it is known which ones.
        x = Shadow.known(x.full_value(), x.dtype)
    return [part.joined(marks) for part in split(x, axis, lengths)]


def _is_whole_choice(value: Value | None, x: Shadow, axis: int, context: Context) -> bool:
    """``x`` holds the places of all elements that a NonZero might choose, along ``axis``."""
    if not x.is_exact or not present(x.labels) & ROUTED:
        return False
    for _ in range(8):
        op = None if value is None else value.producer
        if op is None or op.kind == "NonZero":
            break
        if family(op.kind) is not Family.MOVE or op.kind == "Concat":
            return False
        value = op.inputs[0]
    if op is None or op.kind != "NonZero":
        return False
    rows = np.moveaxis(x.spread([axis]).labels, axis, 0).reshape(x.shape[axis], -1)
    return bool((rows == rows[:, :1]).all()) and context.layout.is_choice(rows[:, 0])


def _bounds(start: int, stop: int, step: int, size: int) -> tuple[int, int]:
    """ONNX clamps bounds differently for negative steps; the result suits ``cut``."""
    start = start + size if start < 0 else start
    stop = stop + size if stop < 0 else stop
    if step > 0:
        start, stop = min(max(start, 0), size), min(max(stop, 0), size)
        return start, max(start, stop)
    start, stop = min(max(start, 0), size - 1), min(max(stop, -1), size - 1)
    return start, min(start, stop) if stop >= 0 else -1


@transfer("Slice")
def slice_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    starts, ends = constant_ints(operands[1], "slice starts"), constant_ints(operands[2], "slice ends")
    axes = constant_ints(operands[3], "axes") if len(operands) > 3 and operands[3] is not None else list(range(len(starts)))
    steps = constant_ints(operands[4], "steps") if len(operands) > 4 and operands[4] is not None else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ExecutionError("slice bounds do not match")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_of(axis, x.rank)
        first, last = _bounds(start, end, step, x.shape[at])
        x = cut(x, at, first, last, step)
    return [x.joined(dynamic_labels(*operands[1:]))]


@transfer("StridedSlice")
def strided_slice(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """OpenVINO StridedSlice (specification of StridedSlice-1), with its five masks."""
    x = given(operands[0])
    begin, end = constant_ints(operands[1], "begin"), constant_ints(operands[2], "end")
    strides = constant_ints(operands[3], "strides") if len(operands) > 3 and operands[3] is not None else [1] * len(begin)
    count = len(begin)

    def mask(name: str) -> list[int]:
        bits = list(op.attrs.get(name) or ())
        return bits + [0] * (count - len(bits))

    begins, ends, news, shrinks, ellipses = map(
        mask, ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    )
    covered = sum(1 for at in range(count) if not news[at] and not ellipses[at])
    axis = 0
    keep: list[int | None] = []
    for at in range(count):
        if ellipses[at]:
            for _ in range(x.rank - covered):
                keep.append(axis)
                axis += 1
        elif news[at]:
            keep.append(None)
        else:
            if axis >= x.rank:
                raise ExecutionError(f"{count} bounds for a tensor of rank {x.rank}")
            size, step = x.shape[axis], strides[at] or 1
            if shrinks[at]:
                start = begin[at] + size if begin[at] < 0 else begin[at]
                if not 0 <= start < size:
                    raise ExecutionError(f"index {begin[at]} of an axis of length {size}")
                x = cut(x, axis, start, start + 1)
            else:
                far = (0, size) if step > 0 else (size - 1, -size - 1)
                first, last = _bounds(far[0] if begins[at] else begin[at], far[1] if ends[at] else end[at], step, size)
                x = cut(x, axis, first, last, step)
                keep.append(axis)
            axis += 1
    keep += range(axis, x.rank)
    shape = [1 if axis is None else x.shape[axis] for axis in keep]
    made = x.moved(shape, lambda array: array.reshape([1 if axis is None else array.shape[axis] for axis in keep]))
    return [made.joined(dynamic_labels(operands[1], operands[2]))]


@transfer("Pad")
def pad(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    pads = constant_ints(operands[1], "pads")
    axes = constant_ints(operands[3], "axes") if len(operands) > 3 and operands[3] is not None else list(range(x.rank))
    if len(pads) != 2 * len(axes):
        raise ExecutionError(f"{len(pads)} pads for {len(axes)} axes")
    fill = operands[2] if len(operands) > 2 else None
    mode = op.attrs.get("mode", "constant")
    for axis, first, last in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        at = axis_of(axis, x.rank)
        x = cut(x, at, max(0, -first), max(0, x.shape[at] - max(0, -last)))
        before, after = max(0, first), max(0, last)
        if not before and not after:
            continue
        if mode == "constant":
            ends = [_filled(x, at, length, fill) for length in (before, after)]
            x = concatenate([ends[0], x, ends[1]], at)
        else:
            size = x.shape[at]
            context.charge(size + before + after)
            if size == 0:
                raise ExecutionError("padding of an empty axis")
            index = np.pad(np.arange(size), (before, after), mode=mode)

            def move(array: Array, at: int = at, index: Array = index) -> Array:
                return array if array.shape[at] == 1 else np.take(array, index, axis=at)

            x = x.moved((*x.shape[:at], len(index), *x.shape[at + 1 :]), move)
    return [x.joined(dynamic_labels(operands[1]))]


def _filled(x: Shadow, axis: int, length: int, fill: Shadow | None) -> Shadow:
    shape = _checked((*x.shape[:axis], length, *x.shape[axis + 1 :]))
    one = (1,) * x.rank
    if fill is None:
        zero, none = np.zeros(one, dtype=x.dtype.numpy), np.zeros(one, dtype=np.uint64)
        return Shadow(shape, x.dtype, none, zero, np.ones(one, dtype=bool), none)
    return expand(reshape(Shadow(fill.shape, x.dtype, fill.labels, fill.value, fill.exact, fill.anchor), one), shape)


@transfer("Flip")
def flip(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axes = tuple(axis_of(axis, x.rank) for axis in constant_ints(operands[1], "axes"))
    return [x.moved(x.shape, lambda array: np.flip(array, axes)).joined(dynamic_labels(operands[1]))]


@transfer("Roll")
def roll(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    axes = [axis_of(axis, x.rank) for axis in constant_ints(operands[2], "axes")]
    shifts = constant_ints(operands[1], "shift")
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    return [x.moved(x.shape, lambda array: np.roll(array, shifts, axes)).joined(dynamic_labels(*operands[1:]))]


@transfer("Trilu")
def trilu(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    if x.rank < 2:
        raise ExecutionError("Trilu of a tensor of rank below 2")
    k = constant_ints(operands[1], "the diagonal")[0] if len(operands) > 1 and operands[1] is not None else 0
    marks = dynamic_labels(*operands[1:])
    bounded(x.shape[-2:])
    context.charge(x.shape[-1] * x.shape[-2])
    kept = np.ones(x.shape[-2:], dtype=bool)
    kept = np.triu(kept, k) if op.attrs.get("upper", 1) else np.tril(kept, k)
    kept = kept.reshape((1,) * (x.rank - 2) + kept.shape)
    labels = np.where(kept, x.labels, NO_LABELS)
    zero = np.zeros((1,) * x.rank, dtype=x.dtype.numpy)
    value = zero if x.value is None else x.value
    exact = False if x.exact is None else x.exact
    anchor = NO_LABELS if x.anchor is None else x.anchor
    made = Shadow.partly(
        x.shape, x.dtype, labels, np.where(kept, value, zero), ~kept | exact, np.where(kept, anchor, NO_LABELS)
    )
    return [made.joined(marks)]


@transfer("DepthToSpace", "SpaceToDepth")
def depth_space(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """By the reshapes and transposes that the ONNX specification gives; all spatial axes are treated alike."""
    x = given(operands[0])
    block = op.attrs["blocksize"]
    if x.rank < 3 or block < 1:
        raise ExecutionError(f"{op.kind} of rank {x.rank}")
    batch, depth, *space = x.shape
    count = len(space)
    blocks = [block] * count
    columns_first = op.attrs.get("mode", "DCR") in ("CRD", "depth_first")
    if op.kind == "SpaceToDepth":
        split_space = [part for dim in space for part in (dim // block, block)]
        outer, inner = [2 + 2 * at for at in range(count)], [3 + 2 * at for at in range(count)]
        perm = [0, 1, *inner, *outer] if columns_first else [0, *inner, 1, *outer]
        made = transpose(reshape(x, [batch, depth, *split_space]), perm)
        return [reshape(made, [batch, depth * block**count, *(dim // block for dim in space)])]
    rest = depth // block**count
    shape = [batch, rest, *blocks, *space] if columns_first else [batch, *blocks, rest, *space]
    first_block, rest_axis = (2, 1) if columns_first else (1, 1 + count)
    interleaved = [axis for at in range(count) for axis in (2 + count + at, first_block + at)]
    made = transpose(reshape(x, shape), [0, rest_axis, *interleaved])
    return [reshape(made, [batch, rest, *(dim * block for dim in space)])]


@transfer("ReverseSequence")
def reverse_sequence(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x, lengths = given(operands[0]), given(operands[1])
    batch, time = axis_of(op.attrs["batch_axis"], x.rank), axis_of(op.attrs["time_axis"], x.rank)
    counts = lengths.integers()
    if counts is None:
        return [Shadow.unknown(x.shape, x.dtype, join(x.labels, [time])).joined(dynamic_labels(lengths))]
    if len(counts) != x.shape[batch]:
        raise ExecutionError(f"{len(counts)} lengths for {x.shape[batch]} rows")
    rows = []
    for row, count in enumerate(counts):
        part = cut(x, batch, row, row + 1)
        head, tail = split(part, time, [min(count, x.shape[time]), max(0, x.shape[time] - count)])
        flipped = head.moved(head.shape, lambda array: np.flip(array, time))
        rows.append(concatenate([flipped, tail], time))
    return [concatenate(rows, batch).joined(dynamic_labels(lengths))]


@transfer("ReadValue")
def read_value(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """On the first call: the initial value, or zeros of the declared shape."""
    if operands and operands[0] is not None:
        return [operands[0]]
    shape = context.declared_shape(op.outputs[0])
    if shape is None:
        raise DataDependentError("the shape of the kept value is not declared")
    return [Shadow.unknown(shape, op.outputs[0].dtype)]


@transfer("Assign")
def assign(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [given(operands[0])]
