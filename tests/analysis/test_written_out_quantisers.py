"""A dynamic quantiser that is written out is taken as one: what its scale lets through is no leak to shout about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from wirelint.analysis import analyse
from wirelint.facts import OutputFacts
from wirelint.formats import load


def node(kind: str, inputs: str, output: str, **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


ASYMMETRIC = [
    node("ReduceMin", "h", "low0", keepdims=0),
    node("ReduceMax", "h", "high0", keepdims=0),
    node("Min", "low0 zero", "low"),
    node("Max", "high0 zero", "high"),
    node("Sub", "high low", "range"),
    node("Div", "range levels", "scale"),
    node("Div", "low scale", "offset"),
    node("Round", "offset", "rounded"),
    node("Neg", "rounded", "point"),
    node("Div", "h scale", "steps"),
    node("Round", "steps", "whole"),
    node("Add", "whole point", "moved"),
    node("Clip", "moved zero levels", "code"),
    node("Sub", "code point", "back"),
    node("Mul", "back scale", "y"),
]
SYMMETRIC = [
    node("Abs", "h", "size"),
    node("Reshape", "size flat", "line"),
    node("ReduceMax", "line", "most", keepdims=0),
    node("Max", "most tiny", "above"),
    node("Div", "above levels", "scale"),
    node("Reciprocal", "scale", "inverse"),
    node("Mul", "h inverse", "steps"),
    node("Round", "steps", "whole"),
    node("Cast", "whole", "code", to=TensorProto.INT8),
    node("Cast", "code", "again", to=TensorProto.FLOAT),
    node("Mul", "again scale", "y"),
]
BY_LINEAR_OPERATORS = [
    node("Abs", "h", "size"),
    node("ReduceMax", "size", "most", keepdims=0),
    node("Div", "most levels", "scale"),
    node("QuantizeLinear", "h scale origin", "code"),
    node("DequantizeLinear", "code scale origin", "y"),
]
PER_TOKEN = [
    node("Abs", "h", "size"),
    node("ReduceMax", "size", "most", axes=[-1], keepdims=1),
    node("Div", "most levels", "scale"),
    node("Div", "h scale", "steps"),
    node("Round", "steps", "whole"),
    node("Mul", "whole scale", "y"),
]
NO_QUANTISER = [
    node("Abs", "h", "size"),
    node("ReduceMax", "size", "most", keepdims=0),
    node("Div", "h most", "y"),
]
ALSO_READ = [
    *SYMMETRIC[:-1],
    node("Mul", "again scale", "hidden"),
    node("Unsqueeze", "most first", "row"),
    node("MatMul", "row column", "told"),
    node("Add", "hidden told", "y"),
]


def model(path: Path, nodes) -> Path:
    words = np.random.default_rng(5).normal(size=(50, 8)).astype(np.float32)
    constants = [
        numpy_helper.from_array(words, "words"),
        numpy_helper.from_array(np.float32(0), "zero"),
        numpy_helper.from_array(np.float32(1e-6), "tiny"),
        numpy_helper.from_array(np.float32(255), "levels"),
        numpy_helper.from_array(np.int8(0), "origin"),
        numpy_helper.from_array(np.array([-1]), "flat"),
        numpy_helper.from_array(np.array([0]), "first"),
        numpy_helper.from_array(np.ones((1, 8), np.float32), "column"),
    ]
    graph = helper.make_graph(
        [node("Gather", "words ids", "h"), *nodes],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def output_of(path: Path) -> OutputFacts:
    return analyse(load(path)).outputs[0]


def row_moves_with_the_other(path: Path) -> bool:
    """What ONNX Runtime makes of the first row, beside one and beside another second row."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    rows = np.arange(12).reshape(2, 6)
    first = [session.run(None, {"ids": np.concatenate([rows[:1], rows[1:] + more])})[0][0] for more in range(30)]
    return any(not np.array_equal(first[0], other) for other in first[1:])


@pytest.mark.parametrize("nodes", [ASYMMETRIC, SYMMETRIC, BY_LINEAR_OPERATORS], ids=["asymmetric", "symmetric", "linear"])
def test_one_scale_for_all_rows_is_a_weak_dependence(tmp_path, nodes):
    path = model(tmp_path / "model.onnx", nodes)
    output = output_of(path)
    assert (output.padding.right, output.scale_right, output.cause_right) == ("leaks", True, "quantiser-scale")
    assert (output.batch, output.rows_by_scale) == ("mixes", True)
    assert row_moves_with_the_other(path)


def test_a_scale_per_token_joins_nothing(tmp_path):
    path = model(tmp_path / "model.onnx", PER_TOKEN)
    output = output_of(path)
    assert (output.padding.right, output.batch) == ("safe", "independent")
    assert not row_moves_with_the_other(path)


@pytest.mark.parametrize("nodes", [NO_QUANTISER, ALSO_READ], ids=["nothing rounds", "the range is projected too"])
def test_an_extreme_that_is_no_range_of_a_quantiser_mixes_rows(tmp_path, nodes):
    path = model(tmp_path / "model.onnx", nodes)
    output = output_of(path)
    assert (output.padding.right, output.scale_right) == ("leaks", False)
    assert (output.batch, output.rows_by_scale) == ("mixes", False)
    assert row_moves_with_the_other(path)
