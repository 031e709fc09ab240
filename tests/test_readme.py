"""What the pages tell a reader to type works: commands, configurations and Python are taken from them and run."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import wirelint
from wirelint.config import read_config
from wirelint.contract import read_contract
from wirelint.rules import load_rules

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_models"
PAGES = ["README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/ci.md", "docs/writing-rules.md", "docs/proof.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"))


def commands(page: str, program: str) -> list[str]:
    """The lines of a page's shell blocks that start a program, without comments."""
    lines = [line.split(" #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder: the sample models of a checkout, and what the pages call ``models/`` and ``model.onnx``."""
    for name in ("stories", "clean"):
        shutil.copytree(SAMPLES / name, tmp_path / "sample_models" / name)
    shutil.copytree(SAMPLES / "stories", tmp_path / "models")
    shutil.copy(SAMPLES / "stories" / "embedder_unmasked_mean.onnx", tmp_path / "model.onnx")
    for suffix in ("xml", "bin"):
        shutil.copy(SAMPLES / "clean" / f"embedder_ov.{suffix}", tmp_path / f"model.{suffix}")
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mask.yaml").write_text(blocks("docs/writing-rules.md", "yaml")[0])
    return tmp_path


def start(path: Path, text: str) -> None:
    """Writes a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(os.name == "nt", reason="the line is for a POSIX shell")
def test_the_first_command_sets_itself_up(folder: Path) -> None:
    """All of it is run but the download: pip's place is taken by a program that makes what pip would."""
    (line,) = commands("README.md", "python3")[:1]
    start(
        folder / "bin" / "python3",
        f"""#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
  [ "$3 $4 $5 $6 $7" = "--python .venv/bin/python install -q ." ] && [ -x .venv/bin/python ] || exit 9
  printf '#!/bin/sh\\nexec "{sys.executable}" -m wirelint "$@"\\n' > .venv/bin/wirelint && chmod +x .venv/bin/wirelint
else
  exec "{sys.executable}" "$@"
fi
""",
    )
    paths = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env={**os.environ, "PATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "mask-folded" in done.stdout


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_tasks_exist(page: str) -> None:
    tasks = runpy.run_path(str(ROOT / "tasks.py"))["TASKS"]
    named = re.findall(r"python3 tasks\.py (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    assert named
    assert set(named) <= set(tasks)


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page: str, folder: Path) -> None:
    for line in commands(page, "wirelint"):
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode in (0, 1), f"{line}: {done.stderr}"
        assert "fault" not in done.stdout.split()[:1], line


def test_the_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(compile("\n".join(blocks("README.md", "python")), "README.md", "exec"), names)
    assert "mask-folded" in capsys.readouterr().out
    assert names["roles"] == {"input_ids": "ids", "attention_mask": "mask", "position_ids": "position"}


def test_the_python_about_proof_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    exec(compile("\n".join(blocks("docs/proof.md", "python")), "docs/proof.md", "exec"), {})
    said = capsys.readouterr().out
    assert "('padding right', 'sentence_embedding', 'leaks', \"other content in padded positions changes it by" in said


def test_the_configurations_are_valid(tmp_path: Path) -> None:
    first, contract = blocks("docs/configuration.md", "yaml")
    (tmp_path / "model.contract.yaml").write_text(contract)
    assert read_contract(tmp_path / "model.contract.yaml").outputs
    (tmp_path / "wirelint.yaml").write_text(first)
    assert read_config(tmp_path / "wirelint.yaml").waivers
    (table,) = blocks("docs/configuration.md", "toml")
    (tmp_path / "pyproject.toml").write_text(table)
    assert read_config(tmp_path / "pyproject.toml").ignore == ("left-padding-unsafe",)
    (tmp_path / ".wirelint.yaml").write_text(blocks("docs/tutorial.md", "yaml")[0])
    assert read_config(tmp_path / ".wirelint.yaml").waivers


def test_the_rule_that_is_shown_works(folder: Path) -> None:
    report = wirelint.check(SAMPLES / "inputs" / "bert_float_mask.onnx", config=False, rules=[folder / "policy"])
    assert "mask-not-int64" in {finding.rule for _, finding in report.findings()}
    keys = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / "docs/writing-rules.md").read_text(encoding="utf-8"))
    described = {key for cell in keys for key in re.findall(r"`(\w+)`", cell)}
    schema = yaml.safe_load((ROOT / "docs/rule.schema.json").read_text(encoding="utf-8"))
    assert described | {"same"} == set(schema["properties"])


def test_every_rule_that_a_page_names_exists() -> None:
    known = {rule.id for rule in load_rules(()).rules}
    for page in ("docs/configuration.md", "docs/limits.md", "docs/ci.md", "docs/tutorial.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        named = re.findall(r"(?:rule: |explain |`)([a-z]+(?:-[a-z]+)+)\b", text)
        assert {name for name in named if name.split("-")[0] in {rule.split("-")[0] for rule in known}} <= known
