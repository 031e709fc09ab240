"""OpenVINO operators: whatever moves in the CPU plugin carries a label."""

from __future__ import annotations

import numpy as np
import pytest
from openvino_cases import OWN, built, iterated, reader_cases, subject
from soundness import check

READER = reader_cases()

NOT_MODELLED = {"fake_convert"}
NOT_MOVED = {"range", "range cast", "range mixed", "eye", "shape_of", "shape_of i32"}
"""Operators whose operands change the shape of the result, or only that."""


def assert_sound(made, *, name: str) -> None:
    outcome = check(made, limit=8, turns=2, joint=1)
    assert not outcome.faults, "\n".join(outcome.faults)
    assert not outcome.unmodelled or name in NOT_MODELLED, outcome.unmodelled
    assert not outcome.skipped, outcome.skipped
    assert outcome.checked or outcome.unmodelled or name in NOT_MOVED


@pytest.mark.parametrize("name", OWN)
def test_what_moves_is_labelled(name, tmp_path):
    build, arrays = OWN[name]
    assert_sound(subject(name, built(build, arrays), arrays, tmp_path), name=name)


@pytest.mark.parametrize("name", READER.CASES)
def test_what_moves_in_the_reader_s_cases_is_labelled(name, tmp_path):
    build, arrays = READER.CASES[name]
    by_reference = name in READER.BEYOND_THE_PLUGIN
    assert_sound(subject(name, built(build, arrays), arrays, tmp_path, by_reference=by_reference), name=name)


@pytest.mark.parametrize("taken", [True, False])
def test_branches(taken, tmp_path):
    model = READER.two_branches()
    arrays = [np.array(taken), READER.F24, READER.F24 * 3]
    assert_sound(subject("branches", model, arrays, tmp_path), name="branches")


@pytest.mark.parametrize("trips", [2, 3])
def test_loops(trips, tmp_path):
    arrays = [READER.F234, READER.F24[0]]
    assert_sound(subject("loop", READER.looped(trips), arrays, tmp_path), name="loop")


@pytest.mark.parametrize("backwards", [False, True])
def test_tensor_iterators(backwards, tmp_path):
    model, arrays = iterated(backwards=backwards)
    assert_sound(subject("iterator", model, arrays, tmp_path), name="iterator")
