"""Draws who hears whom at an attention site: a cell for each query and key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.picture.svg import framed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import SiteFacts

__all__ = ["STYLE", "alike", "cell", "describe", "inline"]

STYLE = """
.wl .heard { fill: var(--wl-heard, #2f6f4f); }
.wl .deaf { fill: var(--wl-deaf, #ffffff); stroke: var(--wl-line, #7d8797); stroke-width: .6; }
.wl .leak { fill: var(--wl-leak, #d1242f); }
.wl .idle { fill: var(--wl-idle, #868f9d); }
.wl .pad { fill: var(--wl-pad, #b87a00); }
.wl .cross { stroke: #ffffff; stroke-width: 1.6; }
"""
"""Style of the cells: heard, not heard, a real query that hears padding, a padded query, the marks of padding."""

_CELL, _GAP, _EDGE = 13, 1, 20
_Key = tuple[tuple[str, ...], str, str, str, str]


def alike(sites: Sequence[SiteFacts]) -> list[list[SiteFacts]]:
    """Sites in groups that hear the same, in order of the first of each; sites that were not drawn are left out."""
    groups: dict[_Key, list[SiteFacts]] = {}
    for site in sites:
        if site.matrix:
            key = (site.matrix, site.padded_keys, site.padded_queries, site.mask, site.kind)
            groups.setdefault(key, []).append(site)
    return list(groups.values())


def describe(site: SiteFacts) -> str:
    """The matrix in words."""
    leaks = sum(kind == "leak" for _, _, kind in _cells(site))
    size = f"{len(site.matrix)} queries by {len(site.matrix[0])} keys"
    padded = site.padded_keys.count("#")
    if not padded:
        return f"{size}, no key is padding"
    heard = f"real queries hear padding in {leaks} cells" if leaks else "no real query hears padding"
    return f"{size}, {padded} keys are padding: {heard}"


def inline(site: SiteFacts, key: str) -> str:
    """An ``svg`` element; queries are rows, keys are columns, bars mark what is padding.

    Args:
        site: with a matrix.
        key: an identifier that no other picture of the page has.
    """
    rows, columns = len(site.matrix), len(site.matrix[0])
    width, height = _EDGE + columns * _CELL + 2, _EDGE + rows * _CELL + 2
    cells = "".join(cell(_EDGE + to * _CELL, _EDGE + at * _CELL, kind) for at, to, kind in _cells(site))
    bars = "".join(
        f'<rect class="pad" x="{_EDGE + at * _CELL}" y="{_EDGE - 7}" width="{_CELL - _GAP}" height="4"/>'
        for at, mark in enumerate(site.padded_keys)
        if mark == "#"
    ) + "".join(
        f'<rect class="pad" x="{_EDGE - 7}" y="{_EDGE + at * _CELL}" width="4" height="{_CELL - _GAP}"/>'
        for at, mark in enumerate(site.padded_queries)
        if mark == "#"
    )
    words = (
        f'<text class="small" x="{_EDGE}" y="10">keys</text>'
        f'<text class="small" transform="translate(10 {_EDGE + 34}) rotate(-90)">queries</text>'
    )
    return framed(f"{words}{bars}{cells}", width, height, describe(site), key)


def _cells(site: SiteFacts) -> Iterator[tuple[int, int, str]]:
    """Query, key and what holds between them."""
    for at, line in enumerate(site.matrix):
        padded_query = site.padded_queries[at : at + 1] == "#"
        for to, mark in enumerate(line):
            padded_key = site.padded_keys[to : to + 1] == "#"
            if mark == ".":
                yield at, to, "deaf"
            elif padded_query:
                yield at, to, "idle"
            else:
                yield at, to, "leak" if padded_key else "heard"


def cell(x: int, y: int, kind: str) -> str:
    """One cell: ``heard``, ``deaf``, ``leak``, ``idle`` or ``pad``."""
    size = _CELL - _GAP
    drawn = f'<rect class="{kind}" x="{x}" y="{y}" width="{size}" height="{size}" rx="2"/>'
    # A cross besides the colour, for those who do not tell red from green.
    return drawn + (f'<path class="cross" d="M{x + 3} {y + 3}l6 6m0-6l-6 6"/>' if kind == "leak" else "")
