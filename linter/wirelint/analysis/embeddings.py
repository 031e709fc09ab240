"""What indexes each table, read off the trace and the shadow run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirelint.analysis.sites import place_of
from wirelint.errors import ModelFileError
from wirelint.facts import EmbeddingFacts
from wirelint.graph import Graph, Op
from wirelint.shadow.attempts import Execution
from wirelint.shadow.labels import LENGTH
from wirelint.shadow.value import Shadow, present
from wirelint.trace.flow import bits
from wirelint.trace.roles import Trace
from wirelint.trace.sites import Lookup

__all__ = ["embedding_facts"]

_KINDS = {"ids": "token", "decoder_ids": "token", "segment": "segment", "position": "position", "bbox": "bbox"}
_SEGMENTS = 16
"""More rows than this are no segment table."""


def _index_shadow(lookup: Lookup, execution: Execution) -> Shadow | None:
    shadow = execution.right[1].values.get(lookup.index)
    constant = lookup.index.constant
    if shadow is None and constant is not None:
        held = constant.load(1 << 20)
        return None if held is None else Shadow.known(held, constant.dtype)
    return shadow


def _counts_up(numbers: list[int], length: int) -> bool:
    """Positions: consecutive numbers along the last axis, the same for every row."""
    if length < 2 or len(numbers) % length:
        return False
    first = numbers[:length]
    return all(number == first[0] + at for at, number in enumerate(first)) and numbers == first * (len(numbers) // length)


def _distinct(lookup: Lookup) -> bool:
    """The rows of a small table differ, as far as they can be read; a table of equal rows has nothing to tell apart."""
    table = lookup.table
    if table.constant is None:
        return True
    try:
        held = table.constant.load(1 << 16)
    except ModelFileError:
        return True
    if held is None or held.ndim != 2:
        return True
    rows = np.asarray(held if held.shape[0] == lookup.rows else held.T, dtype=np.float64)
    return bool((rows != rows[:1]).any())


def _first(shadow: Shadow) -> int:
    """The index at the first position of the right-padded run."""
    return max(0, int(shadow.full_value().reshape(-1)[0]))


def _other_sequence(lookup: Lookup, shadow: Shadow, execution: Execution) -> bool:
    """As many positions are read whatever the length of the tokens, and not as many as there are tokens."""
    first, second = execution.right[0].main, execution.left[0].main
    if first is None or second is None:
        return False
    read = shadow.shape[-1] if shadow.shape else 0
    if first.length == second.length:
        return lookup.index.constant is not None and read != first.length
    again = execution.left[1].values.get(lookup.index)
    return read != first.length and (again is None or again.shape[-1:] == shadow.shape[-1:])


def _sliced_tables(graph: Graph, trace: Trace, execution: Execution) -> list[EmbeddingFacts]:
    """Position tables that are cut to the length of the sequence and added to its embeddings, without a lookup."""
    made = []
    for op in graph.ops:
        table = op.inputs[0] if op.kind in ("Slice", "StridedSlice") else None
        if (
            table is None
            or table.constant is None
            or table.constant.dtype.is_integer
            or len(table.constant.shape) not in (2, 3)
        ):
            continue
        rows, width = table.constant.shape[-2:]
        if _follows_length(op, width, execution) and any(_joins_tokens(use, slot, trace) for use, slot in _uses(op)):
            made.append(EmbeddingFacts(place_of(op), table.name, rows, width, "position", "range"))
    return made


def _follows_length(op: Op, width: int, execution: Execution) -> bool:
    """One row of a table for each token, in both runs, which have different lengths."""
    lengths = set()
    for scenario, run in execution.sides.values():
        shadow = run.values.get(op.outputs[0])
        if shadow is None or scenario.main is None or shadow.shape[-2:] != (scenario.main.length, width):
            return False
        lengths.add(scenario.main.length)
    return len(lengths) > 1


def _uses(op: Op) -> Iterator[tuple[Op, int]]:
    """Who takes the result, behind operators that change its shape or type alone."""
    values, seen = [op.outputs[0]], 0
    while values and seen < _SEGMENTS:
        seen += 1
        for use, slot in values.pop().consumers:
            if slot == 0 and use.kind in ("Cast", "Expand", "Identity", "Unsqueeze"):
                values += use.outputs
            yield use, slot


def _joins_tokens(use: Op, slot: int, trace: Trace) -> bool:
    """It is added to rows that token ids have looked up."""
    other = use.inputs[1 - slot] if use.kind == "Add" and slot < 2 else None
    tokens = {"ids", "decoder_ids"}
    return other is not None and bool(tokens & {trace.roles[at].name for at in bits(trace.flow[other].indexed)})


def embedding_facts(graph: Graph, trace: Trace, execution: Execution) -> list[EmbeddingFacts]:
    """The facts about every lookup, in the graph's order, then about tables that are sliced."""
    made = []
    token_widths = {
        lookup.width
        for lookup in trace.lookups
        if any(trace.roles[at].name in ("ids", "decoder_ids") for at in bits(trace.flow[lookup.index].linear))
    }
    for lookup in trace.lookups:
        state = trace.flow[lookup.index]
        fact = EmbeddingFacts(place_of(lookup.op), lookup.table.name, lookup.rows, lookup.width)
        direct = bits(state.linear)
        summed = lookup.width in token_widths
        shadow = _index_shadow(lookup, execution)
        if len(direct) == 1:
            fact.index_from, fact.index_input = "input", direct[0]
            fact.kind = _KINDS.get(trace.roles[direct[0]].name, "other")
        elif state.derived:
            roles = {trace.roles[at].name for at in bits(state.derived)}
            fact.index_from = (
                "mask" if "mask" in roles and "ids" not in roles else "ids" if roles & {"ids", "decoder_ids"} else "unknown"
            )
            fact.kind = "position" if summed else "other"
        elif not state.reach and shadow is not None:
            numbers = shadow.integers()
            if numbers and summed and not present(shadow.labels) & ~LENGTH:
                if len(set(numbers)) == 1 and (len(numbers) > 1 or lookup.rows <= _SEGMENTS):
                    fact.index_from, fact.constant_index = "constant", numbers[0]
                    fact.kind = "segment" if lookup.rows <= _SEGMENTS else "other"
                    fact.distinct_rows = lookup.rows > 1 and _distinct(lookup)
                elif _counts_up(numbers, shadow.shape[-1] if shadow.shape else 0):
                    fact.index_from, fact.kind = "range", "position"
                    fact.other_sequence = _other_sequence(lookup, shadow, execution)
        if fact.kind == "position" and shadow is not None and shadow.is_exact and shadow.value is not None and shadow.size:
            fact.first_index = _first(shadow)
        made.append(fact)
    return [*made, *_sliced_tables(graph, trace, execution)]
