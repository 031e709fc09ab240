"""The soundness check notices what is wrong: transfer functions that forget, or that claim too much."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx_subjects import subject
from soundness import check

from wirelint.shadow.transfer import REGISTRY
from wirelint.shadow.value import Shadow

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] a, float[3] b) => (float[3] y) { y = Add (a, b) }'
FEEDS = {"a": np.float32([1, 2, 3]), "b": np.float32([4, 5, 6])}


def outcome(directory):
    return check(subject("model", onnx.parser.parse_model(TEXT), FEEDS, directory, required=True))


def forgetful(_op, operands, _context):
    return [Shadow(operands[0].shape, operands[0].dtype, operands[0].labels)]


def too_sure(_op, operands, _context):
    labels = operands[0].labels | operands[1].labels
    return [Shadow(operands[0].shape, operands[0].dtype, labels, np.zeros(3, np.float32), np.ones(1, bool), labels)]


def misshapen(_op, operands, _context):
    return [Shadow.unknown((3, 1), operands[0].dtype, operands[0].every_label() | operands[1].every_label())]


def test_a_sound_operator_passes(tmp_path):
    found = outcome(tmp_path)
    assert not found.faults
    assert found.hidden == ("a", "b")
    assert found.checked > 6


@pytest.mark.parametrize(("function", "word"), [(forgetful, "unlabelled"), (too_sure, "the value at"), (misshapen, "shape")])
def test_an_unsound_operator_is_noticed(function, word, tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "Add", function)
    assert word in outcome(tmp_path).faults[0]
