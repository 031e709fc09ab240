"""The functions behind the command line, for Python: :func:`check`, :func:`facts` and :func:`load`."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from wirelint.config import FAIL_ON, default_config, find_config, read_config
from wirelint.discovery import discover
from wirelint.errors import ConfigurationError, ModelFileError, NotAModelError
from wirelint.findings import Confidence, Report, Severity
from wirelint.inspection import Inspected, guess_format, inspect
from wirelint.policy import Policy
from wirelint.rules import load_rules
from wirelint.suggest import did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Future

    from wirelint.config import Config
    from wirelint.facts import ModelFacts
    from wirelint.graph import Model

__all__ = ["PathLike", "check", "facts", "load"]

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int, str], None]
"""Called after each file with the number done, the number of all, and the file."""


def check(
    paths: PathLike | Iterable[PathLike],
    *,
    config: PathLike | Literal[False] | None = None,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    severity: Mapping[str, str] | None = None,
    fail_on: str | None = None,
    min_confidence: str = "low",
    rules: Iterable[PathLike] = (),
    baseline: PathLike | Literal[False] | None = None,
    reference: PathLike | None = None,
    only_models: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Checks model files.

    Args:
        paths: files and folders.
        config: a configuration file; None to look for one upwards from each model, False for none.
        select: look only for these rules: ids, codes, beginnings of codes, families, or ``all``.
        ignore: leave these out of the report, besides those of the configuration.
        severity: severities by rule, put over the configuration's.
        fail_on: ``error``, ``warning``, ``note`` or ``never``: what makes :attr:`Report.exit_status` 1.
        min_confidence: leave out findings that are less sure: ``high``, ``medium`` or ``low``.
        rules: further folders with rules.
        baseline: a baseline file, in place of the configuration's; False for none.
        reference: the model that the others were made from; what it takes is expected of them.
        only_models: pass over named files that are no model instead of reporting them.
        jobs: number of processes.
        progress: told after each file.

    Returns:
        The report; a file that can't be read is a finding in it.

    Raises:
        ConfigurationError: a path does not exist, or a setting, a rule file or the reference is wrong.
    """
    start = time.perf_counter()
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    settings = _Settings(
        config=config,
        select=None if select is None else tuple(select),
        ignore=tuple(ignore),
        severity=tuple((rule, _one_of(Severity, level, "severity")) for rule, level in (severity or {}).items()),
        fail_on=fail_on,
        least_confidence=_one_of(Confidence, min_confidence, "confidence"),
        rules=tuple(Path(folder) for folder in rules),
        baseline=baseline,
    )
    found = discover(given, _is_ir, only_models=only_models)
    report = Report(passed_over=found.passed_over)
    models = []
    for path in found.models:
        policy = settings.policy_for(path)
        if policy.config.excludes(policy.config.relative(path)):
            report.passed_over.append((path, f"excluded by {policy.config.path}"))
        else:
            models.append(path)
    expected = None if reference is None else _reference(reference)
    for done, seen in enumerate(_inspected(models, expected, jobs)):
        if progress is not None:
            progress(done + 1, len(models), seen.path)
        report.models.append(settings.policy_for(seen.path).judge(seen))
    rule_sets = [policy.rules for policy in settings.policies.values()] or [load_rules(settings.rules)]
    report.rules = sorted({rule.id: rule for rules in rule_sets for rule in rules.rules}.values(), key=lambda rule: rule.code)
    report.stale = [entry for policy in settings.policies.values() for entry in policy.stale()]
    report.seconds = time.perf_counter() - start
    return report


def facts(path: PathLike) -> ModelFacts:
    """What wirelint knows about a model, without any judgement.

    Raises:
        ModelFileError: the file is damaged.
        NotAModelError: the file is no model.
        OSError: the file can't be read.
    """
    model = load(path)

    from wirelint.analysis import analyse

    found: ModelFacts = analyse(model)
    found.path = os.fspath(path)
    return found


def load(path: PathLike) -> Model:
    """Reads a model file, of whatever format, into wirelint's own graph; weights stay on disk.

    Raises:
        ModelFileError: the file is damaged.
        NotAModelError: the file is no model.
        OSError: the file can't be read.
    """
    from wirelint.formats import load as load_file

    return load_file(Path(path))


@dataclasses.dataclass
class _Settings:
    """What the caller wants, put over the configuration that is nearest to each model."""

    config: PathLike | Literal[False] | None
    select: tuple[str, ...] | None
    ignore: tuple[str, ...]
    severity: tuple[tuple[str, Severity], ...]
    fail_on: str | None
    least_confidence: Confidence
    rules: tuple[Path, ...]
    baseline: PathLike | Literal[False] | None
    policies: dict[Path, Policy] = dataclasses.field(default_factory=dict)
    """By configuration file, or by the folder to which paths are relative where there is none."""
    nearest: dict[Path, Policy] = dataclasses.field(default_factory=dict)
    """By the folder of a model."""

    def policy_for(self, model: str) -> Policy:
        folder = Path(os.path.abspath(model)).parent  # noqa: PTH100 -- a link's own place counts, not its target's
        if folder not in self.nearest:
            self.nearest[folder] = self._policy(folder)
        return self.nearest[folder]

    def _policy(self, folder: Path) -> Policy:
        path = find_config(folder) if self.config is None else Path(self.config) if self.config else None
        default = default_config(folder)
        key = path or default.root
        if key not in self.policies:
            config = self._merged(default if path is None else read_config(path))
            self.policies[key] = Policy(config, load_rules(config.rules), self.least_confidence)
        return self.policies[key]

    def _merged(self, config: Config) -> Config:
        overrides = config.overrides
        if self.select is not None:
            overrides = tuple(dataclasses.replace(entry, select=None) for entry in overrides)
        if self.fail_on is not None:
            overrides = tuple(dataclasses.replace(entry, fail_on=()) for entry in overrides)
            if self.fail_on not in FAIL_ON:
                raise ConfigurationError(f"fail-on must not be '{self.fail_on}'{did_you_mean(self.fail_on, FAIL_ON)}")
        return dataclasses.replace(
            config,
            select=config.select if self.select is None else self.select,
            ignore=(*config.ignore, *self.ignore),
            severity=(*config.severity, *self.severity),
            fail_on=config.fail_on if self.fail_on is None else FAIL_ON[self.fail_on],
            rules=(*config.rules, *self.rules),
            baseline=config.baseline if self.baseline is None else Path(self.baseline) if self.baseline else None,
            overrides=overrides,
        )


Level = TypeVar("Level", Severity, Confidence)


def _one_of(kind: type[Level], word: str, called: str) -> Level:
    try:
        return kind(word)
    except ValueError:
        raise ConfigurationError(f"'{word}' is no {called}{did_you_mean(word, [member.value for member in kind])}") from None


def _is_ir(path: Path) -> bool:
    """Whether an ``.xml`` is to be read: an IR, the pointer to one, or a file whose reader will say why it can't be opened."""
    from wirelint.formats import sniff

    try:
        return sniff(path) in ("openvino-ir", "lfs-pointer")
    except ModelFileError:
        return True


def _reference(path: PathLike) -> ModelFacts:
    try:
        return facts(path)
    except (ModelFileError, NotAModelError) as error:
        raise ConfigurationError(f"reference {error}") from error
    except OSError as error:
        raise ConfigurationError(f"reference {os.fspath(path)}: can't be read: {error.strerror or error}") from error


def _inspected(paths: Sequence[str], reference: ModelFacts | None, jobs: int) -> Iterator[Inspected]:
    """Looks at files, in order, in as many processes as wanted."""
    if jobs <= 1 or len(paths) <= 1:
        for path in paths:
            yield inspect(path, reference)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(jobs, len(paths))) as pool:
        futures = [pool.submit(inspect, path, reference) for path in paths]
        yield from map(_result, paths, futures)


def _result(path: str, future: Future[Inspected]) -> Inspected:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        fault = "the process that checked it, or one beside it, was killed (out of memory?); try --jobs 1"
        return Inspected(path, guess_format(path), fault=fault)
