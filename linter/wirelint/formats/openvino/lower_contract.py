"""Matrix products, convolutions and pooling windows."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from wirelint.formats.openvino.site import InvalidLayerError, Lowering, Site, UnmodelledError

if TYPE_CHECKING:
    from wirelint.graph import Value

__all__ = ["LOWERINGS"]

_AUTO_PADS = {
    "explicit": "NOTSET",
    "notset": "NOTSET",
    "same_upper": "SAME_UPPER",
    "same_lower": "SAME_LOWER",
    "valid": "VALID",
}


def _matmul(site: Site) -> None:
    transposed = {f"transpose_{side}": site.flag(f"transpose_{side}", default=False) for side in "ab"}
    site.emit("MatMul", [site.operand(0), site.operand(1)], [site.output()], **transposed)


def _einsum(site: Site) -> None:
    # Letters of an equation tell upper from lower case.
    equation = site.layer.data.get("equation")
    if equation is None:
        raise InvalidLayerError("has no attribute 'equation'")
    site.emit("Einsum", site.inputs, [site.output()], equation=equation.replace(" ", ""))


def _window(site: Site) -> dict[str, Any]:
    """Attributes that convolutions and pools share."""
    auto_pad = site.text("auto_pad", "explicit")
    if auto_pad not in _AUTO_PADS:
        raise InvalidLayerError(f"has the attribute auto_pad={auto_pad!r}")
    attrs: dict[str, Any] = {"auto_pad": _AUTO_PADS[auto_pad], "strides": site.integers("strides")}
    if _AUTO_PADS[auto_pad] == "NOTSET":
        attrs["pads"] = site.integers("pads_begin") + site.integers("pads_end")
    dilations = site.integers("dilations", "")
    if dilations:
        attrs["dilations"] = dilations
    return attrs


def _kernel(weight: Value, leading: int) -> tuple[int, ...]:
    """The declared dimensions of a convolution's weight.

    Raises:
        UnmodelledError: they are not static.
    """
    static = tuple(dim for dim in weight.shape or () if isinstance(dim, int))
    if not static or len(static) != len(weight.shape or ()) or len(static) <= leading:
        raise UnmodelledError("the shape of the weight is not static")
    return static


def _convolution(site: Site) -> None:
    weight = site.operand(1)
    kernel = list(_kernel(weight, 2)[2:])
    site.emit("Conv", [site.operand(0), weight], [site.output()], group=1, kernel_shape=kernel, **_window(site))


def _group_convolution(site: Site) -> None:
    """The weight [groups, out / groups, in / groups, *kernel] becomes [out, in / groups, *kernel]."""
    weight = site.operand(1)
    groups, filters, channels, *kernel = _kernel(weight, 3)
    joined = site.through("Reshape", weight, site.constant([groups * filters, channels, *kernel]), zero_copies=False)
    site.emit("Conv", [site.operand(0), joined], [site.output()], group=groups, kernel_shape=kernel, **_window(site))


def _transposed_window(site: Site) -> dict[str, Any]:
    attrs = _window(site)
    padding = site.integers("output_padding", "")
    if padding:
        attrs["output_padding"] = padding
    if site.optional(2) is not None:
        attrs["output_shape"] = site.known_integers(2, "the output shape")
    return attrs


def _transposed_convolution(site: Site) -> None:
    weight = site.operand(1)
    kernel = list(_kernel(weight, 2)[2:])
    attrs = _transposed_window(site)
    site.emit("ConvTranspose", [site.operand(0), weight], [site.output()], group=1, kernel_shape=kernel, **attrs)


def _transposed_group_convolution(site: Site) -> None:
    """The weight [groups, in / groups, out / groups, *kernel] becomes [in, out / groups, *kernel]."""
    weight = site.operand(1)
    groups, channels, filters, *kernel = _kernel(weight, 3)
    joined = site.through("Reshape", weight, site.constant([groups * channels, filters, *kernel]), zero_copies=False)
    attrs = _transposed_window(site)
    site.emit("ConvTranspose", [site.operand(0), joined], [site.output()], group=groups, kernel_shape=kernel, **attrs)


def _pool(kind: str, site: Site) -> None:
    attrs = _window(site)
    attrs["kernel_shape"] = site.integers("kernel")
    attrs["ceil_mode"] = int(site.text("rounding_type", "floor").startswith("ceil"))
    if kind == "AveragePool":
        attrs["count_include_pad"] = int(not site.flag("exclude-pad"))
    # The second result of MaxPool, the indices, is there since opset8.
    site.emit(kind, [site.operand(0)], site.outputs or [site.output()], **attrs)


def _adaptive_average(site: Site) -> None:
    """To one element per channel it is a mean over the spatial axes; other sizes have windows of varying width."""
    sizes = site.known_integers(1, "the output size")
    if math.prod(sizes) != 1:
        raise UnmodelledError("its windows vary in width")
    axes = site.constant(list(range(2, site.rank(0))))
    site.emit("ReduceMean", [site.operand(0), axes], [site.output()], keepdims=1)


LOWERINGS: dict[str, Lowering] = {
    "matmul": _matmul,
    "einsum": _einsum,
    "convolution": _convolution,
    "groupconvolution": _group_convolution,
    "convolutionbackpropdata": _transposed_convolution,
    "groupconvolutionbackpropdata": _transposed_group_convolution,
    "maxpool": partial(_pool, "MaxPool"),
    "avgpool": partial(_pool, "AveragePool"),
    "adaptiveavgpool": _adaptive_average,
}
