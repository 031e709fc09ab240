"""Small pieces of HTML.  Whatever comes from a model goes through :func:`text`."""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import TYPE_CHECKING

from wirelint.paragraphs import blocks
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["badge", "code", "details", "prose", "reference", "scrolling", "table", "text"]

_QUOTED = re.compile(r"`([^`]+)`")


def text(content: object, limit: int | None = None) -> str:
    """Text in which nothing is markup, and no character hides or reorders what is read."""
    return escape(printable(str(content), limit))


def code(content: object, limit: int | None = None) -> str:
    """A name from a model."""
    return f"<code>{text(content, limit)}</code>"


def badge(kind: str, content: object) -> str:
    """A word on a coloured ground."""
    return f'<span class="badge {kind}">{text(content)}</span>'


def details(summary: str, body: str, *, opened: bool = False, kind: str = "") -> str:
    """A part that unfolds; both arguments are HTML."""
    classes = f' class="{kind}"' if kind else ""
    return f"<details{classes}{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """A table whose rows become cards on a narrow screen, and that scrolls by itself when it is wide; cells are HTML."""
    titles = list(head)
    top = "".join(f'<th scope="col">{text(title)}</th>' for title in titles)
    body = "".join(f"<tr>{''.join(map(_cell, titles, row))}</tr>" for row in rows)
    return scrolling(
        f"<table><caption>{text(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>", caption
    )


def scrolling(content: str, label: str) -> str:
    """HTML that scrolls by itself when it is wide, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{text(label)}">{content}</div>'


def _cell(title: str, cell: str) -> str:
    """A cell that knows its column, for screens on which rows become cards."""
    return f'<td data-head="{text(title)}">{cell}</td>'


def prose(content: str) -> str:
    """Paragraphs, and indented commands as they are."""
    made = []
    for is_code, group in itertools.groupby(blocks(content), key=lambda block: block[1]):
        lines = [line for line, _ in group]
        if is_code:
            made.append(f"<pre>{text_lines(lines)}</pre>")
        else:
            made += [f"<p>{_marked(line)}</p>" for line in lines]
    return "".join(made)


def _marked(line: str) -> str:
    """A paragraph, with what stands between backticks as code."""
    return _QUOTED.sub(r"<code>\1</code>", text(line))


def reference(content: str) -> str:
    """A reference of a rule; an address can be followed, and tells the site there nothing of where it was found."""
    said = text(content)
    return f'<a href="{said}" rel="noreferrer">{said}</a>' if content.startswith("https://") else said


def text_lines(lines: Iterable[str]) -> str:
    """Lines that stay lines."""
    return "\n".join(text(line) for line in lines)
