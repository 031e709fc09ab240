"""The small functions that the command line stands on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.errors import ConfigurationError
from wirelint.globs import matches
from wirelint.paragraphs import blocks, reflow
from wirelint.printable import printable
from wirelint.suggest import did_you_mean


@given(st.text(st.characters()))
def test_printable_is_one_printable_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")


@given(st.text(st.characters()), st.integers(min_value=3, max_value=60))
def test_printable_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(printable(text, limit)) <= limit


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_printable_leaves_ordinary_text_alone(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.onnx", "m.onnx", True),
        ("*.onnx", "a/b/m.onnx", True),
        ("a/*.onnx", "a/m.onnx", True),
        ("a/*.onnx", "a/b/m.onnx", False),
        ("a/*.onnx", "x/a/m.onnx", False),
        ("a/**/m.onnx", "a/m.onnx", True),
        ("a/**/m.onnx", "a/b/c/m.onnx", True),
        ("**/old/**", "x/old/y/m.onnx", True),
        ("old", "x/old/m.onnx", True),
        ("old/", "x/old/m.onnx", True),
        ("./a/m.onnx", "a/m.onnx", True),
        ("/a", "a/m.onnx", True),
        ("m?.onnx", "m1.onnx", True),
        ("m[0-9].onnx", "mx.onnx", False),
        ("m[!0-9].onnx", "mx.onnx", True),
        ("m+(1).onnx", "m+(1).onnx", True),
        ("m.onnx", "mXonnx", False),
        ("[", "[", True),
    ],
)
def test_globs(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_a_wrong_glob_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"'m\[9-0\]' is no valid pattern"):
        matches("m[9-0]", "m1")


def test_blocks_join_prose_and_keep_code() -> None:
    text = "One\ntwo.\n\n    code  a\n      code b\nthree\n- item\n  more\n- other\n"
    assert list(blocks(text)) == [
        ("One two.", False),
        ("code  a", True),
        ("  code b", True),
        ("three", False),
        ("- item more", False),
        ("- other", False),
    ]
    assert reflow(text, 10) == ["One two.", "  code  a", "    code b", "three", "- item", "  more", "- other"]


def test_suggestions() -> None:
    assert did_you_mean("slect", ["select", "ignore"]) == "; did you mean 'select'?"
    assert did_you_mean("zzz", ["b", "a"]) == "; known are: a, b"
    assert did_you_mean("zzz", map(str, range(1000))) == ""
