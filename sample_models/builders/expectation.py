"""Models that are right in themselves and disagree with what lies beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openvino as ov
import transformers as hf

from builders import companions, export, pooling, tiny
from builders.clean import BERT, FROM_ONNX, PAIR, ROBERTA, TS14
from builders.registry import sample

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDING = ["sentence_embedding"]


def sentence_bert(target: Path, mode: str, *, pool: bool = True) -> None:
    """A sentence-transformers repository: BERT, first-token pooling in the graph, ``mode`` in ``1_Pooling/config.json``."""
    bert = tiny.bert()
    model = pooling.Embedder(bert, pooling.first_token) if pool else bert
    outputs = EMBEDDING if pool else ("last_hidden_state", "pooler_output")
    export.torchscript(model, tiny.example(*BERT), target, outputs=outputs)
    companions.config(target.parent, bert.config, "BertModel")
    companions.tokenizer(target.parent, "BertTokenizer", list(BERT))
    companions.sentence_transformers(target.parent, size=16, mode=mode)


@sample(
    "expectation/pooling_mismatch/model.onnx",
    "the graph reads the first token, 1_Pooling/config.json says mean",
    TS14,
    BERT,
    must=("pooling-mismatch",),
)
def _(target: Path) -> None:
    sentence_bert(target, "mean_tokens")


@sample(
    "expectation/pooling_agrees/model.onnx", "the graph reads the first token, and 1_Pooling/config.json says so", TS14, BERT
)
def _(target: Path) -> None:
    sentence_bert(target, "cls_token")


@sample("expectation/pooling_outside/model.onnx", "the graph ends at hidden states, the mean is taken outside", TS14, BERT)
def _(target: Path) -> None:
    sentence_bert(target, "mean_tokens", pool=False)


@sample(
    "expectation/last_token_pads_right/model.onnx",
    "reads position -1 of every row, and 1_Pooling/config.json says last token, while the tokenizer pads right",
    TS14,
    PAIR,
    must=("unmasked-pooling",),
    may=("padding-leak", "pooling-mismatch"),
)
def _(target: Path) -> None:
    encoder = tiny.encoder("distilbert")
    export.torchscript(pooling.Embedder(encoder, pooling.last_position), tiny.example(*PAIR), target, outputs=EMBEDDING)
    companions.config(target.parent, encoder.config, "DistilBertModel")
    companions.tokenizer(target.parent, "DistilBertTokenizer", list(PAIR))
    companions.sentence_transformers(target.parent, size=16, mode="lasttoken")


@sample(
    "expectation/tokenizer_mismatch/model.onnx",
    "the graph wants token_type_ids, which the XLM-R tokenizer beside it does not make",
    TS14,
    BERT,
    must=("tokenizer-mismatch",),
)
def _(target: Path) -> None:
    model = tiny.bert()
    export.torchscript(model, tiny.example(*BERT), target)
    companions.config(target.parent, model.config, "BertModel")
    companions.tokenizer(target.parent, "XLMRobertaTokenizer", list(PAIR), pad="<pad>")


@sample(
    "expectation/tokenizer_agrees/openvino/openvino_model.xml",
    "RoBERTa as IR in a subfolder, its tokenizer one folder up",
    FROM_ONNX,
    PAIR,
    feeds=ROBERTA,
)
def _(target: Path) -> None:
    model = tiny.encoder("roberta")
    with export.exported(model, tiny.example(*PAIR)) as source:
        export.ir_from_onnx(source, target)
    companions.config(target.parent.parent, model.config, "RobertaModel")
    companions.tokenizer(target.parent.parent, "RobertaTokenizer", list(PAIR), pad="<pad>")


PROMISED = """\
wirelint-contract: 1
inputs:
- names: [input_ids]
  role: ids
  dtype: i64
  axes: [batch, sequence]
- names: [attention_mask]
  role: mask
  dtype: i64
  axes: [batch, sequence]
order: free
outputs:
- name: last_hidden_state
  dtype: f32
  padding: [right]
  rows: independent
"""


def promised(target: Path, names: dict[str, str]) -> None:
    """DistilBERT beside a contract, its inputs called ``names``."""
    axes = dict.fromkeys(names, export.BATCH_SEQUENCE)
    outputs = ["last_hidden_state"]
    export.torchscript(tiny.encoder("distilbert"), tiny.example(*PAIR), target, names=list(names), axes=axes, outputs=outputs)
    target.with_name(f"{target.stem}.contract.yaml").write_text(PROMISED)


@sample(
    "expectation/contract_broken/model.onnx",
    "a later export calls the mask input_mask, the contract beside it attention_mask",
    TS14,
    {"input_ids": "ids", "input_mask": "mask"},
    must=("contract-mismatch",),
)
def _(target: Path) -> None:
    promised(target, {"input_ids": "ids", "input_mask": "mask"})


@sample("expectation/contract_kept/model.onnx", "the contract beside it is kept", TS14, PAIR)
def _(target: Path) -> None:
    promised(target, PAIR)


@sample(
    "expectation/reference_axis_fixed_ov.xml",
    "made from clean/bert_qa.onnx: conversion fixed the length",
    FROM_ONNX,
    BERT,
    must=("reference-drift",),
    may=("baked-sequence", "baked-batch"),
    reference="clean/bert_qa.onnx",
)
def _(target: Path) -> None:
    model = ov.convert_model(target.parents[1] / "clean" / "bert_qa.onnx")
    model.reshape({name: [-1, 12] for name in BERT})
    export.save_ir(model, target)


@sample(
    "expectation/reference_kept_ov.xml",
    "made from clean/bert_qa.onnx, and nothing was lost",
    FROM_ONNX,
    BERT,
    reference="clean/bert_qa.onnx",
)
def _(target: Path) -> None:
    export.ir_from_onnx(target.parents[1] / "clean" / "bert_qa.onnx", target)


def sentiment(target: Path, names: list[str]) -> None:
    """A Triton repository of one model, whose configuration calls the inputs ``names``."""
    model = tiny.bert(hf.BertForSequenceClassification, num_labels=3)
    export.torchscript(model, tiny.example(*BERT), target, outputs=["logits"])
    folder = target.parent.parent
    companions.triton(folder, folder.name, names, ("logits", 3))


@sample(
    "expectation/serving_mismatch/sentiment/1/model.onnx",
    "config.pbtxt calls the mask input_mask, the graph attention_mask",
    TS14,
    BERT,
    must=("serving-config-mismatch",),
)
def _(target: Path) -> None:
    sentiment(target, ["input_ids", "input_mask", "token_type_ids"])


@sample("expectation/serving_agrees/sentiment/1/model.onnx", "config.pbtxt and the graph agree", TS14, BERT)
def _(target: Path) -> None:
    sentiment(target, list(BERT))
