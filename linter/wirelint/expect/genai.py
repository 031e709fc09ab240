"""``genai_config.json`` of onnxruntime-genai: by which names the generator feeds each model file.

Reference:
    https://onnxruntime.ai/docs/genai/reference/config.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from wirelint.expect.folder import Folder, text, whole

__all__ = ["Genai", "read_genai", "stands_for"]

_FILE = "genai_config.json"
_PARTS = ("decoder", "encoder", "encoder_decoder_init", "embedding", "vision", "speech")


@dataclass(frozen=True, slots=True)
class Genai:
    """What the config says about one model file.

    Attributes:
        shown: the file, as messages call it.
        inputs, outputs: tensor names by the config's keys; ``%d`` stands for a layer's number.
        layers: ``num_hidden_layers``, or None.
        heads, head_size: of the cached keys and values, or None.
    """

    shown: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    layers: int | None = None
    heads: int | None = None
    head_size: int | None = None

    def feeds(self, name: str) -> bool:
        """Whether some key stands for an input of this name."""
        return any(stands_for(pattern, name) for pattern in self.inputs.values())


def read_genai(folder: Folder) -> Genai | None:
    """What ``genai_config.json`` says about the model file, or None when there is none.

    The names are empty when the config speaks of other files only.
    """
    held = folder.mapping(_FILE)
    if not held:
        return None
    model = _mapping(held.get("model"))
    for part in _PARTS:
        section = _mapping(model.get(part))
        if section.get("filename") == folder.model.name:
            return Genai(
                folder.called(_FILE),
                _names(section.get("inputs")),
                _names(section.get("outputs")),
                whole(section.get("num_hidden_layers")),
                whole(section.get("num_key_value_heads")),
                whole(section.get("head_size")),
            )
    return Genai(folder.called(_FILE), {}, {})


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> dict[str, str]:
    return {key: text(name) for key, name in _mapping(value).items() if text(name)}


def stands_for(pattern: str, name: str) -> bool:
    """Whether a name is what a pattern with ``%d`` stands for."""
    return re.fullmatch("[0-9]+".join(map(re.escape, pattern.split("%d"))), name) is not None
