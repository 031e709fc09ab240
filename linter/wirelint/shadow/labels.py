"""What an element may depend on, as bits of an unsigned 64-bit number.

A set of dependences is the bitwise or of its bits, so joining the dependences of whole tensors is one numpy operation.
Two rows of a batch are told apart (row 0, and every other row), real positions from padded ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "COUNT",
    "LENGTH",
    "NO_LABELS",
    "ROUTED",
    "SCALE_PADDED",
    "SCALE_ROWS",
    "SHIFTED",
    "SIGNATURE",
    "UNMODELLED",
    "UNSETTLED",
    "Layout",
    "Part",
]

NO_LABELS: Final[np.uint64] = np.uint64(0)
LENGTH: Final[np.uint64] = np.uint64(1 << 0)
"""The padded length itself was used in arithmetic (not merely as a shape)."""
UNMODELLED: Final[np.uint64] = np.uint64(1 << 1)
"""An operator without a transfer function, or a budget that ran out, stands on the way."""
SCALE_PADDED: Final[np.uint64] = np.uint64(1 << 2)
"""Padded content, but only through the scale of a dynamic quantiser."""
SCALE_ROWS: Final = (np.uint64(1 << 3), np.uint64(1 << 4))
"""Row 0, the other rows, but only through the scale of a dynamic quantiser."""
SHIFTED: Final[np.uint64] = np.uint64(1 << 5)
"""A running sum went over padded positions that were recognised by their id: were they not padding, it would differ."""
_FIRST_FREE: Final = 6
_LAST_FREE: Final = 57

# A NonZero of what is not known is run as if it chose every element that it might (routing to experts, above all).  Each
# row of what is gathered with its result bears a signature, until it is written back to where it came from.
_SIGNATURES: Final = 4
SIGNATURE: Final[np.uint64] = np.uint64(((1 << _SIGNATURES) - 1) << 58)
"""Tell the rows of one choice apart, and those of one choice from those of another."""
ROUTED: Final[np.uint64] = np.uint64(1 << 62)
"""Which row stands here depends on a choice that is not known."""
COUNT: Final[np.uint64] = np.uint64(1 << 63)
"""How many rows such a choice has was used in arithmetic (not merely as a shape)."""
UNSETTLED: Final[np.uint64] = UNMODELLED | ROUTED | COUNT
"""What makes a verdict unknown."""


@dataclass(frozen=True, slots=True)
class Part:
    """The labels of one input.

    Attributes:
        name: what it is called in ``depends_on``: its role.
        real: labels of its elements at real positions, for row 0 and for the other rows.
        padded: likewise at padded positions; equal to ``real`` for inputs that have none.
        gaps: labels of *where* its padding is, as far as the graph finds that out by comparing its elements.
    """

    name: str
    real: tuple[np.uint64, np.uint64]
    padded: tuple[np.uint64, np.uint64]
    gaps: tuple[np.uint64, np.uint64]

    @property
    def every(self) -> np.uint64:
        made: np.uint64 = np.bitwise_or.reduce([*self.real, *self.padded, *self.gaps], dtype=np.uint64)
        return made


class Layout:
    """Hands out bits to inputs and answers questions about sets of them.

    Inputs with the same name share their bits.

    Examples:
        >>> layout = Layout()
        >>> ids, mask = layout.part("ids", padded=True), layout.part("mask")
        >>> layout.names(ids.padded[0] | mask.real[1])
        ('ids', 'mask')
    """

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}
        self._free = _FIRST_FREE
        self.padded = NO_LABELS
        self.gaps = NO_LABELS
        self.rows = [NO_LABELS, NO_LABELS]
        self._to_structure: list[tuple[np.uint64, np.uint64]] = []
        self._choices: set[bytes] = set()
        self._to_count: list[tuple[np.uint64, np.uint64]] = []

    def _pair(self) -> tuple[np.uint64, np.uint64]:
        if self._free >= _LAST_FREE:
            raise ValueError("more kinds of input than labels")
        pair = (np.uint64(1 << self._free), np.uint64(1 << (self._free + 1)))
        self._free += 2
        self.rows = [self.rows[0] | pair[0], self.rows[1] | pair[1]]
        return pair

    def part(self, name: str, *, padded: bool = False) -> Part:
        """The labels of the inputs called ``name``; new ones on the first call.

        Args:
            name: role of the input.
            padded: its positions may be padding, so real and padded ones need labels of their own.
        """
        if name not in self.parts:
            real = self._pair()
            if padded:
                pads, gaps = self._pair(), self._pair()
                self.padded |= pads[0] | pads[1]
                self.gaps |= gaps[0] | gaps[1]
                self._to_structure += zip(pads, gaps, strict=True)
                self._to_count += zip((*real, *pads), (*gaps, *gaps), strict=True)
            else:
                pads = gaps = real
            self.parts[name] = Part(name, real, pads, gaps)
        return self.parts[name]

    def choice(self, count: int) -> npt.NDArray[np.uint64]:
        """Signatures for the rows of a choice among ``count`` elements: a sequence that no other choice of this run has.

        Raises:
            ValueError: there is none left, for a choice among very few.
        """
        for turn in range(8):
            numbers = np.random.default_rng((len(self._choices), turn)).integers(1, 1 << _SIGNATURES, size=count)
            made: npt.NDArray[np.uint64] = numbers.astype(np.uint64) << np.uint64(58)
            if made.tobytes() not in self._choices:
                self._choices.add(made.tobytes())
                return made
        raise ValueError("more choices than signatures")

    def is_choice(self, labels: npt.NDArray[np.uint64]) -> bool:
        """These are the labels of all rows of one choice, in its order."""
        return (labels & SIGNATURE).astype(np.uint64).tobytes() in self._choices

    def as_structure(self, labels: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The labels of a truth value that was computed by looking at concrete ids.

        It tells where padding (or an end-of-text id) stands, not what stands in padded positions: those hold the padding
        id by definition.
        """
        if not self._to_structure or not (labels & self.padded).any():
            return labels
        moved: npt.NDArray[np.uint64] = labels & ~self.padded
        for content, gap in self._to_structure:
            moved = moved | np.where(labels & content, gap, NO_LABELS)
        return moved

    def as_count(self, labels: np.uint64) -> np.uint64:
        """The labels of how many elements of a row were picked, for the rows whose picks stand behind them in a list.

        Only their number moves the others: it tells where padding or an end-of-text id stands, as a length does.
        """
        moved = labels
        for content, gap in self._to_count:
            if labels & content:
                moved = (moved & ~content) | gap
        return moved

    def as_scale(self, labels: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The labels of quantisation scales, each of which was taken over elements with these labels."""
        scale: npt.NDArray[np.uint64] = labels & (UNSETTLED | SCALE_PADDED | SCALE_ROWS[0] | SCALE_ROWS[1])
        for content, bit in zip((self.padded, *self.rows), (SCALE_PADDED, *SCALE_ROWS), strict=True):
            scale = scale | np.where(labels & content, bit, NO_LABELS)
        return scale

    def names(self, labels: np.uint64) -> tuple[str, ...]:
        """The names of the inputs in a set of labels, in the order in which they were first asked for."""
        return tuple(part.name for part in self.parts.values() if labels & part.every)
