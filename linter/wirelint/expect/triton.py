"""``config.pbtxt`` of the Triton Inference Server, parsed by protobuf's own text parser.

The message definitions are those fields of Triton's ``model_config.proto`` that describe what a model takes and gives; the
parser passes over all others.

References:
    https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto
    https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirelint.expect.folder import Folder

__all__ = ["Port", "Triton", "read_triton"]

_FILE = "config.pbtxt"
_PACKAGE = "wirelint.triton"
_MOST_PORTS = 4096
_LISTS = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*)|(?<=[A-Za-z0-9_])([ \t\r\n]*\[)""")
"""A text or comment, or the start of a list right after the name of its field."""

_DTYPES = (
    ("INVALID", ""), ("BOOL", "bool"), ("UINT8", "u8"), ("UINT16", "u16"), ("UINT32", "u32"), ("UINT64", "u64"), ("INT8", "i8"),
    ("INT16", "i16"), ("INT32", "i32"), ("INT64", "i64"), ("FP16", "f16"), ("FP32", "f32"), ("FP64", "f64"),
    ("STRING", "string"), ("BF16", "bf16"),
)  # fmt: skip
_SERVED = {"", "onnxruntime", "openvino", "onnxruntime_onnx"}
"""Backends that serve the file itself; the ports of a Python model or an ensemble are not the graph's."""

# Each message: (field, number, type), where a type in brackets repeats.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Reshape": (("shape", 1, "[int64]"),),
    "Input": (
        ("name", 1, "string"), ("data_type", 2, "DataType"), ("dims", 4, "[int64]"), ("reshape", 5, "Reshape"),
        ("allow_ragged_batch", 7, "bool"), ("optional", 8, "bool"),
    ),
    "Output": (("name", 1, "string"), ("data_type", 2, "DataType"), ("dims", 3, "[int64]"), ("reshape", 5, "Reshape")),
    "BatchInput": (("target_name", 2, "[string]"),),
    "Control": (("name", 1, "string"),),
    "State": (("input_name", 1, "string"), ("output_name", 2, "string")),
    "Sequence": (("control_input", 2, "[Control]"), ("state", 5, "[State]")),
    "ModelConfig": (
        ("name", 1, "string"), ("platform", 2, "string"), ("max_batch_size", 4, "int32"), ("input", 5, "[Input]"),
        ("output", 6, "[Output]"), ("default_model_filename", 8, "string"), ("sequence_batching", 13, "Sequence"),
        ("backend", 17, "string"), ("batch_input", 20, "[BatchInput]"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the config declares it.

    Attributes:
        name: tensor name.
        dtype: element type in wirelint's names; empty when it is not given.
        dims: as the server hands them to the model, without the batch axis that ``max_batch_size`` adds; -1 for any size.
        ragged: rows of a batch are laid one after another, so that the model sees other dimensions than these.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class Triton:
    """What the config says.

    Attributes:
        shown: the file, as messages call it.
        batches: ``max_batch_size`` is positive: the model's first axis is the batch.
        inputs, outputs: the declared ones.
        provided: names of inputs that the server makes itself.
    """

    shown: str
    batches: bool
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    provided: frozenset[str]


def read_triton(folder: Folder) -> Triton | None:
    """What ``config.pbtxt`` says about the model file, or None when there is none that does."""
    found = folder.read(_FILE)
    if found is None:
        return None
    content, shown = found
    text_format = _protobuf("text_format")
    message = _schema()()
    try:
        text_format.Parse(_with_colons(content), message, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        reason = printable(str(error).splitlines()[0], 120) if str(error) else "no protobuf text"
        folder.faults.append((shown, f"no valid protobuf text, {reason}"))
        return None
    if not _is_about(message, folder.model.name):
        return None
    sequence = message.sequence_batching
    made = [entry.name for entry in sequence.control_input] + [entry.input_name for entry in sequence.state]
    made += [name for entry in message.batch_input for name in entry.target_name]
    return Triton(shown, message.max_batch_size > 0, _ports(message.input), _ports(message.output), frozenset(made))


def _with_colons(content: str) -> str:
    """Writes ``field [...]`` as ``field: [...]``, which means the same.

    protobuf's parser passes over a field that it does not know only when its list has the colon.
    """
    return _LISTS.sub(lambda match: match.group(1) or f":{match.group(2)}", content)


def _is_about(message: Any, file_name: str) -> bool:
    if {message.backend, message.platform} - _SERVED:
        return False
    return file_name in ((message.default_model_filename,) if message.default_model_filename else ("model.onnx", "model.xml"))


def _ports(entries: Iterable[Any]) -> tuple[Port, ...]:
    ports = []
    for entry, _ in zip(entries, range(_MOST_PORTS), strict=False):
        dims = entry.reshape.shape if entry.HasField("reshape") else entry.dims
        ports.append(Port(entry.name, _DTYPES[entry.data_type][1], tuple(dims), getattr(entry, "allow_ragged_batch", False)))
    return tuple(ports)


def _protobuf(module: str) -> Any:
    """A module of protobuf, which onnx brings along, and which has no type hints."""
    return importlib.import_module(f"google.protobuf.{module}")


@functools.cache
def _schema() -> Any:
    """The message class of a whole config, made from the table above."""
    descriptors = _protobuf("descriptor_pb2")
    kinds = descriptors.FieldDescriptorProto
    scalars = {"string": kinds.TYPE_STRING, "bool": kinds.TYPE_BOOL, "int32": kinds.TYPE_INT32, "int64": kinds.TYPE_INT64}
    file = descriptors.FileDescriptorProto(name="wirelint/triton.proto", package=_PACKAGE, syntax="proto3")
    enum = file.enum_type.add(name="DataType")
    for number, (word, _) in enumerate(_DTYPES):
        enum.value.add(name=f"TYPE_{word}", number=number)
    for name, fields in _MESSAGES.items():
        made = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind[0] == "[" else kinds.LABEL_OPTIONAL
            entry = made.field.add(name=field, number=number, label=label)
            bare = kind.strip("[]")
            if bare in scalars:
                entry.type = scalars[bare]
            else:
                entry.type = kinds.TYPE_ENUM if bare == "DataType" else kinds.TYPE_MESSAGE
                entry.type_name = f".{_PACKAGE}.{bare}"
    pool = _protobuf("descriptor_pool").DescriptorPool()
    pool.Add(file)
    return _protobuf("message_factory").GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.ModelConfig"))
