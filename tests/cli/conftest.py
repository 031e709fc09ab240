"""A command line whose models are text files that say which facts they have: these tests are about the command line.

The rules are those of the folder ``catalogue``, so that no change of a real rule changes what is expected here.

``{"inputs": [[name, role, used], ...], "metadata": "..."}`` is a model, ``pointer`` a Git LFS pointer, ``crash`` makes the
analysis fail, ``<net`` starts an IR.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from wirelint.cli import cli
from wirelint.errors import ModelFileError, NotAModelError
from wirelint.facts import InputFacts, ModelFacts, OutputFacts, PaddingFacts

if TYPE_CHECKING:
    from collections.abc import Callable


def load(path: Path) -> Any:
    text = path.read_text()
    if text == "pointer":
        raise ModelFileError(path, "lfs-pointer", "a Git LFS pointer, not the model")
    if text.startswith("no model"):
        raise NotAModelError(f"{path}: neither an ONNX model nor an OpenVINO IR")
    content = json.loads(text.removeprefix("<net ")) if text != "crash" else text
    metadata = {"wirelint.ignore": content["metadata"]} if "metadata" in content else {}
    return SimpleNamespace(
        path=path, format="openvino-ir" if path.suffix == ".xml" else "onnx", metadata=metadata, content=content
    )


def sniff(path: Path) -> str | None:
    return "openvino-ir" if path.read_text().startswith("<net") else None


def analyse(model: Any, reference: ModelFacts | None = None) -> ModelFacts:
    if model.content == "crash":
        raise KeyError("no\nsuch key")
    facts = ModelFacts(str(model.path), model.format)
    for index, (name, role, used) in enumerate(model.content["inputs"]):
        has_default = bool(model.content.get("default")) or reference is not None
        facts.inputs.append(
            InputFacts(index, name, (name,), "", "i64", None, role=role, confidence=0.9, used=used, has_default=has_default)
        )
    facts.outputs.append(OutputFacts(0, "logits", "f32", None, PaddingFacts("safe", "leaks"), "independent", ("ids",)))
    return facts


@pytest.fixture(autouse=True)
def stubbed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    formats, analysis = ModuleType("wirelint.formats"), ModuleType("wirelint.analysis")
    formats.load, formats.sniff, analysis.analyse = load, sniff, analyse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wirelint.formats", formats)
    monkeypatch.setitem(sys.modules, "wirelint.analysis", analysis)
    monkeypatch.setattr("wirelint.rules.loading.builtin_folder", lambda: Path(__file__).parent / "catalogue")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path(".git").mkdir()
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def put() -> Callable[[dict[str, Any]], None]:
    """Writes files; a dict is a model."""

    def write(files: dict[str, Any]) -> None:
        for name, content in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(f"<net {text}" if path.suffix == ".xml" and not isinstance(content, str) else text)

    return write


@pytest.fixture
def run() -> Callable[..., Result]:
    def run(*arguments: str, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(cli, list(arguments), input=stdin)
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def report(run: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """The JSON report of a check, with its exit status under ``exit``."""

    def report(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
        result = run("check", "--output-format", "json", *arguments, stdin=stdin)
        document: dict[str, Any] = json.loads(result.stdout)
        assert document["summary"]["exit_status"] == result.exit_code or "--only-models" in arguments
        return {**document, "exit": result.exit_code}

    return report


@pytest.fixture
def rules_of() -> Callable[[dict[str, Any]], dict[str, list[str]]]:
    """The rules that a report has met, by file."""

    def rules_of(document: dict[str, Any]) -> dict[str, list[str]]:
        return {model["path"]: [finding["rule"] for finding in model["findings"]] for model in document["models"]}

    return rules_of
