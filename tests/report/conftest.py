"""Reports for tests, made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirelint.facts import AttentionFacts, FileFacts, InputFacts, ModelFacts, OutputFacts, PaddingFacts, Place
from wirelint.findings import Confidence, Finding, ModelReport, Report, Severity, StaleSuppression, Suppressed, Where
from wirelint.rules import load_rules

HOSTILE = "a\n::error::x\x1b[31m|<b>`](http://x)@team, %0A:\u202e\ud800&\x07"
"""A name that tries to break out of every format."""


def finding(path: str, name: str, severity: Severity = Severity.ERROR, line: int | None = None) -> Finding:
    from wirelint.printable import printable

    return Finding(
        rule="renamed-input",
        code="WL101",
        severity=severity,
        confidence=Confidence.HIGH,
        message=f"input 1 '{printable(name)}' is what callers know as 'attention_mask'",
        why="A caller who feeds it by name misses it.",
        fix="Rename it:\n\n    wirelint fix model.onnx -o fixed.onnx\n\nOr feed it by position.",
        where=Where(path, "input", 1, Place(name, line=line, scope=("outer",))),
        evidence=("added before softmax at 24 of 24 attention sites",),
        trace=("Unsqueeze", "Cast", "Sub", "Mul"),
        fingerprint=f"{abs(hash((path, severity))):032x}"[:32],
    )


def facts(path: str, right: str = "safe", batch: str = "independent") -> ModelFacts:
    return ModelFacts(
        path,
        "openvino-ir" if path.endswith(".xml") else "onnx",
        ir_version=11,
        opsets={"": 17},
        inputs=[
            InputFacts(0, "input_ids", ("input_ids",), "", "i64", ("batch", "seq"), role="ids", confidence=1.0),
            InputFacts(1, "onnx::Unsqueeze_1", ("onnx::Unsqueeze_1",), "", "i64", None, role="mask", confidence=0.9),
        ],
        outputs=[OutputFacts(0, "logits", "f32", ("batch", 2), PaddingFacts(right, "leaks"), batch, ("ids", "mask"))],
        attention=AttentionFacts(total=24),
    )


def model(path: str, *findings: Finding, **more: object) -> ModelReport:
    known = facts(path)
    return ModelReport(path, path, known.format, known, list(findings), **more)  # type: ignore[arg-type]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    """One of everything: findings of each weight, an IR, a hostile name, a suppressed one, an unreadable file, a fault."""
    monkeypatch.setattr("wirelint.rules.loading.builtin_folder", lambda: Path(__file__).parents[1] / "cli" / "catalogue")
    rules = load_rules().rules
    broken = FileFacts("models/broken.onnx", "onnx", "unreadable", "cut off after 12 bytes")
    unreadable = Finding(
        "unreadable",
        "WL901",
        Severity.ERROR,
        Confidence.HIGH,
        broken.message,
        "Nothing in it was checked.",
        "Copy it again.",
        Where(broken.path, "file"),
        fingerprint="0" * 32,
    )
    quiet = Suppressed(
        finding("models/b.xml", "quiet", Severity.NOTE, 3), "configuration", "kept on purpose", "wirelint.yaml:4"
    )
    return Report(
        models=[
            model("models/a.onnx", finding("models/a.onnx", "onnx::Unsqueeze_1")),
            model("models/b.xml", finding("models/b.xml", HOSTILE, Severity.WARNING, 12), suppressed=[quiet]),
            model("models/clean.onnx"),
            ModelReport(broken.path, broken.path, "onnx", None, [unreadable]),
            ModelReport("models/odd.onnx", "models/odd.onnx", "onnx", fault="internal fault (KeyError: 'x'); please report it"),
        ],
        rules=rules,
        passed_over=[("models/pom.xml", "no OpenVINO IR")],
        stale=[StaleSuppression("mask-folded", "old/*.onnx", "wirelint.yaml:9", "gone")],
        seconds=0.31,
    )


@pytest.fixture
def hostile() -> str:
    return HOSTILE
