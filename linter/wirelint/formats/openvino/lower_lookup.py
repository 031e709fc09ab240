"""Operators that read or write elements at computed indices, and embedding bags."""

from __future__ import annotations

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError
from wirelint.graph import Tensor, Value

__all__ = ["LOWERINGS"]

_REDUCTIONS = {"none": "none", "sum": "add", "prod": "mul", "min": "min", "max": "max"}
_GRID_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _gather(site: Site) -> None:
    batch_dims = site.integer("batch_dims", 0)
    if batch_dims < 0:
        rank = site.operand(1).shape
        if rank is None:
            raise UnmodelledError("the rank of the indices is not declared")
        batch_dims += len(rank)
    operands = [site.operand(0), site.operand(1)]
    site.emit("Gather", operands, [site.output()], axis=_gather_axis(site, batch_dims), batch_dims=batch_dims)


def _gather_axis(site: Site, batch_dims: int) -> int:
    """The axis operand, or, where its bytes are unavailable, the only axis that the declared shapes allow."""
    array = site.static(2)
    if array is not None and array.size == 1:
        return int(array.reshape(-1)[0])
    data, indices, result = site.operand(0).shape, site.operand(1).shape, site.output().shape
    if data is not None and indices is not None and result is not None:
        candidates = range(batch_dims, len(data))
        # Shape inference carries a static dimension through a Gather: one that got lost, or appeared, is another axis.
        fitting = [axis for axis in candidates if data[:axis] + indices[batch_dims:] + data[axis + 1 :] == result]
        if len(fitting) == 1:
            return fitting[0]
    raise UnmodelledError("the axis to gather from is not known")


def _gather_elements(site: Site) -> None:
    operands = [site.operand(0), site.operand(1)]
    site.emit("GatherElements", operands, [site.output()], axis=site.integer("axis", 0))


def _gather_nd(site: Site) -> None:
    """Until opset8 several batch dimensions came out flattened into one."""
    batch_dims = site.integer("batch_dims", 0)
    if batch_dims > 1 and site.layer.version in ("opset5", "opset6", "opset7"):
        raise UnmodelledError("it flattens its batch dimensions")
    site.emit("GatherND", [site.operand(0), site.operand(1)], [site.output()], batch_dims=batch_dims)


def _scatter_update(site: Site) -> None:
    site.emit("ScatterUpdate", [site.operand(index) for index in range(4)], [site.output()])


def _scatter_nd(site: Site) -> None:
    reduction, updates = site.text("reduction", "none"), site.operand(2)
    if reduction == "sub":
        reduction, updates = "sum", site.through("Neg", updates)
    if reduction not in _REDUCTIONS:
        raise UnmodelledError(f"scatter reduction {reduction!r}")
    operands = [site.operand(0), site.operand(1), updates]
    site.emit("ScatterND", operands, [site.output()], reduction=_REDUCTIONS[reduction])


def _scatter_elements(site: Site) -> None:
    reduction = site.text("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise UnmodelledError(f"scatter reduction {reduction!r}")
    if reduction != "none" and not site.flag("use_init_val", default=True):
        raise UnmodelledError("its reduction leaves the initial elements out")
    axis = int(site.known_number(3, "the axis to scatter along"))
    operands = [site.operand(0), site.operand(1), site.operand(2)]
    site.emit("ScatterElements", operands, [site.output()], axis=axis, reduction=_REDUCTIONS[reduction])


def _grid_sample(site: Site) -> None:
    site.emit(
        "GridSample",
        [site.operand(0), site.operand(1)],
        [site.output()],
        mode=_GRID_MODES.get(site.text("mode", "bilinear"), "nearest"),
        padding_mode=site.text("padding_mode", "zeros"),
        align_corners=int(site.flag("align_corners", default=False)),
    )


def _default_index(site: Site, index: int) -> Value | None:
    """The row that fills empty bags; -1 means none, which fills them with zeros."""
    known = site.static(index)
    return None if known is not None and (known == -1).all() else site.optional(index)


def _bag_by_offsets(site: Site) -> None:
    reduction = site.text("reduction", "sum")
    operands = [site.operand(0), site.operand(1), site.operand(2), _default_index(site, 3), site.optional(4)]
    site.emit("EmbeddingBag", operands, [site.output()], reduction=reduction)


def _packed_bag(site: Site) -> None:
    reduction = site.text("reduction", "sum")
    operands = [site.operand(0), site.operand(1), None, None, site.optional(2)]
    site.emit("EmbeddingBag", operands, [site.output()], reduction=reduction)


def _segment_sums(site: Site) -> None:
    """Rows are looked up, weighted and added to zeros at their segments.

    Raises:
        UnmodelledError: there is a default index, which fills empty segments with a row of the table.
    """
    if _default_index(site, 4) is not None:
        raise UnmodelledError("it has a default index")
    table, weights = site.operand(0), site.optional(5)
    rows = site.through("Gather", table, site.operand(1), axis=0, batch_dims=0)
    if weights is not None:
        trailing = site.constant(list(range(1, site.rank(0))))
        rows = site.through("Mul", rows, site.through("Unsqueeze", weights, trailing))
    zeros = _zero_rows(site, table, site.vector(3))
    places = site.through("Unsqueeze", site.operand(2), site.constant([1]))
    site.emit("ScatterND", [zeros, places, rows], [site.output()], reduction="add")


def _zero_rows(site: Site, table: Value, count: Value) -> Value:
    """As many rows of zeros as ``count`` says, each of the shape of a row of ``table``."""
    row = site.through("Shape", table, yields=DType.I64, start=1)
    shape = site.through("Concat", site.cast(count, DType.I64), row, axis=0)
    return site.through("ConstantOfShape", shape, yields=table.dtype, value=Tensor.of([0], table.dtype))


LOWERINGS: dict[str, Lowering] = {
    "gather": _gather,
    "gatherelements": _gather_elements,
    "gathernd": _gather_nd,
    "scatterupdate": _scatter_update,
    "scatterndupdate": _scatter_nd,
    "scatterelementsupdate": _scatter_elements,
    "gridsample": _grid_sample,
    "embeddingbagoffsets": _bag_by_offsets,
    "embeddingbagoffsetssum": _bag_by_offsets,
    "embeddingbagpacked": _packed_bag,
    "embeddingbagpackedsum": _packed_bag,
    "embeddingsegmentssum": _segment_sums,
}
