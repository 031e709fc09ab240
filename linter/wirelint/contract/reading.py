"""Reads a contract and checks it; every error names file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.contract.terms import VERSION, Axis, Contract, PromisedInput, PromisedOutput
from wirelint.dtypes import DType
from wirelint.layout import CONTRACT_SUFFIX
from wirelint.located import Document, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ROLES", "contract_of", "read_contract"]

ROLES = frozenset({
    "ids", "decoder_ids", "mask", "decoder_mask", "segment", "position", "encoder_states", "past", "cache_position", "pixels",
    "pixel_mask", "features", "lengths", "bbox", "other",
})  # fmt: skip
_TOP = frozenset({"wirelint-contract", "inputs", "outputs", "order"})
_INPUT = frozenset({"names", "role", "dtype", "axes", "optional"})
_OUTPUT = frozenset({"name", "dtype", "axes", "padding", "rows"})
_DTYPES = frozenset(kind.value for kind in DType) - {"unknown"}
_SIDES = frozenset({"right", "left"})


def contract_of(model: Path) -> Path | None:
    """The contract beside a model, or None."""
    path = model.with_name(model.stem + CONTRACT_SUFFIX)
    return path if path.is_file() else None


def read_contract(path: Path) -> Contract:
    """Reads a contract.

    Raises:
        ConfigurationError: it can't be read, or says something that no contract can; names file and line.
    """
    document = read_yaml(path)
    keys = document.mapping(known=_TOP)
    if keys.get("wirelint-contract") != VERSION:
        raise document.error(f"the contract must say 'wirelint-contract: {VERSION}'", "wirelint-contract")
    if "inputs" not in keys:
        raise document.error("the key 'inputs' is missing")
    inputs = tuple(_input(document, index) for index in document.items("inputs"))
    outputs = tuple(_output(document, index) for index in document.items("outputs")) if "outputs" in keys else ()
    ordered = "order" in keys and document.word("order", among=frozenset({"fixed", "free"})) == "fixed"
    return Contract(path.name, inputs, outputs, ordered, document.line("order"))


def _input(document: Document, index: int) -> PromisedInput:
    route = ("inputs", index)
    keys = document.mapping(*route, known=_INPUT)
    names = document.texts(*route, "names") if "names" in keys else ()
    if not names and "role" not in keys:
        raise document.error("an input needs 'names' or a 'role'", *route)
    return PromisedInput(
        document.line(*route),
        names,
        document.word(*route, "role", among=ROLES) if "role" in keys else "",
        document.word(*route, "dtype", among=_DTYPES) if "dtype" in keys else "",
        _axes(document, *route, "axes") if "axes" in keys else None,
        "optional" in keys and document.flag(*route, "optional"),
    )


def _output(document: Document, index: int) -> PromisedOutput:
    route = ("outputs", index)
    keys = document.mapping(*route, known=_OUTPUT)
    if "name" not in keys:
        raise document.error("an output needs a 'name'", *route)
    if "rows" in keys:
        document.word(*route, "rows", among=frozenset({"independent"}))
    padding = tuple(
        document.word(*route, "padding", side, among=_SIDES)
        for side in (document.items(*route, "padding") if "padding" in keys else ())
    )
    return PromisedOutput(
        document.line(*route),
        document.text(*route, "name"),
        document.word(*route, "dtype", among=_DTYPES) if "dtype" in keys else "",
        _axes(document, *route, "axes") if "axes" in keys else None,
        padding,
        "rows" in keys,
    )


def _axes(document: Document, *route: str | int) -> tuple[Axis, ...]:
    """Each axis is a whole number, or a word for an open one."""
    axes: list[Axis] = []
    for index in document.items(*route):
        axis = document.at(*route, index)
        if isinstance(axis, bool) or not isinstance(axis, (int, str)) or axis == "" or (isinstance(axis, int) and axis < 0):
            raise document.error("an axis must be a size such as 128, or a word for an open one such as 'batch'", *route, index)
        axes.append(axis)
    return tuple(axes)
