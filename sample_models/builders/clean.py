"""Models that are wired as they should be: whatever is reported for one of these is a false alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import torch
import transformers as hf
from torch import Tensor

from builders import causal, export, masks, pooling, surgery, tiny
from builders.registry import Feeds, sample

if TYPE_CHECKING:
    from pathlib import Path

BERT = {"input_ids": "ids", "attention_mask": "mask", "token_type_ids": "segment"}
PAIR = {"input_ids": "ids", "attention_mask": "mask"}
TS14, TS17, DYNAMO, DIRECT = "TorchScript, opset 14", "TorchScript, opset 17", "dynamo, opset 18", "OpenVINO from PyTorch"
FROM_ONNX = "OpenVINO from ONNX (TorchScript)"


@sample("clean/bert_classifier.onnx", "BERT for sequence classification, eager attention", TS14, BERT)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["logits"])


@sample("clean/bert_classifier_dynamo.onnx", "BERT for sequence classification, sdpa attention", DYNAMO, BERT)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, "sdpa", num_labels=3)
    export.dynamo(model, tiny.example(*BERT), target, outputs=["logits"])


@sample("clean/bert_classifier_ov.xml", "BERT for sequence classification, sdpa kept as one operator", DIRECT, BERT)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForSequenceClassification, "sdpa", num_labels=3)
    export.ir_from_torch(model, tiny.example(*BERT), target, outputs=["logits"])


@sample("clean/bert_qa.onnx", "BERT for question answering, sdpa attention", TS17, BERT)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForQuestionAnswering, "sdpa")
    export.torchscript(model, tiny.example(*BERT), target, outputs=["start_logits", "end_logits"], opset=17)


@sample("clean/bert_qa_ov.xml", "BERT for question answering, weights compressed to fp16", FROM_ONNX, BERT)
def _(target: Path) -> None:
    model = tiny.bert(hf.BertForQuestionAnswering)
    with export.exported(model, tiny.example(*BERT), outputs=["start_logits", "end_logits"]) as source:
        export.ir_from_onnx(source, target, fp16=True)


@sample("clean/bert_static_ov.xml", "BERT with batch 2 and length 12 fixed on purpose, mask and all", FROM_ONNX, BERT)
def _(target: Path) -> None:
    with export.exported(tiny.bert(), tiny.example(*BERT, length=12)) as source:
        model = export.ir_from_onnx(source)
    model.reshape({port.any_name: [2, 12] for port in model.inputs})
    export.save_ir(model, target)


@sample("clean/embedder.onnx", "sentence embedder with masked mean pooling as sentence-transformers writes it", TS14, BERT)
def _(target: Path) -> None:
    model = pooling.Embedder(tiny.bert(attention="sdpa"), pooling.masked_mean)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["sentence_embedding"])


@sample("clean/embedder_dynamo.onnx", "sentence embedder on DistilBERT with masked mean pooling", DYNAMO, PAIR)
def _(target: Path) -> None:
    model = pooling.Embedder(tiny.encoder("distilbert"), pooling.masked_mean)
    export.dynamo(model, tiny.example(*PAIR), target, outputs=["sentence_embedding"])


@sample("clean/embedder_ov.xml", "sentence embedder with masked mean pooling", DIRECT, BERT)
def _(target: Path) -> None:
    model = pooling.Embedder(tiny.bert(), pooling.masked_mean)
    export.ir_from_torch(model, tiny.example(*BERT), target, outputs=["sentence_embedding"])


ROBERTA = Feeds(pad_id=1)


@sample("clean/roberta.onnx", "RoBERTa: one-row segment table, positions counted from the ids", TS14, PAIR, feeds=ROBERTA)
def _(target: Path) -> None:
    export.torchscript(tiny.encoder("roberta", "sdpa"), tiny.example(*PAIR), target)


@sample("clean/roberta_dynamo.onnx", "RoBERTa, eager attention", DYNAMO, PAIR, feeds=ROBERTA)
def _(target: Path) -> None:
    export.dynamo(tiny.encoder("roberta"), tiny.example(*PAIR), target)


@sample("clean/roberta_ov.xml", "RoBERTa", FROM_ONNX, PAIR, feeds=ROBERTA)
def _(target: Path) -> None:
    with export.exported(tiny.encoder("roberta"), tiny.example(*PAIR)) as source:
        export.ir_from_onnx(source, target)


@sample("clean/distilbert.onnx", "DistilBERT: no segments at all", TS14, PAIR)
def _(target: Path) -> None:
    export.torchscript(tiny.encoder("distilbert"), tiny.example(*PAIR), target, outputs=["last_hidden_state"])


@sample("clean/mpnet.onnx", "MPNet: relative attention bias beside the mask, no segments", TS14, PAIR, feeds=ROBERTA)
def _(target: Path) -> None:
    export.torchscript(tiny.encoder("mpnet"), tiny.example(*PAIR), target)


@sample("clean/deberta.onnx", "DeBERTa-v2: disentangled attention", TS17, PAIR)
def _(target: Path) -> None:
    export.torchscript(tiny.encoder("deberta"), tiny.example(*PAIR), target, outputs=["last_hidden_state"], opset=17)


@sample("clean/t5_encoder.onnx", "T5 encoder: relative position bias beside the mask", TS14, PAIR)
def _(target: Path) -> None:
    export.torchscript(tiny.encoder("t5"), tiny.example(*PAIR), target, outputs=["last_hidden_state"])


@sample("clean/t5_encoder_ov.xml", "T5 encoder", DIRECT, PAIR)
def _(target: Path) -> None:
    export.ir_from_torch(tiny.encoder("t5"), tiny.example(*PAIR), target, outputs=["last_hidden_state"])


class WithoutCache(torch.nn.Module):
    """A decoder with its language-model head, called with keywords and without a cache."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids)[0]


DECODER = {**PAIR, "position_ids": "position"}


@sample("clean/gpt2.onnx", "GPT-2 with mask and positions as inputs: either padding side is right", TS14, DECODER)
def _(target: Path) -> None:
    with causal.traceable_masks():
        export.torchscript(WithoutCache(tiny.decoder("gpt2")), tiny.example(*DECODER), target, outputs=["logits"])


@sample("clean/gpt2_dynamo.onnx", "GPT-2 with mask and positions as inputs, sdpa attention", DYNAMO, DECODER)
def _(target: Path) -> None:
    export.dynamo(WithoutCache(tiny.decoder("gpt2", "sdpa")), tiny.example(*DECODER), target, outputs=["logits"])


class WithPast(torch.nn.Module):
    """A Llama whose cached keys and values are flat inputs and outputs, as export tools flatten them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = hf.DynamicCache.from_legacy_cache(tuple(zip(past[::2], past[1::2], strict=True)))
        logits, cache = self.model(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True
        )[:2]
        return (logits, *(tensor for layer in cache.to_legacy_cache() for tensor in layer))


LLAMA = {
    **DECODER,
    **{f"past_key_values.{layer}.{part}": "past" for layer in range(2) for part in ("key", "value")},
}


@sample("clean/llama_with_past.onnx", "Llama-style decoder: rotary positions, cached keys and values", TS17, LLAMA)
def _(target: Path) -> None:
    names = list(LLAMA)
    outputs = ["logits", *(name.replace("past_key_values", "present") for name in names[3:])]
    ids, _, positions = tiny.example(*DECODER).values()
    past = [torch.rand(2, 1, 3, 8) for _ in range(4)]
    arguments = (ids, torch.ones(2, 10, dtype=torch.long), positions + 3, *past)
    axes = {
        "input_ids": export.BATCH_SEQUENCE,
        "attention_mask": {0: "batch", 1: "total"},
        "position_ids": export.BATCH_SEQUENCE,
        **{name: {0: "batch", 2: "past"} for name in names[3:]},
    }
    model = WithPast(tiny.decoder("llama", cache=True))
    with causal.traceable_masks():
        export.torchscript(model, arguments, target, names=names, outputs=outputs, axes=axes, opset=17)


class CrossDecoder(torch.nn.Module):
    """One step of a sequence-to-sequence decoder, its encoder's states given."""

    def __init__(self, decoder: torch.nn.Module, head: torch.nn.Module) -> None:
        super().__init__()
        self.decoder, self.head = decoder, head

    def forward(self, input_ids: Tensor, encoder_attention_mask: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        states = self.decoder(
            input_ids=input_ids,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            use_cache=False,
        )[0]
        return self.head(states)


CROSS = {"input_ids": "decoder_ids", "encoder_attention_mask": "mask", "encoder_hidden_states": "encoder_states"}
CROSS_AXES = {
    "input_ids": export.BATCH_SEQUENCE,
    "encoder_attention_mask": {0: "batch", 1: "encoder_sequence"},
    "encoder_hidden_states": {0: "batch", 1: "encoder_sequence"},
}
RIGHT = Feeds(sides=("right",))


def cross_example() -> dict[str, Tensor]:
    """Decoder ids, and the states and mask of a longer encoder sequence."""
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    states = torch.linspace(-1, 1, 2 * 9 * 16).reshape(2, 9, 16)
    return {**tiny.example("input_ids"), "encoder_attention_mask": mask, "encoder_hidden_states": states}


def t5_decoder() -> CrossDecoder:
    """The decoder of a tiny T5."""
    model = tiny.build(hf.T5ForConditionalGeneration, tiny.t5_config(decoder_start_token_id=0))
    return CrossDecoder(model.decoder, model.lm_head)


@sample("clean/t5_decoder.onnx", "T5 decoder with encoder_attention_mask", TS14, CROSS, feeds=RIGHT)
def _(target: Path) -> None:
    export.torchscript(t5_decoder(), cross_example(), target, outputs=["logits"], axes=CROSS_AXES)


BART = Feeds(pad_id=1, sides=("right",))


def bart_decoder() -> CrossDecoder:
    """The decoder of a tiny BART."""
    config = hf.BartConfig(
        vocab_size=tiny.VOCAB,
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        init_std=0.3,
    )
    model = tiny.build(hf.BartForConditionalGeneration, config)
    return CrossDecoder(model.model.decoder, model.lm_head)


@sample("clean/bart_decoder.onnx", "BART decoder with encoder_attention_mask", TS14, CROSS, feeds=BART)
def _(target: Path) -> None:
    export.torchscript(bart_decoder(), cross_example(), target, outputs=["logits"], axes=CROSS_AXES)


@sample("clean/vit.onnx", "ViT: attention without a mask over image patches", TS14, {"pixel_values": "pixels"})
def _(target: Path) -> None:
    image = {"pixel_values": torch.linspace(-1, 1, 2 * 3 * 256).reshape(2, 3, 16, 16)}
    export.torchscript(tiny.encoder("vit"), image, target, axes={"pixel_values": {0: "batch"}})


@sample("clean/vit_dynamo.onnx", "ViT, sdpa attention", DYNAMO, {"pixel_values": "pixels"})
def _(target: Path) -> None:
    image = {"pixel_values": torch.linspace(-1, 1, 2 * 3 * 256).reshape(2, 3, 16, 16)}
    export.dynamo(
        tiny.encoder("vit", "sdpa"), image, target, shapes={"pixel_values": {0: torch.export.Dim("batch", min=1, max=64)}}
    )


@sample(
    "clean/clip_text.onnx",
    "CLIP text tower: causal, padded right, read out at the end-of-text token",
    TS14,
    {"input_ids": "ids"},
    feeds=Feeds(pad_id=0, end_id=99, sides=("right",)),
)
def _(target: Path) -> None:
    example = tiny.example("input_ids")
    example["input_ids"][:, -1] = 99
    export.torchscript(tiny.encoder("clip_text"), example, target)


def wav2vec2() -> torch.nn.Module:
    """wav2vec2 of the layer-norm kind, which must be told what is padding."""
    config = hf.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        conv_dim=(8, 8),
        conv_stride=(5, 4),
        conv_kernel=(10, 8),
        num_feat_extract_layers=2,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        conv_bias=True,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        initializer_range=0.3,
    )
    return tiny.build(hf.Wav2Vec2Model, config)


def frames(samples: int) -> int:
    """Output frames of :func:`wav2vec2` for a number of samples."""
    return ((samples - 10) // 5 + 1 - 8) // 4 + 1


SPEECH = {"input_values": "features", "attention_mask": "mask"}


@sample(
    "clean/wav2vec2.onnx",
    "wav2vec2 with layer norm and a mask over samples: padded frames are zeroed before the positional convolution",
    TS17,
    SPEECH,
    may=("padding-leak",),
    feeds=Feeds(length=600, frames=frames, sides=("right",)),
)
def _(target: Path) -> None:
    mask = torch.ones(2, 400, dtype=torch.long)
    mask[1, 300:] = 0
    wave = torch.sin(torch.arange(800.0)).reshape(2, 400)
    example = {"input_values": wave, "attention_mask": mask}
    export.torchscript(wav2vec2(), example, target, outputs=["last_hidden_state", "extract_features"], opset=17)


@sample(
    "clean/whisper_encoder.onnx", "Whisper encoder: a fixed window of mel frames, no mask", TS17, {"input_features": "features"}
)
def _(target: Path) -> None:
    config = hf.WhisperConfig(
        vocab_size=tiny.VOCAB,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        max_source_positions=20,
        max_target_positions=20,
        init_std=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    encoder = tiny.build(hf.WhisperModel, config).encoder
    mel = {"input_features": torch.linspace(-1, 1, 2 * 8 * 40).reshape(2, 8, 40)}
    export.torchscript(encoder, mel, target, outputs=["last_hidden_state"], axes={"input_features": {0: "batch"}}, opset=17)


class Tagger(torch.nn.Module):
    """Embedding, LSTM, a label per token."""

    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        torch.manual_seed(20)
        self.words = torch.nn.Embedding(tiny.VOCAB, 16)
        self.lstm = torch.nn.LSTM(16, 8, batch_first=True, bidirectional=both_ways)
        self.labels = torch.nn.Linear(16 if both_ways else 8, 5)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.labels(self.lstm(self.words(input_ids))[0])


@sample(
    "clean/lstm_tagger.onnx",
    "LSTM tagger that reads left to right: what follows a token never reaches it",
    TS14,
    {"input_ids": "ids"},
    may=("left-padding-unsafe",),
)
def _(target: Path) -> None:
    export.torchscript(Tagger(both_ways=False).eval(), tiny.example("input_ids"), target, outputs=["logits"])


@sample("clean/mlp.onnx", "multilayer perceptron over a feature vector", TS14, {"features": "other"})
def _(target: Path) -> None:
    torch.manual_seed(20)
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).eval()
    example = {"input": torch.linspace(-1, 1, 24).reshape(2, 12)}
    export.torchscript(model, example, target, names=["features"], outputs=["scores"], axes={"features": {0: "batch"}})


def cnn() -> torch.nn.Module:
    """Two convolutions, batch norm, global average pooling."""
    torch.manual_seed(20)
    nn = torch.nn
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)).eval()


PIXELS = {"input": torch.linspace(-1, 1, 2 * 3 * 256).reshape(2, 3, 16, 16)}


@sample("clean/cnn.onnx", "convolutional image classifier", TS14, {"image": "pixels"})
def _(target: Path) -> None:
    export.torchscript(cnn(), PIXELS, target, names=["image"], outputs=["logits"], axes={"image": {0: "batch"}})


@sample("clean/cnn_ov.xml", "convolutional image classifier", FROM_ONNX, {"image": "pixels"})
def _(target: Path) -> None:
    with export.exported(cnn(), PIXELS, names=["image"], outputs=["logits"], axes={"image": {0: "batch"}}) as source:
        export.ir_from_onnx(source, target)


class KeyPadding(torch.nn.Module):
    """``nn.TransformerEncoder`` with its own convention: True in the mask means ignore."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(20)
        self.words = torch.nn.Embedding(tiny.VOCAB, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        return self.encoder(self.words(input_ids), src_key_padding_mask=src_key_padding_mask)


@sample(
    "clean/key_padding_mask.onnx",
    "nn.TransformerEncoder whose mask says what to ignore",
    DYNAMO,
    {"input_ids": "ids", "src_key_padding_mask": "mask"},
    may=("all-masked-row",),
    feeds=Feeds(mask_keeps=0),
)
def _(target: Path) -> None:
    ids, mask = tiny.example(*PAIR).values()
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator has no ONNX form
    example = {"input_ids": ids, "src_key_padding_mask": mask == 0}
    export.dynamo(KeyPadding().eval(), example, target, outputs=["last_hidden_state"])


class MaskFromIds(torch.nn.Module):
    """Takes ids alone and masks where the id is the padding id."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = tiny.encoder("distilbert")

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.bert(input_ids=input_ids, attention_mask=(input_ids != 0).long())[0]


@sample(
    "clean/distilbert_mask_from_ids.onnx",
    "DistilBERT that masks where an id is the padding id",
    TS14,
    {"input_ids": "ids"},
    feeds=Feeds(mask_from_ids=True),
)
def _(target: Path) -> None:
    export.torchscript(MaskFromIds(), tiny.example("input_ids"), target, outputs=["last_hidden_state"])


HISTORICAL = {"input_ids": "ids", "input_mask": "mask", "segment_ids": "segment"}


@sample("clean/bert_historical_names.onnx", "BERT under the names of its first release", "TorchScript, opset 11", HISTORICAL)
def _(target: Path) -> None:
    export.torchscript(tiny.bert(), tiny.example(*BERT), target, names=list(HISTORICAL), opset=11)


@sample(
    "clean/bert_fp16_clamped.onnx",
    "BERT in fp16 by a converter that clamps the fill value to -10000",
    f"{TS14}, ONNX Runtime fp16",
    BERT,
)
def _(target: Path) -> None:
    with export.exported(masks.BiasedBert(tiny.bert()), tiny.example(*BERT), outputs=["last_hidden_state"]) as source:
        export.save_onnx(surgery.to_fp16(onnx.load(source), largest=1e4), target)
