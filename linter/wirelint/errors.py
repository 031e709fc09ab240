"""The exceptions that wirelint raises on purpose.

Each carries one line for a person: which file, what is wrong, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ConfigurationError", "ModelFileError", "NotAModelError", "WirelintError"]


class WirelintError(Exception):
    """Base class of every error that wirelint raises on purpose."""


class ConfigurationError(WirelintError):
    """A rule file, a configuration file or an option is wrong; the command line exits with status 2."""


class NotAModelError(WirelintError):
    """The file is no ONNX or OpenVINO IR model at all (an ``.xml`` of another kind, for example)."""


class ModelFileError(WirelintError):
    """A model file is damaged, incomplete or not what it claims to be.

    Attributes:
        rule: the id of the file-family rule that reports it: ``unreadable``, ``lfs-pointer``, ``graph-cycle``,
            ``invalid-graph``, ``external-path-escape`` or ``weights-out-of-bounds``.
        line: line of the XML where it stands, when there is one.
    """

    def __init__(self, path: Path, rule: str, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.rule = rule
        self.reason = reason
        self.line = line
