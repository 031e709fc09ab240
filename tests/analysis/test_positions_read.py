"""Which position of a sequence a lookup takes, however the lookup is spelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_graphs import TOKENS, constant, examined, words

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import NodeProto

INPUTS = [("ids", *TOKENS), ("mask", *TOKENS)]
EMBEDDED = helper.make_node("Gather", ["words", "ids"], ["h"])


def kinds(folder: Path, nodes: list[NodeProto], constants: list[TensorProto]) -> list[str]:
    facts = examined(folder, [EMBEDDED, *nodes], INPUTS, [words(), *constants])
    return [entry.kind for entry in facts.reductions]


@pytest.mark.parametrize(("index", "kind"), [(0, "first"), (-1, "last"), (2, "position")])
def test_a_fixed_index_for_each_element(tmp_path: Path, index: int, kind: str) -> None:
    """``torch.gather`` with a constant index, as ``x.gather(1, zeros)`` is exported."""
    nodes = [
        helper.make_node("Shape", ["ids"], ["size"], start=0, end=1),
        helper.make_node("Concat", ["size", "one_row"], ["spread"], axis=0),
        helper.make_node("Expand", ["index", "spread"], ["taken"]),
        helper.make_node("GatherElements", ["h", "taken"], ["row"], axis=-2),
        helper.make_node("Squeeze", ["row", "axis"], ["y"]),
    ]
    constants = [constant("index", index, np.int64), constant("one_row", [1, 8], np.int64), constant("axis", [1], np.int64)]
    assert kinds(tmp_path, nodes, constants) == [kind]


def counted(search: list[NodeProto]) -> list[NodeProto]:
    """Reads the position that ``search`` finds for each row as ``at``."""
    return [
        *search,
        helper.make_node("Unsqueeze", ["at", "last"], ["column"]),
        helper.make_node("GatherND", ["h", "column"], ["y"], batch_dims=1),
    ]


LAST_AXIS = constant("last", [1], np.int64)


def test_the_first_real_token_wherever_it_stands(tmp_path: Path) -> None:
    """The first 1 of the mask: position 0 under right padding, and the real first token under left padding."""
    search = [helper.make_node("ArgMax", ["mask"], ["at"], axis=1, keepdims=0)]
    assert kinds(tmp_path, counted(search), [LAST_AXIS]) == ["first"]


def test_the_first_real_token_among_the_rows_of_all_texts(tmp_path: Path) -> None:
    """``x[range(batch), first]`` as TorchScript exports it: rows and positions become one axis."""
    nodes = [
        helper.make_node("ArgMax", ["mask"], ["at"], axis=1, keepdims=0),
        helper.make_node("Shape", ["ids"], ["rows"], start=0, end=1),
        helper.make_node("Shape", ["ids"], ["length"], start=1, end=2),
        helper.make_node("Squeeze", ["rows"], ["end"]),
        helper.make_node("Range", ["zero", "end", "one"], ["row"]),
        helper.make_node("Mul", ["row", "length"], ["begin"]),
        helper.make_node("Add", ["begin", "at"], ["place"]),
        helper.make_node("Reshape", ["h", "flat"], ["all"]),
        helper.make_node("Gather", ["all", "place"], ["y"]),
    ]
    constants = [constant("zero", 0, np.int64), constant("one", 1, np.int64), constant("flat", [-1, 8], np.int64)]
    assert kinds(tmp_path, nodes, constants) == ["first"]


def test_the_last_real_token(tmp_path: Path) -> None:
    search = [
        helper.make_node("ReduceSum", ["mask", "last"], ["n"], keepdims=0),
        helper.make_node("Sub", ["n", "one"], ["at"]),
    ]
    assert kinds(tmp_path, counted(search), [LAST_AXIS, constant("one", 1, np.int64)]) == ["counted"]


@pytest.mark.parametrize("begin", [0, 1])
def test_a_mean_over_all_positions_but_the_first(tmp_path: Path, begin: int) -> None:
    """``x[:, 1:].mean(1)``, which leaves the class token out and takes the padding in."""
    nodes = [
        helper.make_node("Slice", ["h", "begin", "end", "axis"], ["rest"]),
        helper.make_node("ReduceMean", ["rest"], ["y"], axes=[1], keepdims=0),
    ]
    constants = [
        constant("begin", [begin], np.int64),
        constant("end", [np.iinfo(np.int64).max], np.int64),
        constant("axis", [1], np.int64),
    ]
    facts = examined(tmp_path, [EMBEDDED, *nodes], INPUTS, [words(), *constants])
    assert [(entry.kind, entry.masked, entry.leaks_right) for entry in facts.reductions] == [("mean", False, True)]
    assert facts.outputs[0].padding.right == "leaks"


def test_a_masked_mean_over_all_positions_but_the_first(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "two"], ["column"]),
        helper.make_node("Cast", ["column"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["h", "kept"], ["blanked"]),
        helper.make_node("Slice", ["blanked", "one", "end", "one"], ["rest"]),
        helper.make_node("ReduceSum", ["rest", "one"], ["y"], keepdims=0),
    ]
    constants = [
        constant("two", [2], np.int64),
        constant("one", [1], np.int64),
        constant("end", [np.iinfo(np.int64).max], np.int64),
    ]
    facts = examined(tmp_path, [EMBEDDED, *nodes], INPUTS, [words(), *constants])
    assert [(entry.kind, entry.masked) for entry in facts.reductions] == [("sum", True)]
    assert facts.outputs[0].padding.right == "safe"


@pytest.mark.parametrize(("counted", "divisor"), [("ReduceMean", "mask"), (None, "length")])
def test_a_mean_of_blanked_states_over_the_mean_of_the_mask(tmp_path: Path, counted: str | None, divisor: str) -> None:
    """The padded length stands in both means and cancels out; without the second it stays."""
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "two"], ["column"]),
        helper.make_node("Cast", ["column"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["h", "kept"], ["blanked"]),
        helper.make_node("ReduceMean", ["blanked"], ["pooled"], axes=[1], keepdims=0),
    ]
    if counted is not None:
        nodes += [helper.make_node(counted, ["kept"], ["share"], axes=[1], keepdims=0)]
    nodes += [helper.make_node("Div", ["pooled", "share" if counted is not None else "width"], ["y"])]
    constants = [constant("two", [2], np.int64), constant("width", 8)]
    facts = examined(tmp_path, [EMBEDDED, *nodes], INPUTS, [words(), *constants])
    assert [(entry.kind, entry.divisor) for entry in facts.reductions if entry.leaks_right or entry.masked] == [
        ("mean", divisor)
    ]
