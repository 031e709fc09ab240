"""Constants come from the ``.bin`` beside the file as OpenVINO stores them, late, and never beyond the file's end."""

from __future__ import annotations

import re

import numpy as np
import openvino as ov
import openvino.opset16 as op
import pytest

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.formats.openvino import read

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n"


def save(folder, *constants):
    model = ov.Model([op.result(constant) for constant in constants], [], "m")
    path = folder / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    return path


def loaded(path):
    return [value.constant.load() for value in read(path).graph.outputs]


@pytest.mark.parametrize(
    ("stored", "dtype", "values"),
    [
        ("f64", DType.F64, [1.5, -2.25]),
        ("f32", DType.F32, [1.5, -2.25]),
        ("f16", DType.F16, [1.5, -2.25, 65504]),
        ("bf16", DType.BF16, [1.5, -2.25]),
        ("f8e4m3", DType.F8E4M3, [1.5, -2.0, 448]),
        ("f8e5m2", DType.F8E5M2, [1.5, -2.0]),
        ("f8e8m0", DType.F8E8M0, [1.0, 2.0, 0.5]),
        ("f4e2m1", DType.F4E2M1, [1.0, -6.0, 0.5]),
        ("nf4", DType.NF4, [-1.0, 0.0, 1.0, 0.5626170039176941, -0.28444138169288635]),
        ("i64", DType.I64, [-(2**62), 3]),
        ("i32", DType.I32, [-5, 3]),
        ("i16", DType.I16, [-5, 3]),
        ("i8", DType.I8, [-128, 3]),
        ("i4", DType.I4, [-1, 2, -8, 7, 0]),
        ("u64", DType.U64, [2**63, 3]),
        ("u32", DType.U32, [2**31, 3]),
        ("u16", DType.U16, [5, 3]),
        ("u8", DType.U8, [255, 3]),
        ("u6", DType.U6, [1, 2, 33, 44, 5]),
        ("u4", DType.U4, [1, 2, 15]),
        ("u3", DType.U3, [1, 2, 3, 4, 5, 6, 7, 0, 5]),
        ("u2", DType.U2, [1, 2, 3, 0, 3]),
        ("u1", DType.U1, [1, 0, 0, 1, 1, 1, 0, 1, 1, 0]),
        ("boolean", DType.BOOL, [1, 0, 1]),
    ],
)
def test_every_element_type_unpacks(stored, dtype, values, tmp_path):
    constant = ov.op.Constant(getattr(ov.Type, stored), ov.Shape([len(values)]), values)
    model = read(save(tmp_path, constant))
    tensor = model.graph.outputs[0].constant
    assert model.problems == ()
    assert (tensor.dtype, tensor.shape, tensor.available) == (dtype, (len(values),), True)
    array = tensor.load()
    assert array.dtype == dtype.numpy
    assert array.astype(np.float64).tolist() == [float(value) for value in values]


def test_strings_are_decoded_on_request(tmp_path):
    words = np.array([["ab", ""], ["cdé", "x"]])
    tensor = read(save(tmp_path, ov.op.Constant(ov.Tensor(words)))).graph.outputs[0].constant
    assert tensor.dtype is DType.STRING
    assert tensor.load() is None
    assert tensor.fetch().tolist() == words.tolist()


def test_shapes_and_scalars(tmp_path):
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(7), np.zeros((0, 4), np.int32)]
    for got, expected in zip(loaded(save(tmp_path, *(op.constant(array) for array in arrays))), arrays, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.shape == expected.shape


def test_compressed_weights_stay_a_constant_behind_a_cast(tmp_path):
    x = op.parameter([2, 3], np.float32, name="x")
    model = ov.Model([op.matmul(x, op.constant(np.full((3, 4), 0.1, np.float32)), False, False)], [x], "m")
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=True)
    graph = read(tmp_path / "model.xml").graph
    cast = next(node for node in graph.ops if node.kind == "Cast")
    assert cast.inputs[0].constant.dtype is DType.F16
    assert cast.attrs["dtype"] is DType.F32
    assert graph.ops[-1].inputs[1] is cast.outputs[0]


def three(folder):
    return save(folder, *(op.constant(np.full(4, at, np.float32)) for at in (1, 2, 3)))


def in_file_order(model):
    return [value.constant for value in sorted(model.graph.outputs, key=lambda value: value.origin.line)]


def test_a_missing_bin_is_said_once(tmp_path):
    path = three(tmp_path)
    path.with_suffix(".bin").unlink()
    model = read(path)
    assert [problem.rule for problem in model.problems] == ["missing-weights"]
    assert "model.bin" in model.problems[0].message
    assert all(not value.constant.available and value.constant.load() is None for value in model.graph.outputs)
    assert model.graph.outputs[0].shape == (4,)


def test_a_bin_that_is_an_lfs_pointer_is_said_once(tmp_path):
    path = three(tmp_path)
    path.with_suffix(".bin").write_bytes(LFS)
    model = read(path)
    assert [problem.rule for problem in model.problems] == ["lfs-pointer"]
    assert not any(value.constant.available for value in model.graph.outputs)


def test_a_model_without_constants_needs_no_bin(tmp_path):
    x = op.parameter([2], np.float32, name="x")
    ov.serialize(ov.Model([op.relu(x)], [x], "m"), tmp_path / "model.xml")
    (tmp_path / "model.bin").unlink(missing_ok=True)
    assert read(tmp_path / "model.xml").problems == ()


def test_a_truncated_bin_loses_only_what_is_beyond_its_end(tmp_path):
    path = three(tmp_path)
    held = path.with_suffix(".bin")
    held.write_bytes(held.read_bytes()[:40])
    model = read(path)
    assert [problem.rule for problem in model.problems] == ["weights-out-of-bounds"]
    assert model.problems[0].line is not None
    assert [tensor.available for tensor in in_file_order(model)] == [True, True, False]
    assert in_file_order(model)[1].load().tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("offset", "-4"),
        ("offset", "1e3"),
        ("offset", "999999999999999999"),
        ("offset", "9" * 400),
        ("size", "-16"),
        ("size", "sixteen"),
        ("size", "12"),
        ("size", "400"),
        ("shape", "5"),
        ("shape", "1000000000, 1000000000, 1000000000"),
    ],
)
def test_what_disagrees_is_a_problem_and_not_an_allocation(attribute, value, tmp_path):
    path = three(tmp_path)
    text = re.sub(rf' {attribute}="[^"]*"', f' {attribute}="{value}"', path.read_text(), count=1)
    path.write_text(text)
    model = read(path)
    assert [problem.rule for problem in model.problems] == ["weights-out-of-bounds"]
    damaged, whole, _ = in_file_order(model)
    assert not damaged.available
    assert damaged.load(limit=1 << 100) is None
    assert whole.load().tolist() == [2, 2, 2, 2]


def test_a_bin_that_shrinks_after_reading_is_an_error_when_loaded(tmp_path):
    path = three(tmp_path)
    model = read(path)
    path.with_suffix(".bin").write_bytes(b"1234")
    with pytest.raises(ModelFileError) as caught:
        in_file_order(model)[2].load()
    assert caught.value.rule == "weights-out-of-bounds"


def test_reading_opens_no_weights(tmp_path):
    path = three(tmp_path)
    model = read(path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(ModelFileError, match=r"model\.bin"):
        model.graph.outputs[0].constant.load()


def test_a_contradicting_table_of_strings_is_an_error(tmp_path):
    path = save(tmp_path, ov.op.Constant(ov.Tensor(np.array(["ab", "cd"]))))
    held = bytearray(path.with_suffix(".bin").read_bytes())
    held[0:4] = (2**31 - 1).to_bytes(4, "little")
    path.with_suffix(".bin").write_bytes(held)
    with pytest.raises(ModelFileError) as caught:
        read(path).graph.outputs[0].constant.fetch()
    assert caught.value.rule == "weights-out-of-bounds"
