"""Takes out of a model file what describes the machine it was built on, and checks that nothing of it stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import onnx

__all__ = ["assert_clean", "scrub_ir", "scrub_onnx"]

_MACHINE = re.compile(rb"/(?:opt|usr|home|root|tmp|work|var|mnt|private|Users)/|[A-Z]:\\\\|site-packages|\.py\b")


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    waiting = [graph]
    while waiting:
        one = waiting.pop()
        yield one
        for node in one.node:
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else attribute.graphs


def _described(model: onnx.ModelProto) -> Iterable[Any]:
    """Every message that may carry a doc string or metadata: the dynamo exporter keeps stack traces in them."""
    yield from (model, *model.functions)
    for function in model.functions:
        yield from function.node
    for graph in _graphs(model.graph):
        yield graph
        yield from (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer)


def scrub_onnx(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop doc strings and metadata, in place."""
    for message in _described(model):
        message.ClearField("doc_string")
        message.ClearField("metadata_props")
    return model


def scrub_ir(xml: Path) -> None:
    """Drop ``rt_info`` entries that hold a path of this machine."""
    tree = etree.parse(xml)
    for entry in tree.xpath("//rt_info//*[@value]"):
        if _MACHINE.search(entry.get("value").encode()):
            entry.getparent().remove(entry)
    xml.write_bytes(etree.tostring(tree, xml_declaration=True, encoding="utf-8"))


def assert_clean(file: Path) -> None:
    """Raise AssertionError when a committed file names a path of this machine."""
    found = _MACHINE.search(file.read_bytes())
    assert found is None, f"{file} holds {found.group().decode()!r} at byte {found.start()}"
