"""Layers and edges to a graph: resolves references, orders the layers, makes the values."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError
from wirelint.formats.openvino.lower import lower
from wirelint.formats.openvino.site import Body, InvalidLayerError, Site
from wirelint.formats.openvino.tensors import Weights, element_type, parse_shape
from wirelint.graph import Dim, Graph, Origin, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wirelint.formats.openvino.xml import Layer, Net, Port

__all__ = ["Assembler"]

_FEW_PORTS = 8

_Source = tuple[str, int]
"""Id of a layer and index among its output ports."""


@dataclass(slots=True)
class Assembler:
    """Lowers the nets of one file.

    Attributes:
        path: the file, for messages.
        weights: where constants are.
        version: version of the IR.
        opsets: the opsets that layers name, filled in on the way.
    """

    path: Path
    weights: Weights
    version: int
    opsets: dict[str, int] = field(default_factory=dict)

    def model(self, net: Net) -> Graph:
        """The main graph: parameters and results in file order, which is the order in which OpenVINO reports them.

        Raises:
            ModelFileError: ``invalid-graph`` or ``graph-cycle``.
        """
        body = self.body(net, {}, ())
        graph = body.graph
        graph.inputs = list(body.parameters.values())
        layers = {layer.id: layer for layer in net.layers}
        sources = {edge.target: edge for edge in net.edges if layers[edge.target].type == "Result"}
        for layer_id, value in body.results.items():
            edge = sources[layer_id]
            friendly = _friendly(layers[edge.source], edge.source_port)
            graph.outputs.append(value)
            graph.output_names.append(self.output_name(layers[layer_id], friendly, value))
        return graph

    def output_name(self, result: Layer, friendly: str, value: Value) -> str:
        """The name by which a caller addresses an output; all of the Result's names become the value's too.

        A Result's own names come first, then the tensor names of the port that it reads; an output without either has
        the friendly name of its producer only.  Until IR 10 friendly names served as tensor names.
        """
        extra = (*result.output_names, *((friendly,) if self.version < 11 else ()))
        value.names += tuple(name for name in dict.fromkeys(extra) if name not in value.names)
        return next(iter((*result.output_names, *value.names)), friendly)

    def body(self, net: Net, bound: Mapping[str, Value], scope: tuple[str, ...]) -> Body:
        """A net as a graph without inputs and outputs; parameters in ``bound`` stand for the values given there.

        Raises:
            ModelFileError: ``invalid-graph`` or ``graph-cycle``.
        """
        layers = self.by_id(net)
        links = self.links(net, layers)
        positions = {layer.id: index for index, layer in enumerate(net.layers)}
        graph = Graph(net.name, [], [], [], [])
        values: dict[str, list[Value]] = {}
        for layer in self.ordered(net, links):
            origin = Origin(layer.name, _operator(layer), layer.line, positions[layer.id], scope)
            inputs = [values[source][port] for source, port in links[layer.id]]
            self.opsets.setdefault(layer.version, 0)
            if layer.type == "Parameter":
                values[layer.id] = [bound[layer.id] if layer.id in bound else self.parameter(layer, origin)]
            elif layer.type == "Result":
                values[layer.id] = inputs[:1]
            elif layer.type in ("Const", "Constant"):
                values[layer.id] = [self.constant(layer, origin)]
            else:
                values[layer.id] = self.operators(layer, origin, inputs, graph)
        return Body(graph, *(self.ends(net, values, kind) for kind in ("Parameter", "Result")))

    def ends(self, net: Net, values: Mapping[str, list[Value]], kind: str) -> dict[str, Value]:
        """The values of the parameters or the results of a net, in file order."""
        return {layer.id: values[layer.id][0] for layer in net.layers if layer.type == kind}

    def invalid(self, reason: str, line: int) -> ModelFileError:
        return ModelFileError(self.path, "invalid-graph", reason, line)

    # -- structure ---------------------------------------------------------------------------------------------------------

    def by_id(self, net: Net) -> dict[str, Layer]:
        layers: dict[str, Layer] = {}
        for layer in net.layers:
            if layer.id in layers:
                raise self.invalid(f"two layers have the id {layer.id!r}", layer.line)
            layers[layer.id] = layer
        return layers

    def links(self, net: Net, layers: Mapping[str, Layer]) -> dict[str, list[_Source]]:
        """What each input port of each layer reads.

        Raises:
            ModelFileError: an edge refers to what is not there, or a port has no edge or two.
        """
        found: dict[str, list[_Source | None]] = {layer.id: [None] * len(layer.inputs) for layer in net.layers}
        finder = _Finder()
        for edge in net.edges:
            for end in (edge.source, edge.target):
                if end not in layers:
                    raise self.invalid(f"an edge refers to layer {end!r}, which does not exist", edge.line)
            source, target = layers[edge.source], layers[edge.target]
            start = finder.index(source, source.outputs, edge.source_port, "output")
            slot = finder.index(target, target.inputs, edge.target_port, "input")
            if start is None:
                raise self.invalid(
                    f"an edge starts at {_label(source)}, which has no output port {edge.source_port!r}", edge.line
                )
            if slot is None:
                raise self.invalid(f"an edge ends at {_label(target)}, which has no input port {edge.target_port!r}", edge.line)
            if found[target.id][slot] is not None:
                raise self.invalid(f"two edges end at input port {edge.target_port!r} of {_label(target)}", edge.line)
            found[target.id][slot] = (source.id, start)
        return {layer.id: self.connected(layer, found[layer.id]) for layer in net.layers}

    def connected(self, layer: Layer, sources: Sequence[_Source | None]) -> list[_Source]:
        complete = [source for source in sources if source is not None]
        if len(complete) != len(sources):
            port = layer.inputs[sources.index(None)].id
            raise self.invalid(f"no edge ends at input port {port!r} of {_label(layer)}", layer.line)
        if layer.type == "Result" and not complete:
            raise self.invalid(f"{_label(layer)} has no input", layer.line)
        if layer.type == "Parameter" and len(layer.outputs) != 1:
            raise self.invalid(f"{_label(layer)} has {len(layer.outputs)} outputs, not one", layer.line)
        if layer.type in ("Const", "Constant") and len(layer.outputs) != 1:
            raise self.invalid(f"{_label(layer)} has {len(layer.outputs)} outputs, not one", layer.line)
        return complete

    def ordered(self, net: Net, links: Mapping[str, Sequence[_Source]]) -> list[Layer]:
        """Layers after the producers of what they read, otherwise in file order.

        Raises:
            ModelFileError: ``graph-cycle``.
        """
        positions = {layer.id: index for index, layer in enumerate(net.layers)}
        waiting = {layer_id: len(sources) for layer_id, sources in links.items()}
        readers: dict[str, list[str]] = {layer.id: [] for layer in net.layers}
        for layer_id, sources in links.items():
            for source, _ in sources:
                readers[source].append(layer_id)
        ready = [positions[layer_id] for layer_id, count in waiting.items() if not count]
        heapq.heapify(ready)
        order: list[Layer] = []
        while ready:
            layer = net.layers[heapq.heappop(ready)]
            order.append(layer)
            for reader in readers[layer.id]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heapq.heappush(ready, positions[reader])
        if len(order) < len(net.layers):
            raise self.cycle(net, links, {layer_id for layer_id, count in waiting.items() if count})
        return order

    def cycle(self, net: Net, links: Mapping[str, Sequence[_Source]], stuck: set[str]) -> ModelFileError:
        """The error that names one cycle: from any stuck layer, producers that are stuck too lead into one."""
        layers = {layer.id: layer for layer in net.layers}
        trail: dict[str, int] = {}
        at = next(layer.id for layer in net.layers if layer.id in stuck)
        while at not in trail:
            trail[at] = len(trail)
            at = next(source for source, _ in links[at] if source in stuck)
        members = [layers[layer_id] for layer_id in list(trail)[trail[at] :]]
        first = min(members, key=lambda layer: layer.line)
        route = ", ".join(_label(layer) for layer in members[:4]) + (", ..." if len(members) > 4 else "")
        return ModelFileError(self.path, "graph-cycle", f"layers read each other's results in a circle: {route}", first.line)

    # -- values ------------------------------------------------------------------------------------------------------------

    def parameter(self, layer: Layer, origin: Origin) -> Value:
        port = layer.outputs[0]
        dtype = element_type(layer.data.get("element_type", port.precision))
        shape = self.shape(layer) if "shape" in layer.data else port.dims
        friendly = (layer.name,) if self.version < 11 and not origin.scope and layer.name not in port.names else ()
        names = port.names + friendly
        return Value(names[0] if names else "", dtype, shape, names, origin=origin)

    def shape(self, layer: Layer) -> tuple[Dim, ...] | None:
        try:
            return parse_shape(layer.data["shape"])
        except ValueError as error:
            raise self.invalid(f"{_label(layer)} has a shape that cannot be read: {error}", layer.line) from error

    def constant(self, layer: Layer, origin: Origin) -> Value:
        dtype = element_type(layer.data.get("element_type", layer.outputs[0].precision))
        shape = self.shape(layer) if "shape" in layer.data else layer.outputs[0].dims
        static = tuple(dim for dim in shape or () if isinstance(dim, int))
        if shape is None or len(static) != len(shape):
            raise self.invalid(f"{_label(layer)} is a constant without a static shape", layer.line)
        tensor = self.weights.tensor(dtype, static, layer.data, layer.name, layer.line)
        names = layer.outputs[0].names
        return Value(names[0] if names else "", dtype, static, names, constant=tensor, origin=origin)

    def operators(self, layer: Layer, origin: Origin, inputs: list[Value], graph: Graph) -> list[Value]:
        """Lowers a layer into ``graph``; its operators become producers of its results and consumers of its operands."""
        outputs = [_result(port, origin) for port in layer.outputs]
        inner = (*origin.scope, layer.name)
        site = Site(layer, origin, inputs, outputs, lambda net, bound: self.body(net, bound, inner))
        try:
            lower(site)
        except InvalidLayerError as error:
            raise self.invalid(f"{_label(layer)} {error}", layer.line) from error
        for op in site.ops:
            for slot, value in enumerate(op.inputs):
                if value is not None:
                    value.consumers.append((op, slot))
        graph.ops.extend(site.ops)
        return outputs


class _Finder:
    """Finds ports by id; layers with many ports get an index, so that a wide Concat costs no quadratic search."""

    def __init__(self) -> None:
        self._indices: dict[tuple[str, str], dict[str, int]] = {}

    def index(self, layer: Layer, ports: Sequence[Port], wanted: str, side: str) -> int | None:
        if len(ports) <= _FEW_PORTS:
            return next((index for index, port in enumerate(ports) if port.id == wanted), None)
        key = (layer.id, side)
        if key not in self._indices:
            self._indices[key] = {port.id: index for index, port in enumerate(ports)}
        return self._indices[key].get(wanted)


def _result(port: Port, origin: Origin) -> Value:
    """The value at an output port; no dimensions means a scalar or an unknown rank, and is taken for the latter."""
    name = port.names[0] if port.names else ""
    return Value(name, element_type(port.precision), port.dims or None, port.names, origin=origin)


def _friendly(layer: Layer, port_id: str) -> str:
    """The name of a result without tensor names: its layer's, and its number where the layer has several."""
    if len(layer.outputs) == 1:
        return layer.name
    return f"{layer.name}.{next(index for index, port in enumerate(layer.outputs) if port.id == port_id)}"


def _operator(layer: Layer) -> str:
    return layer.type if layer.version.startswith("opset") or not layer.version else f"{layer.version}.{layer.type}"


def _label(layer: Layer) -> str:
    return f"layer {layer.name or layer.id!r} ({layer.type})"
