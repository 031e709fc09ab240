"""wirelint: a static linter for the wiring of ONNX and OpenVINO IR models.

Examples:
    >>> import wirelint
    >>> report = wirelint.check("sample_models/")  # doctest: +SKIP
    >>> [finding.rule for _, finding in report.findings()]  # doctest: +SKIP
    ['mask-folded', 'renamed-input']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The module of the same name is loaded before the function below is defined: loaded later, it would take its place.
import wirelint.facts  # noqa: F401
from wirelint._version import __version__

if TYPE_CHECKING:
    from wirelint.api import PathLike, check, load
    from wirelint.facts import ModelFacts

__all__ = ["__version__", "check", "facts", "load"]


def facts(path: PathLike) -> ModelFacts:
    """What wirelint knows about a model, without any judgement; see :func:`wirelint.api.facts`."""
    from wirelint import api

    return api.facts(path)


def __getattr__(name: str) -> Any:
    """Imports the rest of the API when it is first used, so that ``import wirelint`` alone stays cheap."""
    if name in ("check", "load"):
        from wirelint import api

        return getattr(api, name)
    raise AttributeError(f"module 'wirelint' has no attribute '{name}'")
