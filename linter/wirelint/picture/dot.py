"""Writes a drawing for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.printable import printable

if TYPE_CHECKING:
    from wirelint.picture.drawing import Box, Drawing

__all__ = ["render"]

_FILLS = {"input": "#dbeafe", "step": "#f3f5f8", "end": "#dcfce7", "missing": "#ffffff"}


def render(drawing: Drawing) -> str:
    """A ``digraph``; names are quoted."""
    lines = [
        "digraph route {",
        f'  label={_quoted(drawing.title)}; labelloc="t"; fontname="sans-serif";',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ]
    lines += [f"  n{at} [{_attributes(box)}];" for at, box in enumerate(drawing.boxes)]
    lines += [f"  n{one} -> n{other};" for one, other in drawing.edges]
    missing = [f"n{at};" for at, box in enumerate(drawing.boxes) if box.style == "missing"]
    if missing:
        lines.append(f"  {{ rank=sink; {' '.join(missing)} }}")
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(box: Box) -> str:
    title = f"✗ {box.title}" if box.broken else box.title
    label = "\\n".join(_escaped(line) for line in (title, *box.lines))
    made = f'label="{label}", fillcolor="{"#ffe4e2" if box.broken else _FILLS[box.style]}"'
    if box.style == "missing":
        made += ', style="rounded,filled,dashed"'
    return f'{made}, color="#d1242f", penwidth=2' if box.broken else made


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
