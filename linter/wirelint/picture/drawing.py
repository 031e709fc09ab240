"""A picture before it is drawn: boxes, what they say, and the lines between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.facts import Route, RouteNode

__all__ = ["TIMES", "Box", "Drawing", "draw_chain", "draw_route", "folded"]

TIMES = "\N{MULTIPLICATION SIGN}"
_LABEL, _LINE = 26, 36
_DEEPEST, _DEEPEST_CHAIN = 16, 8
_ROLES = {
    "input": "input",
    "operator": "step",
    "end": "end",
    "attention": "end",
    "embedding": "end",
    "pooling": "end",
    "missing": "missing",
}


@dataclass(frozen=True, slots=True)
class Box:
    """One box.

    Attributes:
        title: its first line.
        lines: smaller lines below.
        style: ``input``, ``step``, ``end`` or ``missing`` (no line leads there, and one should).
        broken: what is wrong shows here.
        hint: all that is known of it, for those who ask.
        steps: operators, or groups of them, that were folded into it.
    """

    title: str
    lines: tuple[str, ...] = ()
    style: str = "step"
    broken: bool = False
    hint: str = ""
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes and the lines between them.

    Attributes:
        title: what it shows.
        boxes: the boxes.
        edges: pairs of indices into ``boxes``; acyclic.
        left_out: operators that are not shown because there are too many.
    """

    title: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    left_out: int = 0

    @property
    def described(self) -> str:
        """The drawing in words, for those who do not see it."""
        said = []
        for box in self.boxes:
            words = f"{box.title}{' (' + '; '.join(box.lines) + ')' if box.lines else ''}"
            said.append(f"{words}, broken here" if box.broken else words)
        return f"{self.title}: {', then '.join(said)}"


def draw_route(route: Route, title: str) -> Drawing:
    """The route of an input; a long run of steps without branches becomes one box."""
    boxes = tuple(_box(node) for node in route.nodes)
    return folded(Drawing(title, boxes, route.edges, route.left_out), _DEEPEST)


def draw_chain(steps: Sequence[str], title: str) -> Drawing:
    """A chain of operators as the file names them, the last but the output of which lets something through."""
    last = len(steps) - 1
    entry = last - 1 if last and steps[last].startswith("output ") else last
    boxes = []
    for at, step in enumerate(steps):
        kind, _, name = step.partition(" ")
        broken = at == entry
        style = "input" if not at else "end" if broken or at > entry else "step"
        shown = (
            (printable(step, _LINE), ())
            if not at or at > entry
            else (printable(kind, _LABEL), (printable(name.strip("'"), _LINE),) if name else ())
        )
        note = ("padding gets through here",) if broken else ()
        boxes.append(Box(shown[0], (*shown[1], *note), style, broken, printable(step)))
    return folded(Drawing(title, tuple(boxes), tuple((at, at + 1) for at in range(last))), _DEEPEST_CHAIN)


def _box(node: RouteNode) -> Box:
    count = f" {TIMES}{node.count}" if node.count > 1 else ""
    label = printable(node.label, _LABEL if node.kind != "input" else _LINE)
    lines = [line for line in (_pattern(node), node.note) if line]
    if node.kind == "input":
        lines = [node.note]
    hint = "\n".join(
        [
            f"{printable(node.label)}{count}",
            *(printable(name) for name in node.names),
            *([f"and {node.count - len(node.names)} more"] if node.count > len(node.names) > 0 else []),
            *([node.note] if node.note else []),
        ]
    )
    return Box(
        f"{label}{count}",
        tuple(printable(line, _LINE) if line != node.note else line for line in lines),
        _ROLES[node.kind],
        node.broken,
        hint,
    )


def _pattern(node: RouteNode) -> str:
    """One name for several operators: numbers that differ become ``*``."""
    if not node.names:
        return ""
    if node.count == 1:
        return node.names[0]
    parts = [re.split(r"(\d+)", name) for name in node.names]
    if len({len(part) for part in parts}) != 1:
        return f"{node.names[0]} …"
    merged = [
        "*" if len(set(column)) > 1 and column[0].isdigit() else column[0] if len(set(column)) == 1 else ""
        for column in zip(*parts, strict=True)
    ]
    return "".join(merged) if all(merged[at] or not parts[0][at] for at in range(len(merged))) else f"{node.names[0]} …"


def folded(drawing: Drawing, deepest: int) -> Drawing:
    """Runs of plain steps, one after the other without branches, as one box each, when the drawing is deeper than wanted."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for one, other in drawing.edges:
        after.setdefault(one, []).append(other)
        before.setdefault(other, []).append(one)
    if len(drawing.boxes) <= deepest:
        return drawing

    def plain(at: int) -> bool:
        return drawing.boxes[at].style == "step" and not drawing.boxes[at].broken

    head = list(range(len(drawing.boxes)))
    for at in range(len(drawing.boxes)):
        own = before.get(at, [])
        if plain(at) and len(own) == 1 and plain(own[0]) and after[own[0]] == [at]:
            head[at] = head[own[0]]
    runs: dict[int, list[int]] = {}
    for at, first in enumerate(head):
        runs.setdefault(first, []).append(at)
    place = {first: index for index, first in enumerate(runs)}
    boxes = tuple(_joined([drawing.boxes[at] for at in run]) for run in runs.values())
    edges = dict.fromkeys((place[head[one]], place[head[other]]) for one, other in drawing.edges if head[one] != head[other])
    return replace(drawing, boxes=boxes, edges=tuple(edges))


def _joined(boxes: Sequence[Box]) -> Box:
    if len(boxes) < 3:
        return (
            boxes[0]
            if len(boxes) == 1
            else Box(f"{boxes[0].title} > {boxes[1].title}", (), "step", hint="\n".join(box.hint for box in boxes), steps=2)
        )
    titles = [box.title for box in boxes]
    shown = titles if len(titles) <= 4 else [*titles[:2], "…", *titles[-2:]]
    hint = "\n".join(box.hint.replace("\n", "  ") for box in boxes[:40])
    return Box(f"{len(boxes)} steps", (printable(" > ".join(shown), _LINE + 12),), "step", hint=hint, steps=len(boxes))
