"""Which canonical operators the operators of ONNX become."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx_rebuild import rebuild, run

from wirelint.dtypes import DType
from wirelint.formats.onnx import read
from wirelint.ops.vocabulary import VOCABULARY

MS = "com.microsoft"


@pytest.fixture
def lowered(tmp_path):
    """The graph of one node; operands are ``name``, ``name:type shape`` or arrays, which become initializers."""

    def lower(kind, *operands, outputs=1, domain="", opset=17, **attrs):
        names, inputs, constants = [], [], []
        for slot, operand in enumerate(operands):
            name = "" if operand is None else f"x{slot}"
            names.append(name)
            if isinstance(operand, np.ndarray):
                constants.append(numpy_helper.from_array(operand, name))
            elif operand is not None:
                inputs.append(helper.make_tensor_value_info(name, operand[0], operand[1]))
        results = [f"y{slot}" for slot in range(outputs)]
        declared = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
        graph = helper.make_graph(
            [helper.make_node(kind, names, results, domain=domain, **attrs)], "g", inputs, declared, constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)])
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return read(path).graph

    return lower


def real(*shape):
    return TensorProto.FLOAT, list(shape)


def whole(*shape):
    return TensorProto.INT64, list(shape)


def kinds(graph):
    return [op.kind for op in graph.ops]


def numbers(value):
    return value.constant.load().tolist()


class TestAttributesThatBecameOperands:
    @pytest.mark.parametrize(
        ("kind", "attrs", "slot", "expected"),
        [
            ("Squeeze", {"axes": [0]}, 1, [0]),
            ("Unsqueeze", {"axes": [0, 2]}, 1, [0, 2]),
            ("ReduceSum", {"axes": [1]}, 1, [1]),
            ("ReduceMean", {"axes": [-1]}, 1, [-1]),
            ("Split", {"split": [1, 3]}, 1, [1, 3]),
            ("Slice", {"starts": [1], "ends": [2]}, 2, [2]),
            ("Slice", {"starts": [1], "ends": [2], "axes": [0]}, 3, [0]),
            ("Pad", {"pads": [0, 1, 0, 1], "value": 0.5}, 1, [0, 1, 0, 1]),
            ("Pad", {"pads": [0, 1, 0, 1], "value": 0.5}, 2, 0.5),
            ("TopK", {"k": 2}, 1, [2]),
            ("Clip", {"max": 1.5}, 2, 1.5),
            ("Upsample", {"scales": [1.0, 2.0]}, 2, [1.0, 2.0]),
            ("Reshape", {"shape": [4, -1]}, 1, [4, -1]),
        ],
    )
    def test_are_small_constants(self, lowered, kind, attrs, slot, expected):
        (op,) = lowered(kind, real(4, 4), opset=9, **attrs).ops
        assert numbers(op.inputs[slot]) == expected
        assert op.inputs[slot].consumers == [(op, slot)]

    def test_absent_operands_before_them_stay_absent(self, lowered):
        (op,) = lowered("Clip", real(4), opset=9, max=1.5).ops
        assert op.inputs[1] is None

    @pytest.mark.parametrize("kind", ["ReduceMax", "ReduceSum", "ReduceMean"])
    def test_no_axes_means_all(self, lowered, kind):
        (op,) = lowered(kind, real(4, 4), opset=11).ops
        assert len(op.inputs) == 1
        assert op.attrs == {"keepdims": 1, "noop_with_empty_axes": 0}

    def test_bounds_of_clip_have_the_type_of_the_data(self, lowered):
        (op,) = lowered("Clip", (TensorProto.FLOAT16, [2]), opset=9, min=0.0).ops
        assert op.inputs[1].dtype is DType.F16


class TestVersions:
    @pytest.mark.parametrize(
        ("opset", "attrs", "axis", "coerce"),
        [
            (11, {}, 1, True),
            (11, {"axis": 2}, 2, False),
            (11, {"axis": -1}, -1, False),
            (13, {}, -1, False),
            (13, {"axis": 1}, 1, False),
        ],
    )
    def test_softmax(self, lowered, opset, attrs, axis, coerce):
        (op,) = lowered("Softmax", real(2, 3, 4), opset=opset, **attrs).ops
        assert op.attrs == {"axis": axis, "coerce_2d": coerce}

    def test_group_normalization(self, lowered):
        operands = [real("n", 6, "h"), real(6), real(6)]
        assert kinds(lowered("GroupNormalization", *operands, opset=21, num_groups=3)) == ["GroupNormalization"]

    def test_resize_of_opset_10_has_the_coordinates_of_upsample(self, lowered):
        (op,) = lowered("Resize", real(1, 1, 2, 2), np.ones(4, np.float32), opset=10).ops
        assert op.attrs["coordinate_transformation_mode"] == "asymmetric"
        assert op.inputs[1] is None

    def test_resize_leaves_empty_constants_out(self, lowered):
        empty = np.ones(0, np.float32)
        (op,) = lowered("Resize", real(1, 1, 2, 2), empty, empty, np.array([1, 1, 4, 4]), opset=13).ops
        assert op.inputs[1:3] == [None, None]
        assert numbers(op.inputs[3]) == [1, 1, 4, 4]


class TestMovement:
    def test_transpose_without_perm_reverses(self, lowered):
        (op,) = lowered("Transpose", real("a", "b", "c")).ops
        assert op.attrs["perm"] == (2, 1, 0)

    def test_reshape_with_zeros(self, lowered):
        for allow, copies in ((0, True), (1, False)):
            (op,) = lowered("Reshape", real(0, 4), np.array([0, 4]), allowzero=allow).ops
            assert op.attrs["zero_copies"] is copies

    def test_cast_like_needs_the_type_only(self, lowered):
        (op,) = lowered("CastLike", real(2), (TensorProto.INT32, [9])).ops
        assert (op.kind, op.attrs["dtype"], len(op.inputs)) == ("Cast", DType.I32, 1)

    def test_dropout_passes_its_data(self, lowered):
        graph = lowered("Dropout", real(2, "n"), outputs=2)
        assert kinds(graph) == ["Identity", "Shape", "ConstantOfShape"]
        assert graph.outputs[1].dtype is DType.BOOL

    def test_results_for_training_are_there(self, lowered):
        statistics = [real(3)] * 4
        graph = lowered("BatchNormalization", real(1, 3, 2), *statistics, outputs=3, opset=15)
        assert kinds(graph) == ["BatchNormalization", "Identity", "Identity"]


class TestGemm:
    def test_plain(self, lowered):
        graph = lowered("Gemm", real("n", 3), real(4, 3), real(4), transB=1)
        assert kinds(graph) == ["MatMul", "Add"]
        assert graph.ops[0].attrs == {"transpose_a": False, "transpose_b": True}
        assert graph.ops[-1].outputs[0] is graph.outputs[0]
        assert {op.origin.op_type for op in graph.ops} == {"Gemm"}

    def test_factors(self, lowered):
        graph = lowered("Gemm", real("n", 3), real(3, 4), real(4), alpha=2.0, beta=0.5)
        assert kinds(graph) == ["MatMul", "Mul", "Mul", "Add"]


class TestFusedAttention:
    WEIGHTS = np.zeros((8, 24), np.float32)

    def attention(self, lowered, mask, **attrs):
        graph = lowered("Attention", real("b", "s", 8), self.WEIGHTS, None, mask, domain=MS, num_heads=2, **attrs)
        return next(op for op in graph.ops if op.kind == "Attention")

    def test_raw_mask(self, lowered):
        op = self.attention(lowered, (TensorProto.INT32, ["b", "t"]), unidirectional=1, mask_filter_value=-5.0)
        assert op.attrs["causal"] == "bottom-right"
        assert op.attrs["mask_fill"] == -5.0
        unsqueezed = op.inputs[3].producer
        assert numbers(unsqueezed.inputs[1]) == [1, 2]
        assert unsqueezed.inputs[0].producer.attrs["dtype"] is DType.BOOL

    @pytest.mark.parametrize(("shape", "starts"), [(["b"], False), ([2], True)])
    def test_bounds(self, lowered, shape, starts):
        op = self.attention(lowered, (TensorProto.INT32, shape))
        assert op.operand(3) is None
        assert op.operand(6) is not None
        assert (op.operand(7) is not None) is starts

    def test_mask_of_unknown_rank_is_not_guessed(self, lowered):
        graph = lowered("Attention", real("b", "s", 8), self.WEIGHTS, None, (TensorProto.INT32, None), domain=MS, num_heads=2)
        assert kinds(graph)[-1] == "PackedAttention"

    def test_rank_of_a_computed_mask(self, tmp_path):
        """Optimisers leave intermediate shapes undeclared; the operators before the mask tell its rank."""
        nodes = [
            helper.make_node("Cast", ["m"], ["c"], to=TensorProto.INT32),
            helper.make_node("ReduceSum", ["c", "axes"], ["lengths"], keepdims=0),
            helper.make_node("Attention", ["x", "w", "", "lengths"], ["y"], domain=MS, num_heads=2),
        ]
        shapes = {"x": real("b", "s", 8), "m": whole("b", "s")}
        inputs = [helper.make_tensor_value_info(name, *declared) for name, declared in shapes.items()]
        constants = [numpy_helper.from_array(self.WEIGHTS, "w"), numpy_helper.from_array(np.array([1]), "axes")]
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", *real(None))], constants)
        (tmp_path / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())
        found = read(tmp_path / "model.onnx").graph
        attention = found.ops[-1]
        assert attention.operand(6).name == "lengths"
        assert attention.operand(7) is None


class TestOnnxAttention:
    QKV = (real(1, 2, 4, 8), real(1, 2, 4, 8), real(1, 2, 4, 8))

    def test_causal_without_a_cache(self, lowered):
        (op,) = lowered("Attention", *self.QKV, opset=23, is_causal=1).ops
        assert op.attrs["causal"] == "top-left"

    def test_causal_with_a_past(self, lowered):
        (op,) = lowered("Attention", *self.QKV, None, *self.QKV[:2], opset=23, is_causal=1, outputs=3).ops
        assert op.attrs["causal"] == "bottom-right"

    def test_causal_with_an_external_cache_is_written_out(self, lowered):
        graph = lowered("Attention", *self.QKV, None, None, None, whole(1), opset=24, is_causal=1)
        op = graph.ops[-1]
        assert op.attrs["causal"] == "none"
        assert op.inputs[3].dtype is DType.BOOL
        assert op.inputs[6] is graph.inputs[-1]


class TestPackedWeights:
    def test_matmul_nbits(self, lowered):
        packed, scales = np.zeros((6, 2, 8), np.uint8), np.ones((6, 2), np.float32)
        graph = lowered("MatMulNBits", real("n", 32), packed, scales, domain=MS, K=32, N=6, bits=4, block_size=16)
        (op,) = graph.ops
        weight = op.inputs[1].constant
        assert (op.kind, weight.shape, weight.dtype, weight.available) == ("MatMul", (32, 6), DType.F32, False)
        assert weight.load() is None

    def test_gather_block_quantized(self, lowered):
        packed, scales = np.zeros((10, 16), np.uint8), np.ones((10, 2), np.float16)
        graph = lowered("GatherBlockQuantized", packed, whole("b", "s"), scales, domain=MS, bits=4, block_size=16)
        (op,) = graph.ops
        assert (op.kind, op.inputs[0].constant.shape, op.inputs[0].dtype) == ("Gather", (10, 32), DType.F16)

    def test_packed_weights_that_are_no_constant(self, lowered):
        operands = [real("n", 32), (TensorProto.UINT8, [6, 2, 8]), real(6, 2)]
        assert kinds(lowered("MatMulNBits", *operands, domain=MS, K=32, N=6, bits=4, block_size=16)) == ["Opaque"]


LEFT_OUT = ("qk_matmul", "peephole", "batchwise")
"""What the canonical operators leave out, and what ONNX Runtime does not run."""


@functools.cache
def backend_cases():
    """The node tests that ship with the ``onnx`` package."""
    return [case for case in collect_testcases(None) if case.model is not None]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_backend_node_test_keeps_to_the_vocabulary(tmp_path):
    path = tmp_path / "model.onnx"
    assert len(backend_cases()) > 1000
    for case in backend_cases():
        path.write_bytes(case.model.SerializeToString())
        for op in read(path).graph.walk():
            signature = VOCABULARY[op.kind]
            assert set(op.attrs) <= set(signature.attributes), case.name
            assert len(op.inputs) <= len(signature.operands) or signature.operands[-1].endswith("*"), case.name
            assert all(value.producer is op for value in op.outputs), case.name
            for slot, value in enumerate(op.inputs):
                assert value is None or (op, slot) in value.consumers, case.name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "family",
    ["attention", "tensorscatter", "rotary", "rms_norm", "layer_norm", "group_norm", "softmax", "dft", "slice", "lstm", "gru"],
)
def test_backend_node_tests_keep_their_results(tmp_path, family):
    checked = 0
    for case in backend_cases():
        if not case.name.startswith(f"test_{family}") or any(word in case.name for word in LEFT_OUT):
            continue
        inputs, expected = case.data_sets[0]
        path = tmp_path / "model.onnx"
        path.write_bytes(case.model.SerializeToString())
        model = read(path)
        feed = {value.name: np.asarray(array) for value, array in zip(model.graph.inputs, inputs, strict=False)}
        if any(array.dtype.kind not in "fiub" or array.dtype == np.float16 for array in feed.values()):
            continue
        if any(op.kind == "Opaque" for op in model.graph.walk()):
            continue
        for found, wanted in zip(run(rebuild(model), feed), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3, err_msg=case.name)
        checked += 1
    assert checked
