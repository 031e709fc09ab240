"""What verifying gave, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from wirelint.paragraphs import reflow
from wirelint.printable import printable
from wirelint.verify.claims import Claim, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.verify.agreement import Agreement
    from wirelint.verify.reference import Against
    from wirelint.verify.verification import Verification

__all__ = ["render"]

_SIGNS = {Status.CONFIRMED: "confirmed", Status.REFUTED: "REFUTED", Status.NOT_MEASURABLE: "open"}
_COLORS = {Status.CONFIRMED: "32", Status.REFUTED: "31;1", Status.NOT_MEASURABLE: "33"}
_LABEL, _VERDICT, _NAME = 11, 14, 24


def render(found: Sequence[Verification], *, width: int = 120, color: bool = False, show_inputs: bool = False) -> str:
    """Each model with its verdicts beside their measurements, then one line that sums up."""
    lines: list[str] = []
    for made in found:
        lines += _model(made, width, color=color, show_inputs=show_inputs)
        lines.append("")
    return "\n".join([*lines, _summary(found)]) + "\n"


def _model(made: Verification, width: int, *, color: bool, show_inputs: bool) -> Iterator[str]:
    measured = f"{made.path_name}, seed {made.seed} ({made.seconds:.1f} s)" if made.path_name else "not read"
    yield f"{_paint(printable(made.path), '1', color)}  {measured}"
    if made.stopped:
        yield from _wrapped("not run", made.stopped, width)
    for reason in made.refused:
        yield from _wrapped("refused", f"its declared shapes allow what does not run: {reason}", width)
    for name in made.infinite:
        yield from _wrapped("not finite", f"'{printable(name, 60)}' holds NaN or infinities for an ordinary batch", width)
    longest = max((min(len(printable(claim.output)), _NAME) for claim in made.claims), default=0)
    for claim in made.claims:
        yield from _claim(claim, longest, width, color=color)
    if made.agreement is not None:
        yield from _agreement(made.agreement, width)
    if made.against is not None:
        yield from _against(made.against, width)
    if show_inputs:
        for feed in made.feeds:
            name = printable(feed.names[0], 60) if feed.names else "(unnamed)"
            yield f"  input {name}: {feed.role}, {feed.array.dtype}{list(feed.array.shape)}"
            shown = np.array2string(feed.array, threshold=200, max_line_width=width - 4, precision=4)
            yield from (f"    {line}" for line in shown.splitlines())


def _claim(claim: Claim, name_width: int, width: int, *, color: bool) -> Iterator[str]:
    sign = _paint(_SIGNS[claim.status].ljust(_LABEL), _COLORS[claim.status], color)
    subject = f"{claim.question.ljust(14)}{printable(claim.output, _NAME).ljust(name_width + 2)}{claim.verdict.ljust(_VERDICT)}"
    first, *rest = reflow(printable(claim.measured), max(width - 2 - _LABEL - len(subject), 40)) or [""]
    yield f"  {sign}{subject}{first}"
    yield from (" " * (2 + _LABEL + len(subject)) + line for line in rest)


def _agreement(agreement: Agreement, width: int) -> Iterator[str]:
    for name, reason in agreement.failed.items():
        yield from _wrapped("path", f"{name} does not run it: {reason}", width)
    parted = agreement.parted
    for entry in parted:
        said = "their shapes differ" if entry.change is None else f"{entry.change}; rounding explains {entry.tolerance:g}"
        yield from _wrapped("parted", f"'{printable(entry.output, 60)}': {entry.one} against {entry.other}: {said}", width)
    if len(agreement.ran) > 1 and not parted:
        known = [entry.change.relative for entry in agreement.differences if entry.change is not None]
        farthest = f"; the farthest apart are {max(known):.1e} of an output's scale" if known else ""
        yield from _wrapped("agree", f"{len(agreement.ran)} execution paths give the same{farthest}", width)
    elif not parted:
        yield from _wrapped("path", "there is only one execution path to run it on", width)


def _against(against: Against, width: int) -> Iterator[str]:
    name = printable(against.reference)
    if against.stopped:
        yield from _wrapped("reference", f"{name}: {against.stopped}", width)
        return
    for said in against.own_inputs:
        yield from _wrapped("reference", said, width)
    for entry in against.differences:
        change = "the shapes differ" if entry.change is None else str(entry.change)
        if entry.beyond:
            yield from _wrapped("parted", f"'{printable(entry.output, 60)}' is not what {name} gives: {change}", width)
        else:
            yield from _wrapped("agree", f"'{printable(entry.output, 60)}' is what {name} gives, to {entry.tolerance:g}", width)
    for output in against.alone:
        yield from _wrapped("reference", f"it has no output '{printable(output, 60)}'", width)
    if against.parting is not None:
        yield from _wrapped("bisect", str(against.parting), width)


def _wrapped(label: str, text: str, width: int) -> Iterator[str]:
    for line in reflow(printable(text), max(width - 2 - _LABEL, 40)):
        yield f"  {label.ljust(_LABEL)}{line}"
        label = ""


def _summary(found: Sequence[Verification]) -> str:
    counts = Counter(claim.status for made in found for claim in made.claims)
    said = ", ".join(f"{counts[status]} {status}" for status in Status)
    models = f"{len(found)} model{'s' if len(found) != 1 else ''}"
    line = f"{said} in {models} ({sum(made.seconds for made in found):.1f} s)"
    stopped = sum(bool(made.stopped) for made in found)
    if stopped:
        line += f"; {stopped} not run"
    if counts[Status.REFUTED]:
        line += "; a refuted verdict is a bug of wirelint: please report it, with the smallest model that shows it"
    return line


def _paint(text: str, code: str, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text
