"""What verifying gave, as JUnit XML: a suite per model, a test case per verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from wirelint.printable import printable
from wirelint.verify.claims import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.verify.verification import Verification

__all__ = ["render"]


def render(found: Sequence[Verification]) -> str:
    """A fault that running showed is a failure, a refuted verdict an error, what can't be measured is skipped."""
    root = ET.Element("testsuites", name="wirelint verify", time=f"{sum(made.seconds for made in found):.3f}")
    for made in found:
        root.append(_suite(made))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='us-ascii').decode()}\n"


def _suite(made: Verification) -> ET.Element:
    name = printable(made.path)
    suite = ET.Element("testsuite", name=name, time=f"{made.seconds:.3f}")

    def case(title: str, kind: str = "", message: str = "") -> None:
        entry = ET.SubElement(suite, "testcase", classname=name, name=printable(title))
        if kind:
            ET.SubElement(entry, kind, message=printable(message))

    for claim in made.claims:
        title = f"{claim.question} of {claim.output}: {claim.verdict}"
        if claim.status is Status.REFUTED:
            case(title, "error", claim.measured)
        elif claim.fault:
            case(title, "failure", claim.measured)
        elif claim.status is Status.NOT_MEASURABLE:
            case(title, "skipped", claim.measured)
        else:
            case(title)
    if made.stopped:
        case("runs", "failure", made.stopped)
    for reason in made.refused:
        case("runs at the shapes that it declares", "failure", reason)
    for output in made.infinite:
        case(f"{output} is finite", "failure", "NaN or infinities for an ordinary batch")
    if made.agreement is not None:
        for entry in made.agreement.differences:
            said = "shapes differ" if entry.change is None else str(entry.change)
            case(f"{entry.output}: {entry.one} against {entry.other}", "failure" if entry.beyond else "", said)
    if made.against is not None:
        if made.against.stopped:
            case(f"compared with {made.against.reference}", "failure", made.against.stopped)
        for entry in made.against.differences:
            said = "shapes differ" if entry.change is None else str(entry.change)
            case(f"{entry.output}: as {made.against.reference}", "failure" if entry.beyond else "", said)
    for key, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    return suite
