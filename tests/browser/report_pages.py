"""Reports to look at, each on models that try a page in their own way."""

from __future__ import annotations

from pathlib import Path

import onnx

import wirelint
from layered import layered_model
from wirelint.report import RenderOptions, renderer

__all__ = ["MARKUP", "PAGES", "write_report"]

SAMPLES = Path(__file__).parents[2] / "sample_models"
PAGES = ("broken", "clean", "unreadable", "nothing", "mixed", "folder", "hostile", "long-names", "large")
MARKUP = "</title></svg><img src=x onerror=alert(1)><script>alert(2)</script>"
"""A name that runs, and asks for a file, wherever it is taken for markup."""


def write_report(name: str, folder: Path) -> Path:
    """The report on some models, as a file.

    Args:
        name: one of :data:`PAGES`.
        folder: an empty one, for the report and for models that are made for it.
    """
    report = wirelint.check(_models(name, folder), config=False)
    path = folder / "report.html"
    path.write_text(renderer("html")(report, RenderOptions()), encoding="utf-8")
    return path


def hostile_model() -> onnx.ModelProto:
    """Every name of it is markup."""
    made = layered_model(3, unmasked=(1,))
    graph = made.graph
    named = [*graph.input, *graph.output, *graph.initializer]
    new = {entry.name: f"{entry.name}{MARKUP}" for entry in named}
    for node in graph.node:
        node.name += MARKUP
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for entry in named:
        entry.name = new[entry.name]
    for entry in (*graph.input, *graph.output):
        for dim in entry.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param += MARKUP
    return made


def long_named_model() -> onnx.ModelProto:
    """An exporter that inlines functions names nodes by the whole of their scope, without a place to break."""
    made = layered_model(3, unmasked=(1,))
    for node in made.graph.node:
        node.name = f"__module.{'encoder_layer_attention_self_' * 12}{node.name.replace('/', '_')}"
    made.graph.output[0].name = "hidden_states_of_the_last_layer_" * 8
    made.graph.node[-1].output[0] = made.graph.output[0].name
    return made


def _models(name: str, folder: Path) -> list[Path]:
    if name == "broken":
        return [SAMPLES / "mask/bert_mask_partial.onnx"]
    if name == "clean":
        return [SAMPLES / "clean/llama_with_past.onnx"]
    if name == "unreadable":
        return [SAMPLES / "file/truncated.onnx"]
    if name == "nothing":
        return [folder]
    if name == "mixed":
        samples = ("mask/bert_mask_inverted.onnx", "stories/reranker_ov.xml", "clean/cnn.onnx", "file/lfs_pointer.onnx")
        return [SAMPLES / sample for sample in samples]
    if name == "folder":
        return [*sorted((SAMPLES / "clean").glob("*.onnx")), SAMPLES / "file", SAMPLES / "mask/bert_mask_partial.onnx"]
    proto = {
        "hostile": hostile_model,
        "long-names": long_named_model,
        "large": lambda: layered_model(780, unmasked=(3, 400, 401)),
    }[name]()
    onnx.save(proto, folder / f"{name}.onnx")
    return [folder / f"{name}.onnx"]
