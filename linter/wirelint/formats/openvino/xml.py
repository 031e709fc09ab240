"""The XML of an OpenVINO IR, parsed without trust.

The document is fed to lxml line by line, and every layer is turned into a plain :class:`Layer` and freed as soon as it
ends, so that memory grows with the layers and not with the markup.  Feeding by lines also gives exact line numbers:
libxml2 keeps 16 bits of them per element and guesses beyond line 65535.

What the parser never meets: a document type (refused before parsing, and with it every entity), an encoding other than
UTF-8, the network.  libxml2's own limits stay on (10 MB per attribute, nesting), because ``huge_tree`` is off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from lxml import etree

from wirelint.errors import ModelFileError, NotAModelError
from wirelint.formats.prolog import Root, examine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Document", "Edge", "Layer", "Net", "Port", "parse"]

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_HEAD = 1 << 16
_LONGEST_FEED = 1 << 20
_DEEPEST_BODY = 32
_MOST_METADATA = 10_000
_LONGEST_METADATA = 1 << 16
_OLDEST_VERSION, _NEWEST_VERSION = 10, 11
_NAME = re.compile(r"(?:\\,|[^,])+")
_BODY_TAGS = ("body", "then_body", "else_body")
_MAP_TAGS = ("port_map", "then_port_map", "else_port_map", "back_edges")


@dataclass(frozen=True, slots=True)
class Port:
    """One ``<port>``.

    Attributes:
        id: number of the port within its layer, as the edges spell it.
        precision: element type as ports spell it (``FP32``), or empty.
        dims: dimensions, None for a dynamic one.  A port without any is a scalar or of unknown rank: the format writes
            both the same way.
        names: tensor names.
    """

    id: str
    precision: str
    dims: tuple[int | None, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One ``<edge>`` between two ports."""

    source: str
    source_port: str
    target: str
    target_port: str
    line: int


@dataclass(slots=True)
class Layer:
    """One ``<layer>``.

    Attributes:
        id: as the edges spell it.
        name: friendly name.
        type: operator.
        version: opset (``opset8``) or the domain of an extension.
        line: line of its start tag.
        data: attributes of the ``<data>`` element.
        output_names: names that a Result gives to the model's output.
        inputs: input ports in order.
        outputs: output ports in order.
        maps: attributes of the entries of ``port_map``, ``then_port_map``, ``else_port_map`` and ``back_edges``; each
            entry has its element's tag under ``""``.
        bodies: subgraphs by tag.
    """

    id: str
    name: str
    type: str
    version: str
    line: int
    data: dict[str, str] = field(default_factory=dict)
    output_names: tuple[str, ...] = ()
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    maps: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    bodies: dict[str, Net] = field(default_factory=dict)


@dataclass(slots=True)
class Net:
    """Layers and edges: the model itself or the body of a layer."""

    name: str
    line: int
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """A whole IR: the main net, the format's version and the ``rt_info`` entries by dotted path."""

    net: Net
    version: int
    metadata: dict[str, str]


def parse(path: Path) -> Document:
    """Parses an IR file.

    Raises:
        NotAModelError: the file is no IR: another kind of XML, or no XML at all.
        ModelFileError: ``unreadable`` when the XML is malformed, truncated, of an unsupported version or has a document
            type; ``lfs-pointer`` when a Git LFS pointer stands in the file's place; ``invalid-graph`` when an element
            lacks an attribute without which it means nothing.
    """
    try:
        with path.open("rb") as stream:
            _check_head(path, stream.read(_HEAD))
            stream.seek(0)
            return _Parser(path).run(stream)
    except OSError as error:
        raise ModelFileError(path, "unreadable", f"cannot be read: {error.strerror or error}") from error


def _check_head(path: Path, head: bytes) -> None:
    if not head:
        raise ModelFileError(path, "unreadable", "the file is empty; export or download the model again")
    if head.startswith(_LFS_POINTER):
        raise ModelFileError(path, "lfs-pointer", "is a Git LFS pointer, not the model; run 'git lfs pull' to fetch it", 1)
    root, doctype = examine(head)
    if root is Root.OTHER:
        raise NotAModelError(f"{path}: is no OpenVINO IR: its root element is not <net> with a version")
    if doctype:
        raise ModelFileError(path, "unreadable", "has a document type (DOCTYPE), which no OpenVINO IR has; refused")
    if root is Root.INCOMPLETE and len(head) == _HEAD:
        raise NotAModelError(f"{path}: is no OpenVINO IR: no root element <net> in its first {_HEAD} bytes")


class _Parser:
    """One pass over one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1
        self.lines: dict[etree._Element, int] = {}
        self.net: Net | None = None
        self.version = 0
        self.metadata: dict[str, str] = {}

    def run(self, stream: BinaryIO) -> Document:
        parser = etree.XMLPullParser(
            events=("start", "end"),
            tag=("net", "layer", "edge", "rt_info", "meta_data"),
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            for piece in iter(lambda: stream.readline(_LONGEST_FEED), b""):
                parser.feed(piece)
                for event, found in parser.read_events():
                    element: Any = found  # by its type it may be a namespace, but only elements were asked for
                    if event == "start":
                        self.start(element)
                    else:
                        self.end(element)
                self.line += piece.endswith(b"\n")
        except etree.XMLSyntaxError as error:
            raise self.unreadable(f"the XML is malformed: {_first_line(error)}") from error
        try:
            parser.close()
        except etree.XMLSyntaxError as error:
            raise self.unreadable("the XML ends too early; the file is truncated, export or download it again") from error
        if self.net is None:
            raise NotAModelError(f"{self.path}: is no OpenVINO IR: its root element is not <net>")
        if not self.net.layers:
            raise ModelFileError(self.path, "invalid-graph", "the model has no layers", self.net.line)
        return Document(self.net, self.version, self.metadata)

    def unreadable(self, reason: str) -> ModelFileError:
        return ModelFileError(self.path, "unreadable", reason, self.line)

    def start(self, element: etree._Element) -> None:
        if element.tag in ("layer", "edge"):
            self.lines[element] = self.line
        elif element.tag == "net" and element.getparent() is None:
            self.version = self.checked_version(element.get("version", ""))
            self.net = Net(element.get("name", ""), self.line)

    def checked_version(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", text):
            raise NotAModelError(f"{self.path}: is no OpenVINO IR: <net> has no numeric version")
        version = int(text)
        if version < _OLDEST_VERSION:
            raise self.unreadable(f"IR version {version} is too old (10 or 11 is needed); convert the model again")
        if version > _NEWEST_VERSION:
            raise self.unreadable(f"IR version {version} is not known (10 or 11 is needed); update wirelint or convert again")
        return version

    def end(self, element: etree._Element) -> None:
        """Takes over what stands directly in the main net and frees it; what is nested waits for its layer."""
        parent = element.getparent()
        if self.net is None or parent is None:
            return
        if element.tag in ("rt_info", "meta_data"):
            if parent.getparent() is None:
                self.metadata.update(_flattened(element))
            return
        holder = parent.getparent()
        if holder is None or holder.getparent() is not None:
            return
        if element.tag == "layer" and parent.tag == "layers":
            self.net.layers.append(self.layer(element, 0))
        elif element.tag == "edge" and parent.tag == "edges":
            self.net.edges.append(self.edge(element))
        self.lines.clear()
        element.clear()
        while element.getprevious() is not None:
            del parent[0]

    def attribute(self, element: etree._Element, name: str) -> str:
        value = element.get(name)
        if value is None:
            line = self.lines.get(element, self.line)
            raise ModelFileError(self.path, "invalid-graph", f"<{element.tag!s}> has no attribute {name!r}", line)
        return value

    def edge(self, element: etree._Element) -> Edge:
        return Edge(
            self.attribute(element, "from-layer"),
            element.get("from-port", "0"),
            self.attribute(element, "to-layer"),
            element.get("to-port", "0"),
            self.lines.get(element, self.line),
        )

    def layer(self, element: etree._Element, depth: int) -> Layer:
        """A layer with its bodies; ``depth`` counts the bodies around it, of which only so many are allowed."""
        line = self.lines.get(element, self.line)
        if depth > _DEEPEST_BODY:
            raise ModelFileError(self.path, "unreadable", f"subgraphs are nested deeper than {_DEEPEST_BODY}", line)
        layer = Layer(
            self.attribute(element, "id"),
            element.get("name", ""),
            self.attribute(element, "type"),
            element.get("version", ""),
            line,
            output_names=_names(element.get("output_names", "")),
        )
        for child in element:
            if child.tag == "data":
                layer.data = _plain(child)
            elif child.tag == "input":
                layer.inputs = [self.port(port) for port in child if port.tag == "port"]
            elif child.tag == "output":
                layer.outputs = [self.port(port) for port in child if port.tag == "port"]
            elif child.tag in _MAP_TAGS:
                layer.maps[child.tag] = [{"": str(entry.tag), **_plain(entry)} for entry in child]
            elif child.tag in _BODY_TAGS:
                layer.bodies[child.tag] = self.body(child, line, depth + 1)
        return layer

    def body(self, element: etree._Element, line: int, depth: int) -> Net:
        net = Net(element.get("name", ""), line)
        for layers in element.iterchildren("layers"):
            net.layers.extend(self.layer(child, depth) for child in layers.iterchildren("layer"))
        for edges in element.iterchildren("edges"):
            net.edges.extend(self.edge(child) for child in edges.iterchildren("edge"))
        return net

    def port(self, element: etree._Element) -> Port:
        dims = tuple([_dim(child.text) for child in element if child.tag == "dim"])
        return Port(self.attribute(element, "id"), element.get("precision", ""), dims, _names(element.get("names", "")))


def _plain(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def _dim(text: str | None) -> int | None:
    """A dimension of a port: -1, ``?`` and bounds such as ``1..10`` are dynamic."""
    digits = (text or "").strip()
    return int(digits) if len(digits) <= 18 and digits.isascii() and digits.isdigit() else None


def _names(text: str) -> tuple[str, ...]:
    r"""Tensor names: separated by commas; a comma within a name is written ``\,`` (OpenVINO's own expression)."""
    return tuple(name.replace(r"\,", ",") for name in _NAME.findall(text)) if text else ()


def _flattened(element: etree._Element) -> Iterator[tuple[str, str]]:
    """The ``value`` attributes below an element, by the dotted path of tags; cut at a generous number and length.

    ``<info name="x" value="y"/>`` stands for a key that is no XML name.
    """
    stack = [(child, "") for child in reversed(element)]
    found = 0
    while stack and found < _MOST_METADATA:
        child, prefix = stack.pop()
        tag = str(child.tag)
        path = prefix + (child.get("name", tag) if tag == "info" else tag)
        value = child.get("value")
        if value is not None:
            found += 1
            yield path, value[:_LONGEST_METADATA]
        stack.extend((below, path + ".") for below in reversed(child))


def _first_line(error: etree.XMLSyntaxError) -> str:
    return str(error).splitlines()[0] if str(error) else "syntax error"
