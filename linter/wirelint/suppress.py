"""Keeps findings quiet that someone accepted, with a reason, and notices when there is nothing left to keep quiet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.errors import ConfigurationError
from wirelint.findings import Finding, Suppressed
from wirelint.globs import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["METADATA_KEY", "Suppression", "from_metadata", "suppress"]

METADATA_KEY = "wirelint.ignore"


@dataclass(frozen=True, slots=True)
class Suppression:
    """A waiver.

    Attributes:
        rules: ids of the rules that it is for.
        path: pattern for the models, relative to the configuration's folder.
        reason: why; never empty.
        source: file and line that say so.
        by: ``configuration`` or ``model``.
        input: position or name of the one input that it is for; None for all.
        where: pattern for the name of the operator or tensor; empty for all.
    """

    rules: frozenset[str]
    path: str
    reason: str
    source: str
    by: str = "configuration"
    input: int | str | None = None
    where: str = ""

    def covers(self, finding: Finding, relative_path: str) -> bool:
        """Whether it is for this finding."""
        if finding.rule not in self.rules or not matches(self.path, relative_path):
            return False
        if self.input is not None and (
            finding.where.kind != "input" or self.input not in (finding.where.index, finding.where.place.name)
        ):
            return False
        return not self.where or _name_matches(self.where, finding.where.place.name)


def suppress(
    findings: Iterable[Finding], suppressions: Sequence[Suppression], relative_path: str
) -> tuple[list[Finding], list[Suppressed], set[Suppression]]:
    """Takes the suppressed findings out.

    Returns:
        The findings that remain, those that are suppressed, and the suppressions that had an effect.
    """
    remaining: list[Finding] = []
    quiet: list[Suppressed] = []
    used: set[Suppression] = set()
    for finding in findings:
        covering = next((entry for entry in suppressions if entry.covers(finding, relative_path)), None)
        if covering is None:
            remaining.append(finding)
        else:
            used.add(covering)
            quiet.append(Suppressed(finding, covering.by, covering.reason, covering.source))
    return remaining, quiet, used


def from_metadata(text: str, path: str) -> list[tuple[str, str]]:
    """The waivers that a model carries in its metadata: ``rule: reason; rule: reason``.

    Returns:
        Pairs of rule and reason.

    Raises:
        ConfigurationError: one is without a reason.
    """
    pairs = []
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        rule, colon, reason = entry.partition(":")
        if not colon or not reason.strip():
            raise ConfigurationError(f"{path}: metadata '{METADATA_KEY}': write 'rule: reason', with a reason")
        pairs.append((rule.strip(), reason.strip()))
    return pairs


def _name_matches(pattern: str, name: str) -> bool:
    """``*`` stands for anything; the rest is literal, for names are full of brackets and slashes."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
