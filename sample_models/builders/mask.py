"""Faults of the attention mask between its input and the softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
import transformers as hf
from torch import Tensor

from builders import export, masks, surgery, tiny
from builders.clean import BERT, DIRECT, DYNAMO, TS14, TS17
from builders.registry import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HIDDEN = ["last_hidden_state"]
NO_MASK = {"input_ids": "ids", "token_type_ids": "segment"}
LEAK = ("padding-leak",)


def biased(target: Path, bias: Callable[[Tensor], Tensor], layers: tuple[int, ...] = (0, 1), *, head: bool = False) -> None:
    """A BERT under a bias of its wrapper's own making, through TorchScript."""
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3) if head else tiny.bert()
    wrapped = masks.BiasedBert(model, bias, layers)
    export.torchscript(wrapped, tiny.example(*BERT), target, outputs=["logits"] if head else HIDDEN)


def biased_ir(target: Path, bias: Callable[[Tensor], Tensor], layers: tuple[int, ...] = (0, 1)) -> None:
    """The same, converted from PyTorch to IR, attention as one operator."""
    wrapped = masks.BiasedBert(tiny.bert(attention="sdpa"), bias, layers)
    export.ir_from_torch(wrapped, tiny.example(*BERT), target, outputs=HIDDEN)


class MaskFixed(torch.nn.Module):
    """The mask is made inside, of ones, as for a batch without padding."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        mask = torch.ones_like(input_ids)
        return self.model(input_ids=input_ids, attention_mask=mask, token_type_ids=token_type_ids)[0]


@sample(
    "mask/bert_mask_folded_ov.xml",
    "BERT converted with a mask of ones made inside the wrapper",
    DIRECT,
    NO_MASK,
    must=("mask-folded",),
    may=("mask-missing", "dropped-input", *LEAK),
)
def _(target: Path) -> None:
    export.ir_from_torch(MaskFixed(tiny.bert()), tiny.example(*NO_MASK), target, outputs=HIDDEN)


class TrimmedMask(torch.nn.Module):
    """A slice of a registered mask of ones, so that the length stays free."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mask", torch.ones(1, 64, dtype=torch.long))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        mask = self.mask[:, : input_ids.shape[1]].expand(input_ids.shape[0], -1)
        return self.model(input_ids=input_ids, attention_mask=mask, token_type_ids=token_type_ids)[0]


@sample(
    "mask/bert_mask_folded_dynamo.onnx",
    "BERT whose mask is a slice of a buffer of ones",
    DYNAMO,
    NO_MASK,
    must=("mask-folded",),
    may=("mask-missing", "dropped-input", *LEAK),
)
def _(target: Path) -> None:
    export.dynamo(TrimmedMask(tiny.bert(attention="sdpa")), tiny.example(*NO_MASK), target, outputs=HIDDEN)


class Unmasked(torch.nn.Module):
    """Embeddings and encoder layers called without any bias."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.bert = model

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        return self.bert.encoder(self.bert.embeddings(input_ids, token_type_ids))[0]


@sample(
    "mask/bert_mask_missing.onnx",
    "BERT whose attention takes no bias at all",
    TS14,
    NO_MASK,
    must=("mask-missing",),
    may=("dropped-input", *LEAK),
)
def _(target: Path) -> None:
    export.torchscript(Unmasked(tiny.bert()), tiny.example(*NO_MASK), target, outputs=HIDDEN)


@sample(
    "mask/bert_mask_missing_ov.xml",
    "the same as IR: ScaledDotProductAttention without its mask operand",
    DIRECT,
    NO_MASK,
    must=("mask-missing",),
    may=("dropped-input", *LEAK),
)
def _(target: Path) -> None:
    export.ir_from_torch(Unmasked(tiny.bert(attention="sdpa")), tiny.example(*NO_MASK), target, outputs=HIDDEN)


class MaskUnread(torch.nn.Module):
    """The mask is an argument that nobody reads."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = Unmasked(model)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:  # noqa: ARG002
        return self.model(input_ids, token_type_ids)


@sample(
    "mask/bert_mask_unread_dynamo.onnx",
    "the dynamo exporter keeps a mask that nothing reads",
    DYNAMO,
    BERT,
    must=("mask-unused",),
    may=("unused-input", "mask-missing", *LEAK),
)
def _(target: Path) -> None:
    export.dynamo(MaskUnread(tiny.bert()), tiny.example(*BERT), target, outputs=HIDDEN)


class MaskTimesIds(torch.nn.Module):
    """The mask zeroes the padded ids and never comes near the attention scores."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = Unmasked(model)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        return self.model(input_ids * attention_mask, token_type_ids)


@sample(
    "mask/bert_mask_times_ids.onnx",
    "the mask is multiplied into the ids and never reaches attention",
    TS14,
    BERT,
    must=("mask-unused",),
    may=("mask-missing", *LEAK),
)
def _(target: Path) -> None:
    export.torchscript(MaskTimesIds(tiny.bert()), tiny.example(*BERT), target, outputs=HIDDEN)


@sample(
    "mask/bert_mask_partial.onnx", "the second layer is called without the mask", TS14, BERT, must=("mask-partial",), may=LEAK
)
def _(target: Path) -> None:
    biased(target, masks.regular, layers=(0,))


@sample(
    "mask/bert_mask_partial_ov.xml",
    "the first layer is called without the mask",
    DIRECT,
    BERT,
    must=("mask-partial",),
    may=LEAK,
)
def _(target: Path) -> None:
    biased_ir(target, masks.regular, layers=(1,))


@sample(
    "mask/bert_mask_inverted.onnx",
    "the `1 -` before the fill was forgotten: real positions are masked, padded ones kept",
    TS14,
    BERT,
    must=("mask-inverted",),
    may=("all-masked-row", *LEAK),
)
def _(target: Path) -> None:
    biased(target, masks.inverted, head=True)


@sample(
    "mask/bert_mask_inverted_ov.xml",
    "the same inversion in IR",
    DIRECT,
    BERT,
    must=("mask-inverted",),
    may=("all-masked-row", *LEAK),
)
def _(target: Path) -> None:
    biased_ir(target, masks.inverted)


@sample(
    "mask/bert_mask_noop_zero.onnx",
    "`>= 0` in place of `> 0`: the bias is zero whatever the mask",
    TS14,
    BERT,
    must=("mask-noop",),
    may=("mask-unused", "mask-folded", *LEAK),
)
def _(target: Path) -> None:
    biased(target, masks.without_effect)


@sample(
    "mask/bert_mask_noop_constant.onnx",
    "one bias per row, the same for all keys: softmax ignores it",
    TS14,
    BERT,
    must=("mask-noop",),
    may=("mask-unused", "mask-wrong-axis", *LEAK),
)
def _(target: Path) -> None:
    biased(target, masks.constant_along_keys)


@sample("mask/bert_mask_weak.onnx", "a fill of -5, which softmax still hears", TS14, BERT, must=("mask-weak",), may=LEAK)
def _(target: Path) -> None:
    biased(target, masks.weak)


@sample(
    "mask/bert_mask_wrong_axis.onnx",
    "the mask is laid along the query axis",
    TS14,
    BERT,
    must=("mask-wrong-axis",),
    may=("mask-noop", "all-masked-row", "mask-missing", *LEAK),
)
def _(target: Path) -> None:
    biased(target, masks.queries)


@sample(
    "mask/bert_mask_not_finite.onnx",
    "(1 - mask) * -inf is NaN at every kept position",
    TS14,
    BERT,
    must=("mask-not-finite",),
    may=("all-masked-row", *LEAK),
)
def _(target: Path) -> None:
    biased(target, masks.infinite_product)


@sample(
    "mask/bert_fp16_naive.onnx",
    "cast to fp16 without a clamp: the fp32 minimum becomes -inf",
    f"{TS14}, cast to fp16",
    BERT,
    must=("mask-not-finite",),
    may=("all-masked-row", *LEAK),
)
def _(target: Path) -> None:
    with export.exported(masks.BiasedBert(tiny.bert()), tiny.example(*BERT), outputs=HIDDEN) as source:
        export.save_onnx(surgery.cast_to_fp16(onnx.load(source)), target)


@sample(
    "mask/bert_all_masked_row.onnx",
    "filled with -inf: right, but a row that is nothing but padding is NaN",
    TS14,
    BERT,
    must=("all-masked-row",),
    may=("mask-not-finite",),
)
def _(target: Path) -> None:
    biased(target, masks.infinite)


@sample(
    "mask/bert_mask_quantised.onnx",
    "static quantisation put its quantisers on the masked scores: the sentinel sets the scale",
    f"{TS17}, ONNX Runtime QDQ",
    BERT,
    must=("mask-quantised",),
    may=("mask-weak", "mask-noop", "mask-not-finite", "quantised-scale-leak", *LEAK),
)
def _(target: Path) -> None:
    example = tiny.example(*BERT)
    batches = [{name: value.numpy().astype(np.int64) for name, value in example.items()}]
    with export.exported(masks.BiasedBert(tiny.bert()), example, outputs=HIDDEN, opset=17) as source:
        export.save_onnx(surgery.to_qdq(onnx.load(source), batches, ["Add", "MatMul", "Softmax"]), target)
