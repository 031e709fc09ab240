"""Everything that lies beside a model, read once, and the expectations that it adds up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.expect.config import ModelConfig, read_config
from wirelint.expect.embedder import Embedder, read_embedder
from wirelint.expect.families import EMITS_PIXEL_MASK, VISIBLE_PADDING, names_of_model_type
from wirelint.expect.folder import Folder
from wirelint.expect.genai import Genai, read_genai
from wirelint.expect.processor import Processor, read_processor
from wirelint.expect.tokenizer import Tokenizer, read_tokenizer
from wirelint.expect.triton import Triton, read_triton
from wirelint.facts import ExpectationFacts

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Companions", "expectations", "read_companions"]


@dataclass(frozen=True, slots=True)
class Companions:
    """The companions of a model; None for those that are not there.

    Attributes:
        sources: files that were read, as seen from the model's folder.
        faults: files that could not be read, each with the reason.
    """

    tokenizer: Tokenizer | None = None
    config: ModelConfig | None = None
    embedder: Embedder | None = None
    processor: Processor | None = None
    triton: Triton | None = None
    genai: Genai | None = None
    sources: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that the tokenizer makes; empty when nothing says."""
        if self.tokenizer is None:
            return ()
        if self.tokenizer.names or self.tokenizer.tokenizer_class or self.config is None:
            return self.tokenizer.names
        return names_of_model_type(self.config.model_type)

    @property
    def names_said_by(self) -> str:
        """Which companion says so, and how."""
        if self.tokenizer is not None and self.tokenizer.names:
            return f"{self.tokenizer.shown} ({self.tokenizer.names_from})"
        return f"{self.config.shown} (model_type {self.config.model_type})" if self.config is not None else ""


def read_companions(path: Path) -> Companions:
    """Reads the companions of a model file; never raises for what is in them."""
    folder = Folder(path)
    tokenizer = read_tokenizer(folder)
    config = read_config(folder)
    embedder = read_embedder(folder)
    processor = read_processor(folder)
    triton = read_triton(folder)
    genai = read_genai(folder)
    return Companions(
        tokenizer, config, embedder, processor, triton, genai, tuple(dict.fromkeys(folder.sources)), tuple(folder.faults)
    )


def expectations(found: Companions) -> ExpectationFacts:
    """What the companions say, in the words that rules use."""
    tokenizer, config, embedder = found.tokenizer, found.config, found.embedder
    single = True if embedder is not None else None
    return ExpectationFacts(
        sources=found.sources,
        input_names=found.names,
        pads=tokenizer.side if tokenizer is not None else "",
        wants_mask=_wants_mask(found),
        wants_segments=_wants_segments(found),
        architecture=config.architecture if config is not None else "",
        model_type=config.model_type if config is not None else "",
        pair_task=False if single else config.pair_task if config is not None else None,
        single_text=single,
        pooling=embedder.pooling if embedder is not None else "",
        pad_id=_pad_id(found),
        max_length=_max_length(found),
        type_vocab_size=config.type_vocab_size if config is not None else None,
    )


def _wants_mask(found: Companions) -> bool | None:
    """The model type decides first, then the processor of a speech or vision model, then what the tokenizer makes."""
    model_type = found.config.model_type if found.config is not None else ""
    if model_type in VISIBLE_PADDING:
        return False
    if found.processor is not None:
        if found.processor.returns_mask is not None:
            return found.processor.returns_mask
        if model_type in EMITS_PIXEL_MASK and found.processor.pads is not None:
            return found.processor.pads
    return "attention_mask" in found.names if found.names else None


def _wants_segments(found: Companions) -> bool | None:
    """Both the tokenizer and the config must want them: many tokenizers make segments for models that have none."""
    rows = found.config.type_vocab_size if found.config is not None else None
    if rows is not None and rows < 2:
        return False
    return "token_type_ids" in found.names if found.names else None


def _pad_id(found: Companions) -> int | None:
    if found.config is not None and found.config.pad_id is not None:
        return found.config.pad_id
    return found.tokenizer.pad_id if found.tokenizer is not None else None


def _max_length(found: Companions) -> int | None:
    """sentence-transformers cuts at its own length; everybody else at the tokenizer's."""
    if found.embedder is not None and found.embedder.max_length is not None:
        return found.embedder.max_length
    return found.tokenizer.max_length if found.tokenizer is not None else None
