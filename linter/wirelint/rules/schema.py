"""What a rule file holds, and how it is checked.

The same is published for editors as ``docs/rule.schema.json``; the messages here name file, line and cause.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from wirelint.facts import ENTITIES, Evidence, FileFacts, InputFacts, OutputFacts, Place
from wirelint.findings import Confidence, Severity
from wirelint.printable import printable
from wirelint.rules.conditions import Expression, ExpressionError, compile_expression, names_for
from wirelint.rules.hints import Hint, members
from wirelint.rules.templates import Template, compile_template

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirelint.located import Document

__all__ = ["FAMILIES", "Case", "Rule", "read_rule"]

FAMILIES = {
    "inputs": "1",
    "mask": "2",
    "segment": "3",
    "position": "3",
    "padding": "4",
    "shape": "5",
    "batch": "5",
    "expectation": "6",
    "file": "9",
}
"""Folders of the built-in rules, with the first digit of their codes."""

_KEYS = frozenset({
    "id", "code", "for", "when", "severity", "confidence", "message", "what", "why", "mend", "how_we_know", "limits",
    "references", "since", "examples", "unless", "once", "same", "where", "evidence", "trace",
})  # fmt: skip
_REQUIRED = ("id", "code", "for", "when", "severity", "message", "what", "why", "mend")
_CASE_KEYS = frozenset({"when", "severity", "confidence", "message"})
_EXAMPLE_KEYS = frozenset({"bad", "good"})
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3}")
_SEVERITIES = frozenset(severity.value for severity in Severity)
_CONFIDENCES = frozenset(confidence.value for confidence in Confidence)
_TEXTS = (str, Evidence)

Compiled = TypeVar("Compiled", Expression, Template)


@dataclass(frozen=True, slots=True)
class Case:
    """A circumstance under which a rule reports, with the weight that it has then.

    Attributes:
        when: the circumstance; None for always.
        severity, confidence: the weight.
        message: replaces the rule's message.
    """

    when: Expression | None
    severity: Severity
    confidence: Confidence
    message: Template


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, as its file says it; see ``docs/`` for what each key means.

    Attributes:
        kind: the kind of fact it is for, a key of :data:`wirelint.facts.ENTITIES`.
        cases: in order; the first whose circumstance holds decides.
        message: unless the case has its own.
        same_entity: ``unless`` counts at the same fact only.
        once: of several findings in one model only the worst is reported, with the number of the others.
        family: the folder that holds the file.
        path: the file.
        builtin: it ships with wirelint.
    """

    id: str
    code: str
    kind: str
    when: Expression
    cases: tuple[Case, ...]
    message: Template
    what: str
    why: Template
    mend: Template
    how_we_know: tuple[Template, ...]
    limits: str
    references: tuple[str, ...]
    since: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    unless: tuple[str, ...]
    same_entity: bool
    once: bool
    where: Expression | None
    evidence: Expression | None
    trace: Expression | None
    family: str
    path: Path
    builtin: bool

    @property
    def summary(self) -> str:
        """The first sentence of what it means, for lists."""
        return re.split(r"(?<=\.)\s", " ".join(self.what.split()), maxsplit=1)[0].removesuffix(".")

    @property
    def severity(self) -> Severity:
        """The worst that it may be."""
        return min((case.severity for case in self.cases), key=lambda severity: severity.rank)

    @property
    def confidence(self) -> Confidence:
        """How sure it is when it is at its worst."""
        return min(self.cases, key=lambda case: case.severity.rank).confidence


def read_rule(document: Document, family: str, *, builtin: bool) -> Rule:
    """Checks a rule file.

    Args:
        document: the file.
        family: the folder that holds it.
        builtin: it ships with wirelint, so its code must be of the family's block.

    Raises:
        ConfigurationError: with file, line and cause.
    """
    reader = _Reader(document)
    keys = document.mapping(known=_KEYS)
    for key in _REQUIRED:
        if key not in keys:
            raise document.error(f"the key '{key}' is missing")
    kind = document.word("for", among=ENTITIES)
    reader.names = names_for(kind)
    reader.given = when = reader.condition("when")
    message = _one_line(reader.template("message"))
    same = document.word("same", among=frozenset({"model", "entity"})) if "same" in keys else "model"
    if same == "entity" and "unless" not in keys:
        raise document.error("'same' says how far 'unless' reaches, and there is no 'unless'", "same")
    return Rule(
        id=reader.matching("id", _ID, "words in small letters, joined by hyphens, such as 'mask-folded'"),
        code=_code(reader, family, builtin=builtin),
        kind=kind,
        when=when,
        cases=_cases(reader, message),
        message=message,
        what=document.text("what").strip(),
        why=reader.template("why"),
        mend=reader.template("mend"),
        how_we_know=tuple(reader.template("how_we_know", index) for index in reader.optional_items("how_we_know")),
        limits=document.text("limits").strip() if "limits" in keys else "",
        references=document.texts("references") if "references" in keys else (),
        since=document.text("since") if "since" in keys else "",
        bad=reader.examples("bad"),
        good=reader.examples("good"),
        unless=document.texts("unless") if "unless" in keys else (),
        same_entity=same == "entity",
        once="once" in keys and document.flag("once"),
        where=reader.of_type("where", _is_place, "a place, or a fact that has a place or a line"),
        evidence=reader.of_type("evidence", lambda hint: _are_texts(hint, _TEXTS), "a collection of texts or evidence"),
        trace=reader.of_type("trace", lambda hint: _are_texts(hint, (str,)), "a collection of texts"),
        family=family,
        path=document.path,
        builtin=builtin,
    )


class _Reader:
    """Reads the keys of a rule that hold expressions."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.names: Mapping[str, Hint] = {}
        self.given: Expression | None = None
        """The rule's own condition: it holds wherever else an expression is evaluated."""

    def matching(self, key: str, pattern: re.Pattern[str], wanted: str) -> str:
        value = self.document.text(key)
        if not pattern.fullmatch(value):
            raise self.document.error(f"{key} must be {wanted}, not '{printable(value)}'", key)
        return value

    def condition(self, *route: str | int) -> Expression:
        expression = self._compiled(compile_expression, *route)
        if all(dataclasses.is_dataclass(member) for member in members(expression.hint)):
            raise self.document.error(f"'{expression.source}' is always true", *route)
        return expression

    def template(self, *route: str | int) -> Template:
        return self._compiled(compile_template, *route)

    def of_type(self, key: str, fits: Callable[[Hint], bool], wanted: str) -> Expression | None:
        if key not in self.document.data:
            return None
        expression = self._compiled(compile_expression, key)
        if not fits(expression.hint):
            raise self.document.error(f"{key} must be {wanted}; '{expression.source}' is not", key)
        return expression

    def optional_items(self, key: str) -> range:
        return self.document.items(key) if key in self.document.data else range(0)

    def examples(self, key: str) -> tuple[str, ...]:
        if "examples" not in self.document.data:
            return ()
        return self.document.texts("examples", key) if key in self.document.mapping("examples", known=_EXAMPLE_KEYS) else ()

    def _compiled(
        self, compiler: Callable[[str, Mapping[str, Hint], Expression | None], Compiled], *route: str | int
    ) -> Compiled:
        text = self.document.text(*route).strip()
        try:
            return compiler(text, self.names, self.given)
        except ExpressionError as error:
            key = next(step for step in reversed(route) if isinstance(step, str))
            raise self.document.error(f"in '{key}': {error}", *route) from None


def _code(reader: _Reader, family: str, *, builtin: bool) -> str:
    code = reader.matching("code", _CODE, "two to eight capital letters and three digits, such as 'WL201' or 'TEAM001'")
    if builtin:
        wanted = FAMILIES.get(family)
        if wanted is None:
            raise reader.document.error(f"'{family}' is no family of built-in rules", "code")
        if not code.startswith(f"WL{wanted}"):
            raise reader.document.error(f"codes of the family '{family}' start with WL{wanted}, and this is {code}", "code")
    elif code.startswith("WL"):
        raise reader.document.error(
            f"codes that start with WL are the built-in rules'; choose another prefix than in {code}", "code"
        )
    return code


def _cases(reader: _Reader, message: Template) -> tuple[Case, ...]:
    document = reader.document
    keys = document.data
    confidence = Confidence(document.word("confidence", among=_CONFIDENCES)) if "confidence" in keys else None
    if not isinstance(keys["severity"], list):
        if confidence is None:
            raise document.error("the key 'confidence' is missing")
        return (Case(None, Severity(document.word("severity", among=_SEVERITIES)), confidence, message),)
    cases = tuple(_case(reader, index, message, confidence) for index in document.items("severity"))
    if not cases:
        raise document.error("'severity' has no case", "severity")
    for index, case in enumerate(cases[:-1]):
        if case.when is None:
            raise document.error(
                "only the last case may be without 'when': those after it are never reached", "severity", index
            )
    return cases


def _case(reader: _Reader, index: int, message: Template, confidence: Confidence | None) -> Case:
    document = reader.document
    keys = document.mapping("severity", index, known=_CASE_KEYS)
    if "severity" not in keys:
        raise document.error("the case has no 'severity'", "severity", index)
    if "confidence" in keys:
        confidence = Confidence(document.word("severity", index, "confidence", among=_CONFIDENCES))
    if confidence is None:
        raise document.error("neither this case nor the rule has a 'confidence'", "severity", index)
    return Case(
        reader.condition("severity", index, "when") if "when" in keys else None,
        Severity(document.word("severity", index, "severity", among=_SEVERITIES)),
        confidence,
        _one_line(reader.template("severity", index, "message")) if "message" in keys else message,
    )


def _one_line(template: Template) -> Template:
    """A message is one line, however the YAML breaks it."""
    return Template(tuple(re.sub(r"\s+", " ", part) if isinstance(part, str) else part for part in template.parts))


def _is_place(hint: Hint) -> bool:
    located = (Place, InputFacts, OutputFacts, FileFacts)
    return all(
        member in located or member is type(None) or "place" in getattr(member, "__dataclass_fields__", ())
        for member in members(hint)
    )


def _are_texts(hint: Hint, texts: tuple[type, ...]) -> bool:
    arguments = [part for part in getattr(hint, "__args__", ()) if part is not Ellipsis]
    return bool(arguments) and all(argument in texts for argument in arguments)
