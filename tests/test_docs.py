"""The pages in ``docs/``: those that come from the code are up to date, and no link leads nowhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
GENERATE = runpy.run_path(str(DOCS / "generate.py"))
MADE: dict[str, str] = GENERATE["pages"]()


@pytest.mark.parametrize("name", MADE)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == MADE[name], "run: python3 tasks.py docs"


def test_what_commands_print_is_up_to_date() -> None:
    for name, text in GENERATE["excerpts"]().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run: python3 tasks.py docs"


def test_there_is_no_page_of_a_rule_that_is_gone() -> None:
    assert {f"rules/{path.name}" for path in (DOCS / "rules").iterdir()} == {name for name in MADE if name != "facts.md"}


def test_every_fact_is_described() -> None:
    undescribed = [line for line in MADE["facts.md"].splitlines() if re.fullmatch(r"\|.*\|\s*\|", line)]
    assert not undescribed


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
