"""Every sample model is reported for what was broken in it and nothing else, and no verdict contradicts what a run showed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirelint.facts import OutputFacts
    from wirelint.findings import ModelReport

SAMPLES = Path(__file__).parents[1] / "sample_models"
MANIFEST = yaml.safe_load((SAMPLES / "expected.yaml").read_text())["models"]

ONLY_A_NOTE = {
    "all-masked-row": "no caller sends a row of nothing but padding on purpose",
    "input-dtype": "nothing beside the sample says which type its callers make",
    "input-order": "nothing beside the sample says that its callers feed by position",
    "quantised-scale-leak": "the change is real and small",
    "unknown-role": "what could not be told is no fault",
}
"""Rules that report their samples as a note, and why."""


def samples(*, read: bool = False) -> pytest.MarkDecorator:
    """One test for each sample; with ``read`` for those that were run when they were built."""
    entries = [entry for entry in MANIFEST if entry["truth"]] if read else MANIFEST
    return pytest.mark.parametrize("entry", entries, ids=[entry["path"] for entry in entries])


def test_the_manifest_lists_every_model() -> None:
    files = {path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*") if path.suffix in (".onnx", ".xml")}
    assert files == {entry["path"] for entry in MANIFEST}


@samples()
def test_what_was_broken_is_reported(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    findings = check_sample(entry["path"]).findings
    loud = {finding.rule for finding in findings if finding.severity != "note"}
    notes = {finding.rule for finding in findings if finding.severity == "note"}
    for rule in entry["must"]:
        assert rule in loud or (rule in ONLY_A_NOTE and rule in notes)


@samples()
def test_nothing_else_is_an_error_or_a_warning(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    loud = {finding.rule for finding in check_sample(entry["path"]).findings if finding.severity != "note"}
    assert loud <= {*entry["must"], *entry["may"]}


@samples()
def test_inputs_have_their_roles(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    facts = check_sample(entry["path"]).facts
    inputs = [] if facts is None else [one for one in facts.inputs if not one.weight]
    assert {one.name or f"#{one.index}": one.role for one in inputs} == entry["inputs"]


@samples(read=True)
def test_no_padding_verdict_contradicts_a_run(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    outputs = outputs_of(check_sample(entry["path"]))
    for side, measured in entry["truth"].get("pad_content_matters", {}).items():
        decided_by_pad_id = entry["truth"].get("only_as_pad_id", {}).get(side, ())
        for name, matters in measured.items():
            verdict = getattr(outputs[name].padding, side)
            if matters and name not in decided_by_pad_id:
                assert verdict in ("leaks", "unknown"), f"{name}, padded {side}: {verdict}, but it changed"
            if not matters:
                assert verdict in ("safe", "unknown"), f"{name}, padded {side}: {verdict}, but it did not change"


@samples(read=True)
def test_no_batch_verdict_contradicts_a_run(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    refuted = {True: "mixes", False: "independent"}.get(entry["truth"]["batch_independent"])
    assert refuted not in {output.batch for output in outputs_of(check_sample(entry["path"])).values()}


@samples(read=True)
def test_no_verdict_is_unknown(check_sample: Callable[[str], ModelReport], entry: dict[str, Any]) -> None:
    for output in outputs_of(check_sample(entry["path"])).values():
        assert "unknown" not in (output.padding.right, output.padding.left, output.batch)


def outputs_of(report: ModelReport) -> dict[str, OutputFacts]:
    assert report.facts is not None
    return {output.name: output for output in report.facts.outputs}


@pytest.mark.parametrize("name", sorted(path.relative_to(SAMPLES).as_posix() for path in (SAMPLES / "stories").rglob("*.onnx")))
def test_the_stories_pass_the_checks_that_others_make(name: str) -> None:
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    openvino = pytest.importorskip("openvino")
    onnx.checker.check_model(str(SAMPLES / name), full_check=True)
    onnxruntime.InferenceSession(SAMPLES / name, providers=["CPUExecutionProvider"])
    openvino.Core().compile_model(SAMPLES / name, "CPU")
