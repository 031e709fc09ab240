"""The way of each input through the graph to what decides its role, folded so that a person can take it in.

Layers repeat: the mask of a deep encoder reaches as many softmaxes as there are layers, by ways that look alike.  Two
operators are the same step when they are of one type, do the same and come by the same steps; each step is drawn once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from wirelint.analysis.names import best_name
from wirelint.analysis.sites import place_of
from wirelint.facts import Route, RouteNode, SiteFacts
from wirelint.graph import Graph, Op, Value
from wirelint.trace.evidence import Observation, Use
from wirelint.trace.roles import Role, Trace
from wirelint.trace.sites import Site

__all__ = ["routes"]

_MASKS = ("mask", "decoder_mask")
_NAMED = 3
_MOST_STEPS = 60
_MOST_OPERATORS = 20_000
_LEAST_OPERATORS = 32
_ALL_OPERATORS = 1 << 16
"""What all routes together may walk over: a graph may have thousands of inputs, each of which reaches everything."""
_SCORE_STEPS = 12
_STATES = {
    "absent": "hears padding: nothing hides it",
    "constant": "hears padding: the mask is a constant",
    "inverted": "hides what is real and hears what is padding",
    "noop": "the mask has no effect here",
    "weak": "hears padding a little: the mask subtracts too little",
    "query-axis": "the mask acts on queries, not on keys",
    "not-finite": "turns to NaN",
}
"""What a site does when its mask is not effective, in words."""
_KINDS = {
    Use.SCORE: "attention",
    Use.LENGTH: "attention",
    Use.CACHE: "attention",
    Use.CROSS: "attention",
    Use.INDEX: "embedding",
    Use.WEIGH: "pooling",
}
_ENDS = frozenset(Use) - {Use.BOUND, Use.COMPARE, Use.COUNT, Use.PAIR}
"""Uses at which a route ends.  Comparing, counting and reading a bound are steps on the way to another use."""


@dataclass(frozen=True, slots=True)
class _End:
    """What an operator at the end of a route is."""

    kind: str
    note: str
    broken: bool = False


def routes(graph: Graph, trace: Trace, sites: Sequence[SiteFacts]) -> list[Route]:
    """The route of every graph input, in order.

    Args:
        graph: main graph.
        trace: its trace.
        sites: the facts about its attention sites, in the trace's order.
    """
    state = {site.op: fact for site, fact in zip(trace.sites, sites, strict=True)}
    before = _Before()
    share = min(_MOST_OPERATORS, max(_LEAST_OPERATORS, _ALL_OPERATORS // max(len(graph.inputs), 1)))
    return [_route(at, value, trace, state, before, share) for at, value in enumerate(graph.inputs)]


class _Before(dict[Op, tuple[Op, ...]]):
    """The operators that an operator reads, each once: looked up once for all routes, for an operator may read thousands."""

    def __missing__(self, op: Op) -> tuple[Op, ...]:
        found = tuple(dict.fromkeys(value.producer for value in op.inputs if value is not None and value.producer is not None))
        self[op] = found
        return found

    def among(self, op: Op, chosen: Container[Op]) -> list[Op]:
        """Those of them that are chosen."""
        return [earlier for earlier in self[op] if earlier in chosen]


def _route(at: int, value: Value, trace: Trace, sites: dict[Op, SiteFacts], before: _Before, most: int) -> Route:
    role = trace.roles[at]
    ends = _ends(trace.observations.get(at, ()), role, sites)
    steps = _between(value, ends, _stays(at, trace), before, most)
    first = RouteNode(
        "input",
        best_name(value) or "(unnamed)",
        note=role.name if steps else f"{role.name}; nothing reads it",
        broken=not steps,
    )
    if role.name in _MASKS and steps and not any(op in ends for op in steps):
        first = RouteNode("input", first.label, note=f"{role.name}; it reaches no attention", broken=True)
    folded = _folded(value, steps, ends, before)
    nodes, edges = (
        [first, *(node for node, _ in folded)],
        [(earlier, after + 1) for after, (_, sources) in enumerate(folded) for earlier in sources],
    )
    if len(nodes) > _MOST_STEPS:
        nodes, edges = _shortest(nodes, edges)
    left_out = len(folded) + 1 - len(nodes)
    if role.name in _MASKS:
        nodes += _unreached(sites, set(steps))
    return Route(tuple(nodes), tuple(edges), left_out)


def _stays(at: int, trace: Trace) -> Callable[[Value], bool]:
    """Whether a value still speaks about the input's own positions, or is a row that it looked up."""
    bit = 1 << at
    return lambda value: bool((trace.flow[value].derived | trace.flow[value].bare) & bit)


def _ends(uses: Sequence[Observation], role: Role, sites: dict[Op, SiteFacts]) -> dict[Op, _End]:
    found: dict[Op, _End] = {}
    on_the_way = {op for use in uses if use.use is Use.SCORE and use.site is not None for op in _to_scores(use.site)}
    for use in uses:
        if use.use not in _ENDS or use.op in found or (use.use is Use.WEIGH and use.op in on_the_way):
            continue
        if use.use is Use.PROJECT and role.name == "position":
            continue  # times frequencies: what is made of it are angles, and they come later
        kind, note = _KINDS.get(use.use, "end"), use.use.value
        broken = False
        if use.use is Use.INDEX:
            note = f"indexes a table of {use.rows} rows"
        fact = sites.get(use.op)
        if fact is not None and use.use is Use.SCORE and role.name in _MASKS:
            broken = fact.needs_mask and fact.mask in _STATES
            note = _STATES[fact.mask] if broken else "hides padded keys" if fact.mask == "effective" else note
        found[use.op] = _End(kind, note, broken)
    return found


def _to_scores(site: Site) -> list[Op]:
    """The last operators before a softmax: what selects among scores there has not reached its end yet."""
    found, frontier = dict[Op, None](), [site.scores]
    while frontier and len(found) < _SCORE_STEPS:
        op = frontier.pop(0).producer
        if op is not None and op not in found:
            found[op] = None
            frontier += [operand for operand in op.inputs if operand is not None]
    return list(found)


def _between(value: Value, ends: dict[Op, _End], stays: Callable[[Value], bool], before: _Before, most: int) -> list[Op]:
    """The operators on the ways from an input to the ends, each after those before it; all that read it when it has none."""
    order: dict[Op, None] = {}
    frontier = deque(op for op, _ in value.consumers)
    while frontier and len(order) < most:
        op = frontier.popleft()
        if op in order:
            continue
        order[op] = None
        if op not in ends:
            frontier += [consumer for made in op.outputs if stays(made) for consumer, _ in made.consumers]
    reached = [op for op in order if op in ends]
    if not reached:
        return _sorted(order, before)
    wanted: dict[Op, None] = {}
    back = deque(reached)
    while back:
        op = back.popleft()
        if op not in wanted:
            wanted[op] = None
            back += before.among(op, order)
    return _sorted(wanted, before)


def _sorted(chosen: dict[Op, None], before: _Before) -> list[Op]:
    """Operators, each after those among them that it reads."""
    sources = {op: before.among(op, chosen) for op in chosen}
    waiting = {op: len(earlier) for op, earlier in sources.items()}
    after: dict[Op, list[Op]] = {op: [] for op in chosen}
    for op, earlier in sources.items():
        for source in earlier:
            after[source].append(op)
    ready, found = deque(op for op, number in waiting.items() if not number), list[Op]()
    while ready:
        op = ready.popleft()
        found.append(op)
        for later in after[op]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return found


def _folded(value: Value, steps: Sequence[Op], ends: dict[Op, _End], before: _Before) -> list[tuple[RouteNode, list[int]]]:
    """Steps with the indices of those before them: 0 for the input, 1 for the first step, and so on."""
    groups: dict[tuple[object, ...], int] = {}
    members: list[list[Op]] = []
    sources: list[list[int]] = []
    group_of: dict[Op, int] = {}
    chosen = dict.fromkeys(steps)
    readers = {op for op, _ in value.consumers}
    for op in steps:
        origins = {group_of[earlier] + 1 for earlier in before.among(op, chosen)}
        if op in readers:
            origins.add(0)
        ordered = tuple(sorted(origins))
        key = (op.origin.op_type or op.kind, ends.get(op), ordered)
        at = groups.setdefault(key, len(members))
        if at == len(members):
            members.append([])
            sources.append(list(ordered))
        members[at].append(op)
        group_of[op] = at
    return [(_node(own, ends.get(own[0])), origins) for own, origins in zip(members, sources, strict=True)]


def _node(ops: Sequence[Op], end: _End | None) -> RouteNode:
    names = tuple(place_of(op).name for op in ops[:_NAMED])
    label = ops[0].origin.op_type or ops[0].kind
    if end is None:
        return RouteNode("operator", label, names, len(ops))
    return RouteNode(end.kind, label, names, len(ops), end.note, end.broken)


def _shortest(nodes: list[RouteNode], edges: list[tuple[int, int]]) -> tuple[list[RouteNode], list[tuple[int, int]]]:
    """Of a route with too many steps, the shortest way to each end, as many ends as fit."""
    after: dict[int, list[int]] = {}
    for before, later in edges:
        after.setdefault(before, []).append(later)
    back: dict[int, int] = {0: -1}
    frontier = deque([0])
    while frontier:
        at = frontier.popleft()
        for later in after.get(at, ()):
            if later not in back:
                back[later] = at
                frontier.append(later)
    ends = [at for at in back if nodes[at].kind not in ("input", "operator")] or list(back)[-1:]
    ends.sort(key=lambda at: not nodes[at].broken)
    kept: dict[int, None] = {0: None}
    for end in ends:
        way, step = [], end
        while step not in kept:
            way.append(step)
            step = back[step]
        if len(kept) + len(way) > _MOST_STEPS and len(kept) > 1:
            continue
        kept.update(dict.fromkeys(way))
    order = sorted(kept)[: _MOST_STEPS * 2]
    place = {at: index for index, at in enumerate(order)}
    return [nodes[at] for at in order], [(place[back[at]], place[at]) for at in order if at and back[at] in place]


def _unreached(sites: dict[Op, SiteFacts], steps: set[Op]) -> list[RouteNode]:
    """The sites that hear padding and that the mask does not reach, as one node for each thing that is wrong with them."""
    groups: dict[tuple[str, str], list[Op]] = {}
    for op, fact in sites.items():
        if op not in steps and fact.needs_mask and "heard" in (fact.heard_right, fact.heard_left) and fact.mask in _STATES:
            groups.setdefault((op.origin.op_type or op.kind, fact.mask), []).append(op)
    return [
        RouteNode(
            "missing",
            label,
            tuple(place_of(op).name for op in ops[:_NAMED]),
            len(ops),
            f"not reached; {_STATES[state]}",
            broken=True,
        )
        for (label, state), ops in groups.items()
    ]
