"""Rows that are read at a marker which each of them has once, as BART's classifier reads its last end-of-text token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper, save_model

from wirelint.analysis import analyse
from wirelint.formats import load

END = 2
WORDS = np.random.default_rng(3).normal(size=(30, 4)).astype(np.float32)


def reader(path: Path, *, mean: bool = False) -> Path:
    """``hidden[ids == END].view(batch, -1, width)[:, -1]``, and with ``mean`` less the mean over the batch."""
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("Equal", ["ids", "end"], ["marked"]),
        helper.make_node("NonZero", ["marked"], ["found"]),
        helper.make_node("Transpose", ["found"], ["where"], perm=[1, 0]),
        helper.make_node("GatherND", ["h", "where"], ["picked"]),
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["grouped"], axis=0),
        helper.make_node("Reshape", ["picked", "grouped"], ["apart"]),
        helper.make_node("Gather", ["apart", "last"], ["read"], axis=1),
        helper.make_node("ReduceMean", ["read"], ["average"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["read", "average"] if mean else ["read", "nothing"], ["y"]),
    ]
    held = {
        "words": WORDS, "end": np.array(END), "zero": np.array([0]), "rest": np.array([-1, 4]), "last": np.array(-1),
        "nothing": np.zeros((1, 4), np.float32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def moved(path: Path) -> bool:
    """Whether row 1 changes when row 0 holds other words before its marker."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ids = np.array([[5, 6, END, 0], [7, END, 0, 0]])
    other = np.array([[8, 9, END, 0], [7, END, 0, 0]])
    return bool(np.any(session.run(None, {"ids": ids})[0][1] != session.run(None, {"ids": other})[0][1]))


def test_rows_that_are_read_at_their_own_marker_are_independent(tmp_path):
    path = reader(tmp_path / "model.onnx")
    # The mean makes row 1 hear row 0 only when the row that is read differs, and markers are alike.
    assert not moved(path)
    assert analyse(load(path)).outputs[0].batch == "independent"


def test_rows_that_are_read_at_their_own_marker_and_then_averaged_over_the_batch_mix(tmp_path):
    assert analyse(load(reader(tmp_path / "model.onnx", mean=True))).outputs[0].batch == "mixes"
