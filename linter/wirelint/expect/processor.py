"""``preprocessor_config.json``: what a feature extractor or image processor makes."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.expect.folder import Folder, flag, text

__all__ = ["Processor", "read_processor"]


@dataclass(frozen=True, slots=True)
class Processor:
    """What the processor's config says.

    Attributes:
        shown: the file, as messages call it.
        kind: class name of the feature extractor or image processor, or empty.
        returns_mask: ``return_attention_mask`` of a speech model, or None.
        pads: ``do_pad`` of an image processor, or None.
    """

    shown: str
    kind: str = ""
    returns_mask: bool | None = None
    pads: bool | None = None


def read_processor(folder: Folder) -> Processor | None:
    """What ``preprocessor_config.json`` says, or None when there is none."""
    held = folder.mapping("preprocessor_config.json")
    if not held:
        return None
    kind = text(held.get("feature_extractor_type")) or text(held.get("image_processor_type"))
    return Processor(
        folder.called("preprocessor_config.json"), kind, flag(held.get("return_attention_mask")), flag(held.get("do_pad"))
    )
