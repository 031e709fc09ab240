"""The order in which the nodes of a graph can run."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from onnx import GraphProto, NodeProto

__all__ = ["captured_names", "ordered_nodes", "subgraphs"]


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of ``node``."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def captured_names(node: NodeProto) -> list[str]:
    """Names that the subgraphs of ``node`` read from the graphs around them, each once, in order."""
    captured: dict[str, None] = {}
    stack: list[tuple[GraphProto, tuple[set[str], ...]]] = [(graph, ()) for graph in subgraphs(node)]
    while stack:
        graph, outer = stack.pop()
        own = {value.name for value in graph.input}
        own.update(tensor.name for tensor in graph.initializer)
        own.update(sparse.values.name for sparse in graph.sparse_initializer)
        own.update(name for inner in graph.node for name in inner.output)
        scopes = (*outer, own)
        reads = [name for inner in graph.node for name in inner.input]
        reads += [value.name for value in graph.output]
        captured.update(dict.fromkeys(name for name in reads if name and not any(name in scope for scope in scopes)))
        stack += [(nested, scopes) for inner in graph.node for nested in subgraphs(inner)]
    return list(captured)


def ordered_nodes(
    nodes: Sequence[NodeProto], known: Callable[[str], bool], path: Path, graph_name: str
) -> Sequence[tuple[int, NodeProto]]:
    """The nodes with their position in the file, each after those that it reads from.

    The file's order is kept when it is right, which is the rule; otherwise the nodes are sorted, as runtimes do.

    Args:
        nodes: as they stand in the file.
        known: tells whether a name is defined before the nodes run: inputs, initializers, values of outer graphs.
        path: for messages.
        graph_name: for messages.

    Raises:
        ModelFileError: rule ``invalid-graph`` when a name is read that nothing defines, ``graph-cycle`` when nodes
            wait for each other.
    """
    defined: set[str] = set()
    for node in nodes:
        for name in _reads(node):
            if name not in defined and not known(name):
                return _sorted_nodes(nodes, known, path, graph_name)
        defined.update(node.output)
    return list(enumerate(nodes))


def _reads(node: NodeProto) -> Sequence[str]:
    """The names that ``node`` or its subgraphs read; left-out operands are none."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g") or attribute.graphs:
            return names + captured_names(node)
    return names


def _sorted_nodes(
    nodes: Sequence[NodeProto], known: Callable[[str], bool], path: Path, graph_name: str
) -> Sequence[tuple[int, NodeProto]]:
    reads = [_reads(node) for node in nodes]
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    waiting = [0] * len(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for index, names in enumerate(reads):
        for name in names:
            producer = producers.get(name)
            if producer is not None:
                readers[producer].append(index)
                waiting[index] += 1
            elif not known(name):
                reason = f"node {_label(nodes[index])} reads {name!r}, which nothing in graph {graph_name!r} defines"
                raise ModelFileError(path, "invalid-graph", reason)
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[tuple[int, NodeProto]] = []
    while ready:
        index = heapq.heappop(ready)
        order.append((index, nodes[index]))
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        raise ModelFileError(path, "graph-cycle", _cycle(nodes, reads, producers, waiting))
    return order


def _cycle(
    nodes: Sequence[NodeProto], reads: Sequence[Sequence[str]], producers: dict[str, int], waiting: Sequence[int]
) -> str:
    """One line that names the first nodes of a cycle among the nodes that still wait."""
    index = next(index for index, count in enumerate(waiting) if count)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while index not in seen:
        seen[index] = len(walk)
        walk.append(index)
        index = next(producers[name] for name in reads[index] if name in producers and waiting[producers[name]])
    cycle = walk[seen[index] :][::-1]
    shown = " > ".join(_label(nodes[position]) for position in cycle[:3])
    more = f" (and {len(cycle) - 3} more)" if len(cycle) > 3 else ""
    return f"nodes wait for each other in a cycle: {shown}{more}; no runtime can load this graph"


def _label(node: NodeProto) -> str:
    """The node in messages; ``repr`` keeps whatever stands in the names on one line."""
    return repr(node.name) if node.name else f"{node.op_type!r} of {next(iter(node.output), '')!r}"
