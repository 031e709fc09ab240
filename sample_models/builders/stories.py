"""The four models that wirelint was made for. None of them raises an error when it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import transformers as hf
from torch import Tensor

from builders import companions, export, masks, pooling, tiny
from builders.clean import BERT, FROM_ONNX, PAIR, TS14
from builders.registry import sample

if TYPE_CHECKING:
    from pathlib import Path


@sample(
    "stories/reranker_ov.xml",
    "BERT reranker whose mask the exporter called after its first consumer: callers who filter by name lose it",
    FROM_ONNX,
    {"input_ids": "ids", "onnx::Unsqueeze_1": "mask", "token_type_ids": "segment"},
    must=("renamed-input",),
    may=("unnamed-input",),
)
def _(target: Path) -> None:
    wrapped = masks.InlineBias(tiny.bert(hf.BertForSequenceClassification, num_labels=1))
    traced = ["input_ids", "onnx::Unsqueeze_1", "input.3"]
    axes = dict.fromkeys(traced, export.BATCH_SEQUENCE)
    arguments = tuple(tiny.example(*BERT).values())
    with export.exported(wrapped, arguments, names=["input_ids"], outputs=["logits"], axes=axes) as source:
        model = export.ir_from_onnx(source)
    segments = model.input("input.3")
    segments.get_tensor().set_names({"token_type_ids"})
    segments.get_node().set_friendly_name("token_type_ids")
    export.save_ir(model, target)


@sample(
    "stories/qa/qa_without_token_type_ids.onnx",
    "question answering exported without token_type_ids: question and passage look alike",
    TS14,
    PAIR,
    must=("segment-folded",),
    may=("dropped-input", "tokenizer-mismatch"),
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForQuestionAnswering, "sdpa")
    export.torchscript(model, tiny.example(*PAIR), target, outputs=["start_logits", "end_logits"])
    companions.config(target.parent, model.config, "BertForQuestionAnswering")
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT))


class Unpadded(torch.nn.Module):
    """An export script that called the model with ids and segments: the model fills the mask with ones."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, token_type_ids=token_type_ids)[0]


@sample(
    "stories/classifier_mask_folded.onnx",
    "classifier exported without attention_mask: the mask became a constant of ones",
    TS14,
    {"input_ids": "ids", "token_type_ids": "segment"},
    must=("mask-folded",),
    may=("mask-missing", "dropped-input", "padding-leak"),
)
def _(target: Path) -> None:
    model = Unpadded(tiny.bert(hf.BertForSequenceClassification, num_labels=3))
    export.torchscript(model, tiny.example("input_ids", "token_type_ids"), target, outputs=["logits"])


@sample(
    "stories/embedder_unmasked_mean.onnx",
    "sentence embedder whose attention is masked and whose mean runs over padding too",
    TS14,
    BERT,
    must=("unmasked-pooling",),
    may=("padding-leak",),
)
def _(target: Path) -> None:
    model = pooling.Embedder(tiny.bert(), pooling.plain_mean)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["sentence_embedding"])
