"""What a comparison says about two models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from wirelint import facts
from wirelint.compare import Difference, differences, mismatches
from wirelint.compare.difference import SEVERITIES
from wirelint.facts import (
    AttentionFacts,
    EmbeddingFacts,
    InputFacts,
    ModelFacts,
    OutputFacts,
    PaddingFacts,
    Place,
    SiteFacts,
)

MODELS = Path(__file__).parents[2] / "sample_models"
NAMES = {"ids": "input_ids", "mask": "attention_mask", "segment": "token_type_ids"}


def bert() -> ModelFacts:
    """A BERT whose facts are all as they should be."""
    inputs = [
        InputFacts(index, name, (name,), "", "i64", ("batch", "sequence"), role=role, confidence=0.95, name_kind="conventional")
        for index, (role, name) in enumerate(NAMES.items())
    ]
    sites = [SiteFacts(Place(f"layer.{layer}", "Softmax"), mask="effective") for layer in range(2)]
    output = OutputFacts(
        0,
        "logits",
        "f32",
        ("batch", 2),
        PaddingFacts("safe", "safe"),
        "independent",
        ("ids", "mask", "segment"),
    )
    tables = [
        EmbeddingFacts(Place(), "words", 100, 8, "token", "input", 0),
        EmbeddingFacts(Place(), "types", 2, 8, "segment", "input", 2),
        EmbeddingFacts(Place(), "places", 64, 8, "position", "ids"),
    ]
    return ModelFacts(
        "reference.onnx",
        "onnx",
        inputs=inputs,
        outputs=[output],
        attention=AttentionFacts(total=2, maskable=2, effective=2, sites=sites),
        embeddings=tables,
    )


def changed(**changes: Any) -> ModelFacts:
    """The same with the attributes of its parts set: ``input_1_name``, ``output_0_dtype``, ``site_0_mask``..."""
    model = copy.deepcopy(bert())
    model.path = "model.onnx"
    parts = {"input": model.inputs, "output": model.outputs, "site": model.attention.sites, "table": model.embeddings}
    for key, value in changes.items():
        part, index, attribute = key.split("_", 2)
        setattr(parts[part][int(index)], attribute, value)
    return model


def found(model: ModelFacts, reference: ModelFacts | None = None) -> list[Difference]:
    return differences(reference or bert(), model)


def kinds(model: ModelFacts) -> dict[str, str]:
    return {difference.kind: difference.severity for difference in found(model)}


def without(index: int) -> ModelFacts:
    model = changed()
    gone = model.inputs.pop(index)
    model.outputs[0].depends_on = tuple(role for role in model.outputs[0].depends_on if role != gone.role)
    for position, entry in enumerate(model.inputs):
        entry.index = position
    return model


def test_nothing_changed() -> None:
    assert found(changed()) == []
    assert mismatches(bert(), changed()) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"input_1_name": "mask.1", "input_1_names": ("mask.1",)}, {"input-renamed": "error"}),
        ({"input_1_name": "", "input_1_names": ()}, {"input-renamed": "error"}),
        ({"input_1_names": ("mask.1", "attention_mask"), "input_1_name": "mask.1"}, {}),
        ({"input_1_dtype": "i32"}, {"input-retyped": "warning"}),
        ({"input_1_dtype": "f32"}, {"input-retyped": "error"}),
        ({"input_1_has_default": True}, {"input-optional": "warning"}),
        ({"input_1_used": False}, {"input-inert": "error"}),
        ({"input_1_shape": ("batch", 128)}, {"axis-fixed": "error"}),
        ({"input_1_shape": ("batch", 1, 1, "sequence")}, {"rank-changed": "error"}),
        ({"input_1_shape": ("b", None)}, {}),
        ({"site_1_mask": "absent"}, {"mask-lost": "error"}),
        ({"site_1_mask": "unknown"}, {}),
        ({"table_2_index_from": "range"}, {"positions-changed": "error"}),
        ({"table_2_rows": 32}, {"table-shortened": "warning"}),
        ({"table_1_index_from": "constant", "table_1_constant_index": 0}, {"segments-folded": "error"}),
        ({"output_0_name": "scores"}, {"output-renamed": "warning"}),
        ({"output_0_dtype": "f16"}, {"output-retyped": "note"}),
        ({"output_0_dtype": "i64"}, {"output-retyped": "warning"}),
        ({"output_0_sequence_axis": 1}, {"output-pooled": "error"}),
        ({"output_0_padding": PaddingFacts("leaks", "safe")}, {"padding-lost": "error"}),
        ({"output_0_padding": PaddingFacts("safe", "leaks")}, {"padding-lost": "note"}),
        ({"output_0_padding": PaddingFacts("unknown", "safe")}, {"padding-lost": "note"}),
        ({"output_0_length_right": True}, {"padding-lost": "error"}),
        ({"output_0_batch": "mixes"}, {"rows-lost": "error"}),
        ({"output_0_batch": "unknown"}, {}),
        ({"output_0_depends_on": ("ids", "segment")}, {"dependence-lost": "error"}),
        ({"output_0_depends_on": ("ids", "segment"), "output_0_unmodelled": ("Foo",)}, {}),
        ({"output_0_finite": False}, {"not-finite": "error"}),
    ],
)
def test_single_changes(changes: dict[str, Any], expected: dict[str, str]) -> None:
    assert kinds(changed(**changes)) == expected


def test_the_side_that_the_tokenizer_pads_counts() -> None:
    model = changed(output_0_padding=PaddingFacts("leaks", "leaks"))
    model.expect.pads = "left"
    assert {difference.sentence[:19]: difference.severity for difference in found(model)} == {
        "padding on the left": "error",
        "padding on the righ": "note",
    }


def test_axes_fixed_alike_are_one_warning() -> None:
    model = changed(**{f"input_{index}_shape": (1, "sequence") for index in range(3)})
    (difference,) = found(model)
    assert (difference.kind, difference.severity) == ("axis-fixed", "warning")
    assert "(and of 2 more)" in difference.sentence


def test_opened_axes_take_nothing_away() -> None:
    fixed = changed(**{f"input_{index}_shape": (1, 128) for index in range(3)})
    assert {difference.severity for difference in found(changed(), fixed)} == {"note"}


def test_a_dropped_segment_says_what_stands_there() -> None:
    model = without(2)
    model.embeddings[1].index_from, model.embeddings[1].constant_index = "constant", 0
    (difference,) = found(model)
    assert difference.kind == "input-dropped"
    assert (
        "input 2 'token_type_ids' of the reference (segment) is gone: its table is always read at row 0" in difference.sentence
    )


def test_a_dropped_mask_says_how_many_sites_lack_it() -> None:
    model = without(1)
    model.attention = AttentionFacts(total=2, maskable=2, absent=2, sites=[])
    assert "2 of 2 attention sites have no padding mask" in found(model)[0].sentence


def test_an_added_input() -> None:
    reference = without(2)
    assert [difference.kind for difference in found(changed(), reference)] == ["input-added"]
    assert found(changed(input_2_has_default=True), reference)[0].severity == "note"


def test_exchanged_names_are_two_renamed_inputs() -> None:
    model = changed(
        input_1_name="token_type_ids",
        input_1_names=("token_type_ids",),
        input_2_name="attention_mask",
        input_2_names=("attention_mask",),
    )
    assert [difference.kind for difference in found(model)] == ["input-renamed", "input-renamed"]


def test_a_generated_name_that_became_a_known_one_is_no_loss() -> None:
    reference = changed(input_1_name="onnx::Cast_1", input_1_names=("onnx::Cast_1",), input_1_name_kind="generated")
    (difference,) = found(changed(), reference)
    assert (difference.kind, difference.lost) == ("input-renamed", False)


def test_order_is_said_apart() -> None:
    model = changed()
    model.inputs = [model.inputs[index] for index in (1, 0, 2)]
    for position, entry in enumerate(model.inputs):
        entry.index = position
    said = mismatches(bert(), model)
    assert set(said) == {"input-order"}
    assert "attention_mask, input_ids, token_type_ids here and input_ids, attention_mask" in said["input-order"][0]


def test_warnings_are_said_apart() -> None:
    assert set(mismatches(bert(), changed(input_1_dtype="i32"))) == {"reference-change"}
    assert set(mismatches(bert(), changed(input_1_dtype="f32"))) == {"reference-drift"}


def test_weights_listed_as_inputs_are_passed_over() -> None:
    reference = bert()
    reference.inputs.append(InputFacts(3, "encoder.weight", ("encoder.weight",), "", "f32", (8, 8), weight=True))
    assert differences(reference, changed()) == []


def test_the_worst_comes_first() -> None:
    model = changed(input_0_dtype="i32", output_0_finite=False, site_0_mask="constant")
    ranks = [SEVERITIES.index(difference.severity) for difference in found(model)]
    assert ranks == sorted(ranks)


def test_sites_that_were_merged_are_compared_by_what_they_do() -> None:
    model = changed()
    model.attention.sites = [SiteFacts(Place("fused", "Attention"), mask="effective")]
    assert found(model) == []
    model.attention.sites[0].mask = "noop"
    assert [difference.kind for difference in found(model)] == ["mask-lost"]


def test_real_conversions_lose_nothing() -> None:
    for name in ("bert_classifier", "embedder", "roberta", "t5_encoder"):
        assert [
            difference
            for difference in differences(facts(MODELS / f"clean/{name}.onnx"), facts(MODELS / f"clean/{name}_ov.xml"))
            if difference.lost
        ] == [], name


def test_a_real_conversion_that_lost_the_segments() -> None:
    found = differences(facts(MODELS / "clean/bert_qa.onnx"), facts(MODELS / "stories/qa/qa_without_token_type_ids.onnx"))
    assert [difference.kind for difference in found if difference.severity == "error"] == ["input-dropped"]
