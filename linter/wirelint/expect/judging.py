"""Contradictions between the companions and the graph, one sentence each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wirelint.expect.families import EMITS_PIXEL_MASK
from wirelint.expect.serving import genai_mismatches, triton_mismatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.expect.companions import Companions
    from wirelint.facts import EmbeddingFacts, InputFacts, ModelFacts, OutputFacts

__all__ = ["contradictions"]

_READS_TOKENIZER = "tokenizer-mismatch"
_READS_POOLING = "pooling-mismatch"
_READS_SERVING = "serving-config-mismatch"
_DROPPED = "dropped-input"

_MADE_AS = {"mask": "attention_mask", "segment": "token_type_ids", "position": "position_ids"}
"""The name under which a tokenizer makes what a role needs."""
_MEND = {
    "mask": "let the tokenizer make it, or export without it if the model hears padding by design",
    "segment": "feed zeros of the ids' shape for single texts, or export without it",
    "position": "feed 0, 1, 2, ... counted over real tokens, or export so that the graph counts them itself",
}

_AVERAGE, _FIRST, _LAST, _MAX = "averages the tokens", "reads the first token", "reads the last token", "takes a maximum"
_BY_MODE = {
    "mean": _AVERAGE, "mean_sqrt_len": _AVERAGE, "weightedmean": _AVERAGE, "cls": _FIRST, "lasttoken": _LAST, "max": _MAX,
}  # fmt: skip
_BY_KIND = {
    "mean": _AVERAGE,
    "sum": _AVERAGE,
    "weighted": _AVERAGE,
    "first": _FIRST,
    "last": _LAST,
    "counted": _LAST,
    "max": _MAX,
}
_EMBEDDING_NAME = "sentence_embedding"
"""What sentence-transformers calls the pooled output beside ``token_embeddings``."""


def contradictions(found: Companions, facts: ModelFacts) -> dict[str, tuple[str, ...]]:
    """Sentences by rule id; empty when everything agrees."""
    sentences: defaultdict[str, list[str]] = defaultdict(list)
    for shown, reason in found.faults:
        sentences[_rule_of(shown)].append(
            f"{shown} can't be read ({reason}), so what it says is not checked; repair or remove it"
        )
    sentences[_READS_TOKENIZER] += [
        *_never_made(found, facts),
        *_other_padding_id(found, facts),
        *_other_vocabulary(found, facts),
    ]
    sentences[_DROPPED] += _dropped_pixel_mask(found, facts)
    sentences[_READS_POOLING] += _other_pooling(found, facts)
    if found.triton is not None:
        sentences[_READS_SERVING] += triton_mismatches(found.triton, facts)
    if found.genai is not None:
        sentences[_READS_SERVING] += genai_mismatches(found.genai, facts)
    return {rule: tuple(said) for rule, said in sentences.items() if said}


def _rule_of(shown: str) -> str:
    name = shown.rsplit("/", 1)[-1]
    if name in ("config.pbtxt", "genai_config.json"):
        return _READS_SERVING
    pooling = name == "modules.json" or (name == "config.json" and shown.removeprefix("../") != name)
    return _READS_POOLING if pooling else _READS_TOKENIZER


# -- the tokenizer ---------------------------------------------------------------------------------------------------------


def _never_made(found: Companions, facts: ModelFacts) -> Iterator[str]:
    """Inputs that the graph requires and the tokenizer does not make."""
    names = found.names
    roles = facts.roles()
    if not names or "ids" not in roles or roles & {"past", "encoder_states", "cache_position"}:
        return
    for entry in facts.inputs:
        made_as = _MADE_AS.get(entry.role)
        # An input that does nothing is kept for a signature that several models share; its callers feed it on purpose.
        if made_as is None or made_as in names or entry.has_default or entry.weight or not entry.used:
            continue
        if entry.role == "position" and _positions_come_from_elsewhere(found, facts):
            continue
        yield (
            f"the graph requires {entry.shown} ({_purpose(entry, facts)}), but {found.names_said_by} makes "
            f"{_listed(names)} only; {_MEND[entry.role]}"
        )


def _positions_come_from_elsewhere(found: Companions, facts: ModelFacts) -> bool:
    """A generation loop or a processor makes them: nothing is owed by the tokenizer."""
    if found.embedder is not None:
        return False
    if found.genai is not None or found.processor is not None:
        return True
    return found.config.generates if found.config is not None else facts.decoder_only


def _purpose(entry: InputFacts, facts: ModelFacts) -> str:
    table = next((table for table in facts.embeddings if table.index_input == entry.index and table.kind == entry.role), None)
    if table is not None:
        return f"index of a {entry.role} table of {table.rows} row{'s' if table.rows != 1 else ''}"
    return {"mask": "the padding mask", "segment": "the segments", "position": "the positions"}[entry.role]


def _other_padding_id(found: Companions, facts: ModelFacts) -> Iterator[str]:
    """The graph finds padding by an id which is not the one that the tokenizer pads with."""
    inside, outside = facts.mask.pad_id, facts.expect.pad_id
    if not facts.mask.from_ids or inside is None or outside is None or inside == outside:
        return
    config, tokenizer = found.config, found.tokenizer
    if config is not None and config.pad_id == outside:
        said_by = f"{config.shown} (pad_token_id)"
    else:
        said_by = f"{tokenizer.shown} (pad_token)" if tokenizer is not None else ""
    yield (
        f"the graph masks where the id is {inside}, but {said_by} pads with {outside}, so that padding is heard; "
        "export with the tokenizer's padding id"
    )


def _other_vocabulary(found: Companions, facts: ModelFacts) -> Iterator[str]:
    """The only token table has fewer rows than there are tokens: ids past its end are out of range."""
    tables: list[EmbeddingFacts] = [table for table in facts.embeddings if table.kind == "token"]
    if len(tables) != 1 or found.config is None or found.config.vocab_size is None:
        return
    rows, wanted = tables[0].rows, found.config.vocab_size
    if rows < wanted:
        yield (
            f"{found.config.shown} says a vocabulary of {wanted} tokens, but the graph's token table has {rows} rows; "
            "put the files of one model together"
        )


# -- the processor ---------------------------------------------------------------------------------------------------------


def _dropped_pixel_mask(found: Companions, facts: ModelFacts) -> Iterator[str]:
    """Images of different sizes are padded to one, and the graph, which takes any size, can't know which pixels are real."""
    if found.config is None or found.processor is None or not found.processor.pads:
        return
    takes_any_size = any(entry.role == "pixels" and not _fixed(entry) for entry in facts.inputs)
    if found.config.model_type in EMITS_PIXEL_MASK and takes_any_size and "pixel_mask" not in facts.roles():
        yield (
            f"{found.processor.shown} (do_pad) pads images and makes pixel_mask, which no input takes; export with "
            "pixel_mask, or batch images of one size only"
        )


def _fixed(entry: InputFacts) -> bool:
    return entry.shape is not None and all(isinstance(dim, int) for dim in entry.shape[1:])


# -- pooling ---------------------------------------------------------------------------------------------------------------


def _other_pooling(found: Companions, facts: ModelFacts) -> Iterator[str]:
    """Outputs that are pooled inside the graph in another way than the pooling config says."""
    if found.embedder is None:
        return
    wanted = {_BY_MODE.get(mode) for mode in found.embedder.pooling.split("+")}
    if None in wanted:
        return
    for output in _embeddings(facts):
        kinds = {_BY_KIND.get(entry.kind) for entry in facts.reductions if output.name in entry.outputs}
        if kinds and None not in kinds and not kinds & wanted:
            done = " and ".join(sorted(str(kind) for kind in kinds))
            yield (
                f"{found.embedder.shown} says {found.embedder.pooling} pooling, but output '{output.name}' {done}; "
                "export with the pooling that it says"
            )


def _embeddings(facts: ModelFacts) -> list[OutputFacts]:
    """The pooled outputs that stand for a text.

    Where the hidden states are an output too, pooling is done outside, and a pooled output beside them is not used unless
    its name says so.
    """
    pooled = [output for output in facts.outputs if output.pooled and not output.constant]
    if any(not output.pooled for output in facts.outputs):
        return [output for output in pooled if output.name == _EMBEDDING_NAME]
    return pooled


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
