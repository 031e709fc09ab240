"""Masks that are spelt in other ways than a subtraction from one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest
from onnx import TensorProto, helper
from small_graphs import TOKENS, constant, examined, words

from wirelint.analysis import analyse
from wirelint.formats import load

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import NodeProto
    from onnx import TensorProto as Constant

    from wirelint.facts import ModelFacts

LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize(
    "asked",
    [
        [helper.make_node("Min", ["ids", "one"], ["kept"])],
        [helper.make_node("Clip", ["ids", "zero", "one"], ["kept"])],
        [helper.make_node("Sign", ["ids"], ["kept"])],
        [
            helper.make_node("Cast", ["ids"], ["there"], to=TensorProto.BOOL),
            helper.make_node("Cast", ["there"], ["kept"], to=7),
        ],
    ],
    ids=["Min", "Clip", "Sign", "Cast"],
)
def test_ids_that_are_asked_whether_they_are_padding(tmp_path: Path, asked: list[NodeProto]) -> None:
    """A mask made inside from the ids, where 0 pads, tells where padding stands and not what stands there."""
    nodes = [
        *asked,
        helper.make_node("Unsqueeze", ["kept", "axis"], ["row"]),
        helper.make_node("Cast", ["row"], ["weight"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["weight", "unit"], ["gone"]),
        helper.make_node("Mul", ["gone", "much"], ["bias"]),
        *attention("ids"),
    ]
    constants = [
        constant("zero", 0, np.int64),
        constant("one", 1, np.int64),
        constant("axis", [1], np.int64),
        constant("unit", 1),
        constant("much", 1e9),
    ]
    facts = examined(tmp_path, nodes, [("ids", *TOKENS)], [words(), *constants])
    assert [site.mask for site in facts.attention.sites] == ["effective"]
    assert facts.outputs[0].padding.right == "safe"


def attention(ids: str) -> list[NodeProto]:
    """Attention of embedded ids to themselves under ``bias``."""
    return [
        helper.make_node("Gather", ["words", ids], ["h"]),
        helper.make_node("Transpose", ["h"], ["keys"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["h", "keys"], ["raw"]),
        helper.make_node("Add", ["raw", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "h"], ["y"]),
    ]


@pytest.mark.parametrize(("fill", "ruined"), [(LOWEST, True), (-100.0, False)])
def test_a_fake_quantiser_on_masked_scores(tmp_path: Path, fill: float, ruined: bool) -> None:
    """256 levels down to the lowest number leave one for all scores; down to -100 they leave steps of 0.4."""
    ids, mask = (ops.parameter([-1, -1], np.int64, name=name) for name in ("input_ids", "attention_mask"))
    for port in (ids, mask):
        port.output(0).get_tensor().set_names({port.get_friendly_name()})
    table = ops.constant(np.linspace(-1, 1, 50 * 8, dtype=np.float32).reshape(50, 8))
    hidden = ops.gather(table, ids, ops.constant(0))
    gone = ops.subtract(ops.constant(np.float32(1)), ops.convert(ops.unsqueeze(mask, ops.constant(1)), "f32"))
    biased = ops.add(
        ops.matmul(hidden, hidden, transpose_a=False, transpose_b=True), ops.multiply(gone, ops.constant(np.float32(fill)))
    )
    bounds = [ops.constant(np.float32(bound)) for bound in (fill, 0.0, fill, 0.0)]
    weights = ops.softmax(ops.fake_quantize(biased, *bounds, levels=256), -1)
    made = ov.Model([ops.matmul(weights, hidden, transpose_a=False, transpose_b=False)], [ids, mask], "m")
    ov.save_model(made, tmp_path / "model.xml", compress_to_fp16=False)
    facts = analyse(load(tmp_path / "model.xml"))
    assert facts.attention.quantised == (1 if ruined else 0)
    assert facts.outputs[0].padding.right == "safe"


def test_a_mask_that_grouped_query_attention_takes_as_a_length(tmp_path: Path) -> None:
    """As generators for ONNX Runtime are built: ``seqlens_k`` is the sum of the mask less one.

    The operator takes several tokens of several rows before there is a cache only, and knows right padding alone.
    """
    width = 16
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        *(helper.make_node("MatMul", ["h", f"w{part}"], [part]) for part in "qkv"),
        helper.make_node("ReduceSum", ["mask", "axis"], ["n"], keepdims=0),
        helper.make_node("Sub", ["n", "one"], ["end"]),
        helper.make_node("Cast", ["end"], ["seqlens_k"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["total"], start=1, end=2),
        helper.make_node("Squeeze", ["total"], ["length"]),
        helper.make_node("Cast", ["length"], ["total_sequence_length"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past_key", "past_value", "seqlens_k", "total_sequence_length"],
            ["y", "present_key", "present_value"],
            domain="com.microsoft",
            num_heads=1,
            kv_num_heads=1,
        ),
    ]
    constants = [
        words(width=width),
        *(constant(f"w{part}", np.eye(width)) for part in "qkv"),
        constant("axis", [1], np.int64),
        constant("one", 1, np.int64),
    ]
    cache = (TensorProto.FLOAT, ["batch", 1, "past", width])
    inputs = [
        ("ids", *TOKENS),
        ("mask", TensorProto.INT64, ["batch", "total"]),
        ("past_key", *cache),
        ("past_value", *cache),
    ]
    outputs = ("y", "present_key", "present_value")
    facts = examined(tmp_path, nodes, inputs, constants, outputs, ("com.microsoft",))
    assert [entry.role for entry in facts.inputs] == ["ids", "mask", "past", "past"]
    assert [site.mask for site in facts.attention.sites] == ["effective"]
    assert (facts.outputs[0].padding.right, facts.outputs[0].padding.left) == ("safe", "leaks")
    assert facts.batch.failed is None
    assert facts.sequence.failed_length is None


def decoder(folder: Path) -> ModelFacts:
    """A decoder that attends to encoder states without a mask."""
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h"]),
        helper.make_node("MatMul", ["states", "wk"], ["k"]),
        helper.make_node("Transpose", ["k"], ["keys"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["h", "keys"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "k"], ["y"]),
    ]
    inputs = [("ids", *TOKENS), ("states", TensorProto.FLOAT, ["batch", "positions", 8])]
    constants: list[Constant] = [words(), constant("wk", np.ones((8, 8)))]
    return examined(folder, nodes, inputs, constants)


@pytest.mark.parametrize(
    ("model_type", "heard"), [("vision-encoder-decoder", 0), ("pix2struct", 1), ("t5", 1), (None, 1)], ids=str
)
def test_the_patches_of_an_image_are_never_padded(tmp_path: Path, model_type: str | None, heard: int) -> None:
    if model_type is not None:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    facts = decoder(tmp_path)
    assert [entry.role for entry in facts.inputs] == ["decoder_ids", "encoder_states"]
    assert facts.attention.cross_heard == heard
    assert facts.outputs[0].padding.right == ("leaks" if heard else "safe")
