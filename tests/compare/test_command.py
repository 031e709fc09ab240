"""``wirelint compare`` and ``wirelint check --reference``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wirelint.cli import cli

MODELS = Path(__file__).parents[2] / "sample_models"
FULL, FOLDED = MODELS / "clean/bert_qa.onnx", MODELS / "stories/qa/qa_without_token_type_ids.onnx"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, arguments)])


def test_nothing_lost() -> None:
    result = run(FULL, MODELS / "clean/bert_qa_ov.xml")
    assert result.exit_code == 0, result.output


def test_lost() -> None:
    result = run(FULL, FOLDED)
    assert result.exit_code == 1
    assert "input-dropped" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 error")


def test_document(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    assert run("-f", "json", "-o", target, FULL, FOLDED).exit_code == 1
    document = json.loads(target.read_text())
    assert document["schema"] == "wirelint-compare/1"
    assert document["lost"] is True
    assert document["differences"][0]["kind"] == "input-dropped"
    assert document["differences"][0]["input"] == 2


def test_buckets() -> None:
    assert run("--bucket", FULL, MODELS / "clean/bert_static_ov.xml", FOLDED).exit_code == 1
    result = run("--bucket", "-f", "json", FULL, FOLDED)
    assert json.loads(result.stdout)["sound"] is False


@pytest.mark.parametrize("arguments", [(FULL,), (FULL, FOLDED, FULL), ("--bucket", FULL), (FULL, "no/such/file.onnx")])
def test_usage(arguments: tuple[object, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_findings() -> None:
    result = CliRunner().invoke(cli, ["check", "-f", "json", "--reference", str(FULL), str(FOLDED)])
    rules = {finding["rule"] for finding in json.loads(result.stdout)["models"][0]["findings"]}
    assert "reference-drift" in rules
