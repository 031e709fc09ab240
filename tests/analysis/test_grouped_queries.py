"""Grouped-query attention as the generative exporters write it: a count of keys for each row, and a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from wirelint import check
from wirelint.analysis import analyse
from wirelint.formats import load

WIDTH, LENGTH = 16, 5
RANDOM = np.random.default_rng(2)


def decoder(path: Path, **attributes) -> Path:
    """One layer with two query heads on one key head; ``seqlens_k`` is the sum of the mask less one."""
    weights = {
        "words": RANDOM.normal(size=(40, WIDTH)), "wq": RANDOM.normal(size=(WIDTH, WIDTH)),
        "wk": RANDOM.normal(size=(WIDTH, WIDTH // 2)), "wv": RANDOM.normal(size=(WIDTH, WIDTH // 2)),
        "head": RANDOM.normal(size=(WIDTH, 40)),
    }  # fmt: skip
    numbers = {"one": np.array([1]), "axis": np.array([1]), "second": np.array(1)}
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["h"]),
        *(helper.make_node("MatMul", ["h", f"w{part}"], [part]) for part in "qkv"),
        helper.make_node("ReduceSum", ["attention_mask", "axis"], ["count"], keepdims=0),
        helper.make_node("Sub", ["count", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "second"], ["long"]),
        helper.make_node("Cast", ["long"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past.key", "past.value", "seqlens_k", "total"],
            ["heard", "present.key", "present.value"],
            domain="com.microsoft", num_heads=2, kv_num_heads=1, **attributes,
        ),
        helper.make_node("MatMul", ["heard", "head"], ["logits"]),
    ]  # fmt: skip
    cache = ["batch", 1, "past", WIDTH // 2]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"]),
            helper.make_tensor_value_info("past.key", TensorProto.FLOAT, cache),
            helper.make_tensor_value_info("past.value", TensorProto.FLOAT, cache),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("logits", "present.key", "present.value")],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
        + [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    save_model(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return path


def moved(path: Path, side: str) -> list[bool]:
    """Which outputs change at real positions of a prompt when other ids stand in its padded ones."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    real = np.arange(LENGTH)[None] < np.array([[LENGTH], [2]])
    real = real if side == "right" else real[:, ::-1]
    empty = np.zeros((2, 1, 0, WIDTH // 2), np.float32)
    ids = RANDOM.integers(1, 40, (2, LENGTH))
    other = np.where(real, ids, RANDOM.integers(1, 40, (2, LENGTH)))
    feed = {"attention_mask": real.astype(np.int64), "past.key": empty, "past.value": empty}
    first, second = (session.run(None, {"input_ids": tokens, **feed}) for tokens in (ids, other))
    at = [real, *[real[:, None, :]] * 2]
    return [bool(np.any((a != b)[where])) for a, b, where in zip(first, second, at, strict=True)]


@pytest.mark.parametrize("window", [-1, 2])
def test_a_count_of_keys_hides_padding_behind_the_keys(tmp_path, window):
    path = decoder(tmp_path / "model.onnx", local_window_size=window)
    found = analyse(load(path))
    assert [entry.role for entry in found.inputs] == ["ids", "mask", "past", "past"]
    assert found.attention.effective == 1
    assert moved(path, "right") == [False, False, False]
    assert [output.padding.right for output in found.outputs] == ["safe", "safe", "safe"]
    assert [output.batch for output in found.outputs] == ["independent"] * 3


def test_a_count_of_keys_does_not_hide_padding_before_the_keys(tmp_path):
    path = decoder(tmp_path / "model.onnx")
    assert moved(path, "left") == [True, False, False]
    assert [output.padding.left for output in analyse(load(path)).outputs] == ["leaks", "safe", "safe"]


@pytest.mark.parametrize("window", [-1, 2])
def test_no_rule_is_loud_about_a_count_of_keys(tmp_path, window):
    report = check(decoder(tmp_path / "model.onnx", local_window_size=window), config=False)
    assert not [finding.rule for _, finding in report.findings() if finding.severity != "note"]
