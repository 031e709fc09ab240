"""Which axis runs over the rows of a batch, in inputs and outputs that are no text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

import wirelint

FLOAT = TensorProto.FLOAT
RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def saved(path: Path, nodes, inputs, outputs, tables) -> Path:
    declared = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs]
    made = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs]
    graph = helper.make_graph(
        nodes, "g", declared, made, [numpy_helper.from_array(array, name) for name, array in tables.items()]
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def rows_depend(path: Path, axes: dict[str, int | None], sizes: dict[str, tuple[int, ...]], out_axis: int) -> bool:
    """Whether row 0 of the first output changes in ONNX Runtime when every other row of the inputs does."""
    session = onnxruntime.InferenceSession(path)
    first = {name: weights(*shape) for name, shape in sizes.items()}
    second = {}
    for name, array in first.items():
        axis = axes[name]
        kept = (
            array
            if axis is None
            else np.concatenate(
                [np.take(array, [0], axis), weights(*array.shape).take(range(1, array.shape[axis]), axis)], axis
            )
        )
        second[name] = kept.astype(np.float32)
    one, other = session.run(None, first)[0], session.run(None, second)[0]
    return not np.allclose(np.take(one, 0, out_axis), np.take(other, 0, out_axis))


def cell(path: Path, batch: object, *, mixed: bool = False) -> Path:
    """A gated cell that keeps two states along a first axis, as voice detectors do."""
    state = [2, batch, 4]
    nodes = [
        helper.make_node("Gather", ["state", "zero"], ["h"], axis=0),
        helper.make_node("Gather", ["state", "one"], ["c"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["drive"]),
        helper.make_node("MatMul", ["h", "u"], ["recur"]),
        helper.make_node("Add", ["drive", "recur"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["gate"]),
        helper.make_node("Mul", ["gate", "c"], ["c1"]),
        helper.make_node("Tanh", ["c1"], ["h1"]),
        helper.make_node("Unsqueeze", ["h1", "axis"], ["hu"]),
        helper.make_node("Unsqueeze", ["c1", "axis"], ["cu"]),
        helper.make_node("Concat", ["hu", "cu"], ["both"], axis=0),
        helper.make_node("ReduceMean", ["both"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Add" if mixed else "Sub", ["both", "mean" if mixed else "none"], ["state_n"]),
    ]
    tables = {
        "w": weights(6, 4), "u": weights(4, 4), "none": np.zeros(1, np.float32),
        "zero": np.array(0), "one": np.array(1), "axis": np.array([0]),
    }  # fmt: skip
    return saved(path, nodes, [("x", [batch, 6]), ("state", state)], [("state_n", [None, None, None])], tables)


@pytest.mark.parametrize("batch", ["batch", None], ids=["named", "unnamed"])
@pytest.mark.parametrize("mixed", [False, True])
def test_two_states_are_not_two_rows(batch, mixed, tmp_path):
    path = cell(tmp_path / "cell.onnx", batch, mixed=mixed)
    measured = rows_depend(path, {"x": 0, "state": 1}, {"x": (3, 6), "state": (2, 3, 4)}, 1)
    assert measured is mixed
    assert wirelint.facts(path).outputs[0].batch == ("mixes" if mixed else "independent")


def test_settings_belong_to_no_row(tmp_path):
    """Speech synthesis takes three scales beside the text."""
    nodes = [
        helper.make_node("Gather", ["scales", "zero"], ["scale"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Mul", ["h", "scale"], ["y"]),
    ]
    tables = {"w": weights(6, 4), "zero": np.array(0)}
    inputs = [("x", ["batch", "length", 6]), ("scales", [3])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, [("y", ["batch", "length", 4])], tables)
    assert not rows_depend(path, {"x": 0, "scales": None}, {"x": (3, 5, 6), "scales": (3,)}, 0)
    assert wirelint.facts(path).outputs[0].batch == "independent"


def test_steps_of_one_stream_are_no_rows(tmp_path):
    """Frames along the first axis, and recurrent states that are declared for a single row."""
    nodes = [
        helper.make_node("MatMul", ["x", "p"], ["h"]),
        helper.make_node("Unsqueeze", ["h", "axis"], ["steps"]),
        helper.make_node("LSTM", ["steps", "w", "r", "", "", "h0", "c0"], ["", "hn", "cn"], hidden_size=4),
    ]
    tables = {"p": weights(6, 4), "axis": np.array([1]), "w": weights(1, 16, 4), "r": weights(1, 16, 4)}
    inputs = [("x", ["steps", 6]), ("h0", [1, 1, 4]), ("c0", [1, 1, 4])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, [("hn", [1, 1, 4])], tables)
    report = wirelint.check(path)
    assert "batch-mixing" not in {finding.rule for _, finding in report.findings()}


def test_keys_and_values_that_are_stacked_are_not_two_rows(tmp_path):
    """Caches of ``[2, batch, heads, past, size]``, as the first exports of GPT-2 had them."""
    nodes = [
        helper.make_node("Gather", ["t", "ids"], ["h"]),
        helper.make_node("Unsqueeze", ["h", "heads"], ["q"]),
        helper.make_node("Gather", ["past", "zero"], ["past_k"], axis=0),
        helper.make_node("Gather", ["past", "one"], ["past_v"], axis=0),
        helper.make_node("Concat", ["past_k", "q"], ["k"], axis=2),
        helper.make_node("Concat", ["past_v", "q"], ["v"], axis=2),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
        helper.make_node("Unsqueeze", ["k", "first"], ["ku"]),
        helper.make_node("Unsqueeze", ["v", "first"], ["vu"]),
        helper.make_node("Concat", ["ku", "vu"], ["present"], axis=0),
    ]
    tables = {
        "t": weights(50, 8), "heads": np.array([1]), "first": np.array([0]), "zero": np.array(0), "one": np.array(1),
    }  # fmt: skip
    declared = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
        helper.make_tensor_value_info("past", FLOAT, [2, "batch", 1, "past", 8]),
    ]
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("y", "present")]
    graph = helper.make_graph(
        nodes, "g", declared, made, [numpy_helper.from_array(array, name) for name, array in tables.items()]
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    facts = wirelint.facts(tmp_path / "m.onnx")
    assert [entry.role for entry in facts.inputs] == ["ids", "past"]
    assert [output.batch for output in facts.outputs] == ["independent", "independent"]
