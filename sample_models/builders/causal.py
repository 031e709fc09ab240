"""Causal masks without ``vmap``, which the TorchScript exporter cannot trace: export tools replace them in this way."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["traceable_masks"]


def _causal_and_padding(
    batch_size: int,
    cache_position: Tensor,
    kv_length: int,
    attention_mask: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    **_: Any,
) -> Tensor:
    """Additive bias ``[batch, 1, queries, keys]``: 0 at keys that are real and not in the future."""
    keys = torch.arange(kv_length)
    keep = (keys[None, :] <= cache_position[:, None])[None, None].expand(batch_size, 1, -1, -1)
    if attention_mask is not None:
        keep = keep & attention_mask.bool()[:, None, None, :]
    return torch.where(keep, 0.0, torch.finfo(dtype).min)


@contextmanager
def traceable_masks() -> Iterator[None]:
    """Within, eager attention gets its causal mask from plain tensor operators."""
    kept = ALL_MASK_ATTENTION_FUNCTIONS["eager"]
    ALL_MASK_ATTENTION_FUNCTIONS["eager"] = _causal_and_padding
    try:
        yield
    finally:
        ALL_MASK_ATTENTION_FUNCTIONS["eager"] = kept
