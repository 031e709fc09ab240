"""The ONNX backend node tests: whatever moves in the runtime carries a label.

A few elements of each input are changed here, and few of the cases that spell an operator out in others are tried;
``backend_cases.py`` run as a program is thorough.
"""

from __future__ import annotations

import pytest
from backend_cases import UNMODELLED, cases_of, operators, outcome_of


@pytest.mark.parametrize("operator", operators())
def test_what_moves_is_labelled(operator, tmp_path):
    faults, checked = [], 0
    cases = cases_of(operator)
    plain = [case for case in cases if "_expanded" not in case.name]
    expanded = [case for case in cases if "_expanded" in case.name]
    for case in [*plain, *expanded[::5]]:
        outcome = outcome_of(case, tmp_path, limit=5, turns=1, joint=1)
        faults += [f"{case.name}: {fault}" for fault in outcome.faults]
        faults += [f"{case.name}: {name} is not modelled" for name in set(outcome.unmodelled) - UNMODELLED]
        checked += outcome.checked
    assert not faults, "\n".join(faults)
    if not checked:
        pytest.skip("no case that a runtime executes and the shadow interpreter models")
