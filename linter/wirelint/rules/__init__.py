"""Rules: YAML files that judge facts."""

from wirelint.rules.evaluation import RuleFailedError, evaluate, evaluate_file
from wirelint.rules.loading import RuleSet, builtin_folder, load_rules
from wirelint.rules.schema import FAMILIES, Case, Rule

__all__ = [
    "FAMILIES",
    "Case",
    "Rule",
    "RuleFailedError",
    "RuleSet",
    "builtin_folder",
    "evaluate",
    "evaluate_file",
    "load_rules",
]
