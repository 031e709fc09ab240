"""Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.findings import Finding, ModelReport, Report, Severity
from wirelint.paragraphs import blocks
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, counted, describe, summary_line, verdict_line

__all__ = ["render"]

_SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.NOTE: "🔵"}
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&!]")


def render(report: Report, options: RenderOptions) -> str:
    """A summary, then the findings by model, explanations folded away."""
    counts = report.counts()
    counted_all = ", ".join(counted(number, severity.value) for severity, number in counts.items() if number)
    lines = [f"### wirelint: {counted_all or 'nothing found'}", ""]
    for model in report.models:
        if model.findings or model.fault or options.verbose:
            lines.extend(_model(model, options))
    for entry in report.stale:
        lines.append(f"- nothing to suppress any more: `{entry.rule}` in {_code(entry.path)} ({_code(entry.source)})")
    if report.stale:
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
    place = "" if line is None else f" (line {line})"
    yield f"- {_SIGNS[finding.severity]} **{finding.severity}** `{finding.rule}` {finding.code}: {_escape(finding.message)}{place}"
    if options.quiet:
        return
    known = [*([" > ".join(finding.trace)] if finding.trace else []), *finding.evidence]
    yield ""
    yield "  <details><summary>how we know, why it matters, how to mend it</summary>"
    yield ""
    for text in known:
        yield f"  - {_escape(text)}"
    yield ""
    yield f"  {_escape(finding.why)}"
    yield ""
    in_code = False
    for block, is_code in blocks(finding.fix):
        if is_code != in_code:
            yield "  ```" if in_code else "\n  ```console"
        in_code = is_code
        yield f"  {block.replace('```', '')}" if is_code else f"  {_escape(block)}\n"
    if in_code:
        yield "  ```"
    yield ""
    yield "  </details>"
    yield ""


def _escape(text: str) -> str:
    """Text in which nothing is markup, and nobody is mentioned and no issue linked."""
    escaped = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text)
    # Mentions, issue numbers and addresses are looked for after the markup was read: a space of no width parts them.
    return re.sub(r"([@#](?=\w)|://|(?<=www)\.)", "\\1\u200b", escaped.replace("&#", "\0")).replace("\0", "&#")


def _code(text: str) -> str:
    """Text as code; a backtick in it would end the span."""
    return f"`{printable(text).replace('`', chr(39))}`"
