"""Holds a model to its contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.contract.terms import ANY, OPEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.contract.terms import Axis, Contract, PromisedInput, PromisedOutput
    from wirelint.facts import InputFacts, ModelFacts, OutputFacts

__all__ = ["contract_mismatches"]

Shape = tuple[int | str | None, ...]


def contract_mismatches(contract: Contract, facts: ModelFacts) -> Iterator[str]:
    """What a model does not keep of its contract, one sentence each, with the contract's line."""
    inputs = [entry for entry in facts.inputs if not entry.weight]
    matched = _matched(contract.inputs, inputs)
    for promised, entry in matched:
        yield from (f"{contract.called}:{promised.line}: {said}" for said in _input(promised, entry))
    kept = [entry for _, entry in matched if entry is not None]
    for entry in inputs:
        if all(entry is not other for other in kept) and not entry.has_default:
            yield f"{contract.called}: {entry.shown} ({entry.role}) is required and not in the contract; export without it"
    indices = [entry.index for entry in kept]
    if contract.ordered and indices != sorted(indices):
        said = "the inputs come in another order than in the contract; export in its order"
        yield f"{contract.called}:{contract.order_line}: {said}"
    outputs = {output.name: output for output in facts.outputs}
    for wanted in contract.outputs:
        yield from (f"{contract.called}:{wanted.line}: {said}" for said in _output(wanted, outputs.get(wanted.name)))


def _matched(promised: Sequence[PromisedInput], inputs: Sequence[InputFacts]) -> list[tuple[PromisedInput, InputFacts | None]]:
    """Each promised input with the one that bears a name of it, else with one of its role that no other bears."""
    found: dict[int, InputFacts] = {}
    left = list(inputs)
    for by_name in (True, False):
        for at, wanted in enumerate(promised):
            if at in found:
                continue
            entry = next((entry for entry in left if (_named(wanted, entry) if by_name else wanted.role == entry.role)), None)
            if entry is not None:
                found[at] = entry
                left.remove(entry)
    return [(wanted, found.get(at)) for at, wanted in enumerate(promised)]


def _named(wanted: PromisedInput, entry: InputFacts) -> bool:
    return bool({entry.name, *entry.names} & set(wanted.names))


def _input(wanted: PromisedInput, entry: InputFacts | None) -> Iterator[str]:
    if entry is None:
        if not wanted.optional:
            yield f"{wanted}{f' ({wanted.role})' if wanted.role else ''} is promised, and the model has none; export with it"
        return
    if wanted.names and not _named(wanted, entry):
        yield f"{wanted} is called {_quoted(entry.name)} in the model; rename it with `wirelint fix`"
    elif wanted.role and wanted.role != entry.role:
        yield f"{wanted} is promised to be the {wanted.role}, and it acts as {entry.role}; export with the right names"
    if wanted.optional and not entry.has_default:
        yield f"{wanted} is promised to be optional, and the model requires it"
    yield from _form(str(wanted), wanted.dtype, wanted.axes, entry)


def _output(wanted: PromisedOutput, entry: OutputFacts | None) -> Iterator[str]:
    if entry is None:
        yield f"{wanted} is promised, and the model has none of this name"
        return
    yield from _form(str(wanted), wanted.dtype, wanted.axes, entry)
    for side in wanted.padding:
        verdict = getattr(entry.padding, side)
        if verdict != "safe":
            done = "changes it" if verdict == "leaks" else "can't be shown not to change it"
            yield f"padding on the {side} is promised not to change {wanted}, and {done}"
    if wanted.rows_independent and entry.batch != "independent":
        done = "they do" if entry.batch == "mixes" else "that can't be shown"
        yield f"rows of a batch are promised not to change each other's {wanted}, and {done}"


def _form(called: str, dtype: str, axes: tuple[Axis, ...] | None, entry: InputFacts | OutputFacts) -> Iterator[str]:
    if dtype and entry.dtype not in ("unknown", dtype):
        yield f"{called} is promised as {dtype}, and is {entry.dtype}"
    if axes is not None and entry.shape is not None and not _fits(axes, entry.shape):
        yield f"{called} is promised with axes [{_listed(axes)}], and has [{_listed(entry.shape)}]; export it so"


def _fits(axes: tuple[Axis, ...], shape: Shape) -> bool:
    """An open axis must be open; a size is kept by the same size and by an open axis."""
    if len(axes) != len(shape):
        return False
    return all(
        axis == ANY or not isinstance(size, int) if isinstance(axis, str) else size == axis or not isinstance(size, int)
        for axis, size in zip(axes, shape, strict=True)
    )


def _listed(shape: Sequence[Axis | None]) -> str:
    return ", ".join(OPEN if size is None else str(size) for size in shape)


def _quoted(name: str) -> str:
    return f"'{name}'" if name else "nothing"
