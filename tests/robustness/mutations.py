"""Damages model files: their bytes, the message of an ONNX model, the XML of an IR.

Every function takes a ``random.Random``, so that a seed, or hypothesis, decides what is done.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

import onnx
from lxml import etree
from onnx import AttributeProto, TensorProto, helper

__all__ = ["mutated_bytes", "mutated_model", "mutated_xml"]

NUMBERS = [0, 1, -1, 2, 3, 7, 64, -(2**31), 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
WORDS = [
    "",
    "x",
    "input_ids",
    "mask",
    "\x1b[31m",
    "a\nb",
    "\0",
    "<b>&amp;",
    "e" * 5000,
    "ü\u202e",
    "-1",
    "nan",
    "1e400",
    "f32",
    "18446744073709551616",
]


def mutated_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes changed, cut out, put in, repeated, or the end cut off."""
    held = bytearray(data)
    for _ in range(random.randint(1, 4)):
        if not held:
            break
        at = random.randrange(len(held))
        length = random.choice([1, 2, 8, 64, 1024])
        kind = random.randrange(6)
        if kind == 0:
            held[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            held[at : at + length] = bytes(random.choice([0, 0x7F, 0x80, 0xFF, 10]) for _ in range(min(length, 16)))
        elif kind == 2:
            del held[at : at + length]
        elif kind == 3:
            held[at:at] = held[at : at + length]
        elif kind == 4:
            other = random.randrange(len(held))
            held[at:at] = held[other : other + length]
        else:
            del held[at:]
    return bytes(held)


# -- ONNX ------------------------------------------------------------------------------------------------------------------


def mutated_model(model: onnx.ModelProto, random: Random) -> onnx.ModelProto:
    """The model with some nodes, edges, attributes, shapes, types or constants changed."""
    changed = copy.deepcopy(model)
    for _ in range(random.randint(1, 3)):
        random.choice(_MODEL_CHANGES)(changed, random)
    return changed


def _drop_node(model: onnx.ModelProto, random: Random) -> None:
    if model.graph.node:
        del model.graph.node[random.randrange(len(model.graph.node))]


def _repeat_node(model: onnx.ModelProto, random: Random) -> None:
    if model.graph.node:
        model.graph.node.append(random.choice(model.graph.node))


def _move_node(model: onnx.ModelProto, random: Random) -> None:
    if model.graph.node:
        at = random.randrange(len(model.graph.node))
        node = copy.deepcopy(model.graph.node[at])
        del model.graph.node[at]
        model.graph.node.insert(random.randint(0, len(model.graph.node)), node)


def _other_operator(model: onnx.ModelProto, random: Random) -> None:
    if model.graph.node:
        kinds = [node.op_type for node in model.graph.node]
        kinds += ["If", "Loop", "Scan", "Reshape", "Tile", "OneHot", "Resize", "TopK", "Einsum", "LSTM", "Attention", "NoSuch"]
        node = random.choice(model.graph.node)
        node.op_type = random.choice(kinds)
        node.domain = random.choice([node.domain, "", "com.microsoft", "ai.onnx.ml"])


def _values(model: onnx.ModelProto) -> list[str]:
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    return (
        names
        + [info.name for info in model.graph.input]
        + [tensor.name for tensor in model.graph.initializer]
        + ["", "nowhere"]
    )


def _rewire(model: onnx.ModelProto, random: Random) -> None:
    node = random.choice(model.graph.node) if model.graph.node else None
    if node is not None and node.input:
        node.input[random.randrange(len(node.input))] = random.choice(_values(model))


def _rename(model: onnx.ModelProto, random: Random) -> None:
    node = random.choice(model.graph.node) if model.graph.node else None
    if node is None:
        return
    if random.random() < 0.3 or not node.output:
        node.name = random.choice(WORDS)
    else:
        node.output[random.randrange(len(node.output))] = random.choice([*WORDS, *_values(model)])


def _operand_count(model: onnx.ModelProto, random: Random) -> None:
    node = random.choice(model.graph.node) if model.graph.node else None
    if node is None:
        return
    names = random.choice([node.input, node.output])
    if names and random.random() < 0.5:
        del names[random.randrange(len(names))]
    else:
        names.append(random.choice(_values(model)))


def _attribute(model: onnx.ModelProto, random: Random) -> None:
    holders = [node for node in model.graph.node if node.attribute]
    if not holders:
        return
    node = random.choice(holders)
    at = random.randrange(len(node.attribute))
    attribute = node.attribute[at]
    kind = random.randrange(5)
    if kind == 0:
        del node.attribute[at]
    elif kind == 1:
        attribute.i = random.choice(NUMBERS)
    elif kind == 2:
        attribute.ints[:] = [random.choice(NUMBERS) for _ in range(random.randrange(6))]
    elif kind == 3:
        attribute.s = random.choice(WORDS).encode()
    else:
        attribute.type = random.choice(AttributeProto.AttributeType.values())


def _shape(model: onnx.ModelProto, random: Random) -> None:
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    if not infos:
        return
    tensor = random.choice(infos).type.tensor_type
    kind = random.randrange(4)
    if kind == 0:
        tensor.ClearField("shape")
    elif kind == 1:
        tensor.shape.dim.add().dim_value = random.choice(NUMBERS)
    elif kind == 2 and tensor.shape.dim:
        random.choice(tensor.shape.dim).dim_value = random.choice(NUMBERS)
    elif tensor.shape.dim:
        random.choice(tensor.shape.dim).dim_param = random.choice(WORDS)


def _dtype(model: onnx.ModelProto, random: Random) -> None:
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    number = random.choice([*TensorProto.DataType.values(), 99, -1])
    if model.graph.initializer and random.random() < 0.5:
        random.choice(model.graph.initializer).data_type = number
    elif infos:
        random.choice(infos).type.tensor_type.elem_type = number


def _constant(model: onnx.ModelProto, random: Random) -> None:
    """Integers of a constant become extreme, or its declared shape no longer fits."""
    tensors = [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")]
    tensors += model.graph.initializer
    if not tensors:
        return
    tensor = random.choice(tensors)
    if random.random() < 0.7:
        count = random.randrange(5)
        name = tensor.name
        tensor.CopyFrom(helper.make_tensor(name, TensorProto.INT64, [count], [random.choice(NUMBERS) for _ in range(count)]))
    else:
        tensor.dims[:] = [random.choice(NUMBERS) for _ in range(random.randrange(4))]


def _inputs(model: onnx.ModelProto, random: Random) -> None:
    infos = random.choice([model.graph.input, model.graph.output])
    if infos and random.random() < 0.5:
        del infos[random.randrange(len(infos))]
    else:
        infos.add().name = random.choice([*WORDS, *_values(model)])


def _imports(model: onnx.ModelProto, random: Random) -> None:
    if model.opset_import:
        random.choice(model.opset_import).version = random.choice([*NUMBERS, *range(1, 25)])


def _nest(model: onnx.ModelProto, random: Random) -> None:
    """A node becomes the body of an If, inside out several times."""
    if not model.graph.node:
        return
    at = random.randrange(len(model.graph.node))
    inner = copy.deepcopy(model.graph.node[at])
    for _ in range(random.choice([1, 3, 8])):
        name = inner.output[0] if inner.output else "none"
        body = helper.make_graph([inner], "body", [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
        inner = helper.make_node("If", [random.choice(_values(model))], [name], then_branch=body, else_branch=body)
        if inner.ByteSize() > 1 << 20:
            break
    model.graph.node[at].CopyFrom(inner)


_MODEL_CHANGES: list[Callable[[onnx.ModelProto, Random], None]] = [
    _drop_node, _repeat_node, _move_node, _other_operator, _rewire, _rename, _operand_count, _attribute, _attribute, _shape,
    _dtype, _constant, _constant, _inputs, _imports, _nest,
]  # fmt: skip


# -- OpenVINO IR -----------------------------------------------------------------------------------------------------------


def mutated_xml(text: bytes, random: Random) -> bytes:
    """The IR with some layers, ports, edges or attributes changed; still well-formed."""
    root = etree.fromstring(text)
    for _ in range(random.randint(1, 3)):
        elements = [element for element in root.iter() if isinstance(element.tag, str) and element is not root]
        if not elements:
            break
        element = random.choice(elements)
        kind = random.randrange(6)
        if kind == 0:
            element.getparent().remove(element)
        elif kind == 1:
            element.addnext(copy.deepcopy(element))
        elif kind == 2 and element.attrib:
            del element.attrib[random.choice(list(element.attrib))]
        elif kind == 3 and element.attrib:
            element.set(random.choice(list(element.attrib)), random.choice([*map(str, NUMBERS), *filter(_in_xml, WORDS)]))
        elif kind == 4:
            _exchange(element, random.choice(elements))
        else:
            element.text = random.choice([*map(str, NUMBERS), *filter(_in_xml, WORDS)])
    return etree.tostring(root)


def _exchange(element: etree._Element, other: etree._Element) -> None:
    """Two elements swap an attribute that both have: edges end elsewhere, layers change their type."""
    shared = sorted(set(element.attrib) & set(other.attrib))
    for name in shared[-1:]:
        mine, its = element.get(name), other.get(name)
        element.set(name, its)
        other.set(name, mine)


def _in_xml(word: str) -> bool:
    return all(character in "\t\n\r" or character >= " " for character in word)
