"""The rule language: what it accepts, what it refuses when loaded, and what expressions evaluate to."""

from __future__ import annotations

from typing import Literal

import pytest

from wirelint.facts import EmbeddingFacts, ExpectationFacts, InputFacts, MaskFacts, ModelFacts, Place, SequenceFacts
from wirelint.rules.conditions import ExpressionError, compile_expression, names_for

MASK = InputFacts(1, "attention_mask", ("attention_mask",), "", "i64", ("batch", 128), role="mask", confidence=0.9)
IDS = InputFacts(0, "input_ids", ("input_ids",), "", "i64", None, role="ids", confidence=1.0)
MODEL = ModelFacts(
    "model.onnx",
    "onnx",
    inputs=[IDS, MASK],
    embeddings=[EmbeddingFacts(Place("lookup", "Gather"), "table", 2, 8, kind="segment", constant_index=0)],
    mask=MaskFacts(name="attention_mask", fill=None),
    sequence=SequenceFacts(length="seq"),
    expect=ExpectationFacts(mismatches={"tokenizer-mismatch": ("no mask",)}, input_names=("input_ids",)),
)
NAMES = {
    "model": MODEL,
    "attention": MODEL.attention,
    "mask": MODEL.mask,
    "sequence": MODEL.sequence,
    "batch": MODEL.batch,
    "expect": MODEL.expect,
    "input": MASK,
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input.role == 'mask' and not input.has_default", True),
        ("input.role in ('ids', 'segment')", False),
        ("input.index + 1 == len(model.inputs)", True),
        ("0 < input.index < 3", True),
        ("'mask' in model.roles()", True),
        ("any(entry.role == 'ids' for entry in model.inputs)", True),
        ("all(entry.rows > 2 for entry in model.embeddings)", False),
        ("len([entry for entry in model.inputs if entry.shape is not None and len(entry.shape) == 2])", 1),
        ("input.shape is not None and input.shape[1] == 128", True),
        ("mask.fill is None or mask.fill < -1e4", True),
        ("mask.fill is not None and mask.fill < -1e4", False),
        ("'tokenizer-mismatch' in expect.mismatches", True),
        ("expect.mismatches['tokenizer-mismatch']", ("no mask",)),
        ("input.name.startswith('attention') and input.shown != ''", True),
        ("'mask' if input.index == 1 else 'other'", "mask"),
        ("input.is_float", False),
        ("max(entry.confidence for entry in model.inputs)", 1.0),
        ("sequence.length == 128 or sequence.length == 'seq'", True),
        ("expect.wants_mask is None", True),
        ("model.format == 'onnx'", True),
    ],
)
def test_evaluates(source: str, value: object) -> None:
    assert compile_expression(source, names_for("input")).evaluate(NAMES) == value


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("input.rolle == 'mask'", "'input' has no field 'rolle'; did you mean 'role'?"),
        ("inptu.role == 'mask'", "unknown name 'inptu'; did you mean 'input'?"),
        ("output.index == 0", "unknown name 'output'"),
        ("model.mask.polarty == ''", "did you mean 'polarity'?"),
        ("any(entry.rol == 'ids' for entry in model.inputs)", "'entry' has no field 'rol'"),
        ("model.roles", "'model.roles' is a method; write 'model.roles()'"),
        ("model.roles == 'ids'", "is a method"),
        ("model.roles('x')", "takes 0 arguments, not 1"),
        ("input.index == 'mask'", "they are never equal"),
        ("input.name == None", "they are never equal"),
        ("input.index in ('0', '1')", "they are never equal"),
        ("input.name > 3", "only numbers are larger or smaller, and 'input.name' is text"),
        ("mask.fill < -1e4", "'mask.fill' may be None; write 'mask.fill is not None and ...'"),
        ("mask.fill is None and mask.fill < 0", "may be None"),
        ("not (mask.fill is not None) and mask.fill < 0", "may be None"),
        ("len(input.shape) == 2", "'input.shape' may be None"),
        ("input.name is not None", "'input.name' is never None"),
        ("input.name + 'x' == 'yx'", "must be a number, and is text"),
        ("len(input.index)", "'len' needs a collection"),
        ("open('x')", "unknown function 'open'"),
        ("input.__class__", "has no field '__class__'"),
        ("input.name.format('x')", "has no method 'format'"),
        ("(lambda: 1)()", "unknown function"),
        ("[input for input in model.inputs]", "'input' has a meaning already"),
        ("input.index ** 9", "is not part of the rule language"),
        ("f'{input.name}' == ''", "is not part of the rule language (JoinedStr)"),
        ("input.index == 0 or", "no valid expression"),
        ("input.index = 0", "no valid expression"),
        ("(" * 400 + "1" + ")" * 400, "no valid expression"),
        ("input.used\0", "no valid expression"),
        ("not " * 60 + "input.used", "nested too deeply"),
        ("input.used and " * 200 + "input.used", "longer than"),
    ],
)
def test_refuses_when_compiled(source: str, cause: str) -> None:
    """Whatever would fail, or silently pass, later."""
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, names_for("input"))
    assert cause in str(caught.value)


def test_a_field_of_few_values_is_never_another() -> None:
    """Types that list their values are held to them."""
    names = {"verdict": Literal["safe", "leaks"]}
    assert compile_expression("verdict == 'safe'", names).evaluate({"verdict": "leaks"}) is False
    for source in ("verdict == 'saef'", "'saef' == verdict", "verdict in ('leaks', 'saef')"):
        with pytest.raises(ExpressionError, match="'verdict' is never 'saef'; did you mean 'safe'"):
            compile_expression(source, names)


def test_a_given_condition_counts() -> None:
    given = compile_expression("mask.fill is not None", names_for("model"))
    assert compile_expression("mask.fill < 0", names_for("model"), given).hint is bool


def test_file_rules_see_the_file_alone() -> None:
    assert set(names_for("file")) == {"file"}
    assert compile_expression("attention.mask == 'absent'", names_for("attention")), "a site, not all of them"
    with pytest.raises(ExpressionError, match="has no field 'mask'"):
        compile_expression("attention.mask == 'absent'", names_for("model"))
