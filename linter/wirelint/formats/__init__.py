"""One reader for each file format, chosen by what the file holds, never by its suffix alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wirelint.errors import ModelFileError, NotAModelError

if TYPE_CHECKING:
    from wirelint.graph import Model

__all__ = ["load", "sniff"]

_LFS = b"version https://git-lfs.github.com/spec/"
_HEAD = 4096

# Fields of onnx.ModelProto and the protobuf wire type of each: a file may start with any of them.
_MODEL_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}


def _why_not(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "a link to a file that is not there; fetch that first" if path.is_symlink() else "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder, not a model file"
    return f"the file can't be opened ({error.strerror or error})"


def sniff(path: Path) -> str | None:
    """What a file holds, from its first bytes.

    Returns:
        ``onnx``, ``openvino-ir``, ``lfs-pointer``, or None for anything else.

    Raises:
        ModelFileError: the file can't be opened.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ModelFileError(path, "unreadable", _why_not(path, error)) from error
    if head.startswith(_LFS):
        return "lfs-pointer"
    from wirelint.formats.prolog import sniff as is_ir

    if is_ir(head):
        return "openvino-ir"
    if head and _MODEL_FIELDS.get(head[0] >> 3) == head[0] & 7:
        return "onnx"
    return None


def load(path: Path) -> Model:
    """Reads a model file of any supported format.

    Raises:
        NotAModelError: the file is no model and does not claim to be one by its suffix.
        ModelFileError: it is one, but damaged or incomplete.
    """
    kind = sniff(path)
    if kind == "lfs-pointer":
        raise ModelFileError(
            path,
            "lfs-pointer",
            "the file is a Git LFS pointer, not the model; fetch it with: git lfs pull --include " + path.name,
        )
    if kind == "openvino-ir":
        from wirelint.formats import openvino

        return _checked(openvino.read(path))
    if kind == "onnx" or path.suffix.lower() == ".onnx":
        from wirelint.formats import onnx

        return _checked(onnx.read(path))
    if path.suffix.lower() == ".xml":
        raise NotAModelError(f"{path}: the XML is no OpenVINO IR (its root is not <net> with a version)")
    raise NotAModelError(f"{path}: neither an ONNX model nor an OpenVINO IR")


def _checked(model: Model) -> Model:
    from wirelint.formats.arity import check_operands

    check_operands(model.path, model.graph)
    return model
