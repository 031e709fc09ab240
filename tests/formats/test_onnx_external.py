"""External data: read where it is sound, reported where it is not, and never in the way of reading the graph."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from wirelint.formats.onnx import read

WEIGHTS = np.arange(24, dtype=np.float32).reshape(6, 4)


def external(name, location, *, shape=(6, 4), **entries):
    proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **entries}.items():
        proto.external_data.add(key=key, value=str(text))
    return proto


def write(tmp_path, *tensors):
    chain, nodes = "x", []
    for index, tensor in enumerate(tensors):
        nodes.append(helper.make_node("Add", [chain, tensor.name], [f"y{index}"]))
        chain = f"y{index}"
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6, 4]) for name in ("x", chain)]
    model = helper.make_model(helper.make_graph(nodes, "g", shapes[:1], shapes[1:], list(tensors)))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def constants(model):
    return [op.inputs[1].constant for op in model.graph.ops]


def only_problem(model):
    (problem,) = model.problems
    assert "\n" not in problem.message
    return problem


def test_data_are_read_from_where_they_are(tmp_path):
    weights = numpy_helper.from_array(np.tile(WEIGHTS, (100, 1)), "w")
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", shapes[:1], shapes[1:], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=True, location="model.data")
    model = read(path)
    (held,) = constants(model)
    assert not model.problems
    assert held.location == "model.data"
    np.testing.assert_array_equal(held.load(), np.tile(WEIGHTS, (100, 1)))


def test_offsets_and_folders(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"\1" * 8 + WEIGHTS.tobytes())
    path = write(tmp_path, external("a", "sub/w.bin", offset=8, length=96), external("b", "./sub/w.bin", offset=8))
    model = read(path)
    assert not model.problems
    for held in constants(model):
        np.testing.assert_array_equal(held.load(), WEIGHTS)


def test_missing_file_is_one_problem(tmp_path):
    model = read(write(tmp_path, external("a", "gone.bin"), external("b", "gone.bin", offset=96)))
    problem = only_problem(model)
    assert problem.rule == "missing-weights"
    assert problem.subject == "gone.bin"
    assert "2 tensors" in problem.message
    for held in constants(model):
        assert not held.available
        assert held.shape == (6, 4)
        assert held.load() is None
    assert [op.kind for op in model.graph.ops] == ["Add", "Add"]


def test_pointer_instead_of_data(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 96\n")
    assert only_problem(read(write(tmp_path, external("a", "w.bin")))).rule == "lfs-pointer"


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../w.bin", "sub/../../w.bin", "C:\\w.bin", "..\\w.bin", "C:w.bin", "", "a\0b"]
)
def test_paths_that_lead_out(tmp_path, location):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    model = read(write(folder, external("a", location)))
    assert only_problem(model).rule == "external-path-escape"
    assert not constants(model)[0].available


def test_links_that_lead_out(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    model = read(write(folder, external("a", "link.bin"), external("b", "up/w.bin"), external("c", "loop")))
    rules = {problem.subject: problem.rule for problem in model.problems}
    assert rules["link.bin"] == rules["up/w.bin"] == "external-path-escape"
    assert rules["loop"] == "missing-weights"


def test_model_cache_of_links_is_read(tmp_path):
    """A cache keeps files under their hashes and links to them from a folder per revision; that is no escape."""
    blobs, revision = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    revision.mkdir(parents=True)
    (blobs / "bb").write_bytes(WEIGHTS.tobytes())
    write(blobs, external("a", "w.bin")).rename(blobs / "aa")
    (revision / "model.onnx").symlink_to(blobs / "aa")
    (revision / "w.bin").symlink_to(blobs / "bb")
    model = read(revision / "model.onnx")
    assert not model.problems
    np.testing.assert_array_equal(constants(model)[0].load(), WEIGHTS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "w.bin")
    assert only_problem(read(write(tmp_path, external("a", "w.bin")))).rule == "missing-weights"


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 1},
        {"offset": -1},
        {"length": 95},
        {"length": -5},
        {"length": 200},
        {"offset": 2**70},
        {"offset": "some"},
        {"length": "9" * 4000},
        {"shape": (6, 5)},
        {"shape": (2**40, 2**40)},
    ],
)
def test_bytes_outside_the_file(tmp_path, entries):
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    model = read(write(tmp_path, external("a", "w.bin", **entries)))
    assert only_problem(model).rule == "weights-out-of-bounds"
    assert not constants(model)[0].available


def test_inline_bytes_that_do_not_fit_the_shape(tmp_path):
    short = TensorProto(name="a", data_type=TensorProto.FLOAT, dims=[6, 4], raw_data=b"\0" * 95)
    long = TensorProto(name="b", data_type=TensorProto.FLOAT, dims=[6, 4], float_data=[0.0] * 25)
    none = TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[6, 4])
    large = TensorProto(name="d", data_type=TensorProto.FLOAT, dims=[6, 4], raw_data=b"\0" * 5000)
    model = read(write(tmp_path, short, long, none, large))
    problem = only_problem(model)
    assert problem.rule == "weights-out-of-bounds"
    assert "'a' (and 3 more)" in problem.message
    assert [held.available for held in constants(model)] == [False] * 4


def test_file_that_shrinks_after_it_was_read(tmp_path):
    from wirelint.errors import ModelFileError

    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (held,) = constants(read(write(tmp_path, external("a", "w.bin"))))
    (tmp_path / "w.bin").write_bytes(b"")
    with pytest.raises(ModelFileError) as caught:
        held.load()
    assert caught.value.rule == "weights-out-of-bounds"
