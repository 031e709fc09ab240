"""Transfer functions of operators that sum products over shared axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import NO_LABELS
from wirelint.shadow.transfer.elementwise import broadcast_shape, combine, given
from wirelint.shadow.transfer.movement import reshape, transpose
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import Array, ExecutionError, Shadow, bounded, join, present

__all__ = ["matmul"]


def _heard(live: Array | None, marks: Array, context: Context) -> Array:
    """For each (i, j): the union over k of ``marks[k, j]`` where ``live[i, k]``.

    Args:
        live: bool, [..., i, k], compact; None stands for true everywhere.
        marks: uint64, [..., k, j], compact.
        context: takes the work off the budget.
    """
    if live is None:
        return join(marks, [marks.ndim - 2])
    if marks.shape[-2] == 1:
        # The same labels at every k: heard wherever anything is live.
        return np.where(live.any(axis=-1, keepdims=True), marks, NO_LABELS)
    if marks.shape[-1] == 1:
        across = np.swapaxes(marks, -1, -2)
        bounded(np.broadcast_shapes(live.shape, across.shape))
        context.charge(math.prod(np.broadcast_shapes(live.shape, across.shape)))
        heard: Array = np.bitwise_or.reduce(np.where(live, across, NO_LABELS), axis=-1, keepdims=True)
        return heard
    bits = [np.uint64(1) << np.uint64(at) for at in range(63) if present(marks) & (np.uint64(1) << np.uint64(at))]
    width = np.broadcast_shapes(live.shape[:-2], marks.shape[:-2])
    context.charge(len(bits) * math.prod(width) * live.shape[-2] * marks.shape[-1])
    bounded([*width, live.shape[-2], marks.shape[-1]])
    bounded([*live.shape[:-1], marks.shape[-2]])
    out = np.zeros((*width, live.shape[-2], marks.shape[-1]), dtype=np.uint64)
    reach = np.broadcast_to(live, (*live.shape[:-1], marks.shape[-2])).astype(np.float32)
    for bit in bits:
        hit = np.matmul(reach, (marks & bit != 0).astype(np.float32)) > 0
        out |= np.where(hit, bit, NO_LABELS)
    return out


def matmul(a: Shadow, b: Shadow, dtype: DType, context: Context) -> Shadow:
    """Matrix product of two tensors of rank 2 or more.

    An element that is exactly zero hides its partner: this is how masked attention weights keep padded values out.
    """
    if a.shape[-1] != b.shape[-2]:
        raise ExecutionError(f"matrix product of {a.shape} and {b.shape}", [a.shape[-1], b.shape[-2]])
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    rank, inner = len(shape), a.shape[-1]

    def lifted(array: Array) -> Array:
        return array.reshape((1,) * (rank - array.ndim) + array.shape)

    if inner == 0:
        bounded(shape)
        return Shadow.known(np.zeros(shape), dtype)
    if a.is_exact and b.is_exact and inner * math.prod(shape) <= 1 << 20:
        context.charge(inner * math.prod(shape))
        wide = np.float64 if dtype.is_float else np.int64
        value = np.matmul(a.full_value().astype(wide), b.full_value().astype(wide)).astype(dtype.numpy)
        labels = lifted(join(a.labels, [a.rank - 1])) | lifted(join(b.labels, [b.rank - 2]))
        return Shadow(shape, dtype, labels, value, np.ones((1,) * rank, dtype=bool), labels)
    a_zero, b_zero = a.zero(), b.zero()
    al, bl = lifted(a.labels), lifted(b.labels)
    b_live = None if a_zero is None else lifted(~a_zero)
    a_live = None if b_zero is None else np.swapaxes(lifted(~b_zero), -1, -2)
    from_b = _heard(b_live, bl, context)
    # Where both are zero the left one's label stays: what makes both zero must not be lost.
    from_a = np.swapaxes(_heard(a_live, np.swapaxes(al, -1, -2), context), -1, -2)
    if a_zero is not None and b_zero is not None:
        from_a = from_a | join(np.where(lifted(a_zero), al, NO_LABELS), [rank - 1])
    bounded(np.broadcast_shapes(from_a.shape, from_b.shape))
    made = Shadow(shape, dtype, from_a | from_b)
    return _spoilt(_spoilt(made, a, rank - 1), b, rank - 2)


def _spoilt(made: Shadow, factor: Shadow, axis: int) -> Shadow:
    """A NaN anywhere along the summed axis makes the sum NaN, whatever it is multiplied by (0 * NaN is NaN)."""
    if factor.value is None or not factor.dtype.is_float or factor.anchor is None or not np.isnan(factor.value).any():
        return made

    def lifted(array: Array) -> Array:
        return array.reshape((1,) * (made.rank - array.ndim) + array.shape)

    nan: Array = np.any(lifted(np.isnan(factor.value)), axis=axis, keepdims=True)
    value = np.where(nan, np.nan, 0.0).astype(made.dtype.numpy)
    if made.value is not None and made.exact is not None:
        nan, value = nan | made.exact, np.where(nan, value, made.value)
    return Shadow.partly(made.shape, made.dtype, made.labels, value, nan, join(lifted(factor.anchor), [axis]))


@transfer("MatMul")
def matmul_op(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    a, b = given(operands[0]), given(operands[1])
    if not a.rank or not b.rank:
        raise ExecutionError("matrix product of a scalar")
    a_vector, b_vector = a.rank == 1, b.rank == 1
    if a_vector:
        a = reshape(a, [1, *a.shape])
    elif op.attrs.get("transpose_a"):
        a = transpose(a, [*range(a.rank - 2), a.rank - 1, a.rank - 2])
    if b_vector:
        b = reshape(b, [*b.shape, 1])
    elif op.attrs.get("transpose_b"):
        b = transpose(b, [*range(b.rank - 2), b.rank - 1, b.rank - 2])
    made = matmul(a, b, a.dtype, context)
    shape = list(made.shape)
    if b_vector:
        shape.pop()
    if a_vector:
        shape.pop(-1 if b_vector else -2)
    return [reshape(made, shape) if len(shape) != made.rank else made]


def _centred(x: Shadow, zero_point: Shadow | None, *, rows: bool) -> Shadow:
    """A quantised operand without its zero point, as int32; zero stays exactly zero."""
    wide = Shadow(x.shape, DType.I32, x.labels, None if x.value is None else x.value.astype(np.int32), x.exact, x.anchor)
    if zero_point is None:
        return wide
    point = Shadow(
        zero_point.shape, DType.I32, zero_point.labels, None if zero_point.value is None else zero_point.value.astype(np.int32),
        zero_point.exact, zero_point.anchor,
    )  # fmt: skip
    if rows and point.rank == 1 and point.shape[0] > 1:
        point = reshape(point, [*point.shape, 1])
    return combine(np.subtract, [wide, point], DType.I32, keeps_size=False)


@transfer("MatMulInteger")
def matmul_integer(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    a = _centred(given(operands[0]), operands[2] if len(operands) > 2 else None, rows=True)
    b = _centred(given(operands[1]), operands[3] if len(operands) > 3 else None, rows=False)
    plain = Op("MatMul", [], op.outputs)
    return matmul_op(plain, [a, b], context)


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The axis names of each operand and of the result; the axes of an ellipsis are called ``.0``, ``.1``, ..."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if len(names) != len(ranks):
        raise ExecutionError(f"einsum {equation} with {len(ranks)} operands")
    widest = max(
        (rank - len(name.replace("...", "")) for name, rank in zip(names, ranks, strict=True) if "..." in name), default=0
    )

    def expanded(name: str, rank: int | None) -> list[str]:
        head, dots, tail = name.partition("...")
        count = widest if rank is None else rank - len(head) - len(tail)
        return [*head, *(f".{widest - count + at}" for at in range(count)), *tail] if dots else list(name)

    operands = [expanded(name, rank) for name, rank in zip(names, ranks, strict=True)]
    if arrow:
        return operands, expanded(right, None)
    letters = "".join(names).replace(".", "")
    return operands, [f".{at}" for at in range(widest)] + sorted(
        letter for letter in set(letters) if letters.count(letter) == 1
    )


@transfer("Einsum")
def einsum(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Two operands without repeated axes become one matrix product, so that exact zeros hide; all else is joined."""
    given_operands = [given(operand) for operand in operands]
    terms, out = _terms(op.attrs["equation"], [operand.rank for operand in given_operands])
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, given_operands, strict=True):
        if len(term) != operand.rank:
            raise ExecutionError(f"einsum {op.attrs['equation']} does not fit rank {operand.rank}")
        for name, size in zip(term, operand.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                if 1 not in (size, sizes[name]):
                    raise ExecutionError(f"einsum axis {name} is {sizes[name]} and {size}", [sizes[name], size])
                sizes[name] = max(size, sizes[name])
    dtype = given_operands[0].dtype
    shape = [sizes[name] for name in out]
    if len(terms) == 1 and len(terms[0]) == len(set(terms[0])) == len(out):
        return [transpose(given_operands[0], [terms[0].index(name) for name in out])]
    if len(terms) == 2 and all(len(set(term)) == len(term) for term in terms):
        left, right = terms
        shared = [name for name in left if name in right and name in out]
        summed = [name for name in left if name in right and name not in out]
        only_left, only_right = ([name for name in term if name not in other] for term, other in ((left, right), (right, left)))

        def arranged(operand: Shadow, term: list[str], groups: Sequence[list[str]]) -> Shadow:
            order = [name for group in groups for name in group]
            moved = transpose(operand, [term.index(name) for name in order])
            dims = dict(zip(term, operand.shape, strict=True))
            flat = [dims[name] for name in groups[0]] + [math.prod(dims[name] for name in group) for group in groups[1:]]
            return reshape(moved, flat)

        a = arranged(given_operands[0], left, [shared, only_left, summed])
        b = arranged(given_operands[1], right, [shared, summed, only_right])
        made = matmul(a, b, dtype, context)
        order = [*shared, *only_left, *only_right]
        made = reshape(made, [sizes[name] for name in order])
        dropped = [at for at, name in enumerate(order) if name not in out]
        if dropped:
            labels = join(made.labels, dropped)
            left_over = [at for at in range(made.rank) if at not in dropped]
            order = [order[at] for at in left_over]
            shape = [made.shape[at] for at in left_over]
            made = Shadow.unknown(shape, dtype, labels.reshape([labels.shape[at] for at in left_over]))
        return [transpose(made, [order.index(name) for name in out])]
    labels = np.zeros((1,) * len(out), dtype=np.uint64)
    for term, operand in zip(terms, given_operands, strict=True):
        kept = [name for name in out if name in term]
        repeated = len(set(term)) != len(term)
        marks = join(
            operand.labels, range(operand.rank) if repeated else [at for at, name in enumerate(term) if name not in out]
        )
        if repeated:
            labels = labels | marks.reshape((1,) * len(out))
            continue
        gone = [at for at, name in enumerate(term) if name not in out]
        marks = np.squeeze(marks, tuple(gone))
        rest = [name for name in term if name in out]
        marks = np.transpose(marks, [rest.index(name) for name in kept])
        sides = iter(marks.shape)
        labels = labels | marks.reshape([next(sides) if name in kept else 1 for name in out])
    return [Shadow.unknown(shape, dtype, labels)]
