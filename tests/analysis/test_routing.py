"""Tokens that are chosen by what they hold, computed apart and written back, as a mixture of experts does.

Which tokens are chosen is not known, so neither is which row stands where; once each row is back in its place that no longer
matters.  Whatever else is done with the rows must not pass for safe.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from wirelint.analysis import analyse
from wirelint.formats import load

WIDTH = 4


def node(kind: str, inputs: str, output: str, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


CHOOSE = [
    node("Gather", "words ids", "embedded"),
    node("Reshape", "embedded by_token", "tokens"),
    node("MatMul", "tokens gate", "score"),
    node("Greater", "score zero", "chosen"),
    node("NonZero", "chosen", "places"),
    node("Split", "places halves", "row column", axis=0),
    node("Squeeze", "row first", "index"),
    node("Transpose", "row", "named", perm=[1, 0]),
    node("Gather", "tokens index", "rows"),
    node("MatMul", "rows expert", "told"),
]
"""``index`` [n] and ``named`` [n, 1] are the places of the chosen tokens, ``told`` [n, width] what their expert says."""
BACK = [
    node("Shape", "embedded", "whole"),
    node("Reshape", "result whole", "y"),
]

WRITTEN = [node("ScatterND", "tokens named told", "result"), *BACK]
ADDED = [
    node("Shape", "told", "size"),
    node("Expand", "named size", "each"),
    node("ScatterElements", "tokens each told", "result", axis=0, reduction="add"),
    *BACK,
]
BY_COUNT = [
    node("Shape", "index", "count"),
    node("Concat", "count width", "size", axis=0),
    node("Reshape", "told size", "again"),
    node("ScatterND", "tokens named again", "result"),
    *BACK,
]

ROWS_THEMSELVES = [node("Identity", "told", "y")]
FIRST_ONE = [node("Slice", "told from to from", "single"), node("Add", "embedded single", "y")]
CAPACITY = [
    node("Slice", "told from three from", "kept"),
    node("Slice", "named from three from", "names"),
    node("ScatterND", "tokens names kept", "result"),
    *BACK,
]
TURNED = [
    node("Slice", "told last endless from back", "turned"),
    node("ScatterND", "tokens named turned", "result"),
    *BACK,
]
MEAN = [node("ReduceMean", "told first", "mean", keepdims=1), node("Add", "embedded mean", "y")]
NUMBER = [
    node("Shape", "index", "count"),
    node("Cast", "count", "number", to=TensorProto.FLOAT),
    node("Mul", "embedded number", "y"),
]
AS_MANY_ONES = [
    node("Shape", "index", "count"),
    node("ConstantOfShape", "count", "ones", value=numpy_helper.from_array(np.ones(1, np.float32))),
    node("ReduceSum", "ones first", "number", keepdims=0),
    node("Mul", "embedded number", "y"),
]
BEHIND = [
    node("Concat", "told tokens", "all", axis=0),
    node("Slice", "all from tokens_long from", "result"),
    *BACK,
]
ANOTHER_CHOICE = [
    node("Neg", "score", "opposite"),
    node("Greater", "opposite zero", "other"),
    node("NonZero", "other", "places2"),
    node("Split", "places2 halves", "row2 column2", axis=0),
    node("Transpose", "row2", "named2", perm=[1, 0]),
    node("Slice", "told from one from", "single"),
    node("Slice", "named2 last far from", "name"),
    node("ScatterND", "tokens name single", "result"),
    *BACK,
]
WEIGHED = [
    node("Shape", "index", "count"),
    node("Squeeze", "count first", "n"),
    node("Range", "nought n step", "order"),
    node("Cast", "order", "weight", to=TensorProto.FLOAT),
    node("Unsqueeze", "weight second", "weights"),
    node("Mul", "told weights", "weighed"),
    node("ScatterND", "tokens named weighed", "result"),
    *BACK,
]


def model(path: Path, nodes) -> Path:
    random = np.random.default_rng(7)
    constants = {
        "words": random.normal(size=(40, WIDTH)).astype(np.float32),
        "gate": random.normal(size=(WIDTH, 1)).astype(np.float32),
        "expert": random.normal(size=(WIDTH, WIDTH)).astype(np.float32),
        "by_token": np.array([-1, WIDTH]),
        "zero": np.float32(0),
        "halves": np.array([1, 1]),
        "first": np.array([0]),
        "second": np.array([1]),
        "from": np.array([0]),
        "to": np.array([1]),
        "one": np.array([1]),
        "three": np.array([3]),
        "last": np.array([-1]),
        "endless": np.array([-(2**62)]),
        "back": np.array([-1]),
        "far": np.array([2**62]),
        "width": np.array([WIDTH]),
        "nought": np.array(0),
        "step": np.array(1),
    }
    tokens_long = [node("Shape", "tokens", "long"), node("Slice", "long from to from", "tokens_long")]
    graph = helper.make_graph(
        [*CHOOSE, *tokens_long, *nodes],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


def other_rows_matter(path: Path) -> bool:
    """Whether ONNX Runtime gives the second row of a batch other values beside another first row."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    own = np.arange(10, 16)
    found = []
    for _ in range(24):
        made = session.run(None, {"ids": np.stack([random.integers(0, 40, size=6), own])})[0]
        found.append(made[1] if made.shape[0] == 2 else made)
    return any(one.shape != found[0].shape or not np.allclose(one, found[0], atol=1e-6) for one in found[1:])


@pytest.mark.parametrize("nodes", [WRITTEN, ADDED, BY_COUNT], ids=["written", "added", "shaped by their number"])
def test_rows_that_are_written_back_join_nothing(tmp_path, nodes):
    path = model(tmp_path / "model.onnx", nodes)
    output = analyse(load(path)).outputs[0]
    assert (output.padding.right, output.padding.left, output.batch) == ("safe", "safe", "independent")
    assert not other_rows_matter(path)


@pytest.mark.parametrize(
    "nodes",
    [
        ROWS_THEMSELVES, FIRST_ONE, CAPACITY, TURNED, MEAN, NUMBER, AS_MANY_ONES, BEHIND, ANOTHER_CHOICE, WEIGHED,
    ],
    ids=[
        "given out", "the first one", "up to a capacity", "turned round", "their mean", "their number", "as many ones",
        "others behind them", "written where others were chosen", "weighed by their order",
    ],
)  # fmt: skip
def test_what_depends_on_which_rows_are_chosen_is_not_safe(tmp_path, nodes):
    path = model(tmp_path / "model.onnx", nodes)
    output = analyse(load(path)).outputs[0]
    assert output.padding.right in ("unknown", "leaks")
    assert output.batch in ("unknown", "mixes")
    assert output.padding.right == "leaks" or "NonZero" in output.unmodelled
    assert other_rows_matter(path)


LISTED = [
    node("Transpose", "experts", "listed", perm=[1, 0]),
    node("Reshape", "experts upright", "listed"),  # as OpenVINO writes it
]
SPLIT = [
    node("Gather", "words ids", "embedded"),
    node("Reshape", "embedded by_token", "tokens"),
    node("MatMul", "tokens gates", "scores"),
    node("Greater", "scores zero", "hit"),
    node("Cast", "hit", "hits", to=TensorProto.FLOAT),
    node("ReduceMax", "hits first", "any", keepdims=0),
    node("NonZero", "any", "experts"),
    LISTED[0],
    node("Split", "listed halves", "one two", axis=0),
    node("Squeeze", "two first", "number"),
    node("Gather", "experts_by_number number", "expert"),
    node("Squeeze", "expert first", "weights"),
    node("MatMul", "embedded weights", "y"),
]
"""All experts are expected to be chosen by some token: a batch in which one is not is refused."""


@pytest.mark.parametrize("listed", LISTED, ids=lambda entry: entry.op_type)
def test_a_fixed_number_of_choices_leaves_no_choice(tmp_path, listed):
    random = np.random.default_rng(2)
    gate = random.normal(size=(WIDTH, 1)).astype(np.float32)
    constants = {
        "words": random.normal(size=(40, WIDTH)).astype(np.float32),
        "gates": np.concatenate([gate, -gate], axis=1),
        "experts_by_number": random.normal(size=(2, WIDTH, WIDTH)).astype(np.float32),
        "by_token": np.array([-1, WIDTH]),
        "zero": np.float32(0),
        "first": np.array([0]),
        "halves": np.array([1, 1]),
        "upright": np.array([-1, 1]),
    }
    graph = helper.make_graph(
        [listed if entry is LISTED[0] else entry for entry in SPLIT],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    path = tmp_path / "model.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    output = analyse(load(path)).outputs[0]
    assert (output.padding.right, output.batch) == ("safe", "independent")
    assert not other_rows_matter(path)


def _turn(rows, named, at):
    return [node("Slice", f"{rows} last endless from back", f"rows{at}")], f"rows{at}", named


def _turn_both(rows, named, at):
    nodes = [node("Slice", f"{name} last endless from back", f"{kind}{at}") for name, kind in ((rows, "rows"), (named, "name"))]
    return nodes, f"rows{at}", f"name{at}"


def _cut_both(rows, named, at):
    nodes = [node("Slice", f"{name} from three from", f"{kind}{at}") for name, kind in ((rows, "rows"), (named, "name"))]
    return nodes, f"rows{at}", f"name{at}"


def _one(kind, extra="", **attributes):
    def step(rows, named, at):
        return [node(kind, f"{rows} {extra}", f"rows{at}", **attributes)], f"rows{at}", named

    return step


def _beside_the_largest(rows, named, at):
    nodes = [node("ReduceMax", f"{rows} first", f"most{at}", keepdims=1), node("Sub", f"{rows} most{at}", f"rows{at}")]
    return nodes, f"rows{at}", named


def _by_number(rows, named, at):
    nodes = [
        node("Shape", rows, f"shape{at}"),
        node("Cast", f"shape{at}", f"numbers{at}", to=TensorProto.FLOAT),
        node("ReduceSum", f"numbers{at} first", f"number{at}", keepdims=1),
        node("Div", f"{rows} number{at}", f"rows{at}"),
    ]
    return nodes, f"rows{at}", named


def _with_places(rows, named, at):
    return (
        [
            node("Cast", named, f"place{at}", to=TensorProto.FLOAT),
            node("Add", f"{rows} place{at}", f"rows{at}"),
        ],
        f"rows{at}",
        named,
    )


STEPS = [
    _turn, _turn_both, _cut_both, _beside_the_largest, _by_number, _with_places,
    _one("Tanh"), _one("Mul", "rows"), _one("MatMul", "expert"), _one("CumSum", "nought"),
    _one("Softmax", axis=1), _one("Softmax", axis=0),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_done_with_chosen_rows_is_independent_only_if_it_is(tmp_path, seed):
    random = np.random.default_rng(seed)
    nodes, rows, named = [], "told", "named"
    for at in range(int(random.integers(1, 4))):
        made, rows, named = STEPS[int(random.integers(len(STEPS)))](rows, named, at)
        nodes += made
    reduction = {"reduction": "add"} if random.random() < 0.5 else {}
    path = model(tmp_path / "model.onnx", [*nodes, node("ScatterND", f"tokens {named} {rows}", "result", **reduction), *BACK])
    if analyse(load(path)).outputs[0].batch == "independent":
        assert not other_rows_matter(path)
