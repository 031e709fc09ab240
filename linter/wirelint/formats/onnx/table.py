"""Operators that have a canonical counterpart of the same shape: a row each, with what their attributes become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirelint.dtypes import DType
from wirelint.formats.onnx.registry import AI_ONNX, MICROSOFT, lower

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node
    from wirelint.graph import Value

__all__: list[str] = []


@dataclass(frozen=True, slots=True)
class _Lift:
    """An attribute of older opsets that newer ones take as an operand."""

    slot: int
    attribute: str
    form: str
    """``ints``, ``floats``, ``int`` (one number as a 1-D tensor) or ``like`` (a scalar of the first operand's type)."""


@dataclass(frozen=True, slots=True)
class _Row:
    """How one operator maps to a canonical kind.

    Attributes:
        kind: canonical kind.
        operands: how many operands it takes at most; None for any number.
        attrs: defaults of the canonical attributes; a type instead of a default leaves an absent attribute out.
        renamed: ONNX names of the attributes that are called otherwise there.
        lifts: attributes that become operands.
    """

    kind: str
    operands: int | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    lifts: tuple[_Lift, ...] = ()

    def __call__(self, node: Node) -> None:
        inputs = node.inputs[: self.operands]
        if not self.attrs and not self.lifts:
            node.emit(self.kind, inputs)
            return
        for lift in self.lifts:
            lifted = _lifted(node, lift)
            if lifted is not None:
                inputs += [None] * (lift.slot + 1 - len(inputs))
                inputs[lift.slot] = inputs[lift.slot] or lifted
        attrs = {name: _attribute(node, self.renamed.get(name, name), default) for name, default in self.attrs.items()}
        node.emit(self.kind, inputs, **{name: value for name, value in attrs.items() if value is not None})


def _attribute(node: Node, name: str, default: Any) -> Any:
    """The attribute in the type of its default; None when it is absent and has none."""
    wanted, fallback = (default, None) if isinstance(default, type) else (type(default), default)
    readers = {int: node.integer, float: node.real, str: node.text, tuple: node.integers}
    return readers[wanted](name, fallback)


def _lifted(node: Node, lift: _Lift) -> Value | None:
    if not node.has(lift.attribute):
        return None
    if lift.form == "ints":
        return node.constant(list(node.integers(lift.attribute, ())))
    if lift.form == "floats":
        return node.constant(list(node.reals(lift.attribute, ())), DType.F32)
    if lift.form == "int":
        return node.constant([node.integer(lift.attribute, 0)])
    first = node.operand(0)
    dtype = first.dtype if first is not None and first.dtype is not DType.UNKNOWN else DType.F32
    return node.constant(node.real(lift.attribute, 0.0), dtype)


_AXES = (_Lift(1, "axes", "ints"),)
_WINDOW: dict[str, Any] = {"kernel_shape": tuple, "strides": tuple, "pads": tuple, "dilations": tuple, "auto_pad": "NOTSET"}
_CONV = {**_WINDOW, "group": 1}
_REDUCE = {"keepdims": 1, "noop_with_empty_axes": 0}
_ARG = {"axis": 0, "keepdims": 1, "select_last_index": 0}
_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _plain(operands: int | None, names: str) -> dict[str, _Row]:
    return {name: _Row(name, operands) for name in names.split()}


_ROWS: dict[str, _Row] = {
    # -- movement
    "Identity": _Row("Identity", 1),
    "Squeeze": _Row("Squeeze", 2, lifts=_AXES),
    "Unsqueeze": _Row("Unsqueeze", 2, lifts=_AXES),
    "Flatten": _Row("Flatten", 1, {"axis": 1}),
    "Expand": _Row("Expand", 2),
    "Tile": _Row("Tile", 2),
    "Concat": _Row("Concat", None, {"axis": 1}),
    "Split": _Row("Split", 2, {"axis": 0}, lifts=(_Lift(1, "split", "ints"),)),
    "Slice": _Row("Slice", 5, lifts=(_Lift(1, "starts", "ints"), _Lift(2, "ends", "ints"), _Lift(3, "axes", "ints"))),
    "Pad": _Row("Pad", 4, {"mode": "constant"}, lifts=(_Lift(1, "pads", "ints"), _Lift(2, "value", "like"))),
    "DepthToSpace": _Row("DepthToSpace", 1, {"blocksize": int, "mode": "DCR"}),
    "SpaceToDepth": _Row("SpaceToDepth", 1, {"blocksize": int, "mode": "DCR"}),
    "ReverseSequence": _Row("ReverseSequence", 2, {"batch_axis": 1, "time_axis": 0}),
    "Trilu": _Row("Trilu", 2, {"upper": 1}),
    # -- lookups, scatters
    "Gather": _Row("Gather", 2, {"axis": 0}),
    "GatherElements": _Row("GatherElements", 2, {"axis": 0}),
    "GatherND": _Row("GatherND", 2, {"batch_dims": 0}),
    "Compress": _Row("Compress", 2, {"axis": int}),
    "Scatter": _Row("ScatterElements", 3, {"axis": 0, "reduction": "none"}),
    "ScatterElements": _Row("ScatterElements", 3, {"axis": 0, "reduction": "none"}),
    "ScatterND": _Row("ScatterND", 3, {"reduction": "none"}),
    # -- element-wise
    **_plain(1, "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Log Mish Neg Reciprocal"),
    **_plain(1, "Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh BitwiseNot Not IsNaN NonZero Size"),
    **_plain(1, "DynamicQuantizeLinear"),
    **_plain(2, "Add Sub Mul Div Pow BitwiseAnd BitwiseOr BitwiseXor PRelu"),
    **_plain(2, "Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor"),
    **_plain(None, "Max Min Sum Mean"),
    **_plain(3, "Where Range"),
    "Gelu": _Row("Gelu", 1, {"approximate": "none"}),
    "Elu": _Row("Elu", 1, {"alpha": 1.0}),
    "Celu": _Row("Celu", 1, {"alpha": 1.0}),
    "LeakyRelu": _Row("LeakyRelu", 1, {"alpha": 0.01}),
    "ThresholdedRelu": _Row("ThresholdedRelu", 1, {"alpha": 1.0}),
    "Selu": _Row("Selu", 1, {"alpha": _SELU_ALPHA, "gamma": _SELU_GAMMA}),
    "HardSigmoid": _Row("HardSigmoid", 1, {"alpha": 0.2, "beta": 0.5}),
    "Swish": _Row("Swish", 1, {"beta": 1.0}, {"beta": "alpha"}),
    "Shrink": _Row("Shrink", 1, {"lambd": 0.5, "bias": 0.0}),
    "Clip": _Row("Clip", 3, lifts=(_Lift(1, "min", "like"), _Lift(2, "max", "like"))),
    "IsInf": _Row("IsInf", 1, {"detect_negative": 1, "detect_positive": 1}),
    "BitShift": _Row("BitShift", 2, {"direction": str}),
    "Mod": _Row("Mod", 2, {"fmod": 0}),
    # -- contractions, windows
    "MatMul": _Row("MatMul", 2),
    "MatMulInteger": _Row("MatMulInteger", 4),
    "Einsum": _Row("Einsum", None, {"equation": str}),
    "Conv": _Row("Conv", 3, _CONV),
    "ConvTranspose": _Row("ConvTranspose", 3, {**_CONV, "output_padding": tuple, "output_shape": tuple}),
    "MaxPool": _Row("MaxPool", 1, {**_WINDOW, "ceil_mode": 0}),
    "AveragePool": _Row("AveragePool", 1, {**_WINDOW, "ceil_mode": 0, "count_include_pad": 0}),
    "LpPool": _Row("LpPool", 1, {**_WINDOW, "ceil_mode": 0, "p": 2}),
    # -- reductions, scans, searches
    **{
        f"Reduce{name}": _Row(f"Reduce{name}", 2, _REDUCE, lifts=_AXES)
        for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    },
    "CumSum": _Row("CumSum", 2, {"exclusive": 0, "reverse": 0}),
    "CumProd": _Row("CumProd", 2, {"exclusive": 0, "reverse": 0}),
    "ArgMax": _Row("ArgMax", 1, _ARG),
    "ArgMin": _Row("ArgMin", 1, _ARG),
    "TopK": _Row("TopK", 2, {"axis": -1, "largest": 1, "sorted": 1}, lifts=(_Lift(1, "k", "int"),)),
    "Unique": _Row("Unique", 1, {"axis": int, "sorted": 1}),
    # -- normalisation
    "InstanceNormalization": _Row("InstanceNormalization", 3, {"epsilon": 1e-5}),
    "RMSNormalization": _Row("RMSNormalization", 2, {"axis": -1, "epsilon": 1e-5}),
    "LRN": _Row("LRN", 1, {"size": int}),
    # -- generation
    "OneHot": _Row("OneHot", 3, {"axis": -1}),
    "Shape": _Row("Shape", 1, {"start": 0, "end": int}),
    "RotaryEmbedding": _Row(
        "RotaryEmbedding",
        4,
        {"interleaved": 0, "rotary_dim": 0, "num_heads": 0},
        {"rotary_dim": "rotary_embedding_dim"},
    ),
}

_MICROSOFT_ROWS: dict[str, _Row] = {
    "Gelu": _Row("Gelu", 1, {"approximate": "none"}),
    "QuickGelu": _Row("Swish", 1, {"beta": 1.702}, {"beta": "alpha"}),
    "ExpandDims": _Row("Unsqueeze", 2),
    "GatherND": _Row("GatherND", 2, {"batch_dims": 0}),
    "Range": _Row("Range", 3),
    "Trilu": _Row("Trilu", 2, {"upper": 1}),
    "Pad": _Row("Pad", 3, {"mode": "constant"}),
}

for _domain, _table in ((AI_ONNX, _ROWS), (MICROSOFT, _MICROSOFT_ROWS)):
    for _op_type, _row in _table.items():
        lower(_op_type, domain=_domain)(_row)
