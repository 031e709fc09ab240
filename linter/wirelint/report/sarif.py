"""SARIF 2.1.0, for code scanning.

One physical location per result, and no region in a binary file: GitHub's upload hashes a whole file line by line where
a region is present.  It tells alerts apart by ``partialFingerprints.primaryLocationLineHash`` alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wirelint._version import __version__
from wirelint.paragraphs import blocks
from wirelint.printable import printable
from wirelint.report.common import RenderOptions, uri
from wirelint.rules.page import help_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.findings import Finding, ModelReport, Report, Suppressed
    from wirelint.rules.schema import Rule

__all__ = ["render"]

_PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(report: Report, options: RenderOptions) -> str:
    """One run with every rule and every finding, suppressed ones marked as such."""
    del options  # the document is the same for everyone
    position = {rule.id: index for index, rule in enumerate(report.rules)}
    results = [
        result
        for model in report.models
        for result in (
            *(_result(model, finding, position) for finding in model.findings),
            *(_suppressed(model, entry, position) for entry in model.suppressed),
        )
    ]
    run = {
        "tool": {
            "driver": {
                "name": "wirelint",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "invocations": [_invocation(report)],
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    what = " ".join(block for block, _ in blocks(rule.what))
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": f"{rule.summary}.".replace("`", "'")},
        "fullDescription": {"text": what},
        "help": {"text": help_text(rule).replace("**", ""), "markdown": help_text(rule)},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "precision": rule.confidence.value,
            "problem.severity": _PROBLEM_SEVERITY[rule.severity.value],
            "tags": [rule.family, rule.code],
        },
    }


def _result(model: ModelReport, finding: Finding, position: dict[str, int]) -> dict[str, Any]:
    place = finding.where.place
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": position[finding.rule],
        "level": finding.severity.value,
        "message": {"text": _plain(finding.message)},
        "locations": [_location(model.path, place.line, _logical(finding))],
        "partialFingerprints": {"primaryLocationLineHash": finding.fingerprint},
        "properties": {"precision": finding.confidence.value, "evidence": list(finding.evidence), "fix": finding.fix},
    }
    if finding.trace:
        steps = [{"location": {**_location(model.path, None, []), "message": {"text": _plain(step)}}} for step in finding.trace]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _suppressed(model: ModelReport, entry: Suppressed, position: dict[str, int]) -> dict[str, Any]:
    kind = "inSource" if entry.by == "model" else "external"
    return {
        **_result(model, entry.finding, position),
        "suppressions": [{"kind": kind, "justification": printable(f"{entry.reason} ({entry.source})")}],
    }


def _logical(finding: Finding) -> list[dict[str, Any]]:
    place = finding.where.place
    if not place.name:
        return []
    name = printable(place.name)
    kind = place.op_type or finding.where.kind
    return [{"name": name, "fullyQualifiedName": "/".join([*map(printable, place.scope), name]), "kind": printable(kind)}]


def _location(path: str, line: int | None, logical: Sequence[dict[str, Any]]) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(path)}}
    if line is not None:
        physical["region"] = {"startLine": line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if logical:
        location["logicalLocations"] = list(logical)
    return location


def _invocation(report: Report) -> dict[str, Any]:
    faults = [model for model in report.models if model.fault]
    return {
        "executionSuccessful": not faults,
        "exitCode": int(report.exit_status),
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": _plain(printable(model.fault))},
                "locations": [_location(model.path, None, [])],
            }
            for model in faults
        ],
    }


def _plain(text: str) -> str:
    """A message in which no name can pose as a link: SARIF reads ``[text](target)`` as one."""
    return text.replace("](", "] (")
