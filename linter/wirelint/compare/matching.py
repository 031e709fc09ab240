"""Finds for each input or output of a reference the one of a model that it became."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from wirelint.facts import InputFacts, OutputFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["match_inputs", "match_outputs", "names_of"]

Port = TypeVar("Port", InputFacts, OutputFacts)

_ROLE, _NAME, _PLACE = 8, 4, 1


def names_of(entry: InputFacts | OutputFacts) -> set[str]:
    """Every name by which a caller may address it."""
    names = {entry.name, *entry.names} if isinstance(entry, InputFacts) else {entry.name}
    return names - {""}


def match_inputs(reference: Sequence[InputFacts], model: Sequence[InputFacts]) -> list[tuple[InputFacts, InputFacts | None]]:
    """Pairs inputs by role, then name, then position.

    A role goes before a name: of two inputs whose names were exchanged, each is found by what it does.

    Returns:
        Each input of the reference with its counterpart or None, in the reference's order.
    """
    return _matched(reference, model, _input_score)


def match_outputs(
    reference: Sequence[OutputFacts], model: Sequence[OutputFacts]
) -> list[tuple[OutputFacts, OutputFacts | None]]:
    """Pairs outputs by name, then by position where rank and dtype agree; see :func:`match_inputs`."""
    return _matched(reference, model, _output_score)


def _matched(
    reference: Sequence[Port], model: Sequence[Port], score: Callable[[Port, Port], int]
) -> list[tuple[Port, Port | None]]:
    """The pairs of highest score first, each port once; of equal ones the earlier."""
    scored = [
        (-value, old, new)
        for old, before in enumerate(reference)
        for new, after in enumerate(model)
        if (value := score(before, after)) > 0
    ]
    found: dict[int, int] = {}
    taken: set[int] = set()
    for _, old, new in sorted(scored):
        if old not in found and new not in taken:
            found[old] = new
            taken.add(new)
    return [(before, model[found[old]] if old in found else None) for old, before in enumerate(reference)]


def _input_score(before: InputFacts, after: InputFacts) -> int:
    same_role = before.role == after.role
    score = _ROLE if same_role and before.role != "other" else 0
    if names_of(before) & names_of(after):
        score += _NAME
    if before.index == after.index:
        alike = same_role and before.dtype == after.dtype and _rank(before) == _rank(after)
        score += _PLACE if score or alike else 0
    return score


def _output_score(before: OutputFacts, after: OutputFacts) -> int:
    score = _NAME if names_of(before) & names_of(after) else 0
    alike = before.dtype == after.dtype and _rank(before) == _rank(after)
    return score + (_PLACE if before.index == after.index and (score or alike) else 0)


def _rank(entry: InputFacts | OutputFacts) -> int | None:
    return None if entry.shape is None else len(entry.shape)
