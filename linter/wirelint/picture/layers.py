"""A layered layout: every line points down, and crosses as few others as a few sweeps achieve.

The method is Sugiyama's: layers by longest path, invisible boxes where a line passes a layer, order within a layer by the
mean of the neighbours' places, then coordinates.  No part of it is recursive or slower than linear in boxes and lines,
but for sorting.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Placed", "place"]

_GAP_X, _GAP_Y = 24.0, 34.0
_SWEEPS = 4
_PASS_WIDTH = 8.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A layout.

    Attributes:
        centres: ``(x, y)`` of each box.
        lines: the points that each line runs through, in the order of the edges.
        width, height: of the whole.
    """

    centres: tuple[tuple[float, float], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def place(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], last: Sequence[int] = ()) -> Placed:
    """Places boxes in layers.

    Args:
        sizes: width and height of each box.
        edges: pairs of indices; acyclic.
        last: boxes that stand in a layer of their own below all others, whatever leads to them.

    Raises:
        networkx.NetworkXUnfeasible: the edges run in a circle.
    """
    level = _levels(len(sizes), edges, last)
    layers, chains = _with_passes(level, edges)
    order = _ordered(layers, chains)
    widths = {item: sizes[item][0] if isinstance(item, int) else _PASS_WIDTH for layer in order for item in layer}
    heights = [max((sizes[item][1] for item in layer if isinstance(item, int)), default=0.0) for layer in order]
    across = _across(order, widths, chains)
    spot: dict[_Item, tuple[float, float]] = {}
    y = 0.0
    for layer, height in zip(order, heights, strict=True):
        for item in layer:
            spot[item] = (across[item], y + height / 2)
        y += height + _GAP_Y
    width = max((across[item] + widths[item] / 2 for layer in order for item in layer), default=0.0)
    lines = tuple(tuple(spot[item] for item in chain) for chain in chains)
    return Placed(tuple(spot[at] for at in range(len(sizes))), lines, width, max(y - _GAP_Y, 0.0))


_Item = int | tuple[int, int]
"""A box, or the place where an edge (by index) passes a layer."""


def _levels(count: int, edges: Sequence[tuple[int, int]], last: Sequence[int]) -> list[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    level = [0] * count
    for depth, generation in enumerate(nx.topological_generations(graph)):
        for at in generation:
            level[at] = depth
    lowest = max((level[at] for at in set(range(count)) - set(last)), default=-1) + 1
    for at in last:
        level[at] = lowest
    return level


def _with_passes(level: Sequence[int], edges: Sequence[tuple[int, int]]) -> tuple[list[list[_Item]], list[list[_Item]]]:
    """The layers with passing lines among the boxes, and for each edge what it runs through."""
    layers: list[list[_Item]] = [[] for _ in range(max(level, default=0) + 1)]
    for at, depth in enumerate(level):
        layers[depth].append(at)
    chains: list[list[_Item]] = []
    for index, (one, other) in enumerate(edges):
        passes: list[_Item] = [(index, depth) for depth in range(level[one] + 1, level[other])]
        for item, depth in zip(passes, range(level[one] + 1, level[other]), strict=True):
            layers[depth].append(item)
        chains.append([one, *passes, other])
    return layers, chains


def _across(
    order: Sequence[Sequence[_Item]], widths: dict[_Item, float], chains: Sequence[Sequence[_Item]]
) -> dict[_Item, float]:
    """The horizontal place of each item: below the mean of what leads to it, as far as its neighbours leave room."""
    above, _ = _joined(chains)
    found: dict[_Item, float] = {}
    for above_it, layer in itertools.pairwise([[], *order]):
        middle = _mean([found[item] for item in above_it], 0.0)
        wanted = []
        for item in layer:
            middle = _mean([found[other] for other in above.get(item, [])], middle)
            wanted.append(middle)
        edge = float("-inf")
        placed = []
        for item, centre in zip(layer, wanted, strict=True):
            placed.append(max(centre, edge + widths[item] / 2))
            edge = placed[-1] + widths[item] / 2 + _GAP_X
        # What was pushed aside was pushed to the right: the layer as a whole moves back by the mean of it.
        back = _mean([at - centre for at, centre in zip(placed, wanted, strict=True)], 0.0)
        found.update({item: at - back for item, at in zip(layer, placed, strict=True)})
    left = min((found[item] - widths[item] / 2 for item in found), default=0.0)
    return {item: at - left for item, at in found.items()}


def _joined(chains: Sequence[Sequence[_Item]]) -> tuple[dict[_Item, list[_Item]], dict[_Item, list[_Item]]]:
    """What each item is joined to in the layer above, and below."""
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)
    return above, below


def _ordered(layers: list[list[_Item]], chains: Sequence[Sequence[_Item]]) -> list[list[_Item]]:
    """Each layer in the order of the mean place of what it is joined to, swept down and up."""
    above, below = _joined(chains)
    rank = {item: at / max(len(layer), 1) for layer in layers for at, item in enumerate(layer)}
    order = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        joined = above if sweep % 2 == 0 else below
        for layer in order if sweep % 2 == 0 else reversed(order):
            layer.sort(key=lambda item: _mean([rank[other] for other in joined.get(item, [])], rank[item]))
            for at, item in enumerate(layer):
                rank[item] = (at + 0.5) / len(layer)
    return order


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
