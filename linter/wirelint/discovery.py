"""Finds the model files among the paths that were given."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wirelint.errors import ConfigurationError
from wirelint.layout import is_companion, places_of
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Discovery", "discover"]

_MODELS = (".onnx", ".xml")
_WEIGHTS = (".bin", ".data", ".onnx_data", ".weights")
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})


@dataclass(slots=True)
class Discovery:
    """What was found.

    Attributes:
        models: files to check, in order, each once.
        passed_over: files that are none, with the reason.
    """

    models: list[str] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)


def discover(paths: Iterable[str], is_ir: Callable[[Path], bool], *, only_models: bool = False) -> Discovery:
    """Model files for paths as they were given.

    A folder is walked in sorted order for ``.onnx`` and ``.xml`` files, hidden folders and Python environments left out.
    A file that is named is taken whatever it is called; a named weights file stands for the models beside it, and so does a
    companion or a contract with ``only_models``.

    Args:
        paths: files and folders.
        is_ir: tells an IR from another ``.xml`` by its first bytes.
        only_models: pass over a named file that is no model, where otherwise it is kept so that the reader says why it is
            none.

    Raises:
        ConfigurationError: a path does not exist, can't be looked at, or is a pipe, a socket or a device.
    """
    found = Discovery()
    seen: set[str] = set()
    for given in paths:
        path = Path(given)
        if os.path.isdir(given):  # noqa: PTH112 -- Path.is_dir() raises when it is not allowed to look
            candidates = _walk(given)
        elif os.path.isfile(given):  # noqa: PTH113
            candidates = iter(_named(given, found, only_models=only_models))
        else:
            raise ConfigurationError(f"{printable(given)}: {_why_not(path)}")
        for candidate, named in candidates:
            real = os.path.realpath(candidate)
            if real in seen:
                continue
            seen.add(real)
            if candidate.lower().endswith(".xml") and not (named and not only_models) and not is_ir(Path(candidate)):
                found.passed_over.append((candidate, "no OpenVINO IR"))
                continue
            found.models.append(candidate)
    return found


def _why_not(path: Path) -> str:
    """Why a path is neither a folder nor a file."""
    try:
        path.stat()
    except FileNotFoundError:
        return "a link to a file that is not there" if path.is_symlink() else "no such file or folder"
    except OSError as error:
        return f"can't be looked at: {error.strerror or error}"
    return "neither a file nor a folder"


def _walk(top: str) -> Iterator[tuple[str, bool]]:
    """Model files below a folder; links are followed, but no folder is entered twice.

    What can't be looked at comes too, so that its reader says why: a folder that can't be listed, and a model that is a link to
    nowhere, as git-annex leaves in place of a file that was not fetched.
    """
    entered: set[tuple[int, int]] = set()
    stack = [top]
    while stack:
        folder = stack.pop()
        try:
            status = os.stat(folder)  # noqa: PTH116 -- the names must stay as they were given, "./" and all
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield folder, True
            continue
        if (status.st_dev, status.st_ino) in entered:
            continue
        entered.add((status.st_dev, status.st_ino))
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if entry.name not in _SKIPPED and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):  # noqa: PTH110, PTH118
                    folders.append(entry.path)
            elif entry.name.lower().endswith(_MODELS) and (entry.is_file() or _leads_nowhere(entry)):
                yield entry.path, False
        stack.extend(reversed(folders))


def _leads_nowhere(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110


def _named(given: str, found: Discovery, *, only_models: bool) -> list[tuple[str, bool]]:
    if given.lower().endswith(_WEIGHTS):
        models = _models_beside(Path(given))
        if models:
            return [(str(model), False) for model in models]
    if only_models and not given.lower().endswith(_MODELS):
        spoken_for = _models_with(Path(given))
        if spoken_for:
            return [(str(model), False) for model in spoken_for]
        found.passed_over.append((given, "no model file"))
        return []
    return [(given, True)]


def _models_with(companion: Path) -> list[Path]:
    """The models of which a companion or a contract says what they should be."""
    if not is_companion(companion):
        return []
    return [
        path
        for folder, stem in places_of(companion)
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in _MODELS and stem in ("", path.stem) and path.is_file()
    ]


def _models_beside(weights: Path) -> list[Path]:
    """The models that a weights file belongs to: those named alike, else every ONNX file in its folder."""
    stem = weights.name
    while stem.lower().endswith((*_WEIGHTS, *_MODELS)):
        stem = stem[: stem.rindex(".")]
        alike = [candidate for suffix in _MODELS if (candidate := weights.with_name(stem + suffix)).is_file()]
        if alike:
            return alike
    return sorted(path for path in weights.parent.glob("*.onnx") if path.is_file())
