"""Random graphs: labels are always a superset of what moves, and known values are the runtime's.

``WIRELINT_EXAMPLES`` sets how many graphs are tried.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from onnx_subjects import subject
from random_graphs import graphs
from soundness import check

EXAMPLES = int(os.environ.get("WIRELINT_EXAMPLES", "60"))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(graphs())
def test_what_moves_is_labelled(drawn):
    model, feeds = drawn
    with tempfile.TemporaryDirectory() as directory:
        made = subject("model", model, feeds, Path(directory), required=True)
        made.noise = 1e-7  # rounding after what has been scaled down
        outcome = check(made, limit=10, turns=1, joint=3)
    assert not outcome.faults, "\n".join(outcome.faults)
    assert not outcome.unmodelled, outcome.unmodelled
    assert not outcome.skipped, outcome.skipped
