"""The process that runs models: it may crash, hang and run out of memory, and nothing of that reaches the caller."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper

from wirelint.verify.paths import Path as ExecutionPath
from wirelint.verify.process import Feed, Limits, RunError, Runner, Worker
from wirelint.verify.protocol import Message, read_message, write_message

PATH = ExecutionPath("onnxruntime", level="all")
SAMPLES = Path(__file__).parents[2] / "sample_models"


def model(path: Path, node: onnx.NodeProto, inputs: list[str], shape: list[int | str]) -> str:
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def fed(*arrays: np.ndarray) -> list[Feed]:
    return [Feed((name,), "other", array) for name, array in zip("ab", arrays, strict=False)]


def adder(tmp_path: Path) -> str:
    return model(tmp_path / "add.onnx", helper.make_node("Add", ["a", "b"], ["out"]), ["a", "b"], ["n"])


def test_a_run_gives_the_outputs(tmp_path: Path) -> None:
    with Worker(Limits()) as worker:
        (out,) = Runner(worker, adder(tmp_path), PATH).run(fed(np.ones(3, np.float32), np.full(3, 2, np.float32)))
    assert out is not None
    assert out.tolist() == [3, 3, 3]


def test_a_refusal_is_one_line_and_the_process_goes_on(tmp_path: Path) -> None:
    with Worker(Limits()) as worker:
        runner = Runner(worker, adder(tmp_path), PATH)
        with pytest.raises(RunError) as error:
            runner.run(fed(np.ones(3, np.float32), np.ones(2, np.float32)))
        assert "\n" not in str(error.value)
        assert runner.run(fed(np.ones(3, np.float32), np.ones(3, np.float32)))


def test_a_crash_is_reported_and_the_next_run_starts_anew(tmp_path: Path) -> None:
    with Worker(Limits()) as worker:
        runner = Runner(worker, adder(tmp_path), PATH)
        arrays = fed(np.ones(3, np.float32), np.ones(3, np.float32))
        runner.run(arrays)
        process = worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGSEGV)
        with pytest.raises(RunError, match="SIGSEGV"):
            runner.run(arrays)
        assert runner.run(arrays)


def test_a_model_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with Worker(Limits(seconds=1.0)) as worker:
        runner = Runner(worker, adder(tmp_path), PATH)
        arrays = fed(np.ones(3, np.float32), np.ones(3, np.float32))
        worker.limits = Limits()
        runner.run(arrays)
        worker.limits = Limits(seconds=0.5)
        process = worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(RunError, match=r"more than 0\.5 s"):
            runner.run(arrays)
        assert time.monotonic() - start < 10


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on data segments")
def test_a_model_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Expand", ["a", "shape"], ["out"])
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "huge.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    with Worker(Limits(memory=2 << 30)) as worker:
        runner = Runner(worker, str(path), PATH)
        wanted = Feed(("shape",), "other", np.array([1 << 31]))
        with pytest.raises(RunError):
            runner.run([*fed(np.ones(1, np.float32)), wanted])


def test_what_lies_in_the_working_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("import pathlib; pathlib.Path('imported').touch()")
    (tmp_path / "onnxruntime.py").write_text("import pathlib; pathlib.Path('imported').touch()")
    monkeypatch.chdir(tmp_path)
    with Worker(Limits()) as worker:
        assert Runner(worker, adder(tmp_path), PATH).run(fed(np.ones(3, np.float32), np.ones(3, np.float32)))
    assert not (tmp_path / "imported").exists()


def test_openvino_runs_with_shapes_made_static() -> None:
    pytest.importorskip("openvino")
    path = str(SAMPLES / "clean/mlp.onnx")
    shapes = {
        value.name: [2, *(dim.dim_value for dim in value.type.tensor_type.shape.dim[1:])]
        for value in onnx.load(path).graph.input
    }
    feed = [Feed((name,), "other", np.ones(shape, np.float32)) for name, shape in shapes.items()]
    with Worker(Limits()) as worker:
        free = Runner(worker, path, ExecutionPath("openvino", precision="f32")).run(feed)[0]
        static = Runner(worker, path, ExecutionPath("openvino", precision="f32", static=True)).run(feed)[0]
        plain = Runner(worker, path, PATH).run(feed)[0]
    assert free is not None
    assert static is not None
    assert plain is not None
    assert free.shape == static.shape == plain.shape
    np.testing.assert_allclose(free, static, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(free, plain, rtol=1e-4, atol=1e-5)


def test_no_process_is_left(tmp_path: Path) -> None:
    with Worker(Limits()) as worker:
        Runner(worker, adder(tmp_path), PATH).run(fed(np.ones(1, np.float32), np.ones(1, np.float32)))
        process = worker._process
    assert process is not None
    assert process.poll() is not None
    assert threading.active_count() < 10


DTYPES = st.sampled_from([np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_, ml_dtypes.bfloat16])


@given(shape=hnp.array_shapes(min_dims=0, min_side=0, max_side=4), dtype=DTYPES, words=st.text())
def test_messages_arrive_as_they_were_sent(shape: tuple[int, ...], dtype: type, words: str) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    stream = io.BytesIO()
    write_message(stream, Message({"words": words}, [array, None, array.T]))
    stream.seek(0)
    found = read_message(stream)
    assert found is not None
    assert found.header == {"words": words}
    first, missing, turned = found.arrays
    assert missing is None
    assert first is not None
    assert turned is not None
    assert first.dtype == array.dtype
    assert np.array_equal(first, array)
    assert np.array_equal(turned, array.T)


@given(cut=st.integers(0, 60))
def test_a_message_that_ends_early_is_none(cut: int) -> None:
    stream = io.BytesIO()
    write_message(stream, Message({"ok": True}, [np.ones(8)]))
    whole = stream.getvalue()
    assert read_message(io.BytesIO(whole[: min(cut, len(whole) - 1)])) is None


def test_a_header_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        read_message(io.BytesIO((1 << 40).to_bytes(8, "little")))
