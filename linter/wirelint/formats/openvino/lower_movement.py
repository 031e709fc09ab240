"""Operators that move elements: shapes, axes, slices, joins, pads, resampling."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from wirelint.dtypes import DType
from wirelint.formats.openvino.site import InvalidLayerError, Lowering, Site, UnmodelledError

if TYPE_CHECKING:
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]

_RESIZE_MODES = {"nearest": "nearest", "linear": "linear", "linear_onnx": "linear", "bilinear_pillow": "linear",
                 "cubic": "cubic", "bicubic_pillow": "cubic"}  # fmt: skip
_PAD_MODES = ("constant", "edge", "reflect")


def _reshape(site: Site) -> None:
    zero_copies = site.flag("special_zero", default=False)
    site.emit("Reshape", [site.operand(0), site.vector(1)], [site.output()], zero_copies=zero_copies)


def _transpose(site: Site) -> None:
    """Without an order, or with an empty one, the axes are reversed."""
    order = site.known_integers(1, "the order of the axes") if site.optional(1) is not None else []
    perm = order or list(range(site.rank(0)))[::-1]
    site.emit("Transpose", [site.operand(0)], [site.output()], perm=perm)


def _squeeze(site: Site) -> None:
    axes = site.optional_vector(1)
    if axes is not None and site.flag("allow_axis_skip", default=False):
        axes = site.constant(_squeezable(site))
    site.emit("Squeeze", [site.operand(0), axes], [site.output()])


def _squeezable(site: Site) -> list[int]:
    """The axes that go when those longer than one are skipped.

    Raises:
        UnmodelledError: the declared shapes do not tell.
    """
    axes, shape = site.known_integers(1, "the axes to squeeze"), site.operand(0).shape
    squeezed = site.output().shape
    if shape is not None and squeezed is not None and len(shape) - len(squeezed) == len(axes):
        return axes
    if shape is None or not all(-len(shape) <= axis < len(shape) and isinstance(shape[axis], int) for axis in axes):
        raise UnmodelledError("it skips axes that are not declared")
    return [axis for axis in axes if shape[axis] == 1]


def _unsqueeze(site: Site) -> None:
    site.emit("Unsqueeze", [site.operand(0), site.vector(1)], [site.output()])


def _broadcast(site: Site) -> None:
    """Mode numpy gives the target shape exactly; where it is legal, the bidirectional Expand gives the same."""
    mode = site.text("mode", "numpy")
    data, shape = site.operand(0), site.vector(1)
    if mode == "explicit":
        site.emit("BroadcastAlong", [data, shape, site.vector(2)], [site.output()])
    elif mode in ("numpy", "bidirectional"):
        site.emit("Expand", [data, shape], [site.output()])
    else:
        raise UnmodelledError(f"broadcast mode {mode!r} aligns at an axis")


def _tile(site: Site) -> None:
    """Repeats and rank may differ: whichever is shorter is taken to begin with ones."""
    data, repeats = site.operand(0), site.vector(1)
    known, shape = site.static(1), data.shape
    if known is not None and shape is not None and known.size < len(shape):
        padded = [1] * (len(shape) - known.size) + [int(repeat) for repeat in known.reshape(-1)]
        repeats = site.constant(padded)
    elif known is not None and shape is not None and known.size > len(shape):
        data = site.through("Unsqueeze", data, site.constant(list(range(known.size - len(shape)))))
    site.emit("Tile", [data, repeats], [site.output()])


def _concat(site: Site) -> None:
    site.operand(0)
    site.emit("Concat", site.inputs, [site.output()], axis=site.integer("axis"))


def _split_axis(site: Site) -> int:
    """The axis operand, or, where its bytes are unavailable, the only axis along which declared shapes can differ."""
    array = site.static(1)
    if array is not None and array.size == 1:
        return int(array.reshape(-1)[0])
    data, part = site.operand(0).shape, site.output().shape
    if data is not None and part is not None and len(data) == len(part) and len(site.outputs) > 1:
        differing = [axis for axis, (whole, piece) in enumerate(zip(data, part, strict=True)) if whole != piece]
        if len(differing) == 1:
            return differing[0]
    raise UnmodelledError("the axis to split is not known")


def _split(site: Site) -> None:
    if site.integer("num_splits") != len(site.outputs):
        raise InvalidLayerError(f"splits into {site.integer('num_splits')} parts but has {len(site.outputs)} outputs")
    site.emit("Split", [site.operand(0)], site.outputs, axis=_split_axis(site))


def _variadic_split(site: Site) -> None:
    axis = _split_axis(site)
    site.emit("Split", [site.operand(0), _split_lengths(site, axis)], site.outputs, axis=axis)


def _split_lengths(site: Site, axis: int) -> Value:
    """The lengths operand; one of -1 becomes what the others leave of the axis."""
    known = site.static(2)
    if known is None or not (known == -1).any():
        return site.vector(2)
    lengths = [int(length) for length in known.reshape(-1)]
    if lengths.count(-1) > 1:
        raise InvalidLayerError("leaves more than one length of a split open")
    rest = sum(length for length in lengths if length != -1)
    shape = site.operand(0).shape
    whole = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if isinstance(whole, int):
        return site.constant([whole - rest if length == -1 else length for length in lengths])
    sizes = site.through("Shape", site.operand(0), yields=DType.I64, start=0)
    size = site.through("Gather", sizes, site.constant([axis]), axis=0, batch_dims=0)
    remainder = site.through("Sub", size, site.constant([rest]))
    pieces = [remainder if length == -1 else site.constant([length]) for length in lengths]
    return site.through("Concat", *pieces, axis=0)


def _slice(site: Site) -> None:
    """Operands are data, start, stop, step, axes; the canonical order has axes before steps."""
    operands = [site.operand(0), site.vector(1), site.vector(2), site.optional_vector(4), site.vector(3)]
    site.emit("Slice", operands, [site.output()])


def _strided_slice(site: Site) -> None:
    masks = {
        name: tuple(int(bit != 0) for bit in site.integers(name, ""))
        for name in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    }
    operands = [site.operand(0), site.vector(1), site.vector(2), site.optional_vector(3)]
    site.emit("StridedSlice", operands, [site.output()], **masks)


def _pad(site: Site) -> None:
    mode = site.text("pad_mode")
    if mode not in _PAD_MODES:
        raise UnmodelledError(f"pad mode {mode!r} repeats the border")
    begins, ends = site.static(1), site.static(2)
    if begins is not None and ends is not None:
        pads = site.constant([int(pad) for part in (begins, ends) for pad in part.reshape(-1)])
    else:
        pads = site.through("Concat", site.vector(1), site.vector(2), axis=0)
    value = site.optional(3) if mode == "constant" else None
    site.emit("Pad", [site.operand(0), pads, value], [site.output()], mode=mode)


def _reverse_sequence(site: Site) -> None:
    batch_axis, time_axis = site.integer("batch_axis", 0), site.integer("seq_axis", 1)
    operands = [site.operand(0), site.operand(1)]
    site.emit("ReverseSequence", operands, [site.output()], batch_axis=batch_axis, time_axis=time_axis)


def _reverse(site: Site) -> None:
    """Mode mask gives a truth value per axis, mode index the axes."""
    axes = site.vector(1)
    if site.text("mode") == "mask":
        axes = site.constant(np.flatnonzero(site.known(1, "the axes to reverse")))
    site.emit("Flip", [site.operand(0), axes], [site.output()])


def _roll(site: Site) -> None:
    site.emit("Roll", [site.operand(0), site.vector(1), site.vector(2)], [site.output()])


def _rearrange_depth(kind: str, site: Site) -> None:
    mode = "DCR" if site.text("mode") == "blocks_first" else "CRD"
    site.emit(kind, [site.operand(0)], [site.output()], blocksize=site.integer("block_size", 1), mode=mode)


def _shuffle_channels(site: Site) -> None:
    """Interleaves the groups of an axis: the groups side by side along a new axis, then flattened."""
    data, axis, groups = site.operand(0), site.integer("axis", 1), site.integer("group", 1)
    if not 1 <= groups <= 1 << 16:
        raise InvalidLayerError(f"has {groups} groups")
    axis += site.rank(0) if axis < 0 else 0
    parts = [site.temporary(data.dtype) for _ in range(groups)]
    site.emit("Split", [data], parts, axis=axis)
    beside = [site.through("Unsqueeze", part, site.constant([axis + 1])) for part in parts]
    stacked = site.through("Concat", *beside, axis=axis + 1)
    shape = site.through("Shape", data, yields=DType.I64, start=0)
    site.emit("Reshape", [stacked, shape], [site.output()], zero_copies=False)


def _interpolate(site: Site) -> None:
    """Three forms: opset1 (sizes; axes in an attribute), opset4 (sizes and scales), opset11 (whichever the mode names).

    The first has no choice of coordinates: they are asymmetric unless the corners are aligned.
    """
    if any(site.integers("pads_begin", "0")) or any(site.integers("pads_end", "0")):
        raise UnmodelledError("it pads before it resamples")
    mode = site.text("mode")
    if mode not in _RESIZE_MODES:
        raise UnmodelledError(f"interpolation mode {mode!r}")
    sizes, scales, axes = _interpolation_operands(site)
    if _is_first_interpolate(site):
        corners = site.flag("align_corners", default=True)
        coordinates, nearest = "align_corners" if corners else "asymmetric", "simple"
    else:
        coordinates = site.text("coordinate_transformation_mode", "half_pixel")
        nearest = site.text("nearest_mode", "round_prefer_floor")
    site.emit(
        "Resize",
        [site.operand(0), None, scales, sizes],
        [site.output()],
        mode=_RESIZE_MODES[mode],
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
        axes=axes,
        antialias=int(site.flag("antialias", default=False)),
    )


def _is_first_interpolate(site: Site) -> bool:
    return site.layer.version in ("opset1", "opset2", "opset3")


def _interpolation_operands(site: Site) -> tuple[Value | None, Value | None, list[int] | None]:
    if _is_first_interpolate(site):
        return site.vector(1), None, site.integers("axes")
    by_sizes = site.text("shape_calculation_mode") == "sizes"
    single = site.layer.version not in ("opset4", "opset5", "opset6", "opset7", "opset8", "opset9", "opset10")
    at_axes = 2 if single else 3
    given = site.vector(1) if single or by_sizes else site.vector(2)
    axes = site.known_integers(at_axes, "the axes to resample") if site.optional(at_axes) is not None else None
    return (given, None, axes) if by_sizes else (None, given, axes)


def _shape_of(site: Site) -> None:
    shape = site.integers_to_port()
    site.emit("Shape", [site.operand(0)], [shape], start=0)
    site.settle(shape)


LOWERINGS: dict[str, Lowering] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "broadcast": _broadcast,
    "tile": _tile,
    "concat": _concat,
    "split": _split,
    "variadicsplit": _variadic_split,
    "slice": _slice,
    "stridedslice": _strided_slice,
    "pad": _pad,
    "reversesequence": _reverse_sequence,
    "reverse": _reverse,
    "roll": _roll,
    "depthtospace": partial(_rearrange_depth, "DepthToSpace"),
    "spacetodepth": partial(_rearrange_depth, "SpaceToDepth"),
    "shufflechannels": _shuffle_channels,
    "interpolate": _interpolate,
    "shapeof": _shape_of,
}
