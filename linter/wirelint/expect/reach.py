"""Which models a companion speaks for: the way from a changed config to what has to be checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.contract import SUFFIX
from wirelint.expect.folder import looks_one_up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["is_companion", "places_of"]

_NAMES = frozenset({
    "config.json", "config.pbtxt", "genai_config.json", "modules.json", "preprocessor_config.json", "sentence_bert_config.json",
    "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
})  # fmt: skip


def is_companion(path: Path) -> bool:
    """Whether a file has the name of a companion or a contract."""
    return path.name in _NAMES or path.name.endswith(SUFFIX)


def places_of(companion: Path) -> Iterator[tuple[Path, str]]:
    """Where the models lie that a companion speaks for.

    Returns:
        Folders, each with the name that the models have without their suffix, or an empty text for any.
    """
    folder = companion.parent
    if companion.name.endswith(SUFFIX):
        yield folder, companion.name.removesuffix(SUFFIX)
        return
    folders = [folder]
    if (folder.parent / "modules.json").is_file():
        folders.append(folder.parent)  # from that of a sentence-transformers module, such as 1_Pooling
    for place in dict.fromkeys(folders):
        yield place, ""
        yield from ((inner, "") for inner in sorted(place.iterdir()) if looks_one_up(inner.name) and inner.is_dir())
