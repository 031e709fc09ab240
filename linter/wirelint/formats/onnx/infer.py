"""Element types and ranks of values that the file does not declare, from the operator that computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wirelint.dtypes import DType
from wirelint.ops.vocabulary import VOCABULARY, Family

if TYPE_CHECKING:
    from wirelint.graph import Op, Value

__all__ = ["constant_ints", "infer_dtypes", "infer_rank"]

_FIXED: dict[str, tuple[DType, ...]] = {
    "Shape": (DType.I64,),
    "Size": (DType.I64,),
    "NonZero": (DType.I64,),
    "ArgMax": (DType.I64,),
    "ArgMin": (DType.I64,),
    "MatMulInteger": (DType.I32,),
    "DynamicQuantizeLinear": (DType.U8, DType.F32, DType.U8),
    "Opaque": (),
}

_FROM_OPERAND: dict[str, int] = {"Where": 1, "OneHot": 2, "If": -1}
"""Kinds whose results have the type of an operand other than the first."""


def infer_dtypes(kind: str, inputs: Sequence[Value | None], attrs: Mapping[str, Any], count: int) -> list[DType]:
    """The element types of the ``count`` results of an operator."""
    if kind in _FIXED:
        known = list(_FIXED[kind][:count])
    elif isinstance(attrs.get("dtype"), DType) and attrs["dtype"] is not DType.UNKNOWN:
        known = [attrs["dtype"]]
    elif kind == "ConstantOfShape":
        known = [attrs["value"].dtype]
    elif VOCABULARY[kind].family is Family.COMPARE:
        known = [DType.BOOL]
    elif kind == "Loop":
        known = [_dtype(value) for value in inputs[2 : 2 + attrs["carried"]]]
    else:
        at = _FROM_OPERAND.get(kind, 0)
        first = _dtype(inputs[at]) if 0 <= at < len(inputs) else DType.UNKNOWN
        rest = DType.I64 if kind in ("TopK", "MaxPool", "Unique") else first
        known = [first] + [rest] * (count - 1)
    return (known + [DType.UNKNOWN] * count)[:count]


def _dtype(value: Value | None) -> DType:
    return DType.UNKNOWN if value is None else value.dtype


def constant_ints(value: Value | None) -> tuple[int, ...] | None:
    """The elements of a small integer constant, flattened, or None when it is none."""
    if value is None or value.constant is None or not value.dtype.is_integer or value.constant.size > 64:
        return None
    array = value.constant.load()
    return None if array is None else tuple(int(element) for element in array.reshape(-1))


_BUDGET = 256
"""Steps to take for one rank; undeclared ranks are rare and settled within a few."""


def infer_rank(value: Value) -> int | None:
    """The rank of ``value`` as declared, or as the operators before it decide it; None when it stays open."""
    known: dict[int, int | None] = {}
    stack = [value]
    for _ in range(_BUDGET):
        if not stack:
            break
        needed = [operand for operand in _rank_operands(stack[-1]) if id(operand) not in known]
        if needed:
            stack += needed
            continue
        current = stack.pop()
        known[id(current)] = _rank(current, known)
    return known.get(id(value))


def _rank_operands(value: Value) -> list[Value]:
    """The values whose ranks decide the rank of ``value``."""
    if value.shape is not None or value.constant is not None or value.producer is None:
        return []
    op = value.producer
    family = VOCABULARY[op.kind].family
    operands = [operand for operand in op.inputs if operand is not None]
    if op.kind in ("Where", "MatMul", "Gather") or family in (Family.BINARY, Family.COMPARE):
        return operands
    if op.kind in _RANK_RULES or family in _KEEPS_RANK or op.kind in _MOVES_WITHIN_RANK:
        return operands[:1]
    return []


_KEEPS_RANK = (Family.UNARY, Family.NORMALISE, Family.SOFTMAX, Family.QUANTISE, Family.SCAN, Family.POOL, Family.ROTARY)
_MOVES_WITHIN_RANK = frozenset(
    {
        *("Identity", "Cast", "BitCast", "Concat", "Split", "Slice", "Pad", "Tile", "Trilu", "Flip", "Roll", "ReverseSequence"),
        *("Transpose", "GatherElements", "ScatterElements", "ScatterND", "Conv", "ConvTranspose", "Attention", "Resize"),
        *("DepthToSpace", "SpaceToDepth", "TopK"),
    }
)

_Known = Mapping[int, int | None]


def _rank(value: Value, known: _Known) -> int | None:
    if value.shape is not None:
        return len(value.shape)
    if value.constant is not None:
        return len(value.constant.shape)
    op = value.producer
    if op is None:
        return None
    rule = _RANK_RULES.get(op.kind)
    if rule is not None:
        return rule(op, known)
    ranks = [known.get(id(operand)) for operand in _rank_operands(value)]
    if not ranks or None in ranks:
        return _reduced(op, known) if VOCABULARY[op.kind].family is Family.REDUCE else None
    if VOCABULARY[op.kind].family is Family.REDUCE:
        return _reduced(op, known)
    return max(rank for rank in ranks if rank is not None)


def _first(op: Op, known: _Known) -> int | None:
    value = op.operand(0)
    return None if value is None else known.get(id(value))


def _moved(op: Op, known: _Known, sign: int) -> int | None:
    rank, axes = _first(op, known), constant_ints(op.operand(1))
    return None if rank is None or axes is None else rank + sign * len(axes)


def _reduced(op: Op, known: _Known) -> int | None:
    if op.attrs.get("keepdims", 1):
        return _first(op, known)
    axes = op.operand(1)
    if axes is None:
        return 0
    return _moved(op, known, -1)


def _length(value: Value | None) -> int | None:
    """How many numbers the 1-D ``value`` holds."""
    shape = None if value is None else value.constant.shape if value.constant is not None else value.shape
    if shape is not None and len(shape) == 1 and isinstance(shape[0], int):
        return shape[0]
    if value is None or value.producer is None or value.producer.kind != "Concat":
        return None
    lengths = [_vector_length(part) for part in value.producer.inputs]
    known = [length for length in lengths if length is not None]
    return sum(known) if len(known) == len(lengths) else None


def _vector_length(value: Value | None) -> int | None:
    """Length of one part of a shape that is put together: one for a number that was unsqueezed."""
    if value is not None and value.producer is not None and value.producer.kind == "Unsqueeze":
        return 1
    shape = None if value is None else value.constant.shape if value.constant is not None else value.shape
    return shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None


def _gathered(op: Op, known: _Known) -> int | None:
    data, indices = (None if operand is None else known.get(id(operand)) for operand in (op.operand(0), op.operand(1)))
    return None if data is None or indices is None else data + indices - 1 - int(op.attrs.get("batch_dims", 0))


def _expanded(op: Op, known: _Known) -> int | None:
    rank, length = _first(op, known), _length(op.operand(1))
    return None if rank is None or length is None else max(rank, length)


_RANK_RULES: dict[str, Callable[[Op, _Known], int | None]] = {
    "Reshape": lambda op, _: _length(op.operand(1)),
    "ConstantOfShape": lambda op, _: _length(op.operand(0)),
    "Transpose": lambda op, _: len(op.attrs["perm"]),
    "Unsqueeze": lambda op, known: _moved(op, known, 1),
    "Squeeze": lambda op, known: _moved(op, known, -1),
    "Flatten": lambda _op, _known: 2,
    "NonZero": lambda _op, _known: 2,
    "Range": lambda _op, _known: 1,
    "Shape": lambda _op, _known: 1,
    "Size": lambda _op, _known: 0,
    "Gather": _gathered,
    "Expand": _expanded,
}
for _kind in (name for name, row in VOCABULARY.items() if row.family is Family.REDUCE):
    _RANK_RULES[_kind] = _reduced
