"""How files lie around a model: what its companions and its contract are called, and where they are looked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["CONTRACT_SUFFIX", "is_companion", "looks_one_up", "places_of"]

CONTRACT_SUFFIX = ".contract.yaml"
"""A contract lies beside its model and bears its name: ``model.contract.yaml`` for ``model.onnx``."""
_SUBFOLDERS = re.compile(r"(onnx|openvino|ov)([_.-].*)?|0_Transformer|[0-9]+", re.IGNORECASE)
"""Folders that hold a model whose companions lie one folder up: ``onnx/`` and ``openvino/`` of Hugging Face repositories,
``0_Transformer/`` of older sentence-transformers ones, the version folders of Triton."""

_NAMES = frozenset({
    "config.json", "config.pbtxt", "genai_config.json", "modules.json", "preprocessor_config.json", "sentence_bert_config.json",
    "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
})  # fmt: skip


def looks_one_up(name: str) -> bool:
    """Whether companions of a model in a folder of this name may lie one folder up."""
    return _SUBFOLDERS.fullmatch(name) is not None


def is_companion(path: Path) -> bool:
    """Whether a file has the name of a companion or a contract."""
    return path.name in _NAMES or path.name.endswith(CONTRACT_SUFFIX)


def places_of(companion: Path) -> Iterator[tuple[Path, str]]:
    """Where the models lie that a companion speaks for.

    Returns:
        Folders, each with the name that the models have without their suffix, or an empty text for any.
    """
    folder = companion.parent
    if companion.name.endswith(CONTRACT_SUFFIX):
        yield folder, companion.name.removesuffix(CONTRACT_SUFFIX)
        return
    folders = [folder]
    if (folder.parent / "modules.json").is_file():
        folders.append(folder.parent)  # from that of a sentence-transformers module, such as 1_Pooling
    for place in dict.fromkeys(folders):
        yield place, ""
        yield from ((inner, "") for inner in sorted(place.iterdir()) if looks_one_up(inner.name) and inner.is_dir())
