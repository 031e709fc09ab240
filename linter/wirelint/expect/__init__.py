"""What the companions of a model say it should be, and where the graph says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wirelint.contract import contract_mismatches, contract_of, read_contract
from wirelint.expect.companions import expectations, read_companions
from wirelint.expect.judging import contradictions

if TYPE_CHECKING:
    from wirelint.facts import ExpectationFacts, ModelFacts

__all__ = ["gather", "judge"]


def gather(path: Path) -> ExpectationFacts:
    """What the files beside a model say; one look into its folder when there are none.

    Never raises for what is in them: a companion that can't be read is a sentence of :func:`judge`.
    """
    return expectations(read_companions(path))


def judge(facts: ModelFacts) -> dict[str, tuple[str, ...]]:
    """Contradictions between the companions and the graph, one sentence each, by the id of the rule that reports them.

    Args:
        facts: everything that is known about the model, :attr:`~wirelint.facts.ModelFacts.path` and what
            :func:`gather` returned for it included.

    Raises:
        ConfigurationError: the contract beside the model is wrong; names file and line.
    """
    path = Path(facts.path)
    found = contradictions(read_companions(path), facts)
    contract = contract_of(path)
    if contract is not None:
        broken = tuple(contract_mismatches(read_contract(contract), facts))
        if broken:
            found["contract-mismatch"] = broken
    return found
