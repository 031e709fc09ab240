"""``config.json`` of transformers: what the model is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from wirelint.expect.families import READS_IMAGES, segment_rows
from wirelint.expect.folder import Folder, flag, text, texts, whole

__all__ = ["ModelConfig", "read_config"]

_PAIR = re.compile(r"(QuestionAnswering|MultipleChoice|NextSentencePrediction|ForSequenceClassification)$")
_PAIR_LABELS = frozenset({
    "entailment", "contradiction", "not_entailment", "paraphrase", "equivalent", "not_equivalent", "duplicate", "is_duplicate",
    "not_duplicate", "isnext", "notnext", "relevant",
})  # fmt: skip
_GENERATES = re.compile(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration|ForSpeechSeq2Seq|DoubleHeadsModel)$")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the config says.

    Attributes:
        shown: the file, as messages call it.
        architecture: class name, such as ``BertForQuestionAnswering``.
        model_type: such as ``bert``.
        type_vocab_size: rows of the segment table; None when it does not say and the model type does not tell.
        pad_id: ``pad_token_id``, or None.
        vocab_size: rows of the token table, or None.
        pair_task: two texts per row are usual; None when it does not say.
        reads_images: its encoder reads images, and its decoder or text tower attends to their patches.
        generates: it makes text token by token, so that a runtime feeds it rather than a tokenizer.
    """

    shown: str
    architecture: str = ""
    model_type: str = ""
    type_vocab_size: int | None = None
    pad_id: int | None = None
    vocab_size: int | None = None
    pair_task: bool | None = None
    reads_images: bool = False
    generates: bool = False


def read_config(folder: Folder) -> ModelConfig | None:
    """What ``config.json`` says, or None when there is none that describes a model."""
    held = folder.mapping("config.json")
    architecture = next(iter(texts(held.get("architectures"))), "")
    model_type = text(held.get("model_type"))
    if not architecture and not model_type:
        return None
    pad = whole(held.get("pad_token_id"))
    rows = whole(held.get("type_vocab_size"))
    return ModelConfig(
        shown=folder.called("config.json"),
        architecture=architecture,
        model_type=model_type,
        type_vocab_size=rows if rows is not None else segment_rows(model_type) if model_type else None,
        pad_id=pad if pad is not None and pad >= 0 else None,
        vocab_size=whole(held.get("vocab_size")),
        pair_task=_pair_task(held, architecture),
        reads_images=model_type in READS_IMAGES,
        generates=bool(_GENERATES.search(architecture)) or flag(held.get("is_encoder_decoder")) is True,
    )


def _pair_task(held: dict[str, Any], architecture: str) -> bool | None:
    """Question answering, multiple choice and next-sentence models take pairs, and so do classifiers with one score
    (rerankers) or with labels that relate two texts (inference, paraphrase).

    ``sentence_transformers`` in a classifier's config is the mark of a CrossEncoder.  Labels count without an architecture too.
    """
    match = _PAIR.search(architecture)
    if match is None and architecture:
        return None
    if match is not None and match.group(1) != "ForSequenceClassification":
        return True
    labels = held.get("id2label")
    names = {name.lower() for name in labels.values() if isinstance(name, str)} if isinstance(labels, dict) else set()
    single = len(labels) == 1 if isinstance(labels, dict) else whole(held.get("num_labels")) == 1
    return True if single or names & _PAIR_LABELS or "sentence_transformers" in held else None
