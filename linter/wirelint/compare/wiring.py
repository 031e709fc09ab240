"""What became of a reference's attention masks and lookups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.compare.difference import ERROR, NOTE, REFERENCE, WARNING, Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.facts import EmbeddingFacts, ModelFacts, SiteFacts

__all__ = ["wiring_differences"]

_COUNTED = ("ids", "mask", "input")
_WITHOUT = {
    "absent": "absent", "constant": "the same for all inputs", "inverted": "inverted", "noop": "without effect",
    "weak": "too weak", "query-axis": "on the axis of queries", "not-finite": "not finite",
}  # fmt: skip
"""What a mask that does not act is, in words."""


def wiring_differences(reference: ModelFacts, model: ModelFacts, source: str = REFERENCE) -> Iterator[Difference]:
    """Masks that no longer act, and tables that are read at other indices."""
    yield from _masks(reference, model, source)
    yield from _segments(reference, model, source)
    yield from _positions(reference, model, source)
    yield from _sizes(reference, model, source)
    if reference.precision != model.precision:
        sentence = f"it computes in {model.precision} here and in {reference.precision} in {source}"
        yield Difference("precision-changed", NOTE, sentence)


def _masks(reference: ModelFacts, model: ModelFacts, source: str) -> Iterator[Difference]:
    """Attention sites whose padding mask is gone.

    Sites are paired in order where there are as many as before; an optimiser that merged or doubled them leaves the shares
    to compare.
    """
    before = [site for site in reference.attention.sites if site.needs_mask]
    after = [site for site in model.attention.sites if site.needs_mask]
    if len(before) == len(after):
        lost = [new for old, new in zip(before, after, strict=True) if _masks_less(old, new)]
    else:
        all_masked = before and all(site.mask == "effective" for site in before)
        lost = [site for site in after if site.mask not in ("effective", "unknown")] if all_masked else []
    if lost:
        kinds = ", ".join(sorted({_WITHOUT[site.mask] for site in lost}))
        named = ", ".join(f"'{site.place.name}'" for site in lost[:3] if site.place.name)
        shown = f" ({named}{', ...' if len(lost) > 3 else ''})" if named else ""
        yield Difference(
            "mask-lost",
            ERROR,
            f"the padding mask is {kinds} at {len(lost)} of {len(after)} attention sites{shown}, and acts in {source}",
        )


def _masks_less(old: SiteFacts, new: SiteFacts) -> bool:
    return old.mask == "effective" and new.mask not in ("effective", "unknown")


def _tables(model: ModelFacts, kind: str) -> list[EmbeddingFacts]:
    return [table for table in model.embeddings if table.kind == kind]


def _segments(reference: ModelFacts, model: ModelFacts, source: str) -> Iterator[Difference]:
    fed = [table for table in _tables(reference, "segment") if table.index_from == "input"]
    folded = [table for table in _tables(model, "segment") if table.constant_index is not None]
    if fed and folded and "segment" in model.roles():
        sentence = f"the segment table is always read at row {folded[0].constant_index} here and by an input in {source}"
        yield Difference("segments-folded", ERROR, f"{sentence}; convert again without constant folding")


def _positions(reference: ModelFacts, model: ModelFacts, source: str) -> Iterator[Difference]:
    before, after = _tables(reference, "position"), _tables(model, "position")
    if not before or not after:
        return
    if before[0].index_from in _COUNTED and after[0].index_from == "range" and "position" not in reference.roles():
        sentence = (
            f"positions are 0, 1, 2, ... whatever the padding is, and are counted from the {before[0].index_from} in {source}"
        )
        yield Difference("positions-changed", ERROR, sentence)
    shortest, was = min(table.rows for table in after), min(table.rows for table in before)
    if shortest < was:
        sentence = f"the position table has {shortest} rows here and {was} in {source}: longer texts fail"
        yield Difference("table-shortened", WARNING, sentence)


def _sizes(reference: ModelFacts, model: ModelFacts, source: str) -> Iterator[Difference]:
    """Lengths and batch sizes that the declared shapes allow, and at which only the reference runs."""
    length, batch = model.sequence.failed_length, model.batch.failed
    if length is not None and reference.sequence.failed_length is None:
        sentence = f"a length of {length} fails at {model.sequence.failed_at} here and runs in {source}"
        yield Difference("length-lost", ERROR, sentence)
    if batch is not None and reference.batch.failed is None:
        sentence = f"a batch of {batch} fails at {model.batch.failed_at} here and runs in {source}"
        yield Difference("batch-lost", ERROR, sentence)
