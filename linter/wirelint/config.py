"""Configuration: ``wirelint.yaml``, ``.wirelint.yaml`` or ``[tool.wirelint]`` in ``pyproject.toml``.

The nearest one upwards from a model counts, up to the root of its git repository.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelint.errors import ConfigurationError
from wirelint.findings import Severity
from wirelint.globs import matches
from wirelint.located import Document, Route, read_yaml
from wirelint.suppress import Suppression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FAIL_ON", "Config", "Override", "Waiver", "config_for", "default_config", "find_config", "read_config"]

FILES = ("wirelint.yaml", ".wirelint.yaml", "pyproject.toml")
FAIL_ON: Mapping[str, Severity | None] = {**{severity.value: severity for severity in Severity}, "never": None}

_KEYS = frozenset({
    "select", "ignore", "fail-on", "severity", "exclude", "rules", "baseline", "overrides", "suppressions",
    "trust-model-suppressions",
})  # fmt: skip
_OVERRIDE_KEYS = frozenset({"paths", "select", "ignore", "severity", "fail-on"})
_SUPPRESSION_KEYS = frozenset({"rule", "path", "input", "where", "reason"})
_SEVERITIES = frozenset(severity.value for severity in Severity)


@dataclass(frozen=True, slots=True)
class Override:
    """Settings for some models only.

    Attributes:
        paths: patterns, relative to the configuration's folder.
        select: replaces the selection; None to leave it.
        ignore: added to what is ignored.
        severity: put over the other severities.
        fail_on: replaces it; ``None`` in a tuple for never, an empty tuple to leave it.
    """

    paths: tuple[str, ...]
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    fail_on: tuple[Severity | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiver:
    """An entry of ``suppressions``, before its rule is looked up; see :class:`wirelint.suppress.Suppression`."""

    rule: str
    path: str
    reason: str
    source: str
    input: int | str | None = None
    where: str = ""

    def resolved(self, rules: frozenset[str]) -> Suppression:
        """The suppression for these rules."""
        return Suppression(rules, self.path, self.reason, self.source, input=self.input, where=self.where)


@dataclass(frozen=True, slots=True)
class Config:
    """Settings, from a file or none, with the command line's put over them.

    Attributes:
        path: the file; None when there is none.
        root: the folder to which paths are relative.
        select: words for rules (see :meth:`wirelint.rules.RuleSet.select`); None for all.
        ignore: words for rules.
        severity: words for rules with the severity that they get, later ones over earlier ones.
        fail_on: findings at or above it fail the run; None for never.
        exclude: patterns for models that are passed over.
        rules: folders with further rules.
        baseline: a baseline file.
        overrides: settings for some models, later ones over earlier ones.
        waivers: suppressions.
        trust_model_suppressions: heed suppressions inside models.
    """

    root: Path
    path: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    fail_on: Severity | None = Severity.ERROR
    exclude: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    baseline: Path | None = None
    overrides: tuple[Override, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    trust_model_suppressions: bool = False

    def relative(self, path: str) -> str:
        """A model's path relative to the root, with forward slashes; as it stands when it is on another drive."""
        try:
            return Path(os.path.relpath(path, self.root)).as_posix()
        except ValueError:
            return Path(path).as_posix()

    def excludes(self, relative_path: str) -> bool:
        """Whether the model is to be passed over."""
        return any(matches(pattern, relative_path) for pattern in self.exclude)

    def for_model(self, relative_path: str) -> Config:
        """The settings for one model: the overrides that match it are put over the rest."""
        config = self
        for entry in self.overrides:
            if any(matches(pattern, relative_path) for pattern in entry.paths):
                config = dataclasses.replace(
                    config,
                    select=config.select if entry.select is None else entry.select,
                    ignore=(*config.ignore, *entry.ignore),
                    severity=(*config.severity, *entry.severity),
                    fail_on=entry.fail_on[0] if entry.fail_on else config.fail_on,
                )
        return config


def config_for(model: Path) -> Config:
    """The settings from the nearest configuration upwards from a model, or the defaults.

    Raises:
        ConfigurationError: the file is wrong.
    """
    folder = Path(os.path.abspath(model)).parent  # noqa: PTH100 -- a link's own place counts, not its target's
    path = find_config(folder)
    return default_config(folder) if path is None else read_config(path)


def default_config(folder: Path) -> Config:
    """The defaults; paths are relative to the git repository around a folder, else to the working folder."""
    root = next((candidate for candidate in (folder, *folder.parents) if (candidate / ".git").exists()), None)
    return Config(root=root or Path.cwd())


def find_config(folder: Path) -> Path | None:
    """The configuration file that counts for a folder, as seen from the working folder when that is around it.

    Raises:
        ConfigurationError: a ``pyproject.toml`` on the way can't be read.
    """
    for candidate in (folder, *folder.parents):
        for name in FILES:
            path = candidate / name
            if path.is_file() and (name != "pyproject.toml" or _has_table(path)):
                here = Path.cwd()
                return path.relative_to(here) if path.is_relative_to(here) else path
        if (candidate / ".git").exists():
            return None
    return None


def _has_table(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror or error}") from None
    return re.search(r"^\s*\[+\s*tool\s*\.\s*\"?wirelint\b", text, re.MULTILINE) is not None


def read_config(path: Path) -> Config:
    """Reads and checks a configuration file.

    Raises:
        ConfigurationError: with file, line and cause.
    """
    document = _read_toml(path) if path.suffix == ".toml" else read_yaml(path)
    root = Path(os.path.abspath(path)).parent  # noqa: PTH100 -- as in config_for
    if document.data is None:
        return Config(root=root, path=path)
    keys = document.mapping(known=_KEYS)
    return Config(
        root=root,
        path=path,
        select=document.texts("select") if "select" in keys else None,
        ignore=document.texts("ignore") if "ignore" in keys else (),
        severity=_severities(document, "severity") if "severity" in keys else (),
        fail_on=FAIL_ON[document.word("fail-on", among=FAIL_ON)] if "fail-on" in keys else Severity.ERROR,
        exclude=document.texts("exclude") if "exclude" in keys else (),
        rules=tuple(root / folder for folder in document.texts("rules")) if "rules" in keys else (),
        baseline=root / document.text("baseline") if "baseline" in keys else None,
        overrides=tuple(_override(document, index) for index in document.items("overrides")) if "overrides" in keys else (),
        waivers=tuple(_waiver(document, index) for index in document.items("suppressions")) if "suppressions" in keys else (),
        trust_model_suppressions="trust-model-suppressions" in keys and document.flag("trust-model-suppressions"),
    )


def _severities(document: Document, *route: str | int) -> tuple[tuple[str, Severity], ...]:
    return tuple((rule, Severity(document.word(*route, rule, among=_SEVERITIES))) for rule in document.mapping(*route))


def _override(document: Document, index: int) -> Override:
    route: Route = ("overrides", index)
    keys = document.mapping(*route, known=_OVERRIDE_KEYS)
    if "paths" not in keys:
        raise document.error("an override needs 'paths'", *route)
    return Override(
        paths=document.texts(*route, "paths"),
        select=document.texts(*route, "select") if "select" in keys else None,
        ignore=document.texts(*route, "ignore") if "ignore" in keys else (),
        severity=_severities(document, *route, "severity") if "severity" in keys else (),
        fail_on=(FAIL_ON[document.word(*route, "fail-on", among=FAIL_ON)],) if "fail-on" in keys else (),
    )


def _waiver(document: Document, index: int) -> Waiver:
    route: Route = ("suppressions", index)
    keys = document.mapping(*route, known=_SUPPRESSION_KEYS)
    for key in ("rule", "path", "reason"):
        if key not in keys:
            raise document.error(f"a suppression needs '{key}'", *route)
    given = keys.get("input")
    if given is not None and (isinstance(given, bool) or not isinstance(given, (int, str))):
        raise document.error("input must be a position, counted from 0, or a name", *route, "input")
    return Waiver(
        rule=document.text(*route, "rule"),
        path=document.text(*route, "path"),
        reason=document.text(*route, "reason").strip(),
        source=f"{document.path}:{document.line(*route)}",
        input=given,
        where=document.text(*route, "where") if "where" in keys else "",
    )


def _read_toml(path: Path) -> Document:
    """The table ``[tool.wirelint]``; TOML's reader gives no lines, so they are found by the keys' names."""
    toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = path.read_text(encoding="utf-8")
        data: Any = toml.loads(text).get("tool", {}).get("wirelint")
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: no valid TOML: {error}") from None
    return Document(path, data, _toml_lines(text.splitlines(), data if isinstance(data, dict) else {}))


def _toml_lines(lines: Sequence[str], data: Mapping[str, Any]) -> dict[Route, int]:
    """Lines of the table's own keys; what stands deeper is found near them."""
    found: dict[Route, int] = {}
    inside = False
    for number, line in enumerate(lines, start=1):
        header = re.match(r"\s*\[+\s*tool\s*\.\s*\"?wirelint\"?\s*(?:\.\s*\"?([\w-]+)\"?)?", line)
        if header:
            found.setdefault((header[1],) if header[1] else (), number)
            inside = header[1] is None
        elif line.lstrip().startswith("["):
            inside = False
        elif inside and (key := re.match(r"\s*\"?([\w-]+)\"?\s*[=.]", line)) and key[1] in data:
            found.setdefault((key[1],), number)
    return found
