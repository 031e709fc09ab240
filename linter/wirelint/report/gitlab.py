"""GitLab's code quality report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wirelint.findings import ModelReport, Report, fingerprint
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, relative_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["render"]

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report, options: RenderOptions) -> str:
    """A list of issues; GitLab wants a line, so a finding in a binary file has line 1."""
    del options  # the document is the same for everyone
    return json.dumps([issue for model in report.models for issue in _model(model)], indent=2) + "\n"


def _model(model: ModelReport) -> Iterator[dict[str, Any]]:
    path = relative_path(model.path)
    if model.fault:
        mark = fingerprint("wirelint-fault", model.relative, 0, "")
        yield _issue("wirelint-fault", printable(model.fault), "critical", path=path, line=1, mark=mark)
    for finding in model.findings:
        line = finding.where.place.line or 1
        severity = _SEVERITIES[finding.severity.value]
        text = f"{finding.code}: {finding.message}"
        yield _issue(finding.rule, text, severity, path=path, line=line, mark=finding.fingerprint)


def _issue(rule: str, description: str, severity: str, *, path: str, line: int, mark: str) -> dict[str, Any]:
    return {
        "description": description,
        "check_name": rule,
        "fingerprint": mark,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line}},
    }
