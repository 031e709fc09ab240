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
    wants_mask, mask_said = _wants_mask(found)
    wants_segments, segments_said = _wants_segments(found)
    max_length, length_said = _max_length(found)
    pair_task = False if single else config.pair_task if config is not None else None
    return ExpectationFacts(
        sources=found.sources,
        input_names=found.names,
        reads_images=config is not None and config.reads_images,
        pads=tokenizer.side if tokenizer is not None else "",
        pads_said=tokenizer.side_said if tokenizer is not None else "",
        wants_mask=wants_mask,
        mask_said=mask_said,
        wants_segments=wants_segments,
        segments_said=segments_said,
        architecture=config.architecture if config is not None else "",
        model_type=config.model_type if config is not None else "",
        pair_task=pair_task,
        single_text=single,
        task_said=_task_said(found, pair_task),
        pooling=embedder.pooling if embedder is not None else "",
        pad_id=_pad_id(found),
        max_length=max_length,
        length_said=length_said,
        type_vocab_size=config.type_vocab_size if config is not None else None,
    )


def _wants_mask(found: Companions) -> tuple[bool | None, str]:
    """The model type decides first, then the processor of a speech or vision model, then what the tokenizer makes.

    Returns:
        Whether a mask is wanted, and which file says so.
    """
    config, processor = found.config, found.processor
    model_type = config.model_type if config is not None else ""
    if config is not None and model_type in VISIBLE_PADDING:
        return False, f"{config.shown} says model_type: {model_type}, which is trained to see padding"
    if processor is not None:
        if processor.returns_mask is not None:
            return processor.returns_mask, f"{processor.shown} says return_attention_mask: {_word(processor.returns_mask)}"
        if model_type in EMITS_PIXEL_MASK and processor.pads is not None:
            return processor.pads, f"{processor.shown} says do_pad: {_word(processor.pads)}"
    return ("attention_mask" in found.names, _names_said(found)) if found.names else (None, "")


def _word(flag: bool) -> str:
    """As JSON writes it."""
    return "true" if flag else "false"


def _names_said(found: Companions) -> str:
    return f"{found.names_said_by} makes {', '.join(found.names)}"


def _wants_segments(found: Companions) -> tuple[bool | None, str]:
    """Both the tokenizer and the config must want them: many tokenizers make segments for models that have none."""
    config = found.config
    if config is not None and config.type_vocab_size is not None and config.type_vocab_size < 2:
        return False, f"{config.shown} says type_vocab_size: {config.type_vocab_size}"
    return ("token_type_ids" in found.names, _names_said(found)) if found.names else (None, "")


def _task_said(found: Companions, pair_task: bool | None) -> str:
    if found.embedder is not None:
        return f"{found.embedder.shown} makes it an embedder of single texts"
    if found.config is None or not pair_task:
        return ""
    return f"{found.config.shown} says {found.config.architecture or 'labels'}, which is for pairs of texts"


def _pad_id(found: Companions) -> int | None:
    if found.config is not None and found.config.pad_id is not None:
        return found.config.pad_id
    return found.tokenizer.pad_id if found.tokenizer is not None else None


def _max_length(found: Companions) -> tuple[int | None, str]:
    """sentence-transformers cuts at its own length; everybody else at the tokenizer's."""
    if found.embedder is not None and found.embedder.max_length is not None:
        return found.embedder.max_length, f"{found.embedder.length_from} says max_seq_length: {found.embedder.max_length}"
    if found.tokenizer is not None and found.tokenizer.max_length is not None:
        return found.tokenizer.max_length, f"{found.tokenizer.shown} lets {found.tokenizer.max_length} tokens through"
    return None, ""
