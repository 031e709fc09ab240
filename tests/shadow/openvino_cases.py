"""Models of one OpenVINO operator each, as subjects: run by the CPU plugin, or by OpenVINO's reference where that can't.

The cases of the reader's own execution tests are checked too; those here add what only matters to dependences: every form
of recurrence, computed indices, masks.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset16 as op
from soundness import Subject

from wirelint.formats.openvino import read

_READER_CASES = Path(__file__).parents[1] / "formats" / "test_openvino_execution.py"
_RANDOM = np.random.default_rng(3)


def _floats(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(np.float32)


def _const(values, dtype=np.int64):
    return op.constant(np.array(values, dtype))


def reader_cases():
    """The module that holds the cases of the reader's execution tests."""
    spec = importlib.util.spec_from_file_location("openvino_reader_cases", _READER_CASES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- recurrence ------------------------------------------------------------------------------------------------------------

_SIZE, _HIDDEN, _STEPS, _ROWS = 3, 2, 4, 2
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def _sequence(kind: str, direction: str, *, lengths=None):
    """``kind`` over [rows, steps, size]; the lengths are a constant, or an input when none are given."""
    directions = 2 if direction == "bidirectional" else 1
    gates, states = _GATES[kind], 2 if kind == "lstm" else 1
    w, r = _floats(directions, gates * _HIDDEN, _SIZE), _floats(directions, gates * _HIDDEN, _HIDDEN)
    b = _floats(directions, gates * _HIDDEN)

    def build(x, *rest):
        initial, held = rest[:states], rest[states:]
        ends = held[0] if held else _const(lengths, np.int32)
        made = getattr(op, f"{kind}_sequence")(
            x, *initial, ends, _const(w, np.float32), _const(r, np.float32), _const(b, np.float32), _HIDDEN, direction
        )
        return made.outputs()

    arrays = [_floats(_ROWS, _STEPS, _SIZE), *(_floats(_ROWS, directions, _HIDDEN) for _ in range(states))]
    return build, arrays if lengths is not None else [*arrays, np.array([_STEPS - 1, 2], np.int32)]


def _cell(kind: str):
    gates, states = _GATES[kind], 2 if kind == "lstm" else 1
    w, r, b = _floats(gates * _HIDDEN, _SIZE), _floats(gates * _HIDDEN, _HIDDEN), _floats(gates * _HIDDEN)

    def build(x, *initial):
        parts = [_const(part, np.float32) for part in (w, r, b)]
        more = [["tanh"], [], []] if kind == "rnn" else []
        return getattr(op, f"{kind}_cell")(x, *initial, *parts, _HIDDEN, *more).outputs()

    return build, [_floats(_ROWS, _SIZE), *(_floats(_ROWS, _HIDDEN) for _ in range(states))]


_DIRECTIONS = ("forward", "reverse", "bidirectional")
_RECURRENT = {
    **{f"{kind}_sequence {way}": _sequence(kind, way, lengths=[_STEPS, 2]) for kind in _GATES for way in _DIRECTIONS},
    **{f"{kind}_sequence {way}, lengths fed": _sequence(kind, way) for kind in _GATES for way in _DIRECTIONS},
    **{f"{kind}_sequence full": _sequence(kind, "forward", lengths=[_STEPS, _STEPS]) for kind in _GATES},
    **{f"{kind}_cell": _cell(kind) for kind in _GATES},
}


def iterated(*, backwards: bool) -> tuple[ov.Model, list[np.ndarray]]:
    """An LSTM cell that a TensorIterator runs along the steps, from either end."""
    parts = [_const(_floats(*shape), np.float32) for shape in ((4 * _HIDDEN, _SIZE), (4 * _HIDDEN, _HIDDEN), (4 * _HIDDEN,))]
    x, h, c = (op.parameter(shape, np.float32) for shape in ([_ROWS, _STEPS, _SIZE], [_ROWS, _HIDDEN], [_ROWS, _HIDDEN]))
    part, inner_h, inner_c = (
        op.parameter(shape, np.float32) for shape in ([_ROWS, 1, _SIZE], [_ROWS, _HIDDEN], [_ROWS, _HIDDEN])
    )
    cell = op.lstm_cell(op.squeeze(part, _const([1])), inner_h, inner_c, *parts, _HIDDEN)
    row = op.unsqueeze(cell.output(0), _const([1]))
    iterator = op.tensor_iterator()
    iterator.set_body(ov.Model([row.output(0), cell.output(0), cell.output(1)], [part, inner_h, inner_c], "body"))
    reach = (-1, -1, 1, 0, 1) if backwards else (0, 1, 1, -1, 1)
    iterator.set_sliced_input(part, x.output(0), *reach)
    iterator.set_merged_input(inner_h, h.output(0), cell.output(0))
    iterator.set_merged_input(inner_c, c.output(0), cell.output(1))
    every = iterator.get_concatenated_slices(row.output(0), *reach)
    last = iterator.get_iter_value(cell.output(0), -1)
    model = ov.Model([op.result(every), op.result(last)], [x, h, c], "iterating")
    return model, [_floats(_ROWS, _STEPS, _SIZE), _floats(_ROWS, _HIDDEN), _floats(_ROWS, _HIDDEN)]


# -- all else --------------------------------------------------------------------------------------------------------------

_IMAGE = _floats(1, 2, 5, 6)
_HEADS = _floats(2, 2, 4, 3)
_KEEPS = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool).reshape(2, 1, 1, 4)
_BIAS = np.where(_KEEPS, 0, -np.inf).astype(np.float32)
_MASK = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.float32)


def _interpolated(mode: str, coordinates: str, nearest: str = "round_prefer_floor", sizes=(3, 8)):
    return lambda x: op.interpolate(
        x, _const(sizes), mode, "sizes", coordinate_transformation_mode=coordinates, nearest_mode=nearest, axes=_const([2, 3])
    )


def _pooled(kind: str, rounding: str):
    if kind == "max":
        return lambda x: op.max_pool(x, [2, 2], [1, 1], [0, 1], [1, 0], [3, 2], rounding).outputs()
    return lambda x: ov.opset14.avg_pool(x, [2, 2], [0, 1], [1, 0], [3, 2], True, rounding)


_OTHERS = {
    **{
        f"interpolate nearest {coordinates} {nearest}": (_interpolated("nearest", coordinates, nearest), [_IMAGE])
        for coordinates in ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
    },
    **{
        f"interpolate {mode} {coordinates}": (_interpolated(mode, coordinates), [_IMAGE])
        for coordinates in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
        for mode in ("linear", "linear_onnx", "cubic")
    },
    **{
        f"{kind}_pool {way}": (_pooled(kind, way), [_IMAGE])
        for kind in ("max", "avg")
        for way in ("floor", "ceil", "ceil_torch")
    },
    "convolution of a mask": (
        lambda x: op.convolution(x, _const(np.ones((1, 1, 3)), np.float32), [2], [1], [1], [1]),
        [_MASK[:, None]],
    ),
    "convolution with a dead tap": (
        lambda x: op.convolution(x, _const([[[0, 1, 2]], [[0, 0, 1]]], np.float32), [1], [1], [1], [1]),
        [_MASK[:, None] + 1],
    ),
    "sdpa boolean mask": (op.scaled_dot_product_attention, [_HEADS, _HEADS, _HEADS * 2, _KEEPS]),
    "sdpa additive mask": (op.scaled_dot_product_attention, [_HEADS, _HEADS, _HEADS * 2, _BIAS]),
    "sdpa causal": (lambda q, k: op.scaled_dot_product_attention(q, k, k, causal=True), [_HEADS, _HEADS]),
    "softmax of a masked row": (lambda x, m: op.softmax(op.add(x, m), -1), [_HEADS[..., :2, :2], _BIAS[..., 1:3]]),
    "masked mean": (
        lambda x, m: op.divide(
            op.reduce_sum(op.multiply(x, op.unsqueeze(m, _const(-1))), _const(1)), op.reduce_sum(m, _const(1), keep_dims=True)
        ),
        [_floats(2, 4, 3), _MASK],
    ),
    "masked maximum": (
        lambda x, m: op.reduce_max(op.select(op.unsqueeze(m, _const(-1)), x, _const(-1e9, np.float32)), _const(1)),
        [_floats(2, 4, 3), _MASK > 0],
    ),
    "scatter_nd_update at computed places": (
        op.scatter_nd_update, [_floats(3, 4), np.array([[2], [0]], np.int64), _floats(2, 4)],
    ),
    "scatter_elements_update at computed places": (
        lambda x, i, u: op.scatter_elements_update(x, i, u, _const(1)),
        [_floats(3, 4), np.array([[2, 0], [1, 2]], np.int64), _floats(2, 2)],
    ),
    "scatter_update at computed places": (
        lambda x, i, u: op.scatter_update(x, i, u, _const(1)),
        [_floats(2, 4, 2), np.array([[3], [1]], np.int32), _floats(2, 2, 1, 2)],
    ),
    "embedding_bag_offsets, all fed": (
        lambda t, i, o, w: op.embedding_bag_offsets(t, i, o, _const(-1, np.int32), w),
        [
            _floats(5, 2), np.array([0, 2, 2, 4, 1], np.int32), np.array([0, 3, 3], np.int32),
            np.array([1, 0, 2, 3, 1], np.float32),
        ],
    ),
    "embedding_bag_packed weighted": (
        op.embedding_bag_packed, [_floats(5, 2), np.array([[0, 2], [3, 1]], np.int32), np.array([[1, 0], [2, 1]], np.float32)],
    ),
    "gather of masked rows": (
        lambda x, m: op.gather(x, op.convert(op.reduce_sum(m, _const(1)), "i64"), _const(1), 1), [_floats(2, 4, 2), _MASK],
    ),
    "non_zero of a mask": (lambda x, m: op.gather_nd(x, op.transpose(op.non_zero(m), _const([1, 0]))), [_floats(2, 4), _MASK]),
    "matrix product with zeros": (
        lambda a, b: op.matmul(a, b, False, False), [np.array([[1, 0, 2], [0, 0, 1]], np.float32), _floats(3, 2)],
    ),
    "convert to half": (lambda x: op.convert(x, "f16"), [np.array([1.1, -7e4, 3e-9, 1e5], np.float32)]),
    "fake_quantize of a sentinel": (
        lambda x: op.fake_quantize(x, *(_const(v, np.float32) for v in (-1e4, 1, -1e4, 1)), 256),
        [np.array([0, -1e4, 0.7, -3], np.float32)],
    ),
    "reverse_sequence with fed lengths": (
        lambda x, n: op.reverse_sequence(x, n, 0, 1), [_floats(2, 4, 2), np.array([3, 1], np.int32)],
    ),
    "trilu by comparison": (
        lambda x: op.select(op.less_equal(_const([0, 1, 2, 3]), _const([[0], [1], [2], [3]])), x, _const(0.0, np.float32)),
        [_floats(4, 4)],
    ),
}  # fmt: skip

OWN = {**_RECURRENT, **_OTHERS}


def subject(name: str, model: ov.Model, arrays, directory: Path, *, by_reference: bool = False) -> Subject:
    """The model, serialised to ``directory`` and read back."""
    path = directory / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    graph = read(path).graph
    order = [value.name for value in graph.inputs]
    if by_reference:

        def execute(feeds):
            tensors = [ov.Tensor(np.zeros(output.shape, output.element_type.to_dtype())) for output in model.outputs]
            assert model.evaluate(tensors, [ov.Tensor(np.array(feeds[name])) for name in order])
            return [np.array(tensor.data) for tensor in tensors]

        return Subject(name, graph, dict(zip(order, arrays, strict=True)), execute)
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = ov.Core().compile_model(model, "CPU", options)

    def run(feeds):
        return [np.array(array) for array in compiled([feeds[name] for name in order]).values()]

    return Subject(name, graph, dict(zip(order, arrays, strict=True)), run)


def built(build, arrays) -> ov.Model:
    parameters = [op.parameter(list(array.shape), array.dtype, name=f"p{at}") for at, array in enumerate(arrays)]
    for at, parameter in enumerate(parameters):
        parameter.output(0).set_names({f"p{at}"})
    outputs = build(*parameters)
    return ov.Model(outputs if isinstance(outputs, list) else [outputs], parameters, "case")
