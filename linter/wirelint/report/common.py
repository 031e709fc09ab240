"""What several output formats need: options, verdicts over all models, paths, counts in words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from wirelint.findings import Finding, ModelReport, Report, Severity

if TYPE_CHECKING:
    from wirelint.facts import ModelFacts

__all__ = [
    "RenderOptions",
    "Renderer",
    "counted",
    "describe",
    "known_lines",
    "relative_path",
    "summary_line",
    "tally",
    "trail",
    "uri",
    "verdict_line",
]

_LONGEST_TRAIL = 14
_FORMATS = {"onnx": "ONNX", "openvino-ir": "OpenVINO IR"}
_WORST = {"padding": ("leaks", "unknown", "safe"), "batch": ("mixes", "unknown", "independent")}
_SAID = {
    "leaks": "leaks when {side}-padded",
    "unknown": "unknown when {side}-padded",
    "safe": "safe when {side}-padded",
    "mixes": "rows mix",
    "independent": "rows independent",
}


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How a report is to look; each format heeds what means something to it.

    Attributes:
        color: use terminal colours.
        width: columns of text.
        verbose: say more: every model, its inputs and their roles.
        quiet: say less: findings without explanation.
        show_suppressed: list what is suppressed.
        statistics: add how often each rule was met.
    """

    color: bool = False
    width: int = 120
    verbose: bool = False
    quiet: bool = False
    show_suppressed: bool = False
    statistics: bool = False


Renderer = Callable[[Report, RenderOptions], str]
"""Writes a report: the whole text, with a newline at its end."""


def counted(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def describe(model: ModelReport) -> str:
    """A model in a few words: its format and size."""
    if model.facts is None:
        return "not checked"
    kind = _FORMATS.get(model.format, "model")
    facts = model.facts
    version = f" {facts.ir_version}" if model.format == "openvino-ir" and facts.ir_version else ""
    opset = f" opset {facts.opsets['']}" if model.format == "onnx" and facts.opsets.get("") else ""
    inputs = sum(not entry.weight for entry in facts.inputs)
    sites = f", {counted(facts.attention.total, 'attention site')}" if facts.attention.total else ""
    return f"{kind}{version}{opset}, {counted(inputs, 'input')}{sites}"


def verdict_line(facts: ModelFacts) -> str:
    """What is known about padding and batch over all outputs of a model; empty for a model without outputs."""
    if not facts.outputs:
        return ""
    side = "left" if facts.expect.pads == "left" else "right"
    padding = _worst("padding", [getattr(output.padding, side) for output in facts.outputs])
    batch = _worst("batch", [output.batch for output in facts.outputs])
    said = _SAID[padding].format(side=side) if padding else "not applicable"
    return f"padding: {said}, {'rows unknown' if batch == 'unknown' else _SAID.get(batch, 'rows not applicable')}"


def tally(models: Sequence[ModelReport]) -> dict[str, Counter[str]]:
    """How many models have which verdict, by the worst of their outputs: right and left padding, and batch."""
    counts: dict[str, Counter[str]] = {"right": Counter(), "left": Counter(), "batch": Counter()}
    for model in models:
        if model.facts is None or not model.facts.outputs:
            continue
        outputs = model.facts.outputs
        counts["right"][_worst("padding", [output.padding.right for output in outputs]) or "n/a"] += 1
        counts["left"][_worst("padding", [output.padding.left for output in outputs]) or "n/a"] += 1
        counts["batch"][_worst("batch", [output.batch for output in outputs]) or "n/a"] += 1
    return counts


def summary_line(report: Report) -> str:
    """The last line: counts, time, verdicts, and what was not looked at."""
    counts = report.counts()
    parts = [counted(counts[severity], severity.value) for severity in Severity]
    line = f"{', '.join(parts)} in {counted(len(report.models), 'model')} ({report.seconds:.2f} s)"
    read = [model.facts for model in report.models if model.facts is not None]
    if len(read) == 1:
        verdict = verdict_line(read[0])
        line += f"; {verdict}" if verdict else ""
    elif read:
        seen = tally(report.models)
        line += f"; padding: {_shares(seen['right'])} when right-padded; rows: {_shares(seen['batch'])}"
    faults = sum(bool(model.fault) for model in report.models)
    unread = sum(model.status != "ok" for model in report.models) - faults
    suppressed = sum(len(model.suppressed) for model in report.models)
    for number, words in ((unread, "not read"), (faults, "not checked"), (suppressed, "suppressed")):
        if number:
            line += f"; {number} {words}"
    return line


def trail(steps: Sequence[str]) -> str:
    """The operators of a path in one line; a long one is cut in its middle."""
    if len(steps) > _LONGEST_TRAIL:
        steps = [*steps[: _LONGEST_TRAIL // 2], f"({len(steps) - _LONGEST_TRAIL} more)", *steps[-(_LONGEST_TRAIL // 2) :]]
    return " > ".join(steps)


def known_lines(finding: Finding) -> list[str]:
    """How we know: the path, then the evidence."""
    return [*([trail(finding.trace)] if finding.trace else []), *finding.evidence]


def relative_path(path: str) -> str:
    """A model's path as a forge knows it: relative to the repository that a CI job runs in, else to the working folder.

    Returns:
        With forward slashes; absolute when it lies outside of that folder.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 -- a link's own place counts, not its target's
    try:
        return absolute.relative_to(_repository()).as_posix()
    except ValueError:
        return absolute.as_posix()


def _repository() -> Path:
    here = Path.cwd()
    workspaces = (os.environ.get(name, "") for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"))
    return next((Path(folder) for folder in workspaces if folder and here.is_relative_to(folder)), here)


def uri(path: str) -> str:
    """A path as a URI reference: relative where it can be, else with the scheme ``file``."""
    shown = relative_path(path)
    quoted = quote(shown, safe="/~", errors="surrogateescape")
    return f"file://{quoted if shown.startswith('/') else '/' + quoted}" if Path(shown).is_absolute() else quoted


def _worst(question: str, verdicts: Sequence[str]) -> str:
    """The worst verdict; empty when the question does not arise."""
    return next((verdict for verdict in _WORST[question] if verdict in verdicts), "")


def _shares(counts: Counter[str]) -> str:
    order = ["safe", "independent", "leaks", "mixes", "unknown", "n/a"]
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
