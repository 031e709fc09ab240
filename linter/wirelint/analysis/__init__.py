"""From a model to its facts: traces it, runs it on shadows, and writes down what was found."""

from wirelint.analysis.assemble import Examination, analyse, examine

__all__ = ["Examination", "analyse", "examine"]
