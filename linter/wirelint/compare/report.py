"""Comparisons as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from wirelint.compare.difference import SEVERITIES
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirelint.compare.difference import Difference

__all__ = ["bucket_document", "bucket_text", "comparison_document", "comparison_text"]

_KIND_WIDTH = 20
_SEVERITY_WIDTH = 9


def comparison_text(reference: str, model: str, found: Sequence[Difference], width: int) -> str:
    """The differences, each on a line of its own, and a line that counts them."""
    lines = [f"{printable(reference)} -> {printable(model)}"]
    for difference in found:
        head = f"  {difference.severity:<{_SEVERITY_WIDTH}}{difference.kind:<{_KIND_WIDTH}}"
        lines.append(_wrapped(head, difference.sentence, width))
    counts = Counter(difference.severity for difference in found)
    counted = ", ".join(f"{counts[severity]} {severity}{'s' if counts[severity] != 1 else ''}" for severity in SEVERITIES)
    lines.append(counted if found else "nothing lost, nothing changed")
    return "\n".join(lines) + "\n"


def comparison_document(reference: str, model: str, found: Sequence[Difference]) -> str:
    """The same for programs: ``wirelint-compare/1``."""
    return _dumped(
        {
            "schema": "wirelint-compare/1",
            "reference": reference,
            "model": model,
            "lost": any(difference.lost for difference in found),
            "differences": [
                {
                    "kind": difference.kind,
                    "severity": difference.severity,
                    "message": difference.sentence,
                    "input": difference.input,
                    "output": difference.output,
                }
                for difference in found
            ],
        }
    )


def bucket_text(paths: Sequence[str], found: Mapping[str, Sequence[str]], width: int) -> str:
    """What is wrong with a set of models compiled for several shapes."""
    lines = []
    for path, sentences in found.items():
        lines.append(printable(path))
        lines.extend(
            _wrapped(f"  {'error':<{_SEVERITY_WIDTH}}{'bucket-mismatch':<{_KIND_WIDTH}}", line, width) for line in sentences
        )
    counted = f"{len(found)} of {len(paths)} models" if found else f"{len(paths)} models"
    lines.append(f"{counted} differ in more than shape" if found else f"{counted} differ in shape only")
    return "\n".join(lines) + "\n"


def bucket_document(paths: Sequence[str], found: Mapping[str, Sequence[str]]) -> str:
    """The same for programs: ``wirelint-bucket/1``."""
    listed = [{"path": path, "mismatches": list(found.get(path, ()))} for path in paths]
    return _dumped({"schema": "wirelint-bucket/1", "sound": not found, "models": listed})


def _wrapped(head: str, sentence: str, width: int) -> str:
    lines = textwrap.wrap(printable(sentence), max(width - len(head), 40), break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * len(head)).join([head + lines[0], *lines[1:]])


def _dumped(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
