"""From the protobuf message of a model to the canonical graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError

# The modules below register their lowerings when they are imported.
from wirelint.formats.onnx import (  # noqa: F401
    lower_attention,
    lower_control,
    lower_math,
    lower_move,
    lower_nchwc,
    lower_norm,
    lower_quant,
    lower_recurrent,
    lower_spectral,
    table,
)
from wirelint.formats.onnx.context import Builder, Node
from wirelint.formats.onnx.dtypes import BY_NUMBER
from wirelint.formats.onnx.functions import check_calls, function_key, node_key
from wirelint.formats.onnx.order import captured_names, ordered_nodes
from wirelint.formats.onnx.proto import text
from wirelint.formats.onnx.registry import find
from wirelint.graph import Dim, Graph, Origin, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        SparseTensorProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )

    from wirelint.formats.onnx.context import TensorType
    from wirelint.formats.onnx.tensors import TensorReader

__all__ = ["GraphReader", "opset_versions"]

_NEWEST = 1 << 30
"""Version of an operator set that the file does not import: whatever is newest."""

_MAX_NESTING = 64
"""Subgraphs and function calls inside one another: protobuf allows some 33 of the former, exporters nest ten of the latter."""


def _like_an_input(
    declared: tuple[DType, tuple[Dim, ...] | None], required: Collection[tuple[DType, tuple[Dim, ...] | None]]
) -> bool:
    """Whether a graph input that also has an initializer is meant to be fed, or is a weight that the file lists as an input.

    Before IR version 4 every initializer was listed so, and `keep_initializers_as_inputs` does it still.  An input that is
    meant to be fed is declared as the required ones are: with an open dimension, or with the type and shape of one of them.
    A vector must name its dimension: old files leave those of biases out.
    """
    dtype, shape = declared
    if not shape:
        return False
    if len(shape) == 1:
        return isinstance(shape[0], str)
    return any(not isinstance(dim, int) for dim in shape) or (not dtype.is_float and declared in required)


def opset_versions(model: ModelProto) -> dict[str, int]:
    """The imported operator sets by domain, the highest version of each."""
    return _versions((entry.domain, entry.version) for entry in model.opset_import)


def _versions(imports: Iterable[tuple[str, int]]) -> dict[str, int]:
    versions: dict[str, int] = {}
    for domain, version in imports:
        name = _domain(domain)
        versions[name] = max(version, versions.get(name, 0))
    return versions


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else text(name)


@dataclass(slots=True, eq=False)
class _Scope:
    """What the nodes of one graph or function body see.

    Attributes:
        values: values by name.
        outer: the scope around it; None for the main graph and for function bodies.
        names: names of the operators around it, outermost first.
        versions: operator set versions by domain.
        arguments: attributes of the function call, for references to them.
        infos: declared types by name.
        targets: results of a function call, by the name that the function body has for them.
        depth: how many subgraphs and calls it stands in.
        bodies: reads tensors and subgraphs for the lowerings of its nodes; made with the first of them.
    """

    values: dict[str, Value] = field(default_factory=dict)
    outer: _Scope | None = None
    names: tuple[str, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, AttributeProto] | None = None
    infos: Mapping[str, ValueInfoProto] = field(default_factory=dict)
    targets: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    bodies: _Bodies | None = None

    def find(self, name: str) -> Value | None:
        scope: _Scope | None = self
        while scope is not None:
            value = scope.values.get(name)
            if value is not None:
                return value
            scope = scope.outer
        return None

    def knows(self, name: str) -> bool:
        return self.find(name) is not None


class GraphReader:
    """Lowers the graphs of one model file.

    Args:
        path: the file, for messages.
        model: its skeleton.
        tensors: makes lazy constants.
    """

    def __init__(self, path: Path, model: ModelProto, tensors: TensorReader) -> None:
        self._path = path
        self._model = model
        self.tensors = tensors
        self._functions = {function_key(function): function for function in model.functions}
        self._versions = opset_versions(model)
        if not self._versions and model.ir_version < 3:
            self._versions = {"": 1}

    def main_graph(self) -> Graph:
        """The model's graph.

        Raises:
            ModelFileError: the graph is invalid or has a cycle.
        """
        check_calls(self._path, self._model.graph.node, self._functions)
        return self._graph(self._model.graph, _Scope(versions=self._versions))

    # -- graphs --------------------------------------------------------------------------------------------------------

    def _graph(self, proto: GraphProto, scope: _Scope, given: Sequence[TensorType] = ()) -> Graph:
        scope.infos = {info.name: info for infos in (proto.value_info, proto.output) for info in infos}
        initializers = {tensor.name: self.tensors.read(tensor) for tensor in proto.initializer}
        initializers.update((sparse.values.name, self.tensors.read_sparse(sparse)) for sparse in proto.sparse_initializer)
        inputs = self._inputs(proto, scope, initializers)
        for value, (dtype, shape) in zip(inputs, given, strict=False):
            value.dtype = dtype if value.dtype is DType.UNKNOWN else value.dtype
            value.shape = shape if value.shape is None else value.shape
        for name, tensor in initializers.items():
            if name not in scope.values:
                value = _named(name, tensor.dtype, tensor.shape, tensor)
                value.origin = Origin(value.name, scope=scope.names)
                scope.values[name] = value
        builder = Builder()
        self._lower_nodes(proto.node, scope, builder, proto.name)
        outputs = [self._result(info.name, scope, proto.name) for info in proto.output]
        return Graph(text(proto.name), inputs, outputs, [text(info.name) for info in proto.output], builder.ops)

    def _inputs(self, proto: GraphProto, scope: _Scope, initializers: Mapping[str, Tensor]) -> list[Value]:
        inputs = []
        required = {_declared(info.type) for info in proto.input if info.name not in initializers}
        for index, info in enumerate(proto.input):
            default = initializers.get(info.name)
            if default is not None and not _like_an_input(_declared(info.type), required):
                continue
            if info.name in scope.values:
                raise ModelFileError(self._path, "invalid-graph", f"graph {proto.name!r} has two inputs {info.name!r}")
            dtype, shape = _declared(info.type)
            value = _named(info.name, dtype, shape)
            value.default = default
            value.origin = Origin(value.name, "", None, index, scope.names)
            scope.values[info.name] = value
            inputs.append(value)
        return inputs

    def _result(self, name: str, scope: _Scope, graph: str) -> Value:
        value = scope.find(name)
        if value is None:
            raise ModelFileError(self._path, "invalid-graph", f"graph {graph!r} returns {name!r}, which nothing defines")
        return value

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _lower_nodes(self, nodes: Sequence[NodeProto], scope: _Scope, builder: Builder, graph: str) -> None:
        for index, node in ordered_nodes(nodes, scope.knows, self._path, graph):
            self._lower_node(node, index, scope, builder)

    def _lower_node(self, proto: NodeProto, index: int, scope: _Scope, builder: Builder) -> None:
        domain, op_type = _domain(proto.domain), text(proto.op_type)
        origin = Origin(text(proto.name), f"{domain}.{op_type}" if domain else op_type, None, index, scope.names)
        inputs = [self._operand(name, proto, scope) for name in proto.input]
        outputs = [self._new_value(name, scope) for name in proto.output]
        attributes = _resolved(proto.attribute, scope.arguments) if proto.attribute else {}
        function = self._functions.get(node_key(proto)) if self._functions else None
        if function is not None:
            self._inline(function, (inputs, outputs), attributes, origin=origin, scope=scope, builder=builder)
            return
        lowering = find(domain, op_type)
        if lowering is None or not outputs:
            captured = [self._operand(name, proto, scope) for name in captured_names(proto)] if attributes else []
            builder.add("Opaque", inputs + captured, outputs, attrs={}, origin=origin)
            return
        node = Node(
            self._path,
            op_type,
            version=scope.versions.get(domain, _NEWEST),
            inputs=inputs,
            outputs=outputs,
            origin=origin,
            attributes=attributes,
            builder=builder,
            bodies=scope.bodies or self._bodies(scope),
        )
        lowering(node)
        # Results that the canonical form does not have (statistics for training, debugging) come from an Opaque.
        missing = [value for value in outputs if value.name and value.producer is None and value.constant is None]
        if missing:
            builder.add("Opaque", inputs, missing, attrs={}, origin=origin)

    def _bodies(self, scope: _Scope) -> _Bodies:
        scope.bodies = _Bodies(self, scope)
        return scope.bodies

    def _operand(self, name: str, node: NodeProto, scope: _Scope) -> Value | None:
        if not name:
            return None
        value = scope.find(name)
        if value is None:
            raise ModelFileError(self._path, "invalid-graph", f"node {node.name!r} reads {name!r}, which nothing defines")
        return value

    def _new_value(self, name: str, scope: _Scope) -> Value:
        if not name:
            return Value("")
        if name in scope.values:
            raise ModelFileError(self._path, "invalid-graph", f"two nodes or inputs define {name!r}; names have to be unique")
        value = scope.targets.get(name)
        if value is None:
            info = scope.infos.get(name)
            value = _named(name, *(_declared(info.type) if info is not None else (DType.UNKNOWN, None)))
        scope.values[name] = value
        return value

    def subgraph(self, proto: GraphProto, scope: _Scope, name: str, given: Sequence[TensorType]) -> Graph:
        """A subgraph that sees the values of ``scope`` and whose inputs are fed values of the types in ``given``."""
        inner = _Scope(
            outer=scope,
            names=(*scope.names, name),
            versions=scope.versions,
            arguments=scope.arguments,
            depth=self._deeper(scope),
        )
        return self._graph(proto, inner, given)

    def _deeper(self, scope: _Scope) -> int:
        if scope.depth >= _MAX_NESTING:
            reason = f"subgraphs and function calls are nested deeper than {_MAX_NESTING} levels"
            raise ModelFileError(self._path, "invalid-graph", reason)
        return scope.depth + 1

    # -- functions -----------------------------------------------------------------------------------------------------

    def _inline(
        self,
        function: FunctionProto,
        operands: tuple[Sequence[Value | None], Sequence[Value]],
        attributes: Mapping[str, AttributeProto],
        *,
        origin: Origin,
        scope: _Scope,
        builder: Builder,
    ) -> None:
        """Put the nodes of ``function`` in the place of a call with the given inputs and outputs."""
        inputs, outputs = operands
        imports = _versions((entry.domain, entry.version) for entry in function.opset_import)
        inner = _Scope(
            names=(*origin.scope, origin.name or origin.op_type),
            versions={**scope.versions, **imports},
            arguments={**{attribute.name: attribute for attribute in function.attribute_proto}, **attributes},
            infos={info.name: info for info in function.value_info},
            depth=self._deeper(scope),
        )
        absent = {name for name, value in zip(function.input, inputs, strict=False) if value is None}
        absent.update(function.input[len(inputs) :])
        inner.values = {name: value for name, value in zip(function.input, inputs, strict=False) if value is not None}
        wanted = list(zip(function.output, outputs, strict=False))
        inner.targets = dict(wanted)
        body = [_without_absent(node, absent) for node in function.node] if absent else function.node
        self._lower_nodes(body, inner, builder, function.name)
        for name, result in wanted:
            source = self._result(name, inner, function.name)
            if source is not result:
                builder.add("Identity", [source], [result], attrs={}, origin=origin)


@dataclass(frozen=True, slots=True)
class _Bodies:
    """What a lowering reads through :class:`~wirelint.formats.onnx.context.Bodies`."""

    reader: GraphReader
    scope: _Scope

    def tensor(self, proto: TensorProto) -> Tensor:
        return self.reader.tensors.read(proto)

    def sparse_tensor(self, proto: SparseTensorProto) -> Tensor:
        return self.reader.tensors.read_sparse(proto)

    def subgraph(self, proto: GraphProto, node: Node, given: Sequence[TensorType]) -> Graph:
        return self.reader.subgraph(proto, self.scope, node.origin.name or node.origin.op_type, given)


def _resolved(
    attributes: Sequence[AttributeProto], arguments: Mapping[str, AttributeProto] | None
) -> dict[str, AttributeProto]:
    """Attributes by name; a reference to an attribute of the function call is replaced by it, or left out with it."""
    resolved = {}
    for attribute in attributes:
        if not attribute.ref_attr_name:
            resolved[attribute.name] = attribute
        elif arguments is not None and attribute.ref_attr_name in arguments:
            resolved[attribute.name] = arguments[attribute.ref_attr_name]
    return resolved


def _without_absent(node: NodeProto, absent: set[str]) -> NodeProto:
    """The node with inputs that the function call leaves out left out as well."""
    if not absent.intersection(node.input):
        return node
    changed = type(node)()
    changed.CopyFrom(node)
    for slot, name in enumerate(node.input):
        if name in absent:
            changed.input[slot] = ""
    return changed


def _named(name: str, dtype: DType, shape: tuple[Dim, ...] | None, constant: Tensor | None = None) -> Value:
    shown = text(name)
    return Value(shown, dtype, shape, (shown,) if shown else (), constant)


def _declared(proto: TypeProto) -> tuple[DType, tuple[Dim, ...] | None]:
    """Element type and shape; both unknown for sequences and maps, those of the element for optional tensors."""
    if proto.HasField("optional_type"):
        proto = proto.optional_type.elem_type
    tensor = proto.sparse_tensor_type if proto.HasField("sparse_tensor_type") else proto.tensor_type
    dtype = BY_NUMBER.get(tensor.elem_type, DType.UNKNOWN)
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, tuple(_dimension(dim.dim_value, dim.dim_param, dim.HasField("dim_value")) for dim in tensor.shape.dim)


def _dimension(number: int, symbol: str, is_number: bool) -> Dim:
    if is_number:
        return number if number >= 0 else None
    return text(symbol) or None
