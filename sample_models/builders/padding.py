"""What padding reaches although attention is masked as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import torch
import transformers as hf
from torch import Tensor

from builders import causal, companions, export, pooling, surgery, tiny
from builders.clean import BERT, DIRECT, DYNAMO, FROM_ONNX, PAIR, TS14, Tagger
from builders.registry import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEAK = ("padding-leak",)
EMBEDDING = ["sentence_embedding"]


def embedder(target: Path, pool: Callable[[Tensor, Tensor], Tensor]) -> None:
    """DistilBERT under a pooling, through TorchScript."""
    model = pooling.Embedder(tiny.encoder("distilbert"), pool).eval()
    export.torchscript(model, tiny.example(*PAIR), target, outputs=EMBEDDING)


@sample(
    "padding/embedder_unmasked_mean_ov.xml",
    "mean over padded positions too, as IR",
    DIRECT,
    BERT,
    must=("unmasked-pooling",),
    may=LEAK,
)
def _(target: Path) -> None:
    model = pooling.Embedder(tiny.bert(attention="sdpa"), pooling.plain_mean)
    export.ir_from_torch(model, tiny.example(*BERT), target, outputs=EMBEDDING)


@sample(
    "padding/embedder_unmasked_max.onnx", "maximum over padded positions too", TS14, PAIR, must=("unmasked-pooling",), may=LEAK
)
def _(target: Path) -> None:
    embedder(target, pooling.plain_max)


@sample("padding/embedder_unmasked_sum.onnx", "sum over padded positions too", TS14, PAIR, must=("unmasked-pooling",), may=LEAK)
def _(target: Path) -> None:
    embedder(target, pooling.plain_sum)


@sample(
    "padding/embedder_unmasked_attention_dynamo.onnx",
    "attention pooling whose softmax hears padded positions",
    DYNAMO,
    PAIR,
    must=("unmasked-pooling",),
    may=LEAK,
)
def _(target: Path) -> None:
    encoder = tiny.encoder("distilbert", "sdpa")
    model = pooling.Embedder(encoder, pooling.LearnedQuery(16)).eval()
    export.dynamo(model, tiny.example(*PAIR), target, outputs=EMBEDDING)


@sample(
    "padding/embedder_padded_divisor.onnx",
    "masked sum divided by the padded length",
    TS14,
    PAIR,
    must=("padded-length-divisor",),
)
def _(target: Path) -> None:
    embedder(target, pooling.masked_sum_over_length)


@sample(
    "padding/embedder_last_real.onnx", "reads the last real token at sum(mask) - 1: right for right padding only", TS14, PAIR
)
def _(target: Path) -> None:
    embedder(target, pooling.last_real)


class Convolved(torch.nn.Module):
    """A BERT, then a convolution over the sequence before the labels."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.mix = torch.nn.Conv1d(16, 16, 3, padding=1)
        self.labels = torch.nn.Linear(16, 5)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        hidden = self.encoder(input_ids, attention_mask, token_type_ids)[0]
        return self.labels(self.mix(hidden.transpose(1, 2)).transpose(1, 2))


@sample(
    "padding/bert_conv_tagger.onnx",
    "a convolution over the sequence after masked attention: real positions hear padded neighbours",
    TS14,
    BERT,
    must=LEAK,
)
def _(target: Path) -> None:
    export.torchscript(Convolved(tiny.bert()).eval(), tiny.example(*BERT), target, outputs=["logits"])


@sample("padding/bert_conv_tagger_ov.xml", "the same as IR", FROM_ONNX, BERT, must=LEAK)
def _(target: Path) -> None:
    with export.exported(Convolved(tiny.bert()).eval(), tiny.example(*BERT), outputs=["logits"]) as source:
        export.ir_from_onnx(source, target)


@sample(
    "padding/bilstm_tagger.onnx",
    "bidirectional LSTM tagger without lengths: the backward direction starts in the padding",
    TS14,
    {"input_ids": "ids"},
    must=LEAK,
    may=("padding-unsupported",),
)
def _(target: Path) -> None:
    export.torchscript(Tagger(both_ways=True).eval(), tiny.example("input_ids"), target, outputs=["logits"])


class TextCnn(torch.nn.Module):
    """Embedding, convolution, maximum over all positions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(20)
        self.words = torch.nn.Embedding(tiny.VOCAB, 16)
        self.conv = torch.nn.Conv1d(16, 16, 3, padding=1)
        self.labels = torch.nn.Linear(16, 3)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.labels(self.conv(self.words(input_ids).transpose(1, 2)).relu().amax(dim=2))


@sample(
    "padding/text_cnn.onnx",
    "TextCNN: the maximum over positions includes padded ones",
    TS14,
    {"input_ids": "ids"},
    must=("unmasked-pooling",),
    may=(*LEAK, "padding-unsupported"),
)
def _(target: Path) -> None:
    export.torchscript(TextCnn().eval(), tiny.example("input_ids"), target, outputs=["logits"])


class OwnPositions(torch.nn.Module):
    """A GPT-2 that counts positions from 0 by itself, whatever the mask."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


def gpt2(target: Path, side: str) -> None:
    """GPT-2 without ``position_ids``, beside a tokenizer that pads on ``side``."""
    model = tiny.decoder("gpt2")
    with causal.traceable_masks():
        export.torchscript(OwnPositions(model), tiny.example(*PAIR), target, outputs=["logits"])
    companions.config(target.parent, model.config, "GPT2LMHeadModel")
    companions.tokenizer(target.parent, "GPT2Tokenizer", list(PAIR), side=side, pad="<|endoftext|>")


@sample(
    "padding/gpt2_pads_left/model.onnx",
    "GPT-2 counts positions itself, its tokenizer pads left: batched rows differ from single ones",
    TS14,
    PAIR,
    must=("baked-positions",),
    may=("left-padding-unsafe",),
)
def _(target: Path) -> None:
    gpt2(target, "left")


@sample("padding/gpt2_pads_right/model.onnx", "the same graph beside a tokenizer that pads right: nothing is wrong", TS14, PAIR)
def _(target: Path) -> None:
    gpt2(target, "right")


@sample(
    "padding/cls_pads_left/model.onnx",
    "first-token classifier beside a tokenizer that pads left: position 0 is padding",
    TS14,
    BERT,
    must=("left-padding-unsafe",),
)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["logits"])
    companions.config(target.parent, model.config, "BertForSequenceClassification")
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT), side="left")


@sample(
    "padding/bert_dynamic_int8.onnx",
    "dynamic int8: padded positions move the scale of every activation, a little",
    f"{TS14}, ONNX Runtime dynamic int8",
    BERT,
    must=("quantised-scale-leak",),
    may=("batch-mixing", *LEAK),
)
def _(target: Path) -> None:
    with export.exported(tiny.bert(), tiny.example(*BERT), outputs=["last_hidden_state", "pooler_output"]) as source:
        export.save_onnx(surgery.to_int8(onnx.load(source)), target)


@sample(
    "padding/bert_static_without_mask_ov.xml",
    "length fixed at 12 and no mask: a shorter text cannot be told from its padding",
    DIRECT,
    {"input_ids": "ids"},
    must=("padding-unsupported",),
    may=("mask-folded", "mask-missing", "segment-folded", "baked-sequence", "baked-batch", "dropped-input", *LEAK),
)
def _(target: Path) -> None:
    model = export.ir_from_torch(tiny.bert(attention="sdpa"), tiny.example("input_ids", length=12))
    model.reshape({model.input(0).any_name: [1, 12]})
    for port, name in zip(model.outputs, ("last_hidden_state", "pooler_output"), strict=True):
        port.get_tensor().set_names({name})
    export.save_ir(model, target)


@sample(
    "padding/fnet.onnx",
    "FNet: Fourier mixing instead of attention, which takes no mask",
    DYNAMO,
    {"input_ids": "ids", "token_type_ids": "segment"},
    must=LEAK,
    may=("padding-unsupported",),
)
def _(target: Path) -> None:
    names = ("input_ids", "token_type_ids")
    export.dynamo(tiny.encoder("fnet"), tiny.example(*names), target)
