"""Builds the large models that the other benchmarks read: transformers with the plumbing that TorchScript exports, on weights
that are holes in sparse files, and long chains of plumbing.

Run it to have them in a folder: ``python benchmarks/graphs.py FOLDER [NAME...]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from openvino_ir import save_ir
from sparse import Weight, save_external, save_inline

__all__ = ["MODELS", "Decoder", "Encoder", "build", "decoder", "encoder", "plumbing"]

_INT64, _FLOAT, _FLOAT16, _BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL


class _Nodes:
    """The nodes and weights of a graph under construction; every method returns the name of the result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[Weight] = []
        self._count = 0

    def add(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        self._count += 1
        name = output or f"/{kind}_{self._count}_output_0"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"/{kind}_{self._count}", **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.asarray(value, dtype=dtype)))

    def weight(self, name: str, *shape: int, dtype: int = _FLOAT) -> str:
        self.weights.append(Weight(name, shape, dtype))
        return name

    def dim(self, value: str, axis: int) -> str:
        """One dimension of a value, as a scalar."""
        return self.add("Gather", self.add("Shape", value), self.constant(axis), axis=0)

    def reshape(self, value: str, *dims: str | int) -> str:
        """``view`` as TorchScript writes it: every dimension unsqueezed, all of them concatenated."""
        parts = [
            self.constant([dim]) if isinstance(dim, int) else self.add("Unsqueeze", dim, self.constant([0])) for dim in dims
        ]
        return self.add("Reshape", value, self.add("Concat", *parts, axis=0))

    def linear(self, value: str, name: str, inside: int, outside: int, *, bias: bool = True, dtype: int = _FLOAT) -> str:
        product = self.add("MatMul", value, self.weight(f"{name}.weight", inside, outside, dtype=dtype))
        return self.add("Add", self.weight(f"{name}.bias", outside, dtype=dtype), product) if bias else product

    def slice(self, value: str, start: str, end: str, axis: int) -> str:
        return self.add("Slice", value, start, end, self.constant([axis]), self.constant([1]))


@dataclass(frozen=True)
class Encoder:
    """Sizes of a BERT."""

    hidden: int = 768
    layers: int = 12
    heads: int = 12
    vocabulary: int = 30522
    positions: int = 512
    length: int | str = "sequence"
    batch: int | str = "batch"

    @property
    def inner(self) -> int:
        return 4 * self.hidden


def encoder(sizes: Encoder) -> tuple[onnx.GraphProto, list[Weight]]:
    """A BERT with eager attention and a pooler."""
    made = _Nodes()

    def norm(value: str, name: str) -> str:
        centred = made.add("Sub", value, made.add("ReduceMean", value, axes=[-1]))
        squared = made.add("Pow", centred, made.constant(2, np.float32))
        variance = made.add("Add", made.add("ReduceMean", squared, axes=[-1]), made.constant(1e-12, np.float32))
        scaled = made.add(
            "Mul", made.add("Div", centred, made.add("Sqrt", variance)), made.weight(f"{name}.weight", sizes.hidden)
        )
        return made.add("Add", scaled, made.weight(f"{name}.bias", sizes.hidden))

    def heads(value: str) -> str:
        split = made.reshape(value, made.dim(value, 0), made.dim(value, 1), sizes.heads, sizes.hidden // sizes.heads)
        return made.add("Transpose", split, perm=[0, 2, 1, 3])

    def attention(value: str, name: str, mask: str) -> str:
        query, key, weighed = (
            heads(made.linear(value, f"{name}.{part}", sizes.hidden, sizes.hidden)) for part in ("q", "k", "v")
        )
        scores = made.add("MatMul", query, made.add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = made.add("Div", scores, made.constant((sizes.hidden // sizes.heads) ** 0.5, np.float32))
        weights = made.add("Softmax", made.add("Add", scores, mask), axis=-1)
        context = made.add("Transpose", made.add("MatMul", weights, weighed), perm=[0, 2, 1, 3])
        return made.reshape(context, made.dim(context, 0), made.dim(context, 1), sizes.hidden)

    def gelu(value: str) -> str:
        erf = made.add("Erf", made.add("Div", value, made.constant(2**0.5, np.float32)))
        return made.add(
            "Mul", made.add("Mul", value, made.add("Add", erf, made.constant(1, np.float32))), made.constant(0.5, np.float32)
        )

    mask = made.add("Unsqueeze", made.add("Unsqueeze", "attention_mask", made.constant([1])), made.constant([2]))
    mask = made.add("Sub", made.constant(1, np.float32), made.add("Cast", mask, to=_FLOAT))
    mask = made.add("Mul", mask, made.constant(np.finfo(np.float32).min, np.float32))
    length = made.add("Unsqueeze", made.dim("input_ids", 1), made.constant([0]))
    positions = made.slice(made.constant(np.arange(sizes.positions)[None]), made.constant([0]), length, 1)
    words = made.add("Gather", made.weight("word_embeddings", sizes.vocabulary, sizes.hidden), "input_ids")
    types = made.add("Gather", made.weight("token_type_embeddings", 2, sizes.hidden), "token_type_ids")
    places = made.add("Gather", made.weight("position_embeddings", sizes.positions, sizes.hidden), positions)
    hidden = norm(made.add("Add", made.add("Add", words, types), places), "embeddings")
    for layer in range(sizes.layers):
        name = f"layer.{layer}"
        attended = made.linear(attention(hidden, name, mask), f"{name}.o", sizes.hidden, sizes.hidden)
        hidden = norm(made.add("Add", attended, hidden), f"{name}.ln1")
        grown = gelu(made.linear(hidden, f"{name}.up", sizes.hidden, sizes.inner))
        hidden = norm(made.add("Add", made.linear(grown, f"{name}.down", sizes.inner, sizes.hidden), hidden), f"{name}.ln2")
    hidden = made.add("Identity", hidden, output="last_hidden_state")
    first = made.add("Gather", hidden, made.constant(0), axis=1)
    made.add("Tanh", made.linear(first, "pooler", sizes.hidden, sizes.hidden), output="pooler_output")
    dims = [sizes.batch, sizes.length]
    inputs = [helper.make_tensor_value_info(name, _INT64, dims) for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [
        helper.make_tensor_value_info("last_hidden_state", _FLOAT, [*dims, sizes.hidden]),
        helper.make_tensor_value_info("pooler_output", _FLOAT, [sizes.batch, sizes.hidden]),
    ]
    return helper.make_graph(made.nodes, "main_graph", inputs, outputs), made.weights


@dataclass(frozen=True)
class Decoder:
    """Sizes of a Llama; the defaults are those of 7B (of Mistral with 8 key heads and an inner size of 14336)."""

    hidden: int = 4096
    layers: int = 32
    heads: int = 32
    key_heads: int = 32
    inner: int = 11008
    vocabulary: int = 32000

    @property
    def head(self) -> int:
        return self.hidden // self.heads


def decoder(sizes: Decoder) -> tuple[onnx.GraphProto, list[Weight]]:
    """A Llama with a cache: rotary positions, grouped keys, a causal and a padding mask, in fp16 as published models are."""
    made = _Nodes()
    half = sizes.head // 2
    end = made.constant([2**62])

    def norm(value: str, name: str) -> str:
        wide = made.add("Cast", value, to=_FLOAT)
        mean = made.add("ReduceMean", made.add("Pow", wide, made.constant(2, np.float32)), axes=[-1])
        root = made.add("Sqrt", made.add("Add", mean, made.constant(1e-5, np.float32)))
        scaled = made.add("Mul", wide, made.add("Div", made.constant(1, np.float32), root))
        return made.add("Mul", made.weight(name, sizes.hidden, dtype=_FLOAT16), made.add("Cast", scaled, to=_FLOAT16))

    def linear(value: str, name: str, inside: int, outside: int) -> str:
        return made.linear(value, name, inside, outside, bias=False, dtype=_FLOAT16)

    def heads(value: str, count: int) -> str:
        split = made.reshape(value, made.dim(value, 0), made.dim(value, 1), count, sizes.head)
        return made.add("Transpose", split, perm=[0, 2, 1, 3])

    def rotated(value: str) -> str:
        middle = made.constant([half])
        first, second = made.slice(value, made.constant([0]), middle, 3), made.slice(value, middle, end, 3)
        turned = made.add("Concat", made.add("Neg", second), first, axis=-1)
        return made.add("Add", made.add("Mul", value, cosine), made.add("Mul", turned, sine))

    def repeated(value: str) -> str:
        """``repeat_kv``."""
        groups = sizes.heads // sizes.key_heads
        if groups == 1:
            return value
        batch, length = made.dim(value, 0), made.dim(value, 2)
        dims = [batch, sizes.key_heads, groups, length, sizes.head]
        parts = [
            made.constant([dim]) if isinstance(dim, int) else made.add("Unsqueeze", dim, made.constant([0])) for dim in dims
        ]
        wide = made.add("Expand", made.add("Unsqueeze", value, made.constant([2])), made.add("Concat", *parts, axis=0))
        return made.reshape(wide, batch, sizes.heads, length, sizes.head)

    def attention(value: str, layer: int) -> str:
        name = f"layer.{layer}"
        query = rotated(heads(linear(value, f"{name}.q", sizes.hidden, sizes.hidden), sizes.heads))
        width = sizes.key_heads * sizes.head
        key = rotated(heads(linear(value, f"{name}.k", sizes.hidden, width), sizes.key_heads))
        weighed = heads(linear(value, f"{name}.v", sizes.hidden, width), sizes.key_heads)
        key = made.add("Concat", f"past_key_values.{layer}.key", key, axis=2, output=f"present.{layer}.key")
        weighed = made.add("Concat", f"past_key_values.{layer}.value", weighed, axis=2, output=f"present.{layer}.value")
        scores = made.add("MatMul", query, made.add("Transpose", repeated(key), perm=[0, 1, 3, 2]))
        scores = made.add("Add", made.add("Div", scores, made.constant(sizes.head**0.5, np.float16)), mask)
        weights = made.add("Cast", made.add("Softmax", made.add("Cast", scores, to=_FLOAT), axis=-1), to=_FLOAT16)
        context = made.add("Transpose", made.add("MatMul", weights, repeated(weighed)), perm=[0, 2, 1, 3])
        merged = made.reshape(context, made.dim(context, 0), made.dim(context, 1), sizes.hidden)
        return linear(merged, f"{name}.o", sizes.hidden, sizes.hidden)

    # The mask: causal by comparing key positions with query positions, and padding, joined with Where as transformers does.
    past, length = made.dim("past_key_values.0.key", 2), made.dim("input_ids", 1)
    total = made.add("Add", past, length)
    keys = made.add("Range", made.constant(0), total, made.constant(1))
    queries = made.add("Unsqueeze", made.add("Range", past, total, made.constant(1)), made.constant([1]))
    later = made.add("Unsqueeze", made.add("Greater", keys, queries), made.constant([0, 1]))
    padded = made.add("Equal", made.add("Unsqueeze", "attention_mask", made.constant([1, 2])), made.constant(0))
    least = made.constant(np.finfo(np.float16).min, np.float16)
    mask = made.add("Where", made.add("Or", later, padded), least, made.constant(0, np.float16))
    # Rotary positions.
    places = made.add("Cast", made.add("Unsqueeze", "position_ids", made.constant([2])), to=_FLOAT)
    frequencies = made.constant(10000.0 ** (-np.arange(half) / half)[None, None], np.float32)
    angles = made.add("Mul", places, frequencies)
    angles = made.add("Unsqueeze", made.add("Concat", angles, angles, axis=-1), made.constant([1]))
    cosine = made.add("Cast", made.add("Cos", angles), to=_FLOAT16)
    sine = made.add("Cast", made.add("Sin", angles), to=_FLOAT16)
    hidden = made.add("Gather", made.weight("embed_tokens", sizes.vocabulary, sizes.hidden, dtype=_FLOAT16), "input_ids")
    for layer in range(sizes.layers):
        name = f"layer.{layer}"
        hidden = made.add("Add", hidden, attention(norm(hidden, f"{name}.input_norm"), layer))
        value = norm(hidden, f"{name}.post_norm")
        gate = linear(value, f"{name}.gate", sizes.hidden, sizes.inner)
        gated = made.add(
            "Mul", made.add("Mul", gate, made.add("Sigmoid", gate)), linear(value, f"{name}.up", sizes.hidden, sizes.inner)
        )
        hidden = made.add("Add", hidden, linear(gated, f"{name}.down", sizes.inner, sizes.hidden))
    logits = linear(norm(hidden, "norm"), "lm_head", sizes.hidden, sizes.vocabulary)
    made.add("Cast", logits, to=_FLOAT, output="logits")

    cache = [(f"{layer}.{part}", ["batch", sizes.key_heads]) for layer in range(sizes.layers) for part in ("key", "value")]
    inputs = [
        helper.make_tensor_value_info("input_ids", _INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info("attention_mask", _INT64, ["batch", "past_sequence + sequence"]),
        helper.make_tensor_value_info("position_ids", _INT64, ["batch", "sequence"]),
        *(
            helper.make_tensor_value_info(f"past_key_values.{name}", _FLOAT16, [*dims, "past_sequence", sizes.head])
            for name, dims in cache
        ),
    ]
    outputs = [
        helper.make_tensor_value_info("logits", _FLOAT, ["batch", "sequence", sizes.vocabulary]),
        *(
            helper.make_tensor_value_info(f"present.{name}", _FLOAT16, [*dims, "past_sequence + sequence", sizes.head])
            for name, dims in cache
        ),
    ]
    return helper.make_graph(made.nodes, "main_graph", inputs, outputs), made.weights


def plumbing(count: int) -> onnx.GraphProto:
    """A chain of about ``count`` nodes: shape arithmetic and movement, as exporters string it together."""
    made = _Nodes()
    value = "x"
    while len(made.nodes) < count:
        split = made.reshape(value, made.dim(value, 0), made.dim(value, 1), 4, 8)
        value = made.add("Transpose", made.add("Transpose", split, perm=[0, 2, 1, 3]), perm=[0, 2, 1, 3])
        value = made.add("Identity", made.reshape(value, made.dim(value, 0), made.dim(value, 1), 32))
    made.add("Identity", value, output="y")
    info = helper.make_tensor_value_info
    return helper.make_graph(
        made.nodes, "plumbing", [info("x", _FLOAT, ["batch", "sequence", 32])], [info("y", _FLOAT, ["batch", "sequence", 32])]
    )


def _external(make: Callable[[], tuple[onnx.GraphProto, list[Weight]]]) -> Callable[[Path], Path]:
    def write(stem: Path) -> Path:
        path = stem.with_suffix(".onnx")
        save_external(*make(), path)
        return path

    return write


def _inline(make: Callable[[], tuple[onnx.GraphProto, list[Weight]]]) -> Callable[[Path], Path]:
    def write(stem: Path) -> Path:
        path = stem.with_suffix(".onnx")
        save_inline(*make(), path)
        return path

    return write


def _ir(sizes: Encoder) -> Callable[[Path], Path]:
    def write(stem: Path) -> Path:
        path = stem.with_suffix(".xml")
        save_ir(path, sizes.hidden, sizes.layers, sizes.heads, sizes.vocabulary)
        return path

    return write


_WIDE = Encoder(hidden=1024, layers=24, heads=16, vocabulary=64)
"""BERT-large without its vocabulary: 24 layers in 1.2 GB."""
_NARROW = Encoder(hidden=16, layers=24, heads=16, vocabulary=64)
"""The same nodes with next to no weights."""
_MISTRAL = Decoder(key_heads=8, inner=14336)

MODELS: dict[str, Callable[[Path], Path]] = {
    "small": _inline(lambda: encoder(Encoder(hidden=32, layers=1, heads=2, vocabulary=100))),
    "bert-base": _external(lambda: encoder(Encoder())),
    "bert-base-512": _external(lambda: encoder(Encoder(length=512, batch=1))),
    "bert-base-512-batch": _external(lambda: encoder(Encoder(length=512, batch=8))),
    "decoder-7b-mha": _external(lambda: decoder(Decoder())),
    "decoder-7b-gqa": _external(lambda: decoder(_MISTRAL)),
    "inline-full": _inline(lambda: encoder(_WIDE)),
    "inline-empty": _inline(lambda: encoder(_NARROW)),
    "external-full": _external(lambda: decoder(_MISTRAL)),
    "external-empty": _external(lambda: decoder(Decoder(hidden=64, key_heads=8, inner=64, vocabulary=64))),
    "ir-full": _ir(_WIDE),
    "ir-empty": _ir(_NARROW),
    **{f"chain-{count}": _inline(lambda count=count: (plumbing(count), [])) for count in (1000, 10_000, 100_000, 1_000_000)},
}
"""How to write each model, by name, given its path without suffix."""


def build(name: str, folder: Path) -> Path:
    """Writes a model into ``folder`` unless it is there already, and returns its path."""
    stem = folder / name
    for suffix in (".onnx", ".xml"):
        if stem.with_suffix(suffix).exists():
            return stem.with_suffix(suffix)
    folder.mkdir(parents=True, exist_ok=True)
    return MODELS[name](stem)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(MODELS)} [all]")
    options = parser.parse_args(arguments)
    for name in options.names or MODELS:
        path = build(name, options.folder)
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
