"""Texts with ``{fields}`` that are filled from facts."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirelint.facts import Evidence
from wirelint.printable import printable
from wirelint.rules.conditions import Expression, ExpressionError, compile_expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirelint.rules.hints import Hint

__all__ = ["Template", "compile_template", "shown"]

_LONGEST_NAME = 160
_LONGEST_SENTENCE = 400
"""For sentences, which may be about several names."""
_MOST_ITEMS = 12


@dataclass(frozen=True, slots=True)
class Template:
    """A text whose fields are expressions over facts.

    Attributes:
        parts: literal texts and fields, in order.
    """

    parts: tuple[str | Expression, ...]

    def render(self, names: Mapping[str, Any]) -> str:
        """The text for these facts."""
        return "".join(part if isinstance(part, str) else shown(part.evaluate(names)) for part in self.parts)

    @property
    def is_field(self) -> bool:
        """A single field is all there is, so that it says nothing in general."""
        return len(self.parts) == 1 and not isinstance(self.parts[0], str)

    @property
    def general(self) -> str:
        """The text for no model in particular: a field stands as its name in angle brackets, other expressions as dots."""
        return "".join(part if isinstance(part, str) else f"<{part.source}>" if part.is_path else "..." for part in self.parts)


def compile_template(text: str, names: Mapping[str, Hint], given: Expression | None = None) -> Template:
    """Parses a text; ``{{`` and ``}}`` stand for braces.

    Args:
        text: the text.
        names: what its fields may refer to.
        given: a condition that holds whenever it is rendered.

    Raises:
        ExpressionError: a field is wrong, or carries a format or conversion, which are not allowed.
    """
    parts: list[str | Expression] = []
    try:
        for literal, field, form, conversion in string.Formatter().parse(text):
            if literal:
                parts.append(literal)
            if field is None:
                continue
            if form or conversion:
                raise ExpressionError(f"'{{{field}}}' must be a field alone, without a format or conversion")
            if not field:
                raise ExpressionError("an empty field '{}'; for braces write '{{' and '}}'")
            parts.append(compile_expression(field, names, given))
    except ValueError as error:
        raise ExpressionError(f"{error}; for braces write '{{{{' and '}}}}'") from None
    return Template(tuple(parts))


def shown(value: Any) -> str:
    """A fact for a message.

    Examples:
        >>> shown(-3.4028234663852886e38), shown(("batch", None, 128)), shown(None)
        ('-3.403e38', 'batch, ?, 128', 'unknown')
    """
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple, dict)):
        items = [_item(item) for item in list(value)[:_MOST_ITEMS]]
        more = len(value) - len(items)
        # Sentences have commas of their own.
        between = "; " if any(", " in item for item in items) else ", "
        return between.join(items) + (f" and {more} more" if more else "")
    return _text(value.text if isinstance(value, Evidence) else str(value))


def _item(value: Any) -> str:
    if value is None:
        return "?"
    return shown(value)


def _text(value: str) -> str:
    return printable(value, _LONGEST_SENTENCE if " " in value else _LONGEST_NAME)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return f"{value:.4g}".replace("e+", "e")
