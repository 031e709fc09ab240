"""Configuration files, overrides, suppressions and the baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Put = Callable[[dict[str, Any]], None]
Run = Callable[..., Result]
ReportOf = Callable[..., dict[str, Any]]
RulesOf = Callable[[dict[str, Any]], dict[str, list[str]]]

UNUSED = {"inputs": [["input_ids", "ids", True], ["attention_mask", "mask", False]]}
BOTH = {**UNUSED, "default": True}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wirelint.yaml", "ignore: [default-valued-input]\nfail-on: warning\n"),
        (".wirelint.yaml", "ignore: [default-valued-input]\nfail-on: warning\n"),
        ("pyproject.toml", '[tool.wirelint]\nignore = ["default-valued-input"]\nfail-on = "warning"\n'),
    ],
)
def test_the_nearest_configuration_counts(put: Put, report: ReportOf, rules_of: RulesOf, name: str, text: str) -> None:
    put({name: text, "sub/deep/m.onnx": BOTH, "other/wirelint.yaml": "select: [file]\n", "other/m.onnx": BOTH})
    document = report("sub", "other")
    assert rules_of(document) == {"sub/deep/m.onnx": ["unused-input"], "other/m.onnx": []}
    assert document["exit"] == 1
    assert report("sub", "--no-config")["exit"] == 0
    assert report("sub", "--fail-on", "error")["exit"] == 0, "the command line has the last word"


def test_the_search_ends_at_the_repository(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    Path("../wirelint.yaml").write_text("ignore: [all]\n")
    put({"m.onnx": UNUSED, "pyproject.toml": "[tool.other]\n"})
    assert rules_of(report("m.onnx"))["m.onnx"] == ["unused-input"]


def test_overrides_apply_by_path(put: Put, report: ReportOf) -> None:
    put(
        {
            "wirelint.yaml": """\
severity: {unused-input: note}
overrides:
  - paths: ["release/**"]
    severity: {unused-input: error}
  - paths: ["*.draft.onnx"]
    ignore: [inputs]
""",
            "a.onnx": UNUSED,
            "release/x/a.onnx": UNUSED,
            "release/a.draft.onnx": UNUSED,
        }
    )
    found = {model["path"]: [finding["severity"] for finding in model["findings"]] for model in report(".")["models"]}
    assert found == {"./a.onnx": ["note"], "./release/x/a.onnx": ["error"], "./release/a.draft.onnx": []}


def test_excluded_models_are_passed_over_and_said_so(put: Put, report: ReportOf) -> None:
    put({"wirelint.yaml": "exclude: [old/, '*.tmp.onnx']\n", "old/m.onnx": UNUSED, "x/m.tmp.onnx": UNUSED, "m.onnx": UNUSED})
    document = report(".", "old/m.onnx")
    assert [model["path"] for model in document["models"]] == ["./m.onnx"]
    assert {entry["path"] for entry in document["summary"]["passed_over"]} == {"./old/m.onnx", "./x/m.tmp.onnx"}


def test_a_configuration_brings_rules_and_a_baseline_relative_to_itself(put: Put, run: Run, report: ReportOf) -> None:
    rule = "id: own\ncode: OWN001\nfor: model\nwhen: model.operators == 0\nseverity: error\nconfidence: low\n"
    put({"p/wirelint.yaml": "rules: [policy]\nbaseline: known.json\n", "p/m.onnx": UNUSED})
    put({"p/policy/own.yaml": rule + "message: empty\nwhat: w\nwhy: w\nmend: m\n"})
    assert run("baseline", "p", "-o", "p/known.json").exit_code == 0
    document = report("p")
    assert document["models"][0]["findings"] == []
    assert sorted(entry["rule"] for entry in document["models"][0]["suppressed"]) == ["own", "unused-input"]


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("\nselct: [all]\n", 2, "unknown key 'selct'; did you mean 'select'?"),
        ("select: all\n", 1, "select must be a list of texts, not text"),
        ("fail-on: fatal\n", 1, "fail-on must not be 'fatal'; known are: error, never, note, warning"),
        ("severity:\n  unused-input: bad\n", 2, "severity.unused-input must not be 'bad'"),
        ("overrides:\n  - select: [all]\n", 2, "an override needs 'paths'"),
        ("overrides:\n  - paths: [a]\n    wat: 1\n", 3, "unknown key 'wat'"),
        ("suppressions:\n  - rule: unused-input\n    path: m.onnx\n", 2, "a suppression needs 'reason'"),
        ("suppressions:\n  - {rule: x, path: y, reason: ''}\n", 2, "suppressions[0].reason must not be empty"),
        ("trust-model-suppressions: 'yes'\n", 1, "must be true or false, not text"),
        ("a: b: c\n", 1, "no valid YAML"),
        ("- x\n", 1, "the file must be a mapping"),
    ],
)
def test_a_wrong_configuration_names_file_line_and_cause(put: Put, run: Run, text: str, line: int, cause: str) -> None:
    put({"wirelint.yaml": text, "m.onnx": UNUSED})
    result = run("check", "m.onnx")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"wirelint: error: wirelint.yaml:{line}: ")
    assert cause in result.stderr


def test_a_wrong_table_names_its_line(put: Put, run: Run) -> None:
    put(
        {
            "pyproject.toml": '[project]\nname = "x"\nselct = 1\n\n[tool.wirelint]\nignore = []\nselct = ["all"]\n',
            "m.onnx": UNUSED,
        }
    )
    assert "pyproject.toml:7: unknown key 'selct'; did you mean 'select'?" in run("check", "m.onnx").stderr
    put({"pyproject.toml": "[tool.wirelint\n"})
    assert "no valid TOML" in run("check", "m.onnx").stderr


@pytest.mark.parametrize("key", ["select", "ignore"])
def test_an_unknown_rule_in_a_configuration_names_the_file(put: Put, run: Run, key: str) -> None:
    put({"wirelint.yaml": f"overrides: [{{paths: [x], {key}: [unused-inptu]}}]\n", "m.onnx": UNUSED})
    result = run("check", "m.onnx")
    assert result.exit_code == 2
    assert "wirelint.yaml: no rule is called 'unused-inptu'; did you mean 'unused-input'?" in result.stderr


SUPPRESSIONS = """\
suppressions:
  - {rule: unused-input, path: "a.onnx", input: 1, reason: kept for the common signature}
  - {rule: unused-input, path: "b.onnx", input: token_type_ids, reason: another input}
  - {rule: WL108, path: "*.onnx", where: "input*", reason: the default is wanted}
  - {rule: unused-input, path: "elsewhere.onnx", reason: not checked in this run}
"""


def test_suppressions_need_a_reason_and_are_announced(put: Put, run: Run, report: ReportOf, rules_of: RulesOf) -> None:
    put({"wirelint.yaml": SUPPRESSIONS, "a.onnx": UNUSED, "b.onnx": BOTH})
    document = report("a.onnx", "b.onnx")
    assert rules_of(document) == {"a.onnx": [], "b.onnx": ["unused-input", "default-valued-input"]}
    (quiet,) = document["models"][0]["suppressed"]
    assert (quiet["by"], quiet["reason"]) == ("configuration", "kept for the common signature")
    assert quiet["source"].endswith("wirelint.yaml:2")
    assert [entry["reason"] for entry in document["summary"]["stale_suppressions"]] == ["another input"]
    text = run("check", "a.onnx", "b.onnx").stdout
    assert "; 2 suppressed" in text
    assert "wirelint.yaml:3: nothing to suppress any more: unused-input in b.onnx (another input)" in text


def test_a_suppression_of_a_rule_that_is_off_is_not_called_stale(put: Put, report: ReportOf) -> None:
    put({"wirelint.yaml": SUPPRESSIONS, "b.onnx": UNUSED})
    assert report("b.onnx", "--select", "file")["summary"]["stale_suppressions"] == []


def test_models_cannot_suppress_unless_trusted(put: Put, run: Run, report: ReportOf, rules_of: RulesOf) -> None:
    put({"m.onnx": {**UNUSED, "metadata": "unused-input: we know; file: nothing"}, "n.onnx": {**UNUSED, "metadata": "all"}})
    assert rules_of(report("m.onnx"))["m.onnx"] == ["unused-input"]
    put({"wirelint.yaml": "trust-model-suppressions: true\n"})
    (quiet,) = report("m.onnx")["models"][0]["suppressed"]
    assert (quiet["by"], quiet["reason"]) == ("model", "we know")
    result = run("check", "n.onnx")
    assert result.exit_code == 2
    assert "n.onnx: metadata 'wirelint.ignore': write 'rule: reason', with a reason" in result.stderr


def test_a_baseline_gates_on_what_is_new(put: Put, run: Run, report: ReportOf, rules_of: RulesOf) -> None:
    put({"a.onnx": UNUSED, "b.onnx": UNUSED})
    written = run("baseline", "a.onnx", "b.onnx", "-o", "known.json")
    assert (written.exit_code, written.stdout) == (0, "")
    assert "2 findings written to known.json" in written.stderr
    arguments = ("a.onnx", "b.onnx", "--baseline", "known.json", "--fail-on", "warning")
    assert report(*arguments)["exit"] == 0
    put({"a.onnx": {"inputs": [["renamed", "ids", True], ["other", "mask", False]]}})
    assert report(*arguments)["exit"] == 0, "the same fault under other names"
    put({"a.onnx": {**UNUSED, "inputs": [["x", "ids", False], ["m", "mask", False]]}})
    document = report(*arguments)
    assert (document["exit"], rules_of(document)["a.onnx"]) == (1, ["unused-input"])
    put({"a.onnx": {"inputs": [["x", "ids", True]]}})
    stale = report(*arguments)["summary"]["stale_suppressions"]
    assert [(entry["rule"], entry["path"]) for entry in stale] == [("unused-input", "a.onnx")]


def test_a_baseline_is_the_same_from_wherever_it_is_written(
    put: Put, run: Run, report: ReportOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    put({"wirelint.yaml": "baseline: known.json\n", "m/a.onnx": UNUSED})
    run("baseline", ".", "-o", "known.json")
    entries = json.loads(Path("known.json").read_text())["findings"]
    assert [entry["path"] for entry in entries] == ["m/a.onnx"]
    monkeypatch.chdir("m")
    assert report("a.onnx", "--fail-on", "note")["exit"] == 0
    assert report("a.onnx", "--fail-on", "note", "--no-baseline")["exit"] == 1


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "wirelint-baseline/1"}', '{"schema": "wirelint-baseline/1", "findings": [1]}']
)
def test_a_wrong_baseline_is_one_clear_line(put: Put, run: Run, text: str) -> None:
    put({"m.onnx": UNUSED, "known.json": text})
    result = run("check", "m.onnx", "--baseline", "known.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("wirelint: error: known.json: ")


def test_config_shows_what_holds_for_a_model(put: Put, run: Run) -> None:
    put({"wirelint.yaml": "overrides: [{paths: [m.onnx], severity: {unused-input: error}}]\n"})
    shown = json.loads(run("config", "m.onnx").stdout)
    assert shown["severity"] == {"unused-input": "error"}
    assert shown["file"].endswith("wirelint.yaml")
    assert json.loads(run("config").stdout)["severity"] == {}
