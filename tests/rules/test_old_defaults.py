"""What a default means depends on the version of the file format: before 4 it is no default but a constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

import wirelint


def model(path: Path, version: int) -> Path:
    """A masked sum over embedded ids, whose mask is an initializer too; old files list the table as well."""
    held = {
        "words": np.ones((20, 4), np.float32),
        "mask": np.ones((1, 5), np.int64),
        "last": np.array([2]),
        "first": np.array([1]),
    }
    tokens = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, 5]) for name in ("ids", "mask")]
    listed = [
        helper.make_tensor_value_info("words", TensorProto.FLOAT, [20, 4]),
        helper.make_tensor_value_info("last", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("first", TensorProto.INT64, [1]),
    ]
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["column"]),
        helper.make_node("Mul", ["h", "column"], ["shown"]),
        helper.make_node("ReduceSum", ["shown", "first"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        tokens + (listed if version < 4 else []),
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=version), path)
    return path


@pytest.mark.parametrize(("version", "fed"), [(3, False), (8, True)])
def test_who_may_feed_an_input_that_has_a_default(tmp_path, version, fed):
    path = model(tmp_path / "model.onnx", version)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {"ids": np.ones((1, 5), np.int64), "mask": np.zeros((1, 5), np.int64)}
    if fed:
        assert not session.run(None, feeds)[0].any()
    else:
        with pytest.raises(Exception, match="Invalid input name: mask"):
            session.run(None, feeds)
    messages = [finding.message for _, finding in wirelint.check(path).findings() if finding.rule == "default-valued-input"]
    assert len(messages) == 1
    assert ("refuses what a caller feeds" in messages[0]) is not fed
