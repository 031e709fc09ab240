"""The graph that every analysis reads: operators, the values between them, and the model around them.

The readers lower ONNX and OpenVINO IR to this one form, in the canonical vocabulary of :mod:`wirelint.ops`.  Nothing in
it runs and nothing in it holds weights: constants know their dtype, their shape and how to load themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Dim", "Graph", "Model", "Op", "Origin", "Problem", "Tensor", "Value"]

Dim = int | str | None
"""A declared dimension: a number, a symbol such as ``batch``, or unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A constant that is loaded only when asked.

    Attributes:
        dtype: element type as stored.
        shape: concrete shape.
        fetch: returns the elements as an array of ``dtype.numpy`` with shape ``shape``; sub-byte types come unpacked.
            It may raise :class:`~wirelint.errors.ModelFileError` when the bytes are outside the file.
        available: False when the bytes are known to be elsewhere (a missing ``.bin`` or external data file).
        location: where the bytes are, for messages: a file name, or empty for bytes that were inline.
    """

    dtype: DType
    shape: tuple[int, ...]
    fetch: Callable[[], npt.NDArray[Any]]
    available: bool = True
    location: str = ""

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def load(self, limit: int = 1 << 16) -> npt.NDArray[Any] | None:
        """The elements, or None when they are more than ``limit``, absent, or of a type that holds no numbers.

        Raises:
            ModelFileError: the bytes lie outside the file that should hold them.
        """
        if not self.available or self.size > limit or self.dtype in (DType.STRING, DType.UNKNOWN):
            return None
        return self.fetch()

    @classmethod
    def of(cls, array: npt.ArrayLike, dtype: DType) -> Tensor:
        """A small constant that a reader makes itself, such as the axes that older opsets keep in an attribute."""
        held: npt.NDArray[Any] = np.asarray(array, dtype=dtype.numpy)
        return cls(dtype, held.shape, lambda: held)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an operator or a value stands in the file, in the file's own words.

    Attributes:
        name: node name (ONNX) or layer name (IR); may be empty.
        op_type: operator as the file calls it, with its domain or opset where it is not the default one:
            ``com.microsoft.Attention``, ``Multiply``.
        line: line of the XML for IR, None for ONNX.
        index: position among the nodes of its (sub)graph in file order, or None.
        scope: the names of the subgraph-holding operators around it, outermost first, then inlined function calls.
    """

    name: str = ""
    op_type: str = ""
    line: int | None = None
    index: int | None = None
    scope: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Value:
    """A tensor between operators: a graph input, a constant, or an operator's output.

    Attributes:
        name: the name in the file: the tensor name (ONNX), the first tensor name or else the layer name (IR).
        dtype: declared or inferred element type; ``DType.UNKNOWN`` when the file does not say.
        shape: declared shape, or None when even the rank is not declared.
        names: every name by which a caller may address it (IR ports may carry several, or none).
        constant: the elements, for a constant.
        default: for a graph input only: the value that the runtime uses when the caller leaves the input out.
        producer: the operator that computes it; None for graph inputs and constants.
        consumers: ``(operator, operand index)`` pairs, in file order.  Operators inside a subgraph that read this
            value from the outside are listed too.
        origin: where the file declares it, for graph inputs and constants.
    """

    name: str
    dtype: DType = DType.UNKNOWN
    shape: tuple[Dim, ...] | None = None
    names: tuple[str, ...] = ()
    constant: Tensor | None = None
    default: Tensor | None = None
    producer: Op | None = None
    consumers: list[tuple[Op, int]] = field(default_factory=list)
    origin: Origin = Origin()

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.dtype}, {self.shape})"


@dataclass(slots=True, eq=False)
class Op:
    """One canonical operator.

    Attributes:
        kind: name in the canonical vocabulary (:data:`wirelint.ops.VOCABULARY`).
        inputs: operands in the vocabulary's order; None for an optional operand that is absent.
        outputs: results; a result that nothing reads is present all the same.
        attrs: attributes, only those that the vocabulary names for this kind.
        bodies: subgraphs by role: ``then`` and ``else`` of If, ``body`` of Loop.
        origin: where it stands in the file.  Several canonical operators may share one origin.
    """

    kind: str
    inputs: list[Value | None]
    outputs: list[Value]
    attrs: dict[str, Any] = field(default_factory=dict)
    bodies: dict[str, Graph] = field(default_factory=dict)
    origin: Origin = Origin()

    def __repr__(self) -> str:
        return f"Op({self.kind}, {self.origin.name!r})"

    def operand(self, index: int) -> Value | None:
        """The operand at ``index``, or None when it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None


@dataclass(eq=False)
class Graph:
    """Operators in topological order, with the inputs and outputs of the graph that they make up.

    A subgraph (a branch of If, the body of Loop) reads values of the graphs around it directly: the same ``Value``
    object stands among its operators' inputs.

    Attributes:
        name: as the file calls it.
        inputs: graph inputs in file order, without initializers.
        outputs: values that the graph returns, in file order.
        output_names: the name by which a caller addresses each output (the value's own name for ONNX).
        ops: operators, each after the producers of its operands.
    """

    name: str
    inputs: list[Value]
    outputs: list[Value]
    output_names: list[str]
    ops: list[Op]

    def walk(self) -> Iterator[Op]:
        """Every operator, those of subgraphs after the operator that holds them; without recursion."""
        stack: list[Iterator[Op]] = [iter(self.ops)]
        while stack:
            op = next(stack[-1], None)
            if op is None:
                stack.pop()
                continue
            yield op
            stack.extend(iter(body.ops) for body in reversed(op.bodies.values()))

    @functools.cached_property
    def network(self) -> nx.MultiDiGraph[Any]:
        """The same graph for networkx: nodes are ``Op`` and graph-input ``Value`` objects, edges carry ``value``.

        An edge runs from producer to consumer, once per operand, with key = operand index.  Subgraphs are included and
        joined to their surroundings by the values that they read; an operator that holds subgraphs is reached from the
        operators that compute the subgraphs' results.
        """
        import networkx as nx

        network: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
        network.add_nodes_from(self.inputs)
        for op in self.walk():
            network.add_node(op)
            for slot, value in enumerate(op.inputs):
                if value is not None and (value.producer is not None or value.constant is None):
                    network.add_edge(value.producer or value, op, key=slot, value=value)
            for role, body in op.bodies.items():
                for slot, value in enumerate(body.outputs):
                    if value.producer is not None:
                        network.add_edge(value.producer, op, key=f"{role}:{slot}", value=value)
                for slot, value in enumerate(body.inputs):
                    network.add_edge(op, value, key=f"{role}:{slot}", value=value)
        return network


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about the file itself that a file-family rule reports while the analysis goes on.

    Attributes:
        rule: id of the rule: ``missing-weights``, ``weights-out-of-bounds``, ``external-path-escape``, ``lfs-pointer``...
        message: one line: what is wrong and what to do.
        line: XML line, when there is one.
        subject: the tensor, file or node that it is about.
    """

    rule: str
    message: str
    line: int | None = None
    subject: str = ""


@dataclass(slots=True, eq=False)
class Model:
    """A model file, read and lowered.

    Attributes:
        path: the file.
        format: ``onnx`` or ``openvino-ir``.
        graph: the main graph.
        producer: name and version of the program that wrote the file, as far as it says.
        opsets: opset versions by domain (``""`` is ai.onnx); for IR the opsets that layers name, each with version 0.
        ir_version: ONNX ``ir_version`` or the IR's ``version``.
        metadata: ``metadata_props`` (ONNX) or ``rt_info`` entries (IR) as strings.
        problems: what is wrong with the file although it could be read.
    """

    path: Path
    format: str
    graph: Graph
    producer: str = ""
    producer_version: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    ir_version: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
