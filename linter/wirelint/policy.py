"""Which rules hold for a model, how much they weigh, and what is kept quiet: rules and configuration brought together."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from wirelint.baseline import Baseline, apply_baseline, read_baseline
from wirelint.errors import ConfigurationError, WirelintError
from wirelint.findings import Confidence, Finding, ModelReport, Severity, StaleSuppression
from wirelint.globs import matches
from wirelint.rules import RuleSet, evaluate, evaluate_file
from wirelint.suppress import Suppression, from_metadata, suppress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from wirelint.config import Config, Override, Waiver
    from wirelint.inspection import Inspected

__all__ = ["Policy"]


class Policy:
    """One configuration, applied to every model for which it is the nearest.

    Args:
        config: the settings.
        rules: the rules, those of the configuration's folders included.
        least_confidence: findings that are less sure are left out.

    Raises:
        ConfigurationError: a setting names a rule that does not exist, or the baseline is wrong.
    """

    def __init__(self, config: Config, rules: RuleSet, least_confidence: Confidence = Confidence.LOW) -> None:
        self.config = config
        self.rules = rules
        self.least_confidence = least_confidence
        self.baseline: Baseline | None = read_baseline(config.baseline) if config.baseline else None
        self.suppressions = [waiver.resolved(self._select(waiver.rule, waiver.source)) for waiver in config.waivers]
        self.checked: dict[str, frozenset[str]] = {}
        """Relative paths of the models, with the rules that were enabled for each."""
        self.used: set[Suppression] = set()
        self.known: set[str] = set()
        parts: tuple[Config | Override, ...] = (config, *config.overrides)
        for part in parts:
            for word in (*(part.select or ()), *part.ignore, *(word for word, _ in part.severity)):
                self._select(word)

    def judge(self, seen: Inspected) -> ModelReport:
        """The report for one file that was looked at."""
        relative = self.config.relative(seen.path)
        settings = self.config.for_model(relative)
        report = ModelReport(
            path=seen.path,
            relative=relative,
            format=seen.format,
            facts=seen.facts,
            fail_on=settings.fail_on,
            seconds=seen.seconds,
            fault=seen.fault,
            traceback=seen.traceback,
        )
        enabled = self._select_all(settings.select) if settings.select is not None else frozenset(self.rules.by_id)
        if seen.fault:
            return report
        try:
            findings = self._findings(seen, relative, enabled)
            findings = [self._weighed(finding, settings) for finding in findings]
            quiet = self._select_all(settings.ignore)
            findings = [
                finding
                for finding in findings
                if finding.rule not in quiet and finding.confidence.rank <= self.least_confidence.rank
            ]
            self.checked[relative] = enabled - quiet
            suppressions = [*self.suppressions, *self._own_suppressions(seen, relative)]
        except WirelintError as error:
            report.fault = str(error)
            return report
        report.findings, report.suppressed, used = suppress(findings, suppressions, relative)
        self.used |= used
        if self.baseline:
            report.findings, known = apply_baseline(report.findings, self.baseline)
            report.suppressed.extend(known)
            self.known |= {entry.finding.fingerprint for entry in known}
        report.findings.sort(key=lambda finding: finding.order)
        return report

    def stale(self) -> list[StaleSuppression]:
        """Suppressions and baseline entries that could have had an effect on the models of this run, and had none."""
        found = [
            StaleSuppression(waiver.rule, waiver.path, waiver.source, waiver.reason)
            for waiver, entry in zip(self.config.waivers, self.suppressions, strict=True)
            if entry not in self.used and self._in_reach(waiver, entry.rules)
        ]
        if self.baseline:
            found.extend(
                StaleSuppression(entry.rule, entry.path, str(self.baseline.path))
                for mark, entry in self.baseline.entries.items()
                if mark not in self.known and entry.rule in self.checked.get(entry.path, ())
            )
        return found

    def _in_reach(self, waiver: Waiver, rules: frozenset[str]) -> bool:
        return any(matches(waiver.path, path) and rules & enabled for path, enabled in self.checked.items())

    def _findings(self, seen: Inspected, relative: str, enabled: frozenset[str]) -> list[Finding]:
        """What the rules say; a problem of the file that no rule is named after must not be lost."""
        for problem in seen.facts.problems if seen.facts else seen.problems:
            if problem.problem not in self.rules.by_id:
                raise WirelintError(f"no rule reports the problem '{problem.problem}': {problem.message}")
        if seen.facts is None:
            return evaluate_file(self.rules, seen.problems, relative, enabled)
        return evaluate(self.rules, seen.facts, relative, enabled)

    def _weighed(self, finding: Finding, settings: Config) -> Finding:
        severity: Severity = finding.severity
        for word, wanted in settings.severity:
            if finding.rule in self._select(word):
                severity = wanted
        return finding if severity is finding.severity else dataclasses.replace(finding, severity=severity)

    def _own_suppressions(self, seen: Inspected, relative: str) -> list[Suppression]:
        """Those that the model's metadata holds, if the configuration trusts them."""
        if not self.config.trust_model_suppressions:
            return []
        return [
            Suppression(self._select(word, f"{seen.path} (metadata)"), relative, reason, f"{seen.path} (metadata)", by="model")
            for word, reason in from_metadata(seen.waivers, seen.path)
        ]

    def _select_all(self, words: Iterable[str]) -> frozenset[str]:
        return frozenset(rule for word in words for rule in self._select(word))

    def _select(self, word: str, source: str | Path | None = None) -> frozenset[str]:
        try:
            return self.rules.select(word)
        except ConfigurationError as error:
            source = source or self.config.path
            raise ConfigurationError(f"{source}: {error}" if source else str(error)) from None
