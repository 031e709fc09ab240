"""Models whose names are wrong, and both runtimes to run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from wirelint.cli import cli

MODELS = Path(__file__).parents[2] / "sample_models"
DTYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32, "tensor(bool)": np.bool_}


def feeds(shapes: list[tuple[str, Any]]) -> list[np.ndarray[Any, Any]]:
    """One array for each input: zeros and ones, of two rows and six positions where the shape is open."""
    random = np.random.default_rng(0)
    return [random.integers(0, 2, shape).astype(dtype) for dtype, shape in shapes]


def run_onnx(path: Path) -> tuple[list[str], list[np.ndarray[Any, Any]]]:
    """The inputs' names, and the outputs for the same arrays fed by position."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    entries = [*session.get_inputs(), *session.get_overridable_initializers()]
    order = {entry.name: at for at, entry in enumerate(onnx.load(path, load_external_data=False).graph.input)}
    entries.sort(key=lambda entry: order[entry.name])
    shapes = [
        (DTYPES[entry.type], [dim if isinstance(dim, int) else (2, 6)[min(at, 1)] for at, dim in enumerate(entry.shape)])
        for entry in entries
    ]
    names = [entry.name for entry in entries]
    return names, session.run(None, dict(zip(names, feeds(shapes), strict=True)))


def run_openvino(path: Path) -> tuple[list[set[str]], list[np.ndarray[Any, Any]]]:
    """The inputs' names, and the outputs for the same arrays fed by position."""
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    shapes = [
        (
            port.element_type.to_dtype(),
            [dim.get_length() if dim.is_static else (2, 6)[min(at, 1)] for at, dim in enumerate(port.partial_shape)],
        )
        for port in compiled.inputs
    ]
    results = compiled(dict(enumerate(feeds(shapes))))
    return [set(port.names) for port in compiled.inputs], [results[at] for at in range(len(compiled.outputs))]


def same(left: list[np.ndarray[Any, Any]], right: list[np.ndarray[Any, Any]]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(one, other, equal_nan=True) for one, other in zip(left, right, strict=True)
    )


def wirelint(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


def masked_encoder(names: tuple[str, str], *, capture: bool = False, width: int = 8) -> onnx.ModelProto:
    """One attention layer over a token table, masked by ``(1 - mask) * -1e4``; the ids come first.

    Args:
        names: of the ids and of the mask.
        capture: the mask is read inside both branches of an If, as a value of the graph around it.
        width: of the table.
    """
    ids, mask = names
    random = np.random.default_rng(1)
    tensors = [
        helper.make_tensor(
            "table", TensorProto.FLOAT, (9, width), random.normal(size=9 * width).astype(np.float32).tobytes(), raw=True
        ),
        helper.make_tensor("axes", TensorProto.INT64, (1,), [1]),
        helper.make_tensor("one", TensorProto.FLOAT, (), [1.0]),
        helper.make_tensor("minimum", TensorProto.FLOAT, (), [-1e4]),
        helper.make_tensor("yes", TensorProto.BOOL, (), [True]),
    ]
    cast = helper.make_node("Cast", [mask], ["kept"], to=TensorProto.FLOAT)
    if capture:
        branches = {
            f"{name}_branch": helper.make_graph(
                [helper.make_node("Cast", [mask], [f"{name}_kept"], to=TensorProto.FLOAT)],
                name,
                [],
                [helper.make_tensor_value_info(f"{name}_kept", TensorProto.FLOAT, None)],
            )
            for name in ("then", "else")
        }
        cast = helper.make_node("If", ["yes"], ["kept"], **branches)
    nodes = [
        helper.make_node("Gather", ["table", ids], ["hidden"]),
        cast,
        helper.make_node("Unsqueeze", ["kept", "axes"], ["wide"]),
        helper.make_node("Sub", ["one", "wide"], ["dropped"]),
        helper.make_node("Mul", ["dropped", "minimum"], ["bias"]),
        helper.make_node("Transpose", ["hidden"], ["keys"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["hidden", "keys"], ["scores"]),
        helper.make_node("Add", ["scores", "bias"], ["biased"]),
        helper.make_node("Softmax", ["biased"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "hidden"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", "sequence", width])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
