"""The program as a process: what it imports, and how it behaves in a pipe."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("onnx", "networkx", "numpy", "lxml", "openvino", "onnxruntime", "ml_dtypes")


def python(code: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=cwd, timeout=120
    )


def imported(code: str, *arguments: str, cwd: Path | None = None) -> set[str]:
    """The heavy modules that are loaded when the code has run."""
    done = python(f"{code}\nimport sys; print('MODULES', *sys.modules)", *arguments, cwd=cwd)
    assert "MODULES" in done.stdout, done.stderr
    return set(HEAVY) & set(done.stdout.split("MODULES")[1].split())


RUN = "import sys\nfrom wirelint.cli import main\ntry:\n    main()\nexcept SystemExit as e:\n    print('EXIT', e.code)"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rules"], ["explain", "unused-input"], ["check", "--help"]])
def test_what_needs_no_model_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported(RUN, *arguments) == set()


def test_a_folder_without_models_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    done = python(RUN, "check", str(tmp_path))
    assert "EXIT 3" in done.stdout
    assert imported(RUN, "check", str(tmp_path)) == set()
    (tmp_path / "config.json").write_text("{}")
    assert imported(RUN, "check", "--only-models", str(tmp_path / "config.json")) == set()


def test_the_package_imports_nothing_heavy_and_offers_its_functions() -> None:
    assert imported("import wirelint; wirelint.check; wirelint.load; wirelint.facts") == set()
    done = python("import wirelint, wirelint.api; from wirelint.facts import ModelFacts; print(callable(wirelint.facts))")
    assert done.stdout.strip() == "True"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_leaves_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m wirelint explain --all | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.strip()
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        (">&-", "standard output: it is closed"),
        pytest.param(
            "> /dev/full",
            "standard output: can't be written",
            marks=pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a device of Linux"),
        ),
    ],
)
@pytest.mark.parametrize("command", ["rules", "version", "check ."])
def test_output_that_goes_nowhere_is_one_clear_line(target: str, said: str, command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m wirelint {command} {target}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"wirelint: error: {said}")
    assert done.stderr.count("\n") == 1
