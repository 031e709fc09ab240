"""The list of samples: what each one is, what must be found in it, and the function that builds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SAMPLES", "Feeds", "Sample", "sample"]


@dataclass(frozen=True)
class Feeds:
    """What a run of the sample needs to know beyond the names, dtypes and shapes that the file declares.

    Attributes:
        vocab: ids are drawn below this.
        pad_id: what a tokenizer writes in padded positions.
        end_id: what it writes at the last real position, where the model looks for it.
        rows: rows of a batch, where the file does not fix them.
        length: positions per row, where it does not fix them.
        past: cached positions; also what any other open axis is, such as the height of an image.
        mask_from_ids: the model itself takes positions that hold the pad id for padding, so that nothing else can stand there.
        mask_keeps: the mask's value at real positions; 0 for a ``key_padding_mask``.
        frames: output positions for a number of input samples, where the model downsamples.
        sides: padding sides that make sense for the model.
    """

    vocab: int = 100
    pad_id: int = 0
    end_id: int | None = None
    rows: int = 3
    length: int = 10
    past: int = 2
    mask_from_ids: bool = False
    mask_keeps: int = 1
    frames: Callable[[int], int] | None = None
    sides: tuple[str, ...] = ("right", "left")


@dataclass(frozen=True)
class Sample:
    """One committed model.

    Attributes:
        path: relative to ``sample_models/``.
        what: one sentence.
        exporter: what wrote the file.
        inputs: name of each input and its role, in the file's order; empty for a file that cannot be read.
        must: rules that have to report it; empty for a clean model.
        may: rules that may, because the same cause or a measured fact allows them.
        feeds: how to run it, or None where it cannot be run.
        reference: the sample that it was made from, where what was lost on the way is the fault.
        build: writes the model, and what lies beside it, to the path given.
    """

    path: str
    what: str
    exporter: str
    inputs: dict[str, str]
    build: Callable[[Path], None]
    must: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    feeds: Feeds | None = field(default_factory=Feeds)
    reference: str | None = None


SAMPLES: dict[str, Sample] = {}


def sample(
    path: str,
    what: str,
    exporter: str,
    inputs: dict[str, str],
    *,
    must: tuple[str, ...] = (),
    may: tuple[str, ...] = (),
    feeds: Feeds | None = Feeds(),  # frozen
    reference: str | None = None,
) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register the decorated function as the builder of ``path``."""

    def register(build: Callable[[Path], None]) -> Callable[[Path], None]:
        if path in SAMPLES:
            raise ValueError(f"{path} is registered twice")
        SAMPLES[path] = Sample(path, what, exporter, inputs, build, must, may, feeds, reference)
        return build

    return register
