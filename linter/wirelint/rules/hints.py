"""Types as annotations write them: what alternatives they have, what they hold, and what they can be compared with."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from typing import TYPE_CHECKING, Any, Literal, Union

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Hint",
    "attributes",
    "container_of",
    "elements_of",
    "is_fact",
    "literals",
    "members",
    "methods",
    "optional",
    "present_members",
    "sorts_of",
    "union",
    "worded",
]

Hint = Any
"""A type as in an annotation: ``str``, ``int | None``, ``list[InputFacts]``."""

_NUMBERS = (bool, int, float)
_CONTAINERS = (list, tuple, set, frozenset, dict)


@functools.cache
def members(hint: Hint) -> tuple[Hint, ...]:
    """The alternatives of a union; a type alone is its only member."""
    if _origin(hint) in (Union, types.UnionType):
        return tuple(member for part in typing.get_args(hint) for member in members(part))
    return (hint,)


def _origin(hint: Hint) -> Any:
    """``tuple`` for ``tuple[int, ...]``, ``Literal`` for ``Literal["a"]``, None for a plain class."""
    return typing.get_origin(hint)


def is_fact(hint: Hint) -> bool:
    return dataclasses.is_dataclass(hint)


@functools.cache
def attributes(owner: Any) -> dict[str, Hint]:
    """Fields and properties of a dataclass, with their types."""
    hints = typing.get_type_hints(owner)
    found = {item.name: hints[item.name] for item in dataclasses.fields(owner)}
    for name, value in inspect.getmembers(owner, lambda value: isinstance(value, property)):
        if not name.startswith("_"):
            found[name] = typing.get_type_hints(value.fget).get("return", Any)
    return found


@functools.cache
def methods(owner: Any) -> dict[str, Hint]:
    """Public methods of a dataclass that take no arguments, with what they return."""
    return {
        name: typing.get_type_hints(value).get("return", Any)
        for name, value in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(value).parameters) == 1
    }


@functools.cache
def optional(hint: Hint) -> bool:
    return any(member in (None, type(None)) for member in members(hint))


@functools.cache
def present_members(hint: Hint) -> tuple[Hint, ...]:
    return tuple(member for member in members(hint) if member not in (None, type(None)))


def union(hints: Iterable[Hint]) -> Hint:
    parts = list(dict.fromkeys(part for hint in hints for part in members(hint)))
    if not parts:
        return Any
    return functools.reduce(lambda left, right: Union[left, right], parts)  # noqa: UP007 -- `|` can't join None and None


def container_of(hint: Hint) -> Any:
    """``tuple`` for ``tuple[int, ...]`` and so on; None for what holds nothing."""
    bare = _origin(hint) or hint
    return bare if bare in _CONTAINERS else None


def elements_of(hint: Hint) -> Hint:
    """The type of what a container yields: the keys of a dict."""
    arguments = [part for part in typing.get_args(hint) if part is not Ellipsis]
    if not arguments:
        return Any
    return arguments[0] if container_of(hint) is dict else union(arguments)


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
    if container_of(hint) is not None:
        return "a collection"
    return str(getattr(hint, "__name__", hint))


@functools.cache
def sorts_of(hint: Hint) -> frozenset[str]:
    return frozenset(_sort(member) for member in members(hint))


def worded(sorts: frozenset[str]) -> str:
    return " or ".join(sorted(sorts))


def literals(hint: Hint) -> tuple[Any, ...]:
    """The values of a type whose every alternative is a literal or None."""
    present = present_members(hint)
    if not present or any(_origin(member) is not Literal for member in present):
        return ()
    return tuple(value for member in present for value in typing.get_args(member))
