"""Small graphs over embedded ids, for tests of the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper, save_model

from wirelint.analysis import analyse
from wirelint.formats import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wirelint.facts import ModelFacts

__all__ = ["TOKENS", "constant", "examined", "words"]

TOKENS = (TensorProto.INT64, ["batch", "length"])
Port = tuple[str, int, list[Any]]


def constant(name: str, value: Any, dtype: type[np.generic] = np.float32) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(value, dtype=dtype), name)


def words(rows: int = 50, width: int = 8) -> TensorProto:
    """A token table whose rows differ."""
    return constant("words", np.arange(rows * width).reshape(rows, width) / (rows * width))


def examined(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[Port],
    constants: Sequence[TensorProto],
    outputs: Sequence[str] = ("y",),
    domains: Sequence[str] = (),
) -> ModelFacts:
    """The facts about a graph, saved as ``model.onnx`` in a folder that may hold companions."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(constants),
    )
    path = folder / "model.onnx"
    imports = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
    save_model(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return analyse(load(path))
