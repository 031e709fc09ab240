"""Small models that once raised a false alarm, one of each kind."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weight(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32), name)


def saved(path, nodes, inputs, outputs, *initializers):
    infos = [[helper.make_tensor_value_info(*entry) for entry in entries] for entries in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def recurrent(path, dims, *, direction="forward", **attributes):
    node = helper.make_node("GRU", ["x", "w", "r"], ["y", "h"], hidden_size=5, direction=direction, **attributes)
    return saved(
        path,
        [node],
        [("x", FLOAT, dims)],
        [("y", FLOAT, None), ("h", FLOAT, None)],
        weight("w", 1, 15, 4),
        weight("r", 1, 15, 5),
    )


@pytest.mark.parametrize("dims", [["steps", "batch", 4], [6, 3, 4], [3, 1, 4]])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_steps_come_first_in_a_recurrent_operator(dims, direction, tmp_path, bench):
    model = bench.check(recurrent(tmp_path / "m.onnx", dims, direction=direction))
    assert [output.batch for output in model.facts.outputs] == ["independent", "independent"]


def test_padded_steps_are_heard_backwards(tmp_path, bench):
    """The order of the axes decides where padding is looked for."""
    (y, h) = bench.check(recurrent(tmp_path / "m.onnx", ["steps", "batch", 4], direction="reverse")).facts.outputs
    assert (y.padding.right, h.padding.right) == ("leaks", "leaks")
    (y, h) = bench.check(recurrent(tmp_path / "n.onnx", ["steps", "batch", 4])).facts.outputs
    assert (y.padding.right, h.padding.right) == ("safe", "leaks")


def test_a_sequence_of_one_position(tmp_path, bench):
    nodes = [helper.make_node("Gather", ["table", "ids"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])]
    inputs, outputs = [("ids", INT64, [4, 1])], [("y", FLOAT, None)]
    model = bench.check(saved(tmp_path / "m.onnx", nodes, inputs, outputs, weight("table", 30, 8), weight("w", 8, 8)))
    assert model.facts.outputs[0].batch == "independent"


def test_values_that_attention_weighs_are_no_mask(tmp_path, bench):
    nodes = [
        helper.make_node("MatMul", ["q", "w"], ["queries"]),
        helper.make_node("MatMul", ["queries", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    inputs = [("q", FLOAT, [2, 6, 8]), ("k", FLOAT, [2, 8, 6]), ("v", FLOAT, [2, 6, 8])]
    model = bench.check(saved(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, None)], weight("w", 8, 8)))
    assert "mask" not in {entry.role for entry in model.facts.inputs}


def test_where_to_write_is_no_id(tmp_path, bench):
    nodes = [helper.make_node("ScatterElements", ["x", "write_indices", "u"], ["y"], axis=0)]
    inputs = [("x", FLOAT, [9]), ("write_indices", INT64, [3]), ("u", FLOAT, [3])]
    model = bench.check(saved(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, None)]))
    assert "misleading-input-name" not in {finding.rule for finding in model.findings}


def test_sizes_may_be_constant(tmp_path, bench):
    model = bench.check(
        saved(tmp_path / "m.onnx", [helper.make_node("Shape", ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", INT64, [2])])
    )
    assert {finding.severity.value for finding in model.findings if finding.rule == "constant-output"} <= {"note"}
