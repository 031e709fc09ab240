"""The pictures of one model: where each input goes, who hears whom, how far padding gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.picture import matrix, svg
from wirelint.picture.drawing import draw_chain, draw_route
from wirelint.picture.ladder import SIGNS, ladder
from wirelint.report.common import counted
from wirelint.report.page.markup import code, details, scrolling, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import InputFacts, ModelFacts, SiteFacts
    from wirelint.picture.drawing import Drawing

__all__ = ["hearing", "reach", "routes"]

_MOST_PICTURES = 24
_DRAWN_ROLES = ("ids", "decoder_ids", "mask", "decoder_mask", "segment", "position", "lengths", "pixel_mask", "bbox")
"""Inputs whose route is drawn at once; those of the others unfold."""
_SHORT = 3
"""Boxes of a route that takes little height; so many such pictures stand one above the other."""
_KINDS = {"self": "self-attention", "cross": "cross-attention", "pooling": "attention pooling"}
_LEGEND = (
    ("heard", "heard"),
    ("deaf", "not heard"),
    ("leak", "padding that a real query hears"),
    ("idle", "what a padded query hears, which nobody reads"),
    ("pad", "is padding"),
)


def routes(facts: ModelFacts, key: str) -> str:
    """The route of each input.

    Args:
        facts: of the model.
        key: an identifier that no other model of the page has.
    """
    entries = [entry for entry in facts.inputs if not entry.weight and entry.route.nodes]
    first = [entry for entry in entries if entry.role in _DRAWN_ROLES or any(node.broken for node in entry.route.nodes)]
    rest = [entry for entry in entries if entry not in first]
    if not first:
        first, rest = rest, []
    left_out = len(first[_MOST_PICTURES:]) + len(rest[_MOST_PICTURES:])
    made = _routes(first[:_MOST_PICTURES], key) if first else ""
    if rest:
        made += details(f"Routes of {counted(len(rest), 'other input')}", _routes(rest[:_MOST_PICTURES], key))
    if left_out:
        made += f'<p class="dim">The routes of {counted(left_out, "more input")} are not drawn.</p>'
    return f"<h3>Where each input goes</h3>{made}" if made else ""


def hearing(facts: ModelFacts, key: str) -> str:
    """The matrix of each kind of attention site."""
    groups = matrix.alike(facts.attention.sites)
    undrawn = sum(not site.matrix for site in facts.attention.sites) + sum(map(len, groups[_MOST_PICTURES:]))
    if not facts.attention.sites:
        return ""
    legend = "".join(
        f'<li><svg class="wl" width="12" height="12" aria-hidden="true">{matrix.cell(0, 0, kind)}</svg>{words}</li>'
        for kind, words in _LEGEND
    )
    figures = "".join(_matrix(group, f"{key}-a{at}") for at, group in enumerate(groups[:_MOST_PICTURES]))
    made = f'<ul class="legend">{legend}</ul><div class="pictures">{figures}</div>' if figures else ""
    if undrawn:
        made += f'<p class="dim">{counted(undrawn, "site")} not drawn: too long for a picture, or not seen running.</p>'
    return f"<h3>Who hears whom, right-padded</h3>{made}"


def reach(facts: ModelFacts, key: str) -> str:
    """The ladder of each side of padding, and the chains by which padding gets into outputs."""
    if not any(entry.padding.right != "n/a" for entry in facts.outputs):
        return ""
    ladders = "".join(_ladder(facts, side) for side in ("right", "left"))
    leaks = "".join(_leaks(facts, key))
    beside = f'<div class="stack">{ladders}</div>{leaks}' if leaks else ladders
    return f'<h3>How far padding gets</h3><div class="pictures">{beside}</div>'


def _routes(entries: Sequence[InputFacts], key: str) -> str:
    """Short pictures one above the other, tall ones beside them, so that little ground stays empty."""
    short = [entry for entry in entries if len(entry.route.nodes) <= _SHORT]
    tall = [entry for entry in entries if entry not in short]
    height = _SHORT if tall else 1
    stacks = [short[at : at + height] for at in range(0, len(short), height)]
    columns = [
        f'<div class="stack">{"".join(_route(entry, key) for entry in column)}</div>'
        for column in [*stacks, *([entry] for entry in tall)]
    ]
    return f'<div class="pictures">{"".join(columns)}</div>'


def _route(entry: InputFacts, key: str) -> str:
    caption = f"<b>{text(entry.shown, 60)}</b>: {text(entry.role)}"
    return _figure(draw_route(entry.route, entry.shown), caption, f"{key}-i{entry.index}")


def _figure(drawing: Drawing, caption: str, key: str) -> str:
    steps = "".join(f"<li>{'<br>'.join(map(text, box.hint.splitlines()))}</li>" for box in drawing.boxes)
    words = details("In words", f"<ol>{steps}</ol>", kind="words")
    return f"<figure><figcaption>{caption}</figcaption>{scrolling(svg.inline(drawing, key), drawing.title)}{words}</figure>"


def _matrix(group: Sequence[SiteFacts], key: str) -> str:
    site, number = group[0], len(group)
    whose = f"{counted(number, 'site')} of {_KINDS.get(site.kind, site.kind)}, {'causal, ' if site.causal else ''}"
    state = f"mask {site.mask}" if site.needs_mask else "needs no mask"
    others = f" and {number - 1} more" if number > 1 else ""
    caption = (
        f"<b>{text(whose)}{text(state)}</b><br>{code(site.place.name or site.place.op_type, 60)}{others}"
        f'<br><span class="dim">{text(matrix.describe(site))}</span>'
    )
    drawn = scrolling(matrix.inline(site, key), f"who hears whom at {site.place.name or site.place.op_type}")
    return f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>"


def _ladder(facts: ModelFacts, side: str) -> str:
    rungs = "".join(
        f'<li><span class="sign {rung.state}" aria-hidden="true">{SIGNS[rung.state]}</span>'
        f'<span><b>{text(rung.label)}</b> <span class="dim">{text(rung.said)}</span></span></li>'
        for rung in ladder(facts, side)
    )
    return f'<figure><figcaption><b>padded on the {side}</b></figcaption><ol class="ladder">{rungs}</ol></figure>'


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
