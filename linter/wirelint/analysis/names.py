"""What input names conventionally mean.  Names never decide a role; they are compared with it.

Sources: the ``model_input_names`` of the tokenizers and processors in transformers, the argument names of the ``forward``
methods there and in torch.nn, the original TensorFlow BERT (``input_mask``, ``segment_ids``), ONNX Runtime's samples and
sentence-transformers.
"""

from __future__ import annotations

import functools
import re

from wirelint.graph import Value

__all__ = ["best_name", "conflicts", "kind_of_name", "plain_fit", "polarity_of_name", "role_of_name", "usual_names"]

_ROLES: dict[str, str] = {
    "ids": """
        input_ids ids tokens token_ids input_tokens src_tokens src text text_ids word_ids words input_word_ids
        inputs_ids encoder_input_ids indices char_ids query_ids passage_ids query_input_ids source_ids input_id
    """,
    "decoder_ids": "decoder_input_ids decoder_ids tgt tgt_tokens prev_output_tokens target_ids labels",
    "mask": """
        attention_mask mask input_mask attn_mask padding_mask key_padding_mask src_key_padding_mask
        encoder_attention_mask src_mask masks input_masks src_padding_mask pad_mask token_mask text_mask
        encoder_padding_mask att_mask memory_key_padding_mask encoder_mask query_mask passage_mask attention_masks
        encoder_outputs_mask src_key_padding key_padding input_padding_mask text_attention_mask
    """,
    "decoder_mask": "decoder_attention_mask decoder_mask tgt_mask tgt_key_padding_mask",
    "segment": """
        token_type_ids segment_ids segments segment token_types type_ids input_type_ids token_type_id segment_id
    """,
    "position": "position_ids positions pos_ids position input_positions position_id pos",
    "encoder_states": """
        encoder_hidden_states encoder_outputs encoder_output memory last_hidden_state encoder_states
    """,
    "cache_position": "cache_position cache_positions",
    "pixels": "pixel_values image images img pixels",
    "pixel_mask": "pixel_mask image_mask",
    "features": "input_values input_features features waveform mel audio speech inputs_embeds audio_signal",
    "lengths": """
        lengths length seq_lengths sequence_lengths sequence_lens input_lengths seqlens offsets cu_seqlens seq_lens
        lens
    """,
    "bbox": "bbox boxes",
}
_BY_NAME = {name: role for role, names in _ROLES.items() for name in names.split()}

_USUAL = {
    "ids": "input_ids",
    "decoder_ids": "decoder_input_ids",
    "mask": "attention_mask",
    "decoder_mask": "decoder_attention_mask",
    "segment": "token_type_ids",
    "position": "position_ids",
    "encoder_states": "encoder_hidden_states",
    "cache_position": "cache_position",
    "pixels": "pixel_values",
    "pixel_mask": "pixel_mask",
    "features": "input_values",
    "lengths": "lengths",
    "bbox": "bbox",
}

# Names that the TensorFlow tooling gave for years: odd, but known to every caller of such models.
_HISTORICAL = re.compile(
    r"^(Placeholder(_\d+)?|IteratorGetNext|input_(ids|mask)_\d+|segment_ids_\d+|unique_ids_raw_output___\d+)$"
)

# What exporters invent: `onnx::Unsqueeze_1`, `input.3`, `args_0`, `arg0_1`, `Parameter_12`, `x.1`, `17`, `tensor_3`.
_GENERATED = re.compile(
    r"^(onnx::\w+|\d+|[A-Za-z]\w*\.\d+|(input|args?|x|inp|inputs|tensor|data|value|Parameter|Placeholder|val|var|node|graph_input|t|i)[._]?\d+(_\d+)?)$"
)

# Words that say nothing about which of several inputs this is.
_VAGUE = re.compile(r"^(inputs?|x|y|z|data|tensor|args?|inp|value|in|[a-z])$")


def _plain(name: str) -> str:
    """A name without decoration: TensorFlow's ``:0`` and serving prefix, scopes, case and hyphens."""
    bare = re.sub(r":\d+$", "", name)
    bare = re.sub(r"^serving_default_", "", bare).rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    return bare.replace("-", "_").lower()


@functools.lru_cache(maxsize=256)
def role_of_name(name: str) -> str:
    """The role that a name conventionally stands for, or an empty string."""
    plain = _plain(name)
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    if plain.startswith(("past_key_values", "past_key", "past_value", "past.", "past_")) or name.startswith(
        ("past_key_values", "past.")
    ):
        return "past"
    # A prefix that tells several sequences apart: `query_attention_mask`, `text_input_ids`.  `write_indices` are no ids.
    for known, role in _BY_NAME.items():
        if len(known) > 6 and known != "indices" and plain.endswith("_" + known):
            return role
    return ""


_COMPATIBLE = (
    {"ids", "decoder_ids"},
    {"mask", "decoder_mask", "pixel_mask"},
    {"features", "encoder_states", "pixels", "past", "other"},
    {"position", "cache_position", "lengths", "other"},
)


def conflicts(name: str, role: str) -> bool:
    """The name conventionally stands for another role; roles that are named alike do not conflict."""
    says = role_of_name(name)
    return bool(says) and role not in (says, "other") and not any({says, role} <= group for group in _COMPATIBLE)


def kind_of_name(name: str) -> str:
    """``conventional``, ``plain``, ``vague``, ``generated`` or ``none``."""
    if not name:
        return "none"
    if role_of_name(name) or _HISTORICAL.match(name):
        return "conventional"
    if _GENERATED.match(name):
        return "generated"
    return "vague" if _VAGUE.match(_plain(name)) else "plain"


_WORTH = ("conventional", "plain", "vague", "generated", "none")


def best_name(value: Value) -> str:
    """The name by which callers know an input: of several tensor names on one port the conventional one, if there is one."""
    return min(value.names, key=lambda name: _WORTH.index(kind_of_name(name)), default=value.name)


def polarity_of_name(name: str) -> str:
    """``keep0`` for the names of masks that are true where padding is (torch's ``*_padding_mask``), ``keep1`` for those
    that are one where tokens are, and an empty string for names that promise neither.

    XLNet's ``input_mask`` is 1 for padding, BERT's is 1 for tokens: that name promises nothing.
    """
    plain = _plain(name)
    if re.search(r"padding_mask$|pad_mask$|key_padding$", plain):
        return "keep0"
    if re.search(r"(attention_mask|attn_mask|att_mask)s?$", plain):
        return "keep1"
    return ""


def plain_fit(name: str, role: str) -> bool:
    """A plain name says something about the role: ``sentence_ids`` for ids, ``valid_mask`` for a mask."""
    words = set(re.split(r"[^a-z]+|(?<=[a-z])(?=[A-Z])", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())) - {""}
    hints = {
        "ids": {
            "id",
            "ids",
            "token",
            "tokens",
            "text",
            "word",
            "words",
            "sentence",
            "sent",
            "query",
            "question",
            "document",
            "doc",
            "source",
            "src",
            "chars",
        },
        "decoder_ids": {"id", "ids", "token", "tokens", "target", "tgt", "decoder", "prev", "labels"},
        "mask": {"mask", "masks", "padding", "pad", "valid"},
        "decoder_mask": {"mask", "masks", "padding", "pad", "valid"},
        "pixel_mask": {"mask", "masks"},
        "segment": {"segment", "segments", "type", "types", "seg"},
        "position": {"position", "positions", "pos"},
        "encoder_states": {"encoder", "memory", "hidden", "states", "context", "embeds"},
        "past": {"past", "cache", "key", "value", "kv", "state", "mem", "mems", "k", "v"},
        "lengths": {"length", "lengths", "len", "lens", "size", "sizes", "offsets", "count", "seqlens", "k"},
    }
    return role not in hints or bool(words & hints[role])


def usual_names(role: str) -> str:
    """What callers usually call an input of this role, or an empty string."""
    return _USUAL.get(role, "")
