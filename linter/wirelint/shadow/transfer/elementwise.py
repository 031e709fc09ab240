"""Transfer functions of operators that compute each element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wirelint.dtypes import DType
from wirelint.graph import Op
from wirelint.shadow.labels import LENGTH
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import HUGE, Array, DataDependentError, ExecutionError, Shadow, bounded

__all__ = ["broadcast_shape", "center", "combine", "convert", "either", "given", "infected", "lift", "multiply", "select"]

_Numbers = Callable[..., Any]


def _erf(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26, good to 1.5e-7; only small concrete tensors come here."""
    wide = np.asarray(x, dtype=np.float64)
    t = 1 / (1 + 0.3275911 * np.abs(wide))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(wide) * (1 - poly * np.exp(-wide * wide))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_UNARY: dict[str, _Numbers] = {
    "Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan,
    "Atanh": np.arctanh, "Ceil": np.ceil, "Cos": np.cos, "Cosh": np.cosh, "Erf": _erf, "Exp": np.exp, "Floor": np.floor,
    "Log": np.log, "Neg": np.negative, "Reciprocal": lambda x: 1 / x, "Relu": lambda x: np.maximum(x, 0), "Round": np.round,
    "RoundHalfAway": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "Sigmoid": _sigmoid, "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)), "Sqrt": np.sqrt,
    "Tan": np.tan, "Tanh": np.tanh, "BitwiseNot": np.invert,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}  # fmt: skip

# Functions whose value at a hugely negative or positive argument does not depend on which one it is.
_SATURATES: dict[str, tuple[float | None, float | None]] = {
    "Exp": (0.0, None), "Sigmoid": (0.0, 1.0), "Relu": (0.0, None), "Tanh": (-1.0, 1.0), "Erf": (-1.0, 1.0),
    "Softplus": (0.0, None),
    "Gelu": (0.0, None), "Swish": (0.0, None), "Mish": (0.0, None), "HardSwish": (0.0, None), "Sign": (-1.0, 1.0),
}  # fmt: skip

_COMPARE: dict[str, _Numbers] = {
    "Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}  # fmt: skip


def given(shadow: Shadow | None) -> Shadow:
    """An operand that must be there.

    Raises:
        ExecutionError: it is absent.
    """
    if shadow is None:
        raise ExecutionError("a required operand is missing")
    return shadow


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The numpy broadcast of shapes.

    Raises:
        ExecutionError: they don't broadcast; its sizes are the dimensions that stand against each other.
    """
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        rank = max(map(len, shapes))
        columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
        clash = next((sorted({*column} - {1}) for column in columns if len({*column} - {1}) > 1), [])
        raise ExecutionError(f"shapes {' and '.join(map(str, shapes))} do not broadcast", clash) from None


def _bounded_together(operands: Sequence[Shadow]) -> None:
    """Refuses operands that stay compact alone and not together, as a long row beside a long column.

    Raises:
        DataDependentError: the result would be too large.
    """
    arrays = (array for operand in operands for array in (operand.labels, operand.value) if array is not None)
    wide = {array.shape for array in arrays if array.size > 1}
    if len(wide) > 1:
        bounded(np.broadcast_shapes(*wide))


def lift(array: Array, rank: int) -> Array:
    return array.reshape((1,) * (rank - array.ndim) + array.shape) if array.ndim < rank else array


def center(shadow: Shadow, rank: int) -> tuple[Array, Array, Array]:
    """Value, exactness and anchor of a shadow; zeros that are known to nobody when it has no value."""
    if shadow.value is None or shadow.exact is None or shadow.anchor is None:
        one = (1,) * rank
        return np.zeros(one, dtype=shadow.dtype.numpy), np.zeros(one, dtype=bool), np.zeros(one, dtype=np.uint64)
    return lift(shadow.value, rank), lift(shadow.exact, rank), lift(shadow.anchor, rank)


def _typed(value: Any, dtype: DType) -> Array:
    return np.asarray(value).astype(dtype.numpy, copy=False)


def combine(
    function: _Numbers,
    operands: Sequence[Shadow],
    dtype: DType,
    *,
    keeps_size: bool,
    labels_of: Callable[[Array], Array] | None = None,
) -> Shadow:
    """Joins operands element by element.

    Args:
        function: computes values.
        operands: at least one.
        dtype: of the result.
        keeps_size: a hugely negative or positive argument makes a hugely negative or positive result whatever ordinary
            numbers the others are, so approximate values stay approximately known.
        labels_of: changes the labels of the result.
    """
    shape = broadcast_shape(*(operand.shape for operand in operands))
    rank = len(shape)
    _bounded_together(operands)
    labels = lift(operands[0].labels, rank)
    for operand in operands[1:]:
        labels = labels | lift(operand.labels, rank)
    if labels_of is not None:
        labels = labels_of(labels)
    known = [operand for operand in operands if operand.value is not None]
    if not known:
        return Shadow(shape, dtype, labels)
    if not keeps_size and len(known) < len(operands):
        return infected(Shadow(shape, dtype, labels), known)
    centers = [center(operand, rank) for operand in operands]
    exact = centers[0][1]
    anchor = centers[0][2]
    for _, other_exact, other_anchor in centers[1:]:
        exact = exact & other_exact
        anchor = anchor | other_anchor
    if not keeps_size and not exact.any():
        return infected(Shadow(shape, dtype, labels), known)
    if labels_of is not None:
        anchor = labels_of(anchor)
    value = _typed(function(*(entry[0] for entry in centers)), dtype)
    if not keeps_size:
        value = np.where(exact, value, _typed(0, dtype))
    return Shadow.partly(shape, dtype, labels, value, exact, anchor)


def infected(made: Shadow, operands: Sequence[Shadow], axes: Sequence[int] = ()) -> Shadow:
    """A result without known values, except that a NaN among the operands makes a NaN.

    Args:
        made: the result.
        operands: those of its operands that have values.
        axes: axes along which one NaN spoils all.
    """
    if not made.dtype.is_float:
        return made
    rank = made.rank
    spoilt = np.zeros((1,) * rank, dtype=bool)
    anchor = np.zeros((1,) * rank, dtype=np.uint64)
    for operand in operands:
        if operand.value is None or not operand.dtype.is_float:
            continue
        nan: Array = np.isnan(operand.value)
        if nan.any():
            spoilt = spoilt | lift(np.any(nan, axis=tuple(axes), keepdims=True) if axes else nan, rank)
            anchor = anchor | lift(center(operand, operand.rank)[2], rank)
    if not spoilt.any():
        return made
    anchor = np.bitwise_or.reduce(anchor, axis=tuple(axes), keepdims=True) if axes else anchor
    value = np.where(spoilt, np.nan, 0.0).astype(made.dtype.numpy)
    return Shadow.partly(made.shape, made.dtype, made.labels, value, spoilt, anchor)


def multiply(a: Shadow, b: Shadow, dtype: DType | None = None) -> Shadow:
    """Product; an element that is exactly zero hides the other factor, unless that one is infinite or NaN."""
    made = combine(np.multiply, [a, b], dtype or a.dtype, keeps_size=False)
    rank = made.rank
    a_zero, b_zero = a.zero(), b.zero()
    scaled = _scaled(a, b, made) if made.value is None or made.exact is None or not made.exact.all() else None
    if scaled is not None:
        made = scaled
    if a_zero is None and b_zero is None:
        return made
    labels, none = made.labels, np.zeros((1,) * rank, dtype=bool)
    hides_b = none if a_zero is None else lift(a_zero, rank) & ~_infinite(b, rank)
    hides_a = none if b_zero is None else lift(b_zero, rank) & ~_infinite(a, rank)
    al, bl = lift(a.labels, rank), lift(b.labels, rank)
    # Where both are zero, only what both depend on can make the product anything else.
    labels = np.where(hides_b & hides_a, al & bl, np.where(hides_b, al, np.where(hides_a, bl, labels)))
    value, exact, anchor = center(made, rank)
    hidden = hides_a | hides_b
    value = np.where(hidden, _typed(0, made.dtype), value)
    anchor = np.where(hidden, labels, anchor)
    return Shadow.partly(made.shape, made.dtype, labels, value, exact | hidden, anchor)


def _infinite(shadow: Shadow, rank: int) -> Array:
    if shadow.value is None or not shadow.dtype.is_float:
        return np.zeros((1,) * rank, dtype=bool)
    return lift(~np.isfinite(shadow.value), rank)


def _scaled(a: Shadow, b: Shadow, made: Shadow) -> Shadow | None:
    """An approximately known factor times an exact one keeps its size."""
    for near, factor in ((a, b), (b, a)):
        if near.value is not None and factor.is_exact:
            value, exact, anchor = center(near, made.rank)
            factor_value, _, factor_anchor = center(factor, made.rank)
            product = _typed(value * factor_value, made.dtype)
            return Shadow.partly(made.shape, made.dtype, made.labels, product, exact, anchor | factor_anchor)
    return None


def select(condition: Shadow, x: Shadow, y: Shadow) -> Shadow:
    """``x`` where the condition holds, else ``y``; what is not chosen leaves no label."""
    shape = broadcast_shape(condition.shape, x.shape, y.shape)
    rank = len(shape)
    _bounded_together([condition, x, y])
    marks = lift(condition.labels, rank)
    xl, yl = lift(x.labels, rank), lift(y.labels, rank)
    if condition.value is None or condition.exact is None:
        return Shadow(shape, x.dtype, marks | xl | yl)
    holds, sure, anchor = center(condition, rank)
    holds = holds.astype(bool)
    labels = marks | np.where(sure, np.where(holds, xl, yl), xl | yl)
    if x.value is None and y.value is None:
        return Shadow(shape, x.dtype, labels)
    (xv, xe, xa), (yv, ye, ya) = center(x, rank), center(y, rank)
    value = np.where(sure, np.where(holds, xv, yv), _typed(0, x.dtype))
    exact = sure & np.where(holds, xe, ye)
    return Shadow.partly(shape, x.dtype, labels, value, exact, np.where(sure, anchor | np.where(holds, xa, ya), marks))


def either(x: Shadow, y: Shadow) -> Shadow:
    """One or the other: an element's value is known, or known approximately, where both know the same one.

    Raises:
        DataDependentError: their shapes or types differ.
    """
    if x.shape != y.shape or x.dtype is not y.dtype:
        raise DataDependentError(f"the shape depends on data: {x.shape} or {y.shape}")
    labels = x.labels | y.labels
    if x.value is None or y.value is None:
        return Shadow(x.shape, x.dtype, labels)
    (xv, xe, xa), (yv, ye, ya) = center(x, x.rank), center(y, x.rank)
    same = xv == yv
    if x.dtype.is_float:
        same = same | (np.isnan(xv) & np.isnan(yv))
    return Shadow.partly(x.shape, x.dtype, labels, np.where(same, xv, np.zeros_like(xv)), xe & ye & same, xa | ya)


# The magnitudes that every variant of a narrow float type rounds to the same number (ONNX "Float stored in 8 bits").
_NARROW = {DType.F8E4M3: (2.0**-6, 240.0), DType.F8E5M2: (2.0**-14, 57344.0), DType.F4E2M1: (0.5, 6.0)}


def convert(x: Shadow, dtype: DType) -> Shadow:
    """Cast, with the overflow of the target type; what leaves the range of an integer type is not known any more."""
    if x.value is None or x.exact is None or not {dtype, x.dtype}.isdisjoint((DType.STRING, DType.C64, DType.C128)):
        return Shadow(x.shape, dtype, x.labels)
    value, exact = x.value, x.exact
    if dtype.is_integer and (x.dtype.is_float or dtype.bits < 8):
        low, high = (-(2.0 ** (dtype.bits - 1)), 2.0 ** (dtype.bits - 1)) if dtype.value[0] == "i" else (0.0, 2.0**dtype.bits)
        wide = np.trunc(np.where(np.isfinite(value), value, np.inf).astype(np.float64))
        fits = (wide >= low) & (wide < high)
        exact = exact & fits
        value = np.where(fits, value, 0)
    elif dtype.is_float and dtype.bits <= 8:
        if dtype not in _NARROW:
            return Shadow(x.shape, dtype, x.labels)
        low, high = _NARROW[dtype]
        wide = value.astype(np.float64)
        exact = exact & ((wide == 0) | (np.abs(wide) >= low)) & (np.abs(wide) <= high)
        value = np.clip(np.where(np.isnan(wide), 0, wide), -dtype.largest, dtype.largest)
    return Shadow.partly(x.shape, dtype, x.labels, _typed(value, dtype), exact, x.anchor)


# -- unary -------------------------------------------------------------------------------------------------------------


def _saturated(kind: str, x: Shadow, made: Shadow) -> Shadow:
    low, high = _SATURATES[kind]
    if x.value is None or x.anchor is None or not (np.abs(x.value) > HUGE).any():
        return made
    value, exact, anchor = center(made, x.rank)
    labels = made.labels
    for level, far in ((low, x.value < -HUGE), (high, x.value > HUGE)):
        if level is None:
            continue
        flat = far & ~exact
        value = np.where(flat, _typed(level, made.dtype), value)
        exact = exact | flat
        anchor = np.where(flat, x.anchor, anchor)
        labels = np.where(flat, x.anchor, labels)
    return Shadow.partly(made.shape, made.dtype, labels, value, exact, anchor)


@transfer(*_UNARY)
def unary(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    made = combine(_UNARY[op.kind], [x], x.dtype, keeps_size=op.kind in ("Neg", "Abs", "Round", "Floor", "Ceil"))
    if op.kind == "Sign" and made.exact is not None:
        made = Shadow.partly(
            made.shape, made.dtype, context.layout.as_structure(made.labels), made.value, made.exact,
            None if made.anchor is None else context.layout.as_structure(made.anchor),
        )  # fmt: skip
    return [_saturated(op.kind, x, made) if op.kind in _SATURATES else made]


@transfer("Gelu", "Swish", "Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid", "Shrink")
def activation(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Activations with parameters.  Those for which zero stays zero keep exact zeros."""
    x = given(operands[0])
    made = Shadow(x.shape, x.dtype, x.labels)
    zero = x.zero()
    if zero is not None and op.kind != "HardSigmoid" and not op.attrs.get("bias"):
        made = Shadow.partly(x.shape, x.dtype, x.labels, np.zeros(zero.shape, dtype=x.dtype.numpy), zero, x.labels)
    return [_saturated(op.kind, x, made) if op.kind in _SATURATES else made]


@transfer("Clip")
def clip(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    for bound, function in zip(operands[1:3], ("Max", "Min"), strict=False):
        if bound is not None:
            x = _extreme(function, x, bound)
    return [_asked(x, context)]


def _asked(x: Shadow, context: Context) -> Shadow:
    """Bounding ids by 1 asks where padding stands, as comparing them does: what stands there is not told any more."""
    if not x.dtype.is_integer or not x.is_exact or x.value is None:
        return x
    labels = context.layout.as_structure(x.labels) if x.value.size and np.max(x.value) <= 1 else x.labels
    return Shadow(x.shape, x.dtype, labels, x.value, x.exact, labels)


@transfer("Cast")
def cast(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    made = convert(x, op.attrs["dtype"])
    if op.attrs["dtype"] is DType.BOOL and made.is_exact:
        labels = context.layout.as_structure(made.labels)
        made = Shadow(made.shape, made.dtype, labels, made.value, made.exact, labels)
    return [made]


@transfer("BitCast")
def bit_cast(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x = given(operands[0])
    dtype: DType = op.attrs["dtype"]
    if dtype.bits == x.dtype.bits:
        return [Shadow(x.shape, dtype, x.labels)]
    raise DataDependentError("BitCast between widths is not modelled")


@transfer("Not", "IsNaN", "IsInf", "IsFinite")
def truth(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """``IsNaN`` and its kin are decided for unknown elements too: a shadow's unknown elements are finite."""
    x = given(operands[0])
    if op.kind == "Not":
        return [combine(np.logical_not, [x], DType.BOOL, keeps_size=False)]
    if x.value is None:
        verdict = np.full((1,) * x.rank, op.kind == "IsFinite")
        return [Shadow(x.shape, DType.BOOL, x.labels, verdict, np.ones_like(verdict), x.labels)]
    if op.kind == "IsNaN":
        verdict = np.isnan(x.value)
    elif op.kind == "IsFinite":
        verdict = np.isfinite(x.value)
    else:
        below, above = op.attrs.get("detect_negative", 1), op.attrs.get("detect_positive", 1)
        verdict = (np.isposinf(x.value) & bool(above)) | (np.isneginf(x.value) & bool(below))
    return [Shadow(x.shape, DType.BOOL, x.labels, verdict, np.ones((1,) * x.rank, dtype=bool), x.labels)]


# -- binary ------------------------------------------------------------------------------------------------------------


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        safe = np.where(y == 0, 1, y)
        return np.where(y == 0, 0, np.sign(x) * np.sign(safe) * (np.abs(x) // np.abs(safe)))
    return x / y


def _modulo(x: Array, y: Array, fmod: int) -> Array:
    if x.dtype.kind in "iu":
        y = np.where(y == 0, 1, y)
    return np.fmod(x, y) if fmod else np.mod(x, y)


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    made: Array = np.power(x, y.astype(x.dtype, copy=False))
    return made


@transfer("Add", "Sub", "Sum")
def add(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Sums keep approximate values: a score plus a hugely negative bias is hugely negative."""
    terms = [given(operand) for operand in operands]
    made = terms[0]
    for other in terms[1:]:
        made = combine(np.subtract if op.kind == "Sub" else np.add, [made, other], terms[0].dtype, keeps_size=True)
    return [made]


@transfer("Mul")
def mul(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [multiply(given(operands[0]), given(operands[1]))]


@transfer("Div")
def div(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    x, y = given(operands[0]), given(operands[1])
    made = combine(_divide, [x, y], x.dtype, keeps_size=False)
    rank = made.rank
    if x.value is not None and y.is_exact and not made.is_exact:
        value, exact, anchor = center(x, rank)
        divisor, _, divisor_anchor = center(y, rank)
        made = Shadow.partly(
            made.shape, made.dtype, made.labels, _typed(_divide(value, divisor), made.dtype),
            exact | np.zeros_like(divisor, dtype=bool), anchor | divisor_anchor,
        )  # fmt: skip
    zero = x.zero()
    if zero is None or y.is_exact:
        return [made]
    # A zero stays zero whatever finite number other than zero divides it.
    hidden = (
        lift(zero, rank) & ~lift(y.exact & (y.value == 0), rank)
        if y.value is not None and y.exact is not None
        else lift(zero, rank)
    )
    labels = np.where(hidden, lift(x.labels, rank), made.labels)
    value, exact, anchor = center(made, rank)
    return [
        Shadow.partly(
            made.shape,
            made.dtype,
            labels,
            np.where(hidden, _typed(0, made.dtype), value),
            exact | hidden,
            np.where(hidden, labels, anchor),
        )
    ]


@transfer("Pow", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu", "SquaredDifference", "Atan2", "BitShift", "Mod", "Mean")
def arithmetic(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    terms = [given(operand) for operand in operands]
    functions: dict[str, _Numbers] = {
        "Pow": _power, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
        "PRelu": lambda x, slope: np.where(x < 0, x * slope, x), "SquaredDifference": lambda x, y: np.square(x - y),
        "Atan2": np.arctan2, "Mean": lambda *xs: sum(xs) / len(xs), "Mod": lambda x, y: _modulo(x, y, op.attrs.get("fmod", 0)),
        "BitShift": np.left_shift if op.attrs.get("direction") == "LEFT" else np.right_shift,
    }  # fmt: skip
    if op.kind in ("BitwiseAnd", "BitwiseOr") and terms[0].dtype is DType.BOOL:
        return [_logical("And" if op.kind == "BitwiseAnd" else "Or", terms[0], terms[1])]
    return [combine(functions[op.kind], terms, terms[0].dtype, keeps_size=False)]


def _extreme(kind: str, x: Shadow, y: Shadow) -> Shadow:
    """Maximum or minimum; an operand that is certainly beaten leaves no label but that of its being beaten."""
    function, sign = (np.maximum, 1.0) if kind == "Max" else (np.minimum, -1.0)
    made = combine(function, [x, y], x.dtype, keeps_size=True)
    if made.value is None or made.is_exact or not made.dtype.is_float:
        return made if made.dtype.is_float or made.is_exact else Shadow(made.shape, made.dtype, made.labels)
    rank = made.rank
    (xv, xe, xa), (yv, ye, ya) = center(x, rank), center(y, rank)
    with np.errstate(all="ignore"):
        gap = sign * (xv.astype(np.float64) - yv.astype(np.float64))
    x_wins, y_wins = gap > HUGE, gap < -HUGE
    labels = np.where(x_wins, lift(x.labels, rank) | ya, np.where(y_wins, lift(y.labels, rank) | xa, made.labels))
    exact = np.where(x_wins, xe, np.where(y_wins, ye, xe & ye))
    return Shadow.partly(made.shape, made.dtype, labels, made.value, exact, made.anchor)


@transfer("Max", "Min")
def extreme(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    terms = [given(operand) for operand in operands]
    made = terms[0]
    for other in terms[1:]:
        made = _extreme(op.kind, made, other)
    return [_asked(made, context) if op.kind == "Min" else made]


# -- comparison, logic, selection ----------------------------------------------------------------------------------------


@transfer(*_COMPARE)
def compare(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Comparing concrete ids with a constant asks where padding stands: the result carries structure, not content."""
    x, y = given(operands[0]), given(operands[1])
    exact = x.is_exact and y.is_exact

    def labels_of(labels: Array) -> Array:
        return context.layout.as_structure(labels & ~LENGTH) if exact else labels & ~LENGTH

    made = combine(_COMPARE[op.kind], [x, y], DType.BOOL, keeps_size=False, labels_of=labels_of)
    if exact or (x.value is None and y.value is None) or op.kind in ("Equal", "NotEqual"):
        return [made]
    # A hugely negative number is less than any ordinary one.
    rank = made.rank
    (xv, _, xa), (yv, _, ya) = center(x, rank), center(y, rank)
    with np.errstate(all="ignore"):
        gap = xv.astype(np.float64) - yv.astype(np.float64)
    sure = np.abs(gap) > HUGE
    if not sure.any():
        return [made]
    value, known, anchor = center(made, rank)
    verdict = _COMPARE[op.kind](np.where(sure, gap, 0), 0)
    told = sure & ~known
    labels = np.where(told, xa | ya, made.labels)
    return [
        Shadow.partly(
            made.shape, DType.BOOL, labels, np.where(told, verdict, value), known | told, np.where(told, xa | ya, anchor)
        )
    ]


def _logical(kind: str, x: Shadow, y: Shadow) -> Shadow:
    functions: dict[str, _Numbers] = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
    made = combine(functions[kind], [x, y], DType.BOOL, keeps_size=False)
    if kind == "Xor" or (x.value is None and y.value is None):
        return made
    rank = made.rank
    absorbing = kind == "Or"
    (xv, xe, _), (yv, ye, _) = center(x, rank), center(y, rank)
    x_decides, y_decides = xe & (xv.astype(bool) == absorbing), ye & (yv.astype(bool) == absorbing)
    xl, yl = lift(x.labels, rank), lift(y.labels, rank)
    # Where both decide, either alone would do: only what both depend on can change the result.
    labels = np.where(x_decides & y_decides, xl & yl, np.where(x_decides, xl, np.where(y_decides, yl, made.labels)))
    decided = x_decides | y_decides
    value, exact, anchor = center(made, rank)
    return Shadow.partly(
        made.shape, DType.BOOL, labels, np.where(decided, absorbing, value), exact | decided, np.where(decided, labels, anchor)
    )


@transfer("And", "Or", "Xor")
def logic(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [_logical(op.kind, given(operands[0]), given(operands[1]))]


@transfer("Where")
def where(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    return [select(given(operands[0]), given(operands[1]), given(operands[2]))]
