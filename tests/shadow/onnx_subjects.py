"""ONNX models as subjects: run in ONNX Runtime, or in the reference evaluator where that can't."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from soundness import Subject

from wirelint.formats.onnx import read


class UnusableError(Exception):
    """The model holds what the check is not about: strings, sequences, optional values."""


def runner(model: onnx.ModelProto, feeds: dict[str, np.ndarray], *, required: bool):
    """Something that runs the model, tried out on ``feeds``; ONNX Runtime itself when that is ``required``."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)
    except Exception:
        if required:
            raise
        reference = ReferenceEvaluator(model)

        def evaluate(given):
            with np.errstate(all="ignore"):
                return [np.asarray(array) for array in reference.run(None, dict(given))]

        evaluate(feeds)
        return evaluate
    return lambda given: [np.asarray(array) for array in session.run(None, dict(given))]


def subject(
    name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray], directory: Path, expected=None, *, required=False
) -> Subject:
    """The model, written to ``directory`` and read back.

    Args:
        name: of the file.
        model: what is run and read.
        feeds: its inputs.
        directory: where the file is written.
        expected: results whose shapes the runtime must agree with.
        required: ONNX Runtime must run it.

    Raises:
        UnusableError: an input or a result is no tensor of numbers, or no runtime at hand runs it.
    """
    for value in model.graph.input if required else [*model.graph.input, *model.graph.output]:
        if not value.type.HasField("tensor_type") or value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            raise UnusableError(f"'{value.name}' is no tensor of numbers")
    try:
        execute = runner(model, feeds, required=required)
        found = execute(feeds)
    except Exception as error:
        if required:
            raise
        raise UnusableError(f"no runtime runs it: {error}") from error
    for one, other in zip(found, expected or (), strict=False):
        if one.shape != np.shape(other):
            raise UnusableError(f"the runtime makes {one.shape} of what should be {np.shape(other)}")
    path = directory / f"{name}.onnx"
    onnx.save(model, path)
    return Subject(name, read(path).graph, feeds, execute)
