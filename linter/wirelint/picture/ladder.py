"""Draws how far padding got: a step for each attention site, from the inputs to the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from wirelint.printable import printable

if TYPE_CHECKING:
    from wirelint.facts import ModelFacts

__all__ = ["STYLE", "Rung", "inline", "ladder"]

STYLE = """
.wl .clean { fill: var(--wl-clean, #2f8f5b); }
.wl .spoilt { fill: var(--wl-leak, #d1242f); }
.wl .unsure { fill: var(--wl-pad, #d99a1c); }
.wl .off { fill: var(--wl-idle, #b8c0ca); }
.wl .count { fill: #ffffff; font-weight: 600; text-anchor: middle; }
.wl .rail { stroke: var(--wl-line, #8a94a3); stroke-width: 2; }
"""

_MOST = 24
_STEP, _TOP, _SIZE = 78, 30, 22
_VERDICTS = {"safe": "clean", "leaks": "spoilt", "unknown": "unsure", "n/a": "off"}
_HEARD = {"heard": "hears padding", "hidden": "hides padding", "unknown": "is not known"}
_SIGNS = {"clean": "✓", "spoilt": "✗", "unsure": "?", "off": "-"}


@dataclass(frozen=True, slots=True)
class Rung:
    """One step on the way.

    Attributes:
        label: what it is.
        state: ``clean``, ``spoilt`` (padded content stands at real positions from here on), ``unsure`` or ``off``.
        said: the same in words.
        count: sites in a row that it stands for.
    """

    label: str
    state: str
    said: str
    count: int = 1


def ladder(facts: ModelFacts, side: str) -> list[Rung]:
    """The attention sites in order, alike ones in a row as one, then the outputs."""
    rungs: list[Rung] = []
    for at, site in enumerate(facts.attention.sites, start=1):
        heard = getattr(site, f"heard_{side}") if site.needs_mask else "hidden"
        spoilt = getattr(site, f"spoilt_{side}")
        state = "spoilt" if spoilt or heard == "heard" else "unsure" if heard == "unknown" else "clean"
        said = "already reads padding" if spoilt else _HEARD[heard]
        if rungs and (rungs[-1].state, rungs[-1].said) == (state, said):
            count = rungs[-1].count + 1
            rungs[-1] = Rung(f"{at - count + 1}-{at}", state, said, count)
        else:
            rungs.append(Rung(f"{at}", state, said))
    rungs = [Rung(f"attention {rung.label}", rung.state, rung.said, rung.count) for rung in rungs]
    for output in facts.outputs:
        verdict = getattr(output.padding, side)
        rungs.append(Rung(printable(output.name, 22) or f"output {output.index}", _VERDICTS[verdict], f"output: {verdict}"))
    return rungs


def inline(rungs: list[Rung], side: str, key: str) -> str:
    """An ``svg`` element, from left to right."""
    shown = rungs if len(rungs) <= _MOST else [*rungs[: _MOST // 2], *rungs[-_MOST // 2 :]]
    step = max([_STEP, *(int(max(len(rung.label), len(rung.said)) * 6.2) + 14 for rung in shown)])
    width, height = step * len(shown), _TOP + _SIZE + 40
    parts = [f'<line class="rail" x1="{step / 2:.0f}" x2="{width - step / 2:.0f}" y1="{_TOP}" y2="{_TOP}"/>']
    for at, rung in enumerate(shown):
        x = step * (at + 0.5)
        sign = _SIGNS[rung.state]
        parts.append(
            f'<circle class="{rung.state}" cx="{x:.0f}" cy="{_TOP}" r="{_SIZE / 2 + 2:.0f}"/>'
            f'<text class="count" x="{x:.0f}" y="{_TOP + 5}">{sign}{f"{rung.count}" if rung.count > 1 else ""}</text>'
            f'<text class="title" text-anchor="middle" x="{x:.0f}" y="{_TOP + 32}">{escape(printable(rung.label))}</text>'
            f'<text class="small" text-anchor="middle" x="{x:.0f}" y="{_TOP + 48}">{escape(rung.said)}</text>'
        )
    words = "; ".join(f"{rung.label} {rung.said}" for rung in shown)
    said = escape(printable(f"padded on the {side}: {words}"))
    return (
        f'<svg class="wl" role="img" aria-labelledby="{key}-t" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title id="{key}-t">{said}</title>{"".join(parts)}</svg>'
    )
