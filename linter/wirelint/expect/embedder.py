"""sentence-transformers: ``modules.json``, the pooling module's config and ``sentence_bert_config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wirelint.expect.folder import Folder, text, whole

__all__ = ["Embedder", "read_embedder"]

_MODES = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
_USUAL_FOLDER = "1_Pooling"


@dataclass(frozen=True, slots=True)
class Embedder:
    """What the sentence-transformers files say.

    Attributes:
        shown: the pooling config, or else ``modules.json``, as messages call it.
        pooling: ``mean``, ``cls``, ``max``, ``lasttoken``, ``weightedmean``, ``mean_sqrt_len``, several joined by ``+``, or
            empty.
        max_length: tokens that it lets through, or None.
        length_from: the file that says so, as messages call it.
    """

    shown: str
    pooling: str = ""
    max_length: int | None = None
    length_from: str = ""


def read_embedder(folder: Folder) -> Embedder | None:
    """What the sentence-transformers files beside a model say, or None when there are none."""
    modules = folder.json("modules.json")
    listed = [entry for entry in modules if isinstance(entry, dict)] if isinstance(modules, list) else []
    place = next((text(entry.get("path")) for entry in listed if _is(entry, "Pooling")), "")
    if not place and folder.find(_USUAL_FOLDER) is not None and not listed:
        place = _USUAL_FOLDER
    held = folder.mapping(place, "config.json") if place else {}
    if not place and not any(_is(entry, "Transformer") for entry in listed):
        return None
    longest = whole(folder.mapping("sentence_bert_config.json").get("max_seq_length"))
    shown = folder.called(place, "config.json") if held else folder.called("modules.json")
    limits = folder.called("sentence_bert_config.json")
    return Embedder(shown, _pooling(held), longest if longest is not None and longest > 0 else None, limits)


def _is(entry: dict[str, Any], module: str) -> bool:
    """Whether a module is of this class, wherever its package keeps it."""
    return text(entry.get("type")).rsplit(".", 1)[-1] == module


def _pooling(held: dict[str, Any]) -> str:
    """The pooling modes that are on; newer files name them in one key."""
    named = text(held.get("pooling_mode"))
    if named:
        return named
    return "+".join(mode for key, mode in _MODES.items() if held.get(key) is True)
