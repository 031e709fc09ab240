"""ONNX models made to hurt: they cost a report, and neither memory, time nor anything outside of their folder."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from bench import Bench
from onnx import TensorProto, helper, numpy_helper

INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
LARGEST = 2**63 - 1


def ints(name, *numbers):
    return helper.make_tensor(name, INT64, [len(numbers)], numbers)


def scalar(name, number, dtype=np.int64):
    return numpy_helper.from_array(np.asarray(number, dtype=dtype), name)


def save(path, nodes, *, initializers=(), inputs=(("x", FLOAT, [2, 3]),), outputs=(("y", FLOAT, None),), **more):
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info(*entry) for entry in outputs],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **more)
    path.write_bytes(model.SerializeToString())
    return path


# -- sizes -----------------------------------------------------------------------------------------------------------------


def one(kind, *operands, initializers=(), **attributes):
    """A model of one operator whose results then are used."""
    return [helper.make_node(kind, ["x", *operands], ["h"], **attributes), helper.make_node("Relu", ["h"], ["y"])], initializers


def chained(first, kind="Expand"):
    """A constant becomes a large tensor in several steps, none of which is large beside the one before."""
    nodes, name = [], first
    for step in range(20):
        nodes.append(helper.make_node("Concat", [name] * 8, [f"c{step}"], axis=0))
        name = f"c{step}"
    return [*nodes, helper.make_node(kind, ["x", name], ["y"])]


def counting_loop(count):
    """A loop that adds 1 as often as its trip count says."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "state"], ["next"]),
            helper.make_node("Identity", ["going"], ["goes"]),
            helper.make_node("Identity", ["state"], ["each"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("at", INT64, []),
            helper.make_tensor_value_info("going", BOOL, []),
            helper.make_tensor_value_info("state", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes", BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, None),
            helper.make_tensor_value_info("each", FLOAT, None),
        ],
    )
    loop = helper.make_node("Loop", ["count", "yes", "x"], ["last", "all"], body=body)
    return [loop, helper.make_node("ReduceSum", ["all"], ["y"])], [scalar("count", count), scalar("yes", True, np.bool_)]


LARGE = {
    "reshape": one("Reshape", "s", initializers=[ints("s", 2**62, -1)]),
    "reshape_overflow": one("Reshape", "s", initializers=[ints("s", 2**32, 2**32, 6)]),
    "expand": one("Expand", "s", initializers=[ints("s", 2**40, 2, 3)]),
    "expand_many": one("Expand", "s", initializers=[ints("s", 2**20, 2**20, 2**20, 2, 3)]),
    "tile": one("Tile", "s", initializers=[ints("s", 2**62, 2**62)]),
    "pad": one("Pad", "s", initializers=[ints("s", 2**40, 0, 2**40, 2**62)]),
    "pad_negative": one("Pad", "s", initializers=[ints("s", -(2**63), 0, 0, -(2**63))]),
    "slice": one(
        "Slice", "a", "b", "c", "d", initializers=[ints("a", -(2**63)), ints("b", LARGEST), ints("c", 1), ints("d", -(2**63))]
    ),
    "resize": one("Resize", "", "", "s", initializers=[ints("s", 2**40, 2**40)], mode="nearest"),
    "resize_scales": one("Resize", "", "s", initializers=[helper.make_tensor("s", FLOAT, [2], [1e30, 1e30])], mode="linear"),
    "upsample": one("Upsample", "s", initializers=[helper.make_tensor("s", FLOAT, [2], [1e18, 1e18])]),
    "topk": one("TopK", "s", initializers=[ints("s", 2**62)]),
    "space": one("DepthToSpace", blocksize=2**40),
    "pool": one("MaxPool", kernel_shape=[2**40, 2**40], pads=[2**40] * 4, strides=[1, 1]),
    "squeeze_axes": one("Unsqueeze", "s", initializers=[ints("s", *range(2, 500))]),
    "cumsum": one("CumSum", "s", initializers=[scalar("s", 2**62)]),
    "constant_of_shape": (
        [helper.make_node("ConstantOfShape", ["s"], ["h"]), helper.make_node("Add", ["h", "x"], ["y"])],
        [ints("s", 2**30, 2**30)],
    ),
    "constant_of_shape_rank": (
        [helper.make_node("ConstantOfShape", ["s"], ["h"]), helper.make_node("Add", ["h", "x"], ["y"])],
        [ints("s", *[2] * 300)],
    ),
    "constant_of_shape_1g": (
        [helper.make_node("ConstantOfShape", ["s"], ["h"]), helper.make_node("NonZero", ["h"], ["y"])],
        [ints("s", 2**30)],
    ),
    "range": (
        [helper.make_node("Range", ["a", "b", "c"], ["h"]), helper.make_node("Cast", ["h"], ["y"], to=FLOAT)],
        [scalar("a", 0), scalar("b", 2**62), scalar("c", 1)],
    ),
    "range_float": (
        [helper.make_node("Range", ["a", "b", "c"], ["y"])],
        [scalar("a", 0, np.float32), scalar("b", 1e30, np.float32), scalar("c", 1e-30, np.float32)],
    ),
    "one_hot": (
        [helper.make_node("OneHot", ["i", "d", "v"], ["h"]), helper.make_node("Cast", ["h"], ["y"], to=FLOAT)],
        [ints("i", *range(1000)), scalar("d", 2**60), ints("v", 0, 1)],
    ),
    "eye_like": (
        [helper.make_node("ConstantOfShape", ["s"], ["h"]), helper.make_node("EyeLike", ["h"], ["y"])],
        [ints("s", 2**17, 2**17)],
    ),
    "trilu": (
        [helper.make_node("ConstantOfShape", ["s"], ["h"]), helper.make_node("Trilu", ["h"], ["y"])],
        [ints("s", 2**17, 2**17)],
    ),
    "outer": (
        [
            helper.make_node("Range", ["a", "b", "c"], ["r"]),
            helper.make_node("Unsqueeze", ["r", "one"], ["column"]),
            helper.make_node("Less", ["r", "column"], ["less"]),
            helper.make_node("Cast", ["less"], ["y"], to=FLOAT),
        ],
        [scalar("a", 0), scalar("b", 300_000), scalar("c", 1), ints("one", 1)],
    ),
    "concat_rank": (chained("s", "Reshape"), [ints("s", 1)]),
    "concat_many": ([helper.make_node("Concat", ["x"] * 20_000, ["y"], axis=0)], []),
    "split_many": ([helper.make_node("Split", ["x"], ["y", *(f"p{at}" for at in range(5000))], axis=0)], []),
    "loop": counting_loop(2**60),
    "loop_million": counting_loop(10**6),
    "einsum": one("Einsum", equation="ab->" + "ab" * 30),
    "dims": ([helper.make_node("MatMul", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=FLOAT, dims=[2**62, 2**62])]),
    "dims_negative": ([helper.make_node("MatMul", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=FLOAT, dims=[-3, 4])]),
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Each of them, checked in one process that has little memory and time."""
    folder = tmp_path_factory.mktemp("large")
    for name, (nodes, initializers) in LARGE.items():
        save(folder / f"{name}.onnx", nodes, initializers=initializers)
    for role, dtype in (("ids", INT64), ("pixels", FLOAT)):
        for name, dims in (
            ("batch", [2**40, 8]),
            ("length", [2, 2**40]),
            ("both", [2**31, 2**31]),
            ("none", [0, 0]),
            ("negative", [-5, 8]),
        ):
            table = TensorProto(name="t", data_type=FLOAT, dims=[100, 8])
            table.raw_data = bytes(3200)
            node = (
                helper.make_node("Gather", ["t", "x"], ["y"])
                if role == "ids"
                else helper.make_node("MatMul", ["x", "t"], ["y"])
            )
            save(folder / f"{role}_{name}.onnx", [node], initializers=[table], inputs=[("x", dtype, dims)])
    return Bench.confined(folder)


@pytest.mark.parametrize(
    "name",
    [*LARGE, *(f"{role}_{name}" for role in ("ids", "pixels") for name in ("batch", "length", "both", "none", "negative"))],
)
def test_declared_sizes_are_reported_on(large, name):
    assert large[0][f"{name}.onnx"]["status"] in ("ok", "unreadable")


def test_declared_sizes_cost_no_memory(large):
    assert large[1] < 700


# -- depth and length ------------------------------------------------------------------------------------------------------


def test_long_chain(tmp_path, bench):
    nodes = [helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"]) for at in range(20_000)]
    path = save(tmp_path / "chain.onnx", nodes, inputs=[("v0", FLOAT, ["n", 3])], outputs=[("v20000", FLOAT, None)])
    assert bench.check(path).status == "ok"


def test_long_chain_of_unknown_operators(tmp_path, bench):
    nodes = [helper.make_node("NoSuch", [f"v{at}"], [f"v{at + 1}"], domain="no.such") for at in range(20_000)]
    values = [("v0", FLOAT, ["n", 3])]
    path = save(tmp_path / "chain.onnx", nodes, inputs=values, outputs=[("v20000", FLOAT, None)])
    assert bench.check(path).status == "ok"


def nested(levels):
    node = helper.make_node("Relu", ["x"], ["r"])
    for _ in range(levels):
        body = helper.make_graph([node], "b", [], [helper.make_tensor_value_info(node.output[0], FLOAT, None)])
        node = helper.make_node(
            "If", ["c"], [node.output[0]], then_branch=body, else_branch=body.__class__.FromString(body.SerializeToString())
        )
        if node.ByteSize() > 1 << 22:
            break
    return node


@pytest.mark.parametrize("levels", [3, 9])
def test_nested_branches(levels, tmp_path, bench):
    node = nested(levels)
    path = save(tmp_path / "nested.onnx", [node], inputs=[("x", FLOAT, [2]), ("c", BOOL, [])], outputs=[("r", FLOAT, None)])
    assert bench.check(path).status == "ok"


def test_deeply_nested_loops(tmp_path, bench):
    """Five loops of 100 steps inside one another are ten thousand million steps."""
    inner = helper.make_node("Add", ["x", "x"], ["r"])
    for level in range(5):
        body = helper.make_graph(
            [inner, helper.make_node("Identity", [f"c{level}"], [f"k{level}"])],
            "b",
            [helper.make_tensor_value_info(f"i{level}", INT64, []), helper.make_tensor_value_info(f"c{level}", BOOL, [])],
            [helper.make_tensor_value_info(f"k{level}", BOOL, []), helper.make_tensor_value_info(inner.output[0], FLOAT, None)],
        )
        inner = helper.make_node("Loop", ["n", "yes"], [f"r{level}"], body=body)
    initializers = [scalar("n", 100), scalar("yes", True, np.bool_)]
    path = save(tmp_path / "loops.onnx", [inner], initializers=initializers, outputs=[("r4", FLOAT, None)])
    assert bench.check(path).status == "ok"


def test_functions_that_double(tmp_path, bench):
    """Each function calls the one before twice: expanded they are 2^40 nodes."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", "f0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports)]
    for level in range(1, 40):
        calls = [
            helper.make_node(f"f{level - 1}", ["a"], ["m"], domain="f"),
            helper.make_node(f"f{level - 1}", ["m"], ["b"], domain="f"),
        ]
        functions.append(helper.make_function("f", f"f{level}", ["a"], ["b"], calls, imports))
    path = save(tmp_path / "double.onnx", [helper.make_node("f39", ["x"], ["y"], domain="f")], functions=functions)
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("f", 1))
    path.write_bytes(model.SerializeToString())
    (finding,) = bench.check(path).findings
    assert finding.rule == "invalid-graph"


# -- wiring ----------------------------------------------------------------------------------------------------------------


def test_cycle(tmp_path, bench):
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    assert [finding.rule for finding in bench.check(save(tmp_path / "m.onnx", nodes)).findings] == ["graph-cycle"]


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Tanh", ["x"], ["y"])],
        [helper.make_node("Relu", ["x"], ["x"]), helper.make_node("Relu", ["x"], ["y"])],
        [helper.make_node("Relu", ["nowhere"], ["y"])],
        [helper.make_node("Mul", ["x"], ["y"])],
        [helper.make_node("Div", ["", "x"], ["y"])],
        [helper.make_node("Conv", ["x"], ["y"])],
    ],
    ids=["two-of-a-name", "redefined-input", "undefined", "one-factor", "no-dividend", "no-kernel"],
)
def test_wiring_that_no_runtime_accepts(nodes, tmp_path, bench):
    assert [finding.rule for finding in bench.check(save(tmp_path / "m.onnx", nodes)).findings] == ["invalid-graph"]


# -- external data ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ({"location": "/etc/passwd"}, "external-path-escape"),
        ({"location": "../secret"}, "external-path-escape"),
        ({"location": "link/secret"}, "external-path-escape"),
        ({"location": "C:\\secret"}, "external-path-escape"),
        ({"location": "absent"}, "missing-weights"),
        ({"location": "data", "offset": "1000"}, "weights-out-of-bounds"),
        ({"location": "data", "offset": "-8"}, "weights-out-of-bounds"),
        ({"location": "data", "length": "-2"}, "weights-out-of-bounds"),
        ({"location": "data", "offset": str(2**64), "length": str(2**64)}, "weights-out-of-bounds"),
        ({"location": "data", "offset": "nonsense"}, "weights-out-of-bounds"),
    ],
)
def test_external_data_elsewhere(entries, rule, tmp_path, bench):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(96))
    (folder / "data").write_bytes(bytes(96))
    (folder / "link").symlink_to(tmp_path)
    weight = TensorProto(name="w", data_type=FLOAT, dims=[3, 8], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    model = bench.check(save(folder / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], initializers=[weight]))
    assert rule in [finding.rule for finding in model.findings]


def test_overlapping_external_data_are_no_fault(tmp_path, bench):
    (tmp_path / "data").write_bytes(bytes(96))
    weights = []
    for at in range(2):
        weight = TensorProto(name=f"w{at}", data_type=FLOAT, dims=[3, 8], data_location=TensorProto.EXTERNAL)
        weight.external_data.add(key="location", value="data")
        weights.append(weight)
    nodes = [helper.make_node("MatMul", ["x", f"w{at}"], [f"p{at}"]) for at in range(2)]
    nodes.append(helper.make_node("Add", ["p0", "p1"], ["y"]))
    assert bench.check(save(tmp_path / "m.onnx", nodes, initializers=weights)).status == "ok"


# -- names -----------------------------------------------------------------------------------------------------------------

ESCAPES = "\x1b]0;owned\x07\x1b[2J"
MARKUP = "<script>alert(1)</script>"
COMMAND = "a\n::error file=x::owned\r\n$(reboot) `id` ; | & %0A::stop-commands::x"


@pytest.mark.parametrize(
    "part", ["INPUT", "NODE", "KIND", "DOMAIN", "DIM", "OUTPUT", "GRAPH", "PRODUCER", "KEY", "VALUE", "ATTRIBUTE", "DATA"]
)
def test_text_that_is_no_text(part, tmp_path, bench):
    """Protobuf hands out strings that are no UTF-8 as bytes."""
    table = TensorProto(name="t", data_type=FLOAT, dims=[100, 8], data_location=TensorProto.EXTERNAL)
    table.external_data.add(key="location", value="DATA!")
    nodes = [
        helper.make_node("Gather", ["t", "INPUT!"], ["h"], name="NODE!"),
        helper.make_node("KIND!", ["h"], ["k"], domain="DOMAIN!", **{"ATTRIBUTE!": 1}),
        helper.make_node("Relu", ["h"], ["OUTPUT!"]),
    ]
    inputs, outputs = [("INPUT!", INT64, ["batch", "DIM!"])], [("OUTPUT!", FLOAT, None)]
    path = save(tmp_path / "m.onnx", nodes, initializers=[table], inputs=inputs, outputs=outputs)
    model = onnx.load(path, load_external_data=False)
    model.graph.name, model.producer_name = "GRAPH!", "PRODUCER!"
    helper.set_model_props(model, {"KEY!": "VALUE!"})
    damaged = (part + "!").encode()
    path.write_bytes(model.SerializeToString().replace(damaged, b"\xff\xfe" + damaged[2:]))
    assert bench.check(path).status == "ok"


@pytest.mark.parametrize("name", [ESCAPES, MARKUP, COMMAND, "\u202egnp.exe", "x" * 100_000, "|--- [a](javascript:x)"])
def test_names_are_text_in_every_format(name, tmp_path):
    import wirelint
    from wirelint.report import FORMATS, RenderOptions, renderer

    table = TensorProto(name="t", data_type=FLOAT, dims=[100, 8], raw_data=bytes(3200))
    nodes = [
        helper.make_node("Gather", ["t", name], [name + "h"], name=name),
        helper.make_node("ReduceMean", [name + "h"], [name + "y"], name=name, axes=[1], keepdims=0),
    ]
    inputs = [(name, INT64, ["batch", name + "d"]), (name + "z", INT64, ["batch", "n"])]
    path = save(tmp_path / "m.onnx", nodes, initializers=[table], inputs=inputs, outputs=[(name + "y", FLOAT, None)])
    report = wirelint.check(path, config=False)
    assert report.models[0].findings
    for form in FORMATS:
        text = renderer(form)(report, RenderOptions(verbose=True))
        assert "\x1b" not in text, form
        assert "\x07" not in text, form
        assert "\u202e" not in text, form
        if form in ("html", "markdown", "junit"):
            assert "<script>alert(1)" not in text, form
        commands = [line.partition(" ")[0] for line in text.splitlines() if line.startswith("::")]
        assert set(commands) <= ({"::error", "::warning", "::notice"} if form == "github" else set()), form
        assert "::error file=x::owned" not in text.splitlines(), form


def test_attention_over_nothing(tmp_path, bench):
    """A static cache of no positions: scores without elements."""
    table = helper.make_tensor("w", FLOAT, [8, 8], [0.5] * 64)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    inputs = [("x", FLOAT, [2, 3, 8]), ("k", FLOAT, [2, 8, 0]), ("v", FLOAT, [2, 0, 8])]
    assert bench.check(save(tmp_path / "m.onnx", nodes, initializers=[table], inputs=inputs)).status == "ok"
