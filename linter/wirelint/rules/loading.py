"""Finds rule files, reads them, and keeps them as one set without contradictions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from wirelint.errors import ConfigurationError
from wirelint.located import read_yaml
from wirelint.printable import printable
from wirelint.rules.schema import Rule, read_rule
from wirelint.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["RuleSet", "builtin_folder", "load_rules"]


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules that go together: no two share an id or a code, and ``unless`` names rules that exist.

    Attributes:
        rules: sorted by code.
    """

    rules: tuple[Rule, ...]

    @functools.cached_property
    def by_id(self) -> Mapping[str, Rule]:
        return {rule.id: rule for rule in self.rules}

    @functools.cached_property
    def in_order(self) -> tuple[Rule, ...]:
        """Each rule after those that its ``unless`` names."""
        sorter = TopologicalSorter({rule.id: rule.unless for rule in self.rules})
        rank = {name: index for index, name in enumerate(sorter.static_order())}
        return tuple(sorted(self.rules, key=lambda rule: rank[rule.id]))

    def select(self, word: str) -> frozenset[str]:
        """The ids of the rules that a word means: an id, a code, the beginning of one, a family, or ``all``.

        Raises:
            ConfigurationError: it means none.
        """
        if word == "all":
            return frozenset(self.by_id)
        found = {rule.id for rule in self.rules if word in (rule.id, rule.family)}
        if not found and word.isupper():
            found = {rule.id for rule in self.rules if rule.code.startswith(word)}
        if not found:
            known = {*self.by_id, *(rule.code for rule in self.rules), *(rule.family for rule in self.rules)}
            raise ConfigurationError(
                f"no rule is called '{printable(word)}'{did_you_mean(word, known) or '; `wirelint rules` lists them'}"
            )
        return frozenset(found)


def builtin_folder() -> Path:
    """Where the rules that ship with wirelint are: inside the installed package, or beside the sources."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "catalogue"
    return installed if installed.is_dir() else package.parent.parent / "rules"


def load_rules(folders: tuple[Path, ...] = ()) -> RuleSet:
    """The built-in rules and those in further folders.

    Raises:
        ConfigurationError: a folder or a rule is wrong; names file, line and cause.
    """
    rules = [*_builtin_rules(builtin_folder())]
    for folder in folders:
        if not folder.is_dir():
            raise ConfigurationError(f"{folder}: no such folder of rules")
        rules.extend(_read_folder(folder, builtin=False))
    _refuse_duplicates(rules)
    _refuse_loose_ends(rules)
    return RuleSet(tuple(sorted(rules, key=lambda rule: (not rule.builtin, rule.code))))


@functools.cache
def _builtin_rules(folder: Path) -> tuple[Rule, ...]:
    return tuple(_read_folder(folder, builtin=True))


def _read_folder(folder: Path, *, builtin: bool) -> Iterator[Rule]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file())
    if not files:
        raise ConfigurationError(f"{folder}: no rule file (*.yaml) in this folder")
    for path in files:
        family = path.parent.name if path.parent != folder else "own"
        rule = read_rule(read_yaml(path), family, builtin=builtin)
        if builtin and path.stem != rule.id:
            raise ConfigurationError(f"{path}:1: the file must be called '{rule.id}.yaml', after the rule in it")
        yield rule


def _refuse_duplicates(rules: Iterable[Rule]) -> None:
    seen: dict[str, Rule] = {}
    for rule in rules:
        for name in (rule.id, rule.code):
            if name in seen:
                raise ConfigurationError(f"{rule.path}:1: '{name}' is taken by the rule in {seen[name].path}")
            seen[name] = rule


def _refuse_loose_ends(rules: list[Rule]) -> None:
    """Every ``unless`` names a rule of the set, of the same kind where it must be, and none waits for itself."""
    by_id = {rule.id: rule for rule in rules}
    for rule in rules:
        for name in rule.unless:
            if name not in by_id:
                raise ConfigurationError(
                    f"{rule.path}: in 'unless': no rule is called '{printable(name)}'{did_you_mean(name, by_id)}"
                )
            if rule.same_entity and by_id[name].kind != rule.kind:
                raise ConfigurationError(
                    f"{rule.path}: in 'unless': '{name}' is for '{by_id[name].kind}' and this rule for '{rule.kind}', "
                    "so they never meet at the same entity"
                )
    try:
        TopologicalSorter({rule.id: rule.unless for rule in rules}).prepare()
    except CycleError as error:
        circle = " > ".join(error.args[1])
        raise ConfigurationError(f"{by_id[error.args[1][0]].path}: 'unless' goes round in a circle: {circle}") from None
