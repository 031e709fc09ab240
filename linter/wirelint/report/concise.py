"""One line per finding, as compilers print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.findings import ModelReport, Report
    from wirelint.report.common import RenderOptions

__all__ = ["render"]


def render(report: Report, options: RenderOptions) -> str:
    """``path:line: severity CODE rule message``; without the line for a binary file."""
    return "".join(f"{line}\n" for model in report.models for line in _model(model, options))


def _model(model: ModelReport, options: RenderOptions) -> Iterator[str]:
    path = printable(model.path)
    if model.fault:
        yield f"{path}: fault: {printable(model.fault)}"
    for finding in model.findings:
        line = finding.where.place.line
        place = path if line is None else f"{path}:{line}"
        yield f"{place}: {finding.severity} {finding.code} {finding.rule} {finding.message}"
    for entry in model.suppressed if options.show_suppressed else ():
        finding = entry.finding
        yield f"{path}: suppressed {finding.code} {finding.rule} {finding.message} (by {entry.by}: {printable(entry.reason)})"
