"""Chooses how a layer is lowered: by the tables of the operator families, or as Opaque."""

from __future__ import annotations

from wirelint.formats.openvino import (
    bodies,
    lower_attention,
    lower_contract,
    lower_elementwise,
    lower_generate,
    lower_lookup,
    lower_movement,
    lower_recurrent,
    lower_reduce,
)
from wirelint.formats.openvino.site import Lowering, Site, UnmodelledError

__all__ = ["LOWERINGS", "lower"]

LOWERINGS: dict[str, Lowering] = {
    **bodies.LOWERINGS,
    **lower_attention.LOWERINGS,
    **lower_contract.LOWERINGS,
    **lower_elementwise.LOWERINGS,
    **lower_generate.LOWERINGS,
    **lower_lookup.LOWERINGS,
    **lower_movement.LOWERINGS,
    **lower_recurrent.LOWERINGS,
    **lower_reduce.LOWERINGS,
}
"""Lowering functions by operator type in lower case: OpenVINO looks types up without regard to case."""

_INTERNAL = {"rms", "pagedattentionextension"}
"""Operators that no opset has, only the plugins."""


def lower(site: Site) -> None:
    """Fills ``site.ops``; every value in ``site.outputs`` is computed by one of them afterwards.

    Operators of extensions, unknown ones and forms without a canonical counterpart become Opaque.

    Raises:
        InvalidLayerError: the layer lacks what its operator needs, or contradicts itself.
    """
    kind = site.layer.type.casefold()
    lowering = LOWERINGS.get(kind) if site.layer.version.startswith("opset") or kind in _INTERNAL else None
    if lowering is not None:
        try:
            lowering(site)
        except UnmodelledError:
            site.ops.clear()
            for output in site.outputs:
                output.producer = None
    open_ends = [output for output in site.outputs if output.producer is None]
    if open_ends or not site.ops:
        site.emit("Opaque", site.inputs, open_ends)
