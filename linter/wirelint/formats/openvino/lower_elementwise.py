"""Element-wise operators: activations, arithmetic, comparisons, logic, selection."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError

__all__ = ["LOWERINGS"]


def _unary(kind: str, site: Site) -> None:
    site.emit(kind, [site.operand(0)], [site.output()])


def _binary(kind: str, site: Site) -> None:
    _check_broadcast(site)
    site.emit(kind, [site.operand(0), site.operand(1)], [site.output()])


def _check_broadcast(site: Site) -> None:
    """Accepts numpy broadcasting and none.

    Raises:
        UnmodelledError: ``pdpd`` broadcasting, which aligns the second operand at an axis.
    """
    if site.text("auto_broadcast", "numpy") not in ("numpy", "none", "explicit"):
        raise UnmodelledError("it does not broadcast as numpy does")


def _divide(site: Site) -> None:
    """Integer division rounds down if ``m_pythondiv``; the canonical one truncates, so the remainder goes first.

    That is the specification and the reference implementation; the CPU plugin truncates all the same.
    """
    _check_broadcast(site)
    a, b = site.operand(0), site.operand(1)
    signed = a.dtype.is_integer and not a.dtype.value.startswith("u")
    if signed and site.flag("m_pythondiv", default=True):
        a = site.through("Sub", a, site.through("Mod", a, b, fmod=0))
    site.emit("Div", [a, b], [site.output()])


def _modulus(fmod: int, site: Site) -> None:
    _check_broadcast(site)
    site.emit("Mod", [site.operand(0), site.operand(1)], [site.output()], fmod=fmod)


def _shift(direction: str, site: Site) -> None:
    _check_broadcast(site)
    site.emit("BitShift", [site.operand(0), site.operand(1)], [site.output()], direction=direction)


def _select(site: Site) -> None:
    _check_broadcast(site)
    site.emit("Where", [site.operand(0), site.operand(1), site.operand(2)], [site.output()])


def _clamp(site: Site) -> None:
    x = site.operand(0)
    low, high = site.real("min"), site.real("max")
    if x.dtype.is_integer:
        # Bounds round inwards, and those beyond the type do not bound.
        limits = np.iinfo(x.dtype.numpy)
        low = math.ceil(max(low, float(limits.min)))
        high = math.floor(min(high, float(limits.max)))
        bounds = [site.constant(np.clip(np.array(bound, object), limits.min, limits.max), x.dtype) for bound in (low, high)]
    else:
        bounds = [site.constant(bound, x.dtype) for bound in (low, high)]
    site.emit("Clip", [x, *bounds], [site.output()])


def _elu(site: Site) -> None:
    site.emit("Elu", [site.operand(0)], [site.output()], alpha=site.real("alpha"))


def _selu(site: Site) -> None:
    alpha, gamma = site.known_number(1, "alpha"), site.known_number(2, "lambda")
    site.emit("Selu", [site.operand(0)], [site.output()], alpha=alpha, gamma=gamma)


def _gelu(site: Site) -> None:
    approximate = "tanh" if site.text("approximation_mode", "erf") == "tanh" else "none"
    site.emit("Gelu", [site.operand(0)], [site.output()], approximate=approximate)


def _swish(site: Site) -> None:
    x, beta = site.operand(0), site.optional(1)
    if beta is None:
        site.emit("Swish", [x], [site.output()], beta=1.0)
        return
    known = site.static(1)
    if known is not None and known.size == 1:
        site.emit("Swish", [x], [site.output()], beta=float(known.reshape(-1)[0]))
        return
    gate = site.through("Sigmoid", site.through("Mul", x, beta))
    site.emit("Mul", [x, gate], [site.output()])


def _hard_sigmoid(site: Site) -> None:
    """``max(0, min(1, alpha * x + beta))`` with alpha and beta as operands."""
    x, alpha, beta = site.operand(0), site.static(1), site.static(2)
    if alpha is not None and beta is not None and alpha.size == beta.size == 1:
        slope, shift = float(alpha.reshape(-1)[0]), float(beta.reshape(-1)[0])
        site.emit("HardSigmoid", [x], [site.output()], alpha=slope, beta=shift)
        return
    line = site.through("Add", site.through("Mul", x, site.operand(1)), site.operand(2))
    site.emit("Clip", [line, site.constant(0.0, x.dtype), site.constant(1.0, x.dtype)], [site.output()])


def _hsigmoid(site: Site) -> None:
    """``min(max(x + 3, 0), 6) / 6``."""
    site.emit("HardSigmoid", [site.operand(0)], [site.output()], alpha=1 / 6, beta=0.5)


def _prelu(site: Site) -> None:
    """A slope vector runs along axis 1, not along the last axis as in numpy broadcasting."""
    x, slope = site.operand(0), site.operand(1)
    if slope.shape is None or (len(slope.shape) == 1 and slope.shape != (1,)):
        rank = site.rank(0)
        if slope.shape is None:
            raise UnmodelledError("the rank of the slope is not declared")
        if rank > 2:
            slope = site.through("Unsqueeze", slope, site.constant(list(range(1, rank - 1))))
    site.emit("PRelu", [x, slope], [site.output()])


def _round(site: Site) -> None:
    kind = "RoundHalfAway" if site.text("mode", "half_to_even") == "half_away_from_zero" else "Round"
    site.emit(kind, [site.operand(0)], [site.output()])


def _is_inf(site: Site) -> None:
    negative, positive = site.flag("detect_negative", default=True), site.flag("detect_positive", default=True)
    site.emit("IsInf", [site.operand(0)], [site.output()], detect_negative=int(negative), detect_positive=int(positive))


def _convert(site: Site) -> None:
    """Convert, ConvertLike and ConvertPromoteTypes: each result's own element type says what the operand becomes."""
    for index, output in enumerate(site.outputs):
        if output.dtype is DType.UNKNOWN:
            raise UnmodelledError("the element type that it converts to is not declared")
        site.emit("Cast", [site.operand(index)], [output], dtype=output.dtype)


_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceiling": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "hswish": "HardSwish",
    "identity": "Identity", "isfinite": "IsFinite", "isnan": "IsNaN", "log": "Log", "logicalnot": "Not", "mish": "Mish",
    "negative": "Neg", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "softplus": "Softplus", "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "bitwisenot": "BitwiseNot",
}  # fmt: skip

_BINARY = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "power": "Pow", "maximum": "Max", "minimum": "Min",
    "squareddifference": "SquaredDifference", "equal": "Equal", "notequal": "NotEqual", "less": "Less",
    "lessequal": "LessOrEqual", "greater": "Greater", "greaterequal": "GreaterOrEqual", "logicaland": "And",
    "logicalor": "Or", "logicalxor": "Xor", "bitwiseand": "BitwiseAnd", "bitwiseor": "BitwiseOr",
    "bitwisexor": "BitwiseXor",
}  # fmt: skip

LOWERINGS: dict[str, Lowering] = {
    **{name: partial(_unary, kind) for name, kind in _UNARY.items()},
    **{name: partial(_binary, kind) for name, kind in _BINARY.items()},
    "divide": _divide,
    "mod": partial(_modulus, 1),
    "floormod": partial(_modulus, 0),
    "bitwiseleftshift": partial(_shift, "LEFT"),
    "bitwiserightshift": partial(_shift, "RIGHT"),
    "select": _select,
    "clamp": _clamp,
    "elu": _elu,
    "selu": _selu,
    "gelu": _gelu,
    "swish": _swish,
    "hardsigmoid": _hard_sigmoid,
    "hsigmoid": _hsigmoid,
    "prelu": _prelu,
    "round": _round,
    "isinf": _is_inf,
    "convert": _convert,
    "convertlike": _convert,
    "convertpromotetypes": _convert,
}
