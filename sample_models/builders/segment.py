"""Faults of the segment and position tables: what was meant to be fed was fixed when the model was traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import transformers as hf
from torch import Tensor

from builders import companions, export, tiny
from builders.clean import BERT, DIRECT, DYNAMO, PAIR, TS14
from builders.registry import Feeds, sample

if TYPE_CHECKING:
    from pathlib import Path

FOLDED = ("dropped-input", "tokenizer-mismatch")


class SegmentsDefaulted(torch.nn.Module):
    """``token_type_ids`` is left to its default of zeros."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


def pair_classifier(attention: str = "eager") -> torch.nn.Module:
    """BERT for entailment between two sentences."""
    return tiny.bert(hf.BertForSequenceClassification, attention, num_labels=3)


@sample(
    "segment/bert_pair_segment_folded/model.onnx",
    "pair classifier exported without token_type_ids, its tokenizer makes them",
    TS14,
    PAIR,
    must=("segment-folded",),
    may=FOLDED,
)
def _(target: Path) -> None:
    model = pair_classifier()
    export.torchscript(model, tiny.example(*PAIR), target, outputs=["logits"])
    companions.config(target.parent, model.config, "BertForSequenceClassification")
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT))


@sample(
    "segment/bert_segment_folded_dynamo.onnx",
    "the same through the dynamo exporter, with nothing beside it",
    DYNAMO,
    PAIR,
    must=("segment-folded",),
    may=FOLDED,
)
def _(target: Path) -> None:
    export.dynamo(SegmentsDefaulted(pair_classifier("sdpa")), tiny.example(*PAIR), target, outputs=["logits"])


@sample("segment/bert_segment_folded_ov.xml", "the same as IR", DIRECT, PAIR, must=("segment-folded",), may=FOLDED)
def _(target: Path) -> None:
    export.ir_from_torch(SegmentsDefaulted(pair_classifier()), tiny.example(*PAIR), target, outputs=["logits"])


class PositionsTraced(torch.nn.Module):
    """Positions from the Python length of the example: a constant range in the graph."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        positions = torch.arange(int(input_ids.shape[1])).unsqueeze(0)
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, position_ids=positions
        )[0]


@sample(
    "segment/bert_positions_baked.onnx",
    "position ids are a constant range of the traced length; the length is declared symbolic",
    TS14,
    BERT,
    must=("baked-sequence",),
    may=("baked-positions", "axes-disagree"),
    feeds=Feeds(length=7),
)
def _(target: Path) -> None:
    export.torchscript(PositionsTraced(tiny.bert()), tiny.example(*BERT), target, outputs=["last_hidden_state"])


@sample(
    "segment/bert_position_table_short/model.onnx",
    "40 rows in the position table beside a tokenizer that truncates at 64",
    TS14,
    BERT,
    must=("position-table-short",),
    may=("tokenizer-mismatch",),
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3, max_position_embeddings=40)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["logits"])
    companions.config(target.parent, model.config, "BertForSequenceClassification")
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT), longest=64)
