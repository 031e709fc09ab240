"""Every canonical operator: its operands, attributes, results and family.

A kind that ONNX has too means what the newest opset of ONNX means by it (https://onnx.ai/onnx/operators/), in the form
in which shapes, axes, pads and the like are *operands*; a reader that finds them in attributes (older opsets, IR) makes
small constants of them.  Negative axes count from the end.  Where a kind differs from ONNX, its line says so.

Fused operators that are a plain sequence of others (``SkipLayerNormalization``, ``BiasGelu``, ``EmbedLayerNormalization``,
``QLinearMatMul``, ``Gemm``) have no kind of their own: readers lower them to the sequence.

An operand whose name ends in ``?`` may be absent; one that ends in ``*`` stands for any number.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["VOCABULARY", "Family", "Signature", "family"]


class Family(enum.Enum):
    """What an operator does with its operands, as far as tracing is concerned."""

    MOVE = "moves elements of its data operands to other places"
    UNARY = "computes each element from one element"
    BINARY = "computes each element from the broadcast elements of its operands"
    COMPARE = "yields a truth value for each element"
    SELECT = "picks each element from one of two operands"
    REDUCE = "joins the elements along axes"
    SCAN = "joins the elements before each position of an axis"
    CONTRACT = "sums products over shared axes: matrix products, convolutions"
    POOL = "joins elements within windows"
    NORMALISE = "rescales elements by statistics over axes"
    SOFTMAX = "turns scores along an axis into weights"
    ATTENTION = "scaled dot-product attention in one operator"
    ROTARY = "rotates features by angles that depend on positions"
    RECURRENT = "carries a state along the sequence"
    LOOKUP = "reads elements at computed indices"
    SCATTER = "writes elements at computed indices"
    SEARCH = "finds positions or an order of elements"
    GENERATE = "makes a tensor from a few numbers"
    SHAPE = "reads a shape"
    QUANTISE = "maps between real numbers and integers with a scale"
    CONTROL = "runs subgraphs"
    STATE = "keeps a value between calls"
    OPAQUE = "is not modelled"


@dataclass(frozen=True, slots=True)
class Signature:
    """One line of the vocabulary.

    Attributes:
        kind: canonical name.
        family: what it does.
        operands: operand names in order.
        attributes: attribute names; those absent from an operator take the default that ``note`` or ONNX gives.
        note: how it differs from the ONNX operator of that name, or what it means when ONNX has none.
    """

    kind: str
    family: Family
    operands: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    note: str = ""


def _table() -> dict[str, Signature]:
    rows: list[Signature] = []

    def add(family: Family, operands: str, attributes: str, *kinds: str, note: str = "") -> None:
        rows.extend(Signature(kind, family, tuple(operands.split()), tuple(attributes.split()), note) for kind in kinds)

    # fmt: off
    # -- movement ------------------------------------------------------------------------------------------------------
    add(Family.MOVE, "data", "", "Identity")
    add(Family.MOVE, "data shape", "zero_copies", "Reshape",
        note="zero_copies (default True): a 0 in shape copies the input's dimension at that index; otherwise it "
        "means 0. -1 is inferred.")
    add(Family.MOVE, "data", "perm", "Transpose", note="perm is always given.")
    add(Family.MOVE, "data axes?", "", "Squeeze", note="without axes every dimension of 1 goes.")
    add(Family.MOVE, "data axes", "", "Unsqueeze")
    add(Family.MOVE, "data", "axis", "Flatten")
    add(Family.MOVE, "data shape", "", "Expand", note="bidirectional broadcast, as in ONNX.")
    add(Family.MOVE, "data shape axes", "", "BroadcastAlong",
        note="OpenVINO Broadcast with mode explicit: input dimension i becomes output dimension axes[i].")
    add(Family.MOVE, "data repeats", "", "Tile")
    add(Family.MOVE, "data*", "axis", "Concat")
    add(Family.MOVE, "data lengths?", "axis", "Split", note="without lengths: equal parts, the last one smaller if need be.")
    add(Family.MOVE, "data starts ends axes? steps?", "", "Slice")
    add(Family.MOVE, "data begin end strides?", "begin_mask end_mask new_axis_mask shrink_axis_mask ellipsis_mask",
        "StridedSlice", note="OpenVINO StridedSlice; each mask a tuple of 0/1, absent means all 0.")
    add(Family.MOVE, "data pads value? axes?", "mode", "Pad",
        note="pads: begins then ends; mode constant, reflect, edge or wrap. Negative pads crop.")
    add(Family.MOVE, "data", "blocksize mode", "DepthToSpace", "SpaceToDepth")
    add(Family.MOVE, "data lengths", "batch_axis time_axis", "ReverseSequence")
    add(Family.MOVE, "data axes", "", "Flip", note="reverses the order along axes.")
    add(Family.MOVE, "data shift axes", "", "Roll", note="OpenVINO Roll.")
    add(Family.MOVE, "data k?", "upper", "Trilu", note="upper defaults to 1; elements outside the triangle become zero.")
    add(Family.MOVE, "data", "dtype", "Cast", note="dtype: a DType. CastLike and OpenVINO Convert/ConvertLike lower to it.")
    add(Family.MOVE, "data", "dtype", "BitCast")
    add(Family.MOVE, "data roi? scales? sizes?", "mode coordinate_transformation_mode nearest_mode axes antialias", "Resize",
        note="sizes and scales cover the axes attribute, or all axes without it. nearest_mode simple: up where "
        "the axis shrinks, else down.")

    # -- lookups and scatters --------------------------------------------------------------------------------------------
    add(Family.LOOKUP, "data indices", "axis batch_dims", "Gather",
        note="batch_dims defaults to 0; negative indices count from the end.")
    add(Family.LOOKUP, "data indices", "axis", "GatherElements")
    add(Family.LOOKUP, "data indices", "batch_dims", "GatherND")
    add(Family.LOOKUP, "data condition", "axis", "Compress", note="axis None: flattened first.")
    add(Family.LOOKUP, "table indices offsets? default_index? weights?", "reduction", "EmbeddingBag",
        note="OpenVINO EmbeddingBagOffsets: sums or means of table rows per bag; without offsets indices is [bags, per bag].")
    add(Family.SCATTER, "data indices updates", "axis reduction", "ScatterElements", note="reduction none, add, mul, max, min.")
    add(Family.SCATTER, "data indices updates", "reduction", "ScatterND")
    add(Family.SCATTER, "data indices updates axis", "", "ScatterUpdate",
        note="OpenVINO ScatterUpdate: writes whole slices along axis; updates has data's shape with axis replaced "
        "by indices' shape.")
    add(Family.LOOKUP, "data grid", "mode padding_mode align_corners", "GridSample")

    # -- element-wise ----------------------------------------------------------------------------------------------------
    add(Family.UNARY, "x", "", "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf",
        "Exp", "Floor",
        "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
        "Softsign", "Sqrt", "Tan", "Tanh", "BitwiseNot")
    add(Family.UNARY, "x", "approximate", "Gelu", note="approximate: none or tanh. FastGelu lowers to Gelu with tanh.")
    add(Family.UNARY, "x", "alpha", "Elu", "Celu", "LeakyRelu", "ThresholdedRelu")
    add(Family.UNARY, "x", "alpha gamma", "Selu")
    add(Family.UNARY, "x", "alpha beta", "HardSigmoid")
    add(Family.UNARY, "x", "beta", "Swish", note="x * sigmoid(beta * x), beta defaults to 1; QuickGelu is beta 1.702.")
    add(Family.UNARY, "x", "lambd bias", "Shrink")
    add(Family.UNARY, "x min? max?", "", "Clip")
    add(Family.UNARY, "x", "", "RoundHalfAway", note="OpenVINO Round with mode half_away_from_zero.")
    add(Family.COMPARE, "x", "", "Not", "IsNaN", "IsFinite")
    add(Family.COMPARE, "x", "detect_negative detect_positive", "IsInf")
    add(Family.BINARY, "a b", "", "Add", "Sub", "Mul", "Div", "Pow", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu",
        "SquaredDifference", "Atan2", note="numpy broadcasting; Div of integers truncates towards zero.")
    add(Family.BINARY, "a b", "direction", "BitShift")
    add(Family.BINARY, "a b", "fmod", "Mod", note="fmod 0: sign of the divisor (FloorMod); 1: sign of the dividend.")
    add(Family.BINARY, "a*", "", "Max", "Min", "Sum", "Mean")
    add(Family.COMPARE, "a b", "", "Equal", "NotEqual", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor")
    add(Family.SELECT, "condition x y", "", "Where")

    # -- contractions, windows -----------------------------------------------------------------------------------------
    add(Family.CONTRACT, "a b", "transpose_a transpose_b", "MatMul",
        note="numpy matmul after the optional swaps of the last two axes (1-D operands are not swapped).")
    add(Family.CONTRACT, "a b a_zero_point? b_zero_point?", "", "MatMulInteger")
    add(Family.CONTRACT, "x*", "equation", "Einsum")
    add(Family.CONTRACT, "x w b?", "strides pads dilations group auto_pad kernel_shape", "Conv",
        note="w is [out, in / group, *kernel]; OpenVINO GroupConvolution is reshaped to it. ConvInteger lowers to "
        "Conv on its data operands.")
    add(Family.CONTRACT, "x w b?", "strides pads dilations group auto_pad kernel_shape output_padding output_shape",
        "ConvTranspose")
    add(Family.POOL, "x", "kernel_shape strides pads dilations auto_pad ceil_mode", "MaxPool")
    add(Family.POOL, "x", "kernel_shape strides pads dilations auto_pad ceil_mode count_include_pad", "AveragePool")
    add(Family.POOL, "x", "kernel_shape strides pads dilations auto_pad ceil_mode p", "LpPool")

    # -- reductions and scans --------------------------------------------------------------------------------------------
    add(Family.REDUCE, "data axes?", "keepdims noop_with_empty_axes", "ReduceSum", "ReduceMean", "ReduceMax",
        "ReduceMin", "ReduceProd",
        "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
        note="keepdims defaults to 1. Global pools lower to them. OpenVINO's logical reductions are "
        "ReduceMin/ReduceMax of bools.")
    add(Family.SCAN, "x axis", "exclusive reverse", "CumSum", "CumProd")
    add(Family.SEARCH, "data", "axis keepdims select_last_index", "ArgMax", "ArgMin")
    add(Family.SEARCH, "x k", "axis largest sorted", "TopK", note="results: values, indices.")
    add(Family.SEARCH, "x", "", "NonZero", note="as ONNX: [rank, count].")
    add(Family.SEARCH, "x", "axis sorted", "Unique")

    # -- normalisation, softmax ------------------------------------------------------------------------------------------
    add(Family.NORMALISE, "x scale? bias?", "axis epsilon", "LayerNormalization", note="over axis and all that follow.")
    add(Family.NORMALISE, "x scale?", "axis epsilon", "RMSNormalization", note="over axis and all that follow.")
    add(Family.NORMALISE, "x axes", "epsilon variance", "MeanVarianceNormalization",
        note="OpenVINO MVN over axes; variance 0 subtracts the mean only.")
    add(Family.NORMALISE, "x axes", "p", "LpNormalization", note="divides by the p-norm over axes (OpenVINO NormalizeL2: p 2).")
    add(Family.NORMALISE, "x scale bias mean var", "epsilon", "BatchNormalization")
    add(Family.NORMALISE, "x scale bias", "epsilon", "InstanceNormalization")
    add(Family.NORMALISE, "x scale bias", "num_groups epsilon", "GroupNormalization")
    add(Family.NORMALISE, "x", "size", "LRN")
    add(Family.SOFTMAX, "x", "axis coerce_2d", "Softmax", "LogSoftmax", "Hardmax",
        note="coerce_2d (default False): opset < 13, axis and all that follow are one axis.")

    # -- attention ---------------------------------------------------------------------------------------------------------
    add(Family.ATTENTION, "query key value mask? past_key? past_value? key_lengths? key_starts? bias?",
        "q_num_heads kv_num_heads causal scale softcap mask_fill window empty_row append", "Attention",
        note="""results: output, present_key, present_value (trailing ones may be missing).
        query, key, value: [batch, heads, sequence, size] (rank 4) or [batch, sequence, heads * size] (rank 3, with the two
        head counts); past_* are rank 4; output has query's rank.
        causal: "none", "top-left" (query i sees keys 0..i) or "bottom-right" (query i sees keys 0..i + keys - queries).
        mask: broadcastable to [batch, heads, queries, keys]; bool: True keeps, False is filled with mask_fill (default
        -inf); any other type is added.
        key_lengths [batch]: only the first that many keys are seen; key_starts [batch]: keys before it are not seen.
        bias: another term that is added to the scores (relative positions).
        window: how many keys to the left of its own position a query sees, or -1 for all of them.
        empty_row: what a query that sees no key yields, "nan" (the default) or "zero".
        append: where new keys stand in the cache: "end" (the default), or "row": behind the key_lengths - queries keys that the
        row has there, in front of the cache's padding.""")
    add(Family.ATTENTION, "query key value mask? past_key? past_value? key_lengths?", "", "PackedAttention",
        note="packed (unpadded) or otherwise unusual fused attention whose operands are known but whose mask form "
        "is not modelled.")
    add(Family.ROTARY, "x cos sin position_ids?", "interleaved rotary_dim num_heads", "RotaryEmbedding",
        note="x: rank 4 [batch, heads, sequence, size] or rank 3; without position_ids cos and sin are [batch, "
        "sequence, size / 2].")

    # -- recurrence --------------------------------------------------------------------------------------------------------
    add(Family.RECURRENT, "x w r b? sequence_lens? initial_h? initial_c?", "direction hidden_size layout", "LSTM",
        note="layout 0: x is [sequence, batch, size]; 1: [batch, sequence, size], states [batch, directions, "
        "size]. results: y, y_h, y_c.")
    add(Family.RECURRENT, "x w r b? sequence_lens? initial_h?", "direction hidden_size layout", "GRU", "RNN",
        note="results: y, y_h.")
    add(Family.RECURRENT, "x h c w r b?", "hidden_size", "LSTMCell", note="one step; results h, c.")
    add(Family.RECURRENT, "x h w r b?", "hidden_size", "GRUCell", "RNNCell", note="one step; result h.")

    # -- generation, shapes --------------------------------------------------------------------------------------------------
    add(Family.GENERATE, "start limit delta", "", "Range")
    add(Family.GENERATE, "shape", "value", "ConstantOfShape", note="value: a Tensor of one element.")
    add(Family.GENERATE, "data", "dtype k", "EyeLike")
    add(Family.GENERATE, "rows columns diagonal", "dtype", "Eye", note="OpenVINO Eye.")
    add(Family.GENERATE, "indices depth values", "axis", "OneHot", note="values: [off, on].")
    add(Family.GENERATE, "shape?", "dtype", "Random", note="any random source; operand 0 gives the shape.")
    add(Family.SHAPE, "data", "start end", "Shape")
    add(Family.SHAPE, "data", "", "Size")

    # -- quantisation ------------------------------------------------------------------------------------------------------
    add(Family.QUANTISE, "x scale zero_point?", "axis block_size dtype", "QuantizeLinear")
    add(Family.QUANTISE, "x scale zero_point?", "axis block_size dtype", "DequantizeLinear")
    add(Family.QUANTISE, "x", "", "DynamicQuantizeLinear", note="results: y, scale, zero_point.")
    add(Family.QUANTISE, "x input_low input_high output_low output_high", "levels", "FakeQuantize")

    # -- control flow, state -------------------------------------------------------------------------------------------------
    add(Family.CONTROL, "condition", "", "If", note="bodies then, else; both without inputs: they read outer values directly.")
    add(Family.CONTROL, "trip_count? condition? state*",
        "carried keep_axis scan_input_axes scan_input_directions scan_output_axes scan_output_directions", "Loop",
        note="""operands: trip count, condition, ``carried`` states (None: starts as zeros of whatever shape the body gives),
        scan inputs. body inputs: iteration number, condition, states, one slice per scan input (with ``keep_axis`` the axis
        stays, of length 1).
        body outputs: condition, states, one element per scan output. results: final states, concatenated scan outputs.
        With scan inputs the trip count may be absent. ONNX Loop and Scan, OpenVINO Loop and TensorIterator lower to it.""")
    add(Family.STATE, "initial?", "variable", "ReadValue",
        note="the value kept since the last Assign; initial on the first call.")
    add(Family.STATE, "value", "variable", "Assign")

    # -- everything else -----------------------------------------------------------------------------------------------------
    add(Family.OPAQUE, "any*", "", "Opaque",
        note="an operator of the file that has no canonical counterpart; origin.op_type says which.")
    # fmt: on
    return {row.kind: row for row in rows}


VOCABULARY: dict[str, Signature] = _table()
"""Every canonical operator by kind."""


def family(kind: str) -> Family:
    """The family of a canonical operator.

    Raises:
        KeyError: ``kind`` is not in the vocabulary.
    """
    return VOCABULARY[kind].family
