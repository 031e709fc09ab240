"""The expressions in rule files: parsed and checked against the facts' dataclasses when loaded, then run by ``simpleeval``.

The language is a small part of Python's: names, attributes, comparisons, ``and``/``or``/``not``/``in``, arithmetic,
conditional expressions, lists and tuples, comprehensions, a few functions, and methods of facts that take no arguments.
Whatever is misspelt, can't be compared, or may be None where a value is needed is an error when the rule is loaded; a
rule never passes silently.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirelint.facts import ENTITIES, ModelFacts
from wirelint.rules.checker import FUNCTIONS, Checker, ExpressionError, ensured, path_of
from wirelint.rules.hints import Hint, attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Expression", "ExpressionError", "compile_expression", "names_for"]

_PARTS = ("attention", "mask", "sequence", "batch", "expect")
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression.

    Attributes:
        source: as written.
        node: its syntax tree.
        hint: the type of its value.
        ensures: paths that can't be None when it holds.
    """

    source: str
    node: ast.expr
    hint: Hint
    ensures: frozenset[str]

    @property
    def is_path(self) -> bool:
        """It is a name with attributes, such as ``mask.fill``."""
        return bool(path_of(self.node))

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        """The value, given what each name stands for.

        Raises:
            ArithmeticError, LookupError, TypeError, ValueError: the facts are such that it has no value (a division by
                zero, an index past the end).
        """
        evaluator = _evaluator()
        evaluator.names = names
        return evaluator.eval(self.source, previously_parsed=self.node)


@functools.cache
def _evaluator() -> Any:
    import simpleeval

    evaluator = simpleeval.EvalWithCompoundTypes(functions={name: call for name, (call, _) in FUNCTIONS.items()})
    evaluator.nodes[ast.Attribute] = functools.partial(_attribute, evaluator)
    return evaluator


def _attribute(evaluator: Any, node: ast.Attribute) -> Any:
    """A field or method of a fact, or a method of a text: the checker has let no other attribute through.

    ``simpleeval`` itself refuses ``format`` on whatever object, for the sake of ``str.format``; models and files have a field
    of that name.
    """
    return getattr(evaluator.eval("", previously_parsed=node.value), node.attr)


@functools.cache
def names_for(kind: str) -> Mapping[str, Hint]:
    """The names that a rule for this kind of fact may use, with their types; see :data:`wirelint.facts.ENTITIES`."""
    entity = ENTITIES[kind]
    if kind == "file":
        return {kind: entity}
    parts = attributes(ModelFacts)
    return {**{part: parts[part] for part in _PARTS}, "model": ModelFacts, kind: entity}


def compile_expression(source: str, names: Mapping[str, Hint], given: Expression | None = None) -> Expression:
    """Parses an expression and checks it.

    Args:
        source: the expression; line breaks count as spaces.
        names: what it may refer to.
        given: a condition that holds whenever the expression is evaluated; what it makes sure of need not be asked again.

    Raises:
        ExpressionError: it is no expression, uses what the language does not have, names something that does not exist,
            or mixes types in a way that can never be right.
    """
    flat = " ".join(source.split())
    if len(flat) > _LONGEST:
        raise ExpressionError(f"longer than {_LONGEST} characters")
    try:
        node = ast.parse(flat, mode="eval").body
        hint = Checker(names, given.ensures if given else frozenset()).check(node)
    except SyntaxError as error:
        column = f" (at column {error.offset})" if error.offset else ""
        raise ExpressionError(f"no valid expression: {error.msg}{column}") from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError("no valid expression: nested too deeply, or with a character that none has") from None
    return Expression(flat, node, hint, ensured(node, truth=True))
