"""Layers that a loop runs one after the other: what any of them hears counts, and bodies need not declare types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, save_model

from wirelint.analysis import analyse
from wirelint.facts import ModelFacts
from wirelint.formats import load

LAYERS = 3
WIDTH = 4


def node(kind: str, inputs: str, output: str, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def untyped(name: str) -> ValueInfoProto:
    return ValueInfoProto(name=name)


ATTEND = [
    node("MatMul", "h wq", "q"),
    node("Transpose", "h", "k", perm=[0, 2, 1]),
    node("MatMul", "q k", "raw"),
    node("Mul", "bias share", "term"),
    node("Add", "raw term", "scores"),
    node("Softmax", "scores", "weights", axis=-1),
    node("MatMul", "weights h", "after"),
]
"""One layer; ``share`` is 1 where it honours the mask."""


def constants(shares) -> list:
    random = np.random.default_rng(3)
    return [
        numpy_helper.from_array(random.normal(size=(30, WIDTH)).astype(np.float32), "words"),
        numpy_helper.from_array(random.normal(size=(WIDTH, WIDTH)).astype(np.float32), "wq"),
        numpy_helper.from_array(np.array([1]), "axis"),
        numpy_helper.from_array(np.float32(1), "one"),
        numpy_helper.from_array(np.float32(-1e9), "fill"),
        numpy_helper.from_array(np.array(LAYERS), "trips"),
        numpy_helper.from_array(np.array(True), "go"),
        numpy_helper.from_array(np.array(shares, np.int64), "shares"),
    ]


BIAS = [
    node("Gather", "words ids", "embedded"),
    node("Unsqueeze", "mask axis", "row"),
    node("Cast", "row", "kept", to=TensorProto.FLOAT),
    node("Sub", "one kept", "gone"),
    node("Mul", "gone fill", "bias"),
]


def looped(*, typed: bool):
    """A Loop that reads its layer's share from outside."""
    inner = [node("Gather", "shares i", "picked"), node("CastLike", "picked h", "share")]
    declared = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("h", TensorProto.FLOAT, None),
    ]
    places = declared if typed else [*declared[:2], untyped("h")]  # ONNX Runtime insists on the iteration number's
    body = helper.make_graph([*inner, *ATTEND, node("Identity", "c", "on")], "body", places, [untyped("on"), untyped("after")])
    return helper.make_node("Loop", ["trips", "go", "embedded"], ["y"], body=body)


def scanned(*, typed: bool):
    """A Scan over the shares of the layers."""
    declared = [
        helper.make_tensor_value_info("h", TensorProto.FLOAT, ["batch", "length", WIDTH]),
        helper.make_tensor_value_info("picked", TensorProto.INT64, []),
    ]
    places = declared if typed else [untyped(name) for name in ("h", "picked")]
    inner = [node("CastLike", "picked h", "share")]
    body = helper.make_graph([*inner, *ATTEND], "body", places, [untyped("after")])
    return helper.make_node("Scan", ["embedded", "shares"], ["y"], body=body, num_scan_inputs=1)


def model(path: Path, loop, shares) -> Path:
    graph = helper.make_graph(
        [*BIAS, loop],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in ("ids", "mask")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", WIDTH])],
        constants(shares),
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def padding_moves(path: Path) -> bool:
    """Whether ONNX Runtime gives real positions other values when other ids stand in padded ones."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    mask = np.array([[1, 1, 1, 0, 0]])
    one, other = (session.run(None, {"ids": np.array([[5, 6, 7, *pads]]), "mask": mask})[0] for pads in ((0, 0), (8, 9)))
    return not np.allclose(one[:, :3], other[:, :3], atol=1e-6)


def seen(facts: ModelFacts) -> dict[str, object]:
    return {
        "roles": [entry.role for entry in facts.inputs],
        "sites": [(site.mask, site.heard_right, site.matrix) for site in facts.attention.sites],
        "padding": facts.outputs[0].padding.right,
        "batch": facts.outputs[0].batch,
        "unmodelled": facts.unmodelled,
    }


@pytest.mark.parametrize("build", [looped, scanned])
@pytest.mark.parametrize("shares", [[1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]], ids=str)
def test_every_turn_of_a_loop_counts(tmp_path, build, shares):
    path = model(tmp_path / "model.onnx", build(typed=True), shares)
    found = seen(analyse(load(path)))
    heard = not all(shares)
    assert found["roles"] == ["ids", "mask"]
    assert found["padding"] == ("leaks" if heard else "safe")
    assert [site[1] for site in found["sites"]] == ["heard" if heard else "hidden"]
    assert found["batch"] == "independent"
    assert padding_moves(path) == heard


@pytest.mark.parametrize("build", [looped, scanned])
@pytest.mark.parametrize("shares", [[1, 1, 1], [0, 1, 1]], ids=str)
def test_a_body_without_declared_types_is_read_alike(tmp_path, build, shares):
    typed = model(tmp_path / "typed.onnx", build(typed=True), shares)
    untyped_ = model(tmp_path / "untyped.onnx", build(typed=False), shares)
    assert seen(analyse(load(untyped_))) == seen(analyse(load(typed)))
    assert padding_moves(untyped_) == padding_moves(typed)
