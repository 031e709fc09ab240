"""Checks an expression against the types of what it names, and says in words what is wrong with it."""

from __future__ import annotations

import ast
import typing
from typing import TYPE_CHECKING, Any

from wirelint.rules.hints import (
    Hint,
    attributes,
    container_of,
    elements_of,
    is_fact,
    literals,
    members,
    methods,
    optional,
    present_members,
    sorts_of,
    union,
    worded,
)
from wirelint.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FUNCTIONS", "Checker", "ExpressionError", "ensured", "path_of"]

_DEEPEST = 50
_TEXT_METHODS: dict[str, tuple[int, Hint]] = {
    "startswith": (1, bool),
    "endswith": (1, bool),
    "lower": (0, str),
    "upper": (0, str),
}

FUNCTIONS: dict[str, tuple[Any, Hint]] = {
    "len": (len, int),
    "any": (any, bool),
    "all": (all, bool),
    "sum": (sum, float),
    "min": (min, None),
    "max": (max, None),
    "abs": (abs, None),
}
"""Functions of the language, with what they return; None for what their argument holds."""


class ExpressionError(Exception):
    """An expression is wrong; the message says why, without file and line, which the caller knows."""


class Checker:
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
        if self.present and optional(hint) and path_of(node) in self.present:
            return union(present_members(hint))
        return hint

    def needed(self, node: ast.expr) -> Hint:
        """Like :meth:`check`, where None has no place."""
        hint = self.check(node)
        if optional(hint) and present_members(hint):
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
        for owner in present_members(self.needed(node.value)):
            known = attributes(owner) if is_fact(owner) else {}
            if node.attr not in known:
                shown = ast.unparse(node.value)
                if is_fact(owner) and node.attr in methods(owner):
                    raise ExpressionError(f"'{shown}.{node.attr}' is a method; write '{shown}.{node.attr}()'")
                raise ExpressionError(f"'{shown}' has no field '{node.attr}'{did_you_mean(node.attr, known)}")
            found.append(known[node.attr])
        return union(found)

    def _call(self, node: ast.Call) -> Hint:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise ExpressionError(f"'{ast.unparse(node)}': only plain arguments are allowed")
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = ast.unparse(node.func)
            raise ExpressionError(f"unknown function '{name}'{did_you_mean(name, FUNCTIONS)}")
        return self._function(node, node.func.id)

    def _method(self, node: ast.Call, func: ast.Attribute) -> Hint:
        owners = present_members(self.needed(func.value))
        found = []
        for owner in owners:
            if owner is str and func.attr in _TEXT_METHODS:
                count, result = _TEXT_METHODS[func.attr]
                known: Mapping[str, Any] = _TEXT_METHODS
            else:
                known = methods(owner) if is_fact(owner) else _TEXT_METHODS if owner is str else {}
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
        return union(found)

    def _function(self, node: ast.Call, name: str) -> Hint:
        if len(node.args) != 1 and not (name in ("min", "max") and len(node.args) > 1):
            raise ExpressionError(f"'{name}' takes 1 argument, not {len(node.args)}")
        hints = [self.needed(argument) for argument in node.args]
        _, result = FUNCTIONS[name]
        if name == "abs" or len(node.args) > 1:
            for argument in node.args:
                self._of_sort(argument, "a number")
            return union(hints)
        sorts = sorts_of(hints[0]) - {"anything"}
        if sorts - ({"a collection", "text"} if name == "len" else {"a collection"}):
            raise ExpressionError(f"'{name}' needs a collection, and '{ast.unparse(node.args[0])}' is {worded(sorts)}")
        return result if result is not None else union(elements_of(member) for member in members(hints[0]))

    def _boolop(self, node: ast.BoolOp) -> Hint:
        known, before = self.present, self.present
        hints = []
        for value in node.values:
            self.present = known
            hints.append(self.check(value))
            known |= ensured(value, isinstance(node.op, ast.And))
        self.present = before
        return union(hints)

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
        return float if isinstance(node.op, ast.Div) else union(hints)

    def _ifexp(self, node: ast.IfExp) -> Hint:
        self.check(node.test)
        before = self.present
        hints = []
        for branch, truth in ((node.body, True), (node.orelse, False)):
            self.present = before | ensured(node.test, truth)
            hints.append(self.check(branch))
        self.present = before
        return union(hints)

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
        if right.value is None and not optional(hint) and hint is not Any and path_of(left) not in self.present:
            raise ExpressionError(f"'{ast.unparse(left)}' is never None")

    def _membership(self, left: ast.expr, right: ast.expr) -> None:
        container, item = self.needed(right), self.check(left)
        for member in members(container):
            if member is str:
                self._of_sort(left, "text")
            elif container_of(member) is not None:
                elements = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
                for element in elements:
                    hint = self.check(element) if element is not right else elements_of(member)
                    self._overlap(left, item, element, hint)
            elif member is not Any:
                raise ExpressionError(f"'in' needs a collection, and '{ast.unparse(right)}' is {worded(sorts_of(member))}")

    def _ordered(self, left: ast.expr, right: ast.expr) -> None:
        sorts = [sorts_of(self.needed(side)) - {"anything"} for side in (left, right)]
        for side, found in zip((left, right), sorts, strict=True):
            if found - {"a number"}:
                raise ExpressionError(f"only numbers are larger or smaller, and '{ast.unparse(side)}' is {worded(found)}")

    def _overlap(self, left: ast.expr, left_hint: Hint, right: ast.expr, right_hint: Hint) -> None:
        """Refuses an equality that can never hold."""
        sorts = sorts_of(left_hint), sorts_of(right_hint)
        if "anything" not in sorts[0] | sorts[1] and not sorts[0] & sorts[1]:
            shown = f"'{ast.unparse(left)}' is {worded(sorts[0])} and '{ast.unparse(right)}' is {worded(sorts[1])}"
            raise ExpressionError(f"{shown}: they are never equal")
        for constant, path, hint in ((left, right, right_hint), (right, left, left_hint)):
            values = literals(hint)
            if isinstance(constant, ast.Constant) and values and constant.value is not None and constant.value not in values:
                words = [str(value) for value in values]
                raise ExpressionError(
                    f"'{ast.unparse(path)}' is never {constant.value!r}{did_you_mean(str(constant.value), words)}"
                )

    def _of_sort(self, node: ast.expr, sort: str) -> Hint:
        hint = self.needed(node)
        found = sorts_of(hint) - {"anything", sort}
        if found:
            raise ExpressionError(f"'{ast.unparse(node)}' must be {sort}, and is {worded(found)}")
        return hint

    def _subscript(self, node: ast.Subscript) -> Hint:
        owner = self.needed(node.value)
        if isinstance(node.slice, ast.Slice):
            raise ExpressionError(f"'{ast.unparse(node)}': slices are not part of the rule language")
        found = []
        for member in members(owner):
            if container_of(member) is dict:
                self._of_sort(node.slice, "text")
                found.append(typing.get_args(member)[1])
            elif member is Any or container_of(member) in (list, tuple):
                self._of_sort(node.slice, "a number")
                found.append(elements_of(member))
            else:
                raise ExpressionError(f"'{ast.unparse(node.value)}' is {worded(sorts_of(member))} and has no items")
        return union(found)

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Hint:
        element: Any = union(self.check(element) for element in node.elts)
        return tuple[element, ...]

    _list = _set = _tuple

    def _generatorexp(self, node: ast.GeneratorExp | ast.ListComp) -> Hint:
        names, before = dict(self.names), self.present
        for generator in node.generators:
            iterated = self.needed(generator.iter)
            if not isinstance(generator.target, ast.Name) or any(container_of(member) is None for member in members(iterated)):
                raise ExpressionError(f"'{ast.unparse(node)}': write 'for NAME in COLLECTION'")
            if generator.target.id in names:
                raise ExpressionError(f"'{generator.target.id}' has a meaning already; choose another name")
            self.names[generator.target.id] = union(elements_of(member) for member in members(iterated))
            for condition in generator.ifs:
                self.check(condition)
                self.present |= ensured(condition, truth=True)
        element: Any = self.check(node.elt)
        self.names, self.present = names, before
        return list[element]

    _listcomp = _generatorexp


def ensured(node: ast.expr, truth: bool) -> frozenset[str]:
    """Paths that can't be None once the condition has turned out to be ``truth``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ensured(node.operand, not truth)
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) is truth:
            return frozenset().union(*(ensured(value, truth) for value in node.values))
        return frozenset()
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
        operator, with_none = node.ops[0], node.comparators[0].value is None
        says_present = isinstance(operator, ast.IsNot if with_none else (ast.Eq, ast.Is))
        says_absent = isinstance(operator, ast.Is if with_none else (ast.NotEq, ast.IsNot))
        if (says_present and truth) or (says_absent and not truth):
            return _paths(node.left)
    return _paths(node) if truth else frozenset()


def _paths(node: ast.expr) -> frozenset[str]:
    path = path_of(node)
    return frozenset({path}) if path else frozenset()


def path_of(node: ast.expr) -> str:
    """A name with attributes as it is written, such as ``mask.fill``; empty for any other expression."""
    steps: list[str] = []
    while isinstance(node, ast.Attribute):
        steps.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(steps)]) if isinstance(node, ast.Name) else ""
