"""Looks at one file: reads it, analyses it, and turns whatever goes wrong into something that can be reported.

The result can be sent between processes.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from wirelint.errors import ModelFileError, NotAModelError, WirelintError
from wirelint.facts import FileFacts, ModelFacts
from wirelint.printable import printable
from wirelint.suppress import METADATA_KEY

__all__ = ["Inspected", "guess_format", "inspect"]


@dataclass(slots=True)
class Inspected:
    """What looking at a file gave.

    Attributes:
        path: the file, as given.
        format: ``onnx`` or ``openvino-ir``; guessed from the suffix when the file can't be read.
        facts: None when it could not be read or analysed.
        problems: why it could not be read.
        waivers: suppressions in the model's own metadata.
        seconds: time taken.
        fault: one line when wirelint itself failed.
        traceback: of that fault.
    """

    path: str
    format: str
    facts: ModelFacts | None = None
    problems: list[FileFacts] = field(default_factory=list)
    waivers: str = ""
    seconds: float = 0.0
    fault: str = ""
    traceback: str = ""


def guess_format(path: str) -> str:
    """The format that a file claims by its suffix, for those that can't be read."""
    return "openvino-ir" if path.lower().endswith(".xml") else "onnx"


def inspect(path: str, reference: ModelFacts | None = None) -> Inspected:
    """Reads and analyses one file; never raises for what is in it.

    Args:
        path: the file.
        reference: facts of the model that it was made from.
    """
    start = time.perf_counter()
    seen = Inspected(path, guess_format(path))
    try:
        _look(seen, reference)
    except ModelFileError as error:
        seen.problems = [FileFacts(path, seen.format, error.rule, printable(error.reason, 500), error.line)]
    except NotAModelError as error:
        reason = str(error).removeprefix(f"{Path(path)}: ").removeprefix(f"{path}: ")
        seen.problems = [FileFacts(path, seen.format, "unreadable", printable(reason, 500))]
    except OSError as error:
        seen.problems = [FileFacts(path, seen.format, "unreadable", f"can't be read: {error.strerror or error}")]
    except WirelintError as error:
        seen.fault = str(error)
    except Exception as error:  # noqa: BLE001 -- one model that wirelint stumbles over must not hide what it found in the others
        seen.fault = (
            f"internal fault ({printable(f'{type(error).__name__}: {error}', 200)}); please report it, with --debug's output"
        )
        seen.traceback = traceback.format_exc()
    seen.seconds = time.perf_counter() - start
    return seen


def _look(seen: Inspected, reference: ModelFacts | None) -> None:
    from wirelint.formats import load

    model = load(Path(seen.path))
    seen.format = model.format
    seen.waivers = model.metadata.get(METADATA_KEY, "")

    from wirelint.analysis import analyse

    seen.facts = analyse(model) if reference is None else analyse(model, reference=reference)
    seen.facts.path = seen.path
    for problem in seen.facts.problems:
        problem.path = seen.path
