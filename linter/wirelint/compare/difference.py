"""What a difference between two models is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ERROR", "NOTE", "REFERENCE", "SEVERITIES", "WARNING", "Difference", "file_name"]

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)
"""The worst first."""

REFERENCE = "the reference"
"""How sentences call the model that another is compared with."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not in a model as it is in its reference.

    Attributes:
        kind: ``input-dropped``, ``input-added``, ``input-renamed``, ``input-order``, ``input-retyped``, ``input-optional``,
            ``input-inert``, ``axis-fixed``, ``axis-opened``, ``rank-changed``, ``mask-lost``, ``segments-folded``,
            ``positions-changed``, ``table-shortened``, ``output-dropped``, ``output-added``, ``output-renamed``,
            ``output-order``, ``output-retyped``, ``output-pooled``, ``dependence-lost``, ``padding-lost``, ``rows-lost``,
            ``length-lost``, ``batch-lost``, ``not-finite`` or ``precision-changed``.
        severity: ``error`` for what breaks callers or changes results, ``warning`` for what may be meant, ``note`` for what
            takes nothing away.
        sentence: what differs and what to do, on one line.
        input: position of the input in the model, or in the reference for one that is gone; None for other subjects.
        output: likewise for outputs.
    """

    kind: str
    severity: str
    sentence: str
    input: int | None = None
    output: int | None = None

    @property
    def lost(self) -> bool:
        """Something that the reference had is gone or changed."""
        return self.severity != NOTE


def file_name(path: str) -> str:
    """The last part of a path of either kind, for messages."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]
