"""The report as one page for a browser.

It asks nothing of anybody: no script, no font, no picture from outside; it works from a disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint._version import __version__
from wirelint.findings import Severity
from wirelint.report.common import counted, describe, summary_line
from wirelint.report.page.markup import badge, table, text
from wirelint.report.page.model import section, tallied
from wirelint.report.page.style import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.findings import ModelReport, Report
    from wirelint.report.common import RenderOptions

__all__ = ["render"]

_UNFOLDED = 3
"""So many models are shown unfolded; of more, each unfolds at a click."""


def render(report: Report, options: RenderOptions) -> str:
    """A summary over all models, then each model with its findings and pictures."""
    del options  # the page folds what not everybody wants to see
    rules = {rule.id: rule for rule in report.rules}
    models = _worst_first(report.models)
    sections = "".join(section(model, rules, f"m{at}", opened=len(models) <= _UNFOLDED) for at, model in enumerate(models))
    counts = report.counts()
    title = ", ".join(counted(number, severity.value) for severity, number in counts.items() if number) or "nothing found"
    said = summary_line(report) if report.models else "No model file among the paths."
    summary = _summary(models) if len(models) > 1 else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="generator" content="wirelint {__version__}"><title>wirelint: {text(title)}</title>'
        f"<style>{style()}</style></head>\n"
        '<body><a class="skip" href="#models">Skip to the models</a>'
        f"<header><h1>wirelint: {text(title)}</h1><p>{text(said)}</p></header>\n"
        f'<main id="models">{summary}{sections}{_passed_over(report)}</main>\n'
        f"<footer><p>wirelint {__version__}. A file is read, not run; <code>wirelint verify</code> runs it.</p></footer>"
        "</body></html>\n"
    )


def _worst_first(models: Sequence[ModelReport]) -> list[ModelReport]:
    """Those that could not be checked, then by how many errors, warnings and notes there are; else in the order given."""

    def weight(model: ModelReport) -> list[int]:
        counts = [sum(finding.severity is severity for finding in model.findings) for severity in Severity]
        return [-bool(model.fault), *(-number for number in counts)]

    return sorted(models, key=weight)


def _summary(models: Sequence[ModelReport]) -> str:
    rows = [_row(model, f"m{at}") for at, model in enumerate(models)]
    return f"<h2>Models</h2>{table(['model', 'findings', 'padded right', 'padded left', 'rows'], rows, 'All models')}"


def _row(model: ModelReport, key: str) -> list[str]:
    facts = model.facts
    padding = {
        side: _worst([getattr(output.padding, side) for output in facts.outputs] if facts else [], ("leaks", "unknown", "safe"))
        for side in ("right", "left")
    }
    batch = _worst([output.batch for output in facts.outputs] if facts else [], ("mixes", "unknown", "independent"))
    return [
        f'<a href="#{key}">{text(model.path)}</a><br><span class="dim">{text(describe(model))}</span>',
        tallied(model),
        *(badge(verdict or "na", verdict or "n/a") for verdict in (padding["right"], padding["left"], batch)),
    ]


def _worst(verdicts: list[str], order: tuple[str, ...]) -> str:
    return next((verdict for verdict in order if verdict in verdicts), "")


def _passed_over(report: Report) -> str:
    if not report.passed_over:
        return ""
    items = "".join(f"<li>{text(path)}: {text(reason)}</li>" for path, reason in report.passed_over)
    return f"<details><summary>{counted(len(report.passed_over), 'file')} passed over</summary><ul>{items}</ul></details>"
