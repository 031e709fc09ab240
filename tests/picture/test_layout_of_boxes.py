"""The layered layout: lines point down, boxes keep apart, whatever the graph."""

from __future__ import annotations

import itertools
import time

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.picture.layers import Placed, place


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(1, 25))
    sizes = draw(st.lists(st.tuples(st.floats(10, 300), st.floats(10, 60)), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = draw(st.lists(pairs, max_size=40, unique=True)) if count > 1 else []
    return sizes, edges


def boxes(placed: Placed, sizes: list[tuple[float, float]]) -> list[tuple[float, float, float, float]]:
    return [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(placed.centres, sizes, strict=True)]


@given(graph=graphs())
def test_boxes_keep_apart_and_stay_inside(graph: tuple[list[tuple[float, float]], list[tuple[int, int]]]) -> None:
    sizes, edges = graph
    placed = place(sizes, edges)
    held = boxes(placed, sizes)
    for one, other in itertools.combinations(held, 2):
        beside = one[2] <= other[0] + 0.01 or other[2] <= one[0] + 0.01
        above = one[3] <= other[1] + 0.01 or other[3] <= one[1] + 0.01
        assert beside or above
    assert all(left >= -0.01 and top >= -0.01 for left, top, _, _ in held)
    assert all(right <= placed.width + 0.01 and bottom <= placed.height + 0.01 for _, _, right, bottom in held)


@given(graph=graphs())
def test_every_line_points_down(graph: tuple[list[tuple[float, float]], list[tuple[int, int]]]) -> None:
    sizes, edges = graph
    placed = place(sizes, edges)
    assert len(placed.lines) == len(edges)
    for (one, other), line in zip(edges, placed.lines, strict=True):
        assert line[0] == placed.centres[one]
        assert line[-1] == placed.centres[other]
        assert all(upper[1] < lower[1] for upper, lower in itertools.pairwise(line))


def test_a_chain_is_straight() -> None:
    placed = place([(100, 30), (60, 30), (140, 30)], [(0, 1), (1, 2)])
    assert len({x for x, _ in placed.centres}) == 1


def test_lines_that_need_not_cross_do_not() -> None:
    placed = place([(50, 20)] * 6, [(0, 3), (1, 4), (2, 5)])
    top, bottom = placed.centres[:3], placed.centres[3:]
    assert sorted(range(3), key=lambda at: top[at][0]) == sorted(range(3), key=lambda at: bottom[at][0])


def test_what_must_stand_last_does() -> None:
    placed = place([(50, 20)] * 4, [(0, 1), (1, 2)], last=[3])
    assert placed.centres[3][1] > placed.centres[2][1]
    assert placed.centres[3][0] == placed.centres[2][0]


def test_a_circle_is_refused() -> None:
    with pytest.raises(nx.NetworkXUnfeasible):
        place([(50, 20)] * 2, [(0, 1), (1, 0)])


def test_a_long_chain_and_a_wide_layer_take_no_time() -> None:
    start = time.perf_counter()
    place([(50, 20)] * 3000, [(at, at + 1) for at in range(2999)])
    place([(50, 20)] * 3000, [(0, at) for at in range(1, 3000)])
    assert time.perf_counter() - start < 10
