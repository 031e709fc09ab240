"""The baseline: findings that were there when the gate was put up, and that do not fail it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirelint.errors import ConfigurationError
from wirelint.findings import Finding, Report, Suppressed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["SCHEMA", "Baseline", "BaselineEntry", "apply_baseline", "dump_baseline", "read_baseline"]

SCHEMA = "wirelint-baseline/1"


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """A finding that is known.

    Attributes:
        fingerprint: of the finding.
        rule: id of the rule, for people who read the file.
        path: the model, relative to the configuration's folder.
    """

    fingerprint: str
    rule: str
    path: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """Known findings, by fingerprint."""

    path: Path
    entries: dict[str, BaselineEntry]


def read_baseline(path: Path) -> Baseline:
    """Reads a baseline file.

    Raises:
        ConfigurationError: it can't be read or is no baseline.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such baseline; 'wirelint baseline PATH... -o {path.name}' writes one") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: no valid JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ConfigurationError(f"{path}: no baseline of wirelint: its 'schema' is not '{SCHEMA}'")
    try:
        entries = [BaselineEntry(item["fingerprint"], item["rule"], item["path"]) for item in document["findings"]]
    except (KeyError, TypeError):
        raise ConfigurationError(f"{path}: each of 'findings' needs 'fingerprint', 'rule' and 'path'") from None
    return Baseline(path, {entry.fingerprint: entry for entry in entries})


def apply_baseline(findings: Iterable[Finding], baseline: Baseline) -> tuple[list[Finding], list[Suppressed]]:
    """Takes the known findings out."""
    remaining: list[Finding] = []
    known: list[Suppressed] = []
    for finding in findings:
        if finding.fingerprint in baseline.entries:
            known.append(Suppressed(finding, "baseline", "known when the baseline was written", str(baseline.path)))
        else:
            remaining.append(finding)
    return remaining, known


def dump_baseline(report: Report) -> str:
    """The text of a baseline file with all findings of a report, sorted so that its diffs are small."""
    entries = {BaselineEntry(finding.fingerprint, finding.rule, model.relative) for model, finding in report.findings()}
    findings = [
        {"path": entry.path, "rule": entry.rule, "fingerprint": entry.fingerprint}
        for entry in sorted(entries, key=lambda entry: (entry.path, entry.rule, entry.fingerprint))
    ]
    return json.dumps({"schema": SCHEMA, "findings": findings}, indent=2) + "\n"
