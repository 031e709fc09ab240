"""The editing of protobuf bytes, against the same change made through protobuf itself."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wrong_models import masked_encoder

from wirelint.errors import ModelFileError
from wirelint.fix.onnx_file import pieces_of
from wirelint.fix.plan import Plan, Rename
from wirelint.fix.writing import Span

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def edited(content: bytes, plan: Plan) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(content)
        pieces = pieces_of(path, plan)
    return b"".join(content[piece.begin : piece.end] if isinstance(piece, Span) else piece for piece in pieces)


@settings(max_examples=60, deadline=None)
@given(old=st.tuples(NAMES, NAMES), new=st.tuples(NAMES, NAMES), capture=st.booleans())
def test_renaming_is_what_building_with_the_new_names_gives(old: tuple[str, str], new: tuple[str, str], capture: bool) -> None:
    inner = {
        name for node in masked_encoder(("\0a", "\0b"), capture=capture).graph.node for name in (*node.input, *node.output)
    }
    if len(set(old)) < 2 or len(set(new)) < 2 or inner & {*old, *new}:
        return
    plan = Plan(tuple(Rename(at, "", before, after, "") for at, (before, after) in enumerate(zip(old, new, strict=True))))
    made = edited(masked_encoder(old, capture=capture).SerializeToString(), plan)
    assert onnx.ModelProto.FromString(made) == masked_encoder(new, capture=capture)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_an_error_or_are_copied(data: st.DataObject) -> None:
    content = bytearray(masked_encoder(("x.1", "y.1"), capture=True).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    plan = Plan((Rename(0, "ids", "x.1", "input_ids", ""),), ("y.1",))
    with contextlib.suppress(ModelFileError):
        edited(bytes(content[: data.draw(st.integers(1, len(content)))]), plan)


def test_nothing_to_rename_copies_everything() -> None:
    content = masked_encoder(("a", "b")).SerializeToString()
    assert edited(content, Plan((Rename(0, "", "c", "d", ""),))) == content


def test_unknown_fields_stay() -> None:
    content = masked_encoder(("x.1", "y.1")).SerializeToString() + b"\xfa\x7f\x03abc" + b"\xf0\x7f\x01"
    made = edited(content, Plan((Rename(0, "", "x.1", "input_ids", ""),)))
    assert made.endswith(b"\xfa\x7f\x03abc\xf0\x7f\x01")


def test_nesting_beyond_measure_is_refused() -> None:
    inner = b""
    for _ in range(200):
        node = b"\x2a" + varint(len(inner) + 1 + len(varint(len(inner)))) + b"\x32" + varint(len(inner)) + inner
        inner = b"\x0a" + varint(len(node)) + node
    content = b"\x3a" + varint(len(inner)) + inner
    with pytest.raises(ModelFileError):
        edited(content, Plan((Rename(0, "", "x", "y", ""),)))


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
