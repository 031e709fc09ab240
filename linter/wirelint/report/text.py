"""The report for people."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from wirelint.findings import Finding, ModelReport, Report, Severity, Suppressed
from wirelint.paragraphs import reflow
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, counted, describe, known_lines, summary_line, verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["render"]

_COLORS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36"}
_BOLD, _DIM = "1", "2"
_SEVERITY_WIDTH = 9
_LABEL_WIDTH = 22


def render(report: Report, options: RenderOptions) -> str:
    """Findings by file, each error and warning with how we know, why it matters and how to mend it; then one line that sums
    up.
    """
    lines: list[str] = []
    for model in report.models:
        if _worth_showing(model, options):
            lines.extend(_model(model, options))
            lines.append("")
    lines.extend(_stale(report, options))
    if options.verbose:
        lines.extend(f"passed over: {printable(path)} ({printable(reason)})" for path, reason in report.passed_over)
    if options.statistics:
        lines.extend(_statistics(report))
    lines.append(_paint(summary_line(report) if report.models else _nothing(report), _BOLD, options))
    return "\n".join(lines) + "\n"


def _nothing(report: Report) -> str:
    passed = f" ({counted(len(report.passed_over), 'file')} passed over)" if report.passed_over else ""
    return f"no model file among the paths{passed}"


def _worth_showing(model: ModelReport, options: RenderOptions) -> bool:
    return bool(options.verbose or model.findings or model.fault or (options.show_suppressed and model.suppressed))


def _model(model: ModelReport, options: RenderOptions) -> Iterator[str]:
    yield f"{_paint(printable(model.path), _BOLD, options)}  {describe(model)}"
    if model.fault:
        label = _paint("fault".ljust(_SEVERITY_WIDTH), _COLORS[Severity.ERROR], options)
        first, *rest = reflow(printable(model.fault), _room(options, 0)) or [""]
        yield f"  {label}{first}"
        yield from (" " * (2 + _SEVERITY_WIDTH) + text for text in rest)
    if options.verbose and model.facts is not None:
        yield from _inputs(model)
    for finding, following in itertools.zip_longest(model.findings, model.findings[1:]):
        yield from _finding(finding, options, said_below=following is not None and _same_advice(finding, following))
    if options.show_suppressed:
        for entry in model.suppressed:
            yield from _suppressed(entry, options)
    if options.verbose and model.facts is not None and (verdict := verdict_line(model.facts)):
        yield f"  {verdict}"


def _inputs(model: ModelReport) -> Iterator[str]:
    for entry in model.facts.inputs if model.facts else ():
        if not entry.weight:
            yield f"  {entry.index}  {printable(entry.name, 60) or '(unnamed)'}: {entry.role} ({entry.confidence:.0%})"


def _same_advice(one: Finding, other: Finding) -> bool:
    return (one.rule, one.severity, one.why, one.fix) == (other.rule, other.severity, other.why, other.fix)


def _finding(finding: Finding, options: RenderOptions, *, said_below: bool) -> Iterator[str]:
    """A finding; why it matters and how to mend it stand once below several that share them."""
    severity = _paint(finding.severity.value.ljust(_SEVERITY_WIDTH), _COLORS[finding.severity], options)
    yield from _headed(severity, finding, options)
    if options.quiet or (finding.severity is Severity.NOTE and not options.verbose):
        return  # a note is one line; `wirelint explain` has the rest
    yield from _labelled("how we know", "\n\n".join(known_lines(finding)), options)
    if not said_below:
        yield from _labelled("why it matters", finding.why, options)
        yield from _labelled("mend", finding.fix, options)


def _headed(severity: str, finding: Finding, options: RenderOptions) -> Iterator[str]:
    """The rule's name and the message beside it."""
    name = f"{finding.rule} {finding.code}"
    line = finding.where.place.line
    place = f" (line {line})" if line is not None else ""
    label_width = max(len(name), _LABEL_WIDTH)
    first, *rest = reflow(finding.message + place, _room(options, label_width)) or [""]
    yield f"  {severity}{_paint(name, _BOLD, options)}{' ' * (label_width - len(name))}  {first}"
    yield from (" " * (2 + _SEVERITY_WIDTH + label_width + 2) + text for text in rest)


def _labelled(label: str, text: str, options: RenderOptions) -> Iterator[str]:
    for line in reflow(text, _room(options, _LABEL_WIDTH)):
        yield f"{' ' * (2 + _SEVERITY_WIDTH)}{_paint(label.ljust(_LABEL_WIDTH), _DIM, options)}  {line}".rstrip()
        label = ""


def _suppressed(entry: Suppressed, options: RenderOptions) -> Iterator[str]:
    finding = entry.finding
    label = _paint("quiet".ljust(_SEVERITY_WIDTH), _DIM, options)
    yield from _headed(label, finding, options)
    yield from _labelled(f"by {entry.by}", printable(f"{entry.reason} ({entry.source})"), options)


def _stale(report: Report, options: RenderOptions) -> Iterator[str]:
    for entry in report.stale:
        label = _paint("note", _COLORS[Severity.NOTE], options)
        reason = f" ({printable(entry.reason)})" if entry.reason else ""
        what = f"{printable(entry.rule)} in {printable(entry.path)}{reason}"
        yield f"{label}: {printable(entry.source)}: nothing to suppress any more: {what}"


def _statistics(report: Report) -> Iterator[str]:
    counts = Counter((finding.code, finding.rule) for _, finding in report.findings())
    for (code, rule), number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{number:6d}  {code}  {rule}"


def _room(options: RenderOptions, label_width: int) -> int:
    """Columns beside a label."""
    return max(options.width - (2 + _SEVERITY_WIDTH + label_width + 2), 40)


def _paint(text: str, code: str, options: RenderOptions) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if options.color and text.strip() else text
