"""Transfer functions: what each canonical operator does to shadows, one module per family of operators.

Importing this package registers all of them; an operator of the vocabulary that no module registers is not modelled.
"""

from wirelint.shadow.transfer import (
    attention,
    bag,
    contract,
    control,
    elementwise,
    generate,
    lookup,
    movement,
    normalise,
    quantise,
    recurrent,
    reduce,
    resize,
    sampling,
    scatter,
    search,
    window,
)
from wirelint.shadow.transfer.registry import REGISTRY, Context, Transfer

__all__ = [
    "REGISTRY",
    "Context",
    "Transfer",
    "attention",
    "bag",
    "contract",
    "control",
    "elementwise",
    "generate",
    "lookup",
    "movement",
    "normalise",
    "quantise",
    "recurrent",
    "reduce",
    "resize",
    "sampling",
    "scatter",
    "search",
    "window",
]
