"""Shadows: what is known of a tensor without its weights.

A shadow has a concrete shape and, for each element, a set of labels (what it may depend on) and perhaps a value.  All
of its arrays are *compact*: they have the rank of the shape, and a dimension along which nothing varies has length 1.
Hidden features behave alike, so a hidden axis costs nothing, and a weight is a shadow of a single element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wirelint.dtypes import DType
from wirelint.shadow.labels import NO_LABELS

__all__ = ["HUGE", "Array", "DataDependentError", "ExecutionError", "Shadow", "bounded", "join", "present", "spread"]

Array = npt.NDArray[Any]

HUGE = 40.0
"""A difference of scores that a softmax turns into nothing: exp(-40) is 4e-18, far below the resolution of fp32."""

_KEPT = 16.0
"""An approximate value below this magnitude says no more than 'some number' and is forgotten, unless it has labels."""


class ExecutionError(Exception):
    """The graph refuses these shapes, as a runtime would.

    Attributes:
        reason: one line.
        sizes: dimensions that would have been accepted where the refused one stands, for another try.
    """

    def __init__(self, reason: str, sizes: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sizes = tuple(sizes)


class DataDependentError(ExecutionError):
    """A shape or an index depends on data that the shadow run does not know; no fault of the graph."""


_MOST_ELEMENTS = 1 << 25
"""Of one compact array: the attention of a static length of 4096 needs half as many."""


def bounded(shape: Sequence[int]) -> None:
    """Refuses to make a compact array that no honest model needs.

    Raises:
        DataDependentError: it would be too large.
    """
    if math.prod(shape) > _MOST_ELEMENTS:
        raise DataDependentError(f"a tensor of {math.prod(shape)} different elements is too large")


@dataclass(slots=True, eq=False)
class Shadow:
    """A tensor in the shadow run.

    An element is *exact*: its value is what the runtime would compute, in the dtype that the graph holds; or it is
    approximate: ``value`` plus some finite number of ordinary size that is not known.  Without ``value`` every element
    is just some finite number.

    Attributes:
        shape: concrete shape.
        dtype: element type.
        labels: uint64, compact: everything an element may depend on.
        value: compact, in ``dtype.numpy``, or None.
        exact: bool, compact; None without ``value``.
        anchor: uint64, compact: what ``value`` depends on, a subset of ``labels``; None without ``value``.
    """

    shape: tuple[int, ...]
    dtype: DType
    labels: Array
    value: Array | None = None
    exact: Array | None = None
    anchor: Array | None = None

    # -- constructors ---------------------------------------------------------------------------------------------------

    @classmethod
    def unknown(cls, shape: Sequence[int], dtype: DType, labels: Array | np.uint64 = NO_LABELS) -> Shadow:
        """Some finite numbers with the given labels (a scalar, or a compact array of the shape's rank)."""
        held = np.asarray(labels, dtype=np.uint64)
        if held.ndim != len(shape):
            held = held.reshape((1,) * len(shape))
        return cls(tuple(shape), dtype, held)

    @classmethod
    def known(cls, value: npt.ArrayLike, dtype: DType, labels: Array | np.uint64 = NO_LABELS) -> Shadow:
        """Exact values with the given labels (a scalar, or a compact array of the value's rank)."""
        held = np.asarray(value, dtype=dtype.numpy)
        marks = np.asarray(labels, dtype=np.uint64)
        if marks.ndim != held.ndim:
            marks = marks.reshape((1,) * held.ndim)
        if held.dtype.kind == "c":
            return cls(held.shape, dtype, marks)  # nothing that is looked for hangs on a complex number
        return cls(held.shape, dtype, marks, held, np.ones((1,) * held.ndim, dtype=bool), marks)

    @classmethod
    def partly(
        cls, shape: Sequence[int], dtype: DType, labels: Array, value: Array | None, exact: Array | None, anchor: Array | None
    ) -> Shadow:
        """A shadow some of whose values may be known; forgets values that say nothing."""
        if value is None or exact is None or anchor is None or value.dtype.kind == "c":
            return cls(tuple(shape), dtype, labels)
        if not exact.any():
            numbers = value if value.dtype.kind == "f" else value.astype(np.float64)
            telling = ~(np.abs(numbers) < _KEPT)  # NaN counts
            if not telling.any() and not anchor.any():
                return cls(tuple(shape), dtype, labels)
        if dtype.is_float:
            # Whatever ordinary number is added to an infinity or a NaN, it stays what it is.
            settled = ~np.isfinite(value)
            if settled.any():
                exact = exact | settled
                labels = np.where(settled, anchor, labels)
        return cls(tuple(shape), dtype, labels, value, exact, anchor)

    # -- questions ------------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_exact(self) -> bool:
        """Every element's value is known."""
        return self.exact is not None and bool(self.exact.all())

    def zero(self) -> Array | None:
        """Compact bool array of the elements that are exactly zero, or None when there are none."""
        if self.value is None or self.exact is None:
            return None
        zero: Array = self.exact & (self.value == 0)
        return zero if zero.any() else None

    def every_label(self) -> np.uint64:
        """Everything that any element may depend on."""
        return present(self.labels)

    def full_value(self) -> Array:
        """All values, spread to the shape; only for exact shadows."""
        if self.value is None or not self.is_exact:
            raise ValueError("the value is not known")
        return spread(self.value, self.shape)

    def integers(self) -> list[int] | None:
        """All values as a flat list of Python integers, or None when they are not known."""
        if not self.is_exact or self.value is None or self.dtype is DType.STRING:
            return None
        return [int(number) for number in spread(self.value, self.shape).ravel().tolist()]

    # -- the same with other elements -----------------------------------------------------------------------------------

    def moved(self, shape: Sequence[int], move: Callable[[Array], Array]) -> Shadow:
        """The same elements elsewhere: ``move`` takes each compact array to a compact array for ``shape``."""
        labels = move(self.labels)
        if self.value is None or self.exact is None or self.anchor is None:
            return Shadow(tuple(shape), self.dtype, labels)
        anchor = labels if self.anchor is self.labels else move(self.anchor)
        return Shadow(tuple(shape), self.dtype, labels, move(self.value), move(self.exact), anchor)

    def spread(self, axes: Sequence[int] | None = None) -> Shadow:
        """The same shadow with its arrays spread to full length along ``axes`` (all of them without argument)."""
        chosen = range(self.rank) if axes is None else axes

        def widen(array: Array) -> Array:
            target = list(array.shape)
            for axis in chosen:
                target[axis] = self.shape[axis]
            return spread(array, target)

        return self.moved(self.shape, widen)

    def joined(self, labels: Array | np.uint64) -> Shadow:
        """The same values with more labels; ``labels`` must broadcast to this rank."""
        more = np.asarray(labels, dtype=np.uint64)
        if not more.any():
            return self
        anchor = None if self.anchor is None else self.anchor | more
        return Shadow(self.shape, self.dtype, self.labels | more, self.value, self.exact, anchor)

    def without_value(self) -> Shadow:
        """Only the labels."""
        return Shadow(self.shape, self.dtype, self.labels)


def present(labels: Array) -> np.uint64:
    """The union of all labels of an array."""
    every: np.uint64 = np.bitwise_or.reduce(labels, axis=None, dtype=np.uint64) if labels.size else NO_LABELS
    return every


def spread(array: Array, shape: Sequence[int]) -> Array:
    """A compact array as a view of full shape, not to be written to."""
    full = tuple(shape)
    return array if array.shape == full else np.broadcast_to(array, full)


def join(array: Array, axes: Sequence[int]) -> Array:
    """The union of labels along ``axes``, which stay with length 1."""
    wide = tuple(axis for axis in axes if array.shape[axis] != 1)
    if not wide:
        return array
    made: Array = np.bitwise_or.reduce(array, axis=wide, keepdims=True)
    return made
