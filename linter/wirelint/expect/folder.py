"""Finds and reads the files beside a model.

Nothing here trusts what it reads: sizes are bounded, only regular files are opened, and a file that can't be read is noted
rather than raised.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirelint.layout import looks_one_up
from wirelint.printable import printable

__all__ = ["Folder", "flag", "text", "texts", "whole"]

_MOST_BYTES = 8 << 20
"""A ``tokenizer_config.json`` with thousands of added tokens takes a megabyte."""
_POINTER = b"version https://git-lfs.github.com/spec/v1"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(slots=True)
class Folder:
    """The files beside a model, and one folder up where the layout has them there.

    Attributes:
        model: the model file.
        sources: files that were read, as seen from the model's folder.
        faults: files that could not be read, each with the reason.
    """

    model: Path
    sources: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    _places: list[tuple[Path, str, frozenset[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        here = Path(os.path.abspath(self.model)).parent  # noqa: PTH100 -- a link's own place counts, not its target's
        self._places = [(here, "", _names(here))]
        if looks_one_up(here.name):
            self._places.append((here.parent, "../", _names(here.parent)))

    def find(self, name: str, inner: str = "") -> tuple[Path, str] | None:
        """The nearest file of this name, with how it is called in a message.

        Args:
            name: its name, or that of the folder that holds ``inner``.
            inner: a file inside that folder.
        """
        if not _PLAIN.fullmatch(name):
            return None
        for folder, prefix, names in self._places:
            if name in names:
                path = folder / name / inner if inner else folder / name
                return path, f"{prefix}{name}/{inner}" if inner else f"{prefix}{name}"
        return None

    def read(self, name: str, inner: str = "", most: int = _MOST_BYTES) -> tuple[str, str] | None:
        """A file's text, with how it is called; None when it is not there, or can't be read, which is noted."""
        found = self.find(name, inner)
        if found is None:
            return None
        path, shown = found
        try:
            content = _regular(path, most)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.faults.append((shown, error.strerror or "can't be opened"))
            return None
        except ValueError as error:
            self.faults.append((shown, str(error)))
            return None
        if content is None:
            return None
        self.sources.append(shown)
        return content, shown

    def json(self, name: str, inner: str = "") -> Any:
        """What a JSON file holds; None when it is not there, or can't be read, which is noted."""
        found = self.read(name, inner)
        if found is None:
            return None
        content, shown = found
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            self.faults.append((shown, f"no valid JSON{where}"))
            return None

    def mapping(self, name: str, inner: str = "") -> dict[str, Any]:
        """The object in a JSON file; empty when there is none."""
        found = self.json(name, inner)
        if found is None or isinstance(found, dict):
            return found or {}
        self.faults.append((self.called(name, inner), "not a JSON object"))
        return {}

    def called(self, name: str, inner: str = "") -> str:
        """The file as messages call it."""
        found = self.find(name, inner)
        return name if found is None else found[1]


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 -- names are all that is wanted
    except OSError:
        return frozenset()


def _regular(path: Path, most: int) -> str | None:
    """A regular file's text; None for the pointer that Git LFS leaves in place of a file that was not fetched.

    Raises:
        OSError: it can't be opened.
        ValueError: it is no regular file, too large, or not UTF-8 text; says which.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("no regular file")
    if status.st_size > most:
        raise ValueError(f"larger than {most >> 20} MiB")
    with path.open("rb") as stream:
        content = stream.read(most)
    if content.startswith(_POINTER):
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def whole(value: Any) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str:
    """The value if it is text, made safe to show; else an empty string."""
    return printable(value, 120) if isinstance(value, str) else ""


def texts(value: Any) -> tuple[str, ...]:
    """The texts in a list of texts; empty for anything else."""
    return tuple(text(item) for item in value[:64] if isinstance(item, str)) if isinstance(value, list) else ()


def flag(value: Any) -> bool | None:
    """The value if it is true or false."""
    return value if isinstance(value, bool) else None
