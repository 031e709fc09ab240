"""From a model to its facts: traces it, runs it on shadows, and writes down what was found."""

from wirelint.analysis.assemble import analyse

__all__ = ["analyse"]
