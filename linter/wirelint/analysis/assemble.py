"""Puts the facts about a model together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wirelint.analysis.embeddings import embedding_facts
from wirelint.analysis.inputs import input_facts
from wirelint.analysis.names import best_name, polarity_of_name
from wirelint.analysis.outputs import output_facts
from wirelint.analysis.reductions import reduction_facts
from wirelint.analysis.routes import routes
from wirelint.analysis.sites import site_facts
from wirelint.dtypes import DType
from wirelint.expect import gather, judge
from wirelint.facts import (
    AttentionFacts,
    BatchFacts,
    ExpectationFacts,
    FileFacts,
    InputFacts,
    MaskFacts,
    ModelFacts,
    OutputFacts,
    SequenceFacts,
    SiteFacts,
)
from wirelint.graph import Graph, Model
from wirelint.shadow.attempts import Execution, execute
from wirelint.shadow.interpreter import Constants
from wirelint.shadow.scenario import MaskForm
from wirelint.shadow.shapes import Sizes
from wirelint.trace.evidence import Use
from wirelint.trace.roles import Trace, trace

__all__ = ["Examination", "analyse", "disagreeing_axes", "examine"]

_SHOWN = 3
_WORSE = {"safe": 0, "n/a": 0, "unknown": 1, "leaks": 2}


@dataclass(frozen=True, slots=True)
class Examination:
    """The facts about a model, with what they were read off: for those who go on from there and run or draw it.

    Attributes:
        facts: the facts.
        traced: the trace of the main graph.
        execution: its shadow runs.
        forms: by index of the graph input, how each mask says what is padding, where it is not ``keep1``.
    """

    facts: ModelFacts
    traced: Trace
    execution: Execution
    forms: dict[int, MaskForm]


def analyse(model: Model, *, reference: ModelFacts | None = None) -> ModelFacts:
    """The facts about a model.

    Args:
        model: as read from its file.
        reference: facts of the model that it was made from; what differs becomes part of the expectations.
    """
    return examine(model, reference=reference).facts


def examine(model: Model, *, reference: ModelFacts | None = None) -> Examination:
    """The facts about a model, with the trace and the shadow runs behind them; the arguments are those of :func:`analyse`."""
    graph = model.graph
    expect = gather(model.path)
    traced = trace(graph)
    execution, forms, sites = _executed(graph, traced, expect)
    outputs = output_facts(model, traced, execution)
    for other in _other_branches(graph, traced, forms, expect):
        _merge(outputs, output_facts(model, traced, other))
    inputs = input_facts(graph, traced)
    for entry, route in zip(inputs, routes(graph, traced, sites), strict=True):
        entry.route = route
    facts = ModelFacts(
        path=str(model.path),
        format=model.format,
        producer=model.producer,
        producer_version=model.producer_version,
        opsets=dict(model.opsets),
        ir_version=model.ir_version,
        operators=sum(1 for _ in graph.walk()),
        inputs=inputs,
        outputs=outputs,
        attention=_attention(sites),
        embeddings=embedding_facts(graph, traced, execution),
        reductions=reduction_facts(graph, traced, execution),
        sequence=_sequence(graph, traced, execution),
        batch=_batch(graph, traced, execution, inputs),
        expect=expect,
        precision=_precision(graph),
        executed=execution.right[1].stop is None,
        unmodelled=tuple(dict.fromkeys(op.origin.op_type or op.kind for op in execution.right[1].unmodelled)),
        problems=[
            FileFacts(str(model.path), model.format, problem.rule, problem.message, problem.line, problem.subject)
            for problem in model.problems
        ],
    )
    stop = execution.right[1].stop
    if stop is not None:
        facts.stopped_at = f"{stop.op.origin.op_type or stop.op.kind} '{stop.op.origin.name}': {stop.reason}"
    facts.mask = _mask(traced, facts, execution)
    facts.decoder_only = any(site.causal for site in sites) and not any(site.kind == "cross" for site in sites)
    facts.sequence.max_length = min((entry.rows for entry in facts.position_tables), default=None)
    expect.mismatches = judge(facts)
    if reference is not None:
        from wirelint.compare import mismatches

        for rule, sentences in mismatches(reference, facts).items():
            expect.mismatches[rule] = (*expect.mismatches.get(rule, ()), *sentences)
    return Examination(facts, traced, execution, forms)


# -- execution -----------------------------------------------------------------------------------------------------------


def _executed(graph: Graph, traced: Trace, expect: ExpectationFacts) -> tuple[Execution, dict[int, MaskForm], list[SiteFacts]]:
    """Runs the model with masks in the form that it honours.

    Masks are tried as 1 for real positions first.  A mask that then does the opposite is run the other way round, unless
    its name promises that 1 keeps: then it is inverted.  A floating mask that does nothing is tried as a term of the scores.
    """
    constants = Constants()

    def run(forms: dict[int, MaskForm]) -> tuple[Execution, list[SiteFacts]]:
        execution = execute(graph, traced, constants, forms, pad_id=expect.pad_id, unpadded=_unpadded(expect))
        return execution, [site_facts(site, traced, execution, graph.inputs) for site in traced.sites]

    forms: dict[int, MaskForm] = {}
    execution, sites = run(forms)
    masks = [at for at, role in enumerate(traced.roles) if role.name in ("mask", "decoder_mask", "pixel_mask") and role.sites]
    other = dict(forms)
    for at in masks:
        own = {id(site.op) for site in traced.roles[at].sites}
        states = [fact.mask for site, fact in zip(traced.sites, sites, strict=True) if id(site.op) in own and fact.needs_mask]
        if not states or any(state == "effective" for state in states):
            continue
        if "inverted" in states and polarity_of_name(best_name(graph.inputs[at])) != "keep1":
            other[at] = "keep0"
        elif graph.inputs[at].dtype.is_float and {"weak", "noop", "query-axis", "inverted"} & set(states):
            other[at] = "additive"
    if other != forms:
        again, again_sites = run(other)
        if any(fact.mask == "effective" for fact in again_sites):
            for fact in again_sites:
                names = {best_name(graph.inputs[at]) for at, form in other.items() if form == "keep0"}
                fact.polarity = "keep0" if names & set(fact.mask_inputs) else fact.polarity
            return again, other, _polarised(again_sites)
    return execution, forms, _polarised(sites)


def _polarised(sites: list[SiteFacts]) -> list[SiteFacts]:
    for fact in sites:
        if not fact.polarity and fact.mask_inputs:
            if fact.mask == "inverted":
                fact.polarity = "keep0"
            elif fact.mask in ("effective", "weak"):
                fact.polarity = "keep1"
    return sites


def _other_branches(graph: Graph, traced: Trace, forms: dict[int, MaskForm], expect: ExpectationFacts) -> list[Execution]:
    """The model with its flags set, for models in which a flag chooses a branch."""
    flags = [
        at
        for at, value in enumerate(graph.inputs)
        if value.dtype is DType.BOOL and any(use.use is Use.BRANCH for use in traced.observations.get(at, ()))
    ]
    if not flags:
        return []
    return [execute(graph, traced, Constants(), forms, pad_id=expect.pad_id, branch=True, unpadded=_unpadded(expect))]


def _unpadded(expect: ExpectationFacts) -> frozenset[str]:
    """Roles whose sequences are never padded: the patches of an image are as many for each."""
    return frozenset({"encoder_states"} if expect.reads_images else ())


def _merge(outputs: list[OutputFacts], others: list[OutputFacts]) -> None:
    """The worse of two verdicts, for each output."""
    for fact, other in zip(outputs, others, strict=True):
        for side in ("right", "left"):
            if _WORSE[getattr(other.padding, side)] > _WORSE[getattr(fact.padding, side)]:
                setattr(fact.padding, side, getattr(other.padding, side))
                setattr(fact, f"witness_{side}", getattr(other, f"witness_{side}"))
                setattr(fact, f"cause_{side}", getattr(other, f"cause_{side}"))
        if other.batch != "independent" and fact.batch == "independent":
            fact.batch = other.batch
        fact.depends_on = tuple(dict.fromkeys((*fact.depends_on, *other.depends_on)))


# -- summaries -------------------------------------------------------------------------------------------------------------


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _attention(sites: list[SiteFacts]) -> AttentionFacts:
    made = AttentionFacts(total=len(sites), sites=sites)
    maskable = [site for site in sites if site.needs_mask]
    made.maskable = len(maskable)
    counted = {
        "effective": "effective", "absent": "absent", "constant": "constant", "inverted": "inverted", "noop": "noop",
        "weak": "weak", "query-axis": "query_axis", "not-finite": "not_finite", "unknown": "unknown",
    }  # fmt: skip
    for site in maskable:
        field = counted[site.mask]
        setattr(made, field, getattr(made, field) + 1)
        made.heard_right += site.heard_right == "heard"
        made.heard_left += site.heard_left == "heard"
        made.nan_when_fully_masked += site.fully_masked == "nan"
        made.quantised += site.quantised
    made.causal = sum(1 for site in sites if site.causal)
    made.pooling_heard = sum(1 for site in maskable if site.kind == "pooling" and site.heard_right == "heard")
    made.cross_heard = sum(1 for site in maskable if site.kind == "cross" and site.heard_right == "heard")
    made.unmasked_names = _listed([str(site.place.name) for site in maskable if site.heard_right == "heard"])
    return made


def _mask(traced: Trace, facts: ModelFacts, execution: Execution) -> MaskFacts:
    made = MaskFacts()
    sites = [site for site in facts.attention.sites if site.needs_mask]
    acting = [site for site in sites if site.mask_inputs]
    for role in ("mask", "decoder_mask", "lengths", "pixel_mask"):
        listed = [entry for entry in facts.inputs if entry.role == role]
        if listed:
            entry = max(listed, key=lambda item: item.sites)
            made.name, made.input, made.lengths = entry.name, entry.index, role == "lengths"
            made.shown = entry.shown
            made.name_polarity = polarity_of_name(entry.name)
            made.basis = entry.basis
            made.used_elsewhere = entry.used and not entry.sites
            break
    compared = [
        use
        for role in ("ids", "decoder_ids")
        for at in traced.inputs_of(role)
        for use in traced.observations.get(at, ())
        if use.use is Use.COMPARE
    ]
    id_names = {entry.name for entry in facts.inputs if entry.role in ("ids", "decoder_ids")}
    made.from_ids = any(id_names & set(site.mask_inputs) for site in sites)
    if made.from_ids and compared:
        made.pad_id = execution.right[0].pad_id if facts.expect.pad_id is None else int(compared[0].number or 0)
    made.reaches_scores = bool(acting)
    shown = next((site for site in acting if site.fill is not None), None)
    if shown is not None:
        made.fill, made.fill_dtype = shown.fill, shown.fill_dtype
    made.polarity = next((site.polarity for site in acting if site.polarity), "")
    made.sites_text = f"{len(acting)} of {len(sites)} attention site{'s' if len(sites) != 1 else ''}"
    return made


def _sequence(graph: Graph, traced: Trace, execution: Execution) -> SequenceFacts:
    made = SequenceFacts()
    main = execution.right[0].main
    if main is None:
        return made
    made.role, made.static = main.role, main.static
    at = traced.inputs_of(main.role)[0]
    shape = graph.inputs[at].shape
    made.length = shape[-1] if shape and main.role in ("ids", "decoder_ids") else main.length if main.static else None
    made.one_input_only = len(graph.inputs) == 1
    made.runs = execution.accepted
    lengths = [
        refusal
        for refusal in execution.refusals
        if _lengths(refusal.sizes) != _lengths(execution.sizes) and refusal.sizes.batch == execution.sizes.batch
    ]
    other = execution.left[0].main
    # Two lengths were accepted: what was refused is too long (for a table of positions, say), not another than the traced one.
    ranges = other is not None and other.length != main.length
    if execution.accepted and lengths and not main.static and not ranges:
        first = lengths[0]
        refused, taken = (_lengths(sizes) for sizes in (first.sizes, execution.sizes))
        made.failed_length, made.accepted_length = next(pair for pair in zip(refused, taken, strict=True) if pair[0] != pair[1])
        made.failed_at, made.runs = f"{first.op.origin.op_type or first.op.kind} '{first.op.origin.name}'", False
    return made


def _lengths(sizes: Sizes) -> tuple[int, int, int]:
    return sizes.length, sizes.other, sizes.frames


def _batch(graph: Graph, traced: Trace, execution: Execution, inputs: list[InputFacts]) -> BatchFacts:
    made = BatchFacts()
    carriers = [
        at
        for at, role in enumerate(traced.roles)
        if role.name in ("ids", "decoder_ids", "features", "pixels", "encoder_states")
    ]
    for at in carriers[:1]:
        shape = graph.inputs[at].shape
        if shape and len(shape) >= 2:
            made.size, made.static = shape[0], isinstance(shape[0], int)
    refused = [
        refusal
        for refusal in execution.refusals
        if refusal.sizes != execution.sizes and replace(refusal.sizes, batch=execution.sizes.batch) == execution.sizes
    ]
    if execution.accepted and refused and not made.static:
        first = refused[0]
        made.failed, made.failed_at = first.sizes.batch, f"{first.op.origin.op_type or first.op.kind} '{first.op.origin.name}'"
        made.accepted = execution.sizes.batch
    made.disagreeing = disagreeing_axes(inputs)
    return made


def disagreeing_axes(inputs: list[InputFacts]) -> tuple[str, ...]:
    """Token-level inputs that fix an axis which the sequence they belong to leaves open or fixes otherwise, or leave open one
    that it fixes: one sentence for each contradiction.
    """
    carrier = _carrier(inputs)
    if carrier is None or carrier.shape is None:
        return ()
    cached = any(entry.role == "past" for entry in inputs)
    found = []
    for axis, name in ((0, "batch"), (1, "sequence")):
        own, declared = carrier.shape[axis], dict[int | None, list[InputFacts]]()
        for entry in inputs:
            if entry.role not in ("mask", "segment", "position") or entry.shape is None or len(entry.shape) != 2:
                continue
            size = entry.shape[axis]
            # A mask over cached and new keys has a length of its own; what has one row for the whole batch is broadcast.
            if (cached and axis == 1) or (size == 1 and axis == 0 and entry.role in ("position", "mask")):
                continue
            declared.setdefault(size if isinstance(size, int) else None, []).append(entry)
        for size, entries in declared.items():
            shown = [entry.shown for entry in entries]
            if size is not None and not isinstance(own, int):
                fix = "fixes" if len(shown) == 1 else "fix"
                found.append(f"{' and '.join(shown)} {fix} the {name} axis at {size}, which {carrier.shown} leaves open")
            elif size is None and isinstance(own, int) and own != 1:
                found.append(f"{carrier.shown} fixes the {name} axis at {own}, which {shown[0]} leaves open")
            elif size is not None and size != own and 1 not in (size, own):
                found.append(f"the {name} axis is fixed at {own} in {carrier.shown} and {size} in {shown[0]}")
    return tuple(found)


def _carrier(inputs: list[InputFacts]) -> InputFacts | None:
    """The input over whose positions masks, segments and positions run: the ids, or else what a decoder attends to.

    None where there are several texts, as nothing in the declared shapes says which mask belongs to which.
    """
    for role, rank in (("ids", 2), ("encoder_states", 3)):
        found = [entry for entry in inputs if entry.role == role and entry.shape is not None and len(entry.shape) == rank]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _precision(graph: Graph) -> str:
    kinds = {
        value.dtype
        for op in graph.ops
        for value in op.outputs
        if op.kind in ("MatMul", "Conv", "Attention", "MatMulInteger", "Gemm")
    }
    if any(op.kind in ("QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "FakeQuantize") for op in graph.walk()):
        return "int8"
    names = {DType.F32: "fp32", DType.F16: "fp16", DType.BF16: "bf16"}
    floats = {names[kind] for kind in kinds if kind in names}
    return floats.pop() if len(floats) == 1 else "mixed" if floats else "fp32"
