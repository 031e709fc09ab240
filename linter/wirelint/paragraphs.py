"""The little Markdown that rule files are written in: paragraphs, list items, and lines of code."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["blocks", "reflow"]


def blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, each on one line, and lines of code as they stand.

    A line that is indented by four spaces is code.  Other lines belong together until a blank line or the start of a
    list item.

    Returns:
        Pairs of text and whether it is code.
    """
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_code = line.startswith("    ")
        if paragraph and (is_code or not line.strip() or line.lstrip().startswith("- ")):
            yield " ".join(paragraph), False
            paragraph = []
        if is_code and line.strip():
            yield line[4:].rstrip(), True
        elif line.strip():
            paragraph.append(line.strip())


def reflow(text: str, width: int) -> list[str]:
    """The lines of a text, its paragraphs filled to a width, its code indented by two spaces and never broken."""
    lines: list[str] = []
    for block, is_code in blocks(text):
        if is_code:
            lines.append(f"  {block}")
        else:
            hang = "  " if block.startswith("- ") else ""
            lines.extend(textwrap.wrap(block, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False))
    return lines
