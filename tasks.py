"""What a contributor runs, by one word each, with nothing installed but Python and pip.

    python3 tasks.py test            the tests, in two processes; further arguments go to pytest
    python3 tasks.py lint            ruff: faults and formatting
    python3 tasks.py types           mypy
    python3 tasks.py docs            write the generated pages in docs/ again
    python3 tasks.py screenshots     take the pictures in docs/images/ again, with Chromium
    python3 tasks.py format          ruff: format all files

Each makes the virtual environment ``.venv-dev`` first, with the package in it as it is being edited, and makes it again when
``pyproject.toml`` has changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["TASKS", "main"]

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv-dev"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

TASKS: dict[str, list[list[str]]] = {
    "test": [["-m", "pytest", "-n", "2"]],
    "lint": [["-m", "ruff", "check", "."], ["-m", "ruff", "format", "--check", "."]],
    "types": [["-m", "mypy"]],
    "docs": [["docs/generate.py"]],
    "screenshots": [["docs/screenshots.py"]],
    "format": [["-m", "ruff", "format", "."]],
}
"""The arguments to the environment's Python, one list for each program to run."""


def prepare() -> None:
    """Makes the virtual environment, unless it was made from this same ``pyproject.toml``.

    Debian's Python has no ``ensurepip`` without a further package; there the pip that is at hand installs into the environment.
    """
    stamp = ENVIRONMENT / "made-from"
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    own_pip = importlib.util.find_spec("ensurepip") is not None
    venv.create(ENVIRONMENT, clear=True, with_pip=own_pip)
    pip = [str(PYTHON), "-m", "pip"] if own_pip else [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    run([*pip, "install", "--quiet", "--disable-pip-version-check", "--editable", ".[dev]"])
    stamp.write_text(digest)


def run(command: list[str]) -> None:
    """Runs a program in the project's folder.

    Raises:
        SystemExit: it failed; with its exit status.
    """
    status = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 -- from the table above
    if status:
        raise SystemExit(status)


def main(arguments: list[str]) -> None:
    """Runs the task that the first argument names; the rest are added to its last program."""
    if not arguments or arguments[0] not in TASKS:
        raise SystemExit(f"usage: python3 tasks.py {'|'.join(TASKS)} [ARGUMENT...]")
    prepare()
    *before, last = TASKS[arguments[0]]
    for command in before:
        run([str(PYTHON), *command])
    run([str(PYTHON), *last, *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
