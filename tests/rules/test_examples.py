"""Every rule names sample models that must and must not trigger it; here they are held to it."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirelint
from wirelint.rules import load_rules

pytest.importorskip("wirelint.analysis", reason="the analysis is not there")

SAMPLES = Path(__file__).parents[2] / "sample_models"
CASES = [
    pytest.param(rule.id, sample, expected, id=f"{rule.id}-{'bad' if expected else 'good'}-{sample}")
    for rule in load_rules().rules
    for samples, expected in ((rule.bad, True), (rule.good, False))
    for sample in samples
]


@pytest.mark.parametrize(("rule", "sample", "expected"), CASES)
def test_a_rule_is_met_by_its_bad_samples_and_not_by_its_good_ones(rule: str, sample: str, expected: bool) -> None:
    report = wirelint.check(SAMPLES / sample, config=False)
    assert not [model.fault for model in report.models if model.fault]
    assert (rule in {finding.rule for _, finding in report.findings()}) is expected
