"""``wirelint check``: which files, which rules, which exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Put = Callable[[dict[str, Any]], None]
Run = Callable[..., Result]
ReportOf = Callable[..., dict[str, Any]]
RulesOf = Callable[[dict[str, Any]], dict[str, list[str]]]

GOOD = {"inputs": [["input_ids", "ids", True], ["attention_mask", "mask", True]]}
UNUSED = {"inputs": [["input_ids", "ids", True], ["attention_mask", "mask", False]]}
DEFAULT = {"inputs": [["input_ids", "ids", True]], "default": True}


def test_exit_statuses(put: Put, run: Run) -> None:
    put({"good.onnx": GOOD, "unused.onnx": UNUSED, "broken.onnx": "no model", "crash.onnx": "crash", "readme/a.txt": "x"})
    assert run("check", "good.onnx").exit_code == 0
    assert run("check", "unused.onnx").exit_code == 0, "a warning"
    assert run("check", "unused.onnx", "--fail-on", "warning").exit_code == 1
    assert run("check", "broken.onnx").exit_code == 1
    assert run("check", "broken.onnx", "--fail-on", "never").exit_code == 0
    assert run("check", "crash.onnx").exit_code == 2
    assert run("check", "readme").exit_code == 3
    assert run("check", "nowhere").exit_code == 2
    assert run("check").exit_code == 2
    assert run("check", "good.onnx", "--fail-on", "fatal").exit_code == 2
    assert run("chekc").exit_code == 2


def test_report_on_stdout_all_else_on_stderr(put: Put, run: Run) -> None:
    put({"crash.onnx": "crash", "empty/a.txt": "x"})
    result = run("check", "crash.onnx", "-f", "json")
    assert json.loads(result.stdout)["models"][0]["fault"].startswith(
        "internal fault (KeyError: 'no\\nsuch key'); please report"
    )
    assert result.stderr.startswith("wirelint: crash.onnx: internal fault")
    assert len(result.stderr.splitlines()) == 1
    empty = run("check", "empty", "-f", "json")
    assert json.loads(empty.stdout)["models"] == []
    assert "no model file" in empty.stderr


def test_a_fault_in_one_model_does_not_hide_the_others(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    put({"a.onnx": "crash", "b.onnx": UNUSED, "c.onnx": "no model"})
    document = report(".")
    assert rules_of(document) == {"./a.onnx": [], "./b.onnx": ["unused-input"], "./c.onnx": ["unreadable"]}
    assert [model["status"] for model in document["models"]] == ["unreadable", "ok", "unreadable"]
    assert document["exit"] == 2


def test_debug_shows_the_traceback(put: Put) -> None:
    from click.testing import CliRunner

    from wirelint.cli import cli

    put({"crash.onnx": "crash"})
    assert "Traceback" in CliRunner().invoke(cli, ["check", "crash.onnx", "--debug"]).stderr


def test_folders_are_walked_in_order(put: Put, report: ReportOf) -> None:
    put(
        {
            "m/b.onnx": GOOD,
            "m/a/z.XML": "<net " + json.dumps(GOOD),
            "m/a/pom.xml": "<project/>",
            "m/c.ONNX": GOOD,
            "m/.cache/x.onnx": GOOD,
            "m/node_modules/x.onnx": GOOD,
            "m/myenv/pyvenv.cfg": "",
            "m/myenv/x.onnx": GOOD,
            "m/notes.txt": "x",
        }
    )
    document = report("m", "m/b.onnx")
    assert [model["path"] for model in document["models"]] == ["m/b.onnx", "m/c.ONNX", "m/a/z.XML"]
    assert document["summary"]["passed_over"] == [{"path": "m/a/pom.xml", "reason": "no OpenVINO IR"}]


def test_links_are_followed_but_not_in_circles(put: Put, report: ReportOf) -> None:
    put({"m/sub/a.onnx": GOOD, "blobs/1234": GOOD})
    Path("m/sub/again").symlink_to(Path("m").absolute())
    Path("m/linked.onnx").symlink_to(Path("blobs/1234").absolute())
    Path("m/dangling.onnx").symlink_to(Path("nowhere").absolute())
    models = report("m")["models"]
    assert [model["path"] for model in models] == ["m/dangling.onnx", "m/linked.onnx", "m/sub/a.onnx"]
    assert [model["status"] for model in models] == ["unreadable", "ok", "ok"]


def test_a_folder_that_cannot_be_listed_is_a_finding(put: Put, report: ReportOf, monkeypatch: pytest.MonkeyPatch) -> None:
    put({"m/a.onnx": GOOD, "m/shut/b.onnx": GOOD})
    listed = os.scandir

    def scandir(folder: str) -> Any:
        if Path(folder).name == "shut":
            raise PermissionError(13, "Permission denied")
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert {model["path"]: model["status"] for model in report("m")["models"]} == {"m/a.onnx": "ok", "m/shut": "unreadable"}


def test_a_named_file_that_is_no_model_is_a_finding(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    put({"pom.xml": "no model", "a.onnx": GOOD})
    document = report("pom.xml", "a.onnx")
    assert rules_of(document) == {"pom.xml": ["unreadable"], "a.onnx": []}
    assert document["models"][0]["findings"][0]["message"] == "neither an ONNX model nor an OpenVINO IR"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_refused_instead_of_waited_for(run: Run) -> None:
    os.mkfifo("pipe.onnx")
    result = run("check", "pipe.onnx")
    assert (result.exit_code, result.stderr) == (2, "wirelint: error: pipe.onnx: neither a file nor a folder\n")
    assert run("check", ".").exit_code == 3


def test_hooks_pass_over_what_is_no_model(put: Put, report: ReportOf) -> None:
    put({"pom.xml": "no model", "notes.txt": "x", "broken.onnx": "no model"})
    document = report("--only-models", "pom.xml", "notes.txt")
    assert (document["models"], document["exit"]) == ([], 0)
    assert report("--only-models", "pom.xml", "broken.onnx")["exit"] == 1


@pytest.mark.parametrize("weights", ["m/model.bin", "m/model.onnx.data", "m/model.onnx_data", "m/model.data", "m/tensors.data"])
def test_weights_stand_for_their_model(put: Put, report: ReportOf, weights: str) -> None:
    put({"m/model.onnx": GOOD, "m/model.xml": GOOD, weights: "weights"})
    found = [model["path"] for model in report(weights)["models"]]
    assert found == (["m/model.onnx"] if weights == "m/tensors.data" else ["m/model.onnx", "m/model.xml"])


def test_paths_from_standard_input(put: Put, report: ReportOf) -> None:
    put({"a.onnx": GOOD, "b c.onnx": GOOD})
    assert [model["path"] for model in report("-", stdin="a.onnx\r\n\nb c.onnx\n")["models"]] == ["a.onnx", "b c.onnx"]
    assert [model["path"] for model in report("-", stdin="a.onnx\0b c.onnx\0")["models"]] == ["a.onnx", "b c.onnx"]
    assert report("-", stdin="")["exit"] == 3


def test_selection(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    put({"m.onnx": {**UNUSED, "default": True}})

    def met(*arguments: str) -> list[str]:
        return rules_of(report("m.onnx", *arguments))["m.onnx"]

    assert met() == ["unused-input", "default-valued-input", "default-valued-input"]
    assert met("--select", "WL104") == ["unused-input"]
    assert met("--select", "file, WL9", "--select", "unused-input") == ["unused-input"]
    assert met("--ignore", "default-valued-input") == ["unused-input"]
    assert met("--ignore", "WL1") == []
    assert met("--min-confidence", "high") == met()


def test_severity_and_statistics(put: Put, run: Run, report: ReportOf) -> None:
    put({"m.onnx": UNUSED})
    document = report("m.onnx", "--severity", "inputs=note,unused-input=error")
    assert (document["models"][0]["findings"][0]["severity"], document["exit"]) == ("error", 1)
    assert "     1  WL104  unused-input" in run("check", "m.onnx", "--statistics").stdout


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--select", "unused-inptu"], "no rule is called 'unused-inptu'; did you mean 'unused-input'?"),
        (["--severity", "unused-input"], "must be RULE=LEVEL"),
        (["--severity", "unused-input=fatal"], "'fatal' is no severity"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: can't be read: No such file or directory"),
        (["--rules", "nowhere"], "nowhere: no such folder of rules"),
        (["--baseline", "nowhere.json"], "nowhere.json: no such baseline"),
        (["--reference", "nowhere.onnx"], "reference nowhere.onnx: can't be read"),
        (["--reference", "no.onnx"], "reference no.onnx: neither an ONNX model"),
        (["--output-file", "no/such/folder/r.json"], "can't be written: No such file or directory"),
    ],
)
def test_wrong_options_are_one_clear_line(put: Put, run: Run, arguments: list[str], cause: str) -> None:
    put({"m.onnx": GOOD, "no.onnx": "no model"})
    result = run("check", "m.onnx", *arguments)
    assert result.exit_code == 2
    assert cause in result.stderr
    assert result.stdout == ""


def test_a_reference_is_handed_to_the_analysis(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    put({"m.onnx": GOOD, "ref.onnx": GOOD})
    assert rules_of(report("m.onnx", "--reference", "ref.onnx"))["m.onnx"] == ["default-valued-input"] * 2


def test_output_file_is_written_whole(put: Put, run: Run) -> None:
    put({"m.onnx": UNUSED, "out/report.json": "old"})
    Path("out/report.json").chmod(0o640)
    result = run("check", "m.onnx", "-f", "json", "-o", "out/report.json")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert json.loads(Path("out/report.json").read_text())["summary"]["warnings"] == 1
    assert [path.name for path in Path("out").iterdir()] == ["report.json"]
    assert Path("out/report.json").stat().st_mode & 0o777 == 0o640


def test_colour(put: Put, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put({"m.onnx": UNUSED})
    assert "\x1b[" not in run("check", "m.onnx").stdout
    assert "\x1b[" in run("check", "m.onnx", "--color", "always").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("check", "m.onnx").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("check", "m.onnx").stdout


def test_processes_do_not_change_the_report(put: Put, report: ReportOf) -> None:
    put({f"m/{index}.onnx": UNUSED if index % 2 else "no model" for index in range(6)})

    def stable(document: dict[str, Any]) -> list[tuple[str, list[Any]]]:
        return [(model["path"], model["findings"]) for model in document["models"]]

    assert stable(report("m", "--jobs", "3")) == stable(report("m"))


def test_a_team_rule(put: Put, report: ReportOf, rules_of: RulesOf) -> None:
    rule = """\
id: mask-named-oddly
code: TEAM001
for: input
when: input.role == 'mask' and input.name != 'attention_mask'
severity: error
confidence: high
message: "the mask is called {input.name}"
what: We call masks attention_mask.
why: Our service does.
mend: Rename it.
"""
    put({"m.onnx": {"inputs": [["x", "mask", True]]}, "policy/a.yaml": rule})
    document = report("m.onnx", "--rules", "policy")
    assert rules_of(document)["m.onnx"] == ["mask-named-oddly"]
    assert document["models"][0]["findings"][0]["message"] == "the mask is called x"


def test_an_invalid_team_rule_names_file_line_and_cause(put: Put, run: Run) -> None:
    put({"m.onnx": GOOD, "bad/a.yaml": "id: a-rule\ncode: TEAM001\nfor: input\nwhen: input.rol == 'mask'\nseverity: error\n"})
    result = run("check", "m.onnx", "--rules", "bad")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "bad/a.yaml:1: the key 'message' is missing" in result.stderr


@pytest.mark.parametrize(
    ("changed", "models"),
    [
        ("m/config.json", ["m/onnx/model.onnx", "m/openvino/model.xml"]),
        ("m/1_Pooling/config.json", ["m/onnx/model.onnx", "m/openvino/model.xml"]),
        ("m/onnx/model.contract.yaml", ["m/onnx/model.onnx"]),
        ("web/config.json", []),
        ("web/package.json", []),
    ],
)
def test_a_companion_stands_for_its_models(put: Put, report: ReportOf, changed: str, models: list[str]) -> None:
    put(
        {"m/onnx/model.onnx": GOOD, "m/openvino/model.xml": GOOD, "m/other/a.onnx": GOOD, "m/modules.json": "[]", changed: "{}"}
    )
    assert [model["path"] for model in report("--only-models", changed)["models"]] == models
