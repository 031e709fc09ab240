"""Local functions: which node calls which, and how many nodes the calls expand to.

Calls may nest, and each level can call the one below it twice: a file of a kilobyte can ask for more nodes than any
memory holds.  The size is therefore counted before anything is put in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError
from wirelint.formats.onnx.order import subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from onnx import FunctionProto, NodeProto

__all__ = ["Key", "check_calls", "function_key", "node_key"]

Key = tuple[str, str, str]
"""Domain, name and overload."""

_MAX_NODES = 1_000_000
"""Nodes that the calls of a model may expand to; exporters make thousands."""


def function_key(function: FunctionProto) -> Key:
    """What calls of ``function`` name."""
    return "" if function.domain == "ai.onnx" else function.domain, function.name, function.overload


def node_key(node: NodeProto) -> Key:
    """What ``node`` calls, if a function has that key."""
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload


def check_calls(path: Path, nodes: Iterable[NodeProto], functions: Mapping[Key, FunctionProto]) -> None:
    """Refuse calls that never end or that expand to too many nodes.

    Args:
        path: the model file, for messages.
        nodes: the nodes of the main graph.
        functions: the functions of the model.

    Raises:
        ModelFileError: a function calls itself, directly or through others, or the calls expand beyond the limit.
    """
    if not functions:
        return
    sizes: dict[Key, int] = {}
    open_calls: dict[Key, None] = {}
    stack = list(_calls(nodes, functions))
    while stack:
        key = stack[-1]
        called = [] if key in sizes else list(_calls(functions[key].node, functions))
        waiting = [inner for inner in called if inner not in sizes]
        if not waiting:
            sizes.setdefault(key, len(functions[key].node) + sum(sizes[inner] for inner in called))
            open_calls.pop(key, None)
            stack.pop()
            continue
        open_calls[key] = None
        again = next((inner for inner in waiting if inner in open_calls), None)
        if again is not None:
            raise ModelFileError(path, "invalid-graph", f"function {again[1]!r} calls itself")
        stack += waiting
    if sum(sizes[key] for key in _calls(nodes, functions)) > _MAX_NODES:
        raise ModelFileError(path, "invalid-graph", f"function calls expand to more than {_MAX_NODES} nodes")


def _calls(nodes: Iterable[NodeProto], functions: Mapping[Key, FunctionProto]) -> Iterator[Key]:
    """The functions that ``nodes`` and the subgraphs in them call, once for each call."""
    stack = [nodes]
    while stack:
        for node in stack.pop():
            key = node_key(node)
            if key in functions:
                yield key
            stack += [graph.node for graph in subgraphs(node)]
