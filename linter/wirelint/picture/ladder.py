"""How far padding got: a step for each attention site, from the inputs to the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.printable import printable

if TYPE_CHECKING:
    from wirelint.facts import ModelFacts

__all__ = ["SIGNS", "Rung", "ladder"]

_MOST = 24
_VERDICTS = {"safe": "clean", "leaks": "spoilt", "unknown": "unsure", "n/a": "off"}
_HEARD = {"heard": "hears padding", "hidden": "hides padding", "unknown": "is not known"}
SIGNS = {"clean": "✓", "spoilt": "✗", "unsure": "?", "off": "–"}  # noqa: RUF001 -- the dash of the others' width
"""A sign for each state, for those who do not tell its colour."""


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
    """The attention sites in order, alike ones in a row as one, then the outputs; the middle of very many is left out."""
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
    if len(rungs) > _MOST:
        left_out = Rung("…", "off", f"{len(rungs) - _MOST} more steps")
        rungs = [*rungs[: _MOST // 2], left_out, *rungs[-_MOST // 2 :]]
    return rungs
