"""What a lowering function works with: one layer, its operands and results, and the canonical operators it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.graph import Dim, Graph, Op, Origin, Tensor, Value

if TYPE_CHECKING:
    from wirelint.formats.openvino.xml import Layer, Net

__all__ = ["Body", "InvalidLayerError", "Lowering", "Site", "UnmodelledError"]


class InvalidLayerError(Exception):
    """A layer lacks an operand or an attribute that its operator cannot do without, or it makes no sense."""


class UnmodelledError(Exception):
    """A layer is legal but has no canonical form; it becomes Opaque."""


@dataclass(frozen=True, slots=True)
class Body:
    """A lowered subgraph.

    Attributes:
        graph: its operators; its inputs and outputs are left to the caller, who knows their order.
        parameters: the value of each Parameter, by layer id.
        results: the value of each Result, by layer id.
    """

    graph: Graph
    parameters: dict[str, Value]
    results: dict[str, Value]


@dataclass(slots=True, eq=False)
class Site:
    """One layer being lowered.

    Attributes:
        layer: the layer.
        origin: what the operators made here say about where they come from.
        inputs: the values at its input ports.
        outputs: the values at its output ports; an operator made here must compute each.
        lower_body: lowers a subgraph of the layer; parameters whose layer id is in the mapping become those values.
        ops: the operators made so far.
    """

    layer: Layer
    origin: Origin
    inputs: list[Value]
    outputs: list[Value]
    lower_body: Callable[[Net, Mapping[str, Value]], Body]
    ops: list[Op] = field(default_factory=list)

    # -- operands and results ----------------------------------------------------------------------------------------------

    def operand(self, index: int) -> Value:
        """The operand at ``index``.

        Raises:
            InvalidLayerError: there is none.
        """
        if index < len(self.inputs):
            return self.inputs[index]
        raise InvalidLayerError(f"has {len(self.inputs)} inputs but needs at least {index + 1}")

    def optional(self, index: int) -> Value | None:
        """The operand at ``index``, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int = 0) -> Value:
        """The result at ``index``; a new value when the layer has no port for it."""
        return self.outputs[index] if index < len(self.outputs) else self.temporary()

    def static(self, index: int) -> npt.NDArray[Any] | None:
        """The elements of a small constant operand, or None when there is no operand or it is not known.

        Compression of weights puts a Convert behind constants; it is looked through.
        """
        value = self.optional(index)
        if value is None:
            return None
        if value.constant is not None:
            return value.constant.load()
        cast = value.producer
        source = cast.inputs[0] if cast is not None and cast.kind == "Cast" else None
        if source is None or source.constant is None:
            return None
        array = source.constant.load()
        return None if array is None else array.astype(value.dtype.numpy)

    def known(self, index: int, what: str) -> npt.NDArray[Any]:
        """The elements of a constant operand.

        Raises:
            UnmodelledError: they are not known.
        """
        array = self.static(index)
        if array is None:
            raise UnmodelledError(f"{what} is not a known constant")
        return array

    def known_integers(self, index: int, what: str) -> list[int]:
        """The elements of a constant operand as a flat list; raises as :meth:`known` does."""
        return [int(element) for element in self.known(index, what).reshape(-1)]

    def known_number(self, index: int, what: str) -> float:
        """The only element of a constant operand; raises as :meth:`known` does."""
        array = self.known(index, what)
        if array.size != 1:
            raise UnmodelledError(f"{what} has {array.size} elements, not one")
        return float(array.reshape(-1)[0])

    def rank(self, index: int) -> int:
        """The declared rank of an operand.

        Raises:
            UnmodelledError: it is not declared.
        """
        shape = self.operand(index).shape
        if shape is None:
            raise UnmodelledError(f"the rank of input {index} is not declared")
        return len(shape)

    # -- attributes --------------------------------------------------------------------------------------------------------

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute in lower case.

        Raises:
            InvalidLayerError: it is absent and there is no default.
        """
        value = self.layer.data.get(name, default)
        if value is None:
            raise InvalidLayerError(f"has no attribute {name!r}")
        return value.strip().lower()

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute; raises as :meth:`text` does, and for text that is no integer."""
        return self._number(name, self.text(name, None if default is None else str(default)))

    def integers(self, name: str, default: str | None = None) -> list[int]:
        """An attribute that lists integers, separated by commas; raises as :meth:`integer` does."""
        text = self.text(name, default)
        return [self._number(name, part.strip()) for part in text.split(",")] if text else []

    def _number(self, name: str, text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise InvalidLayerError(f"has the attribute {name}={text[:40]!r}, which is no integer")
        return int(text)

    def real(self, name: str, default: float | None = None) -> float:
        """A floating attribute; raises as :meth:`text` does, and for text that is no number."""
        text = self.text(name, None if default is None else repr(default))
        try:
            return float(text)
        except ValueError:
            raise InvalidLayerError(f"has the attribute {name}={text[:40]!r}, which is no number") from None

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """A truth value; raises as :meth:`text` does, and for text that is none."""
        text = self.text(name, None if default is None else str(default))
        if text in ("true", "1", "yes"):
            return True
        if text in ("false", "0", "no", ""):
            return False
        raise InvalidLayerError(f"has the attribute {name}={text[:40]!r}, which is neither true nor false")

    # -- making operators and values ---------------------------------------------------------------------------------------

    def temporary(self, dtype: DType = DType.UNKNOWN, shape: tuple[Dim, ...] | None = None) -> Value:
        """A new value without a name."""
        return Value("", dtype, shape, origin=self.origin)

    def constant(self, array: npt.ArrayLike, dtype: DType = DType.I64) -> Value:
        """A new small constant."""
        tensor = Tensor.of(array, dtype)
        return Value("", dtype, tensor.shape, constant=tensor, origin=self.origin)

    def emit(self, kind: str, inputs: Sequence[Value | None], outputs: Sequence[Value], **attrs: Any) -> Op:
        """Makes an operator; operands that are absent at the end are left out."""
        operands = list(inputs)
        while operands and operands[-1] is None:
            operands.pop()
        op = Op(kind, operands, list(outputs), attrs, origin=self.origin)
        for value in outputs:
            value.producer = op
        self.ops.append(op)
        return op

    def through(self, kind: str, *inputs: Value | None, yields: DType | None = None, **attrs: Any) -> Value:
        """Makes an operator with one new result and returns it; its element type is operand 0's unless ``yields`` says."""
        first = inputs[0].dtype if inputs and inputs[0] is not None else DType.UNKNOWN
        result = self.temporary(first if yields is None else yields)
        self.emit(kind, inputs, [result], **attrs)
        return result

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value with another element type, or itself when it has that type already."""
        if value.dtype is dtype:
            return value
        result = self.temporary(dtype, value.shape)
        self.emit("Cast", [value], [result], dtype=dtype)
        return result

    def integers_to_port(self, index: int = 0) -> Value:
        """A value of dtype i64 that becomes the result at ``index``, cast there if the port says another dtype.

        Canonical operators that yield indices or sizes yield i64; OpenVINO lets an attribute choose i32.
        :meth:`settle` makes the cast, once an operator computes the value.
        """
        output = self.output(index)
        return output if output.dtype in (DType.I64, DType.UNKNOWN) else self.temporary(DType.I64, output.shape)

    def settle(self, value: Value, index: int = 0) -> None:
        """Casts ``value`` to the result at ``index``, unless it is that result."""
        if index < len(self.outputs) and self.outputs[index] is not value:
            output = self.outputs[index]
            self.emit("Cast", [value], [output], dtype=output.dtype)

    def vector(self, index: int) -> Value:
        """The operand at ``index`` with rank 1: OpenVINO takes a scalar where one axis, size or step is meant."""
        value = self.operand(index)
        array = self.static(index)
        if array is not None and array.ndim != 1:
            return self.constant(array.reshape(-1), value.dtype)
        if array is None and (value.shape is None or len(value.shape) != 1):
            return self.through("Reshape", value, self.constant([-1]))
        return value

    def optional_vector(self, index: int) -> Value | None:
        """As :meth:`vector`, or None when there is no such operand."""
        return self.vector(index) if self.optional(index) is not None else None

    def scalar(self, index: int) -> Value:
        """The operand at ``index`` with rank 0: OpenVINO takes a vector of one element where a number is meant."""
        value = self.operand(index)
        if value.shape:
            array = self.static(index)
            if array is not None and array.size == 1:
                return self.constant(array.reshape(()), value.dtype)
            return self.through("Reshape", value, self.constant(np.zeros(0, np.int64)))
        return value


Lowering = Callable[[Site], None]
"""Turns the layer of a site into operators.

Raises:
    InvalidLayerError: the layer makes no sense.
    UnmodelledError: it has no canonical form.
"""
