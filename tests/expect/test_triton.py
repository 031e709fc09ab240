"""``config.pbtxt`` against the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from repositories import Repository

CONFIG = """
name: "ner"
backend: "onnxruntime"
max_batch_size: 16
input [
  { name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] },
  { name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] }  # the padding
]
output { name: "logits" data_type: TYPE_FP32 dims: [ -1, 4 ] }
instance_group [ { count: 2 kind: KIND_GPU } ]
parameters { key: "intra_op_thread_count" value: { string_value: "1" } }
dynamic_batching { preferred_batch_size: [ 4, 8 ] }
"""


def served(repository: Repository, *changes: tuple[str, str]) -> tuple[str, ...]:
    content = CONFIG
    for old, new in changes:
        assert old in content
        content = content.replace(old, new)
    repository.at("ner/1/model.onnx").write("ner/config.pbtxt", content).takes("ids", "mask")
    repository.gives("logits", shape=("batch", "sequence", 4), axis=1)
    return repository.judged().get("serving-config-mismatch", ())


def test_agreement(repository: Repository) -> None:
    assert served(repository) == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"attention_mask"', '"input_mask"', "../config.pbtxt calls input 1 'input_mask', the graph calls it 'attention_mask'"),
        ("TYPE_INT64 dims: [ -1 ] },\n", "TYPE_INT32 dims: [ -1 ] },\n", "input 'input_ids' is i32, the graph says i64"),
        ('output { name: "logits"', 'output { name: "scores"', "lists output 'scores'"),
        ("dims: [ -1, 4 ]", "dims: [ -1, 5 ]", "output 'logits' has dims [-1, 5] after the batch axis, the graph says [-1, 4]"),
        ("dims: [ -1, 4 ]", "dims: [ 4 ]", "output 'logits' has dims [4] after the batch axis"),
        ("max_batch_size: 16", "max_batch_size: 0", "input 'input_ids' has dims [-1], the graph says [-1, -1]"),
    ],
)
def test_disagreement(repository: Repository, old: str, new: str, said: str) -> None:
    assert said in served(repository, (old, new))[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('backend: "onnxruntime"', 'backend: "python"'),
        ('backend: "onnxruntime"', 'platform: "ensemble"'),
        ('backend: "onnxruntime"', 'default_model_filename: "other.onnx"'),
    ],
)
def test_configs_of_something_else(repository: Repository, old: str, new: str) -> None:
    assert served(repository, (old, new), ('"attention_mask"', '"input_mask"')) == ()


def test_an_omitted_input(repository: Repository) -> None:
    last = ',\n  { name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] }  # the padding'
    assert last in CONFIG
    content = CONFIG.replace(last, "")
    repository.at("ner/1/model.onnx").write("ner/config.pbtxt", content).takes("ids", "mask")
    repository.gives("logits", shape=("batch", "sequence", 4), axis=1)
    (sentence,) = repository.judged()["serving-config-mismatch"]
    assert "omits input 1 'attention_mask'" in sentence


def test_a_config_without_ports_leaves_them_to_the_server(repository: Repository) -> None:
    repository.at("ner/1/model.onnx").write("ner/config.pbtxt", 'backend: "onnxruntime"\nmax_batch_size: 8\n').takes("ids")
    assert repository.judged() == {}


def test_inputs_that_the_server_makes(repository: Repository) -> None:
    inputs = '[ { name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] allow_ragged_batch: true } ]'
    made = 'batch_input [ { kind: BATCH_ITEM_SHAPE target_name: "attention_mask" source_input: "input_ids" } ]'
    repository.write("config.pbtxt", f"max_batch_size: 8\ninput {inputs}\n{made}").takes("ids", "mask")
    assert repository.judged() == {}


def test_a_fixed_batch_under_max_batch_size(repository: Repository) -> None:
    repository.at("ner/1/model.onnx").write("ner/config.pbtxt", CONFIG).takes("ids", "mask", shape=(1, "sequence"))
    repository.gives("logits", shape=("batch", "sequence", 4), axis=1)
    assert "fixes the first axis of input 'input_ids' at 1" in repository.judged()["serving-config-mismatch"][0]


def test_reshaped_ports(repository: Repository) -> None:
    reshaped = ("dims: [ -1, 4 ]", "dims: [ -1 ] reshape: { shape: [ -1, 4 ] }")
    assert served(repository, reshaped) == ()


@pytest.mark.parametrize("content", ["input [", 'name: "x', "max_batch_size: many", "}" * 50, "a { " * 20_000, "\x00"])
def test_damaged_configs_are_named(repository: Repository, content: str) -> None:
    repository.write("config.pbtxt", content).takes("ids")
    (sentence,) = repository.judged()["serving-config-mismatch"]
    assert sentence.startswith("config.pbtxt can't be read (no valid protobuf text")
    assert "\n" not in sentence


@pytest.mark.parametrize("name", ["a\nerror: x", "\x1b[31m", "x" * 5000])
def test_hostile_names_are_shown_safely(repository: Repository, name: str) -> None:
    escaped = name.encode("unicode_escape").decode()
    (sentence,) = served(repository, ('"attention_mask"', f'"{escaped}"'))
    assert sentence.isprintable()
