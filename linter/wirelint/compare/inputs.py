"""What became of a reference's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.compare.difference import ERROR, NOTE, REFERENCE, WARNING, Difference
from wirelint.compare.matching import match_inputs, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.facts import InputFacts, ModelFacts

__all__ = ["input_differences"]

Pair = tuple["InputFacts", "InputFacts"]


def input_differences(reference: ModelFacts, model: ModelFacts, source: str = REFERENCE) -> Iterator[Difference]:
    """Inputs that were dropped, added, renamed, reordered, retyped or fixed."""
    before = [entry for entry in reference.inputs if not entry.weight]
    after = [entry for entry in model.inputs if not entry.weight]
    matched = match_inputs(before, after)
    pairs = [(old, new) for old, new in matched if new is not None]
    yield from (_dropped(old, reference, model, source) for old, new in matched if new is None)
    kept = {new.index for _, new in pairs}
    yield from (_added(entry, source) for entry in after if entry.index not in kept)
    for old, new in pairs:
        yield from _renamed(old, new, source)
        yield from _retyped(old, new, source)
        yield from _weakened(old, new, source)
    yield from _axes(pairs, source)
    yield from _order(pairs, source)


def _dropped(entry: InputFacts, reference: ModelFacts, model: ModelFacts, source: str) -> Difference:
    called = f"{entry.shown} of {source} ({entry.role})"
    if not entry.used or entry.has_default:
        why = "nothing depended on it there" if not entry.used else "it was optional there"
        return Difference("input-dropped", WARNING, f"{called} is gone; {why}", input=entry.index)
    folded = _folded_to(entry, reference, model)
    return Difference(
        "input-dropped",
        ERROR,
        f"{called} is gone{folded}; convert again with it among the inputs",
        input=entry.index,
    )


def _folded_to(entry: InputFacts, reference: ModelFacts, model: ModelFacts) -> str:
    """What stands in the model where the input was read, if that can be told."""
    if entry.role == "segment":
        tables = [table for table in model.embeddings if table.kind == "segment" and table.constant_index is not None]
        if tables:
            return f": its table is always read at row {tables[0].constant_index}"
    if entry.role == "position" and any(table.index_from == "range" for table in model.embeddings if table.kind == "position"):
        return ": positions are 0, 1, 2, ... whatever the padding is"
    if entry.role in ("mask", "decoder_mask") and reference.attention.effective:
        if model.mask.from_ids:
            return f": the mask is made from the ids, where they are {model.mask.pad_id}"
        lost = model.attention.maskable - model.attention.effective
        return f": {lost} of {model.attention.maskable} attention sites have no padding mask" if lost else ""
    return ""


def _added(entry: InputFacts, source: str) -> Difference:
    if entry.has_default:
        return Difference("input-added", NOTE, f"{entry.shown} ({entry.role}) is not in {source}; it is optional", entry.index)
    sentence = f"{entry.shown} ({entry.role}) is not in {source}, so that its callers do not feed it; convert again without it"
    return Difference("input-added", ERROR, sentence, entry.index)


def _renamed(old: InputFacts, new: InputFacts, source: str) -> Iterator[Difference]:
    if not names_of(old) or names_of(old) & names_of(new):
        return
    called = f"'{new.name}'" if new.name else "nothing"
    sentence = f"input {new.index} ({new.role}) is called {called} here and '{old.name}' in {source}"
    if old.name_kind == "generated" and new.name_kind == "conventional":
        yield Difference("input-renamed", NOTE, sentence, new.index)
    else:
        yield Difference("input-renamed", ERROR, f"{sentence}; `wirelint fix` renames it", new.index)


def _retyped(old: InputFacts, new: InputFacts, source: str) -> Iterator[Difference]:
    if old.dtype != new.dtype and "unknown" not in (old.dtype, new.dtype):
        sentence = f"{new.shown} is {new.dtype} here and {old.dtype} in {source}; feed {new.dtype}"
        crossed = old.is_float != new.is_float
        yield Difference("input-retyped", ERROR if crossed else WARNING, sentence, new.index)


def _weakened(old: InputFacts, new: InputFacts, source: str) -> Iterator[Difference]:
    """Inputs that may be left out now, or that do nothing any more."""
    if new.has_default and not old.has_default:
        sentence = f"{new.shown} has a default value here and is required in {source}: leaving it out is silent now"
        yield Difference("input-optional", WARNING, sentence, new.index)
    if old.used and not new.used:
        sentence = (
            f"{new.shown} has no effect here and has one in {source} ({old.role}); convert again without constant folding"
        )
        yield Difference("input-inert", ERROR, sentence, new.index)


def _axes(pairs: Sequence[Pair], source: str) -> Iterator[Difference]:
    """Axes that were fixed or opened, those that changed alike in one sentence.

    A fixed axis is a warning, as models are compiled for fixed shapes on purpose; where another input has it open still, it is
    an error.
    """
    changed: dict[tuple[int, int | str | None, int | str | None], list[InputFacts]] = {}
    for old, new in pairs:
        if old.shape is None or new.shape is None:
            continue
        if len(old.shape) != len(new.shape):
            sentence = f"{new.shown} has {len(new.shape)} axes here and {len(old.shape)} in {source}"
            yield Difference("rank-changed", ERROR, sentence, new.index)
            continue
        for axis, (was, now) in enumerate(zip(old.shape, new.shape, strict=True)):
            if was != now and (isinstance(was, int) or isinstance(now, int)):
                changed.setdefault((axis, was, now), []).append(new)
    for (axis, was, now), entries in changed.items():
        shown = entries[0].shown + (f" (and of {len(entries) - 1} more)" if len(entries) > 1 else "")
        if not isinstance(now, int):
            sentence = f"axis {axis} of {shown} is open here and fixed at {was} in {source}"
            yield Difference("axis-opened", NOTE, sentence, entries[0].index)
        elif isinstance(was, int):
            sentence = f"axis {axis} of {shown} is {now} here and {was} in {source}"
            yield Difference("axis-fixed", ERROR, sentence, entries[0].index)
        else:
            severity = ERROR if _open_elsewhere(pairs, was) else WARNING
            sentence = f"axis {axis} of {shown} is fixed at {now} here and open in {source}{f' ({was})' if was else ''}"
            yield Difference(
                "axis-fixed", severity, f"{sentence}; convert with dynamic axes unless it is meant", entries[0].index
            )


def _open_elsewhere(pairs: Sequence[Pair], symbol: str | None) -> bool:
    """Another input still has the axis open."""
    return symbol is not None and any(
        was == symbol and not isinstance(now, int)
        for old, new in pairs
        if old.shape is not None and new.shape is not None
        for was, now in zip(old.shape, new.shape, strict=False)
    )


def _order(pairs: Sequence[Pair], source: str) -> Iterator[Difference]:
    """Another order of the inputs that both have; it matters to whoever feeds a list."""
    here = [new for _, new in sorted(pairs, key=lambda pair: pair[1].index)]
    there = [new for _, new in pairs]
    if [entry.index for entry in here] == [entry.index for entry in there]:
        return
    moved = next(new for new, other in zip(there, here, strict=True) if new is not other)
    sentence = f"the inputs come in the order {_shown(here)} here and {_shown(there)} in {source}; feed by name"
    yield Difference("input-order", WARNING, sentence, moved.index)


def _shown(entries: Sequence[InputFacts]) -> str:
    names = [entry.name or f"({entry.role})" for entry in entries]
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
