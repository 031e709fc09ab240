"""What several commands share: options, output, colour, progress."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from wirelint.errors import ConfigurationError
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "ProgressLine",
    "expand_paths",
    "severities",
    "terminal_width",
    "use_color",
    "words",
    "write_atomically",
    "write_output",
]

_WIDEST = 140
_NARROWEST = 60
_UNKNOWN_WIDTH = 120


def words(given: Iterable[str]) -> tuple[str, ...]:
    """The words of an option that may be given several times and hold several, separated by commas."""
    return tuple(word.strip() for entry in given for word in entry.split(",") if word.strip())


def severities(given: Iterable[str]) -> Mapping[str, str]:
    """``RULE=LEVEL`` options.

    Raises:
        click.BadParameter: one is without ``=``.
    """
    pairs = {}
    for word in words(given):
        rule, equals, level = word.partition("=")
        if not equals:
            raise click.BadParameter(
                f"'{word}' must be RULE=LEVEL, such as left-padding-unsafe=warning", param_hint="--severity"
            )
        pairs[rule.strip()] = level.strip()
    return pairs


def expand_paths(given: Iterable[str]) -> list[str]:
    """The paths, with ``-`` replaced by those on standard input: one a line, or parted by NUL as ``git ls-files -z`` does."""
    paths: list[str] = []
    for path in given:
        if path == "-":
            listed = os.fsdecode(sys.stdin.buffer.read())
            paths.extend(filter(None, listed.split("\0") if "\0" in listed else re.split(r"\r?\n", listed)))
        else:
            paths.append(path)
    return paths


def use_color(wanted: str, output_file: str | None) -> bool:
    """Whether to colour: as told, else as ``NO_COLOR`` and ``FORCE_COLOR`` say, else on a terminal."""
    if wanted != "auto":
        return wanted == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return output_file is None and _on_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def _on_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is shown to somebody; None is a stream that was closed before the program began."""
    return stream is not None and stream.isatty()


def terminal_width() -> int:
    """Columns of the terminal within reason; a fixed number where there is none, so that output does not vary."""
    if not _on_terminal(sys.stdout):
        return _UNKNOWN_WIDTH
    return min(max(shutil.get_terminal_size((_UNKNOWN_WIDTH, 24)).columns, _NARROWEST), _WIDEST)


def write_output(text: str, output_file: str | None, *, color: bool = False) -> None:
    """Writes the report to a file or to standard output.

    A reader that has gone away is no error: the exit status still says what was found.

    Raises:
        ConfigurationError: the file can't be written.
    """
    if output_file is not None and output_file != "-":
        write_atomically(Path(output_file), text)
        return
    stream: Any = sys.stdout
    if stream is None:
        raise ConfigurationError("standard output: it is closed; open it, or name a file with --output-file")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    try:
        click.echo(text, nl=False, color=color)
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise ConfigurationError(f"standard output: can't be written: {error.strerror or error}") from None


def _discard(stream: Any) -> None:
    """Lets what is still buffered go nowhere: it would raise again when the interpreter flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that readers see the old one or the whole new one.

    Raises:
        ConfigurationError: it can't be written.
    """
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            dir=path.parent,
            prefix=f".{path.name}.",
            delete=False,
        ) as stream:
            temporary = stream.name
            stream.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)  # noqa: PTH101 -- the temporary's name is a string already
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise ConfigurationError(f"{path}: can't be written: {error.strerror or error}") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


class ProgressLine:
    """A line on standard error that says how far a long run is; shown on a terminal only, and not in the first second."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled and _on_terminal(sys.stderr)
        self.since = time.monotonic()
        self.shown = False

    def __call__(self, done: int, total: int, path: str) -> None:
        if self.enabled and total > 1 and time.monotonic() - self.since > 1:
            sys.stderr.write(f"\r\x1b[K{done}/{total}  {printable(path, 60)}")
            sys.stderr.flush()
            self.shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
