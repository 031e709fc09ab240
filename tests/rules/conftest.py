"""Rule files for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirelint.located import read_yaml
from wirelint.rules import Rule, RuleSet
from wirelint.rules.schema import read_rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BASE = {
    "id": "some-rule",
    "code": "OWN001",
    "for": "input",
    "when": "input.role == 'mask'",
    "severity": "error",
    "confidence": "high",
    "message": '"{input.shown} is a mask"',
    "what": "What.",
    "why": "Why.",
    "mend": "Mend.",
}


@pytest.fixture
def write_rule(tmp_path: Path) -> Callable[..., Path]:
    """Writes a rule file: a complete one, with some keys changed; a key whose value is None is left out, one key a line."""

    def write(name: str = "rule", **changes: str | None) -> Path:
        folder = tmp_path / "rules"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.yaml"
        keys = {**BASE, **changes}
        path.write_text("".join(f"{key}: {value}\n" for key, value in keys.items() if value is not None))
        return path

    return write


@pytest.fixture
def read(write_rule: Callable[..., Path]) -> Callable[..., Rule]:
    def read(*, family: str = "own", builtin: bool = False, **changes: str | None) -> Rule:
        return read_rule(read_yaml(write_rule(**changes)), family, builtin=builtin)

    return read


@pytest.fixture
def rule_set(read: Callable[..., Rule]) -> Callable[..., RuleSet]:
    """A set of rules, each given as changes to the complete one; codes are made up."""

    def make(*entries: dict[str, str | None]) -> RuleSet:
        return RuleSet(tuple(read(**{"code": f"OWN{index:03}", **entry}) for index, entry in enumerate(entries)))

    return make
