"""What stands before the content of an XML document: enough to tell an OpenVINO IR without an XML parser."""

from __future__ import annotations

import enum
import re

__all__ = ["Root", "examine", "sniff"]

_BLANK = b" \t\r\n"
_SUBSET_END = re.compile(rb"\]\s*>")
_NET = re.compile(rb"<net(?=[\s/>])")
# Attribute values may hold anything but "<" and their own quote, ">" included.
_NET_TAG = re.compile(rb"""<net((?:\s+[^\s=<>"']+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*/?>?""")
_ATTRIBUTE = re.compile(rb"""([^\s=<>"']+)\s*=\s*(?:"[^"<]*"|'[^'<]*')""")


class Root(enum.Enum):
    """What the bytes before the content say."""

    IR = enum.auto()
    OTHER = enum.auto()
    INCOMPLETE = enum.auto()


def sniff(head: bytes) -> bool:
    """True when the first bytes of a file are those of an OpenVINO IR of any version.

    The root element must be ``net`` with a ``version`` attribute; a byte order mark, the XML declaration, processing
    instructions, comments and a document type may stand before it.  No XML parser is needed.

    Examples:
        >>> sniff(b'<?xml version="1.0"?><net name="m" version="11">')
        True
        >>> sniff(b'<annotation><net version="11"/></annotation>')
        False
    """
    return examine(head)[0] is Root.IR


def examine(head: bytes) -> tuple[Root, bool]:
    """Classifies the root element of a document; the flag says whether a document type stands before it."""
    at = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    doctype = False
    while True:
        while at < len(head) and head[at] in _BLANK:
            at += 1
        rest = head[at : at + 9]
        if rest.startswith(b"<!--"):
            at = _after(head, b"-->", at + 4)
        elif rest.startswith(b"<?"):
            at = _after(head, b"?>", at + 2)
        elif rest == b"<!DOCTYPE":
            doctype = True
            at = _after_doctype(head, at)
        else:
            return _classify(head, at), doctype
        if at < 0:
            return Root.INCOMPLETE, doctype


def _after(head: bytes, token: bytes, start: int) -> int:
    found = head.find(token, start)
    return -1 if found < 0 else found + len(token)


def _after_doctype(head: bytes, at: int) -> int:
    """Where a document type ends: at the first ``>`` outside of its internal subset, or -1."""
    subset, close = head.find(b"[", at), head.find(b">", at)
    if 0 <= subset < close:
        end = _SUBSET_END.search(head, subset)
        return end.end() if end else -1
    return close + 1 if close >= 0 else -1


def _classify(head: bytes, at: int) -> Root:
    if _NET.match(head, at) is None:
        return Root.INCOMPLETE if b"<net".startswith(head[at : at + 4]) else Root.OTHER
    tag = _NET_TAG.match(head, at)
    if tag and b"version" in _ATTRIBUTE.findall(tag.group(1)):
        return Root.IR
    return Root.OTHER if tag and tag.group(0).endswith(b">") else Root.INCOMPLETE
