"""The other commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wirelint.cli import COMMANDS, cli
from wirelint.rules import load_rules

Put = Callable[[dict[str, Any]], None]
Run = Callable[..., Result]

GOOD = {"inputs": [["input_ids", "ids", True], ["attention_mask", "mask", True]]}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert COMMANDS[name][1].split()[0] in result.stdout
    assert f"  {name} " in run("--help").stdout


def test_facts(put: Put, run: Run) -> None:
    put({"a.onnx": GOOD, "b.onnx": GOOD})
    document = json.loads(run("facts", "a.onnx", "b.onnx", "-f", "json").stdout)
    assert [model["path"] for model in document["models"]] == ["a.onnx", "b.onnx"]
    assert document["models"][0]["inputs"][1]["role"] == "mask"
    text = run("facts", "a.onnx").stdout
    assert "1  attention_mask  i64: mask (90%)" in text
    assert "padding right safe, left leaks; batch independent" in text


def test_facts_of_what_is_no_model(put: Put, run: Run) -> None:
    put({"x.onnx": "no model", "p.onnx": "pointer"})
    for path, cause in (("x.onnx", "neither an ONNX"), ("p.onnx", "LFS pointer"), ("nowhere", "can't be read")):
        result = run("facts", path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"wirelint: error: {path}: " in result.stderr
        assert cause in result.stderr


def test_rules(run: Run) -> None:
    lines = run("rules").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [rule.code for rule in load_rules().rules]
    listed = json.loads(run("rules", "-f", "json").stdout)["rules"]
    assert {"id", "code", "family", "for", "severity", "confidence", "what", "why", "mend", "limits", "examples"} <= set(
        listed[0]
    )


@pytest.mark.parametrize("word", ["lfs-pointer", "WL902"])
def test_explain(run: Run, word: str) -> None:
    page = run("explain", word).stdout
    assert page.startswith("lfs-pointer (WL902)\nerror, confidence high; looks at the file")
    for heading in ("What it means", "Why it matters", "How to mend it", "When it is reported", "References"):
        assert f"\n{heading}\n" in page


def test_explain_refuses_what_it_does_not_know(run: Run) -> None:
    result = run("explain", "lfs-pointers")
    assert result.exit_code == 2
    assert "did you mean 'lfs-pointer'?" in result.stderr
    assert run("explain").exit_code == run("explain", "WL902", "--all").exit_code == 2


def test_explain_writes_the_pages_of_the_documentation(run: Run) -> None:
    assert run("explain", "--all", "-f", "markdown", "--output-dir", "pages").exit_code == 0
    assert {path.stem for path in Path("pages").iterdir()} == {rule.id for rule in load_rules().rules}
    page = Path("pages/renamed-input.md").read_text()
    assert page.startswith("# renamed-input\n\n`WL101` · ")
    assert "`<input.shown>`" in page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Run, shell: str) -> None:
    assert "_WIRELINT_COMPLETE" in run("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("wirelint che", ["plain,check"]),
        ("wirelint check mod", ["file,mod"]),
        ("wirelint check --baseline ", ["file,"]),
        ("wirelint explain unused-", ["plain,unused-input"]),
        ("wirelint check --ignore lfs-pointer,unus", ["plain,lfs-pointer,unused-input"]),
    ],
)
def test_what_the_shell_is_offered(words: str, offered: list[str]) -> None:
    environment = {"_WIRELINT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = CliRunner().invoke(cli, [], prog_name="wirelint", env=environment)
    assert result.stdout.splitlines() == offered


def test_version_names_what_reads_models(run: Run) -> None:
    lines = run("version").stdout.splitlines()
    assert lines[0].startswith("wirelint ")
    assert any(line.startswith("onnx ") for line in lines)


def test_baseline_of_nothing(put: Put, run: Run) -> None:
    put({"empty/x.txt": "", "crash.onnx": "crash"})
    assert run("baseline", "empty").exit_code == 3
    assert run("baseline", "crash.onnx").exit_code == 2
    assert not Path("wirelint-baseline.json").exists()
