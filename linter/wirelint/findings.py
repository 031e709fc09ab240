"""What wirelint has to say about models: findings, one report per model, one report for the run."""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirelint.facts import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import ModelFacts
    from wirelint.rules.schema import Rule

__all__ = [
    "Confidence",
    "ExitStatus",
    "Finding",
    "ModelReport",
    "Report",
    "Severity",
    "StaleSuppression",
    "Suppressed",
    "Where",
    "fingerprint",
]


class Severity(str, enum.Enum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Confidence(str, enum.Enum):
    """How sure a rule is of what it says, surest first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """0 for the surest."""
        return list(Confidence).index(self)


class ExitStatus(enum.IntEnum):
    """What the command line's exit status says."""

    CLEAN = 0
    FINDINGS = 1
    FAULT = 2
    NO_MODEL = 3


@dataclass(frozen=True, slots=True)
class Where:
    """What a finding is about.

    Attributes:
        path: the model file, as it was given; never empty.
        kind: the kind of fact: ``input``, ``output``, ``attention``, ``embedding``, ``reduction``, ``contradiction``,
            ``model`` or ``file``.
        index: position among the graph's inputs or outputs.
        place: the operator, layer or tensor in the file; its line for IR.
    """

    path: str
    kind: str
    index: int | None = None
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that one rule says about one place.

    Texts are for people: names from the model stand in them with control characters escaped.

    Attributes:
        rule, code: the rule.
        severity, confidence: as the rule, or the configuration, puts it.
        message: one line: what is so.
        why: why it matters.
        fix: how to mend it; may have several lines.
        where: the primary location, without which there is no finding.
        evidence: how we know, one sentence each.
        trace: the operators on the way from the cause to where it shows, as the file calls them.
        fingerprint: stays the same as long as the model's wiring does.

    Raises:
        ValueError: the location does not name a file.
    """

    rule: str
    code: str
    severity: Severity
    confidence: Confidence
    message: str
    why: str
    fix: str
    where: Where
    evidence: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if not self.where.path:
            raise ValueError(f"a finding of {self.rule} without a file to point at")

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The key by which findings of one model are sorted: the worst first, then by rule, then by place.

        Those that are equal stay in the order of the facts that they are about.
        """
        place = self.where.place
        return (self.severity.rank, self.code, self.where.index or 0, place.line or 0, place.name)


def fingerprint(rule: str, relative_path: str, depth: int, anchor: str, ordinal: int = 0) -> str:
    """Identifies a finding across runs and re-exports.

    It is made of what stays when the same model is exported again: never of a node index, a generated name, message text
    or the file's bytes.

    Args:
        rule: id of the rule.
        relative_path: the model's path relative to the configuration's folder, with forward slashes.
        depth: number of subgraphs around the place.
        anchor: role, position and operator types that pin the place down.
        ordinal: counts findings whose other parts are equal.

    Returns:
        32 hexadecimal digits.
    """
    parts = (rule, relative_path, str(depth), anchor, str(ordinal))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that is kept quiet, and by whose word.

    Attributes:
        finding: what would have been reported.
        by: ``configuration``, ``model`` (the model's own metadata) or ``baseline``.
        reason: the reason given.
        source: file and line that say so.
    """

    finding: Finding
    by: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class StaleSuppression:
    """A suppression or a baseline entry that no longer suppresses anything.

    Attributes:
        rule: id of the rule that it names.
        path: the models that it is for.
        source: file and line.
        reason: the reason given; empty for a baseline entry.
    """

    rule: str
    path: str
    source: str
    reason: str = ""


@dataclass(slots=True)
class ModelReport:
    """What was found in one file.

    Attributes:
        path: the file, as it was given or found.
        relative: the same relative to the configuration's folder, with forward slashes.
        format: ``onnx``, ``openvino-ir``, or empty when that could not be told.
        facts: what is known about it; None when it was not read.
        findings: sorted, without the suppressed ones.
        suppressed: findings that are kept quiet.
        fail_on: findings at or above this severity fail the run; None for never.
        seconds: time spent.
        fault: one line when wirelint itself failed on this file.
        traceback: of that fault.
    """

    path: str
    relative: str = ""
    format: str = ""
    facts: ModelFacts | None = None
    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    fail_on: Severity | None = Severity.ERROR
    seconds: float = 0.0
    fault: str = ""
    traceback: str = ""

    @property
    def status(self) -> str:
        """``ok`` when the file was read and analysed, else ``unreadable``."""
        return "ok" if self.facts is not None and not self.fault else "unreadable"

    def fails(self, finding: Finding) -> bool:
        """Whether this finding fails the run."""
        return self.fail_on is not None and finding.severity.rank <= self.fail_on.rank


@dataclass(slots=True)
class Report:
    """What was found in all files.

    Attributes:
        models: one entry per file, in the order of the arguments, folders sorted.
        rules: the rules that were looked at, by code.
        passed_over: files that are no model or were excluded, with the reason.
        stale: suppressions and baseline entries without effect.
        seconds: time for the whole run.
    """

    models: list[ModelReport] = field(default_factory=list)
    rules: Sequence[Rule] = ()
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    stale: list[StaleSuppression] = field(default_factory=list)
    seconds: float = 0.0

    def findings(self) -> Iterator[tuple[ModelReport, Finding]]:
        """Every finding with its model, in order."""
        for model in self.models:
            for finding in model.findings:
                yield model, finding

    def counts(self) -> dict[Severity, int]:
        """Number of findings by severity, zeros included."""
        seen = Counter(finding.severity for _, finding in self.findings())
        return {severity: seen[severity] for severity in Severity}

    @property
    def exit_status(self) -> ExitStatus:
        """A fault of wirelint itself comes first: such a run has not checked what it was asked to."""
        if any(model.fault for model in self.models):
            return ExitStatus.FAULT
        if not self.models:
            return ExitStatus.NO_MODEL
        failed = any(model.fails(finding) for model, finding in self.findings())
        return ExitStatus.FINDINGS if failed else ExitStatus.CLEAN
