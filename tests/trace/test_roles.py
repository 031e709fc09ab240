"""Roles come from what the graph does with an input, never from its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from wirelint.errors import ModelFileError
from wirelint.formats import load
from wirelint.trace.roles import trace

SAMPLES = Path(__file__).parents[2] / "sample_models"
MODELS = sorted(path for path in SAMPLES.rglob("*") if path.suffix in (".onnx", ".xml") and "file" not in path.parts)


def roles(path: Path, rename: bool = False) -> list[str]:
    model = load(path)
    if rename:
        count = len(model.graph.inputs)
        for at, value in enumerate(model.graph.inputs):
            value.name = f"x{count - at}"
            value.names = (value.name,)
    return [role.name for role in trace(model.graph).roles]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_renaming_every_input_changes_no_role(path):
    try:
        before = roles(path)
    except ModelFileError:
        pytest.skip("the sample can't be read, on purpose")
    assert roles(path, rename=True) == before


def exchanged(path: Path) -> list[str]:
    model = load(path)
    names = [value.name for value in model.graph.inputs]
    for value, name in zip(model.graph.inputs, reversed(names), strict=True):
        value.name = name
    return [role.name for role in trace(model.graph).roles]


def test_the_mask_under_the_name_of_the_segments_is_still_the_mask():
    assert exchanged(SAMPLES / "clean" / "bert_classifier.onnx") == ["ids", "mask", "segment"]


def small_graph(tmp_path: Path, nodes, inputs, tables, outputs=("y",)) -> Path:
    declared = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in tables.items()]
    graph = helper.make_graph(nodes, "g", declared, made, held)
    path = tmp_path / "model.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


TOKENS = (TensorProto.INT64, ["batch", "length"])


def table(rows: int, width: int = 8) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, width)).astype(np.float32)


def test_a_vocabulary_smaller_than_the_position_table_is_still_the_vocabulary(tmp_path):
    """Byte-level models: 99 ids, 512 positions.  The output has one number for each id."""
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "a"], ["word"]),
            helper.make_node("Gather", ["places", "b"], ["place"]),
            helper.make_node("Add", ["word", "place"], ["sum"]),
            helper.make_node("MatMul", ["sum", "head"], ["y"]),
        ],
        [("b", *TOKENS), ("a", *TOKENS)],
        {"words": table(99), "places": table(512), "head": np.zeros((8, 99), np.float32)},
    )
    model = load(path)
    model.graph.outputs[0].shape = ("batch", "length", 99)
    assert [role.name for role in trace(model.graph).roles] == ["position", "ids"]


def test_a_mask_that_blanks_ids_is_told_from_the_ids(tmp_path):
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Mul", ["a", "b"], ["blanked"]),
            helper.make_node("Gather", ["words", "blanked"], ["word"]),
            helper.make_node("ReduceMean", ["word"], ["y"], axes=[1]),
        ],
        [("a", *TOKENS), ("b", *TOKENS)],
        {"words": table(50)},
    )
    assert roles(path) == ["ids", "mask"]


def test_positions_that_only_turn_queries(tmp_path):
    """Rotary angles: an outer product with inverse frequencies, then sine and cosine."""
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["h"]),
            helper.make_node("MatMul", ["h", "w"], ["q"]),
            helper.make_node("Cast", ["places"], ["p"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["p", "axis"], ["column"]),
            helper.make_node("MatMul", ["column", "frequencies"], ["angle"]),
            helper.make_node("Cos", ["angle"], ["cos"]),
            helper.make_node("Mul", ["q", "cos"], ["y"]),
        ],
        [("ids", *TOKENS), ("places", *TOKENS)],
        {"words": table(50), "w": table(8), "axis": np.array([2]), "frequencies": np.ones((1, 8), np.float32)},
    )
    assert roles(path) == ["ids", "position"]


def test_lengths_of_a_recurrent_operator(tmp_path):
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["h"]),
            helper.make_node("Transpose", ["h"], ["steps"], perm=[1, 0, 2]),
            helper.make_node("Cast", ["n"], ["n32"], to=TensorProto.INT32),
            helper.make_node("GRU", ["steps", "w", "r", "", "n32"], ["y"], hidden_size=4),
        ],
        [("ids", *TOKENS), ("n", TensorProto.INT64, ["batch"])],
        {"words": table(50), "w": np.zeros((1, 12, 8), np.float32), "r": np.zeros((1, 12, 4), np.float32)},
    )
    assert roles(path) == ["ids", "lengths"]


def test_a_mask_that_is_summed_to_lengths_is_a_mask(tmp_path):
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["h"]),
            helper.make_node("Transpose", ["h"], ["steps"], perm=[1, 0, 2]),
            helper.make_node("ReduceSum", ["m", "axis"], ["n"], keepdims=0),
            helper.make_node("Cast", ["n"], ["n32"], to=TensorProto.INT32),
            helper.make_node("GRU", ["steps", "w", "r", "", "n32"], ["y"], hidden_size=4),
        ],
        [("ids", *TOKENS), ("m", *TOKENS)],
        {
            "words": table(50),
            "axis": np.array([1]),
            "w": np.zeros((1, 12, 8), np.float32),
            "r": np.zeros((1, 12, 4), np.float32),
        },
    )
    assert roles(path) == ["ids", "mask"]


def test_lengths_by_which_rows_are_sorted(tmp_path):
    """``pack_padded_sequence`` sorts rows by length; their places are written into a tensor to find them again."""
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["h"]),
            helper.make_node("Shape", ["n"], ["rows"]),
            helper.make_node("TopK", ["n", "rows"], ["sorted", "order"], axis=0),
            helper.make_node("Gather", ["h", "order"], ["longest_first"]),
            helper.make_node("Transpose", ["longest_first"], ["steps"], perm=[1, 0, 2]),
            helper.make_node("Cast", ["sorted"], ["n32"], to=TensorProto.INT32),
            helper.make_node("GRU", ["steps", "w", "r", "", "n32"], ["tags"], hidden_size=4),
            helper.make_node("ConstantOfShape", ["rows"], ["blank"], value=numpy_helper.from_array(np.zeros(1, np.int64))),
            helper.make_node("ScatterElements", ["blank", "order", "order"], ["back"]),
            helper.make_node("Gather", ["tags", "back"], ["y"], axis=2),
        ],
        [("ids", *TOKENS), ("n", TensorProto.INT64, ["batch"])],
        {"words": table(50), "w": np.zeros((1, 12, 8), np.float32), "r": np.zeros((1, 12, 4), np.float32)},
    )
    assert roles(path) == ["ids", "lengths"]


def test_lengths_of_a_waveform_that_nothing_reads(tmp_path):
    path = small_graph(
        tmp_path,
        [helper.make_node("Conv", ["wave", "kernel"], ["y"])],
        [("wave", TensorProto.FLOAT, ["batch", 1, "samples"]), ("n", TensorProto.INT64, ["batch"])],
        {"kernel": np.ones((4, 1, 3), np.float32)},
    )
    assert roles(path) == ["features", "lengths"]


FEATURES = (TensorProto.FLOAT, ["batch", "length", 3])


def with_features(sums) -> list:
    """A table that is read at ``steps`` beside projected features; ``sums`` joins ``projected`` and ``row``."""
    return [
        helper.make_node("MatMul", ["states", "w"], ["projected"]),
        helper.make_node("Gather", ["rows", "steps"], ["row"]),
        *sums,
        helper.make_node("MatMul", ["h", "wq"], ["q"]),
        helper.make_node("Transpose", ["h"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"]),
        helper.make_node("MatMul", ["weights", "h"], ["y"]),
    ]


@pytest.mark.parametrize(
    ("sums", "role"),
    [
        ([helper.make_node("Add", ["projected", "row"], ["h"])], "position"),
        ([helper.make_node("Add", ["row", "projected"], ["h"])], "ids"),
        ([helper.make_node("Concat", ["projected", "row"], ["h"], axis=1)], "ids"),
        (
            [
                helper.make_node("Add", ["projected", "row"], ["s"]),
                helper.make_node("MatMul", ["row", "wq"], ["m"]),
                helper.make_node("Add", ["s", "m"], ["h"]),
            ],
            "ids",
        ),
    ],
    ids=["added to features", "features are added to it", "beside features", "also projected"],
)
def test_time_steps_are_told_from_the_ids_of_a_text_with_features(tmp_path, sums, role):
    """Decision transformers add the row of each time step to projected states; a text may have features added to its ids."""
    path = small_graph(
        tmp_path,
        with_features(sums),
        [("states", *FEATURES), ("steps", *TOKENS)],
        {"rows": table(50), "w": np.ones((3, 8), np.float32), "wq": np.ones((8, 8), np.float32)},
    )
    assert roles(path) == ["features", role]


TRIANGLE = np.triu(np.full((6, 6), -1e9, np.float32), 1)


@pytest.mark.parametrize(
    ("bias", "last", "role"),
    [("triangle", 8, "decoder_ids"), ("nothing", 50, "decoder_ids"), ("nothing", 8, "ids")],
    ids=["hears no later token", "gives a number per token there is", "a query asks a passage"],
)
def test_who_asks_another_text_is_a_decoder_only_if_it_goes_forward(tmp_path, bias, last, role):
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "own"], ["h"]),
            helper.make_node("Gather", ["words", "other"], ["e"]),
            helper.make_node("MatMul", ["h", "w"], ["q"]),
            helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["q", "k"], ["raw"]),
            helper.make_node("Add", ["raw", bias], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["weights"]),
            helper.make_node("MatMul", ["weights", "h"], ["told"]),
            helper.make_node("MatMul", ["e", "w"], ["keys"]),
            helper.make_node("Transpose", ["keys"], ["columns"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["told", "columns"], ["asked"]),
            helper.make_node("Softmax", ["asked"], ["shares"]),
            helper.make_node("MatMul", ["shares", "keys"], ["answer"]),
            helper.make_node("MatMul", ["answer", "head"], ["y"]),
        ],
        [("own", TensorProto.INT64, ["batch", 6]), ("other", TensorProto.INT64, ["batch", "length"])],
        {
            "words": table(50),
            "w": np.ones((8, 8), np.float32),
            "triangle": TRIANGLE,
            "nothing": np.zeros(1, np.float32),
            "head": np.ones((8, last), np.float32),
        },
    )
    model = load(path)
    model.graph.outputs[0].shape = ("batch", 6, last)
    assert [entry.name for entry in trace(model.graph).roles] == [role, "ids"]


def categories(tmp_path: Path, join: str, shape: list[object]) -> list[str]:
    tables = {"t0": np.ones((500, 4), np.float32), "t1": np.ones((300, 4), np.float32), "w": np.ones((4, 1), np.float32)}
    nodes = [helper.make_node("Gather", [f"t{at}", f"c{at}"], [f"r{at}"]) for at in (0, 1)]
    nodes.append(helper.make_node(join, ["r0", "r1"], ["h"], **({"axis": -1} if join == "Concat" else {})))
    if join == "Concat":
        tables["w"] = np.ones((8, 1), np.float32)
    nodes.append(helper.make_node("MatMul", ["h", "w"], ["y"]))
    return roles(small_graph(tmp_path, nodes, [(f"c{at}", TensorProto.INT64, shape) for at in (0, 1)], tables))


@pytest.mark.parametrize("join", ["Concat", "Mul"])
@pytest.mark.parametrize("shape", [["batch"], ["batch", 1]])
def test_rows_of_several_tables_are_categories(join, shape, tmp_path):
    """As recommenders look up a user and an item: neither is a token, neither a position of the other."""
    assert categories(tmp_path, join, shape) == ["other", "other"]


def test_only_a_sum_makes_positions(tmp_path):
    assert categories(tmp_path, "Add", ["batch", "length"]) == ["ids", "position"]
    assert categories(tmp_path, "Concat", ["batch", "length"]) == ["ids", "ids"]


NEGATIVE_COUNTS_FROM_THE_END = {
    "a choice": [
        helper.make_node("Less", ["ids", "zero"], ["negative"]),
        helper.make_node("Add", ["ids", "rows"], ["wrapped"]),
        helper.make_node("Where", ["negative", "wrapped", "ids"], ["index"]),
    ],
    "products": [
        helper.make_node("Less", ["ids", "zero"], ["negative"]),
        helper.make_node("Not", ["negative"], ["other"]),
        helper.make_node("Add", ["ids", "rows"], ["wrapped"]),
        helper.make_node("Cast", ["negative"], ["negative_1"], to=TensorProto.INT64),
        helper.make_node("Cast", ["other"], ["other_1"], to=TensorProto.INT64),
        helper.make_node("Mul", ["negative_1", "wrapped"], ["first"]),
        helper.make_node("Mul", ["ids", "other_1"], ["second"]),
        helper.make_node("Add", ["first", "second"], ["index"]),
    ],
}


@pytest.mark.parametrize("spelled", list(NEGATIVE_COUNTS_FROM_THE_END))
def test_ids_that_may_count_from_the_end_of_the_table(tmp_path, spelled):
    """Keras looks ids up as ``where(ids < 0, ids + rows, ids)``."""
    path = small_graph(
        tmp_path,
        [*NEGATIVE_COUNTS_FROM_THE_END[spelled], helper.make_node("Gather", ["words", "index"], ["y"])],
        [("ids", *TOKENS)],
        {"words": table(50), "zero": np.array(0), "rows": np.array(50)},
    )
    assert roles(path) == ["ids"]


def test_a_choice_that_another_input_makes_is_no_lookup_of_that_input(tmp_path):
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Cast", ["mask"], ["keep"], to=TensorProto.BOOL),
            helper.make_node("Where", ["keep", "ids", "zero"], ["index"]),
            helper.make_node("Gather", ["words", "index"], ["y"]),
        ],
        [("ids", *TOKENS), ("mask", *TOKENS)],
        {"words": table(50), "zero": np.array(0)},
    )
    assert roles(path)[1] != "ids"


def test_segments_that_are_encoded_as_ones_and_zeros_before_a_product_with_their_table(tmp_path):
    """What TensorFlow's BERT does: ``one_hot(segments) @ table``."""
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["word"]),
            helper.make_node("Reshape", ["kinds", "flat"], ["line"]),
            helper.make_node("OneHot", ["line", "two", "values"], ["picked"], axis=-1),
            helper.make_node("MatMul", ["picked", "segments"], ["rows"]),
            helper.make_node("Shape", ["word"], ["shape"]),
            helper.make_node("Reshape", ["rows", "shape"], ["kind"]),
            helper.make_node("Add", ["word", "kind"], ["sum"]),
            helper.make_node("MatMul", ["sum", "w"], ["y"]),
        ],
        [("ids", *TOKENS), ("kinds", *TOKENS)],
        {
            "words": table(50), "segments": table(2), "w": table(8), "flat": np.array([-1]), "two": np.array(2),
            "values": np.array([0, 1], np.float32),
        },
    )  # fmt: skip
    assert roles(path) == ["ids", "segment"]


def test_kinds_that_have_rows_in_the_table_of_the_tokens_are_no_positions(tmp_path):
    """XLM looks ``token_type_ids`` up among the words."""
    path = small_graph(
        tmp_path,
        [
            helper.make_node("Gather", ["words", "ids"], ["word"]),
            helper.make_node("Gather", ["words", "kinds"], ["kind"]),
            helper.make_node("Add", ["word", "kind"], ["sum"]),
            helper.make_node("MatMul", ["sum", "w"], ["y"]),
        ],
        [("ids", *TOKENS), ("kinds", *TOKENS)],
        {"words": table(50), "w": table(8)},
    )
    assert roles(path) == ["ids", "segment"]


def test_a_series_that_is_standardised_by_its_own_mean_and_spread_is_still_features(tmp_path):
    """Forecasters centre and scale each window, and scale the forecast back: the spread is no mask of it."""
    attend = [
        helper.make_node("MatMul", ["h", "w"], ["q"]),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "q"], ["heard"]),
    ]
    path = small_graph(
        tmp_path,
        [
            helper.make_node("ReduceMean", ["series"], ["mean"], axes=[1], keepdims=1),
            helper.make_node("Sub", ["series", "mean"], ["centred"]),
            helper.make_node("ReduceL2", ["centred"], ["spread"], axes=[1], keepdims=1),
            helper.make_node("Div", ["centred", "spread"], ["even"]),
            helper.make_node("MatMul", ["even", "lift"], ["h"]),
            *attend,
            helper.make_node("Mul", ["heard", "spread"], ["y"]),
        ],
        [("series", TensorProto.FLOAT, ["batch", 24, 1])],
        {"lift": table(1), "w": table(8)},
    )
    assert roles(path) == ["features"]
