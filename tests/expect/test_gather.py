"""What is read from the files beside a model."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from wirelint.expect import gather
from wirelint.expect.families import names_of_class

if TYPE_CHECKING:
    from repositories import Repository

POOLING = {f"pooling_mode_{mode}": False for mode in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def test_nothing_beside_it_says_nothing(repository: Repository) -> None:
    said = gather(repository.model)
    assert said.sources == ()
    assert said.input_names == ()
    assert (said.wants_mask, said.wants_segments, said.pair_task, said.pad_id) == (None, None, None, None)


def test_listed_names_go_before_the_class(repository: Repository) -> None:
    repository.write(
        "tokenizer_config.json",
        {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"], "padding_side": "left"},
    )
    said = gather(repository.model)
    assert said.input_names == ("input_ids", "attention_mask")
    assert said.pads == "left"
    assert (said.wants_mask, said.wants_segments) == (True, False)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("BertTokenizer", ("input_ids", "token_type_ids", "attention_mask")),
        ("BertTokenizerFast", ("input_ids", "token_type_ids", "attention_mask")),
        ("XLMRobertaTokenizerFast", ("input_ids", "attention_mask")),
        ("FNetTokenizer", ("input_ids", "token_type_ids")),
        ("MyOwnTokenizer", ()),
    ],
)
def test_a_class_makes_what_transformers_says(repository: Repository, kind: str, names: tuple[str, ...]) -> None:
    repository.write("tokenizer_config.json", {"tokenizer_class": kind})
    assert gather(repository.model).input_names == names


def test_the_table_of_classes_is_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    wrong = {}
    for name in dir(transformers):
        if not name.endswith(("Tokenizer", "TokenizerFast")) or not names_of_class(name):
            continue
        try:
            emits = getattr(transformers, name).model_input_names
        except (ImportError, AttributeError):
            continue
        if tuple(sorted(emits)) != tuple(sorted(names_of_class(name))):
            wrong[name] = emits
    # Its slow form and its model say otherwise, and so do the files that carry its name.
    assert set(wrong) <= {"BlenderbotSmallTokenizerFast"}


def test_the_model_type_stands_in_for_a_missing_class(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"do_lower_case": True})
    repository.write("config.json", {"model_type": "bert", "architectures": ["BertModel"]})
    assert gather(repository.model).input_names == ("input_ids", "token_type_ids", "attention_mask")


def test_no_tokenizer_means_no_names(repository: Repository) -> None:
    repository.write("config.json", {"model_type": "bert", "architectures": ["BertModel"]})
    assert gather(repository.model).input_names == ()


@pytest.mark.parametrize(("length", "longest"), [(512, 512), (int(1e30), None), (1e30, None), (0, None), ("512", None)])
def test_a_huge_length_is_none(repository: Repository, length: Any, longest: int | None) -> None:
    repository.write("tokenizer_config.json", {"model_max_length": length})
    assert gather(repository.model).max_length == longest


def test_the_head_of_a_large_tokenizer_is_enough(repository: Repository) -> None:
    content = {
        "version": "1.0",
        "truncation": {"max_length": 128},
        "padding": {"direction": "Left", "pad_id": 3, "strategy": "BatchLongest"},
        "added_tokens": [],
        "model": {"vocab": {f"token{number}": number for number in range(50_000)}},
    }
    text = json.dumps(content)
    assert len(text) > 1 << 19
    repository.write("tokenizer.json", text)
    said = gather(repository.model)
    assert (said.max_length, said.pads, said.pad_id) == (128, "left", 3)


def test_padding_id_by_the_added_tokens(repository: Repository) -> None:
    added = {"0": {"content": "<s>"}, "1": {"content": "<pad>"}}
    repository.write("tokenizer_config.json", {"pad_token": {"content": "<pad>"}, "added_tokens_decoder": added})
    assert gather(repository.model).pad_id == 1


@pytest.mark.parametrize(
    ("config", "pair"),
    [
        ({"architectures": ["BertForQuestionAnswering"]}, True),
        ({"architectures": ["BertForMultipleChoice"]}, True),
        ({"architectures": ["BertForNextSentencePrediction"]}, True),
        ({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}, True),
        ({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "entailment", "1": "neutral"}}, True),
        ({"architectures": ["BertForSequenceClassification"], "sentence_transformers": {"version": "5.0"}}, True),
        ({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "sad", "1": "glad"}}, None),
        ({"architectures": ["BertForTokenClassification"], "id2label": {"0": "O"}}, None),
        ({"architectures": ["BertModel"]}, None),
        ({"id2label": {"0": "LABEL_0"}}, True),
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, None),
        ({}, None),
    ],
)
def test_pair_tasks(repository: Repository, config: dict[str, Any], pair: bool | None) -> None:
    repository.write("config.json", {"model_type": "bert", **config})
    assert gather(repository.model).pair_task is pair


@pytest.mark.parametrize(("rows", "wants"), [({"type_vocab_size": 2}, True), ({"type_vocab_size": 1}, False), ({}, True)])
def test_segments_need_a_table(repository: Repository, rows: dict[str, int], wants: bool) -> None:
    repository.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    repository.write("config.json", {"model_type": "bert", **rows})
    assert gather(repository.model).wants_segments is wants


def test_a_model_type_without_segments_wants_none(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    repository.write("config.json", {"model_type": "distilbert"})
    assert gather(repository.model).wants_segments is False


@pytest.mark.parametrize(
    ("config", "processor", "wants"),
    [
        ({"model_type": "wav2vec2"}, {"return_attention_mask": False}, False),
        ({"model_type": "wav2vec2"}, {"return_attention_mask": True}, True),
        ({"model_type": "whisper"}, {"return_attention_mask": True}, False),
        ({"model_type": "siglip_text_model"}, None, False),
        ({"model_type": "detr"}, {"do_pad": True}, True),
        ({"model_type": "detr"}, {"do_pad": False}, False),
        ({"model_type": "vit"}, {"do_pad": True}, None),
    ],
)
def test_the_processor_decides_about_masks(
    repository: Repository, config: dict[str, Any], processor: dict[str, Any] | None, wants: bool | None
) -> None:
    repository.write("config.json", config)
    if processor is not None:
        repository.write("preprocessor_config.json", processor)
    assert gather(repository.model).wants_mask is wants


def test_sentence_transformers(repository: Repository) -> None:
    repository.write("modules.json", MODULES)
    repository.write("1_Pooling/config.json", {**POOLING, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True})
    repository.write("tokenizer_config.json", {"model_max_length": 512})
    repository.write("sentence_bert_config.json", {"max_seq_length": 256})
    said = gather(repository.model)
    assert set(said.pooling.split("+")) == {"mean", "max"}
    assert (said.single_text, said.pair_task, said.max_length) == (True, False, 256)


def test_a_pooling_folder_alone_will_do(repository: Repository) -> None:
    repository.write("1_Pooling/config.json", {**POOLING, "pooling_mode_cls_token": True})
    assert gather(repository.model).pooling == "cls"


def test_modules_cannot_lead_out_of_the_folder(repository: Repository) -> None:
    repository.at("inner/model.onnx")
    repository.write("secret/config.json", {"pooling_mode": "mean"})
    for path in ("../secret", "/etc", "..", "a/../../secret"):
        repository.write("inner/modules.json", [{"path": path, "type": "sentence_transformers.models.Pooling"}])
        assert gather(repository.model).pooling == ""


@pytest.mark.parametrize("folder", ["onnx", "openvino", "onnx_fp16", "0_Transformer"])
def test_one_folder_up_in_known_layouts(repository: Repository, folder: str) -> None:
    repository.at(f"{folder}/model.onnx")
    repository.write("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"})
    said = gather(repository.model)
    assert said.input_names == ("input_ids", "attention_mask")
    assert said.sources == ("../tokenizer_config.json",)


def test_not_one_folder_up_elsewhere(repository: Repository) -> None:
    repository.at("bert/model.onnx")
    repository.write("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"})
    assert gather(repository.model).sources == ()


def test_what_is_beside_goes_before_what_is_above(repository: Repository) -> None:
    repository.at("onnx/model.onnx")
    repository.write("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"})
    repository.write("onnx/tokenizer_config.json", {"tokenizer_class": "FNetTokenizer"})
    assert gather(repository.model).input_names == ("input_ids", "token_type_ids")


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [1, None], {"a": {}}, True, 1.5, "\u202e\x1b[2J"])
def test_values_of_any_type_are_borne(repository: Repository, value: Any) -> None:
    keys = (
        "model_input_names", "tokenizer_class", "padding_side", "model_max_length", "pad_token", "added_tokens_decoder",
        "architectures", "model_type", "type_vocab_size", "pad_token_id", "id2label", "num_labels", "vocab_size",
        "return_attention_mask", "do_pad", "feature_extractor_type", "max_seq_length", "padding", "truncation", "model",
    )  # fmt: skip
    for name in ("tokenizer_config", "tokenizer", "config", "preprocessor_config", "sentence_bert_config", "genai_config"):
        repository.write(f"{name}.json", dict.fromkeys(keys, value))
    for content in (value, [value], [{"path": value, "type": value}], [{"path": "1_Pooling", "type": "x.Pooling"}]):
        repository.write("modules.json", content)
        repository.write("1_Pooling/config.json", {"pooling_mode": value})
        assert gather(repository.model).mismatches == {}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[" * 100_000, b"\xff\xfe\x00", b"[]", b'{"a": ' + b"9" * 10_000 + b"}", b"null"]
)
def test_damaged_files_are_named(repository: Repository, content: bytes) -> None:
    repository.write("tokenizer_config.json", content)
    sentences = repository.judged().get("tokenizer-mismatch", ())
    if content != b"null":
        assert sentences[0].startswith("tokenizer_config.json can't be read (")


def test_a_pointer_of_lfs_is_not_there(repository: Repository) -> None:
    repository.write("tokenizer_config.json", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert repository.judged() == {}


def test_a_pipe_is_not_opened(repository: Repository) -> None:
    os.mkfifo(repository.root / "config.json")
    os.mkfifo(repository.root / "tokenizer.json")
    assert repository.judged()["tokenizer-mismatch"][0].startswith("config.json can't be read (no regular file)")
