"""A BERT whose wrapper makes the attention bias itself, as people do, and the ways in which that goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BiasedBert",
    "InlineBias",
    "constant_along_keys",
    "infinite",
    "infinite_product",
    "inverted",
    "queries",
    "regular",
    "weak",
    "without_effect",
]

_LOWEST = torch.finfo(torch.float32).min


def regular(mask: Tensor) -> Tensor:
    """The right one: 0 where the mask is 1, hugely negative along padded keys."""
    return (1.0 - mask[:, None, None, :].float()) * _LOWEST


def inverted(mask: Tensor) -> Tensor:
    """The `1 -` was forgotten."""
    return mask[:, None, None, :].float() * _LOWEST


def weak(mask: Tensor) -> Tensor:
    """A fill that softmax still hears."""
    return (1.0 - mask[:, None, None, :].float()) * -5.0


def without_effect(mask: Tensor) -> Tensor:
    """`>= 0` in place of `> 0`: true everywhere."""
    return (1.0 - (mask >= 0)[:, None, None, :].float()) * _LOWEST


def constant_along_keys(mask: Tensor) -> Tensor:
    """One bias per row: softmax ignores what all keys share."""
    return (1.0 - mask.float().mean(dim=1))[:, None, None, None] * -10000.0


def queries(mask: Tensor) -> Tensor:
    """Masks padded queries, not padded keys."""
    return (1.0 - mask[:, None, :, None].float()) * _LOWEST


def infinite_product(mask: Tensor) -> Tensor:
    """0 x -inf is NaN at every kept position."""
    return (1.0 - mask[:, None, None, :].float()) * float("-inf")


def infinite(mask: Tensor) -> Tensor:
    """Right for every row that has a real position, NaN for a row that has none."""
    return torch.zeros(1).masked_fill(mask[:, None, None, :] == 0, float("-inf"))


class BiasedBert(torch.nn.Module):
    """Embeddings, encoder, optional pooler and head of a BERT, under a bias that the caller chooses.

    Args:
        model: a ``BertModel``, or a model with a head over ``model.bert``.
        bias: makes the additive bias from the mask.
        layers: indexes of the layers that get it; all by default.
    """

    def __init__(self, model: Any, bias: Callable[[Tensor], Tensor] = regular, layers: tuple[int, ...] = (0, 1)) -> None:
        super().__init__()
        self.bert = getattr(model, "bert", model)
        self.head = getattr(model, "classifier", None)
        self.bias, self.layers = bias, layers

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Any:
        return self.encode(input_ids, token_type_ids, self.bias(attention_mask))

    def encode(self, input_ids: Tensor, token_type_ids: Tensor, bias: Tensor) -> Any:
        hidden = self.bert.embeddings(input_ids, token_type_ids)
        for index, layer in enumerate(self.bert.encoder.layer):
            hidden = layer(hidden, bias if index in self.layers else None)[0]
        if self.head is not None:
            return self.head(self.bert.pooler(hidden))
        return hidden


class InlineBias(BiasedBert):
    """The regular bias, made in ``forward`` itself.

    The TorchScript tracer names a tensor after the variable that it is handed on in.  A mask that is handed to no function
    has no such name, and the exporter calls it after its first consumer.
    """

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Any:
        bias = (1.0 - attention_mask[:, None, None, :].float()) * _LOWEST
        return self.encode(input_ids, token_type_ids, bias)
