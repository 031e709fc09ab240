"""Node data for Model Explorer (google-ai-edge/model-explorer): findings light up in the graph that it draws.

The document is a ``GraphNodeData`` as that project's ``node_data_builder.py`` describes it: ``results`` maps a key to a value
and colours, and a key is either a node's id or the name of a tensor that the node gives.  Its ONNX adapter
(``model-explorer-onnx``) makes a node's id of the node's name, or ``<node_0>``, ``<node_1>``... where it has none, and
labels every output, those of the nodes for graph inputs too, with the tensor's name.  So nodes are keyed by name, inputs
by the name of their tensor.  A node without a name is named here by its first tensor, which is a key just as well.

In Model Explorer: load the model, then "Custom node data" > "Load from computer".
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from wirelint.errors import ConfigurationError
from wirelint.findings import Finding, Severity
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.facts import ModelFacts
    from wirelint.findings import ModelReport, Report
    from wirelint.report.common import RenderOptions

__all__ = ["render"]

_COLORS = {
    Severity.ERROR: ("#b3141f", "#ffffff"),
    Severity.WARNING: ("#f2b759", "#1b1f24"),
    Severity.NOTE: ("#7cb8ff", "#1b1f24"),
}
_QUIET = ("#63d396", "#1b1f24")


def render(report: Report, options: RenderOptions) -> str:
    """The overlay of one model: its findings, then the attention sites whose mask does its work, and the roles of inputs.

    Raises:
        ConfigurationError: the report is of several models, which no overlay can be of.
    """
    del options  # the document is the same for everyone
    if len(report.models) != 1:
        raise ConfigurationError(f"model-explorer shows one model, and {len(report.models)} were checked; name one file")
    return json.dumps({"results": _results(report.models[0])}, indent=2) + "\n"


def _results(model: ModelReport) -> dict[str, Any]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in model.findings:
        for key in _keys(finding, model.facts):
            found[key].append(finding)
    results = {} if model.facts is None else dict(_quiet(model.facts))
    for key, findings in found.items():
        worst = min(findings, key=lambda entry: entry.severity.rank)
        said = "; ".join(dict.fromkeys(f"{entry.severity} {entry.code} {entry.rule}" for entry in findings))
        results[key] = _result(said, _COLORS[worst.severity])
    return results


def _keys(finding: Finding, facts: ModelFacts | None) -> Iterator[str]:
    """The nodes and tensors that a finding is about; for one about the whole model, the sites that hear padding."""
    where = finding.where
    if facts is not None and where.index is not None and where.kind == "input":
        yield from (entry.name for entry in facts.inputs if entry.index == where.index and entry.name)
    elif facts is not None and where.index is not None and where.kind == "output":
        yield from (entry.name for entry in facts.outputs if entry.index == where.index and entry.name)
    elif where.place.name:
        yield where.place.name
    elif facts is not None and finding.rule.startswith("mask-"):
        heard = [site for site in facts.attention.sites if site.needs_mask and site.heard_right == "heard"]
        yield from (site.place.name for site in heard if site.place.name)


def _quiet(facts: ModelFacts) -> Iterator[tuple[str, dict[str, str]]]:
    for entry in facts.inputs:
        if entry.name and not entry.weight:
            yield entry.name, _result(f"role: {entry.role}", _QUIET)
    for site in facts.attention.sites:
        if site.place.name and site.mask == "effective":
            yield site.place.name, _result("hides padding", _QUIET)


def _result(value: str, colors: tuple[str, str]) -> dict[str, str]:
    return {"value": printable(value), "bgColor": colors[0], "textColor": colors[1]}
