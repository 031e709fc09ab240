"""Writes down what a model keeps now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirelint.contract.terms import ANY, OPEN, VERSION
from wirelint.printable import printable

if TYPE_CHECKING:
    from wirelint.facts import InputFacts, ModelFacts, OutputFacts

__all__ = ["contract_text"]

_FLOW_WIDTH = 100


def contract_text(facts: ModelFacts) -> str:
    """The contract that a model keeps now, as YAML that people read and edit.

    Guarantees that do not hold are left out, and so is the order of inputs that have names to feed them by.
    """
    import yaml

    inputs = [entry for entry in facts.inputs if not entry.weight]
    symbols = {axis for entry in inputs for axis in entry.shape or () if isinstance(axis, str)}
    document: dict[str, Any] = {
        "wirelint-contract": VERSION,
        "inputs": [_input(entry) for entry in inputs],
        "order": "free" if all(entry.name for entry in inputs) else "fixed",
        "outputs": [_output(entry, symbols) for entry in facts.outputs],
    }
    name = printable(facts.path.replace("\\", "/").rsplit("/", 1)[-1])
    heading = (
        f"# What callers of {name} rely on. `wirelint check` holds the file to it; take out what may change.\n"
        "# axes: a number is fixed, a word is open, any is either. padding: sides on which padding can't change the output.\n"
    )
    return heading + yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=_FLOW_WIDTH)


def _input(entry: InputFacts) -> dict[str, Any]:
    said: dict[str, Any] = {"names": sorted({entry.name, *entry.names} - {""}), "role": entry.role}
    if entry.dtype != "unknown":
        said["dtype"] = entry.dtype
    if entry.shape is not None:
        said["axes"] = [OPEN if axis is None else axis for axis in entry.shape]
    if entry.has_default:
        said["optional"] = True
    return said


def _output(entry: OutputFacts, symbols: set[str]) -> dict[str, Any]:
    """Of an axis that is open in an output alone nothing is promised: the exporter may not have found out its size."""
    said: dict[str, Any] = {"name": entry.name}
    if entry.dtype != "unknown":
        said["dtype"] = entry.dtype
    if entry.shape is not None:
        said["axes"] = [axis if isinstance(axis, int) or axis in symbols else ANY for axis in entry.shape]
    sides = [side for side in ("right", "left") if getattr(entry.padding, side) == "safe"]
    if sides:
        said["padding"] = sides
    if entry.batch == "independent":
        said["rows"] = "independent"
    return said
