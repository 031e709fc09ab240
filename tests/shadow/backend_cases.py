"""The node test cases that ship in the ``onnx`` package, as subjects.

Run as a program it checks all of them thoroughly and says how far the shadow interpreter reaches:

    python tests/shadow/backend_cases.py
"""

from __future__ import annotations

import collections
import functools
import pkgutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case import node as node_cases
from onnx_subjects import UnusableError, subject
from soundness import Outcome, check

UNMODELLED = {
    # Only images, boxes and windows of signals.
    "AffineGrid", "BlackmanWindow", "CenterCropPad", "Col2Im", "DFT", "DeformConv", "HammingWindow", "HannWindow", "MaxUnpool",
    "MelWeightMatrix", "NonMaxSuppression", "RoiAlign", "STFT",
    # Only training.
    "Dropout", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "ai.onnx.preview.training.Adagrad",
    "ai.onnx.preview.training.Adam", "ai.onnx.preview.training.Momentum",
    # Random numbers that depend on their operand, optional values, trees, n-grams.
    "Bernoulli", "Det", "OptionalGetElement", "OptionalHasElement", "TfIdfVectorizer", "ai.onnx.ml.Binarizer",
    "ai.onnx.ml.TreeEnsemble",
    # Newer than any exporter.
    "CausalConvWithState", "LinearAttention", "ai.onnx.preview.FlexAttention",
    # Single forms: Attention that gives its scores away, Resize that keeps the aspect ratio, types that no reader knows.
    "Attention", "CastLike", "Resize", "Scan",
}  # fmt: skip
"""Operators whose cases need not be modelled, with the reason for it."""

DELIBERATE = {
    "test_dynamicquantizelinear": "codes are told relative to a zero point of 0",
    "test_dynamicquantizelinear_max_adjusted": "codes are told relative to a zero point of 0",
    "test_dynamicquantizelinear_min_adjusted": "codes are told relative to a zero point of 0",
    "test_lstm_with_peepholes": "the canonical LSTM leaves peepholes out: they are weights",
}
"""Cases in which a shadow differs from the runtime on purpose."""


@functools.cache
def by_operator() -> dict[str, list]:
    """All cases by the operator that they are about; those of its expansion into others included."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = node_cases.collect_testcases()
    operators: dict[str, str] = {}
    grouped: dict[str, list] = collections.defaultdict(list)
    for case in sorted(cases, key=lambda case: len(case.name)):
        base = case.name.partition("_expanded")[0]
        operator = operators.setdefault(base, case.model.graph.node[-1].op_type)
        grouped[operator].append(case)
    return dict(grouped)


def operators() -> list[str]:
    """The operators that have a module of cases, found without making the cases; the last entry stands for all others."""
    modules = {name.replace("_", "") for _, name, _ in pkgutil.iter_modules(node_cases.__path__)}
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.name.lower() in modules}
    return [*sorted(names), "others"]


def cases_of(operator: str) -> list:
    if operator != "others":
        return by_operator().get(operator, [])
    named = set(operators())
    return [case for name, cases in by_operator().items() if name not in named for case in cases]


def arrays(held) -> list[np.ndarray]:
    """Inputs or results of a case.

    Raises:
        UnusableError: one is a sequence or an optional value.
    """
    made = []
    for entry in held:
        if entry is None or isinstance(entry, list | dict):
            raise UnusableError("a sequence or an optional value")
        made.append(onnx.numpy_helper.to_array(entry) if isinstance(entry, onnx.TensorProto) else np.asarray(entry))
    return made


def outcome_of(case, directory: Path, **thoroughness: int) -> Outcome:
    """Checks one case, unless no runtime can."""
    held, expected = case.data_sets[0]
    try:
        feeds = dict(zip([value.name for value in case.model.graph.input], arrays(held), strict=True))
        made = subject("model", case.model, feeds, directory, arrays(expected))
    except UnusableError as error:
        return Outcome(skipped=str(error))
    if "_dft_" in case.name:
        made.noise = 1e-3  # ONNX Runtime sums up angles in single precision
    outcome = check(made, **thoroughness)
    if case.name in DELIBERATE:
        return Outcome(skipped=DELIBERATE[case.name])
    return outcome


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main() -> int:
    reached, covered, left_out = collections.Counter(), collections.Counter(), collections.Counter()
    changes, faults = 0, 0
    with tempfile.TemporaryDirectory() as directory:
        for operator, cases in sorted(by_operator().items()):
            for case in cases:
                outcome = outcome_of(case, Path(directory), limit=96, turns=3, joint=6)
                for fault in outcome.faults:
                    say(f"{case.name}: {fault}")
                faults += bool(outcome.faults)
                changes += outcome.checked
                if outcome.unmodelled:
                    left_out.update(outcome.unmodelled)
                elif outcome.skipped:
                    reached[outcome.skipped.partition(":")[0]] += 1
                else:
                    covered[operator] += 1
    say(f"{sum(covered.values())} cases of {len(covered)} operators covered, {changes} changed runs, {faults} with faults")
    say(f"left out, by reason: {dict(reached)}")
    say("unmodelled: " + ", ".join(f"{name} ({count})" for name, count in sorted(left_out.items())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
