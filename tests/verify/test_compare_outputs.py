"""Comparing outputs at real positions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from wirelint.shadow.labels import Layout as Labels
from wirelint.shadow.scenario import Scenario, Sequence
from wirelint.shadow.shapes import Sizes
from wirelint.verify.agreement import Difference, paths_for, tolerance
from wirelint.verify.compare import change, layout_of, worst
from wirelint.verify.paths import Path, default_path

REAL = np.array([[True, True, True, False, False], [True, False, False, False, False]])


def scenario(real: np.ndarray = REAL) -> Scenario:
    labels = Labels()
    made = Scenario("right", Sizes(batch=len(real)), len(real), labels)
    made.sequences.append(Sequence("ids", real.shape[1], real, labels.part("ids", padded=True)))
    return made


def test_only_real_positions_count() -> None:
    array = np.zeros((2, 5, 3), np.float32)
    layout = layout_of(array.shape, scenario(), 1)
    other = array.copy()
    other[0, 3:] = 7
    other[1, 1:] = 7
    assert all(np.array_equal(layout.row(array, row), layout.row(other, row)) for row in (0, 1))
    other[1, 0, 2] = 1
    assert not np.array_equal(layout.row(array, 1), layout.row(other, 1))


def test_positions_are_found_on_any_axis() -> None:
    array = np.arange(2 * 4 * 5).reshape(2, 4, 5)
    layout = layout_of(array.shape, scenario(), 2)
    assert layout.row(array, 0).shape == (3, 4)
    assert np.array_equal(layout.row(array, 1)[0], array[1, :, 0])


def test_rows_and_positions_on_one_axis() -> None:
    array = np.arange(10 * 2).reshape(10, 2)
    layout = layout_of(array.shape, scenario(), 0)
    assert np.array_equal(layout.row(array, 1), array[5:6])


def test_a_pooled_output_counts_as_a_whole() -> None:
    array = np.arange(6).reshape(2, 3)
    layout = layout_of(array.shape, scenario(), None)
    assert np.array_equal(layout.row(array, 1), array[1:2])


@pytest.mark.parametrize(("dtype", "units"), [(np.float32, 2**23), (np.float16, 2**10)])
def test_units_fit_the_type(dtype: type, units: int) -> None:
    found = change(np.array([[1, 2]], dtype), np.array([[1, 4]], dtype), row=3)
    assert found is not None
    assert found.relative == 1
    assert found.units == units
    assert (found.row, found.position, found.before, found.after) == (3, 0, 2, 4)


def test_nan_in_both_is_no_change_and_in_one_is_without_bound() -> None:
    nan, one = np.array([[np.nan, 1]]), np.array([[0.0, 1]])
    same, apart = change(nan, nan), change(nan, one)
    assert same is not None
    assert same.relative == 0
    assert apart is not None
    assert np.isinf(apart.relative)
    assert "nan" in str(apart)
    assert apart.as_dict()["relative"] == "inf"


def test_infinities_of_one_sign_are_the_same() -> None:
    found = change(np.array([[np.inf]]), np.array([[np.inf]]))
    assert found is not None
    assert found.relative == 0


def test_shapes_that_differ_can_not_be_compared() -> None:
    assert change(np.zeros((1, 2)), np.zeros((1, 3))) is None


def test_the_worst_of_several() -> None:
    small, large = change(np.array([[1.0]]), np.array([[1.1]])), change(np.array([[1.0]]), np.array([[2.0]]))
    assert small is not None
    assert large is not None
    assert worst([small, large]) is large


def test_an_ir_runs_on_openvino_and_onnx_on_its_own_runtime() -> None:
    assert default_path("openvino-ir").runtime == "openvino"
    assert default_path("onnx").runtime == "onnxruntime"


def test_half_precision_is_a_path_where_the_processor_has_it() -> None:
    plain = paths_for("onnx", ["FP32", "INT8"], ["onnxruntime", "openvino"])
    wide = paths_for("onnx", ["FP32", "BF16", "FP16"], ["onnxruntime", "openvino"])
    assert {path.precision for path in set(wide) - set(plain)} == {"bf16", "f16"}
    assert len({path.name for path in wide}) == len(wide)
    assert not [path for path in paths_for("openvino-ir", [], ["onnxruntime", "openvino"]) if path.runtime == "onnxruntime"]
    assert [path.level for path in paths_for("onnx", [], ["onnxruntime"])] == ["disabled", "basic", "extended", "all"]


def test_coarser_types_are_allowed_more() -> None:
    f32, bf16 = Path("openvino", precision="f32"), Path("openvino", precision="bf16")
    assert tolerance("fp32", f32, f32) < tolerance("fp16", f32) < tolerance("fp32", f32, bf16)


def test_a_difference_beyond_rounding_is_told() -> None:
    near, far = change(np.array([[1.0]]), np.array([[1.0001]])), change(np.array([[1.0]]), np.array([[1.1]]))
    entry = Difference("out", "one", "other", near, 1e-3)
    assert not entry.beyond
    assert dataclasses.replace(entry, change=far).beyond
    assert dataclasses.replace(entry, change=None).beyond
