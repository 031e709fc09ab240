"""YAML read with the line of every key and value, so that an error can say where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from wirelint.errors import ConfigurationError
from wirelint.printable import printable
from wirelint.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Document", "Route", "read_yaml"]

Route = tuple[str | int, ...]
"""The way to a value: keys and list positions from the top."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_BYTES = 4 << 20
_MOST_NODES = 100_000
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Document:
    """What a configuration or rule file holds.

    Attributes:
        path: the file.
        data: mappings, lists and scalars.
        lines: line of each key or list item, by route.
    """

    path: Path
    data: Any
    lines: Mapping[Route, int]

    def line(self, *route: str | int) -> int:
        """The line of the value at the route, or of the nearest thing around it."""
        for end in range(len(route), -1, -1):
            if route[:end] in self.lines:
                return self.lines[route[:end]]
        return 1

    def error(self, cause: str, *route: str | int) -> ConfigurationError:
        """An error that names file, line and cause; the caller raises it."""
        return ConfigurationError(f"{self.path}:{self.line(*route)}: {cause}")

    def mapping(self, *route: str | int, known: Mapping[str, Any] | frozenset[str] | None = None) -> dict[str, Any]:
        """The mapping at the route.

        Raises:
            ConfigurationError: it is something else, or holds a key that is not among ``known``.
        """
        value = self.at(*route)
        if not isinstance(value, dict):
            raise self.error(f"{self._called(route)} must be a mapping of keys to values, not {_kind(value)}", *route)
        for key in value:
            if known is not None and key not in known:
                raise self.error(f"unknown key '{printable(key)}'{did_you_mean(key, known)}", *route, key)
        return value

    def text(self, *route: str | int) -> str:
        """The non-empty string at the route.

        Raises:
            ConfigurationError: it is something else.
        """
        value = self.at(*route)
        if not isinstance(value, str):
            hint = "; write it in quotes" if isinstance(value, (int, float, bool)) else ""
            raise self.error(f"{self._called(route)} must be text, not {_kind(value)}{hint}", *route)
        if not value.strip():
            raise self.error(f"{self._called(route)} must not be empty", *route)
        return value

    def texts(self, *route: str | int) -> tuple[str, ...]:
        """The list of strings at the route.

        Raises:
            ConfigurationError: it is something else.
        """
        value = self.at(*route)
        if not isinstance(value, list):
            raise self.error(f"{self._called(route)} must be a list of texts, not {_kind(value)}", *route)
        return tuple(self.text(*route, index) for index in range(len(value)))

    def items(self, *route: str | int) -> range:
        """The positions of the list at the route.

        Raises:
            ConfigurationError: it is something else.
        """
        value = self.at(*route)
        if not isinstance(value, list):
            raise self.error(f"{self._called(route)} must be a list, not {_kind(value)}", *route)
        return range(len(value))

    def word(self, *route: str | int, among: Mapping[str, Any] | frozenset[str]) -> str:
        """The string at the route, which must be one of a few.

        Raises:
            ConfigurationError: it is not.
        """
        value = self.text(*route)
        if value not in among:
            raise self.error(f"{self._called(route)} must not be '{printable(value)}'{did_you_mean(value, among)}", *route)
        return value

    def flag(self, *route: str | int) -> bool:
        """The true or false at the route.

        Raises:
            ConfigurationError: it is something else.
        """
        value = self.at(*route)
        if not isinstance(value, bool):
            raise self.error(f"{self._called(route)} must be true or false, not {_kind(value)}", *route)
        return value

    def at(self, *route: str | int) -> Any:
        value = self.data
        for step in route:
            value = value[step]
        return value

    @staticmethod
    def _called(route: Route) -> str:
        if not route:
            return "the file"
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in route).removeprefix(".")


def read_yaml(path: Path, text: str | None = None) -> Document:
    """Reads one YAML document with the safe loader.

    Args:
        path: the file, for messages too.
        text: its content, when it was read already.

    Raises:
        ConfigurationError: the file can't be read, is no YAML, or has a duplicate key, a key that is no text, or
            nesting or aliases beyond all measure.
    """
    if text is None:
        text = _content(path)
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        lines: dict[Route, int] = {}
        data = None if root is None else _Builder(path, loader, lines).build(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        cause = getattr(error, "problem", None) or getattr(error, "context", None) or "no valid YAML"
        raise ConfigurationError(f"{path}:{mark.line + 1 if mark else 1}: no valid YAML: {printable(str(cause))}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply") from None
    finally:
        loader.dispose()
    return Document(path, data, lines)


def _content(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which no file of this kind is")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror or error}") from None


class _Builder:
    """Turns YAML nodes into plain values and notes their lines."""

    def __init__(self, path: Path, loader: Any, lines: dict[Route, int]) -> None:
        self.path = path
        self.loader = loader
        self.lines = lines
        self.left = _MOST_NODES

    def build(self, node: yaml.Node, route: Route = ()) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(route, line)
        self.left -= 1
        if self.left < 0 or len(route) > _DEEPEST:
            raise ConfigurationError(f"{self.path}:{line}: too large or nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, route))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*route, index)) for index, item in enumerate(node.value)]
        if node.tag.endswith(":timestamp"):
            return node.value
        return self.loader.construct_object(node)

    def _pairs(self, node: yaml.MappingNode, route: Route) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise ConfigurationError(f"{self.path}:{line}: a key must be text")
            if key in seen:
                raise ConfigurationError(f"{self.path}:{line}: the key '{printable(key)}' stands here a second time")
            seen.add(key)
            inner = (*route, key)
            self.lines[inner] = line
            yield key, self.build(value_node, inner)


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "nothing" if value is None else names.get(type(value), type(value).__name__)
