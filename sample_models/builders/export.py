"""The exporters: TorchScript and dynamo ``torch.onnx.export``, and ``openvino.convert_model``."""

from __future__ import annotations

import logging
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import openvino as ov
import torch

from builders.scrub import scrub_ir, scrub_onnx

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["BATCH_SEQUENCE", "dynamo", "exported", "ir_from_onnx", "ir_from_torch", "save_ir", "save_onnx", "torchscript"]

BATCH_SEQUENCE = {0: "batch", 1: "sequence"}
Axes = dict[str, dict[int, str]]


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters warn about every traced Python branch; a build log of them helps nobody."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def save_onnx(model: onnx.ModelProto, target: Path) -> None:
    """Write an ONNX file without anything that describes the machine it was made on."""
    target.write_bytes(scrub_onnx(model).SerializeToString(deterministic=True))


def torchscript(
    model: torch.nn.Module,
    arguments: dict[str, torch.Tensor] | tuple[torch.Tensor, ...],
    target: Path,
    *,
    names: Sequence[str] | None = None,
    outputs: Sequence[str] = ("last_hidden_state", "pooler_output"),
    axes: Axes | None = None,
    opset: int = 14,
    folding: bool = True,
) -> None:
    """``torch.onnx.export(dynamo=False)``.

    ``names`` are the input names given to the exporter, the arguments' own ones by default.  ``axes`` name the symbolic
    axes; by default batch and sequence of each input, and of no output, as in most scripts.
    """
    given = list(arguments if names is None else names)
    keyword = isinstance(arguments, dict)
    with _quiet():
        torch.onnx.export(
            model,
            args=() if keyword else arguments,
            kwargs=dict(arguments) if keyword else None,
            f=str(target),
            dynamo=False,
            input_names=given,
            output_names=list(outputs),
            dynamic_axes=dict.fromkeys(given, BATCH_SEQUENCE) if axes is None else axes,
            opset_version=opset,
            do_constant_folding=folding,
        )
    save_onnx(onnx.load(target), target)


def dynamo(
    model: torch.nn.Module,
    arguments: dict[str, Any],
    target: Path,
    *,
    outputs: Sequence[str] = ("last_hidden_state", "pooler_output"),
    shapes: Any = None,
    opset: int = 18,
) -> None:
    """``torch.onnx.export(dynamo=True)``; names are those of the arguments."""
    batch, sequence = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("sequence", min=2, max=64)
    with _quiet():
        program = torch.onnx.export(
            model,
            args=(),
            kwargs=dict(arguments),
            dynamo=True,
            output_names=list(outputs),
            dynamic_shapes={key: {0: batch, 1: sequence} for key in arguments} if shapes is None else shapes,
            opset_version=opset,
            verbose=False,
        )
    save_onnx(program.model_proto, target)


@contextmanager
def exported(model: torch.nn.Module, arguments: dict[str, torch.Tensor], **options: Any) -> Iterator[Path]:
    """A TorchScript export in a temporary file, for what is converted or rewritten next."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        torchscript(model, arguments, target, **options)
        yield target


def save_ir(model: ov.Model, target: Path, *, fp16: bool = False) -> None:
    """Write ``.xml`` and ``.bin``; fp32 unless asked, although ``ovc`` compresses by default."""
    ov.save_model(model, target, compress_to_fp16=fp16)
    scrub_ir(target)


def ir_from_torch(
    model: torch.nn.Module,
    arguments: dict[str, torch.Tensor],
    target: Path | None = None,
    *,
    outputs: Sequence[str] = (),
    fp16: bool = False,
) -> ov.Model:
    """``openvino.convert_model`` straight from PyTorch."""
    with _quiet():
        model = ov.convert_model(model, example_input=dict(arguments))
    for port, name in zip(model.outputs, outputs, strict=False):
        port.get_tensor().set_names({name})
    if target is not None:
        save_ir(model, target, fp16=fp16)
    return model


def ir_from_onnx(source: Path, target: Path | None = None, *, fp16: bool = False) -> ov.Model:
    """``openvino.convert_model`` from an ONNX file."""
    model = ov.convert_model(source)
    if target is not None:
        save_ir(model, target, fp16=fp16)
    return model
