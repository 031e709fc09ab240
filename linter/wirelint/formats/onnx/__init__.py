"""Reads ONNX model files without running them and without loading their weights."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

from wirelint.formats.onnx.external import ExternalFiles
from wirelint.formats.onnx.proto import text
from wirelint.formats.onnx.reader import GraphReader, opset_versions
from wirelint.formats.onnx.tensors import TensorReader
from wirelint.formats.onnx.wire import read_skeleton
from wirelint.graph import Model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["read"]


def read(path: Path) -> Model:
    """The model in an ONNX file, lowered to the canonical vocabulary.

    Weights stay on disk.  What is wrong with external data is listed in ``Model.problems``, and the model is lowered
    all the same.

    Raises:
        ModelFileError: the file is no ONNX model (``unreadable``), a Git LFS pointer (``lfs-pointer``), or its graph
            can't run (``invalid-graph``, ``graph-cycle``).
    """
    skeleton = read_skeleton(path)
    files = ExternalFiles(path)
    with _collection_paused():
        graph = GraphReader(path, skeleton, TensorReader(path, files)).main_graph()
    return Model(
        path=path,
        format="onnx",
        graph=graph,
        producer=text(skeleton.producer_name),
        producer_version=text(skeleton.producer_version),
        opsets=opset_versions(skeleton),
        ir_version=skeleton.ir_version,
        metadata={text(entry.key): text(entry.value) for entry in skeleton.metadata_props},
        problems=tuple(files.problems()),
    )


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """No garbage collection while a graph grows: all of it stays alive, and looking through it again and again takes
    half of the time that a large graph needs.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
