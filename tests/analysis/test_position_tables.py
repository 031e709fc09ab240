"""Which tables hold the positions of the tokens, and how many tokens they have room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper
from small_graphs import TOKENS, constant, examined, words

if TYPE_CHECKING:
    from pathlib import Path

    from wirelint.facts import ModelFacts

WORDS = helper.make_node("Gather", ["words", "ids"], ["h"])


def sliced(folder: Path, joined: str) -> ModelFacts:
    """``table[:, :length]``, joined with the embeddings by an operator."""
    nodes = [
        WORDS,
        helper.make_node("Shape", ["ids"], ["length"], start=1, end=2),
        helper.make_node("Slice", ["table", "zero", "length", "one"], ["positions"]),
        helper.make_node(joined, ["h", "positions"], ["y"]),
    ]
    table = constant("table", np.ones((1, 64, 8)))
    return examined(
        folder, nodes, [("ids", *TOKENS)], [words(), table, constant("zero", [0], np.int64), constant("one", [1], np.int64)]
    )


def test_a_table_that_is_sliced_and_added(tmp_path: Path) -> None:
    facts = sliced(tmp_path, "Add")
    assert [(entry.kind, entry.index_from, entry.rows) for entry in facts.position_tables] == [("position", "range", 64)]
    assert facts.usable_length == 64
    assert facts.absolute_positions


def test_a_table_that_is_sliced_and_multiplied(tmp_path: Path) -> None:
    """Rotary angles turn queries and keys; they are no positions that are added, and do not tie a row to its first column."""
    facts = sliced(tmp_path, "Mul")
    assert facts.position_tables == []
    assert facts.usable_length is None


def test_the_patches_of_an_image_have_positions_of_their_own(tmp_path: Path) -> None:
    """Both towers in one file: the table of nine patches says nothing about how long a text may be."""
    nodes = [
        WORDS,
        helper.make_node("Shape", ["ids"], ["length"], start=1, end=2),
        helper.make_node("Squeeze", ["length"], ["end"]),
        helper.make_node("Range", ["zero", "end", "one"], ["counted"]),
        helper.make_node("Gather", ["text_positions", "counted"], ["p"]),
        helper.make_node("Add", ["h", "p"], ["text"]),
        helper.make_node("Conv", ["pixels", "kernel"], ["patches"], strides=[8, 8]),
        helper.make_node("Reshape", ["patches", "rows"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["tokens"], perm=[0, 2, 1]),
        helper.make_node("Gather", ["patch_positions", "each_patch"], ["q"]),
        helper.make_node("Add", ["tokens", "q"], ["image"]),
    ]
    constants = [
        words(),
        constant("zero", 0, np.int64),
        constant("one", 1, np.int64),
        constant("text_positions", np.arange(77 * 8).reshape(77, 8)),
        constant("kernel", np.ones((8, 3, 8, 8))),
        constant("rows", [0, 8, 9], np.int64),
        constant("patch_positions", np.arange(9 * 8).reshape(9, 8)),
        constant("each_patch", np.arange(9)[None], np.int64),
    ]
    inputs = [("ids", *TOKENS), ("pixels", TensorProto.FLOAT, ["images", 3, 24, 24])]
    facts = examined(tmp_path, nodes, inputs, constants, ("text", "image"))
    assert [(entry.rows, entry.other_sequence) for entry in facts.embeddings if entry.kind == "position"] == [
        (77, False),
        (9, True),
    ]
    assert facts.usable_length == 77
