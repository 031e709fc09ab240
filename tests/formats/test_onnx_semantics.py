"""What a lowering yields computes the same numbers as the operator that it stands for, in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_rebuild import rebuild, run, save

from wirelint.formats.onnx import read

MS = "com.microsoft"
NARROW = (-60, 60)
"""Eight-bit weights whose pairwise products with bytes do not saturate 16 bits, as older CPUs' kernels let them."""
RANDOM = np.random.default_rng(7)


def real(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def whole(low, high, *shape, dtype=np.int32):
    return RANDOM.integers(low, high, size=shape).astype(dtype)


def i32(*numbers):
    return np.array(numbers, dtype=np.int32)


def one_node(op_type, operands, *, outputs=1, domain="", opset=17, weights=(), symbolic=True, **attrs):
    """A model of one node, the arrays to feed it, with operands at ``weights`` as initializers and None left out."""
    inputs, initializers, feed, names = [], [], {}, []
    for slot, array in enumerate(operands):
        name = "" if array is None else f"x{slot}"
        names.append(name)
        if array is None:
            continue
        if slot in weights:
            initializers.append(numpy_helper.from_array(array, name))
        else:
            shape = [f"{name}_{axis}" for axis in range(array.ndim)] if symbolic else array.shape
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
            feed[name] = array
    wanted = [f"y{slot}" for slot in range(outputs)] if isinstance(outputs, int) else list(outputs)
    node = helper.make_node(op_type, names, wanted, domain=domain, **attrs)
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in wanted if name]
    graph = helper.make_graph([node], "one", inputs, shown, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), feed


def retyped(model, *numbers):
    for output, number in zip(model.graph.output, numbers, strict=False):
        output.type.tensor_type.elem_type = number
    return model


def check(tmp_path, model, feed, *, places=4, compare=None):
    expected = run(model, feed)
    lowered = read(save(model, tmp_path / "model.onnx"))
    found = run(rebuild(lowered), feed)
    for index, pair in enumerate(zip(found, expected, strict=True)):
        assert pair[0].dtype == pair[1].dtype
        assert pair[0].shape == pair[1].shape
        left, right = map(compare, pair) if compare is not None and index == 0 else pair
        np.testing.assert_allclose(left.astype(np.float64), right.astype(np.float64), atol=10.0**-places, rtol=1e-4)


SIZE, HEADS, HIDDEN = 8, 2, 8


class TestNormalisations:
    @pytest.mark.parametrize("bias", [None, real(HIDDEN)])
    def test_skip_layer_normalization(self, tmp_path, bias):
        operands = [real(2, 3, HIDDEN), real(2, 3, HIDDEN), real(HIDDEN), real(HIDDEN), bias]
        model, feed = one_node("SkipLayerNormalization", operands, outputs=("y", "", "", "sum"), domain=MS, epsilon=1e-3)
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("bias", [None, real(HIDDEN)])
    def test_skip_simplified_layer_normalization(self, tmp_path, bias):
        operands = [real(2, 3, HIDDEN), real(2, 3, HIDDEN), real(HIDDEN), bias]
        outputs = ("y", "", "", "sum")
        model, feed = one_node("SkipSimplifiedLayerNormalization", operands, outputs=outputs, domain=MS)
        check(tmp_path, model, feed)

    def test_simplified_layer_normalization(self, tmp_path):
        model, feed = one_node("SimplifiedLayerNormalization", [real(2, 3, HIDDEN), real(HIDDEN)], axis=-1, epsilon=1e-6)
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("segments", [True, False])
    @pytest.mark.parametrize("positions", [None, np.array([[2, 1, 0], [0, 0, 3]], dtype=np.int32)])
    def test_embed_layer_normalization(self, tmp_path, segments, positions):
        ids, tables = whole(0, 9, 2, 3), (real(9, HIDDEN), real(5, HIDDEN), real(2, HIDDEN) if segments else None)
        mask = np.array([[1, 1, 0], [1, 1, 1]], dtype=np.int32)
        operands = [ids, whole(0, 2, 2, 3) if segments else None, *tables, real(HIDDEN), real(HIDDEN), mask, positions]
        model, feed = one_node("EmbedLayerNormalization", operands, outputs=3, domain=MS, weights=(2, 3, 4, 5, 6))
        check(tmp_path, retyped(model, TensorProto.FLOAT, TensorProto.INT32, TensorProto.FLOAT), feed)

    def test_layer_normalization_with_statistics(self, tmp_path):
        model, feed = one_node("LayerNormalization", [real(2, 3, 4), real(3, 4), real(3, 4)], outputs=3, axis=1)
        check(tmp_path, model, feed)

    def test_group_normalization_of_opset_18_scales_groups(self, tmp_path):
        model, feed = one_node("GroupNormalization", [real(2, 6, 3, 3), real(3), real(3)], opset=18, num_groups=3)
        check(tmp_path, model, feed)


class TestProducts:
    @pytest.mark.parametrize("attrs", [{}, {"transA": 1}, {"transB": 1}, {"alpha": 0.5, "transA": 1, "transB": 1}])
    def test_fused_matmul(self, tmp_path, attrs):
        a = real(2, 3, 4, 5) if not attrs.get("transA") else real(2, 3, 5, 4)
        b = real(2, 3, 5, 6) if not attrs.get("transB") else real(2, 3, 6, 5)
        model, feed = one_node("FusedMatMul", [a, b], domain=MS, **attrs)
        check(tmp_path, model, feed)

    def test_fused_matmul_with_moved_batch(self, tmp_path):
        model, feed = one_node("FusedMatMul", [real(4, 2, 3, 5), real(2, 3, 5, 6)], domain=MS, transBatchA=1)
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("activation", [{"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.3}])
    def test_fused_gemm(self, tmp_path, activation):
        operands = [real(4, 3), real(5, 4), real(5)]
        model, feed = one_node("FusedGemm", operands, domain=MS, transA=1, transB=1, alpha=0.5, beta=2.0, **activation)
        check(tmp_path, model, feed)

    def test_gemm(self, tmp_path):
        model, feed = one_node("Gemm", [real(4, 3), real(5, 4), real(3, 1)], transA=1, transB=1, alpha=0.5, beta=2.0)
        check(tmp_path, model, feed)

    def test_fused_conv_with_sum_and_activation(self, tmp_path):
        operands = [real(1, 2, 5, 5), real(3, 2, 3, 3), real(3), real(1, 3, 5, 5)]
        model, feed = one_node("FusedConv", operands, domain=MS, pads=[1, 1, 1, 1], activation="Relu")
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("name", ["BiasGelu", "FastGelu"])
    def test_biased_gelus(self, tmp_path, name):
        model, feed = one_node(name, [real(2, 3, 4), real(4)], domain=MS)
        check(tmp_path, model, feed, places=3)

    def test_quick_gelu(self, tmp_path):
        model, feed = one_node("QuickGelu", [real(2, 3, 4)], domain=MS)
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("name", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    def test_global_pools(self, tmp_path, name):
        model, feed = one_node(name, [real(2, 3, 4, 5)])
        check(tmp_path, model, feed)

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_softmax_before_opset_13_joins_axes(self, tmp_path, axis):
        model, feed = one_node("Softmax", [real(2, 3, 4)], opset=11, axis=axis)
        check(tmp_path, model, feed)


def kept(lengths, width):
    return (np.arange(width) < np.array(lengths)[:, None]).astype(np.int32)


MASKS = {
    "none": None,
    "raw": kept([4, 2], 4),
    "per-query": np.tril(np.ones((4, 4), dtype=np.int32)) * kept([4, 3], 4)[:, None, :],
    "lengths": i32(4, 2),
    "ends-and-starts": i32(4, 4, 1, 0),
}


class TestFusedAttention:
    def operands(self, mask, past=None, bias=None):
        return [real(2, 4, SIZE), real(SIZE, 3 * HIDDEN), real(3 * HIDDEN), mask, past, bias]

    @pytest.mark.parametrize("symbolic", [True, False])
    @pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
    @pytest.mark.parametrize("unidirectional", [0, 1])
    def test_masks(self, tmp_path, mask, unidirectional, symbolic):
        attrs = {"num_heads": HEADS, "unidirectional": unidirectional}
        operands = self.operands(mask)
        model, feed = one_node("Attention", operands, domain=MS, weights=(1, 2), symbolic=symbolic, **attrs)
        # The first row's first position is padding in one of the masks: what it yields does not matter.
        check(tmp_path, model, feed, compare=lambda result: result[:, 1:])

    def test_past_and_present(self, tmp_path):
        operands = self.operands(None, real(2, 2, HEADS, 3, HIDDEN // HEADS))
        attrs = {"num_heads": HEADS, "unidirectional": 1}
        model, feed = one_node("Attention", operands, outputs=2, domain=MS, weights=(1, 2), **attrs)
        check(tmp_path, model, feed)

    def test_value_of_another_width(self, tmp_path):
        operands = [real(2, 4, SIZE), real(SIZE, 20), real(20)]
        attrs = {"num_heads": HEADS, "qkv_hidden_sizes": [8, 8, 4]}
        model, feed = one_node("Attention", operands, domain=MS, weights=(1, 2), **attrs)
        check(tmp_path, model, feed)

    def test_scale_and_fill(self, tmp_path):
        attrs = {"num_heads": HEADS, "scale": 0.9, "mask_filter_value": -3.0e38}
        model, feed = one_node("Attention", self.operands(kept([4, 1], 4)), domain=MS, weights=(1, 2), **attrs)
        check(tmp_path, model, feed)

    def test_quantised(self, tmp_path):
        operands = [
            whole(0, 255, 2, 4, SIZE, dtype=np.uint8),
            whole(*NARROW, SIZE, 3 * HIDDEN, dtype=np.int8),
            real(3 * HIDDEN),
            np.float32(0.02),
            np.float32(0.01),
            i32(4, 2),
            np.uint8(120),
            np.int8(0),
        ]
        operands = [np.asarray(operand) for operand in operands]
        model, feed = one_node("QAttention", operands, domain=MS, weights=(1, 2, 3, 4, 6, 7), num_heads=HEADS)
        check(tmp_path, model, feed)


class TestMultiHeadAttention:
    @pytest.mark.parametrize("mask", [None, i32(5, 2), kept([5, 3], 5)], ids=["none", "lengths", "raw"])
    @pytest.mark.parametrize("bias", [None, real(3 * HIDDEN)], ids=["plain", "biased"])
    def test_apart(self, tmp_path, mask, bias):
        operands = [real(2, 4, HIDDEN), real(2, 5, HIDDEN), real(2, 5, HIDDEN), bias, mask, real(1, HEADS, 4, 5)]
        model, feed = one_node("MultiHeadAttention", operands, domain=MS, num_heads=HEADS)
        check(tmp_path, model, feed)

    def test_cached_keys_of_an_encoder(self, tmp_path):
        operands = [real(2, 4, HIDDEN), real(2, HEADS, 5, 4), real(2, HEADS, 5, 4)]
        model, feed = one_node("MultiHeadAttention", operands, domain=MS, num_heads=HEADS)
        check(tmp_path, model, feed)

    def test_past(self, tmp_path):
        past = [real(2, HEADS, 3, 4), real(2, HEADS, 3, 4)]
        operands = [real(2, 4, HIDDEN), real(2, 4, HIDDEN), real(2, 4, HIDDEN), None, None, None, *past]
        model, feed = one_node("MultiHeadAttention", operands, outputs=3, domain=MS, num_heads=HEADS, unidirectional=1)
        check(tmp_path, model, feed)


class TestGroupQueryAttention:
    def operands(self, length, past, seqlens, *, packed=False, rotary=False):
        size, kv_heads = 16, 2
        query, key, value = real(2, length, 4 * size), real(2, length, kv_heads * size), real(2, length, kv_heads * size)
        if packed:
            query, key, value = np.concatenate([query, key, value], axis=-1), None, None
        cache = [real(2, kv_heads, past, size), real(2, kv_heads, past, size)]
        total = np.array(length + past, dtype=np.int32)
        angles = [real(16, size // 2), real(16, size // 2)] if rotary else []
        return [query, key, value, *cache, i32(*seqlens), total, *angles]

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("rotary", [False, True])
    @pytest.mark.parametrize(("length", "past", "seqlens"), [(5, 0, (4, 4)), (1, 6, (6, 6)), (5, 0, (4, 2))])
    def test_prompt_and_decoding(self, tmp_path, packed, rotary, length, past, seqlens):
        operands = self.operands(length, past, seqlens, packed=packed, rotary=rotary)
        attrs = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary)}
        model, feed = one_node("GroupQueryAttention", operands, outputs=3, domain=MS, **attrs)
        # What stands at the padded positions of a row is left open.
        check(tmp_path, model, feed, compare=lambda result: result[:, : min(seqlens) + 1])

    def test_window_and_softcap(self, tmp_path):
        attrs = {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 2, "softcap": 1.5}
        model, feed = one_node("GroupQueryAttention", self.operands(5, 0, (4, 4)), outputs=3, domain=MS, **attrs)
        check(tmp_path, model, feed)


class TestRotaryEmbedding:
    @pytest.mark.parametrize("interleaved", [0, 1])
    @pytest.mark.parametrize("positions", [np.array([2]), np.array([[0, 1, 2], [3, 3, 1]])], ids=["offset", "each"])
    @pytest.mark.parametrize("shape", [(2, 3, 2 * SIZE), (2, 2, 3, SIZE)], ids=["joined", "apart"])
    def test_microsoft(self, tmp_path, interleaved, positions, shape):
        operands = [real(*shape), positions.astype(np.int64), real(6, SIZE // 2), real(6, SIZE // 2)]
        attrs = {"interleaved": interleaved} | ({"num_heads": 2, "rotary_embedding_dim": SIZE} if len(shape) == 3 else {})
        model, feed = one_node("RotaryEmbedding", operands, domain=MS, **attrs)
        check(tmp_path, model, feed)


def scalars(*numbers):
    return [np.asarray(number) for number in numbers]


class TestQuantised:
    A, B = whole(0, 255, 4, 6, dtype=np.uint8), whole(*NARROW, 6, 5, dtype=np.int8)
    SCALES = scalars(np.float32(0.02), np.uint8(120)), scalars(np.float32(0.01), np.int8(3))
    RESULT = scalars(np.float32(0.05), np.uint8(127))

    def test_qlinear_matmul(self, tmp_path):
        operands = [self.A, *self.SCALES[0], self.B, *self.SCALES[1], *self.RESULT]
        model, feed = one_node("QLinearMatMul", operands, weights=(1, 2, 3, 4, 5, 6, 7))
        check(tmp_path, retyped(model, TensorProto.UINT8), feed, places=0)

    def test_qlinear_conv(self, tmp_path):
        x, w = whole(0, 255, 1, 2, 5, 5, dtype=np.uint8), whole(*NARROW, 3, 2, 3, 3, dtype=np.int8)
        scales = np.array([0.01, 0.02, 0.03], dtype=np.float32)
        operands = [x, *self.SCALES[0], w, scales, np.zeros(3, np.int8), *self.RESULT, whole(-500, 500, 3)]
        model, feed = one_node("QLinearConv", operands, weights=tuple(range(1, 9)))
        check(tmp_path, retyped(model, TensorProto.UINT8), feed, places=0)

    @pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
    def test_qlinear_binary(self, tmp_path, name):
        other = whole(0, 255, 4, 6, dtype=np.uint8)
        operands = [self.A, *self.SCALES[0], other, *scalars(np.float32(0.01), np.uint8(3)), *self.RESULT]
        model, feed = one_node(name, operands, domain=MS, weights=(1, 2, 4, 5, 6, 7))
        check(tmp_path, retyped(model, TensorProto.UINT8), feed, places=0)

    @pytest.mark.parametrize("name", ["QLinearSigmoid", "QLinearLeakyRelu"])
    def test_qlinear_unary(self, tmp_path, name):
        operands = [self.A, *self.SCALES[0], *scalars(np.float32(0.01), np.uint8(3))]
        model, feed = one_node(name, operands, domain=MS, weights=(1, 2, 3, 4))
        check(tmp_path, retyped(model, TensorProto.UINT8), feed, places=0)

    def test_qlinear_concat(self, tmp_path):
        operands = [*self.RESULT, self.A, *self.SCALES[0], whole(0, 255, 2, 6, dtype=np.uint8), *self.RESULT]
        model, feed = one_node("QLinearConcat", operands, domain=MS, weights=(0, 1, 3, 4, 6, 7), axis=0)
        check(tmp_path, retyped(model, TensorProto.UINT8), feed, places=0)

    @pytest.mark.parametrize("quantised_result", [False, True])
    def test_qgemm(self, tmp_path, quantised_result):
        result = self.RESULT if quantised_result else []
        operands = [self.A, *self.SCALES[0], self.B, *self.SCALES[1], whole(-500, 500, 5), *result]
        model, feed = one_node("QGemm", operands, domain=MS, weights=tuple(range(1, 9)), alpha=0.5)
        number = TensorProto.UINT8 if quantised_result else TensorProto.FLOAT
        check(tmp_path, retyped(model, number), feed, places=0 if quantised_result else 3)

    def test_matmul_integer_to_float(self, tmp_path):
        (a_scale, a_zero), (b_scale, b_zero) = self.SCALES
        operands = [self.A, self.B, a_scale, b_scale, a_zero, b_zero, real(5)]
        model, feed = one_node("MatMulIntegerToFloat", operands, domain=MS, weights=(1, 2, 3, 4, 5, 6))
        check(tmp_path, model, feed, places=3)

    def test_dynamic_quantize_matmul(self, tmp_path):
        operands = [real(4, 6), self.B, *self.SCALES[1], real(5)]
        model, feed = one_node("DynamicQuantizeMatMul", operands, domain=MS, weights=(1, 2, 3, 4))
        check(tmp_path, model, feed, places=3)

    def test_dynamic_quantize_lstm(self, tmp_path):
        weights = [whole(*NARROW, 1, size, 16, dtype=np.int8) for size in (3, 4)]
        scales = [np.full(1, 0.01, np.float32), np.zeros(1, np.int8)] * 2
        operands = [real(5, 2, 3), *weights, real(1, 32), None, None, None, None, *scales]
        attrs = {"hidden_size": 4, "direction": "forward"}
        model, feed = one_node("DynamicQuantizeLSTM", operands, outputs=3, domain=MS, weights=range(1, 12), **attrs)
        # ONNX Runtime quantises the hidden state as well, which moves the result a little.
        check(tmp_path, model, feed, places=1)
