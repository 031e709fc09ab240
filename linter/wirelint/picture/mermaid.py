"""Writes a drawing for Mermaid, which forges draw in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.picture.drawing import TIMES
from wirelint.printable import printable

if TYPE_CHECKING:
    from wirelint.picture.drawing import Drawing

__all__ = ["render"]

# Classes are named "...Box": "end" alone is a word of Mermaid's grammar.
_STYLES = {
    "input": "fill:#dbeafe,stroke:#3b82f6,color:#1b1f24",
    "step": "fill:#f3f5f8,stroke:#7d8797,color:#1b1f24",
    "end": "fill:#dcfce7,stroke:#22a559,color:#1b1f24",
    "missing": "fill:#ffe4e2,stroke:#d1242f,stroke-width:2px,stroke-dasharray:5 4,color:#1b1f24",
    "broken": "fill:#ffe4e2,stroke:#d1242f,stroke-width:3px,color:#1b1f24",
}


def render(drawing: Drawing) -> str:
    """A flowchart; whatever is special to Mermaid, or to the HTML that it makes, is written as a character code."""
    lines = ["flowchart TD", f"  %% {printable(drawing.title)}"]
    for at, box in enumerate(drawing.boxes):
        title = f"✗ {box.title}" if box.broken else box.title
        label = "<br/>".join(_escaped(line) for line in (title, *box.lines))
        kind = "missing" if box.style == "missing" else "broken" if box.broken else box.style
        lines.append(f'  n{at}["{label}"]:::{kind}Box')
    lines += [f"  n{one} --> n{other}" for one, other in drawing.edges]
    # An invisible line keeps what is not reached below all that is.
    missing = [at for at, box in enumerate(drawing.boxes) if box.style == "missing"]
    last = max((other for _, other in drawing.edges), default=0)
    lines += [f"  n{last} ~~~ n{at}" for at in missing]
    lines += [f"  classDef {name}Box {style}" for name, style in _STYLES.items()]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return "".join(char if char.isalnum() or char in f" _-./:,{TIMES}✗…*" else f"#{ord(char)};" for char in printable(text))
