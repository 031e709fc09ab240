"""Finds where padding first reaches a real position, and the shortest chain of operators that leads there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from wirelint.graph import Graph, Op, Value
from wirelint.shadow.interpreter import Run
from wirelint.shadow.positions import reaches_real
from wirelint.shadow.scenario import Scenario
from wirelint.shadow.value import present

__all__ = ["Entry", "Leaks", "find_leaks"]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An operator at which padded content gets to real positions although none of its operands has any there.

    Attributes:
        op: the operator.
        chain: from the padded input to the operator: the values on the way, the input first.
    """

    op: Op
    chain: tuple[Value, ...]


class Leaks:
    """Where padding gets through, for any output of one run."""

    def __init__(self, graph: Graph, scenario: Scenario, run: Run) -> None:
        self._scenario, self._run, self._graph = scenario, run, graph
        self._padded = scenario.layout.padded
        self._dirty: dict[Value, bool] = {}

    def dirty(self, value: Value) -> bool:
        """Padded content stands at real positions of a value."""
        known = self._dirty.get(value)
        if known is None:
            shadow = self._run.values.get(value)
            known = self._dirty[value] = shadow is not None and reaches_real(shadow, self._scenario)
        return known

    def _heard(self, value: Value) -> bool:
        shadow = self._run.values.get(value)
        return shadow is not None and bool(present(shadow.labels) & self._padded)

    def entries(self, output: Value) -> list[Op]:
        """The operators at which padding enters on the way to an output, nearest to the inputs first."""
        found: dict[Op, None] = {}
        frontier, seen = deque([output]), {output}
        while frontier:
            value = frontier.popleft()
            op = value.producer
            if op is None or not self.dirty(value):
                continue
            operands = list(_operands(op))
            spoilt = [operand for operand in operands if self.dirty(operand)]
            if not spoilt:
                found[op] = None
            for operand in spoilt:
                if operand not in seen:
                    seen.add(operand)
                    frontier.append(operand)
        return list(reversed(found))

    def chain(self, entry: Op) -> tuple[Value, ...]:
        """The shortest way from a padded input to an operator, through values that carry padded content."""
        back: dict[Value, Value | None] = {}
        frontier = deque(operand for operand in _operands(entry) if self._heard(operand))
        back.update(dict.fromkeys(frontier))
        while frontier:
            value = frontier.popleft()
            if value in self._scenario.bindings:
                chain = [value]
                step = back[value]
                while step is not None:
                    chain.append(step)
                    step = back[step]
                return tuple(chain)
            if value.producer is None:
                continue
            for operand in _operands(value.producer):
                if operand not in back and self._heard(operand):
                    back[operand] = value
                    frontier.append(operand)
        return ()


def _operands(op: Op) -> list[Value]:
    """Operands, and what subgraphs return."""
    found = [value for value in op.inputs if value is not None]
    for body in op.bodies.values():
        found += body.outputs
    return found


def find_leaks(graph: Graph, scenario: Scenario, run: Run, output: Value) -> list[Entry]:
    """The entries of padding on the way to one output, each with the chain that leads to it."""
    leaks = Leaks(graph, scenario, run)
    return [Entry(op, leaks.chain(op)) for op in leaks.entries(output)]
