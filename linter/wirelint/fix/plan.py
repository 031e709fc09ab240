"""Decides which names and defaults of a model to mend, and which can't be mended in the file."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wirelint.contract import contract_of, read_contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirelint.facts import InputFacts, ModelFacts

__all__ = ["Plan", "Rename", "plan_for"]

_SURE = 0.8
"""Below this confidence in a role an input keeps its name."""
_FEEDABLE = frozenset({"ids", "decoder_ids", "mask", "decoder_mask", "segment", "position", "bbox"})
"""Roles whose inputs callers make for every request: to leave one out by mistake must not be silent."""
_MADE_FOR = {
    "ids": ("input_ids",), "mask": ("attention_mask",), "segment": ("token_type_ids",), "position": ("position_ids",),
    "bbox": ("bbox",), "features": ("input_values", "input_features"), "pixels": ("pixel_values",),
    "pixel_mask": ("pixel_mask",),
}  # fmt: skip
_IN_DECODER = {
    "decoder_ids": "input_ids", "mask": "encoder_attention_mask", "decoder_mask": "attention_mask",
    "encoder_states": "encoder_hidden_states",
}  # fmt: skip
"""What the decoder half of a sequence-to-sequence model calls its inputs in transformers, and its exporters after it."""


@dataclass(frozen=True, slots=True)
class Rename:
    """An input that gets another name.

    Attributes:
        index: position among the graph inputs.
        role: what it does.
        old: the name that goes; empty when there was none.
        new: the name that it gets.
        reason: why, in words.
    """

    index: int
    role: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to change in a file.

    Attributes:
        renames: inputs that get another name.
        required: names, before renaming, of inputs whose default value goes, so that leaving them out is an error.
        refused: what is wrong and can't be mended in the file, each with the reason.
    """

    renames: tuple[Rename, ...] = ()
    required: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing is to be changed."""
        return not self.renames and not self.required

    def without(self, refused: Mapping[int, str]) -> Plan:
        """The plan less the renames of some inputs, and less those whose new name one of these keeps.

        Args:
            refused: the reason for each input that can't be renamed, by its position.
        """
        reasons = dict(refused)
        while True:
            kept = [entry for entry in self.renames if entry.index not in reasons]
            held = {entry.old for entry in self.renames if entry.index in reasons}
            blocked = [entry for entry in kept if entry.new in held]
            if not blocked:
                break
            reasons |= {entry.index: f"'{entry.new}' is the name of an input that keeps it" for entry in blocked}
        said = (f"{_called(entry)} can't be renamed to '{entry.new}': {reasons[entry.index]}"
                for entry in self.renames if entry.index in reasons)  # fmt: skip
        return dataclasses.replace(self, renames=tuple(kept), refused=(*self.refused, *said))


def plan_for(facts: ModelFacts) -> Plan:
    """What to mend in a model.

    An input gets the name that its role has by, in this order, the contract beside the model, the tokenizer, or common use.
    One that bears a word of its own (``valid_mask``) keeps it unless the first two say otherwise.

    Raises:
        ConfigurationError: the contract beside the model is wrong.
    """
    inputs = [entry for entry in facts.inputs if not entry.weight]
    said = _said_by_companions(facts)
    renames, unsure = [], []
    for entry in inputs:
        wanted, reason = said.get(entry.role) or _usual(entry, facts)
        if not _is_wrong(entry, wanted, explicit=entry.role in said):
            continue
        if entry.confidence >= _SURE and entry.basis == "consumers":
            renames.append(Rename(entry.index, entry.role, entry.name, wanted, reason))
        else:
            unsure.append(f"{entry.shown} may be '{wanted}' ({entry.role}), which the graph does not prove; it keeps its name")
    renames += _by_layer(inputs, {entry.index for entry in renames})
    required = tuple(entry.name for entry in inputs if entry.has_default and entry.role in _FEEDABLE)
    plan = Plan(tuple(renames), required, tuple(unsure))
    return plan.without(dict(_collisions(plan.renames, facts)))


def _is_wrong(entry: InputFacts, wanted: str, *, explicit: bool) -> bool:
    """The name says nothing, or another role, or is not the one that a companion asks for."""
    if not wanted or wanted in (entry.name, *entry.names):
        # A port that also bears another role's name is still found by it.
        return bool(wanted) and entry.name_conflicts and entry.name != wanted
    return entry.name_conflicts or entry.name_kind in ("none", "generated", "vague") or (explicit and entry.role in _FEEDABLE)


def _said_by_companions(facts: ModelFacts) -> dict[str, tuple[str, str]]:
    """Names by role as the contract or the tokenizer has them, each with where it says so; only where a role is unique."""
    roles = Counter(entry.role for entry in facts.inputs if not entry.weight)
    said: dict[str, tuple[str, str]] = {}
    if not facts.roles() & {"encoder_states", "decoder_ids"}:
        for role, names in _MADE_FOR.items():
            made = next((name for name in names if name in facts.expect.input_names), None)
            if made is not None and roles[role] == 1:
                said[role] = made, "the tokenizer beside the model calls it so"
    contract = contract_of(Path(facts.path))
    if contract is not None:
        for promised in read_contract(contract).inputs:
            if promised.names and roles[promised.role] == 1:
                said[promised.role] = promised.names[0], f"{contract.name} calls it so"
    return said


def _usual(entry: InputFacts, facts: ModelFacts) -> tuple[str, str]:
    roles = facts.roles()
    name = entry.usual_name
    if "encoder_states" in roles and "ids" not in roles:
        name = _IN_DECODER.get(entry.role, name)
    if entry.role == "features" and entry.shape is not None and len(entry.shape) == 3:
        # Spectrograms; waveforms are [batch, samples].
        name = "input_features"
    return name, f"the graph uses it as {entry.role}, which callers know under this name"


def _by_layer(inputs: Sequence[InputFacts], named: set[int]) -> Iterator[Rename]:
    """IR inputs without a tensor name whose role has no usual one get that of their layer."""
    taken = {name for entry in inputs for name in entry.names}
    for entry in inputs:
        if not entry.name and entry.index not in named and entry.layer and entry.layer not in taken:
            taken.add(entry.layer)
            yield Rename(entry.index, entry.role, "", entry.layer, "its layer has this name")


def _collisions(renames: Sequence[Rename], facts: ModelFacts) -> Iterator[tuple[int, str]]:
    """Renames to a name that would not be unique among inputs and outputs."""
    wanted = Counter(entry.new for entry in renames)
    leaving = {entry.old for entry in renames}
    kept = {name for entry in facts.inputs for name in (entry.name, *entry.names)} - leaving
    outputs = {output.name for output in facts.outputs}
    for entry in renames:
        if wanted[entry.new] > 1:
            yield entry.index, f"several inputs act as {entry.role}, and nothing says which is which"
        elif entry.new in kept and not _bears(entry, facts):
            yield entry.index, "another input has this name"
        elif entry.new in outputs:
            yield entry.index, "an output has this name"
        elif entry.old and entry.old in outputs:
            yield entry.index, "it is an output too, whose name would change with it"


def _bears(entry: Rename, facts: ModelFacts) -> bool:
    """The new name is one that the same port has already."""
    return any(entry.index == found.index and entry.new in found.names for found in facts.inputs)


def _called(entry: Rename) -> str:
    return f"input {entry.index} '{entry.old}'" if entry.old else f"input {entry.index} (unnamed)"
