"""Every rule names sample models that must and must not trigger it; here they are held to it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import wirelint
from wirelint.rules import builtin_folder

SAMPLES = Path(__file__).parents[2] / "sample_models"
EXAMPLES = {
    path.stem: yaml.safe_load(path.read_text()).get("examples", {}) for path in sorted(builtin_folder().rglob("*.yaml"))
}
CASES = [
    pytest.param(rule, sample, kind == "bad", id=f"{rule}-{kind}-{sample}")
    for rule, examples in EXAMPLES.items()
    for kind, samples in examples.items()
    for sample in samples
]


@pytest.mark.parametrize(("rule", "sample", "expected"), CASES)
def test_a_rule_is_met_by_its_bad_samples_and_not_by_its_good_ones(rule: str, sample: str, expected: bool) -> None:
    assert (SAMPLES / sample).exists(), "the sample is missing"
    report = wirelint.check(SAMPLES / sample, config=False)
    assert not [model.fault for model in report.models if model.fault]
    assert (rule in {finding.rule for _, finding in report.findings()}) is expected


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_rule_has_samples_of_both_kinds(rule: str) -> None:
    assert EXAMPLES[rule].get("bad")
    assert EXAMPLES[rule].get("good")
