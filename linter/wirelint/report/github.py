"""Workflow commands that GitHub Actions shows as annotations of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.paragraphs import blocks
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, relative_path, summary_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.findings import Finding, ModelReport, Report

__all__ = ["render"]

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, options: RenderOptions) -> str:
    """One command per finding, then the summary as plain text for the log."""
    lines = [line for model in report.models for line in _model(model, options)]
    return "".join(f"{line}\n" for line in [*lines, summary_line(report)])


def _model(model: ModelReport, options: RenderOptions) -> Iterator[str]:
    if model.fault:
        yield _command("error", model.path, None, "wirelint could not check this file", printable(model.fault))
    for finding in model.findings:
        text = finding.message if options.quiet else _explained(finding)
        title = f"{finding.rule} {finding.code}"
        yield _command(_COMMANDS[finding.severity.value], model.path, finding.where.place.line, title, text)


def _explained(finding: Finding) -> str:
    mend = "\n".join(f"    {block}" if is_code else block for block, is_code in blocks(finding.fix))
    return f"{finding.message}\n\n{finding.why}\n\n{mend}"


def _command(name: str, path: str, line: int | None, title: str, text: str) -> str:
    properties = {"file": relative_path(path), **({} if line is None else {"line": str(line)}), "title": title}
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
