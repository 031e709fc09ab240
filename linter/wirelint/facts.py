"""What wirelint knows about a model, before any judgement: the vocabulary that rules are written in.

Every dataclass here is plain, documented and serialisable.  A fact says what *is* ("the mask does not reach these
attention sites"); whether that is wrong is for a rule to say.  A name that a rule's condition uses must exist here, which
is checked when the rule is loaded.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any

from wirelint.shell import shell_word

__all__ = [
    "ENTITIES",
    "AttentionFacts",
    "BatchFacts",
    "ContradictionFacts",
    "EmbeddingFacts",
    "Evidence",
    "ExpectationFacts",
    "FileFacts",
    "InputFacts",
    "MaskFacts",
    "ModelFacts",
    "OutputFacts",
    "PaddingFacts",
    "Place",
    "ReductionFacts",
    "Route",
    "RouteNode",
    "SequenceFacts",
    "SiteFacts",
    "to_dict",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the file.

    Attributes:
        name: node, layer or tensor name; may be empty.
        op_type: operator as the file calls it.
        line: line of the XML, for IR.
        scope: names of the subgraph-holding operators around it, outermost first.
    """

    name: str = ""
    op_type: str = ""
    line: int | None = None
    scope: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.op_type} {self.name!r}".strip() if self.name else self.op_type


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason for or against a role, in words, with the operator that gives it.

    Attributes:
        text: the reason, such as ``indexes a table of 30522 rows``.
        place: the operator that decides it.
        speaks_for: the role that it supports.
        against: True when it rules that role out instead.
        path: the operators that lead there from the input, as the file calls them.
    """

    text: str
    place: Place
    speaks_for: str
    against: bool = False
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteNode:
    """One step of a route: an operator, or several that stand for the same step in repeated layers.

    Attributes:
        kind: ``input``, ``operator``, ``attention``, ``embedding``, ``pooling``, ``end`` (any other use that decides the
            role) or ``missing`` (an attention site that the route should reach and does not).
        label: operator type as the file calls it; the name of the input.
        names: names of the operators, at most three.
        count: number of operators that it stands for.
        note: what happens there, in words.
        broken: something goes wrong there.
    """

    kind: str
    label: str
    names: tuple[str, ...] = ()
    count: int = 1
    note: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one input to what decides its role, folded: steps that repeat in every layer stand once.

    Attributes:
        nodes: the first is the input.
        edges: pairs of indices into ``nodes``; acyclic.
        left_out: operators on the way that are not shown because there are too many.
    """

    nodes: tuple[RouteNode, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    left_out: int = 0


@dataclass(slots=True)
class InputFacts:
    """One graph input.

    Attributes:
        index: position among the graph inputs, from 0.
        name: the name by which a caller addresses it; empty when it has none.
        names: all such names (an IR port may carry several).
        layer: layer name of the IR's Parameter; empty for ONNX.
        dtype: element type, such as ``i64``.
        shape: declared dimensions; symbols as strings, unknown ones as None; None when the rank is unknown.
        role: what the graph does with it; one of the roles in the documentation.
        confidence: 0 to 1.
        evidence: why.
        basis: ``consumers`` when what the graph computes decides the role, ``shape`` when only its shape is read,
            ``elimination`` when nothing reads it and the role is what the model lacks.
        name_says: the role that its name conventionally stands for, or empty.
        name_kind: ``conventional``, ``plain`` (a word, not one of the conventional names), ``vague`` (a word that fits any
            input, such as ``x``), ``generated`` (an exporter invented it) or ``none``.
        name_fits: a plain name says something about the role (``valid_mask`` for a mask); true for all other names.
        usual_name: what callers usually call an input of this role in this model; empty when several have it.
        used: an output depends on its values.
        read: some operator reads its values or its shape.
        has_default: the file gives a value that is used when the caller leaves it out.
        weight: it has a default and is used as a weight (old files list weights as inputs).
        sites: number of attention sites on whose scores it acts.
        table_rows: rows of the largest table that it indexes, or None.
        name_conflicts: its name conventionally stands for another role than it has.
        path: the operators from the input to the consumer that decides the role.
        route: all ways from the input to what decides the role, for a picture.
        line: XML line.
    """

    index: int
    name: str
    names: tuple[str, ...]
    layer: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    role: str = "other"
    confidence: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    basis: str = "consumers"
    name_says: str = ""
    name_kind: str = "plain"
    name_fits: bool = True
    usual_name: str = ""
    used: bool = True
    read: bool = True
    has_default: bool = False
    weight: bool = False
    sites: int = 0
    table_rows: int | None = None
    name_conflicts: bool = False
    path: tuple[str, ...] = ()
    route: Route = field(default_factory=Route)
    line: int | None = None

    @property
    def shown(self) -> str:
        """The input for a message: its position, and its name if it has one."""
        return f"input {self.index} '{self.name}'" if self.name else f"input {self.index} (unnamed)"

    @property
    def is_float(self) -> bool:
        """It holds floating-point numbers."""
        return self.dtype[0] == "f" or self.dtype == "bf16"


@dataclass(slots=True)
class PaddingFacts:
    """Whether what stands in padded positions can reach an output: ``safe``, ``leaks``, ``unknown`` or ``n/a``.

    Attributes:
        right: when rows are padded on the right.
        left: when rows are padded on the left.
    """

    right: str = "n/a"
    left: str = "n/a"


@dataclass(slots=True)
class OutputFacts:
    """One graph output.

    Attributes:
        index, name, dtype, shape, line: as for inputs.
        padding: does what stands in padded positions reach real positions of this output, or any of a pooled output?
        batch: ``independent``, ``mixes`` or ``unknown``.
        depends_on: roles of the inputs on which its values depend.
        sequence_axis: the axis that runs over positions, or None for a pooled output.
        constant: it depends on no input.
        scale_right, scale_left: padding reaches it through a quantisation scale only.
        length_right: a pooled output depends on how much padding there is although it reads no padded content.
        witness_right, witness_left: shortest chain from the padded input positions to the first operator at which they
            reach a real position or a pooled value, as the file names them.
        cause_right, cause_left: what lets padding through: ``attention``, ``pooling``, ``convolution``, ``recurrence``,
            ``selection`` (one position is read, which padding may occupy), ``normalisation``, ``running-sum``,
            ``quantiser-scale``,
            ``positions-from-ids`` (positions are counted over ids that are not the padding id), ``other``, or empty.
        unmodelled: operators without a transfer function that this output depends on.
        finite: it is not NaN where an ordinary right-padded batch goes in.
        rows_by_scale: rows depend on one another through a quantisation scale.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    padding: PaddingFacts = field(default_factory=PaddingFacts)
    batch: str = "unknown"
    depends_on: tuple[str, ...] = ()
    sequence_axis: int | None = None
    constant: bool = False
    scale_right: bool = False
    scale_left: bool = False
    length_right: bool = False
    witness_right: tuple[str, ...] = ()
    witness_left: tuple[str, ...] = ()
    cause_right: str = ""
    cause_left: str = ""
    unmodelled: tuple[str, ...] = ()
    finite: bool = True
    rows_by_scale: bool = False
    line: int | None = None

    @property
    def pooled(self) -> bool:
        """It has no axis over positions."""
        return self.sequence_axis is None


@dataclass(slots=True)
class SiteFacts:
    """One attention site: a softmax over scores, or a fused attention operator.

    Attributes:
        place: the operator.
        kind: ``self``, ``cross``, or ``pooling`` (one learned query sums up the sequence).
        keys: role of the input whose positions the keys stand for: ``ids``, ``encoder_states``, ``pixels``...
        causal: no query hears a later key.
        mask_inputs: names of the inputs from which the padding mask of this site is computed (the ids, when the graph
            compares them with the padding id).
        mask: what the padding mask does here: ``effective`` (padded keys get no weight), ``absent``, ``constant`` (there
            is a bias, but it is the same whatever the inputs are), ``inverted``, ``noop``, ``weak``, ``query-axis``,
            ``not-finite`` or ``unknown``.
        polarity: ``keep1`` (1 keeps), ``keep0`` or empty.
        fill: the value that padded keys get before the softmax, or None when it is not known.
        fill_dtype: the element type that the graph holds it in.
        fully_masked: what a row without any real position yields: ``uniform``, ``nan``, ``zero`` or ``unknown``.
        heard_right, heard_left: padded keys are heard by real queries under right and left padding:
            ``hidden``, ``heard`` or ``unknown``.
        needs_mask: its keys may be padded at all.
        quantised: a quantiser stands on the biased scores, with a step too coarse for the scores.
        queries, key_count: the shape in which ``matrix`` was taken.
        matrix: who hears whom in the right-padded row: one string per query, ``#`` for a key that is heard, ``.`` for
            one that is not.
        padded_queries, padded_keys: which queries and keys of ``matrix`` are padding: ``#`` for padding, ``.`` for none.
        spoilt_right, spoilt_left: what it reads holds padded content at real positions already, under that padding.
    """

    place: Place
    kind: str = "self"
    keys: str = ""
    causal: bool = False
    mask_inputs: tuple[str, ...] = ()
    mask: str = "unknown"
    polarity: str = ""
    fill: float | None = None
    fill_dtype: str = ""
    fully_masked: str = "unknown"
    heard_right: str = "unknown"
    heard_left: str = "unknown"
    needs_mask: bool = True
    quantised: bool = False
    matrix: tuple[str, ...] = ()
    padded_queries: str = ""
    padded_keys: str = ""
    spoilt_right: bool = False
    spoilt_left: bool = False


@dataclass(slots=True)
class AttentionFacts:
    """All attention sites together.  The counts cover the sites whose keys may be padded.

    Attributes:
        total: attention sites of any kind.
        maskable: sites whose keys may be padded.
        effective, absent, constant, inverted, noop, weak, query_axis, not_finite, unknown: maskable sites by what their
            padding mask does.
        heard_right, heard_left: maskable sites at which real queries hear padded keys under that padding.
        nan_when_fully_masked: sites at which a row without any real position yields NaN.
        quantised: sites with a quantiser on the biased scores.
        causal: sites that are causal.
        pooling_heard: attention-pooling sites that hear padded positions.
        cross_heard: cross-attention sites that hear padded positions of the other sequence.
        unmasked_names: names of the maskable sites that hear padded keys, at most three, then a count.
        sites: each site.
    """

    total: int = 0
    maskable: int = 0
    effective: int = 0
    absent: int = 0
    constant: int = 0
    inverted: int = 0
    noop: int = 0
    weak: int = 0
    query_axis: int = 0
    not_finite: int = 0
    unknown: int = 0
    heard_right: int = 0
    heard_left: int = 0
    nan_when_fully_masked: int = 0
    quantised: int = 0
    causal: int = 0
    pooling_heard: int = 0
    cross_heard: int = 0
    unmasked_names: str = ""
    sites: list[SiteFacts] = field(default_factory=list)


@dataclass(slots=True)
class MaskFacts:
    """The padding mask of the model's main sequence.

    Attributes:
        name: the input that carries it; empty when none does.
        input: its index, or None.
        shown: the input for a message.
        basis: on what its role rests, as for inputs.
        sites_text: at how many attention sites it acts, in words.
        from_ids: it is computed inside, by comparing ids with ``pad_id``.
        pad_id: the id with which the graph compares.
        lengths: it is given as lengths.
        polarity: ``keep1``, ``keep0`` or empty.
        name_polarity: the polarity that the input's name promises, or empty.
        reaches_scores: it acts on the scores of at least one attention site.
        used_elsewhere: it reaches an output, but not through attention scores.
        fill: the value that padded keys get.
        fill_dtype: its element type.
    """

    name: str = ""
    input: int | None = None
    shown: str = ""
    basis: str = ""
    sites_text: str = ""
    from_ids: bool = False
    pad_id: int | None = None
    lengths: bool = False
    polarity: str = ""
    name_polarity: str = ""
    reaches_scores: bool = False
    used_elsewhere: bool = False
    fill: float | None = None
    fill_dtype: str = ""


@dataclass(slots=True)
class EmbeddingFacts:
    """One table that is read at integer indices.

    Attributes:
        place: the lookup.
        table: name of the constant.
        rows, width: its shape.
        kind: ``token``, ``segment``, ``position``, ``bbox`` or ``other``.
        index_from: ``input``, ``constant``, ``range`` (0, 1, 2, ... whatever the padding is), ``mask`` or ``ids``
            (counted from them) or ``unknown``.
        index_input: index of the graph input, when ``index_from`` is ``input``.
        constant_index: the one index at which it is always read, when it is one.
        first_index: the index of the first real position, where indices are positions.
        other_sequence: it is read at as many positions however many tokens there are: those of an image's patches, say.
        distinct_rows: its rows differ, so that which one is read matters.
    """

    place: Place
    table: str
    rows: int
    width: int
    kind: str = "other"
    index_from: str = "unknown"
    index_input: int | None = None
    constant_index: int | None = None
    first_index: int = 0
    other_sequence: bool = False
    distinct_rows: bool = False


@dataclass(slots=True)
class ReductionFacts:
    """A place where positions of a sequence are joined into one value, outside attention.

    Attributes:
        place: the operator.
        kind: ``mean``, ``sum``, ``max``, ``min``, ``norm``, ``weighted``, or for a lookup of one position ``first`` (also the
            first real one, wherever it stands), ``last``, ``position`` (another fixed one) or ``counted`` (from the inputs).
        masked: padded positions have no share in it under right padding.
        divisor: of a mean: ``mask`` (number of real positions), ``length`` (padded length), ``none`` or ``unknown``.
        divisor_guarded: the divisor can't become zero.
        outputs: names of the graph outputs that it reaches.
        leaks_right, leaks_left: it lets padded content into its result.
    """

    place: Place
    kind: str
    masked: bool = False
    divisor: str = "none"
    divisor_guarded: bool = True
    outputs: tuple[str, ...] = ()
    leaks_right: bool = False
    leaks_left: bool = False


@dataclass(slots=True)
class SequenceFacts:
    """The token sequence that may be padded.

    Attributes:
        role: role of the input that carries it; empty when the model has none.
        length: the declared length, a number, a symbol or None.
        static: the length is fixed.
        one_input_only: no other input could carry a mask.
        runs: the graph executes at lengths and batch sizes other than the traced ones.
        failed_length: a length that its declared shape allows and at which an operator refuses to run.
        failed_at: that operator.
        accepted_length: a length at which it runs instead.
        max_length: rows of the position table, or None.
    """

    role: str = ""
    length: int | str | None = None
    static: bool = False
    one_input_only: bool = False
    runs: bool = True
    failed_length: int | None = None
    failed_at: str = ""
    accepted_length: int | None = None
    max_length: int | None = None


@dataclass(slots=True)
class BatchFacts:
    """The batch axis.

    Attributes:
        size: declared size, a number, a symbol or None.
        static: it is fixed.
        failed: a batch size that the declared shapes allow and at which an operator refuses to run.
        failed_at: that operator.
        accepted: a batch size at which it runs instead.
        disagreeing: inputs whose declared axes contradict their siblings', in words.
    """

    size: int | str | None = None
    static: bool = False
    failed: int | None = None
    failed_at: str = ""
    accepted: int | None = None
    disagreeing: tuple[str, ...] = ()


@dataclass(slots=True)
class ContradictionFacts:
    """Something that a companion, a contract or a reference says otherwise than the graph.

    Attributes:
        rule: id of the rule that reports it.
        text: one sentence, which names the file that says so; sentences alike but for numbers are joined.
    """

    rule: str
    text: str


@dataclass(slots=True)
class ExpectationFacts:
    """What companions of the model (tokenizer, config, serving files, a contract, a reference) say it should be.

    Attributes:
        sources: the files that were read.
        reads_images: what a decoder attends to stands for the patches of an image, which nobody pads.
        input_names: names that the caller's tokenizer or processor emits; empty when nothing says.
        pads: ``right``, ``left`` or empty when nothing says.
        pads_said: which file says so, and what it says; empty when nothing says.
        wants_mask: True, False, or None when nothing says.
        mask_said: which file says so, and what it says.
        wants_segments: likewise.
        segments_said: which file says so, and what it says.
        architecture: class name from the config, such as ``BertForQuestionAnswering``.
        model_type: ``model_type`` of the config.
        pair_task: two texts per row are usual (question answering, reranking); None when nothing says.
        single_text: a single-sentence embedder; None when nothing says.
        task_said: which file says that it is one of the two, and how.
        pooling: ``mean``, ``cls``, ``max``, ``lasttoken``... or empty.
        pad_id: ``pad_token_id``, or None.
        max_length: the longest text that the tokenizer lets through, or None.
        length_said: which file says so, and what it says.
        type_vocab_size: rows that the segment table should have, or None.
        mismatches: contradictions between the companions and the graph, one sentence each, by rule id.
    """

    sources: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    reads_images: bool = False
    pads: str = ""
    pads_said: str = ""
    wants_mask: bool | None = None
    mask_said: str = ""
    wants_segments: bool | None = None
    segments_said: str = ""
    architecture: str = ""
    model_type: str = ""
    pair_task: bool | None = None
    single_text: bool | None = None
    task_said: str = ""
    pooling: str = ""
    pad_id: int | None = None
    max_length: int | None = None
    length_said: str = ""
    type_vocab_size: int | None = None
    mismatches: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def contradictions(self) -> list[ContradictionFacts]:
        """The mismatches one by one, those that say the same of every layer or head as one."""
        found = []
        for rule, sentences in self.mismatches.items():
            alike: dict[str, list[str]] = {}
            for sentence in sentences:
                alike.setdefault(_COUNTED.sub(_without_numbers, sentence), []).append(sentence)
            for first, *others in alike.values():
                more = f" (and {len(others)} more like it)" if others else ""
                found.append(ContradictionFacts(rule, first + more))
        return found


_COUNTED = re.compile(r"\b(?:in|out)put [0-9]+|'[^']*'")


def _without_numbers(name: re.Match[str]) -> str:
    return re.sub(r"[0-9]+", "#", name[0])


@dataclass(slots=True)
class FileFacts:
    """The file.

    Attributes:
        path: as given.
        format: ``onnx`` or ``openvino-ir``.
        problem: id of the file rule that is met, one fact per problem.
        message: what is wrong and what to do.
        line: XML line.
        subject: tensor, node or file that it is about.
    """

    path: str
    format: str = ""
    problem: str = ""
    message: str = ""
    line: int | None = None
    subject: str = ""


_FED = ("ids", "mask", "segment", "position")


@dataclass(slots=True)
class ModelFacts:
    """Everything about one model.

    Attributes:
        path: the file, as it was given.
        format: ``onnx`` or ``openvino-ir``.
        producer, producer_version: the program that wrote it, by its own word.
        opsets: version by domain.
        ir_version: version of the file format.
        operators: number of canonical operators, subgraphs included.
        inputs, outputs, embeddings, reductions: one entry each, in the file's order.
        attention, mask, sequence, batch, expect: the parts that stand under their own names too.
        decoder_only: causal self-attention over ids.
        precision: ``fp32``, ``fp16``, ``bf16``, ``int8`` or ``mixed``: what the graph computes in.
        executed: the shadow run came to the end under right padding.
        stopped_at: where it did not, in words.
        unmodelled: operators without a transfer function, by the file's name for them.
        problems: what is wrong with the file itself.
    """

    path: str
    format: str
    producer: str = ""
    producer_version: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    ir_version: int = 0
    operators: int = 0
    inputs: list[InputFacts] = field(default_factory=list)
    outputs: list[OutputFacts] = field(default_factory=list)
    attention: AttentionFacts = field(default_factory=AttentionFacts)
    mask: MaskFacts = field(default_factory=MaskFacts)
    embeddings: list[EmbeddingFacts] = field(default_factory=list)
    reductions: list[ReductionFacts] = field(default_factory=list)
    sequence: SequenceFacts = field(default_factory=SequenceFacts)
    batch: BatchFacts = field(default_factory=BatchFacts)
    expect: ExpectationFacts = field(default_factory=ExpectationFacts)
    decoder_only: bool = False
    precision: str = "fp32"
    executed: bool = False
    stopped_at: str = ""
    unmodelled: tuple[str, ...] = ()
    problems: list[FileFacts] = field(default_factory=list)

    def roles(self) -> set[str]:
        """The roles that its inputs have."""
        return {entry.role for entry in self.inputs if not entry.weight}

    @property
    def shell_path(self) -> str:
        """The file as an argument on a command line, in quotes where it needs them."""
        return shell_word(self.path)

    @property
    def fixed_path(self) -> str:
        """A name for a mended copy of the file, as an argument on a command line."""
        name = self.path.replace("\\", "/").rsplit("/", 1)[-1]
        stem, dot, suffix = name.rpartition(".")
        return shell_word(f"{stem}.fixed.{suffix}" if dot else f"{name}.fixed")

    @property
    def order(self) -> tuple[str, ...]:
        """The roles of the token-level inputs, in the order in which a caller would feed them by position."""
        return tuple(entry.role for entry in self.inputs if entry.role in _FED)

    @property
    def in_order(self) -> bool:
        """Token-level inputs come in the order of the ``forward`` methods: ids, mask, segments, positions; without ids there
        is no such order.
        """
        ranks = [_FED.index(role) for role in self.order]
        return "ids" not in self.order or ranks == sorted(ranks)

    @property
    def ids_dtype(self) -> str:
        """Element type of the token ids; empty when no input carries them."""
        return next((entry.dtype for entry in self.inputs if entry.role == "ids"), "")

    @property
    def all_constant(self) -> bool:
        """It has inputs and outputs, and no output depends on any input."""
        return bool(self.inputs) and bool(self.outputs) and all(output.constant for output in self.outputs)

    @property
    def gives_sizes(self) -> bool:
        """Every output holds integers: sizes perhaps, which may well be constant."""
        return all(output.dtype[0] in "iu" and output.dtype != "unknown" for output in self.outputs)

    @property
    def leaks(self) -> tuple[str, ...]:
        """Names of the outputs that padding reaches on the side on which callers pad."""
        side = "left" if self.expect.pads == "left" else "right"
        return tuple(
            output.name
            for output in self.outputs
            if getattr(output.padding, side) == "leaks" and not getattr(output, f"scale_{side}")
        )

    @property
    def first_leak(self) -> int | None:
        """Index of the first output that padding reaches under right padding."""
        return next(
            (output.index for output in self.outputs if output.padding.right == "leaks" and not output.scale_right), None
        )

    @property
    def left_only(self) -> tuple[str, ...]:
        """Names of the outputs that padding reaches when it stands on the left, and not when it stands on the right."""
        return tuple(
            output.name
            for output in self.outputs
            if output.padding.left == "leaks"
            and (output.padding.right != "leaks" or output.scale_right)
            and output.cause_left not in ("positions-from-ids", "quantiser-scale")
        )

    @property
    def right_witness(self) -> tuple[str, ...]:
        """The chain by which right padding reaches the first output that it reaches."""
        return next((output.witness_right for output in self.outputs if output.witness_right), ())

    @property
    def left_witness(self) -> tuple[str, ...]:
        """The chain by which left padding reaches the first output that it reaches."""
        return next((output.witness_left for output in self.outputs if output.witness_left), ())

    @property
    def position_tables(self) -> list[EmbeddingFacts]:
        """The tables of the tokens' positions."""
        return [entry for entry in self.embeddings if entry.kind == "position" and not entry.other_sequence]

    @property
    def absolute_positions(self) -> bool:
        """A position table is read at 0, 1, 2, ... whatever the padding is."""
        return any(entry.index_from == "range" for entry in self.position_tables)

    @property
    def embeds(self) -> bool:
        """It looks like an embedder of single texts: it averages over its tokens and returns nothing per token, or takes
        two texts apart.
        """
        averages = any(entry.kind in ("mean", "weighted", "sum") for entry in self.reductions)
        pooled = bool(self.outputs) and all(output.pooled for output in self.outputs)
        texts = sum(1 for entry in self.inputs if entry.role == "ids")
        return (averages and pooled) or texts > 1

    @property
    def usable_length(self) -> int | None:
        """The longest row that the position table has places for, or None without such a table."""
        return min((entry.rows - entry.first_index for entry in self.position_tables), default=None)


ENTITIES: dict[str, type[Any]] = {
    "input": InputFacts,
    "output": OutputFacts,
    "attention": SiteFacts,
    "embedding": EmbeddingFacts,
    "reduction": ReductionFacts,
    "contradiction": ContradictionFacts,
    "model": ModelFacts,
    "file": FileFacts,
}
"""The kinds of fact a rule may be ``for``.

In a condition the entity stands under its own kind's name.  Besides it these names are always there: ``model``, and its
parts ``mask``, ``sequence``, ``batch`` and ``expect``; and ``attention`` (an :class:`AttentionFacts`) except in a rule
for single attention sites.  A rule for ``file`` sees ``file`` alone.
"""


def to_dict(facts: Any) -> Any:
    """Facts as plain dicts, lists, strings and numbers, ready for JSON."""
    if dataclasses.is_dataclass(facts) and not isinstance(facts, type):
        return {item.name: to_dict(getattr(facts, item.name)) for item in dataclasses.fields(facts)}
    if isinstance(facts, dict):
        return {str(key): to_dict(value) for key, value in facts.items()}
    if isinstance(facts, (list, tuple, set)):
        return [to_dict(value) for value in facts]
    return facts
