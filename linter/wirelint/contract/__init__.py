"""Contracts: what callers of a model rely on, in a small YAML file beside it.

``model.contract.yaml`` belongs to ``model.onnx`` (or ``model.xml``) in the same folder, so that the models of a folder may
each have their own, and a contract moves with its model.  ``wirelint contract`` writes it, people edit it, and
``wirelint check`` holds later exports to it.
"""

from __future__ import annotations

from wirelint.contract.checking import contract_mismatches
from wirelint.contract.reading import contract_of, read_contract
from wirelint.contract.terms import Contract
from wirelint.contract.writing import contract_text

__all__ = ["Contract", "contract_mismatches", "contract_of", "contract_text", "read_contract"]
