"""The com.microsoft operators, which have no backend cases: whatever moves in ONNX Runtime carries a label."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_subjects import subject
from soundness import check

BATCH, STEPS, HEADS, SIZE = 2, 4, 2, 3
HIDDEN = HEADS * SIZE
RANDOM = np.random.default_rng(11)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


@dataclass
class Case:
    """One node: its operands in order (None for one that is left out), how many of them are constants, its attributes."""

    op_type: str
    operands: list
    attrs: dict = field(default_factory=dict)
    outputs: int = 1
    constants: tuple[int, ...] = ()
    noise: float = 1e-9

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        names = ["" if array is None else f"x{at}" for at, array in enumerate(self.operands)]
        feeds, weights, declared = {}, [], []
        for at, (name, array) in enumerate(zip(names, self.operands, strict=True)):
            if array is None:
                continue
            if at in self.constants:
                weights.append(onnx.numpy_helper.from_array(array, name))
                continue
            feeds[name] = array
            declared.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        results = [f"y{at}" for at in range(self.outputs)]
        node = helper.make_node(self.op_type, names, results, domain="com.microsoft", **self.attrs)
        graph = helper.make_graph([node], "case", declared, [onnx.ValueInfoProto(name=name) for name in results], weights)
        imports = [helper.make_operatorsetid("", 17), helper.make_operatorsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9), feeds


def row(*values, dtype=np.int32):
    return np.array(values, dtype)


X = floats(BATCH, STEPS, HIDDEN)
QKV = floats(HIDDEN, 3 * HIDDEN)
BIAS = floats(3 * HIDDEN)
MASK = row([1, 1, 1, 0], [1, 1, 0, 0])
PAST = floats(2, BATCH, HEADS, 2, SIZE)
WIDE_MASK = row([1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0])
MASK_3D = np.tril(np.ones((STEPS, STEPS), np.int32))[None] * MASK[:, None]


def attention(mask, past=None, added=None, **attrs):
    operands = [X, QKV, BIAS, mask, past, added]
    return Case("Attention", operands, {"num_heads": HEADS, **attrs}, 1 if past is None else 2)


def multi_head(mask, bias=None, added=None, past=(), **attrs):
    operands = [X, floats(BATCH, STEPS, HIDDEN), floats(BATCH, STEPS, HIDDEN), bias, mask, added, *past]
    return Case("MultiHeadAttention", operands, {"num_heads": HEADS, **attrs}, 3 if past else 1)


def grouped(steps, past, last, *, size=8, **attrs):
    """Two query heads share one key head; ``last`` is the index of each row's last key."""
    total, rows = steps + past, len(last)
    operands = [
        floats(rows, steps, 2 * size), floats(rows, steps, size), floats(rows, steps, size),
        floats(rows, 1, past, size), floats(rows, 1, past, size), row(*last), row(total),
    ]  # fmt: skip
    if attrs.get("do_rotary"):
        operands += [floats(16, size // 2), floats(16, size // 2)]
    # The lengths and the total must stay consistent, so the total is a constant.
    return Case("GroupQueryAttention", operands, {"num_heads": 2, "kv_num_heads": 1, **attrs}, 3, (6,))


IDS = row([3, 5, 2, 0], [7, 1, 0, 0])


def embedding(*, mask=True, segments=True, outputs=2):
    operands = [
        IDS, row([0, 0, 1, 0], [0, 1, 0, 0]) if segments else None,
        floats(10, HIDDEN), floats(STEPS, HIDDEN), floats(3, HIDDEN) if segments else None,
        floats(HIDDEN), floats(HIDDEN), MASK if mask else None,
    ]  # fmt: skip
    return Case("EmbedLayerNormalization", operands, {}, outputs)


def bytes_of(*shape):
    return RANDOM.integers(100, 150, size=shape).astype(np.uint8)


def quantised_attention(mask, past=None, **attrs):
    operands = [
        bytes_of(BATCH, STEPS, HIDDEN), bytes_of(HIDDEN, 3 * HIDDEN), BIAS, np.float32(0.02), np.float32(0.03), mask,
        np.uint8(128), np.uint8(128), past,
    ]  # fmt: skip
    held = [None if operand is None else np.asarray(operand) for operand in operands]
    return Case("QAttention", held, {"num_heads": HEADS, **attrs}, 1 if past is None else 2, (1, 3, 4, 6, 7))


CASES = {
    "Attention": attention(None),
    "Attention, unidirectional": attention(None, unidirectional=1),
    "Attention, mask of positions": attention(MASK),
    "Attention, mask of lengths": attention(row(3, 2)),
    "Attention, mask of ends and starts": attention(row(3, 4, 0, 1)),
    "Attention, mask of pairs": attention(MASK_3D),
    "Attention, unidirectional and masked": attention(MASK, unidirectional=1),
    "Attention, past": attention(WIDE_MASK, PAST),
    "Attention, past, unidirectional": attention(WIDE_MASK, PAST, unidirectional=1),
    "Attention, added bias": attention(None, added=floats(BATCH, HEADS, STEPS, STEPS)),
    "Attention, other fill": attention(MASK, mask_filter_value=-3e38),
    "Attention, uneven parts": Case(
        "Attention", [X, floats(HIDDEN, 2 * 4 + 6), floats(2 * 4 + 6), MASK], {"num_heads": 2, "qkv_hidden_sizes": [4, 4, 6]}
    ),
    "MultiHeadAttention": multi_head(None),
    "MultiHeadAttention, biased": multi_head(None, BIAS),
    "MultiHeadAttention, mask of positions": multi_head(MASK),
    "MultiHeadAttention, mask of lengths": multi_head(row(3, 2)),
    "MultiHeadAttention, mask of pairs": multi_head(MASK_3D),
    "MultiHeadAttention, added bias": multi_head(None, added=floats(1, HEADS, STEPS, STEPS)),
    "MultiHeadAttention, unidirectional": multi_head(None, unidirectional=1),
    "MultiHeadAttention, past": multi_head(None, past=(floats(BATCH, HEADS, 2, SIZE), floats(BATCH, HEADS, 2, SIZE))),
    "MultiHeadAttention, past and mask": multi_head(
        WIDE_MASK, past=(floats(BATCH, HEADS, 2, SIZE), floats(BATCH, HEADS, 2, SIZE)), unidirectional=1
    ),
    "MultiHeadAttention, cross": Case(
        "MultiHeadAttention", [X, floats(BATCH, HEADS, 5, SIZE), floats(BATCH, HEADS, 5, SIZE)], {"num_heads": HEADS}
    ),
    "GroupQueryAttention, prompt": grouped(4, 0, (3, 3)),
    "GroupQueryAttention, padded prompt": grouped(4, 0, (3, 1)),
    "GroupQueryAttention, rotary prompt": grouped(4, 0, (3, 3), size=16, do_rotary=1),
    "GroupQueryAttention, decoding": grouped(1, 3, (3, 3)),
    "GroupQueryAttention, rotary decoding": grouped(1, 3, (3, 3), size=16, do_rotary=1),
    "GroupQueryAttention, decoding rows of other lengths": grouped(1, 3, (3, 1)),
    "GroupQueryAttention, several new tokens": grouped(2, 2, (3,)),
    "GroupQueryAttention, several new tokens in a long cache": grouped(2, 3, (3,)),
    "GroupQueryAttention, window": grouped(4, 0, (3, 3), local_window_size=2),
    "GroupQueryAttention, capped": grouped(4, 0, (3, 3), softcap=5.0),
    "SkipLayerNormalization": Case(
        "SkipLayerNormalization", [X, floats(*X.shape), floats(HIDDEN), floats(HIDDEN), floats(HIDDEN)], {}, 1
    ),
    "SkipLayerNormalization, sum": Case(
        "SkipLayerNormalization", [X, floats(*X.shape), floats(HIDDEN), floats(HIDDEN), floats(HIDDEN)], {}, 4
    ),
    "SkipSimplifiedLayerNormalization": Case("SkipSimplifiedLayerNormalization", [X, floats(*X.shape), floats(HIDDEN)], {}, 1),
    "EmbedLayerNormalization": embedding(),
    "EmbedLayerNormalization, no segments": embedding(segments=False),
    "EmbedLayerNormalization, no mask": embedding(mask=False),
    "EmbedLayerNormalization, sum": embedding(outputs=3),
    "RotaryEmbedding": Case(
        "RotaryEmbedding",
        [floats(BATCH, STEPS, 16), row([0, 1, 2, 3], [1, 2, 3, 4], dtype=np.int64), floats(8, 4), floats(8, 4)],
    ),
    "RotaryEmbedding, one offset": Case(
        "RotaryEmbedding", [floats(BATCH, STEPS, 16), row(2, dtype=np.int64), floats(8, 4), floats(8, 4)]
    ),
    "RotaryEmbedding, interleaved, rank 4": Case(
        "RotaryEmbedding",
        [floats(BATCH, 2, STEPS, 8), row([0, 1, 2, 3], [1, 2, 3, 4], dtype=np.int64), floats(8, 4), floats(8, 4)],
        {"interleaved": 1},
    ),
    "FusedMatMul": Case("FusedMatMul", [floats(2, 3, 4), floats(2, 3, 5)], {"transA": 1, "alpha": 0.5}),
    "FusedMatMul, batches swapped": Case("FusedMatMul", [floats(3, 2, 4), floats(2, 4, 5)], {"transBatchA": 1}),
    "FusedGemm": Case("FusedGemm", [floats(3, 4), floats(4, 5), floats(5)], {"activation": "Relu"}),
    "BiasGelu": Case("BiasGelu", [X, floats(HIDDEN)]),
    "FastGelu": Case("FastGelu", [X, floats(HIDDEN)]),
    "Gelu": Case("Gelu", [X]),
    "QuickGelu": Case("QuickGelu", [X], {"alpha": 1.702}),
    "QAttention": quantised_attention(None),
    "QAttention, mask of positions": quantised_attention(MASK),
    "QAttention, mask of lengths": quantised_attention(row(3, 2)),
    "QAttention, unidirectional": quantised_attention(None, unidirectional=1),
    "DynamicQuantizeMatMul": Case(
        "DynamicQuantizeMatMul",
        [floats(2, 3), bytes_of(3, 4), np.float32([0.02]), np.uint8([128]), floats(4)], {}, 1, (1, 2, 3),
    ),
    "MatMulIntegerToFloat": Case(
        "MatMulIntegerToFloat",
        [bytes_of(2, 3), bytes_of(3, 4), np.float32([0.1]), np.float32([0.02]), np.uint8([120]), np.uint8([128]), floats(4)],
    ),
    "MatMulNBits": Case(
        "MatMulNBits",
        [floats(2, 32), RANDOM.integers(0, 255, size=(4, 2, 8)).astype(np.uint8), np.abs(floats(4, 2))],
        {"K": 32, "N": 4, "bits": 4, "block_size": 16}, 1, (1, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_moves_is_labelled(name, tmp_path):
    model, feeds = CASES[name].model()
    made = subject("model", model, feeds, tmp_path, required=True)
    made.noise = CASES[name].noise
    outcome = check(made, limit=10, turns=2, joint=2)
    assert not outcome.faults, "\n".join(outcome.faults)
    assert not outcome.unmodelled, outcome.unmodelled
    assert outcome.checked, outcome.skipped
