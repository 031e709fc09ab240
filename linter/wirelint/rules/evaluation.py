"""Runs rules over the facts of one model and makes findings of what they say."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from wirelint.errors import WirelintError
from wirelint.facts import (
    EmbeddingFacts,
    Evidence,
    FileFacts,
    InputFacts,
    ModelFacts,
    OutputFacts,
    Place,
    ReductionFacts,
    SiteFacts,
)
from wirelint.findings import Finding, Where, fingerprint
from wirelint.paragraphs import blocks
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirelint.rules.conditions import Expression
    from wirelint.rules.loading import RuleSet
    from wirelint.rules.schema import Rule

__all__ = ["RuleFailedError", "evaluate", "evaluate_file"]

_FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class RuleFailedError(WirelintError):
    """A rule's expression has no value for the facts of this model."""


def evaluate(rules: RuleSet, facts: ModelFacts, relative_path: str, enabled: Collection[str] | None = None) -> list[Finding]:
    """What the rules say about a model.

    Args:
        rules: the rules.
        facts: the model, problems of its file included.
        relative_path: its path in fingerprints.
        enabled: ids of the rules to look at; None for all.

    Returns:
        Findings, sorted.

    Raises:
        RuleFailedError: an expression has no value for these facts; names the rule's file.
    """
    entities: dict[str, Sequence[Any]] = {
        "input": facts.inputs,
        "output": facts.outputs,
        "attention": facts.attention.sites,
        "embedding": facts.embeddings,
        "reduction": facts.reductions,
        "contradiction": facts.expect.contradictions,
        "model": [facts],
        "file": facts.problems,
    }
    shared = {
        "model": _Remembered(facts),
        "attention": facts.attention,
        "mask": facts.mask,
        "sequence": facts.sequence,
        "batch": facts.batch,
        "expect": facts.expect,
    }
    return _Run(rules, facts.path, relative_path).over(entities, shared, enabled)


def evaluate_file(
    rules: RuleSet, problems: Sequence[FileFacts], relative_path: str, enabled: Collection[str] | None = None
) -> list[Finding]:
    """What the file rules say about a file that could not be read; see :func:`evaluate`.

    Raises:
        RuleFailedError: an expression has no value for these facts; names the rule's file.
    """
    return _Run(rules, problems[0].path, relative_path).over({"file": problems}, {}, enabled)


class _Remembered:
    """Facts about a model whose properties are computed once: rules ask for them again for each of its parts."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._facts, name)
        setattr(self, name, value)
        return value


class _Run:
    """One pass over one model."""

    def __init__(self, rules: RuleSet, path: str, relative_path: str) -> None:
        self.rules = rules
        self.path = path
        self.relative_path = relative_path
        self.met: set[tuple[str, int | None]] = set()
        """What was reported: each rule with the position of its entity, and with None for the model as a whole."""
        self.marks: Counter[str] = Counter()

    def over(
        self, entities: Mapping[str, Sequence[Any]], shared: Mapping[str, Any], enabled: Collection[str] | None
    ) -> list[Finding]:
        findings: list[Finding] = []
        for rule in self.rules.in_order:
            if enabled is None or rule.id in enabled:
                found = self.apply(rule, entities.get(rule.kind, ()), shared)
                findings.extend(_joined(found) if rule.once else found)
        return sorted(findings, key=lambda finding: finding.order)

    def apply(self, rule: Rule, entities: Sequence[Any], shared: Mapping[str, Any]) -> list[Finding]:
        findings = []
        for position, entity in enumerate(entities):
            if any((cause, position if rule.same_entity else None) in self.met for cause in rule.unless):
                continue
            try:
                finding = self.judge(rule, entity, {**shared, rule.kind: entity})
            except _FAILURES as error:
                cause = printable(f"{type(error).__name__}: {error}", 300)
                raise RuleFailedError(f"{rule.path}: the rule '{rule.id}' fails on {printable(self.path)}: {cause}") from error
            if finding is not None:
                self.met |= {(rule.id, None), (rule.id, position)}
                findings.append(finding)
        return findings

    def judge(self, rule: Rule, entity: Any, names: Mapping[str, Any]) -> Finding | None:
        if not rule.when.evaluate(names):
            return None
        case = next((case for case in rule.cases if case.when is None or case.when.evaluate(names)), None)
        if case is None:
            return None
        place = _place_of((rule.where.evaluate(names) if rule.where else None) or entity)
        return Finding(
            rule=rule.id,
            code=rule.code,
            severity=case.severity,
            confidence=case.confidence,
            message=case.message.render(names).strip(),
            why=" ".join(block for block, _ in blocks(rule.why.render(names))),
            fix=rule.mend.render(names).strip(),
            where=Where(self.path, rule.kind, _index_of(entity), place),
            evidence=(*filter(None, (line.render(names).strip() for line in rule.how_we_know)), *_texts(rule.evidence, names)),
            trace=_texts(rule.trace, names),
            fingerprint=self.mark(rule, entity, place),
        )

    def mark(self, rule: Rule, entity: Any, place: Place) -> str:
        anchor = _anchor(rule.kind, entity, place)
        key = f"{rule.id}\0{len(place.scope)}\0{anchor}"
        ordinal = self.marks[key]
        self.marks[key] += 1
        return fingerprint(rule.id, self.relative_path, len(place.scope), anchor, ordinal)


def _joined(findings: list[Finding]) -> list[Finding]:
    """The worst of the findings alone, with the number of the others."""
    if len(findings) < 2:
        return findings
    first = min(findings, key=lambda finding: finding.severity.rank)
    return [dataclasses.replace(first, message=f"{first.message} (and {len(findings) - 1} more)")]


def _place_of(fact: Any) -> Place:
    if isinstance(fact, Place):
        return fact
    if isinstance(fact, (InputFacts, OutputFacts)):
        return Place(name=fact.name, line=fact.line)
    if isinstance(fact, FileFacts):
        return Place(name=fact.subject, line=fact.line)
    place = getattr(fact, "place", None)
    return place if isinstance(place, Place) else Place()


def _index_of(fact: Any) -> int | None:
    return fact.index if isinstance(fact, (InputFacts, OutputFacts)) else None


def _texts(source: Expression | None, names: Mapping[str, Any]) -> tuple[str, ...]:
    values = source.evaluate(names) if source is not None else None
    return tuple(printable(value.text if isinstance(value, Evidence) else str(value), 300) for value in values or ())


def _anchor(kind: str, entity: Any, place: Place) -> str:
    """What pins a place down and outlives a re-export: roles, positions and operator types, no names."""
    parts: tuple[Any, ...]
    if isinstance(entity, InputFacts):
        parts = (entity.index, entity.role)
    elif isinstance(entity, OutputFacts):
        parts = (entity.index,)
    elif isinstance(entity, SiteFacts):
        parts = (entity.kind, entity.keys, place.op_type)
    elif isinstance(entity, EmbeddingFacts):
        parts = (entity.kind, entity.rows, entity.width, place.op_type)
    elif isinstance(entity, ReductionFacts):
        parts = (entity.kind, place.op_type)
    elif isinstance(entity, FileFacts):
        parts = (entity.problem,)
    else:
        parts = (place.op_type,)
    return ":".join(map(str, (kind, *parts)))
