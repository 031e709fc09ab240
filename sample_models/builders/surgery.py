"""Changes to a written graph, as optimisers, converters and merge scripts make them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cast_to_fp16", "give_default", "merge_tokenizer", "rename_inputs", "sort_inputs", "to_fp16", "to_int8", "to_qdq"]


def rename_inputs(model: onnx.ModelProto, names: dict[str, str]) -> onnx.ModelProto:
    """New names for graph inputs, and for every operand that reads them."""
    for port in model.graph.input:
        port.name = names.get(port.name, port.name)
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return model


def sort_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Graph inputs in alphabetical order: some clean-up steps keep them in a set."""
    ordered = sorted(model.graph.input, key=lambda port: port.name)
    del model.graph.input[:]
    model.graph.input.extend(ordered)
    return model


def merge_tokenizer(model: onnx.ModelProto, outputs: dict[str, int]) -> onnx.ModelProto:
    """Makes the graph inputs named from text, by the tokenizer operator of onnxruntime-extensions.

    Args:
        model: the graph.
        outputs: which output of the operator stands in place of which graph input.
    """
    made = ["", "", ""]
    for name, at in outputs.items():
        made[at] = name
    kept = [port for port in model.graph.input if port.name not in outputs]
    text = onnx.helper.make_tensor_value_info("text", onnx.TensorProto.STRING, ["batch"])
    node = onnx.helper.make_node("BertTokenizer", ["text"], made, domain="ai.onnx.contrib", vocab_file="")
    del model.graph.input[:]
    model.graph.input.extend([text, *kept])
    model.graph.node.insert(0, node)
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.contrib", 1))
    return model


def give_default(model: onnx.ModelProto, name: str, value: np.ndarray) -> onnx.ModelProto:
    """An initializer of the same name as a graph input: the caller may leave it out."""
    model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def to_fp16(model: onnx.ModelProto, *, largest: float) -> onnx.ModelProto:
    """The fp16 converter of ONNX Runtime; constants beyond ``largest`` are clamped to it."""
    return convert_float_to_float16(model, max_finite_val=largest, keep_io_types=True, disable_shape_infer=False)


def cast_to_fp16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The naive cast of many scripts: every fp32 constant as it is, so that the fp32 minimum becomes -inf."""
    for tensor in model.graph.initializer:
        _halve(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _halve(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.FLOAT16
    for output in model.graph.output:
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return model


def _halve(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == onnx.TensorProto.FLOAT:
        with np.errstate(over="ignore"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))


def to_int8(model: onnx.ModelProto) -> onnx.ModelProto:
    """Dynamic quantisation by ONNX Runtime: the activations' scale is taken from the whole tensor, padding included."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, source)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8)
        return onnx.load(target)


class _Batches(CalibrationDataReader):
    def __init__(self, batches: Sequence[dict[str, np.ndarray]]) -> None:
        self._left = iter(batches)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


def to_qdq(model: onnx.ModelProto, batches: Sequence[dict[str, np.ndarray]], operators: Sequence[str]) -> onnx.ModelProto:
    """Static quantisation by ONNX Runtime, QDQ format, of the operator types given."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "fp32.onnx", Path(folder) / "qdq.onnx"
        onnx.save(model, source)
        quantize_static(source, target, _Batches(batches), quant_format=QuantFormat.QDQ, op_types_to_quantize=list(operators))
        return onnx.load(target)
