"""Reads OpenVINO IR: an ``.xml`` of layers and edges, and a ``.bin`` of constants beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.formats.prolog import sniff

if TYPE_CHECKING:
    from pathlib import Path

    from wirelint.graph import Model

__all__ = ["read", "sniff"]


def read(path: Path) -> Model:
    """Reads an IR file and lowers it to the canonical vocabulary.

    Weights stay in the ``.bin`` of the same stem until a constant is loaded.  A ``.bin`` that is missing, is a Git LFS
    pointer or is too short is a problem of the model, not an error: what the XML says can still be judged.

    Raises:
        NotAModelError: the file is no OpenVINO IR.
        ModelFileError: it is one that cannot be used: ``unreadable``, ``lfs-pointer``, ``invalid-graph`` or
            ``graph-cycle``.
    """
    from wirelint.formats.openvino.assemble import Assembler
    from wirelint.formats.openvino.tensors import Weights
    from wirelint.formats.openvino.xml import parse
    from wirelint.graph import Model

    document = parse(path)
    weights = Weights(path.with_suffix(".bin"))
    assembler = Assembler(path, weights, document.version)
    graph = assembler.model(document.net)
    versions = (document.metadata.get(key) for key in ("Runtime_version", "MO_version"))
    return Model(
        path,
        "openvino-ir",
        graph,
        producer="openvino",
        producer_version=next((version for version in versions if version), ""),
        opsets=assembler.opsets,
        ir_version=document.version,
        metadata=document.metadata,
        problems=tuple(weights.problems),
    )
