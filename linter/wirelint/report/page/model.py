"""One model's part of the HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.findings import Severity
from wirelint.report.common import counted, describe, known_lines, verdict_line
from wirelint.report.page.markup import badge, code, details, prose, reference, table, text
from wirelint.report.page.pictures import hearing, reach, routes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirelint.facts import InputFacts, ModelFacts, OutputFacts
    from wirelint.findings import Finding, ModelReport
    from wirelint.rules.schema import Rule

__all__ = ["section", "tallied"]

_MOST_ROWS = 200


def section(model: ModelReport, rules: Mapping[str, Rule], key: str, *, opened: bool) -> str:
    """A ``section`` element.

    Args:
        model: what was found.
        rules: by id.
        key: an identifier that no other model of the page has.
        opened: its pictures and tables, and the findings that are errors, are unfolded.
    """
    facts = model.facts
    parts = [
        f'<div class="head"><h2>{text(model.path)}</h2><p>{tallied(model)}</p></div>',
        f'<p class="dim">{text(describe(model))}{_verdict(facts)}</p>',
    ]
    if model.fault:
        parts.append(f"<p>{text(model.fault)}</p>")
    parts += [_finding(finding, rules.get(finding.rule), opened=opened) for finding in model.findings]
    if facts is not None:
        body = "".join([_inputs(facts), _outputs(facts), routes(facts, key), hearing(facts, key), reach(facts, key)])
        parts.append(details("<b>Inputs, routes, attention, padding</b>", body, opened=opened))
    return f'<section class="model" id="{key}" aria-label="{text(model.path)}">{"".join(parts)}</section>'


def tallied(model: ModelReport) -> str:
    """How many findings of each severity, as badges."""
    if model.fault:
        return badge("error", "not checked")
    numbers = {severity: sum(finding.severity is severity for finding in model.findings) for severity in Severity}
    found = [badge(severity.value, counted(number, severity.value)) for severity, number in numbers.items() if number]
    return " ".join(found) or badge("clean", "nothing found")


def _verdict(facts: ModelFacts | None) -> str:
    said = verdict_line(facts) if facts is not None else ""
    return f"; {text(said)}" if said else ""


# -- findings --------------------------------------------------------------------------------------------------------------


def _finding(finding: Finding, rule: Rule | None, *, opened: bool) -> str:
    line = finding.where.place.line
    place = f' <span class="dim">line {line}</span>' if line is not None else ""
    severity = finding.severity.value
    summary = (
        f'{badge(severity, severity)} <span class="said">{text(finding.message)}</span>{place} '
        f'<span class="rule">{code(f"{finding.rule} {finding.code}")}</span>'
    )
    parts = ["<dl>"]
    known = known_lines(finding)
    if known:
        parts.append(f"<dt>How we know</dt>{''.join(f'<dd>{text(entry)}</dd>' for entry in known)}")
    parts.append(
        f"<dt>Why it matters</dt><dd>{prose(finding.why)}</dd><dt>How to mend it</dt><dd>{prose(finding.fix)}</dd></dl>"
    )
    if rule is not None:
        parts.append(details(f"About the rule {code(rule.id)}", _page(rule)))
    return details(summary, "".join(parts), opened=opened and severity == "error", kind=f"finding {severity}")


def _page(rule: Rule) -> str:
    """The rule's page, without what the finding says already."""
    parts = [
        f"<dt>What it means</dt><dd>{prose(rule.what)}</dd>",
        f"<dt>When it is reported</dt><dd>{code(rule.when.source)}</dd>",
    ]
    if rule.limits:
        parts.append(f"<dt>Limits</dt><dd>{prose(rule.limits)}</dd>")
    if rule.references:
        parts.append(f"<dt>References</dt>{''.join(f'<dd>{reference(entry)}</dd>' for entry in rule.references)}")
    return f"<dl>{''.join(parts)}</dl>"


# -- inputs and outputs ----------------------------------------------------------------------------------------------------


def _inputs(facts: ModelFacts) -> str:
    shown = [entry for entry in facts.inputs if not entry.weight]
    rows = [
        [
            str(entry.index),
            _named(entry),
            badge("role", entry.role),
            f"{entry.confidence:.0%}",
            _evidence(entry),
        ]
        for entry in shown[:_MOST_ROWS]
    ]
    more = f'<p class="dim">and {len(shown) - _MOST_ROWS} more</p>' if len(shown) > _MOST_ROWS else ""
    return "<h3>Inputs</h3>" + table(["#", "name", "role", "sure", "how we know"], rows, "Inputs and their roles") + more


def _evidence(entry: InputFacts) -> str:
    reasons = [f"{'not ' if reason.against else ''}{reason.speaks_for}: {reason.text}" for reason in entry.evidence]
    if not reasons:
        return ""
    items = "".join(f"<li>{text(reason, 300)}</li>" for reason in reasons)
    return (
        text(entry.evidence[0].text, 200)
        if len(reasons) == 1
        else details(text(entry.evidence[0].text, 200), f"<ul>{items}</ul>")
    )


def _named(entry: InputFacts | OutputFacts) -> str:
    """A name, and below it the type."""
    return f'{code(entry.name or "(unnamed)", 80)}<br><span class="dim">{code(_type(entry))}</span>'


def _type(entry: InputFacts | OutputFacts) -> str:
    shape = "" if entry.shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in entry.shape)}]"
    return f"{entry.dtype}{shape}"


def _outputs(facts: ModelFacts) -> str:
    rows = [
        [
            str(entry.index),
            _named(entry),
            badge(entry.padding.right.replace("/", ""), entry.padding.right),
            badge(entry.padding.left.replace("/", ""), entry.padding.left),
            badge(entry.batch, entry.batch),
            text(", ".join(entry.depends_on) or "nothing"),
        ]
        for entry in facts.outputs[:_MOST_ROWS]
    ]
    head = ["#", "name", "padded right", "padded left", "rows", "depends on"]
    return "<h3>Outputs</h3>" + table(head, rows, "Outputs and what reaches them")
