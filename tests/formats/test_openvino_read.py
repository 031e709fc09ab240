"""Reading an IR gives what OpenVINO reports: inputs, outputs, names, types, shapes, order; and says where all stands."""

from __future__ import annotations

import re

import numpy as np
import openvino as ov
import openvino.opset16 as op
import pytest

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.formats.openvino import read
from wirelint.ops.vocabulary import VOCABULARY


def const(values, dtype=np.int64):
    return op.constant(np.array(values, dtype))


def save(model, folder, name="model"):
    path = folder / f"{name}.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    return path


def encoder(*, passes_mask=True):
    """Two named inputs, one unnamed of dynamic rank, one of bounded size, one that nothing reads."""
    ids = op.parameter([-1, ov.Dimension(1, 64)], np.int64, name="ids_layer")
    mask = op.parameter([2, -1], np.float32, name="mask_layer")
    rest = op.parameter(ov.PartialShape.dynamic(), np.int32, name="rest_layer")
    unread = op.parameter([], bool, name="unread_layer")
    ids.output(0).get_tensor().set_names({"input_ids", "with,comma"})
    mask.output(0).get_tensor().set_names({"attention_mask"})
    rows = op.gather(const(np.arange(12).reshape(6, 2), np.float32), ids, const(0))
    halves = op.split(rows, const(-1), 2)
    results = [op.result(op.convert(rest, "f32")), *(op.result(half) for half in halves.outputs())]
    results[1].output(0).get_tensor().set_names({"first", "again"})
    results[2].output(0).get_tensor().set_names({"second"})
    results.append(op.result(mask if passes_mask else op.relu(mask)))
    return ov.Model(results, [ids, mask, rest, unread], "encoder")


def spelled(shape):
    return "[...]" if shape is None else "[" + ",".join("?" if dim is None else str(dim) for dim in shape) + "]"


OWN_NAMES = {"boolean": "bool", "dynamic": "unknown"}


def assert_parity(path):
    """Inputs and outputs as ``read_model`` reports them; a bounded dimension counts as dynamic."""
    model, seen = read(path), ov.Core().read_model(path)
    assert len(model.graph.inputs) == len(seen.inputs)
    for value, port in zip(model.graph.inputs, seen.inputs, strict=True):
        assert set(value.names) == set(port.names)
        assert value.name == (value.names[0] if value.names else "")
        assert value.origin.name == port.node.friendly_name
        assert spelled(value.shape) == re.sub(r"\d*\.\.\d+", "?", str(port.partial_shape))
        assert value.dtype.value == OWN_NAMES.get(port.element_type.to_string(), port.element_type.to_string())
    assert len(model.graph.outputs) == len(model.graph.output_names) == len(seen.outputs)
    for value, name, port in zip(model.graph.outputs, model.graph.output_names, seen.outputs, strict=True):
        assert set(port.names) <= set(value.names)
        assert not port.names or name in port.names
    return model


def test_inputs_and_outputs_are_those_that_openvino_reports(tmp_path):
    model = assert_parity(save(encoder(), tmp_path))
    assert [value.shape for value in model.graph.inputs] == [(None, None), (2, None), None, ()]
    assert "with,comma" in model.graph.inputs[0].names
    assert model.graph.output_names[2] == "second"


def test_order_is_that_of_the_layers_in_the_file(tmp_path):
    path = save(encoder(), tmp_path)
    text = path.read_text()
    layers = re.findall(r"\t\t<layer .*?</layer>\n", text, re.DOTALL)
    head, tail = text[: text.index(layers[0])], text[text.index(layers[-1]) + len(layers[-1]) :]
    path.write_text(head + "".join(reversed(layers)) + tail)
    model = assert_parity(path)
    assert [value.origin.name for value in model.graph.inputs] == ["unread_layer", "rest_layer", "mask_layer", "ids_layer"]
    seen = set()
    for node in model.graph.ops:
        assert all(value.producer is None or value.producer in seen for value in node.inputs)
        seen.add(node)


def test_friendly_names_were_tensor_names_until_version_10(tmp_path):
    path = save(encoder(passes_mask=False), tmp_path)
    path.write_text(path.read_text().replace('version="11"', 'version="10"'))
    model = assert_parity(path)
    assert model.ir_version == 10
    assert "ids_layer" in model.graph.inputs[0].names


def test_an_output_without_any_name_goes_by_its_producer(tmp_path):
    path = save(encoder(), tmp_path)
    text = re.sub(r' (output_)?names="[^"]*"', "", path.read_text())
    path.write_text(text)
    model = assert_parity(path)
    assert model.graph.inputs[0].name == ""
    producer = model.graph.outputs[0].producer.origin.name
    assert model.graph.output_names[0] == producer
    split = model.graph.outputs[1].producer.origin.name
    assert model.graph.output_names[1:3] == [f"{split}.0", f"{split}.1"]


def test_lines_are_those_of_the_layers(tmp_path):
    path = save(encoder(), tmp_path)
    lines = path.read_text().splitlines()
    graph = read(path).graph
    for origin in [value.origin for value in graph.inputs] + [node.origin for node in graph.ops]:
        assert f'name="{origin.name}"' in lines[origin.line - 1]
        assert f'type="{origin.op_type}"' in lines[origin.line - 1]


def test_lines_stay_right_beyond_65535(tmp_path):
    path = save(encoder(), tmp_path)
    path.write_text(path.read_text().replace("<layers>", "<layers>" + "\n" * 100_000))
    origin = read(path).graph.ops[0].origin
    assert origin.line > 100_000
    assert f'name="{origin.name}"' in path.read_text().splitlines()[origin.line - 1]


def test_the_model_says_who_wrote_it(tmp_path):
    model = encoder()
    model.set_rt_info("2024.6.0-17404", "Runtime_version")
    model.set_rt_info("pytorch", ["conversion_parameters", "framework"])
    model.set_rt_info("why not", ["optimum", "a key: with blanks"])
    found = read(save(model, tmp_path))
    assert (found.format, found.producer, found.producer_version) == ("openvino-ir", "openvino", "2024.6.0-17404")
    assert found.metadata["conversion_parameters.framework"] == "pytorch"
    assert "why not" in found.metadata.values()
    assert found.opsets == {"opset1": 0, "opset8": 0}


def test_dynamic_element_types_are_unknown(tmp_path):
    x = op.parameter([2], ov.Type.dynamic, name="x")
    model = assert_parity(save(ov.Model([op.convert(x, "f32")], [x], "m"), tmp_path))
    assert model.graph.inputs[0].dtype is DType.UNKNOWN


def test_consumers_and_producers_agree(tmp_path):
    graph = read(save(encoder(), tmp_path)).graph
    for node in graph.walk():
        assert all((node, slot) in value.consumers for slot, value in enumerate(node.inputs) if value is not None)
        assert all(value.producer is node for value in node.outputs)
    assert graph.inputs[3].consumers == []


def test_states_keep_their_variable(tmp_path):
    x = op.parameter([1, 4], np.float32, name="x")
    variable = "Past.0"
    read_value = op.read_value(const(np.zeros((1, 4)), np.float32), variable, ov.Type.f32, [1, 4])
    total = op.add(read_value, x)
    model = ov.Model(results=[op.result(total)], sinks=[op.assign(total, variable)], parameters=[x], name="stateful")
    graph = read(save(model, tmp_path)).graph
    states = {node.kind: node for node in graph.ops if node.attrs.get("variable") == "Past.0"}
    assert set(states) == {"ReadValue", "Assign"}
    assert states["Assign"].inputs[0] is states["ReadValue"].outputs[0].consumers[0][0].outputs[0]


RECURRENT = {
    "LSTM": ("lstm_sequence", 4, 2),
    "GRU": ("gru_sequence", 3, 1),
    "RNN": ("rnn_sequence", 1, 1),
}


@pytest.mark.parametrize("kind", RECURRENT)
def test_sequences_are_batch_first_and_keep_their_lengths(kind, tmp_path):
    builder, gates, states = RECURRENT[kind]
    x, lengths = op.parameter([2, 5, 3], np.float32, name="x"), op.parameter([2], np.int64, name="lengths")
    initial = [const(np.zeros((2, 2, 4)), np.float32) for _ in range(states)]
    weights = [const(np.zeros((2, gates * 4, width)), np.float32) for width in (3, 4)]
    bias = const(np.zeros((2, gates * 4)), np.float32)
    node = getattr(op, builder)(x, *initial, lengths, *weights, bias, 4, "bidirectional")
    graph = read(save(ov.Model(node.outputs(), [x, lengths], "m"), tmp_path)).graph
    recurrent = next(found for found in graph.ops if found.kind == kind)
    assert recurrent.attrs == {"direction": "bidirectional", "hidden_size": 4, "layout": 1}
    names = VOCABULARY[kind].operands
    assert recurrent.inputs[names.index("x")] is graph.inputs[0]
    assert recurrent.inputs[names.index("sequence_lens?")] is graph.inputs[1]
    assert recurrent.inputs[names.index("w")].shape == (2, gates * 4, 3)
    assert recurrent.inputs[names.index("initial_h?")].shape == (2, 2, 4)
    turned = graph.outputs[0].producer
    assert (turned.kind, turned.attrs["perm"], turned.inputs[0]) == ("Transpose", [0, 2, 1, 3], recurrent.outputs[0])
    assert recurrent.outputs[1:] == graph.outputs[1:]


def test_cells_take_one_step(tmp_path):
    x, h, c = (op.parameter(shape, np.float32) for shape in ([2, 3], [2, 4], [2, 4]))
    w, r, b = (const(np.zeros(shape), np.float32) for shape in ((16, 3), (16, 4), (16,)))
    node = op.lstm_cell(x, h, c, w, r, b, 4)
    graph = read(save(ov.Model(node.outputs(), [x, h, c], "m"), tmp_path)).graph
    assert [(found.kind, found.attrs) for found in graph.ops] == [("LSTMCell", {"hidden_size": 4})]
    assert graph.ops[0].inputs[:3] == graph.inputs


def test_attention_operands(tmp_path):
    q, m = op.parameter([-1, 2, -1, 8], np.float32), op.parameter([-1, 1, -1, -1], np.float32)
    masked = op.scaled_dot_product_attention(q, q, q, m, op.convert(const(0.25, np.float16), "f32"))
    graph = read(save(ov.Model([masked], [q, m], "m"), tmp_path)).graph
    attention = next(node for node in graph.ops if node.kind == "Attention")
    assert attention.attrs == {"causal": "none", "scale": 0.25}
    assert attention.inputs == [graph.inputs[0]] * 3 + [graph.inputs[1]]


def test_shapes_tell_the_axis_of_a_gather_whose_weights_are_missing(tmp_path):
    path = save(encoder(), tmp_path)
    path.with_suffix(".bin").unlink()
    model = read(path)
    gather = next(node for node in model.graph.ops if node.kind == "Gather")
    split = next(node for node in model.graph.ops if node.kind == "Split")
    assert (gather.attrs["axis"], split.attrs["axis"]) == (0, 2)


def test_extensions_are_opaque(tmp_path):
    path = save(encoder(), tmp_path)
    text = path.read_text().replace('type="Split" version="opset1"', 'type="Split" version="extension"')
    path.write_text(text)
    graph = read(path).graph
    opaque = next(node for node in graph.ops if node.kind == "Opaque")
    assert opaque.origin.op_type == "extension.Split"
    assert len(opaque.inputs) == len(opaque.outputs) == 2


BROKEN = {
    "edge from nowhere": (r'from-layer="\d+"', 'from-layer="77"', "does not exist"),
    "edge to nowhere": (r'to-layer="\d+"', 'to-layer="77"', "does not exist"),
    "edge from no port": (r'from-port="\d+"', 'from-port="9"', "no output port"),
    "edge to no port": (r'to-port="\d+"', 'to-port="9"', "no input port"),
    "missing edge": (r"<edge [^>]*>", "", "no edge ends"),
    "two edges": (r"(<edge [^>]*>)", r"\1\1", "two edges"),
    "duplicate id": (r'layer id="1"', 'layer id="0"', "two layers"),
    "no type": (r' type="Gather"', "", "no attribute 'type'"),
    "no id": (r'layer id="1"', "layer", "no attribute 'id'"),
    "edge without source": (r' from-layer="\d+"', "", "no attribute 'from-layer'"),
    "attribute of the wrong kind": (r'num_splits="2"', 'num_splits="two"', "no integer"),
    "attribute that contradicts": (r'num_splits="2"', 'num_splits="3"', "splits into 3"),
    "shape of a parameter": (r'shape="2,\?"', 'shape="2,x"', "shape"),
    "shape of a constant": (r'shape="6, 2"', 'shape="6, ?"', "static shape"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graphs_are_refused_with_their_line(name, tmp_path):
    pattern, replacement, message = BROKEN[name]
    path = save(encoder(), tmp_path)
    text = path.read_text()
    changed = re.sub(pattern, replacement, text, count=1)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(ModelFileError, match=message) as caught:
        read(path)
    assert caught.value.rule == "invalid-graph"
    assert caught.value.line is not None
    assert "\n" not in str(caught.value)


def test_a_cycle_is_named_with_its_layers(tmp_path):
    x = op.parameter([2], np.float32, name="x")
    first = op.add(x, x, name="first")
    second = op.relu(first)
    second.set_friendly_name("second")
    path = save(ov.Model([second], [x], "m"), tmp_path)
    text = path.read_text()
    edge = '<edge from-layer="0" from-port="0" to-layer="1" to-port="1" />'
    assert edge in text
    path.write_text(text.replace(edge, '<edge from-layer="2" from-port="1" to-layer="1" to-port="1" />'))
    with pytest.raises(ModelFileError, match=r"second.*first|first.*second") as caught:
        read(path)
    assert caught.value.rule == "graph-cycle"
    assert 'name="first"' in path.read_text().splitlines()[caught.value.line - 1]


def test_unmapped_body_parameters_are_refused(tmp_path):
    condition, x, inner, other = op.parameter([], bool), *(op.parameter([2], np.float32) for _ in range(3))
    branching = op.if_op(condition)
    then_body, else_body = ov.Model([op.relu(inner)], [inner], "then"), ov.Model([op.abs(other)], [other], "else")
    branching.set_then_body(then_body)
    branching.set_else_body(else_body)
    branching.set_input(x.output(0), inner, other)
    path = save(ov.Model([branching.set_output(then_body.results[0], else_body.results[0])], [condition, x], "m"), tmp_path)
    text = re.sub(r'<input external_port_id="1" internal_layer_id="0" />', "", path.read_text(), count=1)
    path.write_text(text)
    with pytest.raises(ModelFileError, match="unmapped") as caught:
        read(path)
    assert caught.value.rule == "invalid-graph"


def test_a_wide_concat_is_no_quadratic_search(tmp_path):
    x = op.parameter([2, 1], np.float32, name="x")
    path = save(ov.Model([op.concat([x] * 3000, 1)], [x], "m"), tmp_path)
    graph = read(path).graph
    assert graph.ops[0].inputs == [graph.inputs[0]] * 3000
