"""If, Loop and TensorIterator: layers that hold subgraphs and say in port maps how these are connected."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import Body, InvalidLayerError, Lowering, Site, UnmodelledError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.formats.openvino.xml import Net, Port
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]


def _body(site: Site, tag: str) -> Net:
    net = site.layer.bodies.get(tag)
    if net is None:
        raise InvalidLayerError(f"has no <{tag}>")
    return net


def _entries(site: Site, tag: str, side: str) -> list[dict[str, str]]:
    return [entry for entry in site.layer.maps.get(tag, []) if entry[""] == side]


def _key(entry: dict[str, str], name: str) -> str:
    if name not in entry:
        raise InvalidLayerError(f"has an entry without {name!r} in its port map")
    return entry[name]


def _position(ports: Sequence[Port], entry: dict[str, str], what: str) -> int:
    """Index of the port to which an entry of a port map refers."""
    wanted = _key(entry, "external_port_id")
    for index, port in enumerate(ports):
        if port.id == wanted:
            return index
    raise InvalidLayerError(f"has {what} port {wanted[:20]!r} in its port map but no such port")


def _number(entry: dict[str, str], name: str, default: int) -> int:
    text = entry.get(name, str(default))
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise InvalidLayerError(f"has {name}={text[:20]!r} in its port map, which is no integer")
    return int(text)


def _result(body: Body, layer_id: str) -> Value:
    if layer_id not in body.results:
        raise InvalidLayerError(f"maps the result {layer_id[:20]!r}, which its body does not have")
    return body.results[layer_id]


def _check_parameters(net: Net, mapped: Sequence[str]) -> None:
    """Raises InvalidLayerError unless exactly the parameters of the body are mapped."""
    parameters = {layer.id for layer in net.layers if layer.type == "Parameter"}
    for layer_id in mapped:
        if layer_id not in parameters:
            raise InvalidLayerError(f"maps the parameter {layer_id[:20]!r}, which its body does not have")
    missing = parameters.difference(mapped)
    if missing:
        raise InvalidLayerError(f"leaves the parameter {min(missing)[:20]!r} of its body unmapped")


def _if(site: Site) -> None:
    """Both branches read the outer values directly, in place of their parameters."""
    branches = {role: _branch(site, role) for role in ("then", "else")}
    op = site.emit("If", [site.operand(0)], site.outputs)
    op.bodies.update({role: body.graph for role, body in branches.items()})


def _branch(site: Site, role: str) -> Body:
    net, port_map = _body(site, f"{role}_body"), f"{role}_port_map"
    bound = {
        _key(entry, "internal_layer_id"): site.operand(_position(site.layer.inputs, entry, "input"))
        for entry in _entries(site, port_map, "input")
    }
    _check_parameters(net, list(bound))
    sources = {
        _position(site.layer.outputs, entry, "output"): _key(entry, "internal_layer_id")
        for entry in _entries(site, port_map, "output")
    }
    if len(sources) != len(site.outputs):
        raise InvalidLayerError(f"has {len(site.outputs)} outputs but its {role} branch yields {len(sources)}")
    body = site.lower_body(net, bound)
    body.graph.outputs = [_result(body, sources[index]) for index in range(len(site.outputs))]
    body.graph.output_names = [value.name for value in body.graph.outputs]
    return body


@dataclass(slots=True)
class _State:
    """A value carried from one iteration to the next; without a parameter it only leaves the last one."""

    result: str
    initial: Value | None = None
    parameter: str | None = None
    output: Value | None = None


@dataclass(slots=True)
class _Slice:
    """One iteration's share of a sliced operand or of a concatenated result."""

    layer_id: str
    value: Value
    axis: int
    direction: int


@dataclass(slots=True)
class _Wiring:
    """The port map of a Loop or TensorIterator, sorted by what its entries do."""

    states: list[_State] = field(default_factory=list)
    slices_in: list[_Slice] = field(default_factory=list)
    slices_out: list[_Slice] = field(default_factory=list)
    invariants: dict[str, Value] = field(default_factory=dict)
    iteration: str | None = None
    condition: str | None = None


def _slice(entry: dict[str, str], value: Value) -> _Slice:
    """Raises UnmodelledError unless single steps over the whole axis are meant, forwards or backwards."""
    stride = _number(entry, "stride", 1)
    forwards = (_number(entry, "start", 0), _number(entry, "end", -1), stride) == (0, -1, 1)
    backwards = (_number(entry, "start", -1), _number(entry, "end", 0), stride) == (-1, 0, -1)
    if _number(entry, "part_size", 1) != 1 or not (forwards or backwards):
        raise UnmodelledError("it slices in other steps than single ones over the whole axis")
    return _Slice(_key(entry, "internal_layer_id"), value, _number(entry, "axis", 0), int(backwards))


def _wiring(site: Site) -> _Wiring:
    wiring = _Wiring()
    _sort_inputs(site, wiring)
    _sort_outputs(site, wiring)
    return wiring


def _sort_inputs(site: Site, wiring: _Wiring) -> None:
    carried = {_key(edge, "to-layer"): _key(edge, "from-layer") for edge in site.layer.maps.get("back_edges", [])}
    for entry in _entries(site, "port_map", "input"):
        layer_id = _key(entry, "internal_layer_id")
        if entry.get("purpose") == "current_iteration":
            wiring.iteration = layer_id
            continue
        value = site.operand(_position(site.layer.inputs, entry, "input"))
        if "axis" in entry:
            wiring.slices_in.append(_slice(entry, value))
        elif layer_id in carried:
            wiring.states.append(_State(carried[layer_id], value, layer_id))
        else:
            wiring.invariants[layer_id] = value


def _sort_outputs(site: Site, wiring: _Wiring) -> None:
    for entry in _entries(site, "port_map", "output"):
        layer_id = _key(entry, "internal_layer_id")
        if entry.get("purpose") == "execution_condition":
            wiring.condition = layer_id
            continue
        value = site.outputs[_position(site.layer.outputs, entry, "output")]
        if "axis" in entry:
            wiring.slices_out.append(_slice(entry, value))
            continue
        state = next((s for s in wiring.states if s.result == layer_id and s.output is None), None)
        if state is None:
            state = _State(layer_id)
            wiring.states.append(state)
        state.output = value


def _iterate(site: Site) -> None:
    """Loop has a trip count and a condition before its other operands; TensorIterator runs along its slices."""
    net, wiring = _body(site, "body"), _wiring(site)
    is_loop = site.layer.type.casefold() == "loop"
    if not is_loop and not wiring.slices_in:
        raise UnmodelledError("it has no slices to iterate over")
    named = [state.parameter for state in wiring.states] + [wiring.iteration]
    mapped = [*wiring.invariants, *(part.layer_id for part in wiring.slices_in), *(name for name in named if name is not None)]
    _check_parameters(net, mapped)
    body = site.lower_body(net, wiring.invariants)
    _connect(site, wiring, body)
    op = site.emit(
        "Loop",
        [
            _trip_count(site) if is_loop else None,
            site.operand(1) if is_loop else None,
            *(state.initial for state in wiring.states),
            *(part.value for part in wiring.slices_in),
        ],
        [*(state.output or site.temporary() for state in wiring.states), *(part.value for part in wiring.slices_out)],
        carried=len(wiring.states),
        keep_axis=True,
        scan_input_axes=[part.axis for part in wiring.slices_in],
        scan_input_directions=[part.direction for part in wiring.slices_in],
        scan_output_axes=[part.axis for part in wiring.slices_out],
        scan_output_directions=[part.direction for part in wiring.slices_out],
    )
    op.bodies["body"] = body.graph


def _trip_count(site: Site) -> Value | None:
    """The trip count; a negative one means no bound and is left out."""
    known = site.static(0)
    return None if known is not None and known.size == 1 and int(known.reshape(-1)[0]) < 0 else site.operand(0)


def _connect(site: Site, wiring: _Wiring, body: Body) -> None:
    """Puts the body's inputs and outputs into the order of the canonical Loop."""
    iteration = body.parameters[wiring.iteration] if wiring.iteration is not None else site.temporary(DType.I64, ())
    body.graph.inputs = [iteration, site.temporary(DType.BOOL, ())]
    for state in wiring.states:
        result = _result(body, state.result)
        carried = site.temporary(result.dtype, result.shape)
        body.graph.inputs.append(body.parameters[state.parameter] if state.parameter is not None else carried)
    body.graph.inputs += [body.parameters[part.layer_id] for part in wiring.slices_in]
    goes_on = site.constant(np.True_, DType.BOOL) if wiring.condition is None else _result(body, wiring.condition)
    results = [*(state.result for state in wiring.states), *(part.layer_id for part in wiring.slices_out)]
    body.graph.outputs = [goes_on, *(_result(body, layer_id) for layer_id in results)]
    body.graph.output_names = [value.name for value in body.graph.outputs]


LOWERINGS: dict[str, Lowering] = {"if": _if, "loop": _iterate, "tensoriterator": _iterate}
