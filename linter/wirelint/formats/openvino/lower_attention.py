"""Fused attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError
from wirelint.ops import Family, family

if TYPE_CHECKING:
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]

_FURTHEST = 32
_LOWEST = float(np.finfo(np.float32).min)


def _scaled_dot_product(site: Site) -> None:
    """Operands: query, key, value [..., heads, sequence, size], mask, scale, sink.

    Where ``causal`` is set the mask operand is ignored, and a scalar zero stands for no mask (specification of
    ScaledDotProductAttention-13).  A sink, one more score per head that takes weight away, changes no dependence
    as long as it is a constant.

    A query that a mask of truth values leaves no key gets NaN, as the operator is specified.  Attention over keys that a state
    of the model keeps runs in a kernel of its own (the CPU plugin's stateful fusion), which fills with the lowest number.
    """
    query, key, value = (site.operand(index) for index in range(3))
    attrs: dict[str, Any] = {"causal": "top-left" if site.flag("causal", default=False) else "none"}
    if site.optional(5) is not None and site.operand(5).constant is None:
        raise UnmodelledError("its sink is computed")
    mask = None if attrs["causal"] != "none" else _mask(site)
    if _kept_in_state(key):
        attrs["mask_fill"] = _LOWEST
    rank = len(query.shape) if query.shape is not None else 4
    if rank == 3:
        # Without an axis of heads: one head of the full size.
        attrs |= {"q_num_heads": 1, "kv_num_heads": 1}
        if mask is not None and mask.shape is None:
            raise UnmodelledError("the rank of the mask is not declared")
        if mask is not None and len(mask.shape or ()) == 3:
            mask = site.through("Unsqueeze", mask, site.constant([1]))
    elif rank != 4:
        raise UnmodelledError(f"its query has rank {rank}")
    if site.optional(4) is not None:
        known = site.static(4)
        if known is not None and known.size == 1:
            attrs["scale"] = float(known.reshape(-1)[0])
        else:
            query, attrs["scale"] = site.through("Mul", query, site.operand(4)), 1.0
    site.emit("Attention", [query, key, value, mask], [site.output()], **attrs)


def _mask(site: Site) -> Value | None:
    mask, known = site.optional(3), site.static(3)
    return None if known is not None and known.size == 1 and not np.any(known) else mask


def _kept_in_state(keys: Value) -> bool:
    """Earlier keys are read from a variable of the model."""
    frontier, seen = [keys], set[int]()
    while frontier and len(seen) < _FURTHEST:
        op = frontier.pop().producer
        if op is None or id(op) in seen:
            continue
        seen.add(id(op))
        if op.kind == "ReadValue":
            return True
        if family(op.kind) is Family.MOVE or op.kind == "Gather":
            data = op.inputs if op.kind == "Concat" else op.inputs[:1]
            frontier += [value for value in data if value is not None]
    return False


def _paged(site: Site) -> None:
    """Operands: query, key, value, key cache, value cache, past lengths, then what addresses the cache's blocks.

    The latter stand behind the operands that the vocabulary names, so that what feeds them counts as read.
    """
    operands: list[Value | None] = [site.operand(0), site.operand(1), site.operand(2), None]
    operands += [site.operand(3), site.operand(4), site.operand(5), *site.inputs[6:]]
    site.emit("PackedAttention", operands, site.outputs or [site.output()])


LOWERINGS: dict[str, Lowering] = {
    "scaleddotproductattention": _scaled_dot_product,
    "pagedattentionextension": _paged,
}
