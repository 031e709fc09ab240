"""Writes a canonical graph as an ONNX model again, so that ONNX Runtime can say whether a lowering kept its meaning."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from wirelint.dtypes import DType
from wirelint.formats.onnx.dtypes import BY_NUMBER

NUMBERS = {dtype: number for number, dtype in reversed(BY_NUMBER.items())}
FAR = np.float32(-1e30)


class Rebuilder:
    """One graph; the subgraphs in it share the names."""

    def __init__(self):
        self.names = {}
        self.taken = set()
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"_{self.count}"

    def new_name(self, value):
        """The value's own name; inlined functions use the same names again and again."""
        name = self.fresh() if not value.name or value.name in self.taken else value.name
        self.taken.add(name)
        self.names[value] = name
        return name

    def graph(self, graph, *, main=False):
        inner = Nodes(self)
        for value in graph.inputs:
            self.new_name(value)
        for op in graph.ops:
            inner.lower(op)
        outputs = []
        for value, declared in zip(graph.outputs, graph.output_names, strict=True):
            name = declared if main and value.producer is not None and inner.name(value) == declared else self.fresh()
            if name != declared or not main:
                inner.add("Identity", [inner.name(value)], [name])
            outputs.append(helper.make_tensor_value_info(name, NUMBERS[value.dtype], None))
        inputs = [
            helper.make_tensor_value_info(
                self.names[value],
                NUMBERS[value.dtype],
                None if value.shape is None else list(value.shape),
            )
            for value in graph.inputs
        ]
        return helper.make_graph(inner.nodes, "rebuilt", inputs, outputs)


class Nodes:
    def __init__(self, rebuilder):
        self.rebuilder = rebuilder
        self.nodes = []

    def add(self, kind, inputs, outputs, **attrs):
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attrs))

    def get(self, kind, *inputs, **attrs):
        name = self.rebuilder.fresh()
        self.add(kind, list(inputs), [name], **attrs)
        return name

    def constant(self, array, dtype=np.int64):
        return self.get("Constant", value=numpy_helper.from_array(np.asarray(array, dtype=dtype)))

    def name(self, value):
        if value is None:
            return ""
        names = self.rebuilder.names
        if value not in names:
            if value.constant is not None:
                names[value] = self.constant(value.constant.load(1 << 24), value.dtype.numpy)
            else:
                self.rebuilder.new_name(value)
        return names[value]

    def lower(self, op):
        inputs, outputs = [self.name(value) for value in op.inputs], [self.name(value) for value in op.outputs]
        special = getattr(self, f"lower_{op.kind.lower()}", None)
        if special is not None:
            special(op, inputs, outputs)
            return
        attrs = {name: list(value) if isinstance(value, tuple) else value for name, value in op.attrs.items()}
        self.add(op.kind, inputs, outputs, **attrs)

    def lower_opaque(self, op, _inputs, _outputs):
        raise AssertionError(f"{op.origin.op_type} was left opaque")

    def lower_reshape(self, op, inputs, outputs):
        self.add("Reshape", inputs, outputs, allowzero=int(not op.attrs["zero_copies"]))

    def lower_cast(self, op, inputs, outputs):
        self.add("Cast", inputs, outputs, to=NUMBERS[op.attrs["dtype"]])

    def lower_constantofshape(self, op, inputs, outputs):
        self.add("ConstantOfShape", inputs, outputs, value=numpy_helper.from_array(op.attrs["value"].fetch().reshape(1)))

    def lower_matmul(self, op, inputs, outputs):
        for slot, attribute in enumerate(("transpose_a", "transpose_b")):
            if op.attrs.get(attribute):
                inputs[slot] = self.get("Einsum", inputs[slot], equation="...ij->...ji")
        self.add("MatMul", inputs, outputs)

    def lower_swish(self, op, inputs, outputs):
        gate = self.get("Sigmoid", self.get("Mul", inputs[0], self.constant(op.attrs["beta"], np.float32)))
        self.add("Mul", [inputs[0], gate], outputs)

    def lower_split(self, op, inputs, outputs):
        attrs = {"axis": op.attrs["axis"]} | ({"num_outputs": len(outputs)} if len(inputs) < 2 else {})
        self.add("Split", inputs, outputs, **attrs)

    def lower_softmax(self, op, inputs, outputs):
        if not op.attrs["coerce_2d"]:
            self.add(op.kind, inputs, outputs, axis=op.attrs["axis"])
            return
        flat = self.get(op.kind, self.get("Flatten", inputs[0], axis=op.attrs["axis"]), axis=-1)
        self.add("Reshape", [flat, self.get("Shape", inputs[0])], outputs)

    lower_logsoftmax = lower_hardmax = lower_softmax

    def lower_quantizelinear(self, op, inputs, outputs):
        self.add("QuantizeLinear", inputs, outputs, axis=op.attrs["axis"], block_size=op.attrs["block_size"])

    def lower_dequantizelinear(self, op, inputs, outputs):
        self.add("DequantizeLinear", inputs, outputs, axis=op.attrs["axis"], block_size=op.attrs["block_size"])

    def lower_rotaryembedding(self, op, inputs, outputs):
        attrs = dict(op.attrs)
        self.add("RotaryEmbedding", inputs, outputs, rotary_embedding_dim=attrs.pop("rotary_dim"), **attrs)

    def lower_lpnormalization(self, op, inputs, outputs):
        self.add("LpNormalization", inputs[:1], outputs, axis=int(op.inputs[1].constant.fetch()[0]), p=op.attrs["p"])

    def lower_meanvariancenormalization(self, op, inputs, outputs):
        self.add("MeanVarianceNormalization", inputs[:1], outputs, axes=op.inputs[1].constant.fetch().tolist())

    def lower_if(self, op, inputs, outputs):
        bodies = {f"{role}_branch": self.rebuilder.graph(body) for role, body in op.bodies.items()}
        self.add("If", inputs, outputs, **bodies)

    def lower_loop(self, op, inputs, outputs):
        body, attrs = op.bodies["body"], dict(op.attrs)
        scanned = len(inputs) - 2 - attrs.pop("carried")
        if scanned <= 0:
            self.add("Loop", inputs, outputs, body=self.rebuilder.graph(body))
            return
        # A loop over scan inputs that never ends early: the condition and the iteration number go unused.
        assert body.outputs[0].constant.fetch()
        body.inputs, body.outputs, body.output_names = body.inputs[2:], body.outputs[1:], body.output_names[1:]
        attrs.pop("keep_axis")
        attrs = {name: list(value) for name, value in attrs.items() if value}
        self.add("Scan", inputs[2:], outputs, body=self.rebuilder.graph(body), num_scan_inputs=scanned, **attrs)

    def lower_attention(self, op, inputs, outputs):
        """Scaled dot-product attention as the vocabulary defines it, in f32."""
        attrs = op.attrs
        query, key, value, mask, past_key, past_value, lengths, starts, bias = inputs + [""] * (9 - len(inputs))
        heads = attrs.get("q_num_heads")
        if heads:
            kv_heads = attrs["kv_num_heads"]
            query, key, value = (self.apart(*pair) for pair in ((query, heads), (key, kv_heads), (value, kv_heads)))
        if past_key:
            key, value = self.get("Concat", past_key, key, axis=2), self.get("Concat", past_value, value, axis=2)
        scores = self.get("MatMul", query, self.get("Transpose", self.repeated(key, query), perm=[0, 1, 3, 2]))
        if attrs.get("scale"):
            scores = self.get("Mul", scores, self.constant(attrs["scale"], np.float32))
        else:
            scores = self.get("Div", scores, self.get("Sqrt", self.get("Cast", self.dim(query, 3), to=TensorProto.FLOAT)))
        if attrs.get("softcap"):
            cap = self.constant(attrs["softcap"], np.float32)
            scores = self.get("Mul", self.get("Tanh", self.get("Div", scores, cap)), cap)
        if bias:
            scores = self.get("Add", scores, bias)
        if mask and op.inputs[3].dtype is DType.BOOL:
            scores = self.get("Where", mask, scores, self.constant(max(attrs["mask_fill"], FAR), np.float32))
        elif mask:
            scores = self.get("Add", scores, mask)
        for seen in self.seen(attrs, query, key, lengths, starts):
            scores = self.get("Where", seen, scores, self.constant(FAR, np.float32))
        weights = self.get("Softmax", scores, axis=-1)
        if op.origin.op_type == "Attention":
            # ONNX defines a query that sees nothing to yield zeros.
            none = self.get("Less", self.get("ReduceMax", scores, self.constant([-1])), self.constant(FAR / 2, np.float32))
            weights = self.get("Where", none, self.constant(0, np.float32), weights)
        result = self.get("MatMul", weights, self.repeated(value, query))
        if heads:
            joined = self.get("Transpose", result, perm=[0, 2, 1, 3])
            result = self.get("Reshape", joined, self.constant([0, 0, -1]))
        for name, part in zip(outputs, (result, key, value), strict=False):
            self.add("Identity", [part], [name])

    def seen(self, attrs, query, key, lengths, starts):
        queries, keys = self.dim(query, 2), self.dim(key, 2)
        columns = self.steps(keys)
        rows = self.get("Unsqueeze", self.steps(queries), self.constant([1]))
        if attrs["causal"] == "bottom-right":
            rows = self.get("Add", rows, self.get("Sub", keys, queries))
        if attrs["causal"] != "none":
            yield self.get("LessOrEqual", columns, rows)
        if attrs.get("window", -1) >= 0:
            yield self.get("GreaterOrEqual", columns, self.get("Sub", rows, self.constant(attrs["window"])))
        for bound, comparison in ((lengths, "Less"), (starts, "GreaterOrEqual")):
            if bound:
                wide = self.get("Cast", bound, to=TensorProto.INT64)
                yield self.get(comparison, columns, self.get("Reshape", wide, self.constant([-1, 1, 1, 1])))

    def apart(self, value, heads):
        return self.get("Transpose", self.get("Reshape", value, self.constant([0, 0, heads, -1])), perm=[0, 2, 1, 3])

    def repeated(self, value, query):
        """Each key or value head for as many query heads as share it."""
        shape, wanted = self.get("Shape", value), self.get("Shape", query, start=1, end=2)
        times = self.get("Div", wanted, self.get("Shape", value, start=1, end=2))
        front, back = self.get("Shape", value, start=0, end=2), self.get("Shape", value, start=2)
        wide = self.get("Unsqueeze", value, self.constant([2]))
        wide = self.get("Expand", wide, self.get("Concat", front, times, back, axis=0))
        batch = self.get("Slice", shape, self.constant([0]), self.constant([1]))
        return self.get("Reshape", wide, self.get("Concat", batch, wanted, back, axis=0))

    def dim(self, value, axis):
        return self.get("Gather", self.get("Shape", value), self.constant(axis), axis=0)

    def steps(self, count):
        return self.get("Range", self.constant(0), count, self.constant(1))


def rebuild(model):
    """The canonical graph of ``model`` as an ONNX model of opset 23 without contrib operators."""
    graph = Rebuilder().graph(model.graph, main=True)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def run(model, feed):
    """What ONNX Runtime computes, without its optimisations."""
    data = model if isinstance(model, str) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def save(model, path):
    onnx.save(model, path)
    return path
