"""Message templates."""

from __future__ import annotations

import math

import pytest

from wirelint.facts import InputFacts, Place
from wirelint.rules.conditions import ExpressionError, names_for
from wirelint.rules.templates import compile_template, shown


def entry(name: str) -> InputFacts:
    return InputFacts(1, name, (name,), "", "i64", ("batch", None, 8))


def test_fills_fields_and_keeps_braces() -> None:
    template = compile_template("{{x}} {input.shown} of shape [{input.shape}], default {input.has_default}", names_for("input"))
    assert template.render({"input": entry("m")}) == "{x} input 1 'm' of shape [batch, ?, 8], default no"
    assert template.general == "{x} <input.shown> of shape [<input.shape>], default <input.has_default>"


def test_an_expression_is_left_out_of_the_general_text() -> None:
    template = compile_template("it is {'used' if input.used else 'dead'} here", names_for("input"))
    assert (template.render({"input": entry("m")}), template.general) == ("it is used here", "it is ... here")


def test_names_cannot_forge_lines_or_terminal_escapes() -> None:
    template = compile_template("{input.name}", names_for("input"))
    assert template.render({"input": entry("a\n  error  fake\x1b[2J\u202eb")}) == "a\\n  error  fake\\x1b[2J\\u202eb"


def test_names_cannot_fill_fields() -> None:
    template = compile_template("{input.name}", names_for("input"))
    assert template.render({"input": entry("{model.path}{0.__class__}")}) == "{model.path}{0.__class__}"


def test_long_names_are_cut() -> None:
    text = compile_template("{input.name}", names_for("input")).render({"input": entry("x" * 10_000)})
    assert len(text) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-3.4028234663852886e38, "-3.403e38"),
        (-10000.0, "-1e04"),
        (0.5, "0.5"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "NaN"),
        (None, "unknown"),
        (True, "yes"),
        ({"b", "a"}, "a, b"),
        (tuple(range(20)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"),
        (Place("n", "Add"), "Add 'n'"),
    ],
)
def test_shows_facts(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{input.nam}", "did you mean 'name'?"),
        ("{input.name!r}", "without a format or conversion"),
        ("{input.index:>99999999}", "without a format or conversion"),
        ("{}", "an empty field"),
        ("{input.name", "for braces write"),
        ("{input.__init__.__globals__}", "has no field"),
    ],
)
def test_refuses(text: str, cause: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_template(text, names_for("input"))
    assert cause in str(caught.value)
