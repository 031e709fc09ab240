"""Names from a file, made safe to show.

A model's names are chosen by whoever wrote the file.  They may hold newlines that forge a second finding, terminal escapes that
hide one, or bidirectional controls that make one read as another.  Every format shows them through :func:`printable`.
"""

from __future__ import annotations

__all__ = ["printable"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, limit: int | None = None) -> str:
    r"""The text on one line, with every character that does not print written as an escape.

    Args:
        text: any string, lone surrogates included.
        limit: cut the result to about this many characters, keeping both ends.

    Examples:
        >>> printable("a\x1b[31mb\nc")
        'a\\x1b[31mb\\nc'
        >>> printable("abcdefghij", limit=7)
        'abc…hij'
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escape(char) for char in text)
    if limit is not None and len(text) > limit:
        half = (limit - 1) // 2
        text = f"{text[:half]}…{text[len(text) - half :]}"
    return text


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
