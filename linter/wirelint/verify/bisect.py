"""Finds the first operator at which a model parts from its reference.

Tensors between operators are made outputs of both.  A tensor of the model is *kept* when the reference has one of the same
name and the same numbers, or, where names were changed, of any name and the same numbers.  The operator that is looked for
reads kept tensors only and gives one that is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelint.verify.process import Runner, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirelint.graph import Graph, Op, Value
    from wirelint.verify.process import Feed
    from wirelint.verify.protocol import Array
    from wirelint.verify.reference import Side

__all__ = ["Parting", "find_parting"]

_CHUNK = 400
"""So many tensors are made outputs at a time: all of them at once would keep every activation in memory."""
_FINGERPRINTS = 64


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two models part.

    Attributes:
        operator: operator type of the first operator that gives something else, as the model's file calls it.
        name: its name.
        tensor: what it computes.
        counterpart: the reference's tensor of the same name; empty when there is none.
        relative: how far the two are apart, relative to the reference's scale; None without a counterpart.
        after: tensors that it reads, which are the same in both.
        compared: tensors of the model that the reference has, and all that were looked at.
    """

    operator: str
    name: str
    tensor: str
    counterpart: str
    relative: float | None
    after: tuple[str, ...]
    compared: tuple[int, int]

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "name": self.name,
            "tensor": self.tensor,
            "counterpart": self.counterpart or None,
            "relative": self.relative if self.relative is None or np.isfinite(self.relative) else str(self.relative),
            "after": list(self.after),
            "compared": list(self.compared),
        }

    def __str__(self) -> str:
        where = f"{self.operator} '{self.name}'" if self.name else f"{self.operator} that computes '{self.tensor}'"
        inputs = ", ".join(f"'{name}'" for name in self.after[:4]) or "the inputs"
        if self.relative is None:
            how = "the reference has no tensor like what it gives, nor like anything after it"
        else:
            how = f"it gives '{self.tensor}', which is {self.relative:.1e} of its scale away from the reference's"
        shared = f"{self.compared[0]} of {self.compared[1]} tensors are"
        return f"they part at {where}: {how}, while what it reads ({inputs}) is the same in both ({shared})"


def find_parting(
    worker: Worker, sides: tuple[Side, Side], feeds: tuple[Sequence[Feed], Sequence[Feed]], output: str, allowed: float
) -> Parting | None:
    """The first operator at which they part, on the way to an output that differs; None when no tensor tells.

    Args:
        worker: runs them.
        sides: the model and the reference.
        feeds: of each.
        output: name of the model's output.
        allowed: relative difference that counts as the same.

    Raises:
        RunError: a model does not run with its tensors exposed.
    """
    model, reference = sides
    graph = model.inputs.graph
    flow = model.examined.traced.flow
    # What depends on no input (a weight that is copied, or unpacked) is the same in every run and shows as what it goes into.
    way = [
        op
        for op in _way(graph, graph.outputs[graph.output_names.index(output)])
        if any(flow[value].reach for value in op.outputs)
    ]
    mine = _tensors(worker, model, feeds[0], [value for op in way for value in op.outputs])
    theirs = _tensors(worker, reference, feeds[1], [value for op in reference.inputs.graph.ops for value in op.outputs])
    kept = _Kept(theirs, allowed)
    same = {name: kept.has(name, array) for name, array in mine.items()}
    named = {name for name, array in mine.items() if name in theirs and theirs[name].shape == array.shape}
    parted = _first(way, same, named)
    if parted is None:
        return None
    tensor = next(value.name for value in parted.outputs if value.name in same)
    apart = None if tensor not in theirs else _apart(mine[tensor], theirs[tensor])
    return Parting(
        parted.origin.op_type or parted.kind,
        parted.origin.name,
        tensor,
        tensor if tensor in theirs else "",
        apart,
        tuple(value.name for value in parted.inputs if value is not None and same.get(value.name, value in graph.inputs)),
        (sum(same.values()), len(same)),
    )


def _way(graph: Graph, output: Value) -> list[Op]:
    """The operators of the main graph that an output depends on, in order."""
    wanted: set[Op] = set()
    back = [output]
    while back:
        op = back.pop().producer
        if op is not None and op not in wanted:
            wanted.add(op)
            back += [value for value in op.inputs if value is not None]
            back += [value for body in op.bodies.values() for inner in body.ops for value in inner.inputs if value is not None]
    return [op for op in graph.ops if op in wanted]


def _tensors(worker: Worker, side: Side, feeds: Sequence[Feed], values: Iterable[Value]) -> dict[str, Array]:
    """The numbers of tensors, by name; names that the runtime does not know are left out."""
    names = [name for name in dict.fromkeys(value.name for value in values) if name]
    found: dict[str, Array] = {}
    for start in range(0, len(names), _CHUNK):
        runner = Runner(worker, side.path, side.on, expose=names[start : start + _CHUNK])
        made = runner.run(feeds)
        found.update(
            {
                name: array
                for name, array in zip(runner.outputs, made, strict=True)
                if array is not None and array.dtype.kind not in "USO"
            }
        )
    return found


class _Kept:
    """The reference's tensors, to be found by name and by value."""

    def __init__(self, tensors: dict[str, Array], allowed: float) -> None:
        self._tensors, self._allowed = tensors, allowed
        self._by_size: dict[int, list[tuple[float, Array]]] = {}
        for array in tensors.values():
            self._by_size.setdefault(array.size, []).append((_norm(array), array))

    def has(self, name: str, array: Array) -> bool:
        """The reference has this tensor."""
        own = self._tensors.get(name)
        if own is not None and own.shape == array.shape:
            return _apart(array, own) <= self._allowed
        norm = _norm(array)
        near = sorted(self._by_size.get(array.size, []), key=lambda entry: abs(entry[0] - norm))[:_FINGERPRINTS]
        return any(_apart(array, other) <= self._allowed for _, other in near)


def _norm(array: Array) -> float:
    return float(np.abs(np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)).sum())


def _apart(one: Array, other: Array) -> float:
    """The largest difference relative to the second's scale; shapes may differ, sizes may not."""
    if one.size != other.size:
        return float("inf")
    if not one.size:
        return 0.0
    left, right = one.astype(np.float64).reshape(-1), other.astype(np.float64).reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(left - right)
    apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.where(np.isnan(apart), np.inf, apart))
    finite = np.abs(right[np.isfinite(right)])
    return float(apart.max()) / max(float(finite.max(initial=0.0)), 1e-12)


def _first(way: Sequence[Op], same: dict[str, bool], named: set[str]) -> Op | None:
    """The first operator that gives something else although all that it reads is kept.

    A tensor of the same name and shape that differs is something else.  One that the reference has no name for may be a
    step that only the model takes: it counts when nothing after it is kept either.

    Args:
        way: operators in order.
        same: whether each tensor is kept.
        named: tensors that the reference has under the same name.
    """
    known = [op for op in way if any(value.name in same for value in op.outputs)]
    lost = dict.fromkeys(known, True)
    for op in reversed(known):
        later = [consumer for value in op.outputs for consumer, _ in value.consumers if consumer in lost]
        lost[op] = not _kept(op, same) and all(lost[consumer] for consumer in later)
    for op in known:
        computed = [value for value in op.inputs if value is not None and value.producer is not None and value.name in same]
        told = lost[op] or any(value.name in named for value in op.outputs)
        if told and not _kept(op, same) and all(same[value.name] for value in computed):
            return op
    return next((op for op in known if lost[op]), None)


def _kept(op: Op, same: dict[str, bool]) -> bool:
    return any(same.get(value.name, False) for value in op.outputs)
