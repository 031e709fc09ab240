"""What a lowering works with: one node of the file, its operands, and the means to add canonical operators.

A lowering reads attributes and operands through :class:`Node`.  It calls :meth:`Node.emit` when one operator yields the
node's own results; what takes several operators is put together with :meth:`Node.compute` and handed over with
:meth:`Node.give`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.formats.onnx.infer import infer_dtypes, infer_rank
from wirelint.graph import Dim, Graph, Op, Origin, Tensor, Value

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto

__all__ = ["Bodies", "Builder", "Node"]

_Default = TypeVar("_Default")


TensorType = tuple[DType, tuple[Dim, ...] | None]
"""Element type and shape, each as far as it is known."""


class Bodies(Protocol):
    """Reads what hangs on a node: tensors and subgraphs."""

    def tensor(self, proto: TensorProto) -> Tensor: ...

    def sparse_tensor(self, proto: SparseTensorProto) -> Tensor: ...

    def subgraph(self, proto: GraphProto, node: Node, given: Sequence[TensorType]) -> Graph: ...


class Builder:
    """Collects the operators of one graph in order and keeps producers and consumers right."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def add(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        outputs: list[Value],
        *,
        attrs: dict[str, Any],
        origin: Origin,
        bodies: dict[str, Graph] | None = None,
    ) -> Op:
        """Append an operator that yields ``outputs``; types that they do not declare are inferred."""
        operands = list(inputs)
        while operands and operands[-1] is None:
            operands.pop()
        op = Op(kind, operands, outputs, attrs, bodies or {}, origin)
        for slot, value in enumerate(operands):
            if value is not None:
                value.consumers.append((op, slot))
        for value, dtype in zip(outputs, infer_dtypes(kind, operands, attrs, len(outputs)), strict=True):
            value.producer = op
            if value.dtype is DType.UNKNOWN:
                value.dtype = dtype
        self.ops.append(op)
        return op


class Node:
    """One node of the file while it is lowered.

    Attributes:
        path: the model file, for messages.
        op_type: operator name without its domain.
        version: version of the operator set that the node belongs to.
        inputs: operands; None where one is left out.
        outputs: the node's results, none of which has a producer before :meth:`emit`.
        origin: where the node stands.
    """

    __slots__ = ("_attributes", "_bodies", "_builder", "inputs", "op_type", "origin", "outputs", "path", "version")

    def __init__(
        self,
        path: Path,
        op_type: str,
        *,
        version: int,
        inputs: list[Value | None],
        outputs: list[Value],
        origin: Origin,
        attributes: Mapping[str, AttributeProto],
        builder: Builder,
        bodies: Bodies,
    ) -> None:
        self.path = path
        self.op_type = op_type
        self.version = version
        self.inputs = inputs
        self.outputs = outputs
        self.origin = origin
        self._attributes = attributes
        self._builder = builder
        self._bodies = bodies

    # -- reading -------------------------------------------------------------------------------------------------------

    def fault(self, reason: str) -> ModelFileError:
        """The error that says what is wrong with this node."""
        name = self.origin.name or (self.outputs[0].name if self.outputs else "")
        return ModelFileError(self.path, "invalid-graph", f"node {name!r} ({self.origin.op_type!r}) {reason}")

    def operand(self, slot: int) -> Value | None:
        """The operand at ``slot``, or None when it is left out."""
        return self.inputs[slot] if slot < len(self.inputs) else None

    def need(self, slot: int) -> Value:
        """The operand at ``slot``.

        Raises:
            ModelFileError: it is left out.
        """
        value = self.operand(slot)
        if value is None:
            raise self.fault(f"lacks its input {slot}")
        return value

    def wants(self, slot: int) -> bool:
        """True when the file names the result at ``slot``."""
        return slot < len(self.outputs) and bool(self.outputs[slot].name)

    def has(self, name: str) -> bool:
        """True when the attribute is given."""
        return name in self._attributes

    def integer(self, name: str, default: _Default) -> int | _Default:
        """An integer attribute."""
        return default if name not in self._attributes else int(self._typed(name, "i", 2).i)

    def real(self, name: str, default: _Default) -> float | _Default:
        """A floating-point attribute."""
        return default if name not in self._attributes else float(self._typed(name, "f", 1).f)

    def text(self, name: str, default: _Default) -> str | _Default:
        """A string attribute."""
        return default if name not in self._attributes else self._typed(name, "s", 3).s.decode("utf-8", "replace")

    def integers(self, name: str, default: _Default) -> tuple[int, ...] | _Default:
        """An attribute that lists integers."""
        return default if name not in self._attributes else tuple(self._typed(name, "ints", 7).ints)

    def reals(self, name: str, default: _Default) -> tuple[float, ...] | _Default:
        """An attribute that lists floating-point numbers."""
        return default if name not in self._attributes else tuple(self._typed(name, "floats", 6).floats)

    def texts(self, name: str, default: _Default) -> tuple[str, ...] | _Default:
        """An attribute that lists strings."""
        if name not in self._attributes:
            return default
        return tuple(text.decode("utf-8", "replace") for text in self._typed(name, "strings", 8).strings)

    def tensor(self, name: str) -> Tensor | None:
        """A tensor attribute, dense or sparse."""
        if name not in self._attributes:
            return None
        attribute = self._attributes[name]
        if attribute.HasField("sparse_tensor"):
            return self._bodies.sparse_tensor(attribute.sparse_tensor)
        return self._bodies.tensor(self._typed(name, "t", 4).t)

    def body(self, name: str, given: Sequence[TensorType] = ()) -> Graph:
        """The subgraph in an attribute.

        Args:
            name: of the attribute.
            given: types of what the subgraph's inputs are fed, for inputs that declare none: in a subgraph they need not.

        Raises:
            ModelFileError: the attribute is missing, or its graph is invalid.
        """
        if name not in self._attributes:
            raise self.fault(f"lacks its subgraph {name!r}")
        return self._bodies.subgraph(self._typed(name, "g", 5).g, self, given)

    def _typed(self, name: str, field: str, number: int) -> AttributeProto:
        attribute = self._attributes[name]
        # Files of IR version 1 leave the type out; the field that is set then decides.
        if attribute.type != number and not (attribute.type == 0 and getattr(attribute, field)):
            raise self.fault(f"has an attribute {name!r} of the wrong type")
        return attribute

    # -- building ------------------------------------------------------------------------------------------------------

    def emit(self, kind: str, inputs: Sequence[Value | None], *, bodies: dict[str, Graph] | None = None, **attrs: Any) -> Op:
        """Add the operator that yields the node's results."""
        return self._builder.add(kind, inputs, self.outputs, attrs=attrs, origin=self.origin, bodies=bodies)

    def give(self, slot: int, value: Value) -> Value:
        """Make ``value`` the node's result at ``slot`` and return the result, for operators that read it further on.

        The operator that computed ``value`` yields the result itself; a value that is not of this node's making, or that
        something reads already, goes through an Identity.
        """
        if slot >= len(self.outputs):
            return value
        result = self.outputs[slot]
        op = value.producer
        if op is None or value.name or value.consumers or op.origin is not self.origin:
            self._builder.add("Identity", [value], [result], attrs={}, origin=self.origin)
            return result
        op.outputs[next(at for at, output in enumerate(op.outputs) if output is value)] = result
        result.producer = op
        if result.dtype is DType.UNKNOWN:
            result.dtype = value.dtype
        return result

    def compute(self, kind: str, *inputs: Value | None, **attrs: Any) -> Value:
        """Add an operator in between and return its result."""
        return self.compute_many(kind, 1, *inputs, **attrs)[0]

    def compute_many(self, kind: str, count: int, *inputs: Value | None, **attrs: Any) -> list[Value]:
        """Add an operator in between and return its ``count`` results."""
        outputs = [Value("") for _ in range(count)]
        self._builder.add(kind, inputs, outputs, attrs=attrs, origin=self.origin)
        return outputs

    def detached(
        self, kind: str, inputs: Sequence[Value | None], outputs: list[Value], bodies: dict[str, Graph], **attrs: Any
    ) -> Op:
        """An operator for a subgraph that the lowering makes itself: linked to its operands, but not added to this graph."""
        return Builder().add(kind, inputs, outputs, attrs=attrs, origin=self.origin, bodies=bodies)

    def constant(self, array: npt.ArrayLike, dtype: DType = DType.I64) -> Value:
        """A small constant."""
        return self.constant_tensor(Tensor.of(array, dtype))

    def constant_tensor(self, tensor: Tensor, name: str = "") -> Value:
        """A constant that exists already."""
        return Value(name, tensor.dtype, tensor.shape, constant=tensor, origin=self.origin)

    # -- common pieces -------------------------------------------------------------------------------------------------

    def dim(self, value: Value, axis: int) -> Value:
        """The length of ``value`` along ``axis`` as a scalar i64."""
        return self.compute("Gather", self.compute("Shape", value), self.constant(axis), axis=0)

    def dim_vector(self, value: Value, axis: int) -> Value:
        """The length of ``value`` along ``axis`` as i64 of shape [1]."""
        return self.compute("Gather", self.compute("Shape", value), self.constant([axis]), axis=0)

    def axes_from(self, value: Value, first: int) -> Value:
        """The axes ``first``, ``first + 1``, ... of ``value`` (i64, 1-D), computed when the rank is not known.

        Raises:
            ModelFileError: ``value`` has no axis ``first``.
        """
        rank = infer_rank(value)
        if rank is not None and not -rank <= first <= rank:
            raise self.fault(f"names axis {first} of a tensor of rank {rank}")
        if rank is not None:
            return self.constant(np.arange(first if first >= 0 else rank + first, rank))
        counted = self.compute("Gather", self.compute("Shape", self.compute("Shape", value)), self.constant(0), axis=0)
        start = self.constant(first) if first >= 0 else self.compute("Add", counted, self.constant(first))
        return self.compute("Range", start, counted, self.constant(1))


Lowering = Callable[[Node], None]
"""Adds the canonical operators that a node stands for."""
