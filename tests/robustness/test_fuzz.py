"""Damaged models give a report that says so, whatever the damage is; ``benchmarks/fuzz.py`` looks longer."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError, EncodeError
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from mutations import mutated_bytes, mutated_model, mutated_xml

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"
ONNX = [
    SAMPLES / "clean" / name
    for name in ("bert_classifier.onnx", "llama_with_past.onnx", "lstm_tagger.onnx", "wav2vec2.onnx", "cnn.onnx")
]
IR = [SAMPLES / "clean" / name for name in ("bert_classifier_ov.xml", "cnn_ov.xml")]

brief = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
randoms = st.randoms(use_true_random=False)


@pytest.mark.parametrize("sample", [*ONNX[:2], *IR], ids=lambda path: path.stem)
@brief
@given(random=randoms)
def test_damaged_bytes(sample, random, tmp_path, bench):
    path = tmp_path / sample.name
    path.write_bytes(mutated_bytes(sample.read_bytes(), random))
    bench.check(path)


@pytest.mark.parametrize("sample", ONNX, ids=lambda path: path.stem)
@brief
@given(random=randoms)
def test_damaged_structure_of_onnx(sample, random, tmp_path, bench):
    path = tmp_path / sample.name
    try:
        path.write_bytes(mutated_model(onnx.load(sample), random).SerializeToString())
    except (DecodeError, EncodeError, TypeError, ValueError):
        assume(False)
    bench.check(path)


@pytest.mark.parametrize("sample", IR, ids=lambda path: path.stem)
@brief
@given(random=randoms)
def test_damaged_structure_of_ir(sample, random, tmp_path, bench):
    path = tmp_path / sample.name
    path.write_bytes(mutated_xml(sample.read_bytes(), random))
    if not path.with_suffix(".bin").exists():
        shutil.copyfile(sample.with_suffix(".bin"), path.with_suffix(".bin"))
    bench.check(path)
