"""The wheel: what is in it, and that it works alone, from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
NOT_TO_LINT = ("openvino", "onnxruntime", "torch", "transformers", "pytest")


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left behind in the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("linter", "rules"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", str(source), "--no-build-isolation", "--wheel-dir", str(folder))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", str(wheel), "--target", str(folder))
    return folder


def test_the_wheel_holds_the_package_and_the_rules_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "wirelint/py.typed" in names
    shipped = {name.removeprefix("wirelint/catalogue/") for name in names if name.startswith("wirelint/catalogue/")}
    assert shipped == {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*.yaml")}
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"wirelint"}


def test_no_runtime_is_needed_to_lint(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA")]
    needed = [entry for entry in message_from_bytes(archive.read(name)).get_all("Requires-Dist", []) if "extra ==" not in entry]
    assert needed
    assert not [entry for entry in needed if entry.startswith(NOT_TO_LINT)]


def test_it_checks_a_folder_of_models_from_there(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_models" / "stories", tmp_path / "stories")
    code = "import runpy, wirelint; print(wirelint.__file__); runpy.run_module('wirelint', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "stories"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    where, _, report = done.stdout.partition("\n")
    assert Path(where).is_relative_to(installed)
    assert done.returncode == 1, done.stderr
    for rule in ("mask-folded", "unmasked-pooling", "renamed-input", "segment-folded"):
        assert rule in report
