"""The report for programs: one JSON document, described by ``docs/report.schema.json``."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from wirelint._version import __version__
from wirelint.report.common import RenderOptions, tally

if TYPE_CHECKING:
    from wirelint.facts import InputFacts, OutputFacts
    from wirelint.findings import Finding, ModelReport, Report, Suppressed

__all__ = ["SCHEMA", "finding_object", "model_object", "render"]

SCHEMA = "wirelint-report/1"


def render(report: Report, options: RenderOptions) -> str:
    """One document for all models; names stand in it as they are, with JSON's own escapes."""
    del options  # the document is the same for everyone
    document = {
        "schema": SCHEMA,
        "tool": {"name": "wirelint", "version": __version__},
        "models": [model_object(model) for model in report.models],
        "summary": _summary(report),
    }
    return json.dumps(document, indent=2) + "\n"


def model_object(model: ModelReport) -> dict[str, Any]:
    """One model as the document has it."""
    facts = model.facts
    found: dict[str, Any] = {
        "path": model.path,
        "format": model.format,
        "status": model.status,
        "inputs": [_input(entry) for entry in facts.inputs] if facts else [],
        "outputs": [_output(entry) for entry in facts.outputs] if facts else [],
        "findings": [finding_object(finding) for finding in model.findings],
        "suppressed": [_suppressed(entry) for entry in model.suppressed],
        "seconds": round(model.seconds, 4),
    }
    if model.fault:
        found["fault"] = model.fault
    if facts:
        found["unmodelled"] = list(facts.unmodelled)
    return found


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding as the document has it."""
    place = finding.where.place
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "where": {
            "kind": finding.where.kind,
            "index": finding.where.index,
            "name": place.name,
            "op_type": place.op_type,
            "line": place.line,
            "scope": list(place.scope),
        },
        "evidence": list(finding.evidence),
        "trace": list(finding.trace),
        "why": finding.why,
        "fix": finding.fix,
        "fingerprint": finding.fingerprint,
    }


def _suppressed(entry: Suppressed) -> dict[str, Any]:
    return {**finding_object(entry.finding), "by": entry.by, "reason": entry.reason, "source": entry.source}


def _input(entry: InputFacts) -> dict[str, Any]:
    return {
        "index": entry.index,
        "name": entry.name or None,
        "role": entry.role,
        "confidence": round(entry.confidence, 4),
        "dtype": entry.dtype,
        "shape": None if entry.shape is None else list(entry.shape),
        "weight": entry.weight,
    }


def _output(entry: OutputFacts) -> dict[str, Any]:
    return {
        "index": entry.index,
        "name": entry.name,
        "dtype": entry.dtype,
        "shape": None if entry.shape is None else list(entry.shape),
        "padding": {"right": entry.padding.right, "left": entry.padding.left},
        "batch": entry.batch,
        "depends_on": list(entry.depends_on),
    }


def _summary(report: Report) -> dict[str, Any]:
    verdicts = tally(report.models)
    return {
        "models": len(report.models),
        "unreadable": sum(model.status != "ok" for model in report.models),
        "faults": sum(bool(model.fault) for model in report.models),
        **{f"{severity.value}s": number for severity, number in report.counts().items()},
        "suppressed": sum(len(model.suppressed) for model in report.models),
        "rules": dict(sorted(Counter(finding.rule for _, finding in report.findings()).items())),
        "padding": {"right": dict(verdicts["right"]), "left": dict(verdicts["left"])},
        "batch": dict(verdicts["batch"]),
        "passed_over": [{"path": path, "reason": reason} for path, reason in report.passed_over],
        "stale_suppressions": [
            {"rule": entry.rule, "path": entry.path, "source": entry.source, "reason": entry.reason} for entry in report.stale
        ],
        "exit_status": int(report.exit_status),
        "seconds": round(report.seconds, 4),
    }
