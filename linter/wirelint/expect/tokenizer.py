"""``tokenizer_config.json``, ``tokenizer.json`` and ``special_tokens_map.json``: what the caller's tokenizer makes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from wirelint.expect.families import default_side, names_of_class
from wirelint.expect.folder import Folder, text, texts, whole

__all__ = ["Tokenizer", "read_tokenizer"]

_CONFIG = "tokenizer_config.json"
_FAST = "tokenizer.json"
_LONGEST = 10_000_000
"""transformers writes 1e30 where a tokenizer has no limit."""
_HEAD = 1 << 16
"""``truncation`` and ``padding`` stand before the vocabulary, which may take many megabytes."""
_FILES = (_CONFIG, _FAST, "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What the tokenizer files say.

    Attributes:
        shown: the file that says most, as messages call it; empty when there is only a vocabulary.
        tokenizer_class: class name, or empty.
        names: inputs that it makes; empty when nothing says.
        names_from: what says so: a key of the config, or the class.
        side: ``left``, ``right`` or empty.
        side_said: which file says so, and what it says.
        pad_id: id of the padding token, or None.
        max_length: tokens that it lets through, or None.
        highest_id: the highest id among its added tokens, or None.
    """

    shown: str = ""
    tokenizer_class: str = ""
    names: tuple[str, ...] = ()
    names_from: str = ""
    side: str = ""
    side_said: str = ""
    pad_id: int | None = None
    max_length: int | None = None
    highest_id: int | None = None


def read_tokenizer(folder: Folder) -> Tokenizer | None:
    """What the tokenizer files beside a model say, or None when there are none."""
    if all(folder.find(name) is None for name in _FILES):
        return None
    config = folder.mapping(_CONFIG)
    fast = _head(folder)
    special = folder.mapping("special_tokens_map.json")
    kind = text(config.get("tokenizer_class"))
    listed = texts(config.get("model_input_names"))
    names = listed or names_of_class(kind)
    padding, truncation = _mapping(fast.get("padding")), _mapping(fast.get("truncation"))
    tokens = _added(config)
    side, side_said = _side(folder, config, padding, kind)
    pad = tokens.get(_content(config.get("pad_token")) or _content(special.get("pad_token")))
    return Tokenizer(
        shown=folder.called(_CONFIG) if config else folder.called(_FAST) if fast else "",
        tokenizer_class=kind,
        names=names,
        names_from="model_input_names" if listed else f"tokenizer_class {kind}" if names else "",
        side=side,
        side_said=side_said,
        pad_id=pad if pad is not None else _id(padding.get("pad_id")),
        max_length=_length(config.get("model_max_length")) or _length(truncation.get("max_length")),
        highest_id=max(tokens.values(), default=None),
    )


def _side(folder: Folder, config: dict[str, Any], padding: dict[str, Any], kind: str) -> tuple[str, str]:
    """The side, and which file says so; an explicit word counts before what the class does by itself."""
    for name, key, said in (
        (_CONFIG, "padding_side", config.get("padding_side")),
        (_FAST, "padding.direction", padding.get("direction")),
    ):
        if isinstance(said, str) and said.lower() in ("left", "right"):
            return said.lower(), f"{folder.called(name)} says {key}: {said.lower()}"
    side = default_side(kind)
    return side, f"{folder.called(_CONFIG)} says tokenizer_class: {kind}, which pads {side}" if side else ""


def _added(config: dict[str, Any]) -> dict[str, int]:
    """Ids of the added tokens by their content, as ``added_tokens_decoder`` lists them."""
    listed = _mapping(config.get("added_tokens_decoder"))
    return {_content(entry): int(key) for key, entry in listed.items() if re.fullmatch(r"[0-9]{1,9}", key) and _content(entry)}


def _content(token: Any) -> str:
    """A token as text: it is written as such, or as an object with its ``content``."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _id(value: Any) -> int | None:
    found = whole(value)
    return found if found is not None and found >= 0 else None


def _length(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = whole(value)
    return found if found is not None and 0 < found < _LONGEST else None


def _head(folder: Folder) -> dict[str, Any]:
    """The entries of ``tokenizer.json`` that stand before its vocabulary.

    The file is read no further than that: whole ones take up to tens of megabytes.
    """
    found = folder.find(_FAST)
    if found is None:
        return {}
    path, shown = found
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as stream:
            content = stream.read(_HEAD).decode("utf-8", errors="replace")
    except OSError:
        return {}
    entries = _entries(content)
    if entries:
        folder.sources.append(shown)
    return entries


def _entries(content: str) -> dict[str, Any]:
    """The entries of a JSON object up to the first that is not whole."""
    decoder = json.JSONDecoder()
    entries: dict[str, Any] = {}
    at = _past(content, 0, "{")
    while at is not None:
        try:
            key, at = decoder.raw_decode(content, at)
            at = _past(content, at, ":")
            if at is None or not isinstance(key, str):
                break
            entries[key], at = decoder.raw_decode(content, at)
        except (ValueError, RecursionError):
            break
        at = _past(content, at, ",")
    return entries


def _past(content: str, at: int, mark: str) -> int | None:
    """The position after a punctuation mark and the blanks around it."""
    match = re.compile(rf"\s*{re.escape(mark)}\s*").match(content, at)
    return None if match is None else match.end()
