"""Edits the tensor names in the XML of an OpenVINO IR; every other byte stays as it is.

expat tells where each start tag begins; only the tags of the parameters' ports are changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from wirelint.errors import ModelFileError
from wirelint.fix.writing import Piece, Span
from wirelint.formats.openvino.xml import parse

if TYPE_CHECKING:
    from pathlib import Path

    from wirelint.fix.plan import Plan

__all__ = ["pieces_of", "refusals"]

_PORT = ["net", "layers", "layer", "output", "port"]
_LAYER = _PORT[:3]
_LONGEST_TAG = 10 << 20
_TAG = re.compile(rb"""<[^\s"'<>/]+(?:\s+[^\s"'<>=]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*/?>""")
_ATTRIBUTE = re.compile(rb"""\s([^\s"'<>=]+)\s*=\s*(?:"[^"<]*"|'[^'<]*')""")
_FRIENDLY_NAMES_SERVE = 10
"""Until this version of the IR the names of layers were tensor names too."""


def refusals(path: Path, plan: Plan) -> dict[int, str]:
    """Renames that the file does not allow, by the input's position, with the reason.

    OpenVINO looks a name up among all ports, inputs and outputs alike.

    Raises:
        ModelFileError, NotAModelError: the file can't be read.
    """
    document = parse(path)
    parameters = {layer.id for layer in document.net.layers if layer.type == "Parameter"}
    others = {
        name
        for layer in document.net.layers
        if layer.id not in parameters
        for name in (*layer.output_names, *(name for port in layer.outputs for name in port.names))
    }
    if document.version <= _FRIENDLY_NAMES_SERVE:
        others |= {layer.name for layer in document.net.layers if layer.id not in parameters}
    ordered = [layer.id for layer in document.net.layers if layer.type == "Parameter"]
    results = {layer.id for layer in document.net.layers if layer.type == "Result"}
    returned = {edge.source for edge in document.net.edges if edge.target in results}
    found = {}
    for entry in plan.renames:
        if entry.new in others:
            found[entry.index] = "a tensor inside the graph has this name; export again"
        elif ordered[entry.index] in returned:
            found[entry.index] = "it is an output too, whose name would change with it"
    return found


def pieces_of(path: Path, plan: Plan) -> list[Piece]:
    """The XML with its inputs renamed, as pieces of the old file and new bytes.

    The name that was wrong goes from its port, the others stay.

    Raises:
        ModelFileError: the XML can't be read, or is not laid out as the format has it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(path, "unreadable", f"can't be read: {error.strerror or error}") from error
    document = parse(path)
    parameters = [layer for layer in document.net.layers if layer.type == "Parameter"]
    names = {
        entry.index: (
            entry.new,
            *(name for name in parameters[entry.index].outputs[0].names if name not in (entry.old, entry.new)),
        )
        for entry in plan.renames
    }
    friendly = document.version <= _FRIENDLY_NAMES_SERVE
    layers = {entry.index: entry.new for entry in plan.renames if friendly and parameters[entry.index].name == entry.old}
    finder = _Finder()
    try:
        finder.run(content)
    except expat.ExpatError as error:
        raise ModelFileError(path, "unreadable", f"the XML is malformed: {error}", error.lineno) from None
    edits = {
        finder.ports[index]: ("names", ",".join(name.replace(",", r"\,") for name in named)) for index, named in names.items()
    }
    edits |= {finder.layers[index]: ("name", name) for index, name in layers.items()}
    pieces: list[Piece] = []
    copied = 0
    for begin, (attribute, value) in sorted(edits.items()):
        match = _TAG.match(content, begin, begin + _LONGEST_TAG)
        if match is None:
            raise ModelFileError(path, "unreadable", f"the tag at byte {begin} can't be edited; convert the model again")
        pieces += (Span(copied, begin), _with_attribute(match.group(), attribute, value))
        copied = match.end()
    return [*pieces, Span(copied, len(content))]


def _with_attribute(tag: bytes, attribute: str, value: str) -> bytes:
    """A start tag with an attribute set; an attribute that is there keeps its place."""
    text = f"{attribute}={quoteattr(value)}".encode()
    for found in _ATTRIBUTE.finditer(tag):
        if found.group(1) == attribute.encode():
            return tag[: found.start(1)] + text + tag[found.end() :]
    end = -2 if tag.endswith(b"/>") else -1
    return tag[:end].rstrip() + b" " + text + tag[end:]


@dataclass
class _Finder:
    """Finds the start tags of the main net's parameters and of their first output port.

    Attributes:
        layers, ports: byte offset of the tag, by the parameter's position.
    """

    layers: list[int] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _in_parameter: bool = False

    def run(self, content: bytes) -> None:
        parser = expat.ParserCreate("utf-8")

        def start(tag: str, attributes: dict[str, str]) -> None:
            self._open.append(tag)
            if self._open == _LAYER:
                self._in_parameter = attributes.get("type") == "Parameter"
                if self._in_parameter:
                    self.layers.append(parser.CurrentByteIndex)
            elif self._open == _PORT and self._in_parameter and len(self.ports) < len(self.layers):
                self.ports.append(parser.CurrentByteIndex)

        def end(tag: str) -> None:
            del tag
            self._open.pop()

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.Parse(content, True)
