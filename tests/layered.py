"""A model of any number of layers, for tests of what is drawn: masked self-attention over embedded ids."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["layered_model"]

_WIDTH = 4


def layered_model(layers: int, *, unmasked: tuple[int, ...] = ()) -> onnx.ModelProto:
    """``layers`` layers of 13 nodes each; those in ``unmasked`` do not add the mask to their scores."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["h0"], name="/embeddings/Gather"),
        helper.make_node("Cast", ["attention_mask"], ["mask_f"], name="/Cast", to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "mask_f"], ["mask_0"], name="/Sub"),
        helper.make_node("Mul", ["mask_0", "low"], ["mask_1"], name="/Mul"),
        helper.make_node("Unsqueeze", ["mask_1", "axis"], ["bias"], name="/Unsqueeze"),
    ]
    for layer in range(layers):
        nodes += _layer(layer, masked=layer not in unmasked)
    rng = np.random.default_rng(0)
    weights = {
        "table": rng.normal(size=(50, _WIDTH)).astype(np.float32),
        "one": np.array(1.0, np.float32),
        "low": np.array(-1e9, np.float32),
        "scale": np.array(0.5, np.float32),
        "axis": np.array([1], np.int64),
        **{name: rng.normal(size=(_WIDTH, _WIDTH)).astype(np.float32) for name in ("wq", "wk", "wv", "wo")},
    }
    graph = helper.make_graph(
        nodes,
        "layers",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(f"h{layers}", TensorProto.FLOAT, ["batch", "sequence", _WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _layer(at: int, *, masked: bool) -> list[onnx.NodeProto]:
    def node(op: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [f"{output}{at}"], name=f"/layer.{at}/{output}/{op}", **attributes)

    scores = [node("Add", [f"scaled{at}", "bias"], "biased")] if masked else [node("Identity", [f"scaled{at}"], "biased")]
    return [
        node("MatMul", [f"h{at}", "wq"], "q"),
        node("MatMul", [f"h{at}", "wk"], "k"),
        node("MatMul", [f"h{at}", "wv"], "v"),
        node("Transpose", [f"k{at}"], "kt", perm=[0, 2, 1]),
        node("MatMul", [f"q{at}", f"kt{at}"], "scores"),
        node("Mul", [f"scores{at}", "scale"], "scaled"),
        *scores,
        node("Softmax", [f"biased{at}"], "weights", axis=-1),
        node("MatMul", [f"weights{at}", f"v{at}"], "context"),
        node("MatMul", [f"context{at}", "wo"], "out"),
        node("Tanh", [f"out{at}"], "act"),
        node("Add", [f"act{at}", f"h{at}"], "sum"),
        helper.make_node("Identity", [f"sum{at}"], [f"h{at + 1}"], name=f"/layer.{at}/Identity"),
    ]
