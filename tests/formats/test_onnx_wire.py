"""The wire walk against ``onnx.load``, and against files that are no models."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from wirelint.errors import ModelFileError
from wirelint.formats.onnx import read
from wirelint.formats.onnx.wire import read_skeleton
from wirelint.graph import Model

RANDOM = np.random.default_rng(3)


def value(name, shape=None, number=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, number, shape)


def model_of(nodes, initializers=(), outputs=("y",), **kwargs):
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 4])], [value(name) for name in outputs], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, **kwargs)


def add(constant, result="y"):
    return helper.make_node("Add", ["x", constant], [result])


def large(name, dtype=np.float32):
    return numpy_helper.from_array(RANDOM.normal(size=(300, 4)).astype(dtype), name)


def nested_model():
    """Large tensors in every place that may hold one."""
    branch = helper.make_graph([helper.make_node("Add", ["x", "held"], ["r"])], "branch", [], [value("r")], [large("held")])
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(RANDOM.normal(size=400).astype(np.float32), "sparse"),
        numpy_helper.from_array(np.arange(0, 1200, 3), "at"),
        [300, 4],
    )
    function = helper.make_function(
        "local",
        "f",
        ["a"],
        ["b"],
        [
            helper.make_node("Constant", [], ["c"], value=large("")),
            helper.make_node("Add", ["a", "c"], ["b"]),
        ],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        helper.make_node("Constant", [], ["k"], value=large("k")),
        helper.make_node("If", ["flag"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["i", "k"], ["s"]),
        helper.make_node("Add", ["s", "sparse"], ["t"]),
        helper.make_node("f", ["t"], ["y"], domain="local"),
    ]
    model = model_of(nodes, [numpy_helper.from_array(np.array(True), "flag")], functions=[function])
    model.graph.sparse_initializer.append(sparse)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def tensors(message):
    """Every TensorProto in a message, in order."""
    found, stack = [], [message]
    while stack:
        current = stack.pop()
        if isinstance(current, TensorProto):
            found.append(current)
        for field, content in current.ListFields():
            if field.message_type is not None:
                stack.extend(content if not hasattr(content, "ListFields") else [content])
    return found


def write(tmp_path, model, name="model.onnx"):
    path = tmp_path / name
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def refused(path, rule="unreadable"):
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert caught.value.rule == rule
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return caught.value.reason


class TestSkeleton:
    @pytest.mark.filterwarnings("ignore:Ignoring unknown external data key")
    def test_is_the_model_once_the_references_are_followed(self, tmp_path):
        path = write(tmp_path, nested_model())
        skeleton = read_skeleton(path)
        left = [tensor for tensor in tensors(skeleton) if tensor.data_location == TensorProto.EXTERNAL]
        assert len(left) == 6
        assert skeleton.ByteSize() < 3000 < path.stat().st_size
        for tensor in left:
            external_data_helper.load_external_data_for_tensor(tensor, str(tmp_path))
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
        expected = onnx.load(path)
        for tensor in tensors(expected):
            tensor.ClearField("data_location")
        assert skeleton == expected

    @pytest.mark.parametrize(
        ("number", "array"),
        [
            (TensorProto.FLOAT, RANDOM.normal(size=600).astype(np.float32)),
            (TensorProto.DOUBLE, RANDOM.normal(size=600)),
            (TensorProto.INT64, RANDOM.integers(-(2**62), 2**62, size=600)),
            (TensorProto.INT32, RANDOM.integers(-(2**31), 2**31, size=600).astype(np.int32)),
            (TensorProto.UINT64, RANDOM.integers(0, 2**63, size=600).astype(np.uint64)),
            (TensorProto.UINT32, RANDOM.integers(0, 2**32, size=600).astype(np.uint32)),
            (TensorProto.INT8, RANDOM.integers(-128, 128, size=1200).astype(np.int8)),
            (TensorProto.UINT16, RANDOM.integers(0, 2**16, size=600).astype(np.uint16)),
            (TensorProto.BOOL, RANDOM.integers(0, 2, size=1200).astype(bool)),
            (TensorProto.FLOAT16, RANDOM.normal(size=600).astype(np.float16)),
            (TensorProto.BFLOAT16, RANDOM.normal(size=600).astype(ml_dtypes.bfloat16)),
            (TensorProto.COMPLEX64, (RANDOM.normal(size=600) + 1j).astype(np.complex64)),
            (TensorProto.FLOAT8E4M3FN, RANDOM.normal(size=1200).astype(ml_dtypes.float8_e4m3fn)),
            (TensorProto.INT4, RANDOM.integers(-8, 8, size=2401).astype(np.int8)),
            (TensorProto.UINT4, RANDOM.integers(0, 16, size=2400).astype(np.uint8)),
        ],
    )
    @pytest.mark.parametrize("raw", [True, False])
    @pytest.mark.parametrize("count", [5, None], ids=["inline", "on disk"])
    def test_elements_of_every_type_and_field(self, tmp_path, number, array, raw, count):
        array = array[:count]
        proto = helper.make_tensor("c", number, array.shape, packed(number, array) if raw else array, raw=raw)
        path = write(tmp_path, model_of([helper.make_node("Identity", ["c"], ["y"])], [proto]))
        held = read(path).graph.outputs[0].producer.inputs[0].constant
        found = held.load()
        assert found.dtype == held.dtype.numpy
        np.testing.assert_array_equal(found.astype(array.dtype), array)

    def test_weights_take_no_memory(self, tmp_path):
        """A file of 1.2 GB, sparse on disk; another process reads it, so that the peak is its own."""
        size = 1200 << 20
        tensor = (
            TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[size // 4]).SerializeToString() + b"\x4a" + varint(size)
        )
        graph = model_of([add("c")]).graph.SerializeToString() + b"\x2a" + varint(len(tensor) + size) + tensor
        head = b"\x08\x09\x42\x02\x10\x11\x3a" + varint(len(graph) + size) + graph
        path = tmp_path / "big.onnx"
        path.write_bytes(head)
        os.truncate(path, len(head) + size)
        before, after, shape, loaded = subprocess.run(
            [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(after) - int(before) < 8 << 10
        assert (shape, loaded) == (f"({size // 4},)", "None")


MEASURE = """
import resource, sys
from pathlib import Path
from wirelint.formats.onnx import read
from wirelint.formats.onnx.proto import parse_model

parse_model(bytes.fromhex("0809"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
model = read(Path(sys.argv[1]))
constant = model.graph.ops[0].inputs[1].constant
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, constant.shape, constant.load())
"""


def packed(number, array):
    if number in (TensorProto.INT4, TensorProto.UINT4):
        codes = np.append(array.view(np.uint8) & 15, [0] * (array.size % 2)).astype(np.uint8)
        return (codes[::2] | codes[1::2] << 4).tobytes()
    return array.tobytes()


def zipped():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("model.onnx", b"x" * 100)
    return data.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 12345\n"


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"", "empty"),
            (b"hello, this is no model\n" * 9, "text"),
            (b"<html><body>404</body></html>", "HTML"),
            (b'{"a": 1}', "JSON"),
            (zipped(), "zip"),
            (gzip.compress(b"x" * 100, mtime=0), "gzip"),
            (b"\0" * 5000, "zero"),
            (RANDOM.bytes(5000), "no ONNX model"),
            (b"\x08\x09\x12\x04test", "no graph"),
            (b"\x0b" * 40, "wire type 3"),
            (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "does not end"),
            (b"\x3a\xff\xff\xff\xff\x7f" + b"\0" * 9, "longer than"),
        ],
    )
    def test_are_told(self, tmp_path, data, says):
        assert says in refused(write(tmp_path, data))

    def test_lfs_pointer(self, tmp_path):
        assert "git lfs pull" in refused(write(tmp_path, LFS), "lfs-pointer")

    def test_folder_and_missing_file(self, tmp_path):
        refused(tmp_path)
        refused(tmp_path / "absent.onnx")

    @pytest.mark.parametrize("levels", [40, 10_000])
    def test_deep_nesting(self, tmp_path, levels):
        """A graph in an attribute of a node of a graph, and so on; three messages a level."""
        data = b""
        for _ in range(levels):
            for tag in (b"\x32", b"\x2a", b"\x0a"):
                data = tag + length(data) + data
        refused(write(tmp_path, b"\x08\x09\x3a" + length(data) + data))

    def test_elements_twice_in_one_tensor(self, tmp_path):
        tensor = b"\x08\x02\x10\x01" + (b"\x4a" + length(b"\0" * 2048) + b"\0" * 2048) * 2
        graph = b"\x2a" + length(tensor) + tensor
        assert "twice" in refused(write(tmp_path, b"\x3a" + length(graph) + graph))


def length(data):
    return varint(len(data))


def varint(size):
    encoded = bytearray()
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*encoded, size])


NESTED = nested_model().SerializeToString()


class TestDamagedFiles:
    @settings(max_examples=150, deadline=None)
    @given(st.integers(0, len(NESTED) - 1))
    def test_truncated(self, tmp_path_factory, end):
        self.is_read_or_refused(tmp_path_factory, NESTED[:end])

    @settings(max_examples=300, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, len(NESTED) - 1), st.integers(0, 255)), min_size=1, max_size=6))
    def test_changed_bytes(self, tmp_path_factory, changes):
        data = bytearray(NESTED)
        for at, byte in changes:
            data[at] = byte
        self.is_read_or_refused(tmp_path_factory, bytes(data))

    @settings(max_examples=300, deadline=None)
    @given(st.data())
    def test_changed_structure(self, tmp_path_factory, data):
        """Most bytes of the other model are weights; here every change falls on structure or a small constant."""
        changed = bytearray(SMALL)
        for _ in range(data.draw(st.integers(1, 5))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        self.is_read_or_refused(tmp_path_factory, bytes(changed))

    def is_read_or_refused(self, factory, data):
        path = factory.getbasetemp() / "damaged.onnx"
        path.write_bytes(data)
        with contextlib.suppress(ModelFileError):
            model = read(path)
            assert isinstance(model, Model)
            for op in model.graph.walk():
                for operand in op.inputs:
                    if operand is not None and operand.constant is not None:
                        with contextlib.suppress(ModelFileError):
                            operand.constant.load()


def small_model():
    loop = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Relu", ["s"], ["t"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s")],
        [value("on", [], TensorProto.BOOL), value("t")],
    )
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends"], ["a"]),
        helper.make_node("Attention", ["a", "w", "", "m"], ["b", "p"], domain="com.microsoft", num_heads=2),
        helper.make_node("Loop", ["", "", "b"], ["c"], body=loop),
        helper.make_node("MatMulNBits", ["c", "q", "s"], ["d"], domain="com.microsoft", K=16, N=4, bits=4, block_size=16),
        helper.make_node("Softmax", ["d"], ["y"], axis=-1),
    ]
    initializers = [
        numpy_helper.from_array(np.array([0]), "starts"),
        helper.make_tensor("ends", TensorProto.INT64, [1], [3]),
        numpy_helper.from_array(np.zeros((4, 12), np.float32), "w"),
        numpy_helper.from_array(np.ones((2, 3), np.int32), "m"),
        numpy_helper.from_array(np.zeros((4, 1, 8), np.uint8), "q"),
        numpy_helper.from_array(np.zeros((4, 1), np.float32), "s"),
    ]
    return model_of(nodes, initializers)


SMALL = small_model().SerializeToString()


def test_reading_does_not_import_the_onnx_package(tmp_path):
    path = write(tmp_path, small_model())
    script = (
        "import sys; from pathlib import Path; from wirelint.formats.onnx import read; read(Path(sys.argv[1]));"
        "print([name for name in ('onnx', 'onnxruntime', 'networkx') if name in sys.modules]);"
        "import onnx; from wirelint.formats.onnx.wire import read_skeleton;"
        "print(isinstance(read_skeleton(Path(sys.argv[1])), onnx.ModelProto))"
    )
    found = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["[]", "True"]
