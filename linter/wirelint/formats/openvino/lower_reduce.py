"""Reductions, scans, searches, normalisation, softmax."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError

if TYPE_CHECKING:
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]


def _reduce(kind: str, site: Site) -> None:
    """Empty axes reduce nothing."""
    attrs = {"keepdims": int(site.flag("keep_dims", default=False)), "noop_with_empty_axes": 1}
    site.emit(kind, [site.operand(0), site.vector(1)], [site.output()], **attrs)


def _cumulative_sum(site: Site) -> None:
    attrs = {name: int(site.flag(name, default=False)) for name in ("exclusive", "reverse")}
    site.emit("CumSum", [site.operand(0), site.scalar(1)], [site.output()], **attrs)


def _top_k(site: Site) -> None:
    order = site.text("sort", "value")
    if order == "index":
        raise UnmodelledError("it sorts what it finds by index")
    indices = site.integers_to_port(1)
    attrs = {"axis": site.integer("axis"), "largest": int(site.text("mode") == "max"), "sorted": int(order == "value")}
    site.emit("TopK", [site.operand(0), site.vector(1)], [site.output(0), indices], **attrs)
    site.settle(indices, 1)


def _non_zero(site: Site) -> None:
    found = site.integers_to_port()
    site.emit("NonZero", [site.operand(0)], [found])
    site.settle(found)


def _unique(site: Site) -> None:
    """Results: the unique elements, where each stands first, which one each element is, how often each occurs."""
    axis = int(site.known_number(1, "the axis")) if site.optional(1) is not None else None
    numbers = [site.integers_to_port(index) for index in (1, 2, 3)]
    attrs = {"axis": axis, "sorted": int(site.flag("sorted", default=True))}
    site.emit("Unique", [site.operand(0)], [site.output(0), *numbers], **attrs)
    for index, value in enumerate(numbers, 1):
        site.settle(value, index)


def _count_below(kind: str, site: Site, values: Value, borders: Value) -> None:
    """For each value, how many of the sorted borders are below it."""
    beside = site.through("Unsqueeze", values, site.constant([-1]))
    below = site.through(kind, beside, borders, yields=DType.BOOL)
    axes = site.constant([-1])
    counted = site.integers_to_port()
    site.emit("ReduceSum", [site.cast(below, DType.I64), axes], [counted], keepdims=0)
    site.settle(counted)


def _bucketize(site: Site) -> None:
    """With a right bound, intervals are open below and closed above: borders smaller than the value count."""
    kind = "Greater" if site.flag("with_right_bound", default=True) else "GreaterOrEqual"
    _count_below(kind, site, site.operand(0), site.operand(1))


def _search_sorted(site: Site) -> None:
    """In right mode the position after equal elements is meant, else the one before them."""
    if site.rank(0) != 1:
        raise UnmodelledError("it searches several sequences")
    kind = "GreaterOrEqual" if site.flag("right_mode", default=False) else "Greater"
    _count_below(kind, site, site.operand(1), site.operand(0))


def _mvn(site: Site) -> None:
    attrs = {"epsilon": site.real("eps", 1e-9), "variance": int(site.flag("normalize_variance", default=True))}
    if site.optional(1) is not None:
        axes = site.vector(1)
    elif "reduction_axes" in site.layer.data:
        axes = site.constant(site.integers("reduction_axes"))
    else:
        first = 1 if site.flag("across_channels", default=False) else 2
        axes = site.constant(list(range(first, site.rank(0))))
    site.emit("MeanVarianceNormalization", [site.operand(0), axes], [site.output()], **attrs)


def _normalize_l2(site: Site) -> None:
    site.emit("LpNormalization", [site.operand(0), site.vector(1)], [site.output()], p=2)


def _lrn(site: Site) -> None:
    if site.known_integers(1, "the axes") != [1]:
        raise UnmodelledError("it normalises over other axes than the channels")
    site.emit("LRN", [site.operand(0)], [site.output()], size=site.integer("size"))


def _batch_norm(site: Site) -> None:
    """The data moved from the third operand to the first in opset5."""
    order = (2, 0, 1, 3, 4) if site.layer.version in ("opset1", "opset2", "opset3", "opset4") else (0, 1, 2, 3, 4)
    operands = [site.operand(index) for index in order]
    site.emit("BatchNormalization", operands, [site.output()], epsilon=site.real("epsilon"))


def _group_norm(site: Site) -> None:
    operands = [site.operand(0), site.operand(1), site.operand(2)]
    attrs = {"num_groups": site.integer("num_groups"), "epsilon": site.real("epsilon")}
    site.emit("GroupNormalization", operands, [site.output()], **attrs)


def _rms(site: Site) -> None:
    """The plugins' fused form: over the last axis, with an optional scale."""
    operands = [site.operand(0), site.optional(1)]
    site.emit("RMSNormalization", operands, [site.output()], axis=-1, epsilon=site.real("epsilon", 1e-6))


def _softmax(kind: str, site: Site) -> None:
    site.emit(kind, [site.operand(0)], [site.output()], axis=site.integer("axis", 1))


_REDUCTIONS = {
    "reducesum": "ReduceSum", "reducemean": "ReduceMean", "reducemax": "ReduceMax", "reducemin": "ReduceMin",
    "reduceprod": "ReduceProd", "reducel1": "ReduceL1", "reducel2": "ReduceL2", "reducelogicaland": "ReduceMin",
    "reducelogicalor": "ReduceMax",
}  # fmt: skip

LOWERINGS: dict[str, Lowering] = {
    **{name: partial(_reduce, kind) for name, kind in _REDUCTIONS.items()},
    "cumsum": _cumulative_sum,
    "topk": _top_k,
    "nonzero": _non_zero,
    "unique": _unique,
    "bucketize": _bucketize,
    "searchsorted": _search_sorted,
    "mvn": _mvn,
    "normalizel2": _normalize_l2,
    "lrn": _lrn,
    "batchnorminference": _batch_norm,
    "groupnormalization": _group_norm,
    "rms": _rms,
    "softmax": partial(_softmax, "Softmax"),
    "logsoftmax": partial(_softmax, "LogSoftmax"),
}
