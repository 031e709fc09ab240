"""Draws as SVG: scalable, readable by a screen reader, without anything from outside."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from wirelint.picture.layers import Placed, place
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.picture.drawing import Box, Drawing

__all__ = ["STYLE", "framed", "inline", "render"]

STYLE = """
.wl { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 12px; }
.wl text { fill: var(--wl-ink, #1b1f24); }
.wl .box { fill: var(--wl-step, #f3f5f8); stroke: var(--wl-line, #7d8797); }
.wl .input .box { fill: var(--wl-input, #dbeafe); stroke: #3b82f6; }
.wl .end .box { fill: var(--wl-end, #dcfce7); stroke: #22a559; }
.wl .missing .box { fill: none; stroke-dasharray: 5 4; }
.wl .broken .box { stroke: var(--wl-bad, #d1242f); stroke-width: 2.5; fill: var(--wl-badfill, #ffe4e2); }
.wl .broken .note { fill: var(--wl-bad, #b3141f); font-weight: 600; }
.wl .title { font-weight: 600; }
.wl .small { font-size: 11px; fill: var(--wl-dim, #57606a); }
.wl .edge { fill: none; stroke: var(--wl-line, #7d8797); stroke-width: 1.4; }
.wl .head { fill: var(--wl-line, #7d8797); }
"""
"""Style of every picture; a page may set the colours by its own variables."""

_DARK = """
@media (prefers-color-scheme: dark) {
  svg.wl { --wl-ink: #e6edf3; --wl-step: #22272e; --wl-line: #768390; --wl-input: #12305c; --wl-end: #113a22;
           --wl-bad: #ff7b72; --wl-badfill: #4a1a1d; --wl-dim: #9ea7b3; --wl-ground: #0d1117; }
}
.wl .ground { fill: var(--wl-ground, #ffffff); }
"""
_TITLE_WIDTH, _LINE_WIDTH = 7.4, 6.3
_PAD, _ROW, _MARGIN = 12.0, 15.0, 8.0
_NARROWEST = 96.0
_LEAST = 0.85
"""A picture in a page is not made smaller than this part of its size."""


def render(drawing: Drawing) -> str:
    """A whole SVG file, for light and dark ground."""
    placed, sizes = _placed(drawing)
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN + (18 if drawing.left_out else 0)
    body = "\n".join(_body(drawing, placed, sizes, marker="wl-head"))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n'
        f"<title>{_text(drawing.title)}</title>\n<desc>{_text(drawing.described)}</desc>\n"
        f'<style>{STYLE}{_DARK}</style>\n<rect class="ground" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


def inline(drawing: Drawing, key: str) -> str:
    """An ``svg`` element for a page that holds :data:`STYLE`.

    Args:
        drawing: what to draw.
        key: an identifier that no other picture of the page has.
    """
    placed, sizes = _placed(drawing)
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN + (18 if drawing.left_out else 0)
    body = "".join(_body(drawing, placed, sizes, marker=f"{key}-head"))
    return framed(body, width, height, drawing.described, key)


def framed(body: str, width: float, height: float, described: str, key: str) -> str:
    """An ``svg`` element around what is drawn.

    Args:
        body: elements of SVG.
        width: of the picture, in pixels; where there is less room it shrinks a little, then scrolls.
        height: of the picture, in pixels.
        described: the picture in words.
        key: an identifier that no other picture of the page has.
    """
    return (
        f'<svg class="wl" role="img" aria-labelledby="{key}-t" width="{width:.0f}" height="{height:.0f}" '
        f'style="min-width:{width * _LEAST:.0f}px" viewBox="0 0 {width:.0f} {height:.0f}">'
        f'<title id="{key}-t">{_text(described)}</title>{body}</svg>'
    )


def _placed(drawing: Drawing) -> tuple[Placed, list[tuple[float, float]]]:
    sizes = [_size(box) for box in drawing.boxes]
    last = [at for at, box in enumerate(drawing.boxes) if box.style == "missing"]
    return place(sizes, drawing.edges, last), sizes


def _size(box: Box) -> tuple[float, float]:
    title = len(box.title) + (2 if box.broken else 0)
    width = max([title * _TITLE_WIDTH, *(len(line) * _LINE_WIDTH for line in box.lines)]) + 2 * _PAD
    return max(width, _NARROWEST), _ROW * (1 + len(box.lines)) + 12


def _body(drawing: Drawing, placed: Placed, sizes: list[tuple[float, float]], marker: str) -> Iterator[str]:
    yield (
        f'<defs><marker id="{marker}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    for (one, other), points in zip(drawing.edges, placed.lines, strict=True):
        start, end = points[0], points[-1]
        path = [(start[0], start[1] + sizes[one][1] / 2), *points[1:-1], (end[0], end[1] - sizes[other][1] / 2)]
        yield f'<path class="edge" marker-end="url(#{marker})" d="{_curve(path)}"/>'
    for box, (x, y), (width, height) in zip(drawing.boxes, placed.centres, sizes, strict=True):
        yield _drawn(box, x + _MARGIN, y + _MARGIN, width, height)
    if drawing.left_out:
        said = f"{drawing.left_out} more steps are not shown"
        yield f'<text class="small" x="{_MARGIN}" y="{placed.height + 2 * _MARGIN + 10:.1f}">{said}</text>'


def _curve(points: list[tuple[float, float]]) -> str:
    """A line that leaves and arrives vertically."""
    moved = [(x + _MARGIN, y + _MARGIN) for x, y in points]
    parts = [f"M{moved[0][0]:.1f} {moved[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in itertools.pairwise(moved):
        middle = (y0 + y1) / 2
        parts.append(
            f"L{x1:.1f} {y1:.1f}" if abs(x0 - x1) < 0.5 else f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        )
    return "".join(parts)


def _drawn(box: Box, x: float, y: float, width: float, height: float) -> str:
    kinds = f"{box.style}{' broken' if box.broken else ''}"
    top = y - height / 2
    radius = 14 if box.style == "input" else 6
    title = f"{'✗ ' if box.broken else ''}{_text(box.title)}"
    place = f'x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"'
    parts = [f'<g class="{kinds}"><title>{_text(box.hint or box.title, keep_lines=True)}</title><rect class="box" {place}/>']
    parts.append(f'<text class="title" text-anchor="middle" x="{x:.1f}" y="{top + 18:.1f}">{title}</text>')
    for at, line in enumerate(box.lines):
        kind = "small note" if at == len(box.lines) - 1 else "small"
        parts.append(
            f'<text class="{kind}" text-anchor="middle" x="{x:.1f}" y="{top + 18 + _ROW * (at + 1):.1f}">{_text(line)}</text>'
        )
    return "".join([*parts, "</g>"])


def _text(text: str, *, keep_lines: bool = False) -> str:
    """Text in which nothing is markup and every character may stand in XML."""
    if keep_lines:
        return "\n".join(escape(printable(line)) for line in text.split("\n"))
    return escape(printable(text))
