"""Path patterns as people know them from ``.gitignore``."""

from __future__ import annotations

import functools
import re

from wirelint.errors import ConfigurationError
from wirelint.printable import printable

__all__ = ["matches"]


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a path, or a folder around it.

    ``*`` and ``?`` stop at slashes, ``**`` does not.  A pattern without a slash means a file or folder of that name
    anywhere; one with a slash starts at the top.

    Args:
        pattern: the pattern.
        path: relative path with forward slashes.

    Raises:
        ConfigurationError: the pattern has a range that runs backwards, or the like.

    Examples:
        >>> matches("*.onnx", "a/b.onnx"), matches("old/", "models/old/b.onnx"), matches("models/*.onnx", "models/x/b.onnx")
        (True, True, False)
    """
    return _compiled(pattern).fullmatch(path) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    trimmed = pattern.removeprefix("./").rstrip("/")
    anywhere = "" if "/" in trimmed else "(?:.*/)?"
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", trimmed.lstrip("/"))
    try:
        return re.compile(f"{anywhere}{''.join(map(_part, parts))}(?:/.*)?", re.DOTALL)
    except re.error as error:
        raise ConfigurationError(f"'{printable(pattern)}' is no valid pattern for paths: {error}") from None


def _part(part: str) -> str:
    if part.startswith("[") and part.endswith("]"):
        inner = part[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner[0] == "!" and len(inner) > 1 else f"[{inner}]"
    return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
