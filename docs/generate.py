"""Write the pages of this folder that come from the code, and what commands print in the pages that show it.

python3 tasks.py docs
"""  # noqa: INP001 -- a script

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from wirelint.facts import (
    AttentionFacts,
    BatchFacts,
    ContradictionFacts,
    EmbeddingFacts,
    Evidence,
    ExpectationFacts,
    FileFacts,
    InputFacts,
    MaskFacts,
    ModelFacts,
    OutputFacts,
    PaddingFacts,
    Place,
    ReductionFacts,
    SequenceFacts,
    SiteFacts,
)
from wirelint.rules import Rule, load_rules
from wirelint.rules.page import markdown_page

__all__ = ["excerpts", "pages"]

HERE = Path(__file__).resolve().parent
SHOWING = ("../README.md", "tutorial.md")
"""Pages with terminal excerpts: a block ``console`` whose first line is the command."""

PARTS = {
    ModelFacts: "`model`, the whole",
    InputFacts: "`input`, one by one in a rule `for: input`",
    OutputFacts: "`output`, one by one in a rule `for: output`",
    PaddingFacts: "`output.padding`",
    AttentionFacts: "`attention`, all sites together",
    SiteFacts: "`attention`, one by one in a rule `for: attention`",
    MaskFacts: "`mask`",
    EmbeddingFacts: "`embedding`, one by one in a rule `for: embedding`",
    ReductionFacts: "`reduction`, one by one in a rule `for: reduction`",
    SequenceFacts: "`sequence`",
    BatchFacts: "`batch`",
    ExpectationFacts: "`expect`",
    ContradictionFacts: "`contradiction`, one by one in a rule `for: contradiction`",
    FileFacts: "`file`, one by one in a rule `for: file`",
    Place: "a place in the file",
    Evidence: "a reason",
}
"""The dataclasses in the order of the page, and the name under which a rule sees each."""

FACTS_HEAD = """\
# Facts

What wirelint knows of a model before any rule judges it. `wirelint facts MODEL` prints it (`-f json` for all of it), and
the conditions and messages of [rules](writing-rules.md) are written in these names. This page is generated from
`linter/wirelint/facts.py`.
"""

RULES_HEAD = """\
# Rules

Generated from `rules/`; `wirelint explain RULE` prints the same page. The severity is the built-in one; several stand for
a rule that weighs the circumstances.

| code | rule | severity | looks at | means |
| --- | --- | --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Every page that comes from the code alone, by its path in this folder."""
    rules = sorted(load_rules(()).rules, key=lambda rule: rule.code)
    return {
        "facts.md": FACTS_HEAD + "".join(map(section, PARTS)),
        "rules/README.md": RULES_HEAD + "".join(map(row, rules)),
        **{f"rules/{rule.id}.md": markdown_page(rule) for rule in rules},
    }


def excerpts() -> dict[str, str]:
    """Every page that shows what commands print, by its path in this folder."""
    return {name: with_output((HERE / name).read_text(encoding="utf-8")) for name in SHOWING}


def with_output(page: str) -> str:
    """The page, with what its commands print now."""
    return re.sub(r"(?ms)^```console\n\$ wirelint (.*?)\n.*?^```$", lambda found: shown(found[1]), page)


def shown(arguments: str) -> str:
    """A terminal excerpt, run where the sample models are; how long it took is no news."""
    command = [sys.executable, "-m", "wirelint", *shlex.split(arguments)]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)  # noqa: S603 -- our own pages
    if done.returncode > 1 or "internal fault" in done.stdout:
        raise SystemExit(f"wirelint {arguments} failed: {done.stderr or done.stdout}")
    return f"```console\n$ wirelint {arguments}\n{re.sub(r' [(][0-9.]+ s[)]', '', done.stdout).strip()}\n```"


def row(rule: Rule) -> str:
    """A line of the list of rules."""
    severities = ", ".join(dict.fromkeys(str(case.severity) for case in rule.cases))
    return f"| {rule.code} | [{rule.id}]({rule.id}.md) | {severities} | {rule.kind} | {rule.summary} |\n"


def section(part: type[Any]) -> str:
    """One dataclass: its first sentence, its fields, its properties."""
    said = inspect.getdoc(part) or ""
    described = descriptions(said)
    fields = [(field.name, str(field.type), described.get(field.name, "")) for field in dataclasses.fields(part)]
    lines = [f"\n## {part.__name__}", f"\n{PARTS[part]}. {literal(said.split('Attributes:')[0])}", "\n| name | type | is |"]
    lines += [
        "| --- | --- | --- |",
        *(f"| `{name}` | {cell(kind)} | {text} |" for name, kind, text in (*fields, *computed(part))),
    ]
    return "\n".join(lines) + "\n"


def cell(kind: str) -> str:
    """A type for a table, whose columns a bar would split."""
    return "`" + kind.replace("|", "or") + "`"


def computed(part: type[Any]) -> list[tuple[str, str, str]]:
    """Properties, and methods without arguments, of a dataclass."""
    found = []
    for name, member in vars(part).items():
        call = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(call):
            shown = name if isinstance(member, property) else f"{name}()"
            found.append((shown, str(call.__annotations__["return"]), literal(inspect.getdoc(call) or "")))
    return found


def descriptions(said: str) -> dict[str, str]:
    """What the ``Attributes:`` of a docstring say of each name; ``a, b: text`` says it of both."""
    described: dict[str, str] = {}
    for entry in re.split(r"\n    (?=\S)", said.partition("Attributes:")[2]):
        names, _, text = entry.strip().partition(": ")
        described.update(dict.fromkeys(names.split(", "), literal(text)))
    return described


def literal(text: str) -> str:
    """A docstring's text on one line, as Markdown."""
    joined = " ".join(text.split())
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", joined.replace("``", "`")).replace("|", "\\|")


def main() -> None:
    """Writes every page, and removes pages of rules that are gone."""
    made = pages()
    for path in (HERE / "rules").glob("*.md"):
        if f"rules/{path.name}" not in made:
            path.unlink()
    for name, text in {**made, **excerpts()}.items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
