"""The process that runs a model: it reads requests from standard input and answers on standard output.

Whatever a runtime does to it (a crash, memory without end, a loop) ends this process only.  It answers ``open``, ``run``
and ``capabilities``; see :mod:`wirelint.verify.process` for the side that asks.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, Any, Protocol

import numpy as np

from wirelint.verify.protocol import Array, Message, read_message, write_message

__all__ = ["main"]


class _Session(Protocol):
    outputs: list[str]

    def run(self, names: list[list[str]], arrays: list[Array]) -> list[Array | None]: ...


class _OnnxRuntime:
    """A model in ONNX Runtime on the CPU."""

    def __init__(self, request: dict[str, Any]) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 4
        # Threads that wait in a busy loop would take the processor from the other runs on this machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        levels = ort.GraphOptimizationLevel
        options.graph_optimization_level = {
            "disabled": levels.ORT_DISABLE_ALL,
            "basic": levels.ORT_ENABLE_BASIC,
            "extended": levels.ORT_ENABLE_EXTENDED,
            "all": levels.ORT_ENABLE_ALL,
        }[request["level"]]
        model: Any = request["path"]
        if request.get("expose"):
            model = _with_outputs(request["path"], request["expose"])
            folder = os.path.dirname(os.path.abspath(request["path"]))  # noqa: PTH100, PTH120 -- links are not to be resolved
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.outputs = [port.name for port in self._session.get_outputs()]

    def run(self, names: list[list[str]], arrays: list[Array]) -> list[Array | None]:
        made = self._session.run(None, {own[0]: array for own, array in zip(names, arrays, strict=True)})
        return [entry if isinstance(entry, np.ndarray) else None for entry in made]


def _with_outputs(path: str, expose: list[str]) -> bytes:
    """The model with further tensors among its outputs; weights in other files stay there."""
    import onnx

    proto = onnx.load(path, load_external_data=False)
    present = {value.name for value in proto.graph.output}
    made = {name for node in proto.graph.node for name in node.output if name}
    for name in expose:
        if name in made and name not in present:
            proto.graph.output.append(onnx.ValueInfoProto(name=name))
    made_bytes: bytes = proto.SerializeToString()
    return made_bytes


class _OpenVino:
    """A model in OpenVINO's CPU plugin.  The number of threads is left alone: it changes which code runs."""

    def __init__(self, request: dict[str, Any]) -> None:
        import openvino as ov

        core = ov.Core()
        model = core.read_model(request["path"])
        if request.get("shapes"):
            ports = [model.inputs[at] for at in _ports(model.inputs, request["names"])]
            model.reshape(dict(zip(ports, request["shapes"], strict=True)))
        self.outputs = [_port_name(port, at) for at, port in enumerate(model.outputs)]
        if request.get("expose"):
            self._expose(model, set(request["expose"]))
        self._compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": request["precision"]})

    def _expose(self, model: Any, wanted: set[str]) -> None:
        """Adds every first output of a layer whose tensor or layer name is wanted."""
        taken = {name for port in model.outputs for name in port.get_names()}
        for node in model.get_ordered_ops():
            if node.get_type_name() in ("Parameter", "Result", "Constant"):
                continue
            for port in node.outputs():
                own = port.get_names() or {node.get_friendly_name()}
                name = next((name for name in sorted(own) if name in wanted), None)
                if name is not None and not own & taken:
                    model.add_outputs([(node.get_friendly_name(), port.get_index())])
                    self.outputs.append(name)

    def run(self, names: list[list[str]], arrays: list[Array]) -> list[Array | None]:
        fed = dict(zip(_ports(self._compiled.inputs, names), arrays, strict=True))
        # A request that is used again keeps what it computed before: a model that stops early would answer with that.
        result = self._compiled.create_infer_request().infer(fed)
        return [np.array(result[index]) for index in range(len(self.outputs))]


def _ports(ports: Any, names: list[list[str]]) -> list[int]:
    """The port of each input: by name, or by position for one that has none."""
    found = []
    for at, own in enumerate(names):
        matching = [index for index, port in enumerate(ports) if set(own) & port.get_names()]
        found.append(matching[0] if matching else at)
    return found


def _port_name(port: Any, at: int) -> str:
    names = sorted(port.get_names())
    return names[0] if names else f"output {at}"


def _limit(memory: int) -> None:
    """Bounds what this process may allocate.  Mapped weight files do not count where the system tells them apart."""
    try:
        import resource
    except ImportError:  # no such thing on Windows; the time limit still holds
        return
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (memory, memory))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: Message, sessions: list[_Session]) -> Message:
    header = request.header
    if header["do"] == "capabilities":
        import openvino as ov

        return Message({"ok": True, "capabilities": list(ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))})
    if header["do"] == "open":
        sessions.clear()
        sessions.append(_OnnxRuntime(header) if header["runtime"] == "onnxruntime" else _OpenVino(header))
        return Message({"ok": True, "outputs": sessions[0].outputs})
    made = sessions[0].run(header["names"], [array for array in request.arrays if array is not None])
    return Message({"ok": True}, made)


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    sessions: list[_Session] = []
    while (request := read_message(requests)) is not None:
        try:
            answer = _answer(request, sessions)
        except MemoryError:
            answer = Message({"ok": False, "error": "it needs more memory than it may use"})
        except ImportError as error:
            # Too little memory to map a library's code shows as this; a runtime that is not there was found out before.
            answer = Message({"ok": False, "error": f"the runtime can't be loaded, perhaps for want of memory: {error}"})
        except Exception as error:  # noqa: BLE001 -- whatever a runtime raises is the answer
            answer = Message({"ok": False, "error": f"{type(error).__name__}: {error}"})
        write_message(answers, answer)


def main() -> None:
    """Serves until standard input ends."""
    _limit(int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a runtime prints must not stand among the answers
    _serve(sys.stdin.buffer, answers)
