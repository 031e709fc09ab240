"""Words of command lines that messages offer for copying."""

from __future__ import annotations

import os

__all__ = ["shell_word"]


def shell_word(text: str) -> str:
    """The text as one word for the shell of this platform, in quotes where it needs them."""
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline([text])
    import shlex

    return shlex.quote(text)
