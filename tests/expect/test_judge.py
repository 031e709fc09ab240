"""Contradictions between companions and graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirelint.facts import MaskFacts

if TYPE_CHECKING:
    from repositories import Repository

XLMR = {"tokenizer_class": "XLMRobertaTokenizer"}
MODULES = [
    {"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def embedder(repository: Repository, mode: str) -> Repository:
    return repository.write("modules.json", MODULES).write("1_Pooling/config.json", {f"pooling_mode_{mode}": True})


# -- tokenizer -------------------------------------------------------------------------------------------------------------


def test_segments_that_nobody_makes(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", "segment").looks_up("segment", 2, at=2)
    (sentence,) = repository.judged()["tokenizer-mismatch"]
    assert "input 2 'token_type_ids'" in sentence
    assert "segment table of 2 rows" in sentence
    assert "tokenizer_config.json (tokenizer_class XLMRobertaTokenizer)" in sentence
    assert "feed zeros" in sentence


def test_segments_that_may_be_left_out(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", "segment")
    repository.facts.inputs[2].has_default = True
    assert repository.judged() == {}


def test_segments_that_do_nothing(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", "segment")
    repository.facts.inputs[2].used = False
    assert repository.judged() == {}


def test_the_role_decides_not_the_name(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", "segment")
    repository.facts.inputs[2].name = "attention_mask_2"
    assert "tokenizer-mismatch" in repository.judged()
    repository.facts.inputs[2].role = "other"
    assert repository.judged() == {}


def test_segments_that_the_tokenizer_makes(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"}).takes("ids", "mask", "segment")
    assert repository.judged() == {}


def test_an_unknown_tokenizer_says_nothing(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"tokenizer_class": "MyTokenizer"}).takes("ids", "mask", "segment", "position")
    assert repository.judged() == {}


def test_a_mask_that_nobody_makes(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"model_input_names": ["input_ids"]}).takes("ids", "mask")
    (sentence,) = repository.judged()["tokenizer-mismatch"]
    assert "'attention_mask'" in sentence


@pytest.mark.parametrize("role", ["bbox", "pixels", "features", "lengths", "other", "cache_position", "past"])
def test_what_a_processor_or_a_runtime_makes_is_not_asked_of_the_tokenizer(repository: Repository, role: str) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", role)
    assert repository.judged() == {}


def test_positions_of_an_embedder(repository: Repository) -> None:
    repository.write("tokenizer_config.json", {"model_input_names": ["input_ids", "attention_mask"]})
    embedder(repository, "mean_tokens").takes("ids", "mask", "position")
    (sentence,) = repository.judged()["tokenizer-mismatch"]
    assert "position_ids" in sentence


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "GPT2LMHeadModel", "T5ForConditionalGeneration"])
def test_positions_of_a_generation_loop(repository: Repository, architecture: str) -> None:
    repository.write("tokenizer_config.json", {"model_input_names": ["input_ids", "attention_mask"]})
    repository.write("config.json", {"model_type": "llama", "architectures": [architecture]}).takes("ids", "mask", "position")
    assert repository.judged() == {}


def test_positions_of_a_cached_decoder(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).takes("ids", "mask", "position", "past")
    assert repository.judged() == {}


def test_positions_beside_a_generator_config(repository: Repository) -> None:
    repository.write("tokenizer_config.json", XLMR).write("genai_config.json", {"model": {"decoder": {"filename": "x.onnx"}}})
    repository.takes("ids", "mask", "position")
    assert repository.judged() == {}


@pytest.mark.parametrize(("pad", "wrong"), [(1, False), (0, True)])
def test_padding_id_inside_and_outside(repository: Repository, pad: int, wrong: bool) -> None:
    repository.write("config.json", {"model_type": "roberta", "pad_token_id": pad}).takes("ids")
    repository.facts.mask = MaskFacts(from_ids=True, pad_id=1)
    sentences = repository.judged().get("tokenizer-mismatch", ())
    assert len(sentences) == wrong
    if wrong:
        assert "the id is 1, but config.json (pad_token_id) pads with 0" in sentences[0]


@pytest.mark.parametrize(("rows", "wrong"), [(250_002, False), (250_048, False), (30_522, True)])
def test_vocabulary_and_token_table(repository: Repository, rows: int, wrong: bool) -> None:
    repository.write("config.json", {"model_type": "xlm-roberta", "vocab_size": 250_002}).takes("ids", "mask")
    repository.looks_up("token", rows, at=0)
    assert bool(repository.judged()) is wrong


# -- processor -------------------------------------------------------------------------------------------------------------


def pictures(
    repository: Repository, *roles: str, pads: bool = True, shape: tuple[int | str, ...] = ("b", 3, "h", "w")
) -> Repository:
    repository.write("config.json", {"model_type": "detr"}).write("preprocessor_config.json", {"do_pad": pads})
    return repository.takes(*roles, shape=shape)


def test_padded_images_without_a_mask(repository: Repository) -> None:
    assert "pixel_mask" in pictures(repository, "pixels").judged()["dropped-input"][0]


def test_images_that_need_no_mask(repository: Repository) -> None:
    assert pictures(repository, "pixels", "pixel_mask").judged() == {}


def test_images_of_one_size_need_no_mask(repository: Repository) -> None:
    assert pictures(repository, "pixels", shape=("b", 3, 32, 32)).judged() == {}


def test_unpadded_images_need_no_mask(repository: Repository) -> None:
    assert pictures(repository, "pixels", pads=False).judged() == {}


# -- pooling ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kind", "wrong"),
    [
        ("mean_tokens", "first", True),
        ("mean_tokens", "last", True),
        ("mean_tokens", "max", True),
        ("mean_tokens", "mean", False),
        ("mean_tokens", "sum", False),
        ("mean_tokens", "weighted", False),
        ("weightedmean_tokens", "weighted", False),
        ("cls_token", "first", False),
        ("cls_token", "mean", True),
        ("lasttoken", "counted", False),
        ("lasttoken", "last", False),
        ("lasttoken", "first", True),
        ("max_tokens", "max", False),
        ("mean_tokens", "other", False),
        ("mean_tokens", "argmax", False),
    ],
)
def test_pooling_modes(repository: Repository, mode: str, kind: str, wrong: bool) -> None:
    embedder(repository, mode).takes("ids", "mask").gives("embedding").pools(kind, "embedding")
    sentences = repository.judged().get("pooling-mismatch", ())
    assert len(sentences) == wrong
    if wrong:
        assert sentences[0].startswith("1_Pooling/config.json says ")
        assert "'embedding'" in sentences[0]


def test_pooling_outside(repository: Repository) -> None:
    embedder(repository, "mean_tokens").takes("ids", "mask").gives("last_hidden_state", axis=1).gives("pooler_output")
    repository.pools("first", "pooler_output")
    assert repository.judged() == {}


def test_pooled_output_beside_the_tokens(repository: Repository) -> None:
    embedder(repository, "mean_tokens").takes("ids", "mask").gives("token_embeddings", axis=1).gives("sentence_embedding")
    repository.pools("first", "sentence_embedding")
    assert "pooling-mismatch" in repository.judged()


def test_pooling_of_two_kinds(repository: Repository) -> None:
    embedder(repository, "mean_tokens").takes("ids").gives("embedding").pools("first", "embedding").pools("mean", "embedding")
    assert repository.judged() == {}


# -- generation ------------------------------------------------------------------------------------------------------------

NAMED = {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": "past_key_values.%d.key"}


def decoder(repository: Repository, *roles: str) -> Repository:
    section = {"filename": "model.onnx", "inputs": NAMED, "outputs": {"logits": "logits"}}
    repository.write("genai_config.json", {"model": {"decoder": section}})
    return repository.takes(*roles).gives("logits", axis=1)


def test_generator_that_feeds_everything(repository: Repository) -> None:
    decoder(repository, "ids", "mask", "past")
    repository.facts.inputs[2].name = "past_key_values.11.key"
    assert repository.judged() == {}


def test_generator_that_leaves_one_out(repository: Repository) -> None:
    (sentence,) = decoder(repository, "ids", "mask", "position").judged()["serving-config-mismatch"]
    assert sentence.startswith("genai_config.json names no input 'position_ids'")


def test_generator_that_calls_the_logits_otherwise(repository: Repository) -> None:
    decoder(repository, "ids", "mask")
    repository.facts.outputs[0].name = "output"
    assert "'logits'" in repository.judged()["serving-config-mismatch"][0]


def test_generator_of_other_files(repository: Repository) -> None:
    decoder(repository, "ids", "mask", "position").at("embedding.onnx")
    assert repository.judged() == {}


CACHED = {
    "filename": "model.onnx",
    "inputs": NAMED,
    "outputs": {"logits": "logits", "present_key_names": "present.%d.key"},
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "head_size": 8,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"num_hidden_layers": 3}, "num_hidden_layers 3, the graph caches 2 layers"),
        ({"num_key_value_heads": 8}, "num_key_value_heads 8, the graph caches 4 ('past_key_values.0.key')"),
        ({"head_size": 64}, "head_size 64, the graph caches 8"),
        ({"outputs": {"present_key_names": "present_key_values.%d.key"}}, "calls an output 'present_key_values.%d.key'"),
        ({"inputs": {**NAMED, "past_key_names": "past.%d.key"}}, "names no input 'past_key_values.0.key'"),
    ],
)
def test_generator_with_another_cache(repository: Repository, change: dict[str, object], said: str) -> None:
    repository.write("genai_config.json", {"model": {"decoder": {**CACHED, **change}}})
    repository.takes("ids", "mask", "past", "past").gives("logits", axis=1).gives("present.0.key").gives("present.1.key")
    for layer, entry in enumerate(repository.facts.inputs[2:]):
        entry.name = f"past_key_values.{layer}.key"
        entry.shape = ("batch", 4, "past", 8)
    sentences = repository.judged().get("serving-config-mismatch", ())
    assert bool(sentences) == bool(said)
    assert said in "".join(sentences[:1])
