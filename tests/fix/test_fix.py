"""What ``wirelint fix`` changes, run in both runtimes before and after."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from wrong_models import MODELS, masked_encoder, run_onnx, run_openvino, same, wirelint

from wirelint.fix import fix

if TYPE_CHECKING:
    from collections.abc import Callable

BERT = ["input_ids", "attention_mask", "token_type_ids"]
NAMING = {"renamed-input", "misleading-input-name", "unnamed-input", "default-valued-input"}


def naming_findings(path: Path) -> set[str]:
    report = json.loads(wirelint("check", "-f", "json", "--no-config", path).stdout)
    return NAMING & {finding["rule"] for finding in report["models"][0]["findings"] if finding["severity"] != "note"}


# -- both formats, both runtimes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("bert_mask_renamed", set(BERT)),
        ("bert_names_exchanged", set(BERT)),
        ("bert_names_omitted", set(BERT)),
        ("bert_mask_default", set(BERT)),
    ],
)
def test_onnx(name: str, wanted: set[str], folder: Path) -> None:
    model, out = MODELS / f"inputs/{name}.onnx", folder / "fixed.onnx"
    assert naming_findings(model)
    result = wirelint("fix", model, "-o", out)
    assert result.exit_code == 0, result.output
    onnx.checker.check_model(out, full_check=True)
    before, after = run_onnx(model), run_onnx(out)
    assert set(after[0]) == wanted
    assert same(before[1], after[1])
    if "default" not in name:
        # OpenVINO makes a constant of an input that has a default.
        assert same(run_openvino(model)[1], run_openvino(out)[1])
    assert naming_findings(out) == set()


@pytest.mark.parametrize("name", ["bert_names_exchanged_ov", "bert_ports_without_names_ov"])
def test_ir(name: str, folder: Path) -> None:
    model, out = MODELS / f"inputs/{name}.xml", folder / "fixed.xml"
    assert naming_findings(model)
    result = wirelint("fix", model, "-o", out)
    assert result.exit_code == 0, result.output
    before, after = run_openvino(model), run_openvino(out)
    assert {name for names in after[0] for name in names} >= set(BERT)
    assert same(before[1], after[1])
    assert out.with_suffix(".bin").read_bytes() == model.with_suffix(".bin").read_bytes()
    assert naming_findings(out) == set()


def test_exchanged_names_change_places(folder: Path) -> None:
    model, out = MODELS / "inputs/bert_names_exchanged.onnx", folder / "fixed.onnx"
    fix(model, out)
    before, after = ([entry.name for entry in onnx.load(path).graph.input] for path in (model, out))
    assert sorted(before) == sorted(after)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 2


def test_default_is_gone_and_its_input_stays(folder: Path) -> None:
    model, out = MODELS / "inputs/bert_mask_default.onnx", folder / "fixed.onnx"
    fix(model, out)
    graph = onnx.load(out).graph
    assert "attention_mask" in {entry.name for entry in graph.input}
    assert "attention_mask" not in {tensor.name for tensor in graph.initializer}
    assert len(graph.initializer) == len(onnx.load(model).graph.initializer) - 1


def test_default_under_a_wrong_name(folder: Path) -> None:
    model = masked_encoder(("x.1", "onnx::Cast_1"))
    ones = onnx.helper.make_tensor("onnx::Cast_1", onnx.TensorProto.INT64, (2, 6), [1] * 12)
    model.graph.initializer.append(ones)
    path = saved(model, folder)
    fixed = fix(path, folder / "fixed.onnx")
    assert fixed.plan.required == ("onnx::Cast_1",)
    assert onnx.load(folder / "fixed.onnx") == masked_encoder(("input_ids", "attention_mask"))
    assert same(run_onnx(path)[1], run_onnx(folder / "fixed.onnx")[1])


@pytest.mark.parametrize(
    "name",
    [
        "clean/bert_classifier.onnx",
        "clean/bert_historical_names.onnx",
        "clean/vit.onnx",
        "clean/embedder_ov.xml",
        "clean/llama_with_past.onnx",
        "clean/t5_decoder.onnx",
    ],
)
def test_nothing_to_mend(name: str, folder: Path) -> None:
    out = folder / f"fixed{Path(name).suffix}"
    result = wirelint("fix", MODELS / name, "-o", out)
    assert result.exit_code == 0, result.output
    assert "nothing to change" in result.stdout
    assert list(folder.iterdir()) == []


# -- names inside the file -------------------------------------------------------------------------------------------------


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder.parent / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("names", [("x.1", "onnx::Cast_1"), ("attention_mask", "input_ids"), ("1", "attention_mask")])
def test_names_are_changed_wherever_they_are_read(names: tuple[str, str], capture: bool, folder: Path) -> None:
    model = saved(masked_encoder(names, capture=capture), folder)
    fixed = fix(model, folder / "fixed.onnx")
    assert fixed.written
    onnx.checker.check_model(folder / "fixed.onnx", full_check=True)
    after = run_onnx(folder / "fixed.onnx")
    assert after[0] == ["input_ids", "attention_mask"]
    assert same(run_onnx(model)[1], after[1])
    assert onnx.load(folder / "fixed.onnx") == masked_encoder(("input_ids", "attention_mask"), capture=capture)


def test_value_infos_and_annotations_follow(folder: Path) -> None:
    model = masked_encoder(("x.1", "mask.1"))
    model.graph.value_info.add().CopyFrom(model.graph.input[0])
    annotation = model.graph.quantization_annotation.add(tensor_name="x.1")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="one")
    fix(saved(model, folder), folder / "fixed.onnx")
    graph = onnx.load(folder / "fixed.onnx").graph
    assert graph.value_info[0].name == "input_ids"
    assert graph.quantization_annotation[0].tensor_name == "input_ids"
    assert graph.quantization_annotation[0].quant_parameter_tensor_names[0].value == "one"


def rename_value(model: onnx.ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]


def add_output(model: onnx.ModelProto, old: str, new: str) -> None:
    del old
    model.graph.output.add().CopyFrom(next(entry for entry in model.graph.input if entry.name == new))


@pytest.mark.parametrize(
    ("change", "old", "new", "said"),
    [
        (rename_value, "bias", "attention_mask", "a value inside the graph has this name"),
        (add_output, "", "onnx::Cast_1", "it is an output too"),
    ],
)
def test_refused(change: Callable[[onnx.ModelProto, str, str], None], old: str, new: str, said: str, folder: Path) -> None:
    model = masked_encoder(("x.1", "onnx::Cast_1"))
    change(model, old, new)
    path = saved(model, folder)
    result = wirelint("fix", path, "-o", folder / "fixed.onnx")
    assert result.exit_code == 1
    assert said in result.stdout
    assert 'names[1]: tokens["' in result.stdout
    assert run_onnx(folder / "fixed.onnx")[0] == ["input_ids", "onnx::Cast_1"]


def test_a_name_that_another_input_keeps(folder: Path) -> None:
    model = masked_encoder(("x.1", "onnx::Cast_1"))
    model.graph.input.add().CopyFrom(onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.FLOAT, ["n"]))
    model.graph.node.add(op_type="Relu", input=["input_ids"], output=["other"])
    model.graph.output.add().CopyFrom(onnx.helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, ["n"]))
    result = wirelint("fix", saved(model, folder), "-o", folder / "fixed.onnx", "--dry-run")
    assert "input 0 'x.1' can't be renamed to 'input_ids': another input has this name" in result.stdout
    assert list(folder.iterdir()) == []


# -- what others call the inputs -------------------------------------------------------------------------------------------


def test_the_tokenizer_decides_about_plain_names(folder: Path) -> None:
    model = saved(masked_encoder(("words", "valid_mask")), folder)
    assert fix(model, None).plan.empty
    (model.parent / "tokenizer_config.json").write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
    assert [entry.new for entry in fix(model, None).plan.renames] == ["input_ids", "attention_mask"]


def test_the_contract_goes_before_the_tokenizer(folder: Path) -> None:
    model = saved(masked_encoder(("x.1", "y.1")), folder)
    (model.parent / "tokenizer_config.json").write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
    contract = "wirelint-contract: 1\ninputs: [{names: [words], role: ids}, {names: [valid], role: mask}]\n"
    (model.parent / "model.contract.yaml").write_text(contract)
    assert [entry.new for entry in fix(model, None).plan.renames] == ["words", "valid"]


# -- the file --------------------------------------------------------------------------------------------------------------


def test_external_data_goes_along(folder: Path) -> None:
    path = folder.parent / "model.onnx"
    onnx.save(
        masked_encoder(("x.1", "y.1"), width=512), path, save_as_external_data=True, location="weights.data", size_threshold=0
    )
    beside = fix(path, path.with_name("fixed.onnx"))
    assert beside.written
    assert same(run_onnx(path)[1], run_onnx(path.with_name("fixed.onnx"))[1])
    fix(path, folder / "fixed.onnx")
    assert (folder / "weights.data").read_bytes() == (folder.parent / "weights.data").read_bytes()
    assert same(run_onnx(path)[1], run_onnx(folder / "fixed.onnx")[1])


def test_external_data_that_is_not_to_be_read_is_not_copied(folder: Path) -> None:
    path = folder.parent / "model.onnx"
    onnx.save(
        masked_encoder(("x.1", "y.1"), width=512), path, save_as_external_data=True, location="weights.data", size_threshold=0
    )
    (folder.parent / "weights.data").unlink()
    result = wirelint("fix", path, "-o", folder / "fixed.onnx")
    assert result.exit_code == 2
    assert "weights.data" in result.stderr
    assert list(folder.iterdir()) == []


def test_large_weights_are_not_held_in_memory(folder: Path) -> None:
    model = saved(masked_encoder(("x.1", "y.1"), width=1 << 21), folder)
    assert model.stat().st_size > 70_000_000
    tracemalloc.start()
    try:
        fix(model, folder / "fixed.onnx")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24_000_000
    tables = [onnx.load(path).graph.initializer[0].raw_data for path in (model, folder / "fixed.onnx")]
    assert tables[0] == tables[1]


def test_xml_changes_in_the_names_alone(folder: Path) -> None:
    model, out = MODELS / "inputs/bert_ports_without_names_ov.xml", folder / "fixed.xml"
    fix(model, out)
    before, after = model.read_bytes().splitlines(), out.read_bytes().splitlines()
    assert len(before) == len(after)
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert len(changed) == 3
    assert all(b"<port" in one and b" names=" not in one and b' names="' in other for one, other in changed)


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_overwriting(suffix: str, folder: Path) -> None:
    source = MODELS / ("inputs/bert_mask_renamed.onnx" if suffix == ".onnx" else "inputs/bert_names_exchanged_ov.xml")
    out = folder / f"fixed{suffix}"
    out.write_text("mine")
    result = wirelint("fix", source, "-o", out)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert out.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == [out.name]
    assert wirelint("fix", source, "-o", out, "--force").exit_code == 0
    assert naming_findings(out) == set()


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("inputs/bert_mask_renamed.onnx", "-", "not written to standard output"),
        ("inputs/bert_mask_renamed.onnx", "fixed.xml", "ends in .onnx"),
        ("inputs/bert_names_exchanged_ov.xml", "fixed.onnx", "must end in .xml"),
        ("inputs/bert_mask_renamed.onnx", ".", "is a folder"),
    ],
)
def test_a_place_where_no_copy_goes(source: str, out: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    result = wirelint("fix", MODELS / source, "-o", out, "--force")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
    assert sorted(folder.iterdir()) == before


def test_weights_of_another_model_are_not_overwritten(folder: Path) -> None:
    (folder / "fixed.bin").write_text("mine")
    result = wirelint("fix", MODELS / "inputs/bert_names_exchanged_ov.xml", "-o", folder / "fixed.xml")
    assert result.exit_code == 2
    assert (folder / "fixed.bin").read_text() == "mine"
    assert not (folder / "fixed.xml").exists()


def test_in_place(folder: Path) -> None:
    model = Path(shutil.copy(MODELS / "inputs/bert_mask_renamed.onnx", folder / "model.onnx"))
    assert wirelint("fix", model, "-o", model).exit_code == 2
    assert wirelint("fix", model, "-o", model, "--force").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["model.onnx"]
    assert set(run_onnx(model)[0]) == set(BERT)


def test_dry_run_writes_nothing(folder: Path) -> None:
    result = wirelint("fix", MODELS / "inputs/bert_mask_renamed.onnx", "-o", folder / "fixed.onnx", "--dry-run")
    assert "-> 'attention_mask' (the graph uses it as mask" in result.stdout
    assert "--dry-run" in result.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [("MODEL",), ("MODEL", "-o", "no/such/folder/fixed.onnx"), ("no-such.onnx", "-o", "x.onnx"), ("IR", "-o", "fixed.onnx")],
)
def test_usage(arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    known = {"MODEL": MODELS / "inputs/bert_mask_renamed.onnx", "IR": MODELS / "inputs/bert_names_exchanged_ov.xml"}
    result = wirelint("fix", *(known.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 100, 5000])
def test_damaged_models(cut: int, folder: Path) -> None:
    model = folder.parent / "model.onnx"
    model.write_bytes((MODELS / "inputs/bert_mask_renamed.onnx").read_bytes()[:-cut])
    result = wirelint("fix", model, "-o", folder / "fixed.onnx")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


# -- what can't be mended --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said", "added"),
    [
        ("mask/bert_mask_missing.onnx", "no input could carry a mask", "attention_mask"),
        ("stories/qa/qa_without_token_type_ids.onnx", "the segments were left out", "token_type_ids"),
        ("mask/bert_mask_missing_ov.xml", "no input could carry a mask", "attention_mask"),
        ("shape/bert_baked_batch.onnx", "batch size is fixed", ""),
        ("stories/embedder_unmasked_mean.onnx", "pools over padded positions", ""),
        ("inputs/bert_float_mask.onnx", "f32, and tokenizers make i64", ""),
    ],
)
def test_what_needs_another_export(name: str, said: str, added: str) -> None:
    result = wirelint("fix", MODELS / name, "--dry-run")
    assert result.exit_code == 1
    assert said in result.stdout
    export = "openvino.convert_model" if name.endswith(".xml") else "torch.onnx.export"
    assert export in result.stdout
    assert added in result.stdout


def outputs_of(code: str, tokens: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(folder)
    scope: dict[str, Any] = {"numpy": np, "onnxruntime": onnxruntime, "openvino": openvino, "tokens": tokens}
    exec(code, scope)
    found = scope["outputs"]
    return found[0]


@pytest.mark.parametrize(
    "name",
    [
        "bert_names_exchanged.onnx",
        "bert_names_omitted.onnx",
        "bert_mask_default.onnx",
        "bert_names_exchanged_ov.xml",
        "roberta_third_name_omitted.onnx",
    ],
)
def test_the_code_that_feeds_by_position_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS / "inputs" / name
    advice = fix(model, None).advice
    random = np.random.default_rng(0)
    tokens = {key: random.integers(0, 2, (2, 7)) for key in BERT}
    fed = outputs_of(advice.feeding, tokens, model.parent, monkeypatch)
    if name == "roberta_third_name_omitted.onnx":
        # The code makes the segments of a one-row table itself.
        return
    out = folder / f"fixed{model.suffix}"
    fix(model, out)
    if model.suffix == ".onnx":
        session = onnxruntime.InferenceSession(out)
        wanted = session.run(None, {entry.name: tokens[entry.name] for entry in session.get_inputs()})[0]
    else:
        wanted = openvino.Core().compile_model(out)(tokens)[0]
    assert np.array_equal(fed, wanted)
