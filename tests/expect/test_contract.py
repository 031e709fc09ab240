"""Contracts: written, edited, held."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from wirelint import facts
from wirelint.cli import cli
from wirelint.contract import contract_mismatches, contract_of, contract_text, read_contract
from wirelint.errors import ConfigurationError
from wirelint.facts import InputFacts, PaddingFacts

if TYPE_CHECKING:
    from repositories import Repository

MODELS = Path(__file__).parents[2] / "sample_models"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copy(MODELS / "clean/bert_classifier.onnx", tmp_path / "model.onnx"))


# -- writing ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "clean/bert_classifier.onnx",
        "clean/embedder_ov.xml",
        "clean/llama_with_past.onnx",
        "clean/vit.onnx",
        "clean/lstm_tagger.onnx",
    ],
)
def test_every_model_keeps_its_own_contract(name: str, tmp_path: Path) -> None:
    found = facts(MODELS / name)
    path = tmp_path / "model.contract.yaml"
    path.write_text(contract_text(found))
    assert list(contract_mismatches(read_contract(path), found)) == []


def test_command_writes_beside_the_model(model: Path) -> None:
    assert run("contract", model).exit_code == 0
    assert contract_of(model) == model.with_name("model.contract.yaml")
    again = run("contract", model)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert run("contract", "--force", model).exit_code == 0


def test_command_prints(model: Path) -> None:
    result = run("contract", "-o", "-", model)
    assert "names: [attention_mask]" in result.stdout
    assert contract_of(model) is None


@pytest.mark.parametrize("name", ["a: [b", "# no comment", "yes", "x\ny", "\u202e", "'\"", "- a"])
def test_names_that_yaml_would_misread(repository: Repository, name: str, tmp_path: Path) -> None:
    repository.facts.inputs.append(InputFacts(0, name, (name,), "", "i64", ("on", 3, None), role="ids"))
    repository.gives(name)
    path = tmp_path / "model.contract.yaml"
    path.write_text(contract_text(repository.facts))
    assert list(contract_mismatches(read_contract(path), repository.facts)) == []


# -- holding ---------------------------------------------------------------------------------------------------------------


def held(repository: Repository, tmp_path: Path, **changes: Any) -> list[str]:
    """The mismatches of a model that changed after its contract was written."""
    repository.takes("ids", "mask").gives("logits")
    repository.facts.outputs[0].padding = PaddingFacts("safe", "leaks")
    repository.facts.outputs[0].batch = "independent"
    path = tmp_path / "model.contract.yaml"
    path.write_text(contract_text(repository.facts))
    for key, value in changes.items():
        part, attribute = key.split("_", 1)
        setattr({"mask": repository.facts.inputs[1], "logits": repository.facts.outputs[0]}[part], attribute, value)
    return list(contract_mismatches(read_contract(path), repository.facts))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"mask_name": "mask.1", "mask_names": ("mask.1",)}, ":9: input 'attention_mask' is called 'mask.1' in the model"),
        ({"mask_name": "", "mask_names": ()}, "is called nothing"),
        ({"mask_names": ("mask.1", "attention_mask"), "mask_name": "mask.1"}, ""),
        ({"mask_role": "segment"}, "is promised to be the mask, and it acts as segment"),
        ({"mask_dtype": "i32"}, "is promised as i64, and is i32"),
        ({"mask_shape": ("batch", 128)}, "promised with axes [batch, sequence], and has [batch, 128]"),
        ({"mask_shape": (None, "s")}, ""),
        ({"mask_has_default": True}, ""),
        ({"logits_name": "scores"}, "output 'logits' is promised, and the model has none"),
        ({"logits_padding": PaddingFacts("leaks", "leaks")}, "padding on the right is promised not to change output 'logits'"),
        ({"logits_padding": PaddingFacts("unknown", "leaks")}, "can't be shown not to change it"),
        ({"logits_padding": PaddingFacts("safe", "safe")}, ""),
        ({"logits_batch": "mixes"}, "rows of a batch are promised"),
        ({"logits_shape": ("batch", 17)}, "and has [batch, 17]"),
    ],
)
def test_changes(repository: Repository, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    sentences = held(repository, tmp_path, **changes)
    assert len(sentences) == bool(said)
    if said:
        assert said in sentences[0]
        assert sentences[0].startswith("model.contract.yaml:")


def test_a_new_required_input(repository: Repository, tmp_path: Path) -> None:
    repository.takes("ids", "mask")
    (tmp_path / "model.contract.yaml").write_text("wirelint-contract: 1\ninputs: [{names: [input_ids]}, {role: mask}]\n")
    contract = read_contract(tmp_path / "model.contract.yaml")
    assert list(contract_mismatches(contract, repository.facts)) == []
    repository.facts.inputs.append(InputFacts(2, "flag", ("flag",), "", "bool", (), role="other"))
    (sentence,) = contract_mismatches(contract, repository.facts)
    assert "input 2 'flag' (other) is required and not in the contract" in sentence


def test_order_counts_where_it_is_fixed(repository: Repository, tmp_path: Path) -> None:
    repository.takes("ids", "mask")
    text = "wirelint-contract: 1\ninputs: [{names: [attention_mask]}, {names: [input_ids]}]\norder: "
    for order, count in (("free", 0), ("fixed", 1)):
        (tmp_path / "model.contract.yaml").write_text(text + order)
        assert len(list(contract_mismatches(read_contract(tmp_path / "model.contract.yaml"), repository.facts))) == count


def test_a_size_that_the_exporter_did_not_find_out_is_not_promised_to_stay_unknown(
    repository: Repository, tmp_path: Path
) -> None:
    repository.takes("ids", "mask", shape=(None, None)).gives("embedding", shape=("batch", "Divembedding_dim_1"))
    path = tmp_path / "model.contract.yaml"
    path.write_text(contract_text(repository.facts))
    assert "axes: [open, open]" in path.read_text()
    repository.facts.outputs[0].shape = ("batch", 384)
    assert list(contract_mismatches(read_contract(path), repository.facts)) == []
    repository.facts.inputs[0].shape = (None, 128)
    (sentence,) = contract_mismatches(read_contract(path), repository.facts)
    assert "axes [open, open], and has [open, 128]" in sentence


def test_check_holds_a_later_export(model: Path) -> None:
    run("contract", model)
    assert run("check", model).exit_code == 0
    shutil.copy(MODELS / "clean/distilbert.onnx", model)
    result = run("check", model)
    assert result.exit_code == 1
    assert "contract-mismatch" in result.stdout


# -- edited by people ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the file must be a mapping"),
        ("inputs: []", ":1: the contract must say 'wirelint-contract: 1'"),
        ("wirelint-contract: 2\ninputs: []", ":1: the contract must say"),
        ("wirelint-contract: 1", "the key 'inputs' is missing"),
        ("wirelint-contract: 1\ninputs:\n- names: [a]\n  rol: ids", ":4: unknown key 'rol'; did you mean 'role'?"),
        ("wirelint-contract: 1\ninputs:\n- dtype: i64", ":3: an input needs 'names' or a 'role'"),
        ("wirelint-contract: 1\ninputs:\n- names: [a]\n  role: masks", ":4: inputs[0].role must not be 'masks'; did you mean"),
        ("wirelint-contract: 1\ninputs:\n- names: [a]\n  dtype: int64", ":4: inputs[0].dtype must not be 'int64'"),
        ("wirelint-contract: 1\ninputs:\n- names: [a]\n  axes: [batch, -1]", ":4: an axis must be a size"),
        ("wirelint-contract: 1\ninputs:\n- names: [a]\n  axes: [batch, true]", ":4: an axis must be a size"),
        ("wirelint-contract: 1\ninputs: []\norder: sorted", ":3: order must not be 'sorted'"),
        ("wirelint-contract: 1\ninputs: []\noutputs:\n- dtype: f32", ":4: an output needs a 'name'"),
        ("wirelint-contract: 1\ninputs: []\noutputs:\n- name: x\n  padding: [top]", "must not be 'top'"),
        ("wirelint-contract: 1\ninputs: []\noutputs:\n- name: x\n  rows: mixed", ":5: outputs[0].rows must not be 'mixed'"),
        ("wirelint-contract: 1\ninputs: [", "no valid YAML"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "model.contract.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_contract(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_check_stops_at_a_wrong_contract(model: Path) -> None:
    model.with_name("model.contract.yaml").write_text("inputs: 3")
    result = run("check", model)
    assert result.exit_code == 2
    assert "model.contract.yaml:1:" in result.stderr
