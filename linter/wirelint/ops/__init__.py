"""The canonical operator vocabulary to which every file format is lowered."""

from wirelint.ops.vocabulary import VOCABULARY, Family, Signature, family

__all__ = ["VOCABULARY", "Family", "Signature", "family"]
