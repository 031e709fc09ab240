"""Faults of the signature: names, dtypes, order, defaults, inputs that nothing reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
import transformers as hf
from torch import Tensor

from builders import companions, export, masks, surgery, tiny
from builders.clean import (
    BART,
    BERT,
    CROSS,
    CROSS_AXES,
    DIRECT,
    DYNAMO,
    FROM_ONNX,
    PAIR,
    RIGHT,
    ROBERTA,
    TS14,
    bart_decoder,
    cross_example,
    t5_decoder,
)
from builders.registry import Feeds, sample

if TYPE_CHECKING:
    from pathlib import Path

NAMELESS = {"input.1": "ids", "onnx::Unsqueeze_1": "mask", "input.3": "segment"}
EXCHANGED = {"input_ids": "ids", "token_type_ids": "mask", "attention_mask": "segment"}
HIDDEN = ["last_hidden_state"]


def classifier() -> torch.nn.Module:
    """The BERT classifier that most of these are made from."""
    return tiny.bert(hf.BertForSequenceClassification, num_labels=3)


@sample(
    "inputs/bert_names_omitted.onnx",
    "exported without input_names and so without dynamic axes: each input is called after its first consumer",
    TS14,
    NAMELESS,
    must=("renamed-input",),
    may=("unnamed-input",),
)
def _(target: Path) -> None:
    arguments = tuple(tiny.example(*BERT).values())
    export.torchscript(masks.InlineBias(tiny.bert()), arguments, target, names=[], axes={}, outputs=HIDDEN)


@sample(
    "inputs/roberta_third_name_omitted.onnx",
    "two names given for three arguments: the third gets one from the exporter",
    TS14,
    {**PAIR, "input.1": "segment"},
    must=("unnamed-input",),
    may=("renamed-input",),
    feeds=ROBERTA,
)
def _(target: Path) -> None:
    axes = dict.fromkeys([*PAIR, "input.1"], export.BATCH_SEQUENCE)
    export.torchscript(tiny.encoder("roberta"), tiny.example(*BERT), target, names=list(PAIR), axes=axes)


@sample(
    "inputs/bert_mask_renamed.onnx",
    "a merge script put a counter in place of the mask's name",
    f"{TS14}, inputs renamed",
    {"input_ids": "ids", "arg_17": "mask", "token_type_ids": "segment"},
    must=("renamed-input",),
    may=("unnamed-input",),
)
def _(target: Path) -> None:
    with export.exported(classifier(), tiny.example(*BERT), outputs=["logits"]) as source:
        export.save_onnx(surgery.rename_inputs(onnx.load(source), {"attention_mask": "arg_17"}), target)


@sample(
    "inputs/bert_names_exchanged.onnx",
    "names in tokenizer order, arguments in forward order: mask and segments exchanged",
    TS14,
    EXCHANGED,
    must=("misleading-input-name",),
    may=("input-order",),
)
def _(target: Path) -> None:
    export.torchscript(classifier(), tiny.example(*BERT), target, names=list(EXCHANGED), outputs=["logits"])


@sample(
    "inputs/bert_names_exchanged_ov.xml",
    "the same exchange, carried into the IR",
    FROM_ONNX,
    EXCHANGED,
    must=("misleading-input-name",),
    may=("input-order",),
)
def _(target: Path) -> None:
    with export.exported(classifier(), tiny.example(*BERT), names=list(EXCHANGED), outputs=["logits"]) as source:
        export.ir_from_onnx(source, target)


@sample(
    "inputs/bert_ports_without_names_ov.xml",
    "IR whose parameters carry no tensor name: only feeding by index works",
    DIRECT,
    {"#0": "ids", "#1": "mask", "#2": "segment"},
    must=("unnamed-input",),
    may=("renamed-input",),
)
def _(target: Path) -> None:
    model = export.ir_from_torch(classifier(), tiny.example(*BERT), outputs=["logits"])
    for port, parameter in zip(model.inputs, model.get_parameters(), strict=True):
        port.get_tensor().set_names(set())
        parameter.set_friendly_name(f"Parameter_{model.get_parameter_index(parameter)}")
    export.save_ir(model, target)


class CommonSignature(torch.nn.Module):
    """Every encoder of a service takes the same three arguments, read or not."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:  # noqa: ARG002
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0]


@sample(
    "inputs/distilbert_segments_unused.onnx",
    "DistilBERT behind a common signature: nothing reads token_type_ids",
    DYNAMO,
    BERT,
    must=("unused-input",),
)
def _(target: Path) -> None:
    export.dynamo(CommonSignature(tiny.encoder("distilbert", "sdpa")), tiny.example(*BERT), target, outputs=HIDDEN)


class LengthsIgnored(torch.nn.Module):
    """A bidirectional tagger whose lengths were given to ``pack_padded_sequence``, which exports as nothing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(20)
        self.words = torch.nn.Embedding(tiny.VOCAB, 16)
        self.gru = torch.nn.GRU(16, 8, batch_first=True, bidirectional=True)
        self.labels = torch.nn.Linear(16, 5)

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:  # noqa: ARG002
        return self.labels(self.gru(self.words(input_ids))[0])


@sample(
    "inputs/gru_lengths_unused.onnx",
    "bidirectional GRU tagger with a lengths input that nothing reads",
    f"{TS14}, input restored",
    {"input_ids": "ids", "lengths": "lengths"},
    must=("unused-input",),
    may=("padding-leak",),
)
def _(target: Path) -> None:
    example = {**tiny.example("input_ids"), "lengths": torch.tensor([7, 5])}
    axes = {"input_ids": export.BATCH_SEQUENCE, "lengths": {0: "batch"}}
    with export.exported(LengthsIgnored().eval(), example, outputs=["logits"], axes=axes) as source:
        model = onnx.load(source)
    # The exporter pruned it, and the service that sends it had it put back.
    model.graph.input.append(onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT64, ["batch"]))
    export.save_onnx(model, target)


@sample(
    "inputs/bert_inputs_sorted.onnx",
    "a clean-up step listed the inputs alphabetically: the mask comes first",
    f"{TS14}, inputs sorted",
    {"attention_mask": "mask", "input_ids": "ids", "token_type_ids": "segment"},
    must=("input-order",),
)
def _(target: Path) -> None:
    with export.exported(classifier(), tiny.example(*BERT), outputs=["logits"]) as source:
        export.save_onnx(surgery.sort_inputs(onnx.load(source)), target)


@sample("inputs/bert_float_mask.onnx", "traced with a float mask beside integer ids", TS14, BERT, must=("input-dtype",))
def _(target: Path) -> None:
    example = tiny.example(*BERT)
    example["attention_mask"] = example["attention_mask"].float()
    export.torchscript(classifier(), example, target, outputs=["logits"])


class OneToken(torch.nn.Module):
    """Logits of the token at a place that the caller gives as a Python number."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, place: Tensor) -> Tensor:
        return self.model(input_ids, attention_mask, token_type_ids)[0][:, place]


@sample(
    "inputs/bert_number_traced.onnx",
    "an argument that was meant to be a setting became an input, which the exporter called after its first consumer",
    TS14,
    {**BERT, "onnx::Gather_3": "other"},
    must=("unnamed-input",),
)
def _(target: Path) -> None:
    model = OneToken(tiny.bert(hf.BertForTokenClassification, num_labels=3))
    arguments = (*tiny.example(*BERT).values(), torch.tensor(0))
    export.torchscript(model, arguments, target, names=list(BERT), outputs=["logits"])


@sample(
    "inputs/bert_mask_int32/model.onnx",
    "traced with a 32-bit mask beside 64-bit ids, while one tokenizer makes both",
    TS14,
    BERT,
    must=("input-dtype",),
)
def _(target: Path) -> None:
    example = tiny.example(*BERT)
    example["attention_mask"] = example["attention_mask"].int()
    export.torchscript(classifier(), example, target, outputs=["logits"])
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT))


@sample(
    "inputs/bert_mask_default.onnx",
    "the mask is a graph input and an initializer of ones: callers may leave it out",
    f"{TS14}, initializer added",
    {"input_ids": "ids", "token_type_ids": "segment", "attention_mask": "mask"},
    must=("default-valued-input",),
)
def _(target: Path) -> None:
    with export.exported(classifier(), tiny.example(*BERT), outputs=["logits"]) as source:
        model = onnx.load(source)
    model.graph.input.append(model.graph.input.pop(1))
    export.save_onnx(surgery.give_default(model, "attention_mask", np.ones((1, 1), dtype=np.int64)), target)


class Frozen(torch.nn.Module):
    """Scores that were computed once, when the module was made."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        with torch.no_grad():
            self.register_buffer("scores", model(**tiny.example(*BERT))[0])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:  # noqa: ARG002
        return self.scores + 0


@sample(
    "inputs/constant_output.onnx",
    "the output is a constant; the inputs are declared and nothing reads them",
    DYNAMO,
    dict.fromkeys(BERT, "other"),
    must=("constant-output",),
    may=("unused-input", "mask-unused", "baked-batch"),
)
def _(target: Path) -> None:
    export.dynamo(Frozen(classifier()), tiny.example(*BERT), target, outputs=["logits"])


class DecoderWithoutMask(torch.nn.Module):
    """The decoder step as some export scripts write it: the encoder's mask is left to its default."""

    def __init__(self, step: torch.nn.Module) -> None:
        super().__init__()
        self.step = step

    def forward(self, input_ids: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        return self.step(input_ids, None, encoder_hidden_states)


CROSS_UNMASKED = {name: role for name, role in CROSS.items() if role != "mask"}


def cross_unmasked(target: Path, decoder: torch.nn.Module) -> None:
    """Export a decoder step without the encoder's mask."""
    example = {name: value for name, value in cross_example().items() if name in CROSS_UNMASKED}
    axes = {name: CROSS_AXES[name] for name in CROSS_UNMASKED}
    export.torchscript(DecoderWithoutMask(decoder), example, target, outputs=["logits"], axes=axes)


@sample(
    "inputs/bart_decoder_mask_dropped/decoder_model.onnx",
    "BART decoder exported without encoder_attention_mask: cross-attention hears the encoder's padding",
    TS14,
    CROSS_UNMASKED,
    must=("mask-missing",),
    may=("dropped-input", "mask-partial", "padding-leak"),
    feeds=BART,
)
def _(target: Path) -> None:
    model = bart_decoder()
    cross_unmasked(target, model)
    companions.config(target.parent, model.decoder.config, "BartForConditionalGeneration")
    companions.tokenizer(target.parent, "BartTokenizer", ["input_ids", "attention_mask"], pad="<pad>")


@sample(
    "inputs/t5_decoder_mask_folded.onnx",
    "T5 decoder exported without encoder_attention_mask: the model fills in ones, which fold to no bias",
    TS14,
    CROSS_UNMASKED,
    must=("mask-missing",),
    may=("dropped-input", "mask-folded", "mask-partial", "padding-leak"),
    feeds=RIGHT,
)
def _(target: Path) -> None:
    cross_unmasked(target, t5_decoder())


class Tower(torch.nn.Module):
    """Takes a mask and forgets to hand it on; the exporter prunes it."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:  # noqa: ARG002
        hidden = self.encoder.embeddings(input_ids)
        return self.encoder.encoder(hidden)[0]


@sample(
    "inputs/roberta_mask_dropped/model.onnx",
    "the wrapper forgot to hand the mask on, so the exporter pruned it",
    TS14,
    {"input_ids": "ids"},
    must=("mask-missing",),
    may=("dropped-input", "tokenizer-mismatch", "padding-leak"),
    feeds=Feeds(pad_id=1),
)
def _(target: Path) -> None:
    encoder = tiny.encoder("roberta")
    axes = {"input_ids": export.BATCH_SEQUENCE}
    export.torchscript(Tower(encoder), tiny.example(*PAIR), target, outputs=HIDDEN, axes=axes)
    companions.config(target.parent, encoder.config, "RobertaModel")
    companions.tokenizer(target.parent, "RobertaTokenizer", list(PAIR), pad="<pad>")


class Detector(torch.nn.Module):
    """DETR's decoder states; without ``pixel_mask`` the model takes every pixel for real."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tiny.detr()

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor | None = None) -> Tensor:
        return self.model(pixel_values, pixel_mask)[0]


IMAGE_AXES = {
    "pixel_values": {0: "batch", 2: "height", 3: "width"},
    "pixel_mask": {0: "batch", 1: "height", 2: "width"},
}


def detector(target: Path, names: list[str]) -> None:
    """DETR with the inputs named, beside an image processor that pads."""
    pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 48).reshape(2, 3, 32, 48)
    made = {"pixel_values": pixels, "pixel_mask": torch.ones(2, 32, 48, dtype=torch.int64)}
    given = {name: made[name] for name in names}
    axes = {name: IMAGE_AXES[name] for name in names}
    model = Detector()
    export.torchscript(model, given, target, axes=axes, outputs=HIDDEN, opset=17)
    companions.config(target.parent, model.model.config, "DetrModel")
    companions.image_processor(target.parent, "DetrImageProcessor", pads=True)


@sample(
    "inputs/detr_pixel_mask_dropped/model.onnx",
    "DETR exported without pixel_mask, beside an image processor that pads",
    "TorchScript, opset 17",
    {"pixel_values": "pixels"},
    must=("dropped-input",),
    feeds=Feeds(past=32),
)
def _(target: Path) -> None:
    detector(target, ["pixel_values"])


@sample(
    "inputs/detr_pixel_mask_kept/model.onnx",
    "DETR with pixel_mask, beside the same image processor",
    "TorchScript, opset 17",
    {"pixel_values": "pixels", "pixel_mask": "pixel_mask"},
    feeds=Feeds(past=32),
)
def _(target: Path) -> None:
    detector(target, ["pixel_values", "pixel_mask"])


@sample(
    "inputs/tokenizer_merged_mask_left.onnx",
    "a tokenizer was merged in and its mask not connected: the model takes text and a mask",
    f"{TS14}, tokenizer merged",
    {"text": "other", "attention_mask": "mask"},
    must=("leftover-input",),
    may=("unused-input",),
    feeds=None,
)
def _(target: Path) -> None:
    with export.exported(classifier(), tiny.example(*BERT), outputs=["logits"]) as source:
        export.save_onnx(surgery.merge_tokenizer(onnx.load(source), {"input_ids": 0, "token_type_ids": 1}), target)


class Tempered(torch.nn.Module):
    """Divides the logits by a number that the caller gives for each row."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, temperature: Tensor) -> Tensor:
        return self.model(input_ids, attention_mask, token_type_ids)[0] / temperature.unsqueeze(-1)


@sample(
    "inputs/bert_temperature.onnx",
    "BERT classifier whose scores are divided by a further input, which fits no role",
    TS14,
    {**BERT, "temperature": "other"},
    must=("unknown-role",),
)
def _(target: Path) -> None:
    arguments = (*tiny.example(*BERT).values(), torch.tensor([1.0, 2.0]))
    axes = {**dict.fromkeys(BERT, export.BATCH_SEQUENCE), "temperature": {0: "batch"}}
    export.torchscript(Tempered(classifier()), arguments, target, names=list(axes), axes=axes, outputs=["logits"])
