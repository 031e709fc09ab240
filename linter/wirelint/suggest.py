"""What a misspelt word was probably meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known word, else all of them when they are few, else nothing.

    Examples:
        >>> did_you_mean("rolle", ["role", "name"])
        "; did you mean 'role'?"
        >>> did_you_mean("x", ["role", "name"])
        '; known are: name, role'
    """
    import difflib

    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(words)}" if 0 < len(words) <= 16 else ""
