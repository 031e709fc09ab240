"""Decides the role of each graph input from what its consumers do with it.

Names play no part.  Inputs that nothing reads get the role that the model lacks, with a basis that says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wirelint.dtypes import DType
from wirelint.graph import Graph, Op, Value
from wirelint.ops import Family, family
from wirelint.trace.evidence import Observation, Observations, Use, observe
from wirelint.trace.flow import Flow, trace_flow
from wirelint.trace.sites import Lookup, Site, find_lookups, find_sites

__all__ = ["Reason", "Role", "Trace", "trace"]

_RECURRENT = ("LSTM", "GRU", "RNN")


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """One reason for or against a role."""

    text: str
    role: str
    op: Op | None = None
    against: bool = False


@dataclass(slots=True, eq=False)
class Role:
    """The role of one input.

    Attributes:
        name: the role.
        confidence: 0 to 1.
        reasons: why, the deciding one first.
        basis: ``consumers``, ``shape`` or ``elimination``.
        sites: attention sites on whose scores it acts.
        additive: a floating mask that is added to the scores as it comes.
    """

    name: str = "other"
    confidence: float = 0.3
    reasons: list[Reason] = field(default_factory=list)
    basis: str = "consumers"
    sites: list[Site] = field(default_factory=list)
    additive: bool = False


@dataclass(slots=True, eq=False)
class Trace:
    """Everything that tracing finds.

    Attributes:
        flow: which inputs stand in which value.
        sites: attention sites.
        lookups: tables that are read at integer indices.
        observations: uses of each input.
        roles: role of each input, in the order of the graph's inputs.
    """

    flow: Flow
    sites: list[Site]
    lookups: list[Lookup]
    observations: Observations
    roles: list[Role]

    def inputs_of(self, role: str) -> list[int]:
        """Indices of the inputs that have a role."""
        return [at for at, entry in enumerate(self.roles) if entry.name == role]


_SMALL_TABLE = 16
"""Segment tables have 1 or 2 rows, a few models 3 to 16 (TAPAS, BigBird); vocabularies are larger."""


def trace(graph: Graph) -> Trace:
    """Traces a main graph."""
    flow = trace_flow(graph)
    sites, lookups = find_sites(graph, flow), find_lookups(graph, flow)
    observations = observe(graph, flow, sites, lookups)
    roles = _Decision(graph, flow, sites, lookups, observations).roles()
    return Trace(flow, sites, lookups, observations, roles)


def _rank(value: Value) -> int | None:
    return None if value.shape is None else len(value.shape)


class _Decision:
    def __init__(self, graph: Graph, flow: Flow, sites: list[Site], lookups: list[Lookup], observations: Observations) -> None:
        self.graph, self.flow, self.sites, self.lookups = graph, flow, sites, lookups
        self.seen = observations
        self.made = [Role() for _ in graph.inputs]

    def roles(self) -> list[Role]:
        indexers = self._indexers()
        ids = self._settle_indexers(indexers)
        for at, value in enumerate(self.graph.inputs):
            if self.made[at].reasons:
                continue
            if value.dtype is DType.STRING:
                self._give(at, "other", 0.9, "is a tensor of strings")
            elif value.dtype.is_float:
                self._settle_float(at, value)
            else:
                self._settle_integer(at, value)
        self._settle_sequences(ids)
        self._settle_unread()
        return self.made

    def _give(self, at: int, role: str, confidence: float, text: str, op: Op | None = None, basis: str = "consumers") -> None:
        entry = self.made[at]
        entry.name, entry.confidence, entry.basis = role, confidence, basis
        entry.reasons.insert(0, Reason(text, role, op))

    def _uses(self, at: int, *uses: Use) -> list[Observation]:
        return [entry for entry in self.seen.get(at, ()) if entry.use in uses]

    # -- inputs that index tables --------------------------------------------------------------------------------------

    def _indexers(self) -> dict[int, list[Observation]]:
        """Integer inputs whose own values index floating tables."""
        found = {}
        for at, value in enumerate(self.graph.inputs):
            direct = [entry for entry in self._uses(at, Use.INDEX) if entry.direct]
            if direct and not value.dtype.is_float:
                found[at] = direct
        return found

    def _settle_indexers(self, indexers: dict[int, list[Observation]]) -> list[int]:
        ids: list[int] = []
        left: list[int] = []
        for at, uses in indexers.items():
            value = self.graph.inputs[at]
            last = value.shape[-1] if value.shape else None
            tables = len({entry.op for entry in uses})
            if _rank(value) == 3 and (last == 4 or (last is None and tables >= 4)):
                self._give(at, "bbox", 0.95, f"four coordinates per token index tables of {uses[0].rows} rows", uses[0].op)
            else:
                left.append(at)
        rows = {at: max(entry.rows for entry in indexers[at]) for at in left}
        largest = max(rows.values(), default=0)
        for at in list(left):
            alone = len(left) == 1 and any(other.dtype.is_float and _rank(other) == 3 for other in self.graph.inputs)
            if rows[at] <= _SMALL_TABLE and (rows[at] < largest or alone):
                use = indexers[at][0]
                self._give(
                    at,
                    "segment",
                    0.95,
                    f"indexes a table of {rows[at]} row{'s' if rows[at] != 1 else ''} beside "
                    + ("token vectors" if alone else f"one of {largest}"),
                    use.op,
                )
                left.remove(at)
        if len(indexers) == 1 and left and self._follows_features(indexers[left[0]]) and not self._uses(left[0], Use.COMPARE):
            use = indexers[left[0]][0]
            text = f"indexes a table of {use.rows} rows, which are added to projected features"
            self._give(left.pop(), "position", 0.6, text, use.op)  # only the order of the terms tells them from tokens
        groups: dict[int, list[int]] = {}
        for at in left:
            groups.setdefault(self._destination(indexers[at]), []).append(at)
        for members in groups.values():
            ranked = sorted(
                members, key=lambda at: -self._token_score(at, indexers[at], [rows[other] for other in members if other != at])
            )
            for place, at in enumerate(ranked):
                use = max(indexers[at], key=lambda entry: entry.rows)
                summed = place > 0 and self._summed(indexers[at], ranked[0])
                if not summed and len(left) > 1 and self._category(self.graph.inputs[at]):
                    self._give(at, "other", 0.8, f"picks one of {use.rows} categories for each row", use.op)
                elif not summed:
                    self._give(at, "ids", 0.95 if len(ranked) == 1 else 0.9, f"indexes a table of {use.rows} rows", use.op)
                    ids.append(at)
                elif self._shares_table(indexers[at], indexers[ranked[0]]):
                    self._give(at, "segment", 0.7, "indexes the table of the ids, and is summed with them", use.op)
                else:
                    self._give(
                        at, "position", 0.9, f"indexes a second table, of {use.rows} rows, summed with that of the ids", use.op
                    )
        return ids

    def _follows_features(self, uses: Sequence[Observation]) -> bool:
        """Rows of the table are everywhere the second term of a sum whose first one is projected from a sequence of features,
        as decision transformers add their time steps.
        """
        sequences = sum(1 << at for at, value in enumerate(self.graph.inputs) if value.dtype.is_float and _rank(value) == 3)
        frontier, seen = [value for entry in uses for value in entry.op.outputs], set[Value]()
        sums = 0
        while frontier and len(seen) < 64:
            value = frontier.pop()
            if value in seen:
                continue
            seen.add(value)
            for consumer, slot in value.consumers:
                if consumer.kind == "Add" and slot == 1:
                    first = self.flow[consumer.inputs[0]]
                    if not first.mixed or not first.reach & sequences or first.reach & ~sequences:
                        return False
                    sums += 1
                elif family(consumer.kind) is Family.MOVE and slot == 0:
                    frontier += consumer.outputs
                else:
                    return False
        return sums > 0

    def _summed(self, uses: Sequence[Observation], other: int) -> bool:
        """The rows looked up are added to what comes from another input where the two first meet."""
        frontier, seen = deque(value for entry in uses for value in entry.op.outputs), set[Value]()
        while frontier and len(seen) < 64:
            value = frontier.popleft()
            for consumer, slot in value.consumers:
                rest = [operand for at, operand in enumerate(consumer.inputs) if at != slot and operand is not None]
                if any(self.flow[operand].reach >> other & 1 for operand in rest):
                    return consumer.kind in ("Add", "Sub")
                frontier += [made for made in consumer.outputs if made not in seen]
                seen.update(consumer.outputs)
        return False

    def _category(self, value: Value) -> bool:
        """One index for each row, in a model that knows no sequences."""
        single = value.shape is not None and (len(value.shape) == 1 or (len(value.shape) == 2 and value.shape[1] == 1))
        return single and not self.sites and not self._recurrent()

    @staticmethod
    def _shares_table(uses: Sequence[Observation], others: Sequence[Observation]) -> bool:
        """Both index one table, as kinds of text that have rows among those of the tokens do (XLM's); positions never do."""
        tables = {other.op.inputs[0] for other in others}
        return all(use.op.inputs[0] in tables for use in uses)

    def _destination(self, uses: Sequence[Observation]) -> int:
        """Tables that are summed belong to one sequence: identified by the first hidden state that they reach."""
        frontier = [value for entry in uses for value in entry.op.outputs]
        seen: set[Value] = set()
        while frontier:
            value = frontier.pop(0)
            if value in seen:
                continue
            seen.add(value)
            for consumer, _ in value.consumers:
                if consumer.kind in (
                    "MatMul",
                    "LayerNormalization",
                    "RMSNormalization",
                    "ReduceMean",
                    "Conv",
                    "Einsum",
                    "Softmax",
                    "LSTM",
                    "GRU",
                ):
                    return id(consumer)
                if len(seen) < 64:
                    frontier += consumer.outputs
        return id(uses[0].op)

    def _token_score(self, at: int, uses: Sequence[Observation], others: Sequence[int]) -> float:
        """How much a table indexer looks like token ids rather than positions.

        The size of the table counts, but not alone: byte-level vocabularies are smaller than position tables.
        """
        use = max(uses, key=lambda entry: entry.rows)
        score = 0.0
        if others:
            ratio = use.rows / max(*others, 1)
            score += 2.0 if ratio > 2 else 1.0 if ratio > 1 else -1.0 if ratio < 0.5 else 0.0
        if self._tied(use):
            score += 6.0
        if self._leads_sum(use.op):
            score += 1.5
        if self._uses(at, Use.COMPARE):
            score += 2.0
        if self._uses(at, Use.ANGLE):
            score -= 4.0
        return score

    def _tied(self, use: Observation) -> bool:
        """The table is also the output projection, or an output has one number per row of it."""
        table = use.op.inputs[0]
        if table is not None and any(op.kind in ("MatMul", "Transpose") for op, _ in table.consumers):
            return True
        return any(value.shape and value.shape[-1] == use.rows for value in self.graph.outputs)

    @staticmethod
    def _leads_sum(op: Op) -> bool:
        """Its rows are the first term of the sum of embeddings, as token embeddings are wherever sums are written out."""
        value = op.outputs[0]
        for _ in range(16):
            if len(value.consumers) != 1:
                break
            consumer, slot = value.consumers[0]
            if consumer.kind == "Add":
                if slot != 0:
                    return False
            elif consumer.kind not in ("Identity", "Cast", "Mul", "Reshape", "Transpose", "DequantizeLinear"):
                break
            value = consumer.outputs[0]
        return True

    # -- the others ------------------------------------------------------------------------------------------------------

    def _settle_float(self, at: int, value: Value) -> None:
        cache = self._uses(at, Use.CACHE)
        scores = self._uses(at, Use.SCORE)
        weighs = self._uses(at, Use.WEIGH)
        convolved = self._uses(at, Use.CONVOLVE)
        projected = self._uses(at, Use.PROJECT)
        stepped = self._uses(at, Use.STEP)
        carried = self._uses(at, Use.CARRY)
        cross = self._uses(at, Use.CROSS)
        rank = _rank(value)
        if cache and not projected and not convolved:
            self._give(at, "past", 0.95, "is joined with the new keys or values of an attention site", cache[0].op)
        elif scores and not convolved and not projected:
            self._mask(at, scores)
        elif convolved and max(entry.rank for entry in convolved) >= 2 and (rank is None or rank >= 4):
            self._give(at, "pixels", 0.95, f"is convolved over {convolved[0].rank} axes", convolved[0].op)
        elif convolved:
            self._give(at, "features", 0.9, "is convolved along one axis", convolved[0].op)
        elif cross and projected and any(entry.direct for entry in cross):
            self._give(at, "encoder_states", 0.95, "makes the keys of cross-attention and none of its queries", cross[0].op)
        elif projected and rank is not None and rank >= 4:
            self._give(at, "pixels", 0.7, "patches of it are projected", projected[0].op)
        elif projected and (rank is None or rank == 3) and (self.sites or self._recurrent()):
            self._give(at, "features", 0.8, "a sequence of feature vectors is projected", projected[0].op)
        elif stepped:
            self._give(at, "features", 0.85, "runs through a recurrent operator", stepped[0].op)
        elif carried and rank == 3 and self.sites:
            self._give(at, "features", 0.8, "is added to hidden states as if embeddings had been looked up", carried[0].op)
        elif weighs and not projected:
            self._give(at, "mask", 0.8, "weighs hidden states", weighs[0].op)
        elif self._uses(at, Use.STATE):
            self._give(at, "other", 0.8, "is the first state of a recurrent operator", self._uses(at, Use.STATE)[0].op)
        elif projected:
            self._give(at, "other", 0.6, "is projected by weights, without a sequence", projected[0].op)

    def _recurrent(self) -> bool:
        return any(op.kind in _RECURRENT for op in self.graph.walk())

    def _settle_integer(self, at: int, value: Value) -> None:
        angle = [entry for entry in self._uses(at, Use.ANGLE) if entry.direct]
        scores = self._uses(at, Use.SCORE)
        lengths = self._uses(at, Use.LENGTH)
        writes = self._uses(at, Use.WRITE)
        weighs = self._uses(at, Use.WEIGH)
        counts = self._uses(at, Use.COUNT)
        rank = _rank(value)
        pairs = self._uses(at, Use.PAIR)
        if pairs and (scores or weighs) and all(self._learned(use) for use in scores):
            self._give(at, "segment", 0.85, "whether two positions hold the same chooses a learned term of scores", pairs[0].op)
        elif writes and rank is not None and rank <= 1 and not any(entry.op.kind in _RECURRENT for entry in lengths):
            self._give(at, "cache_position", 0.9, "says where new keys and values are written", writes[0].op)
        elif angle and not counts:
            self._give(at, "position", 0.95, "angles are computed from it", angle[0].op)
        elif (
            lengths
            and not scores
            and (rank is None or rank <= 1 or (not weighs and rank <= 2 and lengths[0].op.kind in _RECURRENT))
            and not self._for_each_token(value)
        ):
            self._give(at, "lengths", 0.95, "says how many steps or keys of each row count", lengths[0].op)
        elif scores or lengths:
            if rank == 1 and any(entry.site is not None for entry in scores):
                causal = self._varies_along_queries(value)
                role = "cache_position" if causal else "lengths"
                self._give(at, role, 0.8, "is compared with positions before the softmax", scores[0].op)
            else:
                self._mask(at, scores or lengths)
        elif weighs and (rank is None or rank >= 2):
            self._give(at, "mask", 0.85, "weighs hidden states", weighs[0].op)
        elif self._uses(at, Use.BLANK):
            self._give(at, "mask", 0.7, Use.BLANK.value, self._uses(at, Use.BLANK)[0].op)
        elif weighs and rank == 1:
            self._give(at, "lengths", 0.7, "is compared with positions", weighs[0].op)
        elif self._uses(at, Use.BRANCH):
            self._give(at, "other", 0.95, "chooses a branch", self._uses(at, Use.BRANCH)[0].op)
        elif rank == 1 and value.shape != (1,) and self._uses(at, Use.BAG):
            self._give(at, "lengths", 0.85, Use.BAG.value, self._uses(at, Use.BAG)[0].op)
        elif self._uses(at, Use.BOUND):
            self._give(at, "other", 0.7, "bounds a slice, a range or a shape", self._uses(at, Use.BOUND)[0].op)
        elif angle or counts:
            use = (angle or counts)[0]
            self._give(at, "position" if angle else "mask", 0.6, use.use.value, use.op)

    def _for_each_token(self, value: Value) -> bool:
        """It is declared with the very axes of the ids, of which the second is no single one: a mask that is summed."""
        shape = value.shape
        return (
            shape is not None
            and len(shape) == 2
            and isinstance(shape[1], int | str)
            and shape[1] != 1
            and any(
                self.made[at].name in ("ids", "decoder_ids") and other.shape is not None and other.shape[1:] == shape[1:]
                for at, other in enumerate(self.graph.inputs)
            )
        )

    def _learned(self, use: Observation) -> bool:
        """What reaches the scores is computed from weights or hidden states, as no padding mask is."""
        return use.site is not None and use.slot < len(use.site.terms) and self.flow[use.site.terms[use.slot]].mixed

    def _varies_along_queries(self, value: Value) -> bool:
        """A vector with one number per new token, not per row: its axis is the ids' sequence axis."""
        dim = value.shape[0] if value.shape else None
        for other, entry in enumerate(self.made):
            shape = self.graph.inputs[other].shape
            if entry.name in ("ids", "decoder_ids") and shape is not None and len(shape) == 2 and dim is not None:
                return dim == shape[1] and dim != shape[0]
        return False

    def _mask(self, at: int, scores: Sequence[Observation]) -> None:
        entry = self.made[at]
        entry.sites = list(dict.fromkeys(use.site for use in scores if use.site is not None))
        value = self.graph.inputs[at]
        pixels = any(
            other.dtype.is_float and any(use.rank >= 2 for use in self._uses(place, Use.CONVOLVE))
            for place, other in enumerate(self.graph.inputs)
        )
        role = "pixel_mask" if pixels and _rank(value) == 3 else "mask"
        where = f"acts on the scores of {len(entry.sites)} of {len(self.sites)} attention sites"
        self._give(at, role, 0.95, where, scores[0].op)
        entry.additive = value.dtype.is_float and any(use.direct for use in scores)

    # -- several sequences ---------------------------------------------------------------------------------------------------

    def _settle_sequences(self, ids: Sequence[int]) -> None:
        """Tells a decoder's ids and mask from an encoder's, where cross-attention joins two sequences."""
        sources = [at for at, role in enumerate(self.made) if role.name in ("encoder_states", "features", "pixels")]
        cached_cross = self._cross_from_cache()
        asks = {(at, other) for site in self.sites for at in ids for other in ids if self._asks(site, at, other)}
        for site in self.sites:
            for at in ids:
                others = [other for other in [*sources, *ids] if self._asks(site, at, other)]
                # Two texts that ask each other are no encoder and decoder.
                one_way = [other for other in others if (other, at) not in asks]
                if one_way and not set(one_way) & set(sources) and not self._goes_forward(at):
                    continue
                if one_way or (site in cached_cross and self.flow[site.query].reach >> at & 1):
                    self.made[at].name = "decoder_ids"
                    self.made[at].reasons.insert(0, Reason("asks the keys of another sequence", "decoder_ids", site.op))
        decoders = [at for at in ids if self.made[at].name == "decoder_ids"]
        masks = [at for at, role in enumerate(self.made) if role.name == "mask"]
        if not decoders or len(masks) < 2:
            return
        bit = sum(1 << at for at in decoders)
        for at in masks:
            own = [
                site for site in self.made[at].sites if self.flow[site.query].reach & bit and self.flow[site.key].reach & bit
            ]
            if own and len(own) == len(self.made[at].sites):
                self.made[at].name = "decoder_mask"
                self.made[at].reasons.insert(0, Reason("acts where the decoder attends to itself", "decoder_mask", own[0].op))

    def _goes_forward(self, at: int) -> bool:
        """The tokens of an input are generated one after the other: where they attend to themselves, something besides inputs
        bars what comes later, or an output has one number for each token there is.  A query that asks a passage does neither.
        """
        rows = {use.rows for use in self._uses(at, Use.INDEX) if use.direct}
        if any(value.shape and len(value.shape) == 3 and value.shape[-1] in rows for value in self.graph.outputs):
            return True
        own = [site for site in self.sites if self.flow[site.query].reach >> at & self.flow[site.key].reach >> at & 1]
        return any(site.op.attrs.get("causal", "none") != "none" or any(map(self._by_order, site.terms)) for site in own)

    def _by_order(self, term: Value) -> bool:
        """A triangle, or a comparison of positions with positions, takes part in computing a term of the scores."""
        frontier, seen = [term], set[Value]()
        while frontier and len(seen) < 256:
            value = frontier.pop()
            if value in seen:
                continue
            seen.add(value)
            op, shape = value.producer, None if value.constant is None else value.constant.shape
            if shape and len(shape) > 1 and 1 < shape[-1] == shape[-2]:
                return True
            if op is None:
                continue
            ordered = op.kind in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")
            if op.kind == "Trilu" or (ordered and not any(self.flow[operand].reach for operand in op.inputs)):
                return True
            frontier += [operand for operand in op.inputs if operand is not None]
        return False

    def _asks(self, site: Site, at: int, other: int) -> bool:
        """At this site the queries come from one input and the keys from another."""
        query, key = self.flow[site.query].reach, self.flow[site.key].reach
        return bool(query >> at & 1 and not key >> at & 1 and key >> other & 1 and not query >> other & 1)

    def _cross_from_cache(self) -> list[Site]:
        """Sites whose keys are cached whole, without new ones: cross-attention of a decoder that keeps the encoder's keys."""
        past = sum(1 << at for at, role in enumerate(self.made) if role.name == "past")
        return [site for site in self.sites if self.flow[site.key].reach & past and not self.flow[site.key].reach & ~past]

    # -- inputs that nothing reads -------------------------------------------------------------------------------------

    def _settle_unread(self) -> None:
        """What nothing reads, or nothing but its shape, takes the place that the model leaves empty."""
        tokens = [at for at, role in enumerate(self.made) if role.name in ("ids", "decoder_ids")]
        has = {role.name for role in self.made}
        for at, value in enumerate(self.graph.inputs):
            role = self.made[at]
            if role.reasons or (value.default is not None and value.dtype.is_float):
                continue
            shape_only = any(self.flow[entry].shape >> at & 1 for op in self._readers(value) for entry in op.outputs)
            basis = "shape" if shape_only else "elimination"
            integral = value.dtype.is_integer or value.dtype is DType.BOOL
            if not tokens:
                if value.consumers and not shape_only:
                    continue
                if not has & {"pixels", "features"}:
                    continue
            like = any(_alike(value, self.graph.inputs[other]) for other in tokens)
            if (tokens or "features" in has) and integral and _rank(value) == 1:
                self._give(at, "lengths", 0.4, "nothing reads it; it has one number per row", None, basis)
            elif tokens and like and (not integral or not has & {"mask"} or not self._masked()):
                self._give(
                    at,
                    "mask",
                    0.5,
                    "only its shape is read" if shape_only else "nothing reads it; the model has no other mask",
                    None,
                    basis,
                )
            elif tokens and like and integral and "segment" not in has:
                self._give(at, "segment", 0.4, "nothing reads it; the model has a mask but no segments", None, basis)
            elif tokens and like and integral and "position" not in has:
                self._give(at, "position", 0.3, "nothing reads it; the model has a mask and segments", None, basis)
            elif not role.reasons:
                role.reasons.append(
                    Reason("only its shape is read" if shape_only else "nothing that says what it is reads it", "other")
                )
                role.basis = basis
            has.add(role.name)

    def _masked(self) -> bool:
        return any(role.name in ("mask", "decoder_mask") for role in self.made)

    @staticmethod
    def _readers(value: Value) -> Iterable[Op]:
        return (op for op, _ in value.consumers)


def _alike(value: Value, other: Value) -> bool:
    """Declared with as many axes, none of which contradicts the other's."""
    if value.shape is None or other.shape is None:
        return True
    if len(value.shape) != len(other.shape):
        return False
    return all(
        not isinstance(a, int) or not isinstance(b, int) or a == b for a, b in zip(value.shape, other.shape, strict=True)
    )
