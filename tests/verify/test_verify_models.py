"""Verifying models by running them: what is so is confirmed, what is not is refuted, what can't be seen is left open."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import wirelint.verify.verification as whole
from layered import layered_model
from wirelint.cli import cli
from wirelint.errors import ConfigurationError
from wirelint.verify import Limits, Status, Verification, Worker, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.analysis import Examination

SAMPLES = Path(__file__).parents[2] / "sample_models"
SCHEMA = json.loads((SAMPLES.parent / "docs/verify.schema.json").read_text())


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Limits()) as shared:
        yield shared


def claims(found: Verification, question: str) -> dict[str, tuple[str, Status]]:
    return {claim.output: (claim.verdict, claim.status) for claim in found.claims if claim.question == question}


@pytest.mark.parametrize(
    ("sample", "right"),
    [
        ("clean/bert_qa.onnx", "safe"),
        ("clean/bert_qa_ov.xml", "safe"),
        ("mask/bert_mask_missing.onnx", "leaks"),
        ("mask/bert_mask_partial_ov.xml", "leaks"),
        ("clean/gpt2.onnx", "safe"),
    ],
)
def test_verdicts_are_confirmed(worker: Worker, sample: str, right: str) -> None:
    found = verify(SAMPLES / sample, worker=worker)
    assert set(claims(found, "padding right").values()) == {(right, Status.CONFIRMED)}
    assert set(claims(found, "batch").values()) == {("independent", Status.CONFIRMED)}
    assert not found.with_status(Status.REFUTED)
    assert found.faults is (right == "leaks")


def test_a_leak_comes_with_its_counterexample(worker: Worker) -> None:
    found = verify(SAMPLES / "mask/bert_mask_missing.onnx", worker=worker)
    (claim,) = [claim for claim in found.claims if claim.question == "padding right"]
    assert claim.counterexample is not None
    assert claim.counterexample.relative > 1e-3
    assert claim.counterexample.before != claim.counterexample.after


def _turned(monkeypatch: pytest.MonkeyPatch, **verdicts: str) -> None:
    """Makes the static analysis say something else."""
    honest = whole.examine

    def examine(model: Any) -> Examination:
        examined = honest(model)
        for output in examined.facts.outputs:
            output.batch = verdicts.get("batch", output.batch)
            output.padding.right = verdicts.get("right", output.padding.right)
            if verdicts.get("mask") == "absent":
                output.depends_on = ("ids",)
        return examined

    monkeypatch.setattr(whole, "examine", examine)


@pytest.mark.parametrize(
    ("sample", "question", "verdicts"),
    [
        ("mask/bert_mask_missing.onnx", "padding right", {"right": "safe"}),
        ("clean/bert_qa.onnx", "padding right", {"right": "leaks"}),
        ("clean/bert_qa.onnx", "batch", {"batch": "mixes"}),
        ("clean/bert_qa.onnx", "mask", {"mask": "absent"}),
    ],
)
def test_a_wrong_verdict_is_refuted(
    monkeypatch: pytest.MonkeyPatch, worker: Worker, sample: str, question: str, verdicts: dict[str, str]
) -> None:
    _turned(monkeypatch, **verdicts)
    found = verify(SAMPLES / sample, worker=worker)
    assert Status.REFUTED in {status for _, status in claims(found, question).values()}


def mixing(tmp_path: Path) -> Path:
    """Each row less the mean of all rows."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0]), helper.make_node("Sub", ["x", "mean"], ["out"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "mixing.onnx")
    return tmp_path / "mixing.onnx"


def test_rows_that_mix_are_confirmed_with_a_counterexample(tmp_path: Path, worker: Worker) -> None:
    (claim,) = verify(mixing(tmp_path), worker=worker).claims
    assert (claim.verdict, claim.status, claim.fault) == ("mixes", Status.CONFIRMED, True)
    assert claim.counterexample is not None


def test_rows_that_mix_refute_a_verdict_of_independence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, worker: Worker
) -> None:
    _turned(monkeypatch, batch="independent")
    (claim,) = verify(mixing(tmp_path), worker=worker).claims
    assert claim.status is Status.REFUTED


def test_nan_is_left_open_and_reported(worker: Worker) -> None:
    found = verify(SAMPLES / "mask/bert_mask_not_finite.onnx", worker=worker)
    assert found.infinite == ["last_hidden_state"]
    assert found.faults
    assert {claim.status for claim in found.claims} == {Status.NOT_MEASURABLE}
    assert "NaN" in found.claims[0].measured


def test_one_row_at_a_time_is_left_open(worker: Worker) -> None:
    found = verify(SAMPLES / "padding/bert_static_without_mask_ov.xml", worker=worker)
    assert {status for _, status in claims(found, "batch").values()} == {Status.NOT_MEASURABLE}


def test_a_baked_batch_is_seen(worker: Worker) -> None:
    found = verify(SAMPLES / "shape/bert_baked_batch.onnx", worker=worker)
    assert found.refused
    assert "3 rows" in found.refused[0]


def test_a_model_that_does_not_run_is_a_fault_not_a_crash(worker: Worker) -> None:
    found = verify(SAMPLES / "shape/bert_static_contradiction.onnx", worker=worker)
    assert found.stopped
    assert found.faults
    assert not found.claims


def test_a_file_that_points_outside_its_folder_is_not_run(worker: Worker) -> None:
    found = verify(SAMPLES / "file/external_path_escape.onnx", worker=worker)
    assert "inside the model's folder" in found.stopped


def test_a_model_without_a_sequence_has_a_batch_verdict_only(worker: Worker) -> None:
    found = verify(SAMPLES / "clean/cnn.onnx", worker=worker)
    assert {claim.question for claim in found.claims} == {"batch"}
    assert {claim.status for claim in found.claims} == {Status.CONFIRMED}


def test_text_inputs_are_left_open(tmp_path: Path, worker: Worker) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["text"], ["out"])],
        "g",
        [helper.make_tensor_value_info("text", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("out", TensorProto.STRING, ["n"])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "text.onnx")
    assert "takes text" in verify(tmp_path / "text.onnx", worker=worker).stopped


def test_a_scalar_input_is_fed(tmp_path: Path, worker: Worker) -> None:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "by"], ["out"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4]),
            helper.make_tensor_value_info("by", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "scaled.onnx")
    assert set(claims(verify(tmp_path / "scaled.onnx", worker=worker), "batch").values()) == {("independent", Status.CONFIRMED)}


def test_the_seed_decides_the_inputs(worker: Worker) -> None:
    runs = [verify(SAMPLES / "clean/bert_qa.onnx", worker=worker, seed=seed).feeds for seed in (0, 0, 1)]
    ids = [next(feed.array for feed in feeds if feed.role == "ids") for feeds in runs]
    assert np.array_equal(ids[0], ids[1])
    assert not np.array_equal(ids[0], ids[2])


def test_paths_agree(worker: Worker) -> None:
    agreement = verify(SAMPLES / "clean/bert_qa.onnx", worker=worker, paths=True).agreement
    assert agreement is not None
    assert {name.split(",")[0].split(" f32")[0] for name in agreement.ran} == {"ONNX Runtime", "OpenVINO CPU"}
    assert len(agreement.ran) >= 6
    assert not agreement.parted
    assert len(agreement.differences) == 2 * len(agreement.ran) * (len(agreement.ran) - 1) // 2


def _saved(tmp_path: Path, name: str, *, layers: int = 3, scaled: str = "") -> Path:
    model = layered_model(layers)
    if scaled:
        # A weight of its own for one layer, half as large again.
        node = next(node for node in model.graph.node if node.name == scaled)
        weight = next(entry for entry in model.graph.initializer if entry.name == node.input[1])
        node.input[1] = "changed"
        model.graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.5), "changed"))
    onnx.save(model, tmp_path / name)
    return tmp_path / name


def test_a_reference_that_is_the_same_agrees(tmp_path: Path, worker: Worker) -> None:
    first, second = _saved(tmp_path, "a.onnx"), _saved(tmp_path, "b.onnx")
    against = verify(first, worker=worker, reference=second).against
    assert against is not None
    assert against.differences
    assert not against.parted


def test_bisecting_names_the_first_operator_that_differs(tmp_path: Path, worker: Worker) -> None:
    good, bad = _saved(tmp_path, "good.onnx"), _saved(tmp_path, "bad.onnx", scaled="/layer.1/out/MatMul")
    found = verify(bad, worker=worker, reference=good, bisect=True)
    assert found.faults
    assert found.against is not None
    assert found.against.parting is not None
    assert found.against.parting.name == "/layer.1/out/MatMul"
    assert found.against.parting.after == ("context1",)


def test_bisecting_across_formats_and_names(tmp_path: Path, worker: Worker) -> None:
    ov = pytest.importorskip("openvino")
    good, bad = _saved(tmp_path, "good.onnx"), _saved(tmp_path, "bad.onnx", scaled="/layer.2/v/MatMul")
    model = onnx.load(bad)
    names = {name: f"t{at}" for at, name in enumerate(dict.fromkeys(out for node in model.graph.node for out in node.output))}
    kept = {value.name for value in model.graph.output}
    for node in model.graph.node:
        node.input[:] = [name if name in kept else names.get(name, name) for name in node.input]
        node.output[:] = [name if name in kept else names[name] for name in node.output]
    onnx.save(model, bad)
    ov.save_model(ov.convert_model(bad), tmp_path / "bad.xml", compress_to_fp16=False)
    for path in (bad, tmp_path / "bad.xml"):
        against = verify(path, worker=worker, reference=good, bisect=True).against
        assert against is not None
        assert against.parting is not None, path
        assert against.parting.name == "/layer.2/v/MatMul"
        assert not against.parting.counterpart


def test_a_reference_of_another_kind_says_why_nothing_is_compared(worker: Worker) -> None:
    against = verify(SAMPLES / "clean/bert_qa.onnx", worker=worker, reference=SAMPLES / "clean/cnn.onnx").against
    assert against is not None
    assert against.own_inputs or against.stopped or against.alone


def test_a_damaged_reference_is_a_clear_error(worker: Worker) -> None:
    with pytest.raises(ConfigurationError, match=r"^reference .*empty"):
        verify(SAMPLES / "clean/cnn.onnx", worker=worker, reference=SAMPLES / "file/empty.onnx")


def test_a_missing_runtime_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxruntime" else object())
    result = CliRunner().invoke(cli, ["verify", str(SAMPLES / "clean/cnn.onnx")])
    assert result.exit_code == 2
    assert result.stderr.strip().endswith('ONNX Runtime is not installed; get it with: pip install "wirelint[runtime]"')


@pytest.mark.parametrize(("sample", "status"), [("clean/bert_qa.onnx", 0), ("mask/bert_mask_missing.onnx", 1)])
def test_the_exit_status_says_whether_a_fault_was_seen(sample: str, status: int) -> None:
    result = CliRunner().invoke(cli, ["verify", "--no-paths", str(SAMPLES / sample)])
    assert result.exit_code == status, result.output
    assert "confirmed" in result.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_runtime_that_does_not_fit_into_the_memory_is_said() -> None:
    result = CliRunner().invoke(cli, ["verify", "--no-paths", "--memory", "0.05", str(SAMPLES / "clean/cnn.onnx")])
    assert result.exit_code == 1
    assert "memory" in result.stdout


def test_a_damaged_model_keeps_no_other_from_being_measured() -> None:
    models = [str(SAMPLES / "file/truncated.onnx"), str(SAMPLES / "clean/cnn.onnx")]
    result = CliRunner().invoke(cli, ["verify", "--no-paths", *models])
    assert result.exit_code == 1
    assert "truncated.onnx  not read\n  not run    no ONNX model: a field at byte 19" in result.stdout
    assert "cnn.onnx  ONNX Runtime" in result.stdout
    assert result.stdout.rstrip().endswith("; 1 not run")
    document = json.loads(CliRunner().invoke(cli, ["verify", "--no-paths", "-f", "json", *models]).stdout)
    jsonschema.validate(document, SCHEMA)
    assert [bool(model["stopped"]) for model in document["models"]] == [True, False]


def test_a_refuted_verdict_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    _turned(monkeypatch, right="safe")
    result = CliRunner().invoke(cli, ["verify", "--no-paths", str(SAMPLES / "mask/bert_mask_missing.onnx")])
    assert result.exit_code == 2
    assert "please report it" in result.stdout


def test_json_follows_its_schema(tmp_path: Path) -> None:
    bad, good = _saved(tmp_path, "bad.onnx", scaled="/layer.1/out/MatMul"), _saved(tmp_path, "good.onnx")
    runner = CliRunner()
    args = ["verify", "-f", "json", "--show-inputs", "--reference", str(good), "--bisect"]
    broken = [str(SAMPLES / "mask/bert_mask_not_finite.onnx"), str(SAMPLES / "shape/bert_static_contradiction.onnx")]
    for arguments in ([*args, str(bad)], ["verify", "-f", "json", *broken]):
        document = json.loads(runner.invoke(cli, arguments).stdout)
        jsonschema.validate(document, SCHEMA)
    assert document["summary"]["not_run"] == 1
    ids = json.loads(runner.invoke(cli, [*args, "--no-paths", str(bad)]).stdout)["models"][0]["inputs"][0]
    assert ids["role"] == "ids"
    assert np.array(ids["values"]).shape == tuple(ids["shape"])


def test_junit_counts_faults(tmp_path: Path) -> None:
    from xml.etree import ElementTree as ET

    target = tmp_path / "report.xml"
    arguments = ["verify", "--no-paths", "-f", "junit", "-o", str(target), str(SAMPLES / "mask/bert_mask_missing.onnx")]
    assert CliRunner().invoke(cli, arguments).exit_code == 1
    root = ET.parse(target).getroot()
    assert root.get("failures") == "1"
    assert root.get("errors") == "0"
    assert int(root.get("tests", "0")) == len(root.findall(".//testcase"))


def test_inputs_are_shown_on_demand() -> None:
    arguments = ["verify", "--no-paths", "--show-inputs", str(SAMPLES / "clean/bert_qa.onnx")]
    shown = CliRunner().invoke(cli, arguments).stdout
    assert "input attention_mask: mask, int64[3, 7]" in shown
    assert "[1 1 1 1 1 0 0]" in shown


def test_bisect_needs_a_reference() -> None:
    result = CliRunner().invoke(cli, ["verify", "--bisect", str(SAMPLES / "clean/cnn.onnx")])
    assert result.exit_code == 2
    assert "--reference" in result.stderr


def test_a_quantised_scale_is_named_apart(worker: Worker) -> None:
    found = verify(SAMPLES / "padding/bert_dynamic_int8.onnx", worker=worker)
    hidden = [claim for claim in found.claims if claim.output == "last_hidden_state" and claim.verdict in ("leaks", "mixes")]
    assert {claim.status for claim in hidden} == {Status.CONFIRMED}
    assert all("quantisation scale alone" in claim.measured for claim in hidden)
    assert not any(claim.fault for claim in hidden)


def test_a_claim_is_plain_data() -> None:
    found = verify(SAMPLES / "clean/cnn.onnx")
    assert json.loads(json.dumps([claim.as_dict() for claim in found.claims]))
    assert dataclasses.is_dataclass(found)
