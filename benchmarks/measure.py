"""Runs commands in turn, measures what each takes, and prints small tables.

The machine may be busy with other things, so commands that are to be compared run by turns in one go, and the least of each
counts.  CPU time tells more than wall time then.  This process stays small on purpose: the kernel counts the memory of the
process that starts a command among the command's own.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "built", "by_turns", "options", "ratio", "table", "wirelint"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Usage:
    """What a command took: seconds by the clock and of CPU, and the most memory in MB."""

    wall: float
    cpu: float
    memory: float
    status: int = 0

    def cells(self) -> tuple[str, str, str]:
        return f"{self.wall:.2f}", f"{self.cpu:.2f}", f"{self.memory:.0f}"


@functools.cache
def _environment() -> dict[str, str]:
    """As an installed package finds it: modules compiled, their code kept in a folder of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "wirelint-benchmark-bytecode")
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "linter"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return environment


def _run(command: Sequence[str]) -> Usage:
    start = time.perf_counter()
    process = subprocess.Popen(command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if "Traceback" in message or process.returncode < 0:
        print(f"{' '.join(command)}: {message.strip().splitlines()[-1] if message else process.returncode}", file=sys.stderr)
    # Linux counts in kilobytes, macOS in bytes.
    peak = used.ru_maxrss / (1 << 10 if sys.platform != "darwin" else 1 << 20)
    return Usage(wall, used.ru_utime + used.ru_stime, peak, process.returncode)


def by_turns(commands: Mapping[str, Sequence[str]], repeats: int) -> dict[str, Usage]:
    """What each command takes at best, after one run that does not count."""
    for command in commands.values():
        _run(command)
    runs: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(_run(command))
    return {
        name: Usage(
            min(run.wall for run in done), min(run.cpu for run in done), min(run.memory for run in done), done[0].status
        )
        for name, done in runs.items()
    }


def wirelint(*arguments: str) -> list[str]:
    """The command line of wirelint, as the installed script runs it."""
    return [sys.executable, "-c", "from wirelint.cli import main; main()", *arguments]


def built(folder: Path, *names: str) -> dict[str, Path]:
    """Models of ``graphs.py``, written where they are not there yet."""
    command = [sys.executable, str(HERE / "graphs.py"), str(folder), *names]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: Path(line.split("  ")[0]) for name, line in zip(names, printed.splitlines(), strict=True)}


def options(description: str | None, *, repeats: int) -> argparse.ArgumentParser:
    """The options that benchmarks share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(tempfile.gettempdir()) / "wirelint-benchmark-models"
    parser.add_argument("--folder", type=Path, default=default, help="where the models are, or are written [%(default)s]")
    parser.add_argument("--repeats", type=int, default=repeats, help="runs of which the least counts [%(default)s]")
    return parser


def ratio(some: float, other: float) -> str:
    return f"{some / other:.2f}" if other else "-"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a Markdown table."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    for row in (heads, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
