"""Sentence embedders: one encoder, and the poolings that people put on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Embedder",
    "LearnedQuery",
    "first_token",
    "last_position",
    "last_real",
    "masked_mean",
    "masked_sum_over_length",
    "plain_max",
    "plain_mean",
    "plain_sum",
]


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """As sentence-transformers writes it, with the clamp for empty rows."""
    weights = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    return (hidden * weights).sum(1) / torch.clamp(weights.sum(1), min=1e-9)


def plain_mean(hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    return hidden.mean(dim=1)


def plain_max(hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    return hidden.max(dim=1).values


def plain_sum(hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    return hidden.sum(dim=1)


def masked_sum_over_length(hidden: Tensor, mask: Tensor) -> Tensor:
    """The sum is masked, the divisor counts padded positions too."""
    return (hidden * mask.unsqueeze(-1).to(hidden.dtype)).sum(1) / hidden.shape[1]


def first_token(hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    return hidden[:, 0]


def last_position(hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    """Right for left padding only."""
    return hidden[:, -1]


def last_real(hidden: Tensor, mask: Tensor) -> Tensor:
    """Right for right padding only."""
    last = (mask.sum(dim=1) - 1).long()
    return hidden[torch.arange(hidden.shape[0]), last]


class LearnedQuery(torch.nn.Module):
    """Attention pooling: a softmax over positions that nobody masks."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = torch.nn.Linear(size, 1)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        return (hidden * torch.softmax(self.score(hidden), dim=1)).sum(dim=1)


class Embedder(torch.nn.Module):
    """An encoder, masked as it should be, and a pooling.

    Args:
        encoder: returns hidden states as its first output.
        pool: from hidden states ``[batch, sequence, hidden]`` and the mask to ``[batch, hidden]``.
    """

    def __init__(self, encoder: torch.nn.Module, pool: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.encoder, self.pool = encoder, pool

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        rest = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **rest)[0]
        return self.pool(hidden, attention_mask)
