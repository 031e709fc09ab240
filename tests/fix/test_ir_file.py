"""The editing of an IR's XML, by bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import openvino
import openvino.opset13 as ops
import pytest

from wirelint.fix.ir_file import pieces_of, refusals
from wirelint.fix.plan import Plan, Rename
from wirelint.fix.writing import Span

if TYPE_CHECKING:
    from collections.abc import Sequence


def adder(folder: Path, names: Sequence[set[str]]) -> Path:
    """``left + right`` as IR, its parameters under these names."""
    left, right = (ops.parameter([2], openvino.Type.f32, name=f'layer & <{at}> "é"') for at in range(2))
    for parameter, given in zip((left, right), names, strict=True):
        parameter.output(0).set_names(given)
    made = ops.add(left, right)
    made.output(0).set_names({"sum"})
    path = folder / "model.xml"
    openvino.save_model(openvino.Model([ops.result(made)], [left, right], "adder"), path)
    # A port without names is given that of its layer when it is saved.
    path.write_text(re.sub(r' names="layer [^"]*"', "", path.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def edited(path: Path, *renames: tuple[int, str, str]) -> bytes:
    content = path.read_bytes()
    plan = Plan(tuple(Rename(index, "", old, new, "") for index, old, new in renames))
    return b"".join(content[piece.begin : piece.end] if isinstance(piece, Span) else piece for piece in pieces_of(path, plan))


def names_after(path: Path, *renames: tuple[int, str, str]) -> list[set[str]]:
    path.write_bytes(edited(path, *renames))
    return [set(port.names) for port in openvino.Core().read_model(path).inputs]


@pytest.mark.parametrize("new", ["input_ids", "a,b", "<&\"'>", "ids\u00e9", "with blank", "a\\,b"])
def test_any_name_comes_back(new: str, tmp_path: Path) -> None:
    assert names_after(adder(tmp_path, [set(), {"b"}]), (0, "", new)) == [{new}, {"b"}]


def test_swapped(tmp_path: Path) -> None:
    assert names_after(adder(tmp_path, [{"a"}, {"b"}]), (0, "a", "b"), (1, "b", "a")) == [{"b"}, {"a"}]


def test_other_names_of_the_port_stay(tmp_path: Path) -> None:
    assert names_after(adder(tmp_path, [{"a", "input.1"}, {"b"}]), (0, "input.1", "c")) == [{"a", "c"}, {"b"}]


def test_names_of_other_tensors_are_refused(tmp_path: Path) -> None:
    path = adder(tmp_path, [{"a"}, {"b"}])
    assert set(refusals(path, Plan((Rename(0, "", "a", "sum", ""), Rename(1, "", "b", "c", ""))))) == {0}


def test_nothing_else_changes(tmp_path: Path) -> None:
    path = adder(tmp_path, [{"a"}, {"b"}])
    before = path.read_bytes()
    assert edited(path, (1, "b", "a_new_name")) == before.replace(b'names="b"', b'names="a_new_name"')


def test_friendly_names_of_old_versions(tmp_path: Path) -> None:
    path = adder(tmp_path, [{"a"}, {"b"}])
    content = path.read_text(encoding="utf-8").replace('version="11"', 'version="10"', 1)
    path.write_text(content.replace(' names="a"', "").replace("layer &amp; &lt;0> &quot;é&quot;", "old"), encoding="utf-8")
    assert "old" in {name for port in openvino.Core().read_model(path).inputs for name in port.names}
    assert {"new"} <= names_after(path, (0, "old", "new"))[0]
    assert "old" not in {name for port in openvino.Core().read_model(path).inputs for name in port.names}


@pytest.mark.parametrize("head", ["\ufeff", "<!-- <layer><port> -->", '<?xml version="1.0"?>\n\n'])
def test_offsets_hold_whatever_stands_before(head: str, tmp_path: Path) -> None:
    path = adder(tmp_path, [{"a"}, {"b"}])
    content = path.read_text(encoding="utf-8")
    body = content[content.index("<net") :]
    path.write_text((head if head != "\ufeff" else "\ufeff") + body, encoding="utf-8")
    assert names_after(path, (0, "a", "c")) == [{"c"}, {"b"}]
