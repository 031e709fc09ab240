"""JUnit XML: a suite per model, a test case per finding."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from wirelint.printable import printable
from wirelint.report.common import RenderOptions, known_lines

if TYPE_CHECKING:
    from wirelint.findings import Finding, ModelReport, Report

__all__ = ["render"]


def render(report: Report, options: RenderOptions) -> str:
    """Findings that fail the run are failures, others pass with their text as output; a file without findings passes."""
    del options  # the document is the same for everyone
    root = ET.Element("testsuites", name="wirelint", time=f"{report.seconds:.3f}")
    for model in report.models:
        root.append(_suite(model))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ET.indent(root)
    # ASCII, so that the text is the same whatever the encoding of the stream that it is written to.
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='us-ascii').decode()}\n"


def _suite(model: ModelReport) -> ET.Element:
    name = printable(model.path)
    suite = ET.Element("testsuite", name=name, time=f"{model.seconds:.3f}")
    for finding in model.findings:
        case = ET.SubElement(suite, "testcase", classname=name, name=f"{finding.rule} {finding.code}: {finding.message}")
        if model.fails(finding):
            failure = ET.SubElement(case, "failure", type=finding.severity.value, message=finding.message)
            failure.text = _explained(finding)
        else:
            ET.SubElement(case, "system-out").text = f"{finding.severity}: {_explained(finding)}"
    if model.fault:
        case = ET.SubElement(suite, "testcase", classname=name, name="checked")
        ET.SubElement(case, "error", type="fault", message=printable(model.fault))
    elif not model.findings:
        ET.SubElement(suite, "testcase", classname=name, name="no findings")
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    return suite


def _explained(finding: Finding) -> str:
    return "\n".join([finding.message, *(f"how we know: {line}" for line in known_lines(finding)), finding.why, finding.fix])
