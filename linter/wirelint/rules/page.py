"""A rule's own page, made from its file: for ``wirelint explain``, the documentation and reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wirelint.paragraphs import reflow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.rules.schema import Rule

__all__ = ["as_object", "help_text", "markdown_page", "text_page"]

_KINDS = {
    "input": "every input",
    "output": "every output",
    "attention": "every attention site",
    "embedding": "every embedding table",
    "reduction": "every reduction over positions",
    "contradiction": "every contradiction between the graph and the files beside it, its contract or its reference",
    "model": "the model as a whole",
    "file": "the file",
}


def markdown_page(rule: Rule) -> str:
    """The page with fixed headings, as Markdown."""
    lines = [f"# {rule.id}", "", f"`{rule.code}` · {_weight(rule)} · looks at {_KINDS[rule.kind]}", ""]
    if rule.since:
        lines[2] += f" · since {rule.since}"
    if not rule.message.is_field:
        lines += [f"> {_inline(rule.message.general)}", ""]
    for heading, body in _sections(rule):
        lines += [f"## {heading}", "", body, ""]
    return "\n".join(lines)


def text_page(rule: Rule, width: int = 100) -> str:
    """The page for a terminal."""
    since = f", since {rule.since}" if rule.since else ""
    lines = [f"{rule.id} ({rule.code})", f"{_weight(rule)}; looks at {_KINDS[rule.kind]}{since}", ""]
    if not rule.message.is_field:
        lines += [*_indented(rule.message.general, width), ""]
    for heading, body in _sections(rule):
        lines += [heading, *_indented(body, width), ""]
    return "\n".join(lines)


def help_text(rule: Rule) -> str:
    """The sections alone, as Markdown, for reports that bring their own heading."""
    return "\n\n".join(f"**{heading}**\n\n{body}" for heading, body in _sections(rule))


def as_object(rule: Rule) -> dict[str, Any]:
    """The rule as plain data."""
    return {
        "id": rule.id,
        "code": rule.code,
        "family": rule.family,
        "for": rule.kind,
        "severity": rule.severity.value,
        "confidence": rule.confidence.value,
        "cases": [
            {
                "when": case.when.source if case.when else None,
                "severity": case.severity.value,
                "confidence": case.confidence.value,
                "message": case.message.general,
            }
            for case in rule.cases
        ],
        "when": rule.when.source,
        "message": rule.message.general,
        "what": rule.what,
        "why": rule.why.general.strip(),
        "mend": rule.mend.general.strip(),
        "limits": rule.limits,
        "references": list(rule.references),
        "since": rule.since,
        "examples": {"bad": list(rule.bad), "good": list(rule.good)},
        "unless": list(rule.unless),
        "once": rule.once,
    }


def _sections(rule: Rule) -> Iterator[tuple[str, str]]:
    yield "What it means", rule.what
    yield "Why it matters", _inline(rule.why.general.strip())
    yield "How to mend it", _inline(rule.mend.general.strip())
    yield "When it is reported", f"`{rule.when.source}`{_cases(rule)}"
    if rule.unless:
        same = " for the same place" if rule.same_entity else ""
        yield (
            "When it is not",
            f"When one of these was reported{same}, which is the cause: {', '.join(f'`{name}`' for name in rule.unless)}.",
        )
    if rule.once:
        yield "How often", "Once per model; further places are counted in the message."
    if rule.limits:
        yield "Limits", rule.limits
    if rule.bad or rule.good:
        yield (
            "Samples",
            "\n".join([*(f"- reported for `{name}`" for name in rule.bad), *(f"- not for `{name}`" for name in rule.good)]),
        )
    if rule.references:
        yield "References", "\n".join(f"- {reference}" for reference in rule.references)


def _cases(rule: Rule) -> str:
    if len(rule.cases) == 1 and rule.cases[0].when is None:
        return ""
    lines = [
        f"- {case.severity}, confidence {case.confidence}: {f'`{case.when.source}`' if case.when else 'otherwise'}"
        for case in rule.cases
    ]
    return "\n\n" + "\n".join(lines)


def _weight(rule: Rule) -> str:
    severities = list(dict.fromkeys(case.severity.value for case in rule.cases))
    return f"{' or '.join(severities)}, confidence {rule.confidence}"


def _inline(text: str) -> str:
    """Fields as code, so that Markdown does not take their angle brackets for HTML."""
    return re.sub(r"<([^<>`\n]+)>", r"`<\1>`", text)


def _indented(text: str, width: int) -> list[str]:
    return [f"  {line}" for line in reflow(text, width - 2)]
