"""What a contract holds."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANY", "OPEN", "VERSION", "Axis", "Contract", "PromisedInput", "PromisedOutput"]

VERSION = 1

Axis = int | str
"""A size, or a word for an axis that is open."""
OPEN = "open"
"""The word for an axis that is open and has no name."""
ANY = "any"
"""The word for an axis of which nothing is promised."""


@dataclass(frozen=True, slots=True)
class PromisedInput:
    """An input that callers feed.

    Attributes:
        line: where the contract says so.
        names: names that callers use; the model must accept one of them.  Empty when they feed by position.
        role: what the input does, or empty to leave it open.
        dtype: element type, or empty.
        axes: sizes and open axes, or None.
        optional: callers may leave it out.
    """

    line: int
    names: tuple[str, ...]
    role: str = ""
    dtype: str = ""
    axes: tuple[Axis, ...] | None = None
    optional: bool = False

    def __str__(self) -> str:
        return f"input '{self.names[0]}'" if self.names else f"the {self.role} input"


@dataclass(frozen=True, slots=True)
class PromisedOutput:
    """An output that callers read.

    Attributes:
        line: where the contract says so.
        name: its name.
        dtype, axes: as for inputs.
        padding: sides on which padding can't change it.
        rows_independent: the rows of a batch do not change each other.
    """

    line: int
    name: str
    dtype: str = ""
    axes: tuple[Axis, ...] | None = None
    padding: tuple[str, ...] = ()
    rows_independent: bool = False

    def __str__(self) -> str:
        return f"output '{self.name}'"


@dataclass(frozen=True, slots=True)
class Contract:
    """What callers of a model rely on.

    Attributes:
        called: the file, as messages call it.
        inputs, outputs: in the contract's order.
        ordered: inputs are fed by position, so that their order counts.
        order_line: where the contract says so.
    """

    called: str
    inputs: tuple[PromisedInput, ...]
    outputs: tuple[PromisedOutput, ...]
    ordered: bool = False
    order_line: int = 1
