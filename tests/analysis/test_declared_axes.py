"""Inputs whose declared axes contradict one another."""

from __future__ import annotations

import pytest

from wirelint.analysis.assemble import disagreeing_axes
from wirelint.facts import InputFacts

Shape = tuple[int | str | None, ...]


def inputs(**shapes: Shape) -> list[InputFacts]:
    """One input for each role."""
    return [InputFacts(at, role, (role,), "", "i64", shape, role=role) for at, (role, shape) in enumerate(shapes.items())]


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (
            {"ids": ("b", "s"), "mask": ("b", 128)},
            "input 1 'mask' fixes the sequence axis at 128, which input 0 'ids' leaves open",
        ),
        (
            {"ids": ("b", 128), "mask": ("b", "s")},
            "input 0 'ids' fixes the sequence axis at 128, which input 1 'mask' leaves open",
        ),
        (
            {"ids": (1, 128), "segment": (1, 384)},
            "the sequence axis is fixed at 128 in input 0 'ids' and 384 in input 1 'segment'",
        ),
        (
            {"mask": ("b", 10), "encoder_states": ("b", "s", 16), "decoder_ids": ("b", "t")},
            "input 0 'mask' fixes the sequence axis at 10, which input 1 'encoder_states' leaves open",
        ),
        (
            {"ids": ("b", "s"), "segment": (1, "s")},
            "input 1 'segment' fixes the batch axis at 1, which input 0 'ids' leaves open",
        ),
    ],
)
def test_contradictions(shapes: dict[str, Shape], said: str) -> None:
    assert disagreeing_axes(inputs(**shapes)) == (said,)


@pytest.mark.parametrize(
    "shapes",
    [
        {"ids": ("b", "s"), "mask": ("b", "s")},
        {"ids": (1, 128), "mask": (1, 128), "segment": (1, 128)},
        {"ids": ("b", "s"), "position": (1, "s")},
        {"ids": ("b", 1), "mask": ("b", "total")},  # one new token beside a cache that the graph keeps to itself
        {"ids": ("b", "s"), "mask": ("b", 2048), "past": ("b", 2, 2048, 8)},  # a cache of fixed size
        {"decoder_ids": ("b", "t"), "mask": ("b", "s"), "encoder_states": ("b", "s", 16)},
    ],
)
def test_what_agrees(shapes: dict[str, Shape]) -> None:
    assert disagreeing_axes(inputs(**shapes)) == ()


def test_two_texts_have_lengths_of_their_own() -> None:
    """A retriever pads questions to 32 tokens and leaves passages open."""
    texts = [
        InputFacts(at, name, (name,), "", "i64", shape, role=role)
        for at, (name, role, shape) in enumerate(
            [
                ("query_ids", "ids", ("b", 32)),
                ("query_mask", "mask", ("b", 32)),
                ("passage_ids", "ids", ("p", "s")),
                ("passage_mask", "mask", ("p", "s")),
            ]
        )
    ]
    assert disagreeing_axes(texts) == ()
