"""What shadows must not blur: which position hears which, what zeros hide, when nothing is known."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from wirelint.dtypes import DType
from wirelint.formats.onnx import read
from wirelint.shadow.interpreter import run
from wirelint.shadow.labels import ROUTED, SIGNATURE, UNMODELLED, Layout
from wirelint.shadow.value import Shadow

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def bit(at):
    return np.uint64(1 << (5 + at))


def bits(count):
    return np.array([bit(at) for at in range(count)], dtype=np.uint64)


def hears(labels):
    """Sets of bit numbers, in an array of the labels' shape."""
    return np.frompyfunc(lambda mark: frozenset(at for at in range(58) if int(mark) >> (at + 5) & 1), 1, 1)(labels)


def executed(text, directory, **inputs):
    """The run of a model in ONNX's text form."""
    path = directory / "model.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    graph = read(path).graph
    return graph, run(graph, {value: inputs[value.name] for value in graph.inputs}, Layout())


def results(text, directory, **inputs):
    graph, found = executed(text, directory, **inputs)
    assert found.stop is None, found.stop
    assert not found.unmodelled
    return [found.values[value] for value in graph.outputs]


def along_steps(shape, axis=0):
    """Unknown floats of ``shape`` with a bit for each place along ``axis``."""
    labels = bits(shape[axis]).reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return Shadow.unknown(shape, DType.F32, labels)


def spread(shadow):
    return np.broadcast_to(shadow.labels, shadow.shape)


# -- windows -----------------------------------------------------------------------------------------------------------


CONV = "g (float[1,4,6] x, float[8,4,3] w) => (float[1,8,N] y) {{ y = Conv <{attrs}> (x, w) }}"


@pytest.mark.parametrize(
    ("attrs", "windows"),
    [
        ("pads=[1,1]", [{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}, {4, 5}]),
        ("pads=[2,0]", [{0}, {0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}]),
        ("strides=[2],pads=[1,1]", [{0, 1}, {1, 2, 3}, {3, 4, 5}]),
        ("dilations=[2]", [{0, 2, 4}, {1, 3, 5}]),
        ('auto_pad="SAME_UPPER",strides=[3]', [{0, 1, 2}, {3, 4, 5}]),
    ],
)
def test_a_convolution_hears_its_window(attrs, windows, tmp_path):
    weight = Shadow.unknown((8, 4, 3), DType.F32)
    (y,) = results(CONV.format(attrs=attrs), tmp_path, x=along_steps((1, 4, 6), 2), w=weight)
    assert y.labels.shape[1] == 1, "nothing varies along the channels"
    assert hears(y.labels)[0, 0].tolist() == windows


def test_a_grouped_convolution_keeps_groups_apart(tmp_path):
    text = "g (float[1,4,6] x, float[8,2,3] w) => (float[1,8,4] y) { y = Conv <group=2> (x, w) }"
    (y,) = results(text, tmp_path, x=along_steps((1, 4, 6), 1), w=Shadow.unknown((8, 2, 3), DType.F32))
    assert hears(spread(y))[0, :, 0].tolist() == [{0, 1}] * 4 + [{2, 3}] * 4


def test_a_zero_weight_hears_nothing(tmp_path):
    text = "g (float[1,1,4] x, float[2,1,3] w) => (float[1,2,4] y) { y = Conv <pads=[1,1]> (x, w) }"
    weight = Shadow.known(np.float32([[[0, 1, 0]], [[1, 0, 0]]]), DType.F32)
    (y,) = results(text, tmp_path, x=along_steps((1, 1, 4), 2), w=weight)
    assert hears(spread(y))[0].tolist() == [[{0}, {1}, {2}, {3}], [set(), {0}, {1}, {2}]]


def test_a_transposed_convolution_reaches_its_window(tmp_path):
    text = "g (float[1,2,3] x, float[2,2,2] w) => (float[1,2,6] y) { y = ConvTranspose <strides=[2]> (x, w) }"
    (y,) = results(text, tmp_path, x=along_steps((1, 2, 3), 2), w=Shadow.unknown((2, 2, 2), DType.F32))
    assert hears(y.labels)[0, 0].tolist() == [{0}, {0}, {1}, {1}, {2}, {2}]


def test_pools_of_a_known_mask_are_known(tmp_path):
    text = """g (float[1,1,6] m) => (float[1,1,3] most, float[1,1,3] mean) {
        most = MaxPool <kernel_shape=[2], strides=[2]> (m)
        mean = AveragePool <kernel_shape=[2], strides=[2]> (m)
    }"""
    mask = Shadow.known(np.float32([[[1, 1, 1, 0, 0, 0]]]), DType.F32, bits(6).reshape(1, 1, 6))
    most, mean = results(text, tmp_path, m=mask)
    assert most.full_value().tolist() == [[[1, 1, 0]]]
    assert mean.full_value().tolist() == [[[1, 0.5, 0]]]
    assert hears(spread(most))[0, 0].tolist() == [{0, 1}, {2, 3}, {4, 5}]


def test_a_pool_does_not_hear_what_is_far_below(tmp_path):
    text = """g (float[1,1,4] x, bool[1,1,4] keep) => (float[1,1,2] y) {
        low = Constant <value: tensor = float {-10000}> ()
        masked = Where (keep, x, low)
        y = MaxPool <kernel_shape=[2], strides=[2]> (masked)
    }"""
    keep = Shadow.known(np.array([[[True, False, True, True]]]), DType.BOOL, bit(10))
    (y,) = results(text, tmp_path, x=along_steps((1, 1, 4), 2), keep=keep)
    assert hears(spread(y))[0, 0].tolist() == [{0, 10}, {2, 3, 10}]


# -- recurrence --------------------------------------------------------------------------------------------------------


LSTM = """g (float[4,2,3] x, float[{d},8,3] w, float[{d},8,2] r, int32[2] lengths) => (float[4,{d},2,2] y, float[{d},2,2] h) {{
    y, h = LSTM <hidden_size=2, direction="{direction}"> (x, w, r, , lengths)
}}"""


def recurrence(direction, lengths, directory):
    count = 2 if direction == "bidirectional" else 1
    marks = bits(8).reshape(4, 2, 1)
    return results(
        LSTM.format(d=count, direction=direction), directory,
        x=Shadow.unknown((4, 2, 3), DType.F32, marks), lengths=lengths,
        w=Shadow.unknown((count, 8, 3), DType.F32), r=Shadow.unknown((count, 8, 2), DType.F32),
    )  # fmt: skip


def test_steps_beyond_a_length_are_neither_read_nor_computed(tmp_path):
    y, h = recurrence("forward", Shadow.known(np.int32([4, 2]), DType.I32), tmp_path)
    # Row 0 has the bits 0, 2, 4, 6, row 1 has 1, 3, 5, 7.
    assert hears(spread(y))[:, 0, 0, 0].tolist() == [{0}, {0, 2}, {0, 2, 4}, {0, 2, 4, 6}]
    assert hears(spread(y))[:, 0, 1, 0].tolist() == [{1}, {1, 3}, set(), set()]
    assert hears(spread(h))[0, :, 0].tolist() == [{0, 2, 4, 6}, {1, 3}]
    zero = np.broadcast_to(y.zero(), y.shape)
    assert zero[:, 0, :, 0].tolist() == [[False, False], [False, False], [False, True], [False, True]]


def test_backwards_a_row_begins_at_its_last_step(tmp_path):
    y, h = recurrence("reverse", Shadow.known(np.int32([4, 2]), DType.I32), tmp_path)
    assert hears(spread(y))[:, 0, 1, 0].tolist() == [{1, 3}, {3}, set(), set()]
    assert hears(spread(h))[0, :, 0].tolist() == [{0, 2, 4, 6}, {1, 3}]


def test_both_directions_stand_side_by_side(tmp_path):
    y, _ = recurrence("bidirectional", Shadow.known(np.int32([3, 4]), DType.I32), tmp_path)
    assert hears(spread(y))[1, :, 0, 0].tolist() == [{0, 2}, {2, 4}]


def test_unknown_lengths_reach_everything(tmp_path):
    y, h = recurrence("forward", Shadow.unknown((2,), DType.I32, np.array([bit(20), bit(21)])), tmp_path)
    assert hears(spread(y))[0, 0, :, 0].tolist() == [{0, 20}, {1, 21}]
    assert hears(spread(h))[0, 1, 0] == {1, 3, 5, 7, 21}
    assert y.zero() is None


# -- control flow ------------------------------------------------------------------------------------------------------


IF = """g (bool c, float[2] a, float[2] b) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] u) { u = Neg (a) }, else_branch = e () => (float[2] v) { v = Neg (b) }>
}"""


@pytest.mark.parametrize(("taken", "heard"), [(True, {0, 9}), (False, {1, 9}), (None, {0, 1, 9})])
def test_only_the_branch_that_is_taken_is_heard(taken, heard, tmp_path):
    condition = Shadow.unknown((), DType.BOOL, bit(9)) if taken is None else Shadow.known(taken, DType.BOOL, bit(9))
    a, b = (Shadow.unknown((2,), DType.F32, bit(at)) for at in (0, 1))
    (y,) = results(IF, tmp_path, c=condition, a=a, b=b)
    assert hears(y.labels).ravel().tolist() == [heard]


def test_branches_that_agree_keep_what_they_know(tmp_path):
    a, b = (Shadow.known(np.float32(values), DType.F32, bit(at)) for at, values in enumerate(([1, 2], [1, 3])))
    (y,) = results(IF, tmp_path, c=Shadow.unknown((), DType.BOOL), a=a, b=b)
    assert y.exact.tolist() == [True, False]
    assert y.value[0] == -1


def test_a_branch_that_can_t_run_leaves_the_other_unmodelled(tmp_path):
    text = """g (bool c, float[2] a, float[3] b) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] u) { u = Neg (a) }, else_branch = e () => (float[2] v) { v = Add (a, b) }>
    }"""
    a, b = Shadow.unknown((2,), DType.F32, bit(0)), Shadow.unknown((3,), DType.F32)
    (y,) = results(text, tmp_path, c=Shadow.unknown((), DType.BOOL), a=a, b=b)
    assert y.every_label() == bit(0) | UNMODELLED


LOOP = """g (int64 n, bool go, float[2] a, float[2] b) => (float[2] last, float[K,2] all) {
    last, all = Loop (n, go, a) <body = l (int64 i, bool c, float[2] s) => (bool on, float[2] t, float[2] out) {
        on = Identity (c)
        t = Add (s, b)
        out = Identity (s)
    }>
}"""
A, B = (Shadow.unknown((2,), DType.F32, bit(at)) for at in (0, 1))


def known(value, dtype):
    return Shadow.known(np.asarray(value), dtype)


@pytest.mark.parametrize("trips", [0, 3, 5000])
def test_a_loop_of_known_length(trips, tmp_path):
    last, every = results(LOOP, tmp_path, n=known(trips, DType.I64), go=known(True, DType.BOOL), a=A, b=B)
    assert every.shape == (trips, 2) if trips else every.shape[0] == 0
    assert hears(last.labels).ravel()[0] == ({0, 1} if trips else {0})
    if trips == 3:
        assert hears(spread(every))[:, 0].tolist() == [{0}, {0, 1}, {0, 1}]


def test_a_loop_that_never_begins(tmp_path):
    last, every = results(LOOP, tmp_path, n=known(3, DType.I64), go=known(False, DType.BOOL), a=A, b=B)
    assert every.shape[0] == 0
    assert hears(last.labels).ravel()[0] == {0}


def test_a_loop_of_unknown_length_has_no_known_number_of_elements(tmp_path):
    graph, found = executed(LOOP, tmp_path, n=Shadow.unknown((), DType.I64), go=known(True, DType.BOOL), a=A, b=B)
    assert [op.kind for op in found.unmodelled] == ["Loop"]
    assert all(found.values[value].every_label() & UNMODELLED for value in graph.outputs)


def test_a_loop_of_unknown_length_that_only_carries_a_state(tmp_path):
    text = """g (int64 n, bool go, float[2] a, float[2] b) => (float[2] last) {
        last = Loop (n, go, a) <body = l (int64 i, bool c, float[2] s) => (bool on, float[2] t) {
            on = Identity (c)
            t = Add (s, b)
        }>
    }"""
    count = Shadow.unknown((), DType.I64, bit(7))
    (last,) = results(text, tmp_path, n=count, go=known(True, DType.BOOL), a=A, b=B)
    assert hears(last.labels).ravel()[0] == {0, 1, 7}


def test_a_shifted_state_settles(tmp_path):
    text = """g (int64 n, bool go, float[40] a) => (float[40] last) {
        last = Loop (n, go, a) <body = l (int64 i, bool c, float[40] s) => (bool on, float[40] t) {
            on = Identity (c)
            one = Constant <value = int64[1] {1}> ()
            zero = Constant <value = int64[1] {0}> ()
            end = Constant <value = int64[1] {40}> ()
            head = Slice (s, zero, one)
            tail = Slice (s, one, end)
            t = Concat <axis=0> (tail, head)
        }>
    }"""
    start = Shadow.unknown((40,), DType.F32, bits(40))
    (last,) = results(text, tmp_path, n=Shadow.unknown((), DType.I64), go=known(True, DType.BOOL), a=start)
    assert (hears(spread(last)) == frozenset(range(40))).all()


SCAN = """g (float[2] a, float[6,2] x) => (float[2] last, float[6,2] all) {{
    last, all = Scan <num_scan_inputs=1, scan_input_directions=[{way}], scan_output_directions=[{way}],
        body = s (float[2] s, float[2] p) => (float[2] t, float[2] out) {{ t = Add (s, p)  out = Identity (t) }}> (a, x)
}}"""


@pytest.mark.parametrize("way", [0, 1])
def test_a_scan_hears_what_it_has_passed(way, tmp_path):
    _, every = results(SCAN.format(way=way), tmp_path, a=Shadow.unknown((2,), DType.F32), x=along_steps((6, 2)))
    passed = [set(range(at + 1)) for at in range(6)] if not way else [set(range(at, 6)) for at in range(6)]
    assert hears(spread(every))[:, 0].tolist() == passed


def test_an_endless_loop_ends(tmp_path):
    text = """g (bool go, float[2] a) => (float[2] last) {
        last = Loop ("", go, a) <body = l (int64 i, bool c, float[2] s) => (bool on, float[2] t) {
            on = Identity (c)
            t = Neg (s)
        }>
    }"""
    (last,) = results(text.replace('""', ""), tmp_path, go=known(True, DType.BOOL), a=A)
    assert hears(last.labels).ravel()[0] == {0}


# -- scatters, searches ------------------------------------------------------------------------------------------------


SCATTER = """g (float[2,4] x, int64[2,1] i, float[2,1] u) => (float[2,4] y) {{
    y = ScatterElements <axis=1, reduction="{reduction}"> (x, i, u)
}}"""


def scattered(reduction, indices, directory):
    news = Shadow.unknown((2, 1), DType.F32, bits(10)[8:].reshape(2, 1))
    data = Shadow.unknown((2, 4), DType.F32, bits(8).reshape(2, 4))
    (y,) = results(SCATTER.format(reduction=reduction), directory, x=data, i=indices, u=news)
    return hears(spread(y)).tolist()


def test_what_is_overwritten_is_not_heard(tmp_path):
    where = Shadow.known(np.int64([[1], [-1]]), DType.I64)
    assert scattered("none", where, tmp_path) == [[{0}, {8}, {2}, {3}], [{4}, {5}, {6}, {9}]]


def test_what_is_added_to_is_heard(tmp_path):
    where = Shadow.known(np.int64([[1], [-1]]), DType.I64)
    assert scattered("add", where, tmp_path) == [[{0}, {1, 8}, {2}, {3}], [{4}, {5}, {6}, {7, 9}]]


def test_unknown_indices_may_name_any_place_of_their_row(tmp_path):
    where = Shadow.unknown((2, 1), DType.I64, np.array([[bit(20)], [bit(21)]]))
    assert scattered("none", where, tmp_path) == [
        [{at, 8, 20} for at in range(4)],
        [{at, 9, 21} for at in range(4, 8)],
    ]


def test_known_indices_that_depend_on_something_leave_their_label_along_the_axis(tmp_path):
    where = Shadow.known(np.int64([[1], [2]]), DType.I64, np.array([[bit(20)], [bit(21)]]))
    rows = scattered("none", where, tmp_path)
    assert rows[0] == [{0, 20}, {8, 20}, {2, 20}, {3, 20}]


def test_whole_rows_are_written_by_scatter_nd(tmp_path):
    text = "g (float[3,4] x, int64[1,1] i, float[1,4] u) => (float[3,4] y) { y = ScatterND (x, i, u) }"
    where = Shadow.known(np.int64([[1]]), DType.I64)
    (y,) = results(text, tmp_path, x=along_steps((3, 4)), i=where, u=Shadow.unknown((1, 4), DType.F32, bit(9)))
    assert y.labels.shape == (3, 1)
    assert hears(y.labels).ravel().tolist() == [{0}, {9}, {2}]


def test_compress_by_a_known_mask(tmp_path):
    text = "g (float[4,2] x, bool[4] c) => (float[K,2] y) { y = Compress <axis=0> (x, c) }"
    keep = Shadow.known(np.array([True, False, True, False]), DType.BOOL, bit(9))
    (y,) = results(text, tmp_path, x=along_steps((4, 2)), c=keep)
    assert y.shape == (2, 2)
    assert hears(y.labels).ravel().tolist() == [{0, 9}, {2, 9}]


@pytest.mark.parametrize("text", [
    "g (float[4] x) => (float[K] y) { y = Unique (x) }",
    "g (float[4] x) => (float[K] y) { c = Cast <to=9> (x)  y = Compress (x, c) }",
])  # fmt: skip
def test_how_many_elements_there_are_must_be_known(text, tmp_path):
    _, found = executed(text, tmp_path, x=along_steps((4,)))
    assert found.stop is not None
    assert "depends on data" in found.stop.reason
    assert not found.stop.refused


def test_an_unknown_choice_is_every_element_and_settles_nothing(tmp_path):
    start = Shadow.known(np.array([0, 1, 0, 1], np.float32), DType.F32, along_steps((4,)).labels)
    unknown = Shadow(start.shape, start.dtype, start.labels, start.value, np.array([True, True, False, False]), start.labels)
    (y,) = results("g (float[4] x) => (int64[1,K] y) { y = NonZero (x) }", tmp_path, x=unknown)
    assert y.full_value().tolist() == [[1, 2, 3]]
    assert ((y.labels & ROUTED) != 0).all()
    assert hears(y.labels & ~(ROUTED | SIGNATURE)).ravel().tolist() == [{1}, {2}, {3}]


@pytest.mark.parametrize(
    ("mode", "coordinates", "windows"),
    [
        ("nearest", "asymmetric", [{0}, {0}, {1}, {1}, {2}, {2}]),
        ("linear", "half_pixel", [{0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2}, {1, 2}]),
    ],
)
def test_a_resampled_sequence_hears_its_neighbours(mode, coordinates, windows, tmp_path):
    text = f"""g (float[1,2,3] x, int64[3] sizes) => (float[1,2,6] y) {{
        y = Resize <mode="{mode}", coordinate_transformation_mode="{coordinates}", nearest_mode="floor"> (x, , , sizes)
    }}"""
    sizes = Shadow.known(np.int64([1, 2, 6]), DType.I64)
    (y,) = results(text, tmp_path, x=along_steps((1, 2, 3), 2), sizes=sizes)
    heard = hears(y.labels)[0, 0].tolist()
    assert all(one <= other for one, other in zip(heard, windows, strict=True))
    assert all(one for one in heard)
