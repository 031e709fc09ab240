"""The expressions in rule files: parsed and checked against the facts' dataclasses when loaded, then run by ``simpleeval``.

The language is a small part of Python's: names, attributes, comparisons, ``and``/``or``/``not``/``in``, arithmetic,
conditional expressions, lists and tuples, comprehensions, a few functions, and methods of facts that take no arguments.
Whatever is misspelt, can't be compared, or may be None where a value is needed is an error when the rule is loaded; a
rule never passes silently.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, Union

from wirelint.facts import ENTITIES, ModelFacts
from wirelint.suggest import did_you_mean

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Expression", "ExpressionError", "Hint", "compile_expression", "members", "names_for"]

Hint = Any
"""A type as in an annotation: ``str``, ``int | None``, ``list[InputFacts]``."""

_PARTS = ("attention", "mask", "sequence", "batch", "expect")
_LONGEST = 2000
_DEEPEST = 50
_NUMBERS = (bool, int, float)
_CONTAINERS = (list, tuple, set, frozenset, dict)
_TEXT_METHODS: dict[str, tuple[int, Hint]] = {
    "startswith": (1, bool),
    "endswith": (1, bool),
    "lower": (0, str),
    "upper": (0, str),
}


class ExpressionError(Exception):
    """An expression is wrong; the message says why, without file and line, which the caller knows."""


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

    evaluator = simpleeval.EvalWithCompoundTypes(functions={name: call for name, (call, _) in _FUNCTIONS.items()})
    evaluator.ATTR_INDEX_FALLBACK = False
    return evaluator


_FUNCTIONS: dict[str, tuple[Any, Hint]] = {
    "len": (len, int),
    "any": (any, bool),
    "all": (all, bool),
    "sum": (sum, float),
    "min": (min, None),
    "max": (max, None),
    "abs": (abs, None),
}


@functools.cache
def names_for(kind: str) -> Mapping[str, Hint]:
    """The names that a rule for this kind of fact may use, with their types; see :data:`wirelint.facts.ENTITIES`."""
    entity = ENTITIES[kind]
    if kind == "file":
        return {kind: entity}
    parts = _attributes(ModelFacts)
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
        hint = _Checker(names, given.ensures if given else frozenset()).check(node)
    except SyntaxError as error:
        column = f" (at column {error.offset})" if error.offset else ""
        raise ExpressionError(f"no valid expression: {error.msg}{column}") from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError("no valid expression: nested too deeply, or with a character that none has") from None
    return Expression(flat, node, hint, _ensured(node, truth=True))


@functools.cache
def members(hint: Hint) -> tuple[Hint, ...]:
    """The alternatives of a union; a type alone is its only member."""
    if _origin(hint) in (Union, types.UnionType):
        return tuple(member for part in typing.get_args(hint) for member in members(part))
    return (hint,)


def _origin(hint: Hint) -> Any:
    """``tuple`` for ``tuple[int, ...]``, ``Literal`` for ``Literal["a"]``, None for a plain class."""
    return typing.get_origin(hint)


def _is_fact(hint: Hint) -> bool:
    return dataclasses.is_dataclass(hint)


@functools.cache
def _attributes(owner: Any) -> dict[str, Hint]:
    """Fields and properties of a dataclass, with their types."""
    hints = typing.get_type_hints(owner)
    found = {item.name: hints[item.name] for item in dataclasses.fields(owner)}
    for name, value in inspect.getmembers(owner, lambda value: isinstance(value, property)):
        if not name.startswith("_"):
            found[name] = typing.get_type_hints(value.fget).get("return", Any)
    return found


@functools.cache
def _methods(owner: Any) -> dict[str, Hint]:
    """Public methods of a dataclass that take no arguments, with what they return."""
    return {
        name: typing.get_type_hints(value).get("return", Any)
        for name, value in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(value).parameters) == 1
    }


@functools.cache
def _optional(hint: Hint) -> bool:
    return any(member in (None, type(None)) for member in members(hint))


@functools.cache
def _present(hint: Hint) -> tuple[Hint, ...]:
    return tuple(member for member in members(hint) if member not in (None, type(None)))


def _union(hints: Iterable[Hint]) -> Hint:
    parts = list(dict.fromkeys(part for hint in hints for part in members(hint)))
    if not parts:
        return Any
    return functools.reduce(lambda left, right: Union[left, right], parts)  # noqa: UP007 -- `|` can't join None and None


def _container(hint: Hint) -> Any:
    """``tuple`` for ``tuple[int, ...]`` and so on; None for what holds nothing."""
    bare = _origin(hint) or hint
    return bare if bare in _CONTAINERS else None


def _elements(hint: Hint) -> Hint:
    """The type of what a container yields: the keys of a dict."""
    arguments = [part for part in typing.get_args(hint) if part is not Ellipsis]
    if not arguments:
        return Any
    return arguments[0] if _container(hint) is dict else _union(arguments)


def _sort(hint: Hint) -> str:
    """What a type can be compared with: types of the same sort."""
    if hint is Any:
        return "anything"
    if hint in (None, type(None)):
        return "None"
    if _origin(hint) is Literal:
        return _sort(type(typing.get_args(hint)[0]))
    if hint in _NUMBERS:
        return "a number"
    if hint is str:
        return "text"
    if _container(hint) is not None:
        return "a collection"
    return str(getattr(hint, "__name__", hint))


@functools.cache
def _sorts(hint: Hint) -> frozenset[str]:
    return frozenset(_sort(member) for member in members(hint))


def _worded(sorts: frozenset[str]) -> str:
    return " or ".join(sorted(sorts))


class _Checker:
    """Walks an expression and finds the type of each part."""

    def __init__(self, names: Mapping[str, Hint], present: frozenset[str]) -> None:
        self.names = dict(names)
        self.depth = 0
        self.present = present
        """Paths that can't be None here, because an earlier part of the condition made sure."""

    def check(self, node: ast.expr) -> Hint:
        visit = getattr(self, f"_{type(node).__name__.lower()}", None)
        if visit is None:
            raise ExpressionError(f"'{ast.unparse(node)}' is not part of the rule language ({type(node).__name__})")
        if self.depth >= _DEEPEST:
            raise ExpressionError("nested too deeply")
        self.depth += 1
        hint: Hint = visit(node)
        self.depth -= 1
        if self.present and _optional(hint) and _path(node) in self.present:
            return _union(_present(hint))
        return hint

    def needed(self, node: ast.expr) -> Hint:
        """Like :meth:`check`, where None has no place."""
        hint = self.check(node)
        if _optional(hint) and _present(hint):
            path = ast.unparse(node)
            raise ExpressionError(f"'{path}' may be None; write '{path} is not None and ...' before it is used")
        return hint

    def _constant(self, node: ast.Constant) -> Hint:
        if not isinstance(node.value, (str, int, float, bool, type(None))):
            raise ExpressionError(f"'{ast.unparse(node)}' is not part of the rule language")
        return type(node.value)

    def _name(self, node: ast.Name) -> Hint:
        if node.id not in self.names:
            raise ExpressionError(f"unknown name '{node.id}'{did_you_mean(node.id, self.names)}")
        return self.names[node.id]

    def _attribute(self, node: ast.Attribute) -> Hint:
        found = []
        for owner in _present(self.needed(node.value)):
            known = _attributes(owner) if _is_fact(owner) else {}
            if node.attr not in known:
                shown = ast.unparse(node.value)
                if _is_fact(owner) and node.attr in _methods(owner):
                    raise ExpressionError(f"'{shown}.{node.attr}' is a method; write '{shown}.{node.attr}()'")
                raise ExpressionError(f"'{shown}' has no field '{node.attr}'{did_you_mean(node.attr, known)}")
            found.append(known[node.attr])
        return _union(found)

    def _call(self, node: ast.Call) -> Hint:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise ExpressionError(f"'{ast.unparse(node)}': only plain arguments are allowed")
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            name = ast.unparse(node.func)
            raise ExpressionError(f"unknown function '{name}'{did_you_mean(name, _FUNCTIONS)}")
        return self._function(node, node.func.id)

    def _method(self, node: ast.Call, func: ast.Attribute) -> Hint:
        owners = _present(self.needed(func.value))
        found = []
        for owner in owners:
            if owner is str and func.attr in _TEXT_METHODS:
                count, result = _TEXT_METHODS[func.attr]
                known: Mapping[str, Any] = _TEXT_METHODS
            else:
                known = _methods(owner) if _is_fact(owner) else _TEXT_METHODS if owner is str else {}
                count, result = 0, known.get(func.attr)
            if func.attr not in known:
                raise ExpressionError(
                    f"'{ast.unparse(func.value)}' has no method '{func.attr}'{did_you_mean(func.attr, known)}"
                )
            if len(node.args) != count:
                raise ExpressionError(f"'{ast.unparse(func)}' takes {count} argument{'s' * (count != 1)}, not {len(node.args)}")
            found.append(result)
        for argument in node.args:
            self._of_sort(argument, "text")
        return _union(found)

    def _function(self, node: ast.Call, name: str) -> Hint:
        if len(node.args) != 1 and not (name in ("min", "max") and len(node.args) > 1):
            raise ExpressionError(f"'{name}' takes 1 argument, not {len(node.args)}")
        hints = [self.needed(argument) for argument in node.args]
        _, result = _FUNCTIONS[name]
        if name == "abs" or len(node.args) > 1:
            for argument in node.args:
                self._of_sort(argument, "a number")
            return _union(hints)
        sorts = _sorts(hints[0]) - {"anything"}
        if sorts - ({"a collection", "text"} if name == "len" else {"a collection"}):
            raise ExpressionError(f"'{name}' needs a collection, and '{ast.unparse(node.args[0])}' is {_worded(sorts)}")
        return result if result is not None else _union(_elements(member) for member in members(hints[0]))

    def _boolop(self, node: ast.BoolOp) -> Hint:
        known, before = self.present, self.present
        hints = []
        for value in node.values:
            self.present = known
            hints.append(self.check(value))
            known |= _ensured(value, isinstance(node.op, ast.And))
        self.present = before
        return _union(hints)

    def _unaryop(self, node: ast.UnaryOp) -> Hint:
        if isinstance(node.op, ast.Not):
            self.check(node.operand)
            return bool
        if isinstance(node.op, ast.Invert):
            raise ExpressionError("'~' is not part of the rule language; write 'not'")
        return self._of_sort(node.operand, "a number")

    def _binop(self, node: ast.BinOp) -> Hint:
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)):
            raise ExpressionError(f"'{ast.unparse(node)}' is not part of the rule language")
        hints = [self._of_sort(side, "a number") for side in (node.left, node.right)]
        return float if isinstance(node.op, ast.Div) else _union(hints)

    def _ifexp(self, node: ast.IfExp) -> Hint:
        self.check(node.test)
        before = self.present
        hints = []
        for branch, truth in ((node.body, True), (node.orelse, False)):
            self.present = before | _ensured(node.test, truth)
            hints.append(self.check(branch))
        self.present = before
        return _union(hints)

    def _compare(self, node: ast.Compare) -> Hint:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(operator, (ast.Is, ast.IsNot)):
                self._identity(left, right)
            elif isinstance(operator, (ast.In, ast.NotIn)):
                self._membership(left, right)
            elif isinstance(operator, (ast.Eq, ast.NotEq)):
                self._overlap(left, self.check(left), right, self.check(right))
            else:
                self._ordered(left, right)
        return bool

    def _identity(self, left: ast.expr, right: ast.expr) -> None:
        if not isinstance(right, ast.Constant) or right.value not in (None, True, False):
            raise ExpressionError(
                f"'is' compares with None, True or False; write '{ast.unparse(left)} == {ast.unparse(right)}'"
            )
        hint = self.check(left)
        if right.value is None and not _optional(hint) and hint is not Any and _path(left) not in self.present:
            raise ExpressionError(f"'{ast.unparse(left)}' is never None")

    def _membership(self, left: ast.expr, right: ast.expr) -> None:
        container, item = self.needed(right), self.check(left)
        for member in members(container):
            if member is str:
                self._of_sort(left, "text")
            elif _container(member) is not None:
                elements = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
                for element in elements:
                    hint = self.check(element) if element is not right else _elements(member)
                    self._overlap(left, item, element, hint)
            elif member is not Any:
                raise ExpressionError(f"'in' needs a collection, and '{ast.unparse(right)}' is {_worded(_sorts(member))}")

    def _ordered(self, left: ast.expr, right: ast.expr) -> None:
        sorts = [_sorts(self.needed(side)) - {"anything"} for side in (left, right)]
        for side, found in zip((left, right), sorts, strict=True):
            if found - {"a number"}:
                raise ExpressionError(f"only numbers are larger or smaller, and '{ast.unparse(side)}' is {_worded(found)}")

    def _overlap(self, left: ast.expr, left_hint: Hint, right: ast.expr, right_hint: Hint) -> None:
        """Refuses an equality that can never hold."""
        sorts = _sorts(left_hint), _sorts(right_hint)
        if "anything" not in sorts[0] | sorts[1] and not sorts[0] & sorts[1]:
            shown = f"'{ast.unparse(left)}' is {_worded(sorts[0])} and '{ast.unparse(right)}' is {_worded(sorts[1])}"
            raise ExpressionError(f"{shown}: they are never equal")
        for constant, path, hint in ((left, right, right_hint), (right, left, left_hint)):
            values = _literals(hint)
            if isinstance(constant, ast.Constant) and values and constant.value is not None and constant.value not in values:
                words = [str(value) for value in values]
                raise ExpressionError(
                    f"'{ast.unparse(path)}' is never {constant.value!r}{did_you_mean(str(constant.value), words)}"
                )

    def _of_sort(self, node: ast.expr, sort: str) -> Hint:
        hint = self.needed(node)
        found = _sorts(hint) - {"anything", sort}
        if found:
            raise ExpressionError(f"'{ast.unparse(node)}' must be {sort}, and is {_worded(found)}")
        return hint

    def _subscript(self, node: ast.Subscript) -> Hint:
        owner = self.needed(node.value)
        if isinstance(node.slice, ast.Slice):
            raise ExpressionError(f"'{ast.unparse(node)}': slices are not part of the rule language")
        found = []
        for member in members(owner):
            if _container(member) is dict:
                self._of_sort(node.slice, "text")
                found.append(typing.get_args(member)[1])
            elif member is Any or _container(member) in (list, tuple):
                self._of_sort(node.slice, "a number")
                found.append(_elements(member))
            else:
                raise ExpressionError(f"'{ast.unparse(node.value)}' is {_worded(_sorts(member))} and has no items")
        return _union(found)

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Hint:
        element: Any = _union(self.check(element) for element in node.elts)
        return tuple[element, ...]

    _list = _set = _tuple

    def _generatorexp(self, node: ast.GeneratorExp | ast.ListComp) -> Hint:
        names, before = dict(self.names), self.present
        for generator in node.generators:
            iterated = self.needed(generator.iter)
            if not isinstance(generator.target, ast.Name) or any(_container(member) is None for member in members(iterated)):
                raise ExpressionError(f"'{ast.unparse(node)}': write 'for NAME in COLLECTION'")
            if generator.target.id in names:
                raise ExpressionError(f"'{generator.target.id}' has a meaning already; choose another name")
            self.names[generator.target.id] = _union(_elements(member) for member in members(iterated))
            for condition in generator.ifs:
                self.check(condition)
                self.present |= _ensured(condition, truth=True)
        element: Any = self.check(node.elt)
        self.names, self.present = names, before
        return list[element]

    _listcomp = _generatorexp


def _literals(hint: Hint) -> tuple[Any, ...]:
    """The values of a type whose every alternative is a literal or None."""
    present = _present(hint)
    if not present or any(_origin(member) is not Literal for member in present):
        return ()
    return tuple(value for member in present for value in typing.get_args(member))


def _ensured(node: ast.expr, truth: bool) -> frozenset[str]:
    """Paths that can't be None once the condition has turned out to be ``truth``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _ensured(node.operand, not truth)
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) is truth:
            return frozenset().union(*(_ensured(value, truth) for value in node.values))
        return frozenset()
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
        operator, with_none = node.ops[0], node.comparators[0].value is None
        says_present = isinstance(operator, ast.IsNot if with_none else (ast.Eq, ast.Is))
        says_absent = isinstance(operator, ast.Is if with_none else (ast.NotEq, ast.IsNot))
        if (says_present and truth) or (says_absent and not truth):
            return _paths(node.left)
    return _paths(node) if truth else frozenset()


def _paths(node: ast.expr) -> frozenset[str]:
    path = _path(node)
    return frozenset({path}) if path else frozenset()


def _path(node: ast.expr) -> str:
    """A name with attributes as it is written, such as ``mask.fill``; empty for any other expression."""
    steps: list[str] = []
    while isinstance(node, ast.Attribute):
        steps.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(steps)]) if isinstance(node, ast.Name) else ""
