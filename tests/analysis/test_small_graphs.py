"""Faults found in the field, each as the smallest graph that shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model
from openvino import opset15 as op

from wirelint import check
from wirelint.analysis import analyse
from wirelint.facts import ModelFacts
from wirelint.formats import load

LOWEST = float(np.finfo(np.float32).min)
TOKENS = (TensorProto.INT64, ["batch", "length"])


def constant(name: str, value, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(value, dtype=dtype), name)


def facts_of(tmp_path: Path, nodes, inputs, constants, outputs=("y",), opset=17, domains=()) -> ModelFacts:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        constants,
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    path = tmp_path / "model.onnx"
    save_model(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return analyse(load(path))


def attention(bias: list, after_bias: list | None = None, scores: str = "biased") -> list:
    """One self-attention layer over embedded ids, without heads; ``bias`` computes ``bias`` from ``mask``."""
    return [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("MatMul", ["h", "wq"], ["q"]),
        helper.make_node("MatMul", ["h", "wk"], ["k"]),
        helper.make_node("MatMul", ["h", "wv"], ["v"]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["raw"]),
        *bias,
        helper.make_node("Add", ["raw", "bias"], ["biased"]),
        *(after_bias or []),
        helper.make_node("Softmax", [scores], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]


def weights() -> list:
    return [constant("words", np.ones((50, 8)))] + [constant(name, np.ones((8, 8))) for name in ("wq", "wk", "wv")]


def masked(fill: float) -> tuple[list, list]:
    """``(1 - mask) * fill``, as a row for each batch row."""
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "axis"], ["row"]),
        helper.make_node("Cast", ["row"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "kept"], ["gone"]),
        helper.make_node("Mul", ["gone", "fill"], ["bias"]),
    ]
    return nodes, [constant("axis", [1], np.int64), constant("one", 1), constant("fill", fill)]


def test_a_mask_keeps_padding_out(tmp_path):
    bias, constants = masked(LOWEST)
    facts = facts_of(tmp_path, attention(bias), [("ids", *TOKENS), ("mask", *TOKENS)], weights() + constants)
    assert [site.mask for site in facts.attention.sites] == ["effective"]
    assert facts.outputs[0].padding.right == "safe"
    assert facts.outputs[0].batch == "independent"
    assert set(facts.outputs[0].depends_on) == {"ids", "mask"}


@pytest.mark.parametrize(
    ("fill", "state"), [(-1.0, "weak"), (-5.0, "weak"), (0.0, "noop"), (-1e4, "effective"), (1e4, "inverted")]
)
def test_how_low_a_fill_must_be(tmp_path, fill, state):
    bias, constants = masked(fill)
    inputs = [("ids", *TOKENS), ("attention_mask", *TOKENS)]
    bias[0] = helper.make_node("Unsqueeze", ["attention_mask", "axis"], ["row"])
    facts = facts_of(tmp_path, attention(bias), inputs, weights() + constants)
    assert [site.mask for site in facts.attention.sites] == [state]
    assert facts.outputs[0].padding.right == ("safe" if state == "effective" else "leaks")


def test_zero_times_minus_infinity(tmp_path):
    bias, constants = masked(-np.inf)
    facts = facts_of(tmp_path, attention(bias), [("ids", *TOKENS), ("mask", *TOKENS)], weights() + constants)
    assert facts.attention.not_finite == 1
    assert not facts.outputs[0].finite


def test_a_mask_of_the_masks_shape_is_folded(tmp_path):
    """The mask was filled with ones; only its shape is read."""
    bias, constants = masked(LOWEST)
    bias = [
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["ones"], value=constant("o", [1], np.int64)),
        helper.make_node("Unsqueeze", ["ones", "axis"], ["row"]),
        *bias[1:],
    ]
    facts = facts_of(tmp_path, attention(bias), [("ids", *TOKENS), ("mask", *TOKENS)], weights() + constants)
    assert [site.mask for site in facts.attention.sites] == ["constant"]
    assert facts.inputs[1].role == "mask"
    assert facts.inputs[1].basis == "shape"
    assert not facts.inputs[1].used


def test_a_bias_of_zeros_is_no_folded_mask(tmp_path):
    """T5 adds zeros to the scores of cross-attention, for want of a relative position bias."""
    bias = [
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"], value=constant("o", [0])),
        helper.make_node("Unsqueeze", ["zeros", "axis"], ["bias"]),
    ]
    facts = facts_of(tmp_path, attention(bias), [("ids", *TOKENS)], [*weights(), constant("axis", [1], np.int64)])
    assert [site.mask for site in facts.attention.sites] == ["absent"]


def quantised(scale: float) -> tuple[list, list]:
    nodes = [
        helper.make_node("QuantizeLinear", ["biased", "scale", "point"], ["code"]),
        helper.make_node("DequantizeLinear", ["code", "scale", "point"], ["coarse"]),
    ]
    return nodes, [constant("scale", scale), constant("point", 255, np.uint8)]


def test_a_quantiser_that_spans_a_moderate_fill_leaves_the_mask_its_effect(tmp_path):
    """-10000 in 255 steps of 39: coarse, but padding stays out."""
    bias, constants = masked(-1e4)
    after, more = quantised(1e4 / 255)
    nodes = attention(bias, after, "coarse")
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS), ("mask", *TOKENS)], weights() + constants + more)
    assert [site.mask for site in facts.attention.sites] == ["effective"]
    assert facts.outputs[0].padding.right == "safe"


@pytest.mark.parametrize("scale", [-LOWEST / 255, np.inf])
def test_a_quantiser_that_spans_the_lowest_number_leaves_nothing_of_the_scores(tmp_path, scale):
    bias, constants = masked(LOWEST)
    after, more = quantised(scale)
    nodes = attention(bias, after, "coarse")
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS), ("mask", *TOKENS)], weights() + constants + more)
    assert facts.attention.quantised == 1


def test_ids_blanked_by_the_mask_bring_no_padded_content(tmp_path):
    """``ids * mask`` looks used, and attention hears the padding all the same, as the embedding of id 0."""
    bias = [helper.make_node("Identity", ["zero"], ["bias"])]
    nodes = attention(bias)
    nodes[0] = helper.make_node("Gather", ["words", "blanked"], ["h"])
    nodes.insert(0, helper.make_node("Mul", ["ids", "mask"], ["blanked"]))
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS), ("mask", *TOKENS)], [*weights(), constant("zero", 0)])
    assert [entry.role for entry in facts.inputs] == ["ids", "mask"]
    assert facts.attention.heard_right == 1
    assert facts.outputs[0].padding.right == "safe"


def test_a_dynamic_quantiser_makes_a_weak_leak(tmp_path):
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("DynamicQuantizeLinear", ["h"], ["code", "scale", "point"]),
        helper.make_node("DequantizeLinear", ["code", "scale", "point"], ["y"]),
    ]
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS)], [constant("words", np.ones((50, 8)))])
    output = facts.outputs[0]
    assert (output.padding.right, output.scale_right, output.cause_right) == ("leaks", True, "quantiser-scale")
    assert (output.batch, output.rows_by_scale) == ("mixes", True)


def test_quantised_pixels_are_pixels(tmp_path):
    """ConvInteger takes pixels less their zero point, which is computed from them as a whole."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["image"], ["code", "scale", "point"]),
        helper.make_node("ConvInteger", ["code", "kernel", "point"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT),
    ]
    kernel = constant("kernel", np.ones((4, 3, 2, 2)), np.uint8)
    facts = facts_of(tmp_path, nodes, [("image", TensorProto.FLOAT, ["batch", 3, 8, 8])], [kernel])
    assert facts.inputs[0].role == "pixels"
    assert facts.outputs[0].padding.right == "n/a"


def test_blocked_convolutions_of_onnxruntime_are_convolutions(tmp_path):
    nodes = [
        helper.make_node("Conv", ["image", "kernel"], ["blocked"], domain="com.microsoft.nchwc", kernel_shape=[2, 2]),
        helper.make_node("ReorderOutput", ["blocked"], ["y"], domain="com.microsoft.nchwc", channels=3),
    ]
    kernel = constant("kernel", np.ones((4, 3, 2, 2)))
    image = ("image", TensorProto.FLOAT, ["batch", 3, 8, 8])
    facts = facts_of(tmp_path, nodes, [image], [kernel], domains=("com.microsoft.nchwc",))
    assert facts.inputs[0].role == "pixels"
    assert facts.unmodelled == ()
    assert facts.outputs[0].batch == "independent"


def test_a_mask_that_sizes_the_longest_row_mixes_no_content(tmp_path):
    """The largest length of the batch decides a divisor; what other rows hold does not matter."""
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("ReduceSum", ["mask", "axis"], ["n"], keepdims=0),
        helper.make_node("ReduceMax", ["n"], ["longest"], keepdims=0),
        helper.make_node("Cast", ["longest"], ["divisor"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["h", "divisor"], ["y"]),
    ]
    constants = [constant("words", np.ones((50, 8))), constant("axis", [1], np.int64)]
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS), ("mask", *TOKENS)], constants)
    assert facts.outputs[0].batch == "independent"


@pytest.mark.parametrize(("kind", "padded"), [("ReduceMean", "leaks"), ("ReduceMax", "leaks")])
def test_pooling_over_padding(tmp_path, kind, padded):
    nodes = [helper.make_node("Gather", ["words", "ids"], ["h"]), helper.make_node(kind, ["h"], ["y"], axes=[1], keepdims=0)]
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS)], [constant("words", np.ones((50, 8)))])
    assert facts.outputs[0].padding.right == padded
    assert facts.outputs[0].cause_right == "pooling"
    assert [entry.masked for entry in facts.reductions] == [False]


def test_a_masked_mean_divided_by_the_padded_length(tmp_path):
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["column"]),
        helper.make_node("Cast", ["column"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["h", "kept"], ["blanked"]),
        helper.make_node("ReduceMean", ["blanked"], ["y"], axes=[1], keepdims=0),
    ]
    constants = [constant("words", np.ones((50, 8))), constant("axis", [2], np.int64)]
    facts = facts_of(tmp_path, nodes, [("ids", *TOKENS), ("mask", *TOKENS)], constants)
    assert facts.outputs[0].padding.right == "safe"
    assert [(entry.masked, entry.divisor) for entry in facts.reductions] == [(True, "length")]
    assert facts.outputs[0].length_right


def test_a_batch_that_is_baked_into_a_reshape(tmp_path):
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    constants = [constant("words", np.ones((50, 8))), constant("shape", [2, 5, 8], np.int64)]
    facts = facts_of(tmp_path, nodes, [("ids", TensorProto.INT64, ["batch", 5])], constants)
    assert facts.batch.failed == 3
    assert facts.batch.accepted == 2


def test_a_hidden_size_that_equals_the_fixed_length_is_no_axis_over_positions(tmp_path):
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["tokens"]),
        helper.make_node("Cast", ["mask"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["float", "last"], ["column"]),
        helper.make_node("Mul", ["tokens", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "first"], ["pooled"], keepdims=0),
    ]
    constants = [constant("words", np.ones((50, 8))), constant("last", [2], np.int64), constant("first", [1], np.int64)]
    inputs = [(name, TensorProto.INT64, [2, 8]) for name in ("ids", "mask")]
    facts = facts_of(tmp_path, nodes, inputs, constants, ("pooled", "kept", "tokens"))
    assert [(output.sequence_axis, output.padding.right) for output in facts.outputs] == [
        (None, "safe"),
        (1, "safe"),
        (1, "safe"),
    ]


KINDS = np.random.default_rng(4).normal(size=(2, 8)).astype(np.float32)


def test_segments_that_were_folded_before_they_were_encoded_as_ones_and_zeros(tmp_path):
    """``one_hot(zeros_like(ids)) @ table``: TensorFlow's BERT without segments."""
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["word"]),
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"], value=numpy_helper.from_array(np.array([0]))),
        helper.make_node("OneHot", ["zeros", "two", "values"], ["picked"], axis=-1),
        helper.make_node("MatMul", ["picked", "segments"], ["kind"]),
        helper.make_node("Add", ["word", "kind"], ["sum"]),
        helper.make_node("MatMul", ["sum", "wq"], ["y"]),
    ]
    held = [*weights(), constant("segments", KINDS), constant("two", 2, np.int64), constant("values", [0, 1])]
    found = facts_of(tmp_path, nodes, [("ids", *TOKENS)], held)
    assert [(entry.kind, entry.index_from, entry.rows) for entry in found.embeddings[1:]] == [("segment", "constant", 2)]
    assert found.embeddings[1].distinct_rows


def test_segments_that_were_folded_before_a_product_with_a_table_that_stands_in_columns(tmp_path):
    """The same as OpenVINO converts it: the table turned over, the axis counted from the front."""
    ids = op.parameter([-1, -1], np.int64, name="ids")
    ids.output(0).set_names({"ids"})
    word = op.gather(op.constant(np.ones((50, 8), np.float32)), ids, op.constant(0))
    zeros = op.broadcast(op.constant(np.int64(0)), op.shape_of(ids))
    picked = op.one_hot(zeros, op.constant(2), op.constant(np.float32(1)), op.constant(np.float32(0)), 2)
    kind = op.matmul(picked, op.constant(KINDS.T.copy()), False, True)
    y = op.matmul(op.add(word, kind), op.constant(np.ones((8, 8), np.float32)), False, False)
    ov.save_model(ov.Model([y], [ids]), str(tmp_path / "model.xml"), compress_to_fp16=False)
    found = analyse(load(tmp_path / "model.xml"))
    assert [(entry.kind, entry.index_from, entry.rows) for entry in found.embeddings[1:]] == [("segment", "constant", 2)]
    assert found.embeddings[1].distinct_rows


def test_the_last_step_of_a_window_of_measurements_is_no_error(tmp_path):
    """A forecaster reads the last state of an LSTM over a fixed window: nothing says that windows are ever padded."""
    graph = helper.make_graph(
        [
            helper.make_node("Transpose", ["series"], ["steps"], perm=[1, 0, 2]),
            helper.make_node("LSTM", ["steps", "w", "r"], ["states"], hidden_size=4),
            helper.make_node("Gather", ["states", "last"], ["end"], axis=0),
            helper.make_node("Gather", ["end", "first"], ["state"], axis=0),
            helper.make_node("MatMul", ["state", "head"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("series", TensorProto.FLOAT, ["batch", 24, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            constant("w", np.ones((1, 16, 5))), constant("r", np.ones((1, 16, 4))), constant("last", -1, np.int64),
            constant("first", 0, np.int64), constant("head", np.ones((4, 3))),
        ],
    )  # fmt: skip
    path = tmp_path / "forecaster.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    found = {finding.rule: finding.severity for _, finding in check(path, config=False).findings()}
    assert found.get("unmasked-pooling") == "note"
    assert set(found.values()) == {"note"}
