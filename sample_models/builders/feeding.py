"""Batches for a sample: rows of different lengths, padded on either side, with any content in the padded positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from builders.registry import Feeds
    from builders.runner import Array, Port

__all__ = ["Batch", "is_padded", "make"]

_SHARES = (0.7, 0.4, 0.9)


@dataclass(frozen=True)
class Batch:
    """What to feed.

    Attributes:
        rows: number of rows.
        length: positions per row, padding included.
        encoder_length: the same for the encoder's states, in a decoder that reads them.
        past: cached positions.
        side: where padding stands.
        content: what stands in padded positions: ``pad`` for the pad id, anything else seeds other content.
        others: seeds the real content of every row but the first.
        mask: ``true``, ``ones`` or ``zeros`` (``zeros`` in the first row only: a row of nothing but padding).
        alone: the first row without its padding.
    """

    rows: int
    length: int
    encoder_length: int
    past: int
    side: str = "right"
    content: str = "pad"
    others: int = 1
    mask: str = "true"
    alone: bool = False

    def real(self, length: int | None = None) -> np.ndarray:
        """Which positions are real, ``[rows, length]``."""
        length = self.length if length is None else length
        counts = [max(1, round(length * _SHARES[row % 3])) for row in range(self.rows)]
        place = np.arange(length)
        right = place[None, :] < np.array(counts)[:, None]
        return right if self.side == "right" else right[:, ::-1]


def is_padded(roles: Sequence[str], feeds: Feeds) -> bool:
    """Whether the model reads a sequence that may hold padding."""
    held = set(roles)
    return bool(held & {"ids", "decoder_ids", "encoder_states"}) or ("features" in held and feeds.frames is not None)


def make(roles: Sequence[str], ports: Sequence[Port], feeds: Feeds, batch: Batch) -> list[Array]:
    """One array per input, in the file's order."""
    made = [_one(role, port, feeds, batch, roles) for role, port in zip(roles, ports, strict=True)]
    if not batch.alone:
        return made
    return [_first_row(array, role, batch, roles) for array, role in zip(made, roles, strict=True)]


def _first_row(array: Array, role: str, batch: Batch, roles: Sequence[str]) -> Array:
    """Row 0 with its padded positions cut out."""
    if array.ndim == 0:
        return array
    if role in ("past", "pixels", "lengths", "other"):
        return array[:1]
    keep = _positions(role, batch, roles)[0]
    return array[:1, keep]


def _positions(role: str, batch: Batch, roles: Sequence[str]) -> np.ndarray:
    """Which positions of an input are real; cached positions all are."""
    if role == "encoder_states" or (role == "mask" and "encoder_states" in roles):
        return batch.real(batch.encoder_length)
    real = batch.real()
    if role in ("mask", "decoder_mask") and "past" in roles:
        return np.concatenate([np.ones((batch.rows, batch.past), dtype=bool), real], axis=1)
    return real


def _one(role: str, port: Port, feeds: Feeds, batch: Batch, roles: Sequence[str]) -> Array:
    if role in ("ids", "decoder_ids"):
        return _ids(feeds, batch).astype(port.dtype)
    if role in ("mask", "decoder_mask"):
        return _mask(role, feeds, batch, roles).astype(port.dtype)
    if role == "segment":
        return np.zeros((batch.rows, batch.length), dtype=port.dtype)
    if role == "position":
        return (np.maximum(batch.real().cumsum(axis=1) - 1, 0) + (batch.past if "past" in roles else 0)).astype(port.dtype)
    if role == "pixel_mask":
        return np.ones([batch.rows, *(batch.past if dim is None else dim for dim in port.shape[1:])], dtype=port.dtype)
    if role == "lengths":
        return batch.real().sum(axis=1).astype(port.dtype)
    if role in ("encoder_states", "features") and is_padded(roles, feeds):
        return _states(port, _positions(role, batch, roles), batch).astype(port.dtype)
    if not port.shape:
        return np.zeros((), dtype=port.dtype)  # a setting, no matter of rows
    fixed = [batch.rows, *(batch.past if dim is None else dim for dim in port.shape[1:])]
    return _by_row(lambda rng: rng.normal(size=fixed[1:]), batch).astype(port.dtype)


def _by_row(draw: Callable[[np.random.Generator], np.ndarray], batch: Batch) -> np.ndarray:
    """Real content: the first row is always the same, the others are drawn from ``batch.others``."""
    seeds = [1, *(batch.others * 100 + row for row in range(1, batch.rows))]
    return np.stack([draw(np.random.default_rng(seed)) for seed in seeds])


def _ids(feeds: Feeds, batch: Batch) -> np.ndarray:
    """Real ids avoid the special ones at both ends of the vocabulary; so does what replaces the pad id."""
    low, high, real = 5, feeds.vocab - 5, batch.real()
    ids = _by_row(lambda rng: rng.integers(low, high, batch.length), batch)
    if feeds.end_id is not None:
        ids[np.arange(batch.rows), batch.length - 1 - real[:, ::-1].argmax(axis=1)] = feeds.end_id
    if batch.content == "pad":
        other = np.full_like(ids, feeds.pad_id)
    else:
        other = np.random.default_rng(sum(batch.content.encode())).integers(low, high, ids.shape)
    return np.where(real, ids, other)


def _mask(role: str, feeds: Feeds, batch: Batch, roles: Sequence[str]) -> np.ndarray:
    keep = _positions(role, batch, roles).copy()
    if batch.mask == "ones":
        keep[:] = True
    if batch.mask == "zeros":
        keep[0] = False
    return keep if feeds.mask_keeps else ~keep


def _states(port: Port, real: np.ndarray, batch: Batch) -> np.ndarray:
    size = tuple(port.shape[2:])
    states = _by_row(lambda rng: rng.normal(size=(real.shape[1], *size)), batch)
    seed = sum(batch.content.encode())
    other = np.zeros_like(states) if batch.content == "pad" else np.random.default_rng(seed).normal(size=states.shape)
    return np.where(real.reshape(*real.shape, *(1 for _ in size)), states, other)
