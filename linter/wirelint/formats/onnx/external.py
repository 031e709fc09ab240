"""Data that an ONNX model keeps in files beside it.

A model file is untrusted: the names in it must not lead out of its folder, and the sizes in it are compared with those
of the files before anything is read (https://github.com/onnx/onnx/blob/main/docs/ExternalData.md).
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from wirelint.formats.onnx.wire import LFS_PREFIX
from wirelint.graph import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ExternalFiles"]


@dataclass(slots=True)
class _File:
    """One external file: where it is and how large, or the problem that keeps it from being read."""

    path: Path
    size: int = 0
    rule: str = ""
    reason: str = ""
    tensors: list[str] = field(default_factory=list)


class ExternalFiles:
    """The external data files of one model, each looked at once."""

    def __init__(self, model: Path) -> None:
        self._folder = model.parent
        # A model cache may hold symbolic links into a blob folder: data beside the link's target are inside as well.
        self._roots = {model.parent.resolve(), model.resolve().parent}
        self._files: dict[str, _File] = {}
        self._outside: dict[str, list[tuple[str, str]]] = {}

    def locate(self, location: str, tensor: str) -> tuple[Path, int] | None:
        """The file and its size, or None when ``tensor`` can't be read from it; the reason becomes a problem."""
        found = self._files.get(location)
        if found is None:
            found = self._files[location] = self._inspect(location)
        if found.rule:
            found.tensors.append(tensor)
            return None
        return found.path, found.size

    def out_of_bounds(self, where: str, tensor: str, reason: str) -> None:
        """Note that the elements of ``tensor`` do not lie in the file ``where`` as declared."""
        self._outside.setdefault(where, []).append((tensor, reason))

    def problems(self) -> Sequence[Problem]:
        """One problem for each file, however many tensors it concerns."""
        found = [
            Problem(file.rule, f"external data {location!r} ({_count(file.tensors)}) {file.reason}", subject=location)
            for location, file in self._files.items()
            if file.rule
        ]
        for where, tensors in self._outside.items():
            name, reason = tensors[0]
            others = f" (and {len(tensors) - 1} more)" if len(tensors) > 1 else ""
            message = (
                f"the elements of {name!r}{others} do not fit: {reason}; the file is truncated or was changed: export it again"
            )
            found.append(Problem("weights-out-of-bounds", message, subject=where or name))
        return found

    def _inspect(self, location: str) -> _File:
        path = self._folder / location
        if not location or "\0" in location or "\\" in location or _leads_out(location):
            reason = (
                "is not a plain relative path inside the model's folder, so it was not read; save the model with data beside it"
            )
            return _File(path, rule="external-path-escape", reason=reason)
        try:
            resolved = path.resolve()
            if not any(resolved.is_relative_to(root) for root in self._roots):
                reason = "is a link that leads out of the model's folder, so it was not read; put the data beside the model"
                return _File(path, rule="external-path-escape", reason=reason)
            status = resolved.stat()
            if not stat.S_ISREG(status.st_mode):
                return _File(path, rule="missing-weights", reason="is not a regular file; put the data file beside the model")
            with resolved.open("rb") as file:
                head = file.read(len(LFS_PREFIX))
        except (OSError, RuntimeError, ValueError):
            return _File(path, rule="missing-weights", reason="is missing or unreadable; put the data file beside the model")
        if head == LFS_PREFIX:
            return _File(path, rule="lfs-pointer", reason="is a Git LFS pointer, not the data; fetch it with 'git lfs pull'")
        return _File(resolved, size=status.st_size)


def _leads_out(location: str) -> bool:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    return posix.is_absolute() or windows.is_absolute() or bool(windows.drive) or ".." in posix.parts


def _count(tensors: Sequence[str]) -> str:
    return f"tensor {tensors[0]!r}" if len(tensors) == 1 else f"{len(tensors)} tensors, the first {tensors[0]!r}"
