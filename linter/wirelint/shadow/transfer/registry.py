"""Which transfer function stands for which canonical operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from wirelint.shadow.labels import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.graph import Graph, Op, Value
    from wirelint.shadow.value import Shadow

__all__ = ["REGISTRY", "Context", "Transfer", "transfer"]


class Transfer(Protocol):
    """Computes the shadows of an operator's results from those of its operands.

    An absent optional operand is None.  The function may return fewer shadows than the operator has results when the
    trailing ones are not modelled.

    Raises:
        ExecutionError: a runtime would refuse these shapes.
    """

    def __call__(self, op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]: ...


@dataclass(slots=True)
class Context:
    """What transfer functions know besides their operands.

    Attributes:
        layout: the labels.
        length: the padded length of the run when no other dimension of the model equals it, else None; a shape that holds
            it yields the ``LENGTH`` label.
        run_body: executes a subgraph with the given shadows for its inputs and returns those of its outputs.
        charge: takes elements that are about to be touched off the work budget.
        dimension: the size of a declared symbol, where it is known.
        observe: keeps a shadow that arises inside the operator being executed, under a name.
    """

    layout: Layout
    length: int | None
    run_body: Callable[[Graph, Sequence[Shadow]], list[Shadow]]
    charge: Callable[[int], None]
    dimension: Callable[[str], int | None]
    observe: Callable[[str, Shadow], None]

    def declared_shape(self, value: Value) -> tuple[int, ...] | None:
        """The shape that the file declares for a value, with symbols replaced; None when a dimension stays unknown."""
        if value.shape is None:
            return None
        shape: list[int] = []
        for dim in value.shape:
            size = self.dimension(dim) if isinstance(dim, str) else dim
            if size is None:
                return None
            shape.append(size)
        return tuple(shape)


REGISTRY: dict[str, Transfer] = {}

_T = TypeVar("_T", bound=Transfer)


def transfer(*kinds: str) -> Callable[[_T], _T]:
    """Registers a transfer function for canonical operators."""

    def register(function: _T) -> _T:
        for kind in kinds:
            if kind in REGISTRY:
                raise ValueError(f"{kind} has two transfer functions")
            REGISTRY[kind] = function
        return function

    return register
