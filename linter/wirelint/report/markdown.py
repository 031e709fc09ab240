"""Markdown, for a comment on a pull request."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from wirelint.findings import Finding, ModelReport, Report, Severity
from wirelint.paragraphs import blocks
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, counted, describe, known_lines, summary_line, verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["render"]

_SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.NOTE: "🔵"}
_SPAN = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&!]")


def render(report: Report, options: RenderOptions) -> str:
    """A summary, then the findings by model, explanations folded away."""
    counts = report.counts()
    counted_all = ", ".join(counted(number, severity.value) for severity, number in counts.items() if number)
    lines = [f"### wirelint: {counted_all or 'nothing found'}", ""]
    for model in report.models:
        if model.findings or model.fault or options.verbose:
            lines.extend(_model(model, options))
    if report.stale:
        lines.extend(
            f"- nothing to suppress any more: {_code(entry.rule)} in {_code(entry.path)} ({_code(entry.source)})"
            for entry in report.stale
        )
        lines.append("")
    lines.append(_escape(summary_line(report)) if report.models else "No model file among the paths.")
    return "\n".join(lines) + "\n"


def _model(model: ModelReport, options: RenderOptions) -> Iterator[str]:
    yield f"#### {_code(model.path)}"
    yield ""
    verdict = verdict_line(model.facts) if model.facts else ""
    yield _escape(describe(model)) + (f"; {_escape(verdict)}" if verdict else "")
    yield ""
    if model.fault:
        yield f"- ⚠️ not checked: {_escape(printable(model.fault))}"
    for finding in model.findings:
        yield from _finding(finding, options)
    yield ""


def _finding(finding: Finding, options: RenderOptions) -> Iterator[str]:
    line = finding.where.place.line
    rule = f"{_SIGNS[finding.severity]} **{finding.severity}** `{finding.rule}` {finding.code}"
    yield f"- {rule}: {_prose(finding.message)}{'' if line is None else f' (line {line})'}"
    if options.quiet:
        return
    yield ""
    yield "  <details><summary>how we know, why it matters, how to mend it</summary>"
    yield ""
    for text in known_lines(finding):
        yield f"  - {_prose(text)}"
    yield ""
    yield f"  {_prose(finding.why)}"
    yield ""
    for is_code, group in itertools.groupby(blocks(finding.fix), key=lambda block: block[1]):
        lines = [text for text, _ in group]
        yield from _code_block(lines) if is_code else (f"  {_prose(text)}\n" for text in lines)
    yield ""
    yield "  </details>"
    yield ""


def _code_block(lines: Iterable[str]) -> Iterator[str]:
    yield "  ```console"
    yield from (f"  {line.replace('```', '')}" for line in lines)
    yield "  ```\n"


def _escape(text: str) -> str:
    """Text in which nothing is markup, and nobody is mentioned and no issue linked."""
    escaped = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text)
    # Mentions, issue numbers and addresses are looked for after the markup was read: a space of no width parts them.
    return re.sub(r"([@#](?=\w)|://|(?<=www)\.)", "\\1\u200b", escaped.replace("&#", "\0")).replace("\0", "&#")


def _prose(text: str) -> str:
    """A rule's text, what stands between backticks as code; elements, as a name with a backtick in it can't end those."""
    parts = _SPAN.split(text)
    return "".join(f"<code>{_escape(part)}</code>" if at % 2 else _escape(part) for at, part in enumerate(parts))


def _code(text: str) -> str:
    """Text as code; a backtick in it would end the span."""
    return f"`{printable(text).replace('`', chr(39))}`"
