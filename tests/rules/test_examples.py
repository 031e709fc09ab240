"""Every rule names sample models that must and must not trigger it; here they are held to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from wirelint.rules import builtin_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirelint.findings import ModelReport

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
def test_a_rule_is_met_by_its_bad_samples_and_not_by_its_good_ones(
    check_sample: Callable[[str], ModelReport], rule: str, sample: str, expected: bool
) -> None:
    assert (rule in {finding.rule for finding in check_sample(sample).findings}) is expected


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_rule_has_samples_of_both_kinds(rule: str) -> None:
    assert EXAMPLES[rule].get("bad")
    assert EXAMPLES[rule].get("good")
