"""Faults of shape: what was traced at one size and declared free, and rows that hear each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import torch
import transformers as hf
from torch import Tensor

from builders import export, tiny
from builders.clean import BERT, DIRECT, FROM_ONNX, TS14, KeyPadding
from builders.registry import Feeds, sample

if TYPE_CHECKING:
    from pathlib import Path

KEY_PADDING = {"input_ids": "ids", "src_key_padding_mask": "mask"}


def key_padding_example() -> dict[str, Tensor]:
    """Ids and a mask that is True at padded positions."""
    ids, mask = tiny.example("input_ids", "attention_mask").values()
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator has no ONNX form
    return {"input_ids": ids, "src_key_padding_mask": mask == 0}


@sample(
    "shape/attention_baked_sequence.onnx",
    "nn.MultiheadAttention through TorchScript: its Reshape targets hold the traced length",
    TS14,
    KEY_PADDING,
    must=("baked-sequence",),
    may=("all-masked-row",),
    feeds=Feeds(length=7, mask_keeps=0),
)
def _(target: Path) -> None:
    export.torchscript(KeyPadding().eval(), key_padding_example(), target, outputs=["last_hidden_state"])


class Heads(torch.nn.Module):
    """A BERT whose states are split into heads with the Python length of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = tiny.bert()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        hidden = self.bert(input_ids, attention_mask, token_type_ids)[0]
        return hidden.reshape(-1, int(hidden.shape[1]), 2, 8)


@sample(
    "shape/bert_baked_sequence.onnx",
    "a Reshape holds the traced length of 7, the inputs' length is declared free",
    TS14,
    BERT,
    must=("baked-sequence",),
    feeds=Feeds(length=7),
)
def _(target: Path) -> None:
    export.torchscript(Heads(), tiny.example(*BERT), target, outputs=["heads"])


class DomainVector(torch.nn.Module):
    """A BERT that adds a learned vector to every row, expanded to the Python batch size of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = tiny.bert()
        self.domain = torch.nn.Parameter(torch.linspace(-1, 1, 16))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        hidden = self.bert(input_ids, attention_mask, token_type_ids)[0]
        rows = self.domain.unsqueeze(0).repeat(int(input_ids.shape[0]), 1)
        return hidden + rows.unsqueeze(1)


@sample(
    "shape/bert_baked_batch.onnx",
    "a constant holds one row for each of the two traced, the inputs' batch is declared free",
    TS14,
    BERT,
    must=("baked-batch",),
    feeds=Feeds(rows=2),
)
def _(target: Path) -> None:
    export.torchscript(DomainVector(), tiny.example(*BERT), target, outputs=["last_hidden_state"])


@sample("shape/bert_baked_batch_ov.xml", "the same as IR", FROM_ONNX, BERT, must=("baked-batch",), feeds=Feeds(rows=2))
def _(target: Path) -> None:
    with export.exported(DomainVector(), tiny.example(*BERT), outputs=["last_hidden_state"]) as source:
        export.ir_from_onnx(source, target)


@sample(
    "shape/bert_segment_axis_fixed.onnx",
    "ids and mask have a symbolic length, the segments a fixed one",
    TS14,
    BERT,
    must=("axes-disagree",),
    may=("baked-sequence",),
    feeds=Feeds(length=7),
)
def _(target: Path) -> None:
    axes = {"input_ids": export.BATCH_SEQUENCE, "attention_mask": export.BATCH_SEQUENCE, "token_type_ids": {0: "batch"}}
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["logits"], axes=axes)


class SequenceFirst(torch.nn.Module):
    """``nn.TransformerEncoder`` left at ``batch_first=False`` and fed batches first: it attends from row to row."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(20)
        self.words = torch.nn.Embedding(tiny.VOCAB, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.encoder(self.words(input_ids))


MIXING = ("padding-leak", "mask-missing", "padding-unsupported", "baked-batch", "baked-sequence")


@sample(
    "shape/batch_first_forgotten_ov.xml",
    "nn.TransformerEncoder without batch_first: attention runs over the rows of the batch",
    DIRECT,
    {"input_ids": "ids"},
    must=("batch-mixing",),
    may=MIXING,
)
def _(target: Path) -> None:
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator has no counterpart
    export.ir_from_torch(SequenceFirst().eval(), tiny.example("input_ids"), target, outputs=["last_hidden_state"])


class Normalised(torch.nn.Module):
    """Scores made relative to the batch's mean, left over from training."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        logits = self.model(input_ids, attention_mask, token_type_ids)[0]
        return logits - logits.mean(dim=0, keepdim=True)


@sample(
    "shape/bert_batch_mean.onnx",
    "scores relative to the batch's mean: a row's score depends on its company",
    TS14,
    BERT,
    must=("batch-mixing",),
)
def _(target: Path) -> None:
    export.torchscript(Normalised(), tiny.example(*BERT), target, outputs=["logits"])


@sample(
    "shape/bert_static_contradiction.onnx",
    "ids fixed at length 12, mask fixed at 16: no input fits",
    f"{TS14}, shape edited",
    BERT,
    must=("axes-disagree",),
    may=("invalid-graph", "baked-sequence", "baked-batch"),
    feeds=None,
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    with export.exported(model, tiny.example(*BERT), outputs=["logits"]) as source:
        written = onnx.load(source)
    for port, length in zip(written.graph.input, (12, 16, 12), strict=True):
        port.type.tensor_type.shape.dim[1].dim_value = length
    export.save_onnx(written, target)
