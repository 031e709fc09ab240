"""The facts about each graph input: its role, why, and how its name fits."""

from __future__ import annotations

from collections import Counter, deque

from wirelint.analysis.names import best_name, conflicts, kind_of_name, plain_fit, role_of_name, usual_names
from wirelint.analysis.sites import place_of
from wirelint.facts import Evidence, InputFacts, Place
from wirelint.graph import Graph, Op, Value
from wirelint.trace.evidence import Use
from wirelint.trace.flow import bits
from wirelint.trace.roles import Role, Trace

__all__ = ["input_facts", "path_to"]

_LONGEST_PATH = 14
_SEEN = 4000


def path_to(value: Value, target: Op) -> tuple[str, ...]:
    """The operators on the shortest way from a value to an operator, as the file calls them."""
    back: dict[Op, Op | None] = {}
    frontier: deque[Op] = deque()
    for op, _ in value.consumers:
        if op not in back:
            back[op] = None
            frontier.append(op)
    while frontier and len(back) < _SEEN:
        op = frontier.popleft()
        if op is target:
            steps = []
            step: Op | None = op
            while step is not None:
                steps.append(step.origin.op_type or step.kind)
                step = back[step]
            steps.reverse()
            return tuple(steps) if len(steps) <= _LONGEST_PATH else (*steps[:6], "...", *steps[-6:])
        for made in op.outputs:
            for consumer, _ in made.consumers:
                if consumer not in back:
                    back[consumer] = op
                    frontier.append(consumer)
    return ()


def _evidence(value: Value, role: Role) -> tuple[Evidence, ...]:
    made = []
    for reason in role.reasons:
        place = Place() if reason.op is None else place_of(reason.op)
        path = () if reason.op is None else path_to(value, reason.op)
        made.append(Evidence(reason.text, place, reason.role, reason.against, path))
    return tuple(made)


def _used(graph: Graph, trace: Trace) -> int:
    """Inputs on whose values some output may depend."""
    used = 0
    for value in graph.outputs:
        used |= trace.flow[value].reach
    for op in graph.walk():
        if op.kind == "Assign":
            used |= trace.flow[op.inputs[0]].reach if op.inputs else 0
    return used


def _read(graph: Graph) -> int:
    read = 0
    for at, value in enumerate(graph.inputs):
        if value.consumers:
            read |= 1 << at
    return read


def input_facts(graph: Graph, trace: Trace) -> list[InputFacts]:
    """The facts about every graph input, in the file's order."""
    used, read = set(bits(_used(graph, trace))), set(bits(_read(graph)))
    sharing = Counter(role.name for role in trace.roles)
    made = []
    for at, (value, role) in enumerate(zip(graph.inputs, trace.roles, strict=True)):
        evidence = _evidence(value, role)
        name = best_name(value)
        kind, says = kind_of_name(name), role_of_name(name)
        made.append(
            InputFacts(
                index=at,
                name=name,
                names=value.names,
                layer=value.origin.name,
                dtype=str(value.dtype),
                shape=value.shape,
                role=role.name,
                confidence=role.confidence,
                evidence=evidence,
                basis=role.basis,
                name_says=says,
                name_kind=kind,
                name_fits=plain_fit(name, role.name) if kind == "plain" else True,
                # Of two texts none is the one that callers call `input_ids`.
                usual_name=usual_names(role.name) if sharing[role.name] == 1 else "",
                used=at in used,
                read=at in read,
                has_default=value.default is not None,
                sites=len(role.sites),
                table_rows=max((use.rows for use in trace.observations.get(at, ()) if use.use is Use.INDEX), default=None),
                name_conflicts=conflicts(name, role.name),
                path=evidence[0].path if evidence else (),
                line=value.origin.line,
            )
        )
    return made
