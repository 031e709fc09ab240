"""Rules over facts: which findings come of it, and what tells them apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from wirelint.facts import AttentionFacts, Evidence, FileFacts, InputFacts, ModelFacts, OutputFacts, Place, SiteFacts
from wirelint.findings import Confidence, Finding, Severity, Where
from wirelint.rules import RuleFailedError, RuleSet, evaluate, evaluate_file

Rules = Callable[..., RuleSet]


def entry(index: int, name: str, role: str, **more: Any) -> InputFacts:
    return InputFacts(index, name, (name,), "", "i64", ("batch", "seq"), role=role, confidence=0.9, **more)


def model(*inputs: InputFacts, **more: Any) -> ModelFacts:
    return ModelFacts("dir/model.xml", "openvino-ir", inputs=list(inputs), **more)


TWO = model(
    entry(0, "input_ids", "ids"),
    entry(
        1,
        "onnx::Unsqueeze_1",
        "mask",
        line=12,
        path=("Unsqueeze", "Convert"),
        evidence=(Evidence("added before softmax", Place("s", "Softmax"), "mask"),),
    ),
)


def test_a_finding_says_what_where_and_why(rule_set: Rules) -> None:
    rules = rule_set({"trace": "input.path", "evidence": "input.evidence", "how_we_know": "['role {input.role}']"})
    (finding,) = evaluate(rules, TWO, "dir/model.xml")
    assert finding.message == "input 1 'onnx::Unsqueeze_1' is a mask"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.where == Where("dir/model.xml", "input", 1, Place("onnx::Unsqueeze_1", line=12))
    assert finding.trace == ("Unsqueeze", "Convert")
    assert finding.evidence == ("role mask", "added before softmax")


def test_a_finding_without_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="without a file"):
        Finding("r", "X001", Severity.ERROR, Confidence.HIGH, "m", "w", "f", Where("", "model"))


def test_the_first_case_that_holds_decides(rule_set: Rules) -> None:
    cases = '[{when: input.index == 0, severity: note, message: "first"}, {when: input.index == 1, severity: warning}]'
    facts = model(entry(0, "a", "mask"), entry(1, "b", "mask"), entry(2, "c", "mask"))
    found = evaluate(rule_set({"severity": cases}), facts, "m")
    assert [(finding.severity.value, finding.message) for finding in found] == [
        ("warning", "input 1 'b' is a mask"),
        ("note", "first"),
    ]


def test_one_cause_gives_one_finding(rule_set: Rules) -> None:
    facts = model(entry(0, "a", "mask", used=False), entry(1, "b", "mask"))
    cause = {"id": "cause", "when": "not input.used"}
    on_model = rule_set({"id": "effect", "unless": "[cause]"}, cause)
    assert [finding.rule for finding in evaluate(on_model, facts, "m")] == ["cause"]
    on_entity = rule_set({"id": "effect", "unless": "[cause]", "same": "entity"}, cause)
    assert [(finding.rule, finding.where.index) for finding in evaluate(on_entity, facts, "m")] == [("effect", 1), ("cause", 0)]


def test_a_rule_may_report_once_per_model(rule_set: Rules) -> None:
    facts = model(entry(0, "a", "mask"), entry(1, "b", "mask"), entry(2, "c", "mask"))
    cases = "[{when: input.index == 1, severity: error}, {severity: note}]"
    (finding,) = evaluate(rule_set({"once": "true", "severity": cases}), facts, "m")
    assert (finding.message, finding.severity) == ("input 1 'b' is a mask (and 2 more)", Severity.ERROR)
    (alone,) = evaluate(rule_set({"once": "true", "when": "input.index == 2"}), facts, "m")
    assert alone.message == "input 2 'c' is a mask"


def test_rules_that_are_not_enabled_neither_report_nor_hide(rule_set: Rules) -> None:
    rules = rule_set({"id": "effect", "unless": "[cause]"}, {"id": "cause"})
    assert [finding.rule for finding in evaluate(rules, TWO, "m", {"effect"})] == ["effect"]


def test_worst_first_then_by_code_and_place(rule_set: Rules) -> None:
    rules = rule_set({"id": "b", "severity": "note"}, {"id": "a"}, {"id": "c", "when": "input.index >= 0"})
    assert [(finding.rule, finding.where.index) for finding in evaluate(rules, TWO, "m")] == [
        ("a", 1),
        ("c", 0),
        ("c", 1),
        ("b", 1),
    ]


def test_where_points_elsewhere(rule_set: Rules) -> None:
    site = SiteFacts(Place("/layer.0/Softmax", "Softmax", scope=("If_3",)))
    facts = model(*TWO.inputs, attention=AttentionFacts(total=1, sites=[site]))
    rules = rule_set({"for": "model", "when": "attention.total > 0", "message": "m", "where": "attention.sites[0]"})
    (finding,) = evaluate(rules, facts, "m")
    assert finding.where.place is site.place
    assert finding.where.kind == "model"


def test_an_expression_without_a_value_is_an_error_that_names_rule_and_model(rule_set: Rules) -> None:
    rules = rule_set({"for": "model", "when": "attention.sites[3].causal", "message": "m"})
    with pytest.raises(RuleFailedError, match=r"rule\.yaml: the rule 'some-rule' fails on dir/model\.xml: IndexError"):
        evaluate(rules, TWO, "m")


def test_a_file_that_could_not_be_read(rule_set: Rules) -> None:
    rules = rule_set({"for": "file", "when": "file.problem == 'unreadable'", "message": '"{file.message}"'}, {"id": "other"})
    (finding,) = evaluate_file(rules, [FileFacts("x.onnx", "onnx", "unreadable", "cut off", line=3)], "x.onnx")
    assert (finding.message, finding.where.place.line, finding.where.kind) == ("cut off", 3, "file")


def marks(rules: RuleSet, facts: ModelFacts, path: str = "m") -> list[str]:
    return [finding.fingerprint for finding in evaluate(rules, facts, path)]


def test_fingerprints_outlive_new_names_lines_messages_and_evidence(rule_set: Rules) -> None:
    again = model(TWO.inputs[0], dataclasses.replace(TWO.inputs[1], name="input.7", line=99, path=(), evidence=()))
    assert marks(rule_set({}), TWO) == marks(rule_set({"message": "Other.", "severity": "note"}), again)


def test_fingerprints_tell_apart_rule_path_role_and_position(rule_set: Rules) -> None:
    rules = rule_set({}, {"id": "other-rule"}, {"id": "roles", "when": "input.index == 1"})
    facts = model(entry(0, "a", "mask"), entry(1, "b", "mask"))
    segment = model(entry(0, "a", "ids"), entry(1, "b", "segment"))
    every = [*marks(rules, facts), *marks(rules, facts, "other"), *marks(rules, segment)]
    assert len(set(every)) == len(every) == 11


def test_fingerprints_of_like_places_are_counted_and_ignore_generated_scopes(rule_set: Rules) -> None:
    rules = rule_set({"for": "attention", "when": "not attention.causal", "message": "m"})

    def with_sites(*places: Place) -> ModelFacts:
        return model(attention=AttentionFacts(sites=[SiteFacts(place) for place in places]))

    before = marks(rules, with_sites(Place("a", "Softmax", scope=("If_1",)), Place("b", "Softmax"), Place("c", "Softmax")))
    after = marks(rules, with_sites(Place("x", "Softmax", scope=("If_9",)), Place("y", "Softmax"), Place("z", "Softmax")))
    assert sorted(before) == sorted(after)
    assert len(set(before)) == 3


def test_output_rules_point_at_the_output(rule_set: Rules) -> None:
    rules = rule_set({"for": "output", "when": "output.padding.right == 'n/a'", "message": '"{output.name}"'})
    facts = ModelFacts("m", "onnx", outputs=[OutputFacts(0, "logits", "f32", None, line=4)])
    (finding,) = evaluate(rules, facts, "m")
    assert finding.where == Where("m", "output", 0, Place("logits", line=4))
