"""Finds the attention sites of a graph and the tables that are read at integer indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirelint.graph import Graph, Op, Value
from wirelint.ops import Family, family
from wirelint.trace.flow import Flow, is_table

__all__ = ["Lookup", "Site", "find_lookups", "find_sites"]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One place where queries weigh keys.

    Attributes:
        op: the softmax, the last operator of a softmax that is spelled out, or the fused operator.
        scores: what goes into the softmax; the query operand for a fused operator.
        query, key, value: as far as they are found.
        terms: operands that are added to the scores, select among them or scale them, or a fused operator's mask operands.
        fused: the operator does the whole of attention.
    """

    op: Op
    scores: Value
    query: Value | None
    key: Value | None
    value: Value | None
    terms: tuple[Value, ...]
    fused: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A table that is read at integer indices.

    Attributes:
        op: the lookup, or the product of a table with rows that are one at an index and zero elsewhere.
        table: the table, or what unpacks it from a compressed form.
        index: the indices.
        rows, width: shape of the table, whose rows may stand in columns.
    """

    op: Op
    table: Value
    index: Value
    rows: int
    width: int


# What may stand between the product of queries and keys and the softmax.
_ON_SCORES = {"Add", "Sub", "Mul", "Div", "Where", "Max", "Min", "Clip", "Tanh", "Sum", "Softcap", "Neg"}
_AFTER_WEIGHTS = {"Mul", "Div", "Where", "Clip"}
_PRODUCTS = {"MatMul", "Einsum", "MatMulInteger"}
_FURTHEST = 40


def _through(value: Value | None) -> Value | None:
    """The value before movement, conversion and quantisation; lookups and slices of data included."""
    for _ in range(_FURTHEST):
        op = None if value is None else value.producer
        if op is None or not (family(op.kind) in (Family.MOVE, Family.QUANTISE) and op.kind != "Concat"):
            return value
        value = op.inputs[0]
    return value


def _factors(op: Op, flow: Flow) -> int:
    """How many factors of a contraction are data: 2 for queries and keys, 1 for learned queries, 0 for anything else."""
    if op.kind not in _PRODUCTS or len(op.inputs) < 2:
        return 0
    factors = [flow[value] for value in op.inputs[:2]]
    if not any(factor.mixed or factor.indexed for factor in factors):
        return 0
    return sum(1 for factor in factors if factor.reach and (factor.mixed or factor.indexed or factor.bare))


def _product(scores: Value, flow: Flow) -> tuple[Op | None, list[Value]]:
    """Walks back from the softmax's input to the product of queries and keys; collects what is added on the way.

    The product is the nearest contraction of data: of queries and keys, or of keys and learned queries.
    """
    terms: list[Value] = []
    frontier: list[tuple[Value, int]] = [(scores, 0)]
    seen: set[Value] = set()
    while frontier:
        value, depth = frontier.pop(0)
        start = _through(value)
        if start is None or start in seen or depth > _FURTHEST:
            continue
        seen.add(start)
        op = start.producer
        if op is None:
            continue
        if _factors(op, flow):
            return op, terms
        if op.kind in _ON_SCORES or op.kind == "Concat":
            operands = [entry for entry in op.inputs if entry is not None]
            deep = [entry for entry in operands if flow[entry].mixed]
            terms += [entry for entry in operands if not flow[entry].mixed]
            if len(deep) > 1:
                # The scores are the deeper of two: what comes straight from a product of queries and keys.
                deep.sort(key=lambda entry: -_leads_to_product(entry, flow))
                terms += deep[1:]
            frontier += [(entry, depth + 1) for entry in deep[:1]]
    return None, terms


def _leads_to_product(value: Value, flow: Flow) -> int:
    """The most data factors of the nearest contractions behind a value, if only arithmetic stands between."""
    most, frontier, seen = 0, [value], set[Value]()
    while frontier and len(seen) < _FURTHEST:
        start = _through(frontier.pop(0))
        op = None if start is None else start.producer
        if op is None or start is None or start in seen:
            continue
        seen.add(start)
        if op.kind in _PRODUCTS:
            most = max(most, _factors(op, flow))
        elif op.kind in _ON_SCORES:
            frontier += [entry for entry in op.inputs if entry is not None and flow[entry].mixed]
    return most


def _weighted(weights: Value, flow: Flow) -> Value | None:
    """The values that the weights are multiplied with, or None when the weights weigh nothing."""
    frontier: list[tuple[Value, int]] = [(weights, 0)]
    seen: set[Value] = set()
    while frontier:
        value, depth = frontier.pop(0)
        if value in seen or depth > 12:
            continue
        seen.add(value)
        for op, slot in value.consumers:
            if op.kind in _PRODUCTS and len(op.inputs) >= 2 and slot < 2:
                other = op.inputs[1 - slot]
                if flow[other].reach:
                    return other
            elif (family(op.kind) in (Family.MOVE, Family.QUANTISE) and slot == 0) or op.kind in _AFTER_WEIGHTS:
                frontier += [(made, depth + 1) for made in op.outputs]
    return None


def _spelled_out(op: Op) -> Value | None:
    """The scores of a softmax that is written as exp(x) / sum(exp(x)), given the division."""
    if op.kind != "Div" or op.inputs[0] is None or op.inputs[1] is None:
        return None
    above, below = op.inputs[0].producer, op.inputs[1].producer
    while below is not None and below.kind in ("Identity", "Cast", "Max", "Clip", "Add") and below.inputs[0] is not None:
        below = below.inputs[0].producer
    if (
        above is None
        or below is None
        or above.kind != "Exp"
        or below.kind != "ReduceSum"
        or below.inputs[0] is not op.inputs[0]
    ):
        return None
    return above.inputs[0]


def _without_shift(scores: Value) -> Value:
    """The scores before their own maximum was subtracted."""
    start = scores.producer
    if start is not None and start.kind == "Sub" and start.inputs[1] is not None and start.inputs[0] is not None:
        shift = start.inputs[1].producer
        if shift is not None and shift.kind == "ReduceMax" and shift.inputs[0] is start.inputs[0]:
            return start.inputs[0]
    return scores


def _site(op: Op, flow: Flow) -> Site | None:
    if op.kind in ("Attention", "PackedAttention"):
        operands = [*op.inputs, *[None] * (9 - len(op.inputs))]
        query, key, value, mask, _, _, ends, starts, bias = operands[:9]
        if query is None:
            return None
        return Site(
            op, query, query, key, value, tuple(term for term in (mask, ends, starts, bias) if term is not None), fused=True
        )
    scores = op.inputs[0] if op.kind == "Softmax" else _spelled_out(op)
    if scores is None:
        return None
    scores = _without_shift(scores)
    product, terms = _product(scores, flow)
    if product is None:
        return None
    value = _weighted(op.outputs[0], flow)
    if value is None:
        return None
    query, key = product.inputs[0], product.inputs[1]
    if not flow[key].reach:
        query, key = key, query  # learned queries, written as a projection of the keys
    return Site(op, scores, query, key, value, tuple(terms), fused=False)


def find_sites(graph: Graph, flow: Flow) -> list[Site]:
    """Every attention site, subgraphs included, in the graph's order."""
    return [site for op in graph.walk() if (site := _site(op, flow)) is not None]


def find_lookups(graph: Graph, flow: Flow) -> list[Lookup]:
    """Every lookup in a table that depends on no input, in the graph's order."""
    return list(_lookups(graph, flow))


def _lookups(graph: Graph, flow: Flow) -> Iterator[Lookup]:
    for op in graph.walk():
        if op.kind in ("Gather", "EmbeddingBag"):
            table, index = op.operand(0), op.operand(1)
        elif op.kind == "MatMul" and not op.attrs.get("transpose_a"):
            table, index = op.operand(1), _picked(op.operand(0))
        else:
            continue
        if table is None or index is None or flow[table].reach or flow[table].shape or not is_table(table):
            continue
        shape = _table_shape(table) if op.attrs.get("axis", 0) == 0 else None
        if shape is not None:
            rows, width = reversed(shape) if op.attrs.get("transpose_b") else shape
            yield Lookup(op, table, index, rows, width)


def _picked(rows: Value | None) -> Value | None:
    """The indices of a one-hot encoding along its last axis."""
    start = _through(rows)
    op = None if start is None else start.producer
    if op is None or start is None or op.kind != "OneHot":
        return None
    last = -1 if start.shape is None else len(start.shape) - 1
    return op.inputs[0] if op.attrs.get("axis", -1) in (-1, last) else None


def _table_shape(table: Value) -> tuple[int, int] | None:
    for _ in range(4):
        shape = table.constant.shape if table.constant is not None else table.shape
        if shape is not None and len(shape) == 2 and all(isinstance(dim, int) for dim in shape):
            return int(shape[0] or 0), int(shape[1] or 0)
        if table.producer is None or not table.producer.inputs or table.producer.inputs[0] is None:
            return None
        table = table.producer.inputs[0]
    return None
