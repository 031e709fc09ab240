"""The shape of what is read: interface, names, order, subgraphs, functions, and graphs that can't run."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_rebuild import rebuild, run

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.formats.onnx import read

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape=(), number=FLOAT):
    return helper.make_tensor_value_info(name, number, shape)


def node(kind, inputs, outputs, **attrs):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attrs)


def model_of(
    nodes, *, inputs=("x",), outputs=("y",), initializers=(), ir_version=9, opsets=(("", 18),), functions=(), **kwargs
):
    def declared(name):
        return info(name, ["n", 4]) if isinstance(name, str) else name

    graph = helper.make_graph(
        nodes, "g", [declared(i) for i in inputs], [declared(o) for o in outputs], list(initializers), **kwargs
    )
    model = helper.make_model(graph, functions=list(functions), ir_version=ir_version)
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*pair) for pair in opsets)
    return model


@pytest.fixture
def load(tmp_path):
    def load_model(model):
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return read(path)

    return load_model


@pytest.fixture
def refuse(load):
    def refused(model, rule="invalid-graph"):
        with pytest.raises(ModelFileError) as caught:
            load(model)
        assert caught.value.rule == rule
        assert "\n" not in caught.value.reason
        return caught.value.reason

    return refused


def kinds(graph):
    return [op.kind for op in graph.ops]


WEIGHT = numpy_helper.from_array(np.ones((4,), np.float32), "w")


class TestInterface:
    def test_equals_what_onnxruntime_reports(self, load, tmp_path):
        model = model_of(
            [node("Where", "m x w", "y"), node("Shape", "x", "s")],
            inputs=[info("x", ["batch", 4]), info("m", ["batch", None], BOOL), info("unused", (), INT64), info("free", None)],
            outputs=[info("y", ["batch", 4]), info("s", [2], INT64)],
            initializers=[WEIGHT],
        )
        graph = load(model).graph
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
        types = {DType.F32: "tensor(float)", DType.BOOL: "tensor(bool)", DType.I64: "tensor(int64)"}
        for values, names, ports in (
            (graph.inputs, [value.name for value in graph.inputs], session.get_inputs()),
            (graph.outputs, graph.output_names, session.get_outputs()),
        ):
            assert names == [port.name for port in ports]
            assert [types[value.dtype] for value in values] == [port.type for port in ports]
            assert [list(value.shape or ()) for value in values] == [port.shape for port in ports]
        assert graph.inputs[3].shape is None
        assert graph.inputs[0].names == ("x",)

    @pytest.mark.parametrize("ir_version", [3, 9])
    def test_weight_that_is_listed_as_an_input(self, load, ir_version):
        model = model_of([node("Add", "x w", "y")], inputs=["x", info("w", [4])], initializers=[WEIGHT], ir_version=ir_version)
        graph = load(model).graph
        assert [value.name for value in graph.inputs] == ["x"]
        operand = graph.ops[0].inputs[1]
        assert operand.default is None
        np.testing.assert_array_equal(operand.constant.load(), np.ones(4))

    @pytest.mark.parametrize("ir_version", [3, 9])
    def test_input_with_a_default(self, load, ir_version):
        mask = numpy_helper.from_array(np.ones((2, 4), dtype=np.float32), "mask")
        model = model_of(
            [node("Add", "x mask", "y")], inputs=["x", info("mask", ["batch", 4])], initializers=[mask], ir_version=ir_version
        )
        graph = load(model).graph
        assert [value.name for value in graph.inputs] == ["x", "mask"]
        operand = graph.ops[0].inputs[1]
        assert operand.constant is None
        np.testing.assert_array_equal(operand.default.load(), np.ones((2, 4)))

    @pytest.mark.parametrize(("dim", "fed"), [("batch", True), (None, False), (4, False)])
    def test_vector_with_a_default(self, load, dim, fed):
        """One length for each row is fed; a bias that an old file lists has no name for its dimension."""
        lengths = numpy_helper.from_array(np.full(4, 7, dtype=np.float32), "lengths")
        model = model_of(
            [node("Add", "x lengths", "y")], inputs=["x", info("lengths", [dim])], initializers=[lengths], ir_version=9
        )
        assert [value.name for value in load(model).graph.inputs] == (["x", "lengths"] if fed else ["x"])

    def test_header(self, load):
        model = model_of([node("Relu", "x", "y")], opsets=[("ai.onnx", 15), ("", 18), ("com.microsoft", 1), ("", 16)])
        model.producer_name, model.producer_version = "exporter", "2.1"
        helper.set_model_props(model, {"task": "test"})
        found = load(model)
        assert (found.producer, found.producer_version, found.ir_version) == ("exporter", "2.1", 9)
        assert found.opsets == {"": 18, "com.microsoft": 1}
        assert found.metadata == {"task": "test"}
        assert found.format == "onnx"

    def test_missing_opset_import_means_the_newest(self, load):
        model = model_of([node("Softmax", "x", "y", axis=0), node("Gelu", "y", "z")], outputs=["z"], opsets=[("other", 1)])
        graph = load(model).graph
        assert graph.ops[0].attrs == {"axis": 0, "coerce_2d": False}

    def test_dimensions(self, load):
        model = model_of([node("Relu", "x", "y")], inputs=[info("x", ["n", 3, None, -1])])
        model.graph.input[0].type.tensor_type.shape.dim.add(dim_value=2**62)
        assert load(model).graph.inputs[0].shape == ("n", 3, None, None, 2**62)

    def test_types_that_are_no_tensors(self, load):
        sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [1])
        optional = helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(INT64, [2])))
        graph = load(model_of([node("Relu", "x", "y")], inputs=["x", sequence, optional])).graph
        assert (graph.inputs[1].dtype, graph.inputs[1].shape) == (DType.UNKNOWN, None)
        assert (graph.inputs[2].dtype, graph.inputs[2].shape) == (DType.I64, (2,))


class TestLinks:
    def test_producers_consumers_and_origins(self, load):
        graph = load(model_of([node("Relu", "x", "a", name="first"), node("Add", "a a", "y", name="second")])).graph
        first, second = graph.ops
        shared = first.outputs[0]
        assert shared.producer is first
        assert shared.consumers == [(second, 0), (second, 1)]
        assert graph.inputs[0].consumers == [(first, 0)]
        assert (second.origin.name, second.origin.op_type, second.origin.index) == ("second", "Add", 1)

    def test_types_of_undeclared_values(self, load):
        nodes = [
            node("Shape", "x", "shape"),
            node("Cast", "shape", "small", to=TensorProto.FLOAT16),
            node("Less", "small small", "truth"),
            node("TopK", "x k", "values indices"),
            node("Where", "flag x x", "picked"),
            node("Identity", "picked", "y"),
        ]
        constants = [numpy_helper.from_array(np.array([1]), "k"), numpy_helper.from_array(np.array(True), "flag")]
        graph = load(model_of(nodes, initializers=constants)).graph
        types = {value.name: value.dtype for op in graph.ops for value in op.outputs}
        assert types == {
            "shape": DType.I64,
            "small": DType.F16,
            "truth": DType.BOOL,
            "values": DType.F32,
            "indices": DType.I64,
            "picked": DType.F32,
            "y": DType.F32,
        }

    def test_declared_types_and_shapes_of_values(self, load):
        declared = [info("a", ["n", 4, 1])]
        graph = load(model_of([node("Custom", "x", "a"), node("Relu", "a", "y")], value_info=declared)).graph
        assert graph.ops[0].kind == "Opaque"
        assert (graph.ops[0].outputs[0].dtype, graph.ops[0].outputs[0].shape) == (DType.F32, ("n", 4, 1))


class TestOrder:
    def test_unsorted_nodes_are_sorted(self, load):
        nodes = [node("Relu", "b", "y"), node("Relu", "a", "b"), node("Relu", "x", "a")]
        graph = load(model_of(nodes)).graph
        assert [op.origin.index for op in graph.ops] == [2, 1, 0]

    def test_subgraphs_count_as_readers(self, load):
        branch = helper.make_graph([node("Relu", "late", "r")], "b", [], [info("r")])
        nodes = [node("If", "flag", "y", then_branch=branch, else_branch=branch), node("Relu", "x", "late")]
        graph = load(model_of(nodes, inputs=["x", info("flag", (), BOOL)])).graph
        assert kinds(graph) == ["Relu", "If"]

    def test_cycle_is_named(self, refuse):
        nodes = [node("Relu", "x", "a"), node("Add", "a d", "b", name="left"), node("Relu", "b", "c", name="right")]
        nodes += [node("Relu", "c", "d", name="back"), node("Relu", "d", "y")]
        reason = refuse(model_of(nodes), "graph-cycle")
        assert all(f"'{name}'" in reason for name in ("left", "right", "back"))

    def test_node_that_reads_itself(self, refuse):
        assert "'loop'" in refuse(model_of([node("Add", "x y", "y", name="loop")]), "graph-cycle")

    def test_long_chain_in_reverse_takes_linear_time(self, load):
        def seconds(count):
            nodes = [node("Relu", f"v{index}", f"v{index + 1}") for index in reversed(range(count))]
            model = model_of(nodes, inputs=["v0"], outputs=[f"v{count}"])
            begin = time.perf_counter()
            assert len(load(model).graph.ops) == count
            return time.perf_counter() - begin

        assert seconds(16_000) < 20 * seconds(2_000) + 1


class TestFaults:
    def test_undefined_operand(self, refuse):
        assert "'nowhere'" in refuse(model_of([node("Add", "x nowhere", "y", name="n")]))

    def test_undefined_result(self, refuse):
        assert "'y'" in refuse(model_of([node("Relu", "x", "z")]))

    def test_two_definitions(self, refuse):
        assert "'y'" in refuse(model_of([node("Relu", "x", "y"), node("Relu", "x", "y")]))
        assert "'x'" in refuse(model_of([node("Relu", "x", "x")], outputs=["x"]))
        assert "'x'" in refuse(model_of([node("Relu", "x", "y")], inputs=["x", "x"]))

    @pytest.mark.parametrize(
        "kind", ["Gemm", "Reshape", "LSTM", "Attention", "QLinearMatMul", "If", "Loop", "Scan", "Constant"]
    )
    def test_missing_operands_and_bodies(self, refuse, kind):
        assert "'n'" in refuse(model_of([node(kind, "x", "y", name="n")]))

    def test_attribute_of_another_type(self, refuse):
        assert "'axis'" in refuse(model_of([node("Gather", "x x", "y", axis="last")]))

    def test_negative_dimension_of_a_tensor(self, refuse):
        refuse(model_of([node("Add", "x w", "y")], initializers=[TensorProto(name="w", data_type=1, dims=[-1])]))

    def test_names_with_line_breaks_stay_on_one_line(self, refuse):
        refuse(model_of([helper.make_node("Add", ["x", "no\nwhere"], ["y"])]))


class TestControlFlow:
    def loop(self):
        """Doubles a state ``trips`` times; yields each state, and reads ``w`` from the graph around it."""
        body = helper.make_graph(
            [node("Add", "s w", "next"), node("Identity", "next", "shown"), node("Identity", "go", "on")],
            "body",
            [info("i", (), INT64), info("go", (), BOOL), info("s", ["n", 4])],
            [info("on", (), BOOL), info("next", ["n", 4]), info("shown", ["n", 4])],
        )
        constants = [WEIGHT, numpy_helper.from_array(np.array(3), "trips"), numpy_helper.from_array(np.array(True), "flag")]
        return model_of(
            [node("Loop", "trips flag x", "y z", name="l", body=body)], outputs=["y", info("z", None)], initializers=constants
        )

    def test_loop(self, load):
        model = self.loop()
        found = load(model)
        (op,) = found.graph.ops
        body = op.bodies["body"]
        assert op.kind == "Loop"
        assert op.attrs["carried"] == 1
        assert op.attrs["scan_output_axes"] == (0,)
        assert [value.name for value in body.inputs] == ["i", "go", "s"]
        outer = body.ops[0].inputs[1]
        assert outer.constant is not None
        assert outer.consumers == [(body.ops[0], 1)]
        assert body.ops[0].origin.scope == ("l",)
        feed = {"x": np.ones((2, 4), np.float32)}
        for left, right in zip(run(rebuild(found), feed), run(model, feed), strict=True):
            np.testing.assert_array_equal(left, right)

    @pytest.mark.parametrize("opset", [8, 9, 16])
    def test_scan(self, load, opset):
        body = helper.make_graph(
            [node("Add", "s e", "t"), node("Identity", "t", "o")],
            "body",
            [info("s", [4]), info("e", [4])],
            [info("t", [4]), info("o", [4])],
        )
        shapes = {"s0": [2, 4], "x": [2, 3, 4]} if opset == 8 else {"s0": [4], "x": [3, 4]}
        names = ["", "s0", "x"] if opset == 8 else ["s0", "x"]
        scan = helper.make_node("Scan", names, ["y", "z"], body=body, num_scan_inputs=1)
        inputs = [info(name, shape) for name, shape in shapes.items()]
        model = model_of([scan], inputs=inputs, outputs=[info("y", None), info("z", None)], opsets=[("", opset)])
        feed = {name: np.random.default_rng(1).normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        found = load(model)
        assert kinds(found.graph) == ["Loop"]
        assert found.graph.ops[0].attrs["carried"] == (0 if opset == 8 else 1)
        for left, right in zip(run(rebuild(found), feed), run(model, feed), strict=True):
            np.testing.assert_array_equal(left, right)

    def test_if_reads_around_it(self, load):
        branches = {
            name: helper.make_graph([node(kind, "x", "r")], name, [], [info("r", ["n", 4])])
            for name, kind in (("then_branch", "Relu"), ("else_branch", "Neg"))
        }
        graph = load(model_of([node("If", "flag", "y", **branches)], inputs=["x", info("flag", (), BOOL)])).graph
        (op,) = graph.ops
        assert set(op.bodies) == {"then", "else"}
        assert [reader.kind for reader, _ in graph.inputs[0].consumers] == ["Relu", "Neg"]
        assert op.bodies["then"].inputs == []

    def test_unknown_operator_with_a_body_reads_what_the_body_reads(self, load):
        body = helper.make_graph([node("Add", "inner outer", "r")], "b", [info("inner")], [info("r")])
        graph = load(model_of([node("Special", "x", "y", body=body)], inputs=["x", "outer"])).graph
        assert [value.name for value in graph.ops[0].inputs] == ["x", "outer"]


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), domain="local"):
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_function(domain, name, inputs.split(), outputs.split(), nodes, imports, list(attributes), list(defaults))


def referring(kind, inputs, outputs, attribute, parameter, number):
    made = node(kind, inputs, outputs)
    made.attribute.add(name=attribute, ref_attr_name=parameter, type=number)
    return made


LOCAL = (("", 18), ("local", 1))


class TestFunctions:
    def test_are_inlined_with_their_attributes(self, load):
        inner = function("inner", "a", "b", [referring("LeakyRelu", "a", "b", "alpha", "slope", 1)], attributes=["slope"])
        call = node("inner", "p", "q", domain="local", name="deep")
        call.attribute.add(name="slope", ref_attr_name="steep", type=1)
        outer = function(
            "outer",
            "p",
            "r",
            [call, node("Neg", "q", "r")],
            defaults=[helper.make_attribute("steep", 0.25)],
        )
        nodes = [node("outer", "x", "a", domain="local", name="one"), node("outer", "a", "y", domain="local", steep=0.5)]
        model = model_of(nodes, functions=[inner, outer], opsets=LOCAL)
        found = load(model)
        assert kinds(found.graph) == ["LeakyRelu", "Neg"] * 2
        assert [op.attrs["alpha"] for op in found.graph.ops[::2]] == [0.25, 0.5]
        assert found.graph.ops[0].origin.scope == ("one", "deep")
        assert found.graph.ops[1].outputs[0].name == "a"
        feed = {"x": np.array([[-1, 2, -3, 4]], np.float32)}
        np.testing.assert_array_equal(run(rebuild(found), feed)[0], run(model, feed)[0])

    def test_absent_operands_and_passed_through_results(self, load):
        body = [node("Clip", "a low high", "c"), node("Identity", "a", "d")]
        clip = function("clip", "a low high", "c d a", body)
        call = helper.make_node("clip", ["x", "", "w"], ["y", "z", "same"], domain="local")
        scalar = numpy_helper.from_array(np.array(0.5, np.float32), "w")
        found = load(model_of([call], outputs=["y", "z", "same"], functions=[clip], initializers=[scalar], opsets=LOCAL))
        assert kinds(found.graph) == ["Clip", "Identity", "Identity"]
        assert found.graph.ops[0].inputs[1] is None

    def test_function_with_a_subgraph(self, load):
        branch = helper.make_graph([node("Relu", "a", "r")], "b", [], [info("r")])
        body = [node("If", "c", "d", then_branch=branch, else_branch=branch)]
        nodes = [node("choose", "x flag", "y", domain="local", name="call")]
        model = model_of(
            nodes, inputs=["x", info("flag", (), BOOL)], functions=[function("choose", "a c", "d", body)], opsets=LOCAL
        )
        found = load(model)
        assert found.graph.ops[0].bodies["then"].ops[0].inputs == [found.graph.inputs[0]]

    def test_recursion(self, refuse):
        again = function("again", "a", "b", [node("again", "a", "b", domain="local")])
        assert "calls itself" in refuse(model_of([node("again", "x", "y", domain="local")], functions=[again], opsets=LOCAL))

    def test_expansion_is_bounded(self, refuse):
        functions = [function("f0", "a", "b", [node("Relu", "a", "b")])]
        for level in range(1, 40):
            calls = [node(f"f{level - 1}", "a", "c", domain="local"), node(f"f{level - 1}", "c", "b", domain="local")]
            functions.append(function(f"f{level}", "a", "b", calls))
        reason = refuse(model_of([node("f39", "x", "y", domain="local")], functions=functions, opsets=LOCAL))
        assert "expand" in reason

    def test_deep_calls(self, refuse):
        functions = [function("f0", "a", "b", [node("Relu", "a", "b")])]
        functions += [
            function(f"f{level}", "a", "b", [node(f"f{level - 1}", "a", "b", domain="local")]) for level in range(1, 3000)
        ]
        assert "nested" in refuse(model_of([node("f2999", "x", "y", domain="local")], functions=functions, opsets=LOCAL))

    def test_function_of_the_file_goes_before_the_known_operator(self, load):
        own = function("Gelu", "a", "b", [node("Relu", "a", "b")], domain="com.microsoft")
        opsets = [*LOCAL, ("com.microsoft", 1)]
        found = load(model_of([node("Gelu", "x", "y", domain="com.microsoft")], functions=[own], opsets=opsets))
        assert kinds(found.graph) == ["Relu"]


def test_every_form_of_constant_is_a_constant(load):
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", FLOAT, [2], [1.0, 2.0]), helper.make_tensor("i", INT64, [2], [0, 3]), [4]
    )
    forms = {
        "value": helper.make_tensor("t", INT64, [2], [5, 6]),
        "sparse_value": sparse,
        "value_float": 0.5,
        "value_floats": [0.5, 1.5],
        "value_int": 7,
        "value_ints": [7, 8],
        "value_string": "text",
        "value_strings": ["a", "b"],
    }
    nodes = [node("Constant", "", f"c_{name}", **{name: value}) for name, value in forms.items()]
    nodes += [node("Identity", f"c_{name}", f"y_{name}") for name in forms]
    outputs = [onnx.ValueInfoProto(name=f"y_{name}") for name in forms]
    graph = load(model_of(nodes, outputs=outputs)).graph
    assert kinds(graph) == ["Identity"] * len(forms)
    held = {op.inputs[0].name.removeprefix("c_"): op.inputs[0].constant for op in graph.ops}
    expected = {"value": [5, 6], "sparse_value": [1, 0, 0, 2], "value_float": 0.5, "value_floats": [0.5, 1.5], "value_int": 7}
    expected["value_ints"] = [7, 8]
    for name, numbers in expected.items():
        np.testing.assert_array_equal(held[name].load(), numbers)
    assert held["value_string"].dtype is DType.STRING
    assert held["value_strings"].fetch().tolist() == ["a", "b"]
