"""What can't be mended in the file: how to export it anew, and how to feed it until then, as code for this very model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import InputFacts, ModelFacts
    from wirelint.fix.plan import Plan

__all__ = ["Advice", "advice_for"]

_TOKENS = frozenset({"ids", "decoder_ids", "mask", "decoder_mask", "segment", "position"})
_ONE_OPEN_AXIS = frozenset({"pixels", "features"})
_SPOKEN = {"mask": "attention_mask", "segment": "token_type_ids"}


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about the rest.

    Attributes:
        reasons: what can't be mended in the file, one line each.
        export: the export call that mends it, or empty when nothing asks for one.
        feeding: how to feed the file as it is, by position.
    """

    reasons: tuple[str, ...]
    export: str
    feeding: str


def advice_for(facts: ModelFacts, plan: Plan) -> Advice:
    """What a plan leaves undone, and what to do about it."""
    inputs = [entry for entry in facts.inputs if not entry.weight]
    names = {entry.index: entry.name for entry in inputs} | {entry.index: entry.new for entry in plan.renames}
    missing = dict(_missing(facts))
    frozen = tuple(_frozen(facts))
    wrong = tuple(_wrong(facts))
    export = ""
    if missing or frozen or wrong:
        added = [_SPOKEN[role] for role in missing if _SPOKEN[role] not in names.values()]
        export = _export_code(facts, [names[entry.index] or f"input_{entry.index}" for entry in inputs] + added)
    return Advice((*plan.refused, *missing.values(), *frozen, *wrong), export, _feeding_code(facts, inputs, names))


# -- what is wrong ---------------------------------------------------------------------------------------------------------


def _missing(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    """Inputs that the model should have and has not, by role."""
    heard = facts.attention.heard_right - facts.attention.pooling_heard > 0
    dead = next((entry for entry in facts.inputs if entry.role == "mask" and not entry.used), None)
    if dead is not None and heard:
        yield "mask", f"{dead.shown} has no effect: the mask was folded into a constant during the export"
    elif heard and facts.mask.input is None and not facts.mask.from_ids and facts.expect.wants_mask is not False:
        yield "mask", "attention hears padding, and no input could carry a mask: it was left out of the export"
    if facts.expect.wants_segments is False or facts.expect.single_text or "segment" in facts.roles():
        return
    for table in facts.embeddings:
        if table.kind == "segment" and table.constant_index is not None and table.distinct_rows:
            yield (
                "segment",
                (
                    f"the segment table of {table.rows} rows is always read at row {table.constant_index}: "
                    "the segments were left out of the export"
                ),
            )
            return


def _frozen(facts: ModelFacts) -> Iterator[str]:
    """Sizes that the export fixed although the file declares them open."""
    if facts.sequence.failed_length is not None:
        yield f"the length is fixed inside the graph: {facts.sequence.failed_length} fails at {facts.sequence.failed_at}"
    if facts.batch.failed is not None:
        yield f"the batch size is fixed inside the graph: {facts.batch.failed} fails at {facts.batch.failed_at}"
    yield from facts.batch.disagreeing


def _wrong(facts: ModelFacts) -> Iterator[str]:
    """What the graph computes wrongly."""
    for reduction in facts.reductions:
        if reduction.kind in ("mean", "sum", "max") and reduction.leaks_right:
            yield f"{reduction.place} pools over padded positions: multiply by the mask first, or pool outside the model"
    for entry in facts.inputs:
        if entry.role == "mask" and entry.is_float and not entry.weight:
            yield f"{entry.shown} is {entry.dtype}, and tokenizers make i64: cast inside the model, or feed {entry.dtype}"


# -- code ------------------------------------------------------------------------------------------------------------------


def _export_code(facts: ModelFacts, names: Sequence[str]) -> str:
    """An export by which each input gets the name of its argument, in whatever order ``forward`` has them."""
    listed = ", ".join(map(json.dumps, names))
    example = f"example = {{name: tokens[name] for name in [{listed}]}}  # two rows of different lengths, padded"
    if facts.format == "openvino-ir":
        return f"{example}\nopenvino.save_model(openvino.convert_model(model, example_input=example), OUT)"
    axes = "{0: open_}" if facts.sequence.role in _ONE_OPEN_AXIS else "{0: open_, 1: open_}"
    return "\n".join(
        [
            example,
            "open_ = torch.export.Dim.DYNAMIC",
            "torch.onnx.export(",
            f"    model, kwargs=example, f=OUT, dynamo=True, dynamic_shapes=dict.fromkeys(example, {axes})",
            ")",
        ]
    )


def _feeding_code(facts: ModelFacts, inputs: Sequence[InputFacts], names: dict[int, str]) -> str:
    """The model fed by position; what the caller's tokenizer does not make is made here."""
    path = json.dumps(facts.path.replace("\\", "/").rsplit("/", 1)[-1])
    values = {entry.index: _value(entry, names[entry.index], facts) for entry in inputs}
    if facts.format == "openvino-ir":
        head = [f"compiled = openvino.Core().compile_model({path})", "outputs = compiled({"]
        return "\n".join([*head, *(f"    {index}: {value}," for index, value in values.items()), "})"])
    head = [
        f"session = onnxruntime.InferenceSession({path})",
        "names = [entry.name for entry in session.get_inputs()]",
        "outputs = session.run(None, {",
    ]
    # ONNX Runtime lists optional inputs apart, so that positions count the required ones.
    required = [entry for entry in inputs if not entry.has_default]
    lines = [f"    names[{at}]: {values[entry.index]}," for at, entry in enumerate(required)]
    lines += [f"    {json.dumps(entry.name)}: {values[entry.index]}," for entry in inputs if entry.has_default]
    return "\n".join([*head, *lines, "})"])


def _value(entry: InputFacts, name: str, facts: ModelFacts) -> str:
    ids = next((json.dumps(made) for made in facts.expect.input_names if made.endswith("input_ids")), '"input_ids"')
    unmade = bool(facts.expect.input_names) and name not in facts.expect.input_names
    if entry.role == "segment" and (unmade or entry.table_rows == 1):
        return f"numpy.zeros_like(tokens[{ids}])"
    if entry.role == "position" and unmade:
        return 'numpy.maximum(tokens["attention_mask"].cumsum(-1) - 1, 0)'
    value = f"tokens[{json.dumps(name)}]" if entry.role in _TOKENS else f"inputs[{json.dumps(name or str(entry.index))}]"
    return f'{value}.astype("float32")' if entry.role == "mask" and entry.dtype == "f32" else value
