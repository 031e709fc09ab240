"""``expected.yaml``: what each sample is, what must be found in it, and what running it showed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from builders.registry import SAMPLES, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["read", "write"]

_HEAD = """\
# What each sample model is and what must be found in it.  Written by build.py; edit the builders, not this file.
#
# must   rules that have to report the model; none for a clean one        may   rules that may report it too
# reference  the sample that it was made from, to which it is held: `wirelint check --reference`
# truth  what running it showed, on three rows of different lengths, padded right and left:
#   pad_content_matters     does an output, at real positions if it has positions, change with what stands in padded ones?
#   largest_change          by how much, relative to the output's scale, one significant digit
#   only_as_pad_id          it changed only when a pad id became another id, not between two other ids
#   same_as_alone           does a padded row give what it gives without padding? (null: it does not run so)
#   mask_matters, finite, finite_when_all_masked, batch_independent, runs_at_other_batch, runs_at_other_length: as they say
#   static                  batch and sequence length where the file fixes them
"""


def read(path: Path) -> dict[str, Any]:
    """The truths of an earlier build by model path; empty when there is none."""
    if not path.exists():
        return {}
    return {entry["path"]: entry["truth"] for entry in yaml.safe_load(path.read_text())["models"]}


def write(path: Path, truths: dict[str, Any]) -> None:
    """All samples that have been built, in the registry's order."""
    entries = [_entry(sample, truths[sample.path]) for sample in SAMPLES.values() if sample.path in truths]
    path.write_text(_HEAD + yaml.safe_dump({"models": entries}, sort_keys=False, width=120, allow_unicode=True))


def _entry(sample: Sample, truth: Any) -> dict[str, Any]:
    return {
        "path": sample.path,
        "what": sample.what,
        "exporter": sample.exporter,
        **({"reference": sample.reference} if sample.reference else {}),
        "inputs": dict(sample.inputs),
        "must": list(sample.must),
        "may": sorted({*sample.may, *_allowed(truth)} - set(sample.must)),
        "truth": truth,
    }


def _allowed(truth: Any) -> Iterator[str]:
    """What a measurement makes true of a model that nobody broke: a note about it is no false alarm."""
    if not truth:
        return
    if (
        any(truth.get("pad_content_matters", {}).get("left", {}).values())
        or truth.get("same_as_alone", {}).get("left") is False
    ):
        yield "left-padding-unsafe"
    if truth.get("finite_when_all_masked") is False:
        yield "all-masked-row"
