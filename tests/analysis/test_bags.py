"""Bags of ids: the ids of all rows along one axis, and an input that says where those of each row begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model
from openvino import opset15 as op

from wirelint.analysis import analyse
from wirelint.formats import load

IDS = np.array([3, 4, 5, 6, 7, 8])
OFFSETS = np.array([0, 4])
WORDS = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)


def node(kind: str, inputs: str, output: str, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def onnx_bags(path: Path, *, over_all: bool) -> Path:
    """The loop that PyTorch's exporter writes for an EmbeddingBag; ``over_all`` adds the mean over the ids of all rows."""
    body = helper.make_graph(
        [
            node("Gather", "bounds i", "begin", axis=0),
            node("Gather", "ends i", "end", axis=0),
            node("Unsqueeze", "begin zero", "first"),
            node("Unsqueeze", "end zero", "last"),
            node("Slice", "ids first last zero", "own"),
            node("Gather", "words own", "rows"),
            node("ReduceMean", "rows", "bag", axes=[0], keepdims=0),
            node("Identity", "c", "on"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("bag", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        node("Shape", "ids", "count"),
        node("Concat", "offsets count", "bounds", axis=0),
        node("Slice", "bounds one endless zero", "ends"),
        node("Shape", "offsets", "shape"),
        node("Squeeze", "shape zero", "trips"),
        helper.make_node("Loop", ["trips", "go"], ["bags"], body=body),
        node("Gather", "words ids", "every"),
        node("ReduceMean", "every", "mean", axes=[0], keepdims=1),
        node("Add" if over_all else "Identity", "bags mean" if over_all else "bags", "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"]),
            helper.make_tensor_value_info("offsets", TensorProto.INT64, ["rows"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
        [
            numpy_helper.from_array(WORDS, "words"),
            numpy_helper.from_array(np.array([0]), "zero"),
            numpy_helper.from_array(np.array([1]), "one"),
            numpy_helper.from_array(np.array([2**62]), "endless"),
            numpy_helper.from_array(np.array(True), "go"),
        ],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def openvino_bags(path: Path) -> Path:
    ids, offsets = op.parameter([-1], np.int64, name="ids"), op.parameter([-1], np.int64, name="offsets")
    bags = op.embedding_bag_offsets(op.constant(WORDS), ids, offsets)
    for parameter in (ids, offsets):
        parameter.output(0).set_names({parameter.friendly_name})
    ov.save_model(ov.Model([bags], [ids, offsets]), path)
    return path


def first_bag_moves(path: Path) -> bool:
    """Whether the first row's result changes with the ids of the second."""
    changed = np.concatenate([IDS[:4], IDS[4:] + 9])
    if path.suffix == ".onnx":
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        one, other = (session.run(None, {"ids": ids, "offsets": OFFSETS})[0][0] for ids in (IDS, changed))
    else:
        compiled = ov.Core().compile_model(path, "CPU")
        one, other = (compiled({"ids": ids, "offsets": OFFSETS})[0][0].copy() for ids in (IDS, changed))
    return not np.array_equal(one, other)


def facts_of(path: Path):
    facts = analyse(load(path))
    return [entry.role for entry in facts.inputs], facts.outputs[0], facts.unmodelled


@pytest.mark.parametrize("build", [lambda path: onnx_bags(path, over_all=False), openvino_bags], ids=["onnx", "openvino"])
def test_each_bag_is_a_row_of_its_own(tmp_path, build):
    path = build(tmp_path / ("model.onnx" if build is not openvino_bags else "model.xml"))
    roles, output, unmodelled = facts_of(path)
    assert roles == ["ids", "lengths"]
    assert unmodelled == ()
    assert (output.padding.right, output.batch) == ("safe", "independent")
    assert set(output.depends_on) == {"ids", "lengths"}
    assert not first_bag_moves(path)


def test_a_mean_over_the_ids_of_all_bags_mixes_rows(tmp_path):
    path = onnx_bags(tmp_path / "model.onnx", over_all=True)
    roles, output, _ = facts_of(path)
    assert roles == ["ids", "lengths"]
    assert output.batch == "mixes"
    assert first_bag_moves(path)
