"""Facts for people and for programs."""

from __future__ import annotations

import json
import math
import textwrap
from typing import TYPE_CHECKING, Any

from wirelint._version import __version__
from wirelint.facts import InputFacts, ModelFacts, OutputFacts, to_dict
from wirelint.findings import ModelReport
from wirelint.printable import printable
from wirelint.report.common import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["json_document", "text_pages"]


def json_document(models: Sequence[ModelFacts]) -> str:
    """One JSON document with every fact of every model."""
    document = {
        "schema": "wirelint-facts/1",
        "tool": {"name": "wirelint", "version": __version__},
        "models": [_finite(to_dict(facts)) for facts in models],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN, and fill values are often one: they become the texts ``-inf``, ``inf``, ``nan``."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def text_pages(models: Sequence[ModelFacts]) -> str:
    """The facts that people ask for most, one page per model."""
    return "\n".join("".join(f"{line}\n" for line in _page(facts)) for facts in models)


def _page(facts: ModelFacts) -> Iterator[str]:
    yield f"{printable(facts.path)}  {describe(ModelReport(facts.path, format=facts.format, facts=facts))}"
    if facts.producer:
        producer = f"{facts.producer} {facts.producer_version}".strip()
        yield f"  written by {printable(producer, 80)}, computes in {facts.precision}"
    yield "  inputs"
    for entry in facts.inputs:
        if not entry.weight:
            yield from _input(entry)
    yield "  outputs"
    for output in facts.outputs:
        yield from _output(output)
    yield from _attention(facts)
    for embedding in facts.embeddings:
        index = "" if embedding.constant_index is None else f" {embedding.constant_index}"
        yield f"  {embedding.kind} table of {embedding.rows} rows, indexed by {embedding.index_from}{index}"
    for reduction in facts.reductions:
        masked = "masked" if reduction.masked else "not masked"
        yield f"  {reduction.kind} over positions at {printable(str(reduction.place), 80)}, {masked}"
    if facts.stopped_at:
        yield f"  not executed to the end: {printable(facts.stopped_at, 160)}"
    if facts.unmodelled:
        yield f"  operators that are not modelled: {printable(', '.join(facts.unmodelled), 160)}"
    for problem in facts.problems:
        yield f"  {problem.problem}: {printable(problem.message, 200)}"


def _input(entry: InputFacts) -> Iterator[str]:
    name = printable(entry.name, 60) or "(unnamed)"
    default = ", has a default" if entry.has_default else ""
    yield f"    {entry.index}  {name}  {entry.dtype}{_shape(entry.shape)}: {entry.role} ({entry.confidence:.0%}){default}"
    for reason in entry.evidence:
        yield from textwrap.wrap(printable(f"{'not ' if reason.against else ''}{reason.speaks_for}: {reason.text}", 300), 110,
                                 initial_indent=" " * 9, subsequent_indent=" " * 11)  # fmt: skip


def _output(output: OutputFacts) -> Iterator[str]:
    name = printable(output.name, 60) or "(unnamed)"
    yield f"    {output.index}  {name}  {output.dtype}{_shape(output.shape)}"
    depends = ", ".join(output.depends_on) or "nothing"
    padding = f"padding right {output.padding.right}, left {output.padding.left}"
    yield f"         depends on {depends}; {padding}; batch {output.batch}"


def _attention(facts: ModelFacts) -> Iterator[str]:
    attention = facts.attention
    if not attention.total:
        return
    kinds = ("effective", "absent", "constant", "inverted", "noop", "weak", "query_axis", "not_finite", "unknown")
    said = ", ".join(f"{getattr(attention, kind)} {kind.replace('_', ' ')}" for kind in kinds if getattr(attention, kind))
    yield f"  {attention.total} attention sites, {attention.causal} causal; padding mask: {said or 'not needed'}"


def _shape(shape: tuple[int | str | None, ...] | None) -> str:
    if shape is None:
        return ""
    return printable(f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]", 80)
