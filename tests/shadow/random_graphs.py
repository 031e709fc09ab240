"""Random small ONNX graphs from a grammar of modelled operators, for hypothesis.

Every graph has the inputs ``x`` and ``y`` (floats), ``mask`` (0 and 1) and ``ids``, the latter two integers.  Numbers stay
of ordinary size, as the shadow interpreter assumes of what it does not know: what may have grown is scaled down, by a
power of two so that nothing is rounded.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

BATCH, STEPS, SIZE, ROWS = 2, 4, 3, 6
TYPES = {"float": TensorProto.FLOAT, "int": TensorProto.INT64, "bool": TensorProto.BOOL}
FILLS = (-1e4, -3.4028234663852886e38, -math.inf, -65504.0, -80.0)
LARGEST = 96
BOUND = 8.0


@dataclasses.dataclass(frozen=True)
class Item:
    """A value of the graph: its name, kind, shape and how large its numbers may be."""

    name: str
    kind: str
    shape: tuple[int, ...]
    bound: float = 1.0

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Builder:
    """Nodes and constants of a graph that grows."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.items = [
            Item("x", "float", (BATCH, STEPS, SIZE), 3), Item("y", "float", (BATCH, STEPS, SIZE), 3),
            Item("mask", "int", (BATCH, STEPS), 1), Item("ids", "int", (BATCH, STEPS), 5),
        ]  # fmt: skip
        self.used: set[str] = set()

    def constant(self, array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, inputs, count: int = 1, **attrs) -> list[str]:
        names = [f"v{len(self.nodes)}_{at}" for at in range(count)]
        held = [entry.name if isinstance(entry, Item) else entry for entry in inputs]
        self.used.update(held)
        self.nodes.append(helper.make_node(op, held, names, **attrs))
        return names

    def put(self, op: str, inputs, kind: str, shape, bound: float = 1.0, **attrs) -> Item:
        """A node with one result, which is scaled down if it may have grown."""
        made = Item(self.node(op, inputs, **attrs)[0], kind, tuple(shape), bound)
        if kind == "float" and bound > BOUND:
            factor = 2.0 ** -math.ceil(math.log2(bound / BOUND))
            made = Item(self.node("Mul", [made, self.constant(np.float32(factor))])[0], kind, tuple(shape), BOUND)
        self.items.append(made)
        return made

    def pick(self, *kinds: str, rank: int = 0) -> Item | None:
        """Some value of these kinds with at least that rank; later ones are likelier."""
        fitting = [item for item in self.items if item.kind in kinds and item.rank >= rank and 0 not in item.shape]
        if not fitting:
            return None
        return fitting[-1 - self.draw(st.integers(0, min(len(fitting), 5) - 1))]

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def one_of(self, *choices):
        return choices[self.number(0, len(choices) - 1)]

    def fitting(self, item: Item, *kinds: str) -> Item | None:
        """Some value that broadcasts with ``item``."""

        def broadcasts(other: Item) -> bool:
            try:
                return math.prod(np.broadcast_shapes(item.shape, other.shape)) <= LARGEST
            except ValueError:
                return False

        fitting = [other for other in self.items if other.kind in kinds and broadcasts(other)]
        return fitting[self.number(0, len(fitting) - 1)] if fitting else None

    def as_mask(self) -> Item:
        """Which positions are real: a bool of [batch, steps]."""
        source = self.one_of("mask", "ids", "compare")
        if source == "mask":
            return self.put("Cast", ["mask"], "bool", (BATCH, STEPS), to=TensorProto.BOOL)
        op, other = ("Greater", 0) if source == "ids" else (self.one_of("Equal", "Less"), self.number(0, 3))
        return self.put(op, ["ids", self.constant(np.int64(other))], "bool", (BATCH, STEPS))


# -- productions: each adds nodes to the graph ---------------------------------------------------------------------------------


def unary(b: Builder) -> None:
    x = b.pick("float")
    op = b.one_of(
        "Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Ceil", "Round", "Sign", "Identity", "Sin", "Clip"
    )
    if op == "Exp":
        x = b.put("Tanh", [x], "float", x.shape)
    inputs = [x, b.constant(np.float32(-0.5)), b.constant(np.float32(0.75))] if op == "Clip" else [x]
    b.put(op, inputs, "float", x.shape, x.bound + 1)


def binary(b: Builder) -> None:
    x = b.pick("float")
    y = b.fitting(x, "float")
    op = b.one_of("Add", "Sub", "Mul", "Max", "Min", "Mul")
    b.put(op, [x, y], "float", np.broadcast_shapes(x.shape, y.shape), x.bound * y.bound + x.bound + y.bound)


def divide(b: Builder) -> None:
    x = b.pick("float")
    y = b.fitting(x, "float")
    low = b.put("Add", [b.put("Abs", [y], "float", y.shape, y.bound), b.constant(np.float32(0.5))], "float", y.shape, 2)
    b.put("Div", [x, low], "float", np.broadcast_shapes(x.shape, y.shape), 2 * x.bound)


def as_numbers(b: Builder) -> None:
    x = b.pick("int", "bool")
    b.put("Cast", [x], "float", x.shape, x.bound, to=TensorProto.FLOAT)


def compare(b: Builder) -> None:
    x = b.pick("float", "int")
    y = b.fitting(x, x.kind)
    b.put(b.one_of("Equal", "Less", "GreaterOrEqual"), [x, y], "bool", np.broadcast_shapes(x.shape, y.shape))


def logic(b: Builder) -> None:
    x = b.pick("bool") or b.as_mask()
    y = b.fitting(x, "bool")
    b.put(b.one_of("And", "Or", "Xor"), [x, b.put("Not", [y], "bool", y.shape)], "bool", np.broadcast_shapes(x.shape, y.shape))


def whole_numbers(b: Builder) -> None:
    x = b.pick("int")
    y = b.fitting(x, "int")
    b.put(
        b.one_of("Add", "Sub", "Mul", "Max"),
        [x, y],
        "int",
        np.broadcast_shapes(x.shape, y.shape),
        x.bound + y.bound + x.bound * y.bound,
    )


def where(b: Builder) -> None:
    x = b.pick("float")
    condition = b.fitting(x, "bool")
    if condition is None:
        b.as_mask()
        return
    shape = np.broadcast_shapes(x.shape, condition.shape)
    other = b.one_of(b.constant(np.float32(0)), b.constant(np.float32(1)))
    b.put("Where", [condition, x, other] if b.number(0, 1) else [condition, other, x], "float", shape, max(x.bound, 1))


def masked(b: Builder) -> None:
    """A tensor over positions times the mask."""
    keep = b.put("Cast", [b.as_mask()], "float", (BATCH, STEPS), to=TensorProto.FLOAT)
    wide = b.put("Unsqueeze", [keep, b.constant(np.int64([2]))], "float", (BATCH, STEPS, 1))
    x = b.fitting(wide, "float")
    b.put("Mul", [x, wide], "float", np.broadcast_shapes(x.shape, wide.shape), x.bound)


def attend(b: Builder) -> None:
    """Scores of [batch, steps, steps], a bias of one of the usual forms, weights, and what they weigh."""
    tokens = [item for item in b.items if item.kind == "float" and item.rank == 3 and item.shape[:2] == (BATCH, STEPS)]
    query, key, value = (tokens[b.number(0, len(tokens) - 1)] for _ in range(3))
    if query.shape[2] != key.shape[2]:
        key = query
    turned = b.put("Transpose", [key], "float", (BATCH, key.shape[2], STEPS), key.bound, perm=[0, 2, 1])
    scores = b.put("MatMul", [query, turned], "float", (BATCH, STEPS, STEPS), query.bound * key.bound * key.shape[2])
    form = b.one_of("add", "where", "multiply", "causal", "none")
    fill = np.float32(b.one_of(*FILLS))
    if form in ("add", "where", "multiply"):
        keep = b.put("Unsqueeze", [b.as_mask(), b.constant(np.int64([1]))], "bool", (BATCH, 1, STEPS))
        if form == "where":
            biased = b.node("Where", [keep, scores, b.constant(fill)])[0]
        elif form == "add":
            bias = b.node("Where", [keep, b.constant(np.float32(0)), b.constant(fill)])[0]
            biased = b.node("Add", [scores, bias])[0]
        else:
            kept = b.node("Cast", [keep], to=TensorProto.FLOAT)[0]
            left = b.node("Sub", [b.constant(np.float32(1)), kept])[0]
            bias = b.node("Mul", [left, b.constant(max(fill, np.float32(-1e9)))])[0]
            biased = b.node("Add", [scores, bias])[0]
    elif form == "causal":
        bias = np.triu(np.full((STEPS, STEPS), fill, np.float32), 1)
        biased = b.node("Add", [scores, b.constant(bias)])[0]
    else:
        biased = scores.name
    weights = b.put("Softmax", [biased], "float", (BATCH, STEPS, STEPS), 1.0, axis=b.one_of(-1, -1, -1, 1))
    b.put("MatMul", [weights, value], "float", (BATCH, STEPS, value.shape[2]), value.bound * STEPS)


def pooled(b: Builder) -> None:
    """A maximum over positions from which masked ones are kept out."""
    keep = b.put("Unsqueeze", [b.as_mask(), b.constant(np.int64([2]))], "bool", (BATCH, STEPS, 1))
    x = b.fitting(keep, "float")
    shape = np.broadcast_shapes(x.shape, keep.shape)
    filled = b.node("Where", [keep, x, b.constant(np.float32(-1e4))])[0]
    b.put("ReduceMax", [filled], "float", (shape[0], *shape[2:]), 20.0, axes=[1], keepdims=0)


def matmul(b: Builder) -> None:
    x = b.pick("float", rank=2)
    if x is None:
        return
    width = b.number(1, 3)
    weight = np.linspace(-1, 1, x.shape[-1] * width, dtype=np.float32).reshape(x.shape[-1], width)
    weight[b.number(0, x.shape[-1] - 1)] = 0
    b.put("MatMul", [x, b.constant(weight)], "float", (*x.shape[:-1], width), x.bound * x.shape[-1])


def reduce(b: Builder) -> None:
    x = b.pick("float", rank=1)
    axis, keep = b.number(0, x.rank - 1), b.number(0, 1)
    op = b.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare", "ReduceL1")
    shape = [1 if at == axis else dim for at, dim in enumerate(x.shape) if keep or at != axis]
    grown = (x.bound + 1) ** 2 * x.shape[axis] if op != "ReduceProd" else (x.bound + 1) ** x.shape[axis]
    if op == "ReduceSum":
        b.put(op, [x, b.constant(np.int64([axis]))], "float", shape, grown, keepdims=keep)
    else:
        b.put(op, [x], "float", shape, grown, axes=[axis], keepdims=keep)


def normalise(b: Builder) -> None:
    x = b.pick("float", rank=1)
    if b.number(0, 1):
        b.put("Softmax", [x], "float", x.shape, 1.0, axis=b.number(0, x.rank - 1))
    else:
        b.put("LayerNormalization", [x, b.constant(np.ones(x.shape[-1], np.float32))], "float", x.shape, 4.0, axis=-1)


def transpose(b: Builder) -> None:
    x = b.pick("float", "int", "bool", rank=2)
    perm = b.draw(st.permutations(range(x.rank)))
    b.put("Transpose", [x], x.kind, [x.shape[axis] for axis in perm], x.bound, perm=list(perm))


def reshape(b: Builder) -> None:
    x = b.pick("float", "int", rank=1)
    first = b.one_of(*[count for count in range(1, x.size + 1) if x.size % count == 0])
    shape = b.one_of((first, x.size // first), (x.size,), (1, *x.shape))
    b.put("Reshape", [x, b.constant(np.int64(shape))], x.kind, shape, x.bound)


def cut(b: Builder) -> None:
    x = b.pick("float", "int", "bool", rank=1)
    axis = b.number(0, x.rank - 1)
    step = b.one_of(1, 1, 2, -1)
    start, stop = (b.number(0, x.shape[axis] - 1), x.shape[axis]) if step > 0 else (x.shape[axis] - 1, -x.shape[axis] - 1)
    count = len(range(x.shape[axis])[start : stop if step > 0 else None : step])
    bounds = [b.constant(np.int64([number])) for number in (start, stop, axis, step)]
    b.put("Slice", [x, *bounds], x.kind, [count if at == axis else dim for at, dim in enumerate(x.shape)], x.bound)


def concatenate(b: Builder) -> None:
    x = b.pick("float", rank=1)
    others = [item for item in b.items if item.kind == "float" and item.rank == x.rank and item.shape[1:] == x.shape[1:]]
    y = others[b.number(0, len(others) - 1)]
    if x.size + y.size <= LARGEST:
        b.put("Concat", [x, y], "float", (x.shape[0] + y.shape[0], *x.shape[1:]), max(x.bound, y.bound), axis=0)


def split(b: Builder) -> None:
    x = b.pick("float", rank=1)
    axis = b.number(0, x.rank - 1)
    if x.shape[axis] < 2:
        return
    first = b.number(1, x.shape[axis] - 1)
    lengths = [first, x.shape[axis] - first]
    names = b.node("Split", [x, b.constant(np.int64(lengths))], 2, axis=axis)
    for name, length in zip(names, lengths, strict=True):
        b.items.append(Item(name, "float", tuple(length if at == axis else dim for at, dim in enumerate(x.shape)), x.bound))


def gather(b: Builder) -> None:
    if b.number(0, 1):
        table = np.linspace(-1, 1, ROWS * 2, dtype=np.float32).reshape(ROWS, 2)
        b.put("Gather", [b.constant(table), "ids"], "float", (BATCH, STEPS, 2), 1.0, axis=0)
        return
    x = b.pick("float", rank=1)
    axis = b.number(0, x.rank - 1)
    picked = np.int64([b.number(-x.shape[axis], x.shape[axis] - 1) for _ in range(2)])
    b.put(
        "Gather",
        [x, b.constant(picked)],
        "float",
        [2 if at == axis else dim for at, dim in enumerate(x.shape)],
        x.bound,
        axis=axis,
    )


def last_token(b: Builder) -> None:
    """Each row at the position that the mask's sum gives."""
    tokens = [item for item in b.items if item.kind == "float" and item.rank == 3 and item.shape[:2] == (BATCH, STEPS)]
    x = tokens[b.number(0, len(tokens) - 1)]
    total = b.put("ReduceSum", ["mask", b.constant(np.int64([1]))], "int", (BATCH,), STEPS, keepdims=0)
    least = b.put(
        "Max",
        [b.put("Sub", [total, b.constant(np.int64(1))], "int", (BATCH,), STEPS), b.constant(np.int64(0))],
        "int",
        (BATCH,),
        STEPS,
    )
    last = b.put("Min", [least, b.constant(np.int64(STEPS - 1))], "int", (BATCH,), STEPS)
    index = b.put("Reshape", [last, b.constant(np.int64([BATCH, 1, 1]))], "int", (BATCH, 1, 1), STEPS)
    wide = b.put("Expand", [index, b.constant(np.int64([1, 1, x.shape[2]]))], "int", (BATCH, 1, x.shape[2]), STEPS)
    b.put("GatherElements", [x, wide], "float", (BATCH, 1, x.shape[2]), x.bound, axis=1)


def spread(b: Builder) -> None:
    x = b.pick("float", "int", "bool")
    if x.size * 2 <= LARGEST and x.rank < 5:
        b.put("Expand", [x, b.constant(np.int64([2, *[1] * x.rank]))], x.kind, (2, *x.shape), x.bound)


def pad(b: Builder) -> None:
    x = b.pick("float", rank=1)
    axis = b.number(0, x.rank - 1)
    before, after = b.number(0, 1), b.number(-1 if x.shape[axis] > 1 else 0, 1)
    pads = [before if at == axis else 0 for at in range(x.rank)] + [after if at == axis else 0 for at in range(x.rank)]
    shape = [dim + before + after if at == axis else dim for at, dim in enumerate(x.shape)]
    b.put("Pad", [x, b.constant(np.int64(pads))], "float", shape, x.bound, mode="constant")


def running(b: Builder) -> None:
    x = b.pick("float", "int", rank=1)
    axis = b.number(0, x.rank - 1)
    attrs = {"exclusive": b.number(0, 1), "reverse": b.number(0, 1)}
    b.put("CumSum", [x, b.constant(np.int64(axis))], x.kind, x.shape, x.bound * x.shape[axis], **attrs)


def search(b: Builder) -> None:
    x = b.pick("float", "int", rank=1)
    axis = b.number(0, x.rank - 1)
    shape = [1 if at == axis else dim for at, dim in enumerate(x.shape)]
    b.put(b.one_of("ArgMax", "ArgMin"), [x], "int", shape, x.shape[axis], axis=axis, keepdims=1)


def largest(b: Builder) -> None:
    x = b.pick("float", rank=1)
    axis, k = b.number(0, x.rank - 1), 1
    shape = tuple(k if at == axis else dim for at, dim in enumerate(x.shape))
    values, indices = b.node("TopK", [x, b.constant(np.int64([k]))], 2, axis=axis)
    b.items += [Item(values, "float", shape, x.bound), Item(indices, "int", shape, x.shape[axis])]


def triangle(b: Builder) -> None:
    x = b.pick("float", rank=2)
    b.put("Trilu", [x, b.constant(np.int64(b.number(-1, 1)))], "float", x.shape, x.bound, upper=b.number(0, 1))


def scatter(b: Builder) -> None:
    x = b.pick("float", rank=1)
    axis = b.number(0, x.rank - 1)
    place = np.full([1 if at == axis else dim for at, dim in enumerate(x.shape)], b.number(0, x.shape[axis] - 1), np.int64)
    news = b.put("ReduceSum", [x, b.constant(np.int64([axis]))], "float", place.shape, x.bound * x.shape[axis], keepdims=1)
    reduction = b.one_of("none", "add", "max", "mul")
    b.put("ScatterElements", [x, b.constant(place), news], "float", x.shape, x.bound * 10, axis=axis, reduction=reduction)


def convolve(b: Builder) -> None:
    tokens = [item for item in b.items if item.kind == "float" and item.rank == 3]
    x = tokens[b.number(0, len(tokens) - 1)]
    op = b.one_of("Conv", "MaxPool", "AveragePool")
    pads = b.one_of((1, 1), (2, 0), (0, 2))
    if x.shape[2] < 1:
        return
    if op == "Conv":
        weight = np.linspace(-1, 1, 2 * x.shape[1] * 3, dtype=np.float32).reshape(2, x.shape[1], 3)
        weight[:, :, b.number(0, 2)] *= b.number(0, 1)
        b.put(op, [x, b.constant(weight)], "float", (x.shape[0], 2, x.shape[2]), x.bound * x.shape[1] * 3, pads=pads)
    else:
        pads = (1, 1)
        b.put(op, [x], "float", x.shape, x.bound, kernel_shape=[3], pads=pads)


def recur(b: Builder) -> None:
    """A recurrence whose lengths are the mask's sums, or absent."""
    x = b.one_of(*[item for item in b.items if item.kind == "float" and item.rank == 3 and item.shape[:2] == (BATCH, STEPS)])
    turned = b.put("Transpose", [x], "float", (STEPS, BATCH, x.shape[2]), x.bound, perm=[1, 0, 2])
    lengths = ""
    if b.number(0, 1):
        total = b.put("ReduceSum", ["mask", b.constant(np.int64([1]))], "int", (BATCH,), STEPS, keepdims=0)
        held = b.put(
            "Min",
            [b.put("Max", [total, b.constant(np.int64(1))], "int", (BATCH,), STEPS), b.constant(np.int64(STEPS))],
            "int",
            (BATCH,),
        )
        lengths = b.node("Cast", [held], to=TensorProto.INT32)[0]
    kind, direction = b.one_of(("GRU", 3), ("RNN", 1), ("LSTM", 4)), b.one_of("forward", "reverse")
    w = np.linspace(-1, 1, kind[1] * 2 * x.shape[2], dtype=np.float32).reshape(1, kind[1] * 2, x.shape[2])
    r = np.linspace(1, -1, kind[1] * 4, dtype=np.float32).reshape(1, kind[1] * 2, 2)
    inputs = [turned, b.constant(w), b.constant(r), "", lengths]
    names = b.node(kind[0], inputs, 2, hidden_size=2, direction=direction)
    b.items += [Item(names[0], "float", (STEPS, 1, BATCH, 2)), Item(names[1], "float", (1, BATCH, 2))]


PRODUCTIONS = (
    unary, unary, binary, binary, divide, as_numbers, compare, logic, whole_numbers, where, masked, attend, attend, pooled,
    matmul, reduce, reduce, normalise, transpose, reshape, cut, concatenate, split, gather, last_token, spread, pad, running,
    search, largest, triangle, scatter, convolve, recur,
)  # fmt: skip


@st.composite
def graphs(draw) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model and values for its inputs."""
    b = Builder(draw)
    for production in draw(st.lists(st.sampled_from(PRODUCTIONS), min_size=3, max_size=10)):
        production(b)
    seed = draw(st.integers(0, 2**16))
    random = np.random.default_rng(seed)
    lengths = [draw(st.integers(1, STEPS)) for _ in range(BATCH)]
    mask = (np.arange(STEPS)[None, :] < np.array(lengths)[:, None]).astype(np.int64)
    feeds = {
        "x": random.uniform(-2, 2, (BATCH, STEPS, SIZE)).astype(np.float32),
        "y": random.uniform(-2, 2, (BATCH, STEPS, SIZE)).astype(np.float32),
        "mask": mask[:, ::-1].copy() if draw(st.booleans()) else mask,
        "ids": random.integers(1, ROWS - 2, (BATCH, STEPS)) * mask,
    }
    made = [item for item in b.items[4:] if item.name not in b.used] or b.items[-1:]
    outputs = [helper.make_tensor_value_info(item.name, TYPES[item.kind], item.shape) for item in made[-4:]]
    inputs = [helper.make_tensor_value_info(item.name, TYPES[item.kind], item.shape) for item in b.items[:4]]
    graph = helper.make_graph(b.nodes, "random", inputs, outputs, b.constants)
    return helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 17)], ir_version=8), feeds
