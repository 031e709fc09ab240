"""The models that ship in the ``onnx`` package: all are read, and those without a sequence are no cause for alarm."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases

from wirelint.findings import Severity

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = sorted(DATA.rglob("*.onnx"))
EVERY = 5
"""Of the cases that are generated, one of so many is checked; another one for each operator in the end."""

SEQUENCES = {
    "ids",
    "decoder_ids",
    "mask",
    "decoder_mask",
    "segment",
    "position",
    "encoder_states",
    "features",
    "lengths",
    "past",
}

WORTH_IT = {
    # Declares its result as a float, although it is a Shape of fixed dimensions: such a model does return constants.
    "test_sequence_map_extract_shapes_expanded": "constant-output",
}


def alarms(model):
    """Errors and warnings, but those about the file, on a model that has no sequence."""
    if any(entry.role in SEQUENCES for entry in model.facts.inputs):
        return []
    return [
        finding.rule
        for finding in model.findings
        if finding.severity in (Severity.ERROR, Severity.WARNING) and not finding.code.startswith("WL9")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}/{path.stem}")
def test_files_of_the_package(path, bench):
    assert alarms(bench.check(path)) == []


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return sorted(node_cases.collect_testcases(), key=lambda case: case.name)


@pytest.mark.parametrize("part", range(8))
def test_generated_cases(part, cases, tmp_path, bench):
    for case in cases[part * EVERY :: 8 * EVERY]:
        path = tmp_path / f"{case.name}.onnx"
        path.write_bytes(case.model.SerializeToString())
        model = bench.check(path)
        assert model.status == "ok", case.name
        assert set(alarms(model)) <= {WORTH_IT.get(case.name)}, case.name
