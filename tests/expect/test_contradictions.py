"""Contradictions as findings: one each, with the file that says so, and which companion decided what."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from wirelint.cli import cli
from wirelint.facts import ExpectationFacts
from wirelint.rules import evaluate, load_rules

if TYPE_CHECKING:
    from repositories import Repository

    from wirelint.findings import Finding

GENAI = {"model": {"decoder": {"filename": "model.onnx", "inputs": {"input_ids": "input_ids"}, "outputs": {}}}}


def findings(repository: Repository) -> list[Finding]:
    repository.facts.expect.mismatches = repository.judged()
    return evaluate(load_rules(()), repository.facts, "model.onnx")


def test_each_contradiction_is_a_finding_and_layers_count_once(repository: Repository) -> None:
    repository.write("genai_config.json", GENAI).takes("ids", "mask")
    for layer in range(3):
        repository.takes("past", name=f"past.{layer}.key")
    found = [finding for finding in findings(repository) if finding.rule == "serving-config-mismatch"]
    assert ["'attention_mask'" in finding.message for finding in found] == [True, False]
    assert found[1].message.endswith("name it there (and 2 more like it)")
    assert len({finding.fingerprint for finding in found}) == 2


def test_what_differs_in_more_than_its_number_stays_apart() -> None:
    alike = ("input 3 'past.0.key' is f16", "input 4 'past.1.key' is f16")
    other = ("axis 0 of 'x' is fixed at 2", "axis 1 of 'x' is fixed at 7")
    expect = ExpectationFacts(mismatches={"reference-drift": alike, "reference-change": other})
    assert [entry.text for entry in expect.contradictions] == [f"{alike[0]} (and 1 more like it)", *other]


def test_a_baseline_does_not_hide_a_second_contradiction(repository: Repository) -> None:
    repository.write("genai_config.json", GENAI).takes("ids", "mask")
    known = {finding.fingerprint for finding in findings(repository)}
    repository.takes("position")
    assert [finding.rule for finding in findings(repository) if finding.fingerprint not in known] == ["serving-config-mismatch"]


@pytest.mark.parametrize(
    ("name", "held", "field", "said"),
    [
        ("tokenizer_config.json", {"padding_side": "left"}, "pads_said", "tokenizer_config.json says padding_side: left"),
        ("tokenizer.json", {"padding": {"direction": "Left"}}, "pads_said", "tokenizer.json says padding.direction: left"),
        ("tokenizer_config.json", {"model_max_length": 77}, "length_said", "tokenizer_config.json lets 77 tokens through"),
        (
            "tokenizer_config.json",
            {"model_input_names": ["input_ids"]},
            "mask_said",
            "tokenizer_config.json (model_input_names) makes input_ids",
        ),
        (
            "preprocessor_config.json",
            {"return_attention_mask": False},
            "mask_said",
            "preprocessor_config.json says return_attention_mask: false",
        ),
        (
            "config.json",
            {"model_type": "roberta", "type_vocab_size": 1},
            "segments_said",
            "config.json says type_vocab_size: 1",
        ),
        (
            "config.json",
            {"architectures": ["BertForQuestionAnswering"]},
            "task_said",
            "config.json says BertForQuestionAnswering, which is for pairs of texts",
        ),
    ],
)
def test_what_was_said_names_its_file(repository: Repository, name: str, held: dict[str, Any], field: str, said: str) -> None:
    repository.write(name, held).judged()
    assert getattr(repository.facts.expect, field) == said


def test_a_finding_that_a_companion_decides_names_it(tmp_path: Path) -> None:
    """The same model is a note without the file, and an error that names it with the file."""

    sample = Path(__file__).parents[2] / "sample_models" / "clean" / "bert_classifier.onnx"
    shutil.copy(sample, tmp_path / "model.onnx")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"padding_side": "left"}))
    result = CliRunner().invoke(cli, ["check", "-f", "json", "--no-config", str(tmp_path)])
    (finding,) = [
        entry for entry in json.loads(result.stdout)["models"][0]["findings"] if entry["rule"] == "left-padding-unsafe"
    ]
    assert finding["severity"] == "error"
    assert "tokenizer_config.json says padding_side: left" in finding["message"]
