"""Files that cannot be read, or not wholly."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import onnx
import transformers as hf
from onnx import external_data_helper

from builders import export, tiny
from builders.clean import BERT, DIRECT, FROM_ONNX, PAIR, TS14
from builders.registry import sample


def pointer(content: bytes) -> bytes:
    """What Git LFS checks in for a file of this content."""
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()


def classifier_bytes() -> bytes:
    """A BERT classifier as ONNX."""
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    with export.exported(model, tiny.example(*BERT), outputs=["logits"]) as source:
        return source.read_bytes()


@sample(
    "file/lfs_pointer.onnx",
    "a Git LFS pointer in place of the model",
    "Git LFS",
    {},
    must=("lfs-pointer",),
    may=("unreadable",),
    feeds=None,
)
def _(target: Path) -> None:
    target.write_bytes(pointer(classifier_bytes()))


@sample(
    "file/truncated.onnx",
    "a download that broke off half-way",
    TS14,
    {},
    must=("unreadable",),
    may=("invalid-graph",),
    feeds=None,
)
def _(target: Path) -> None:
    whole = classifier_bytes()
    target.write_bytes(whole[: len(whole) // 2])


@sample("file/empty.onnx", "no bytes at all", "none", {}, must=("unreadable",), feeds=None)
def _(target: Path) -> None:
    target.write_bytes(b"")


@sample("file/truncated_ov.xml", "an IR that ends in the middle of a layer", DIRECT, {}, must=("unreadable",), feeds=None)
def _(target: Path) -> None:
    export.ir_from_torch(tiny.encoder("distilbert"), tiny.example(*PAIR), target)
    whole = target.read_bytes()
    target.write_bytes(whole[: len(whole) // 2])
    target.with_suffix(".bin").unlink()


@sample(
    "file/without_bin_ov.xml",
    "an IR checked in without its .bin: what the XML says can still be judged",
    FROM_ONNX,
    BERT,
    must=("missing-weights",),
    feeds=None,
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    with export.exported(model, tiny.example(*BERT), outputs=["logits"]) as source:
        export.ir_from_onnx(source, target)
    target.with_suffix(".bin").unlink()


@sample(
    "file/bin_is_lfs_pointer_ov.xml",
    "an IR whose .bin is a Git LFS pointer",
    FROM_ONNX,
    BERT,
    must=("lfs-pointer",),
    may=("missing-weights", "weights-out-of-bounds"),
    feeds=None,
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    with export.exported(model, tiny.example(*BERT), outputs=["logits"]) as source:
        export.ir_from_onnx(source, target)
    weights = target.with_suffix(".bin")
    weights.write_bytes(pointer(weights.read_bytes()))


def external(location: str, folder: Path) -> onnx.ModelProto:
    """The classifier with its weights declared to be in another file, which is written to ``folder``."""
    model = onnx.load_from_string(classifier_bytes())
    external_data_helper.convert_model_to_external_data(
        model, all_tensors_to_one_file=True, location="weights.data", size_threshold=256
    )
    onnx.save(model, folder / "model.onnx")
    saved = onnx.load(folder / "model.onnx", load_external_data=False)
    for tensor in saved.graph.initializer:
        for entry in tensor.external_data:
            entry.value = location if entry.key == "location" else entry.value
    return saved


@sample(
    "file/without_external_data.onnx",
    "external data whose file was not checked in",
    f"{TS14}, external data",
    BERT,
    must=("missing-weights",),
    feeds=None,
)
def _(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        export.save_onnx(external("weights.data", Path(folder)), target)


@sample(
    "file/external_path_escape.onnx",
    "external data that points out of the model's folder",
    f"{TS14}, external data",
    BERT,
    must=("external-path-escape",),
    may=("missing-weights", "unreadable"),
    feeds=None,
)
def _(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        export.save_onnx(external("../../weights.data", Path(folder)), target)


@sample(
    "file/bin_too_short_ov.xml",
    "a .bin that ends before the last weights",
    FROM_ONNX,
    BERT,
    must=("weights-out-of-bounds",),
    may=("unreadable", "missing-weights"),
    feeds=None,
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    with export.exported(model, tiny.example(*BERT), outputs=["logits"]) as source:
        export.ir_from_onnx(source, target)
    weights = target.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:10_000])


@sample(
    "file/invalid_graph.onnx",
    "a script removed a node and left its reader behind",
    f"{TS14}, graph edited",
    {},
    must=("invalid-graph",),
    feeds=None,
)
def _(target: Path) -> None:
    model = onnx.load_from_string(classifier_bytes())
    del model.graph.node[10]
    export.save_onnx(model, target)


@sample(
    "file/graph_cycle.onnx",
    "two nodes that feed each other",
    f"{TS14}, graph edited",
    {},
    must=("graph-cycle",),
    may=("invalid-graph", "unreadable"),
    feeds=None,
)
def _(target: Path) -> None:
    model = onnx.load_from_string(classifier_bytes())
    first, last = (node for node in (model.graph.node[10], model.graph.node[-1]))
    reader = next(node for node in model.graph.node if first.output[0] in node.input)
    reader.input[list(reader.input).index(first.output[0])] = last.output[0]
    export.save_onnx(model, target)
