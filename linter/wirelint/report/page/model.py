"""One model's part of the HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.picture import ladder, matrix, svg
from wirelint.picture.drawing import Drawing, draw_chain, draw_route
from wirelint.report.common import counted, describe, known_lines, verdict_line
from wirelint.report.page.markup import badge, code, details, prose, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirelint.facts import InputFacts, ModelFacts, OutputFacts, SiteFacts
    from wirelint.findings import Finding, ModelReport
    from wirelint.rules.schema import Rule

__all__ = ["section"]

_MOST_PICTURES = 24
_MOST_ROWS = 200
_DRAWN_ROLES = ("ids", "decoder_ids", "mask", "decoder_mask", "segment", "position", "lengths", "pixel_mask", "bbox")
"""Inputs whose route is drawn at once; those of the others unfold."""


def section(model: ModelReport, rules: Mapping[str, Rule], key: str, *, opened: bool) -> str:
    """A ``section`` element.

    Args:
        model: what was found.
        rules: by id.
        key: an identifier that no other model of the page has.
        opened: its pictures and tables are unfolded.
    """
    facts = model.facts
    parts = [f"<h2>{text(model.path)}</h2>", f'<p class="dim">{text(describe(model))}{_verdict(facts)}</p>']
    if model.fault:
        parts.append(f"<p>{badge('error', 'not checked')} {text(model.fault)}</p>")
    parts.append(_findings(model, rules))
    if facts is not None:
        body = "".join([_inputs(facts), _outputs(facts), _routes(facts, key), _hearing(facts, key), _reach(facts, key)])
        parts.append(details("<b>Inputs, routes, attention, padding</b>", body, opened=opened))
    return f'<section class="model" id="{key}" aria-label="{text(model.path)}">{"".join(parts)}</section>'


def _verdict(facts: ModelFacts | None) -> str:
    said = verdict_line(facts) if facts is not None else ""
    return f"; {text(said)}" if said else ""


# -- findings --------------------------------------------------------------------------------------------------------------


def _findings(model: ModelReport, rules: Mapping[str, Rule]) -> str:
    if not model.findings:
        return "" if model.fault else f"<p>{badge('clean', 'nothing found')}</p>"
    return "<h3>Findings</h3>" + "".join(_finding(finding, rules.get(finding.rule)) for finding in model.findings)


def _finding(finding: Finding, rule: Rule | None) -> str:
    line = finding.where.place.line
    place = f' <span class="dim">line {line}</span>' if line is not None else ""
    severity = finding.severity.value
    summary = (
        f"{badge(severity, severity)} {code(f'{finding.rule} {finding.code}')} "
        f'<span class="said">{text(finding.message)}</span>{place}'
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
    return details(summary, "".join(parts), opened=severity == "error", kind=f"finding {severity}")


def _page(rule: Rule) -> str:
    """The rule's page, without what the finding says already."""
    parts = [
        f"<dt>What it means</dt><dd>{prose(rule.what)}</dd>",
        f"<dt>When it is reported</dt><dd>{code(rule.when.source)}</dd>",
    ]
    if rule.limits:
        parts.append(f"<dt>Limits</dt><dd>{prose(rule.limits)}</dd>")
    if rule.references:
        parts.append(f"<dt>References</dt>{''.join(f'<dd>{text(entry)}</dd>' for entry in rule.references)}")
    return f"<dl>{''.join(parts)}</dl>"


# -- inputs and outputs ----------------------------------------------------------------------------------------------------


def _inputs(facts: ModelFacts) -> str:
    shown = [entry for entry in facts.inputs if not entry.weight]
    rows = [
        [
            str(entry.index),
            code(entry.name or "(unnamed)", 80),
            badge("", entry.role),
            f"{entry.confidence:.0%}",
            code(_type(entry)),
            _evidence(entry),
        ]
        for entry in shown[:_MOST_ROWS]
    ]
    more = f'<p class="dim">and {len(shown) - _MOST_ROWS} more</p>' if len(shown) > _MOST_ROWS else ""
    return (
        "<h3>Inputs</h3>" + table(["#", "name", "role", "sure", "type", "how we know"], rows, "Inputs and their roles") + more
    )


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


def _type(entry: InputFacts | OutputFacts) -> str:
    shape = "" if entry.shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in entry.shape)}]"
    return f"{entry.dtype}{shape}"


def _outputs(facts: ModelFacts) -> str:
    rows = [
        [
            str(entry.index),
            code(entry.name or "(unnamed)", 80),
            badge(entry.padding.right.replace("/", ""), entry.padding.right),
            badge(entry.padding.left.replace("/", ""), entry.padding.left),
            badge(entry.batch, entry.batch),
            text(", ".join(entry.depends_on) or "nothing"),
            code(_type(entry)),
        ]
        for entry in facts.outputs[:_MOST_ROWS]
    ]
    head = ["#", "name", "padded right", "padded left", "rows", "depends on", "type"]
    return "<h3>Outputs</h3>" + table(head, rows, "Outputs and what reaches them")


# -- pictures --------------------------------------------------------------------------------------------------------------


def _routes(facts: ModelFacts, key: str) -> str:
    entries = [entry for entry in facts.inputs if not entry.weight and entry.route.nodes]
    first = [entry for entry in entries if entry.role in _DRAWN_ROLES or any(node.broken for node in entry.route.nodes)][
        :_MOST_PICTURES
    ]
    rest = [entry for entry in entries if entry not in first][:_MOST_PICTURES]
    pictures = "".join(_route(entry, f"{key}-i{entry.index}") for entry in first)
    others = "".join(_route(entry, f"{key}-i{entry.index}") for entry in rest)
    made = f'<div class="pictures">{pictures}</div>' if pictures else ""
    if others:
        made += details(f"Routes of {counted(len(rest), 'other input')}", f'<div class="pictures">{others}</div>')
    return f"<h3>Where each input goes</h3>{made}" if made else ""


def _route(entry: InputFacts, key: str) -> str:
    return _figure(draw_route(entry.route, entry.shown), f"<b>{text(entry.shown, 60)}</b>: {text(entry.role)}", key)


def _figure(drawing: Drawing, caption: str, key: str) -> str:
    picture = svg.inline(drawing, key)
    return (
        f"<figure><figcaption>{caption}</figcaption>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(drawing.title)}">{picture}</div></figure>'
    )


def _hearing(facts: ModelFacts, key: str) -> str:
    groups = matrix.alike(facts.attention.sites)[:_MOST_PICTURES]
    if not groups:
        return ""
    legend = "".join(
        f'<li><span style="background:var({color},{fallback})"></span>{words}</li>'
        for color, fallback, words in (
            ("--wl-heard", "#2f6f4f", "heard"),
            ("--wl-deaf", "#e8ebef", "not heard"),
            ("--wl-leak", "#d1242f", "padding that a real query hears"),
            ("--wl-idle", "#b8c0ca", "what a padded query hears, which nobody reads"),
            ("--wl-pad", "#d99a1c", "is padding"),
        )
    )
    figures = "".join(_matrix(group, f"{key}-a{at}") for at, group in enumerate(groups))
    return f'<h3>Who hears whom, right-padded</h3><ul class="legend">{legend}</ul><div class="pictures">{figures}</div>'


def _matrix(group: list[SiteFacts], key: str) -> str:
    site, number = group[0], len(group)
    kind = {"self": "self-attention", "cross": "cross-attention", "pooling": "attention pooling"}.get(site.kind, site.kind)
    whose = f"{counted(number, 'site')} of {kind}, " + ("causal, " if site.causal else "")
    state = f"mask {site.mask}" if site.needs_mask else "needs no mask"
    others = f" and {number - 1} more" if number > 1 else ""
    caption = (
        f"<b>{text(whose)}{text(state)}</b><br>{code(site.place.name or site.place.op_type, 60)}{others}"
        f'<br><span class="dim">{text(matrix.describe(site))}</span>'
    )
    return f'<figure><figcaption>{caption}</figcaption><div class="scroll">{matrix.inline(site, key)}</div></figure>'


def _reach(facts: ModelFacts, key: str) -> str:
    if not any(entry.padding.right != "n/a" for entry in facts.outputs):
        return ""
    figures = "".join(_side(facts, side, f"{key}-p{side}") for side in ("right", "left"))
    return f'<h3>How far padding gets</h3><div class="pictures">{figures}{"".join(_leaks(facts, key))}</div>'


def _side(facts: ModelFacts, side: str, key: str) -> str:
    drawn = ladder.inline(ladder.ladder(facts, side), side, key)
    return (
        f"<figure><figcaption><b>padded on the {side}</b></figcaption>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="padding on the {side}">{drawn}</div></figure>'
    )


def _leaks(facts: ModelFacts, key: str) -> Iterator[str]:
    """The chain by which padding gets into an output: one picture for each that differs."""
    seen: set[tuple[str, ...]] = set()
    for output in facts.outputs:
        for side in ("right", "left"):
            steps = getattr(output, f"witness_{side}")
            if steps and steps[:-1] not in seen and len(seen) < _MOST_PICTURES:
                seen.add(steps[:-1])
                title = f"how padding on the {side} gets into '{output.name}'"
                yield _figure(draw_chain(steps, title), f"<b>{text(title, 120)}</b>", f"{key}-w{output.index}{side}")
