"""Tiny models of the families that people export: ordinary ``transformers`` classes, random weights, fixed seed.

The weights are drawn wider than usual, so that what a fault lets through is far above rounding.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
import transformers as hf

__all__ = ["VOCAB", "bert", "bert_config", "build", "decoder", "detr", "encoder", "example"]

VOCAB = 100
_WIDE = 0.3
_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
_M = TypeVar("_M", bound=torch.nn.Module)


def build(kind: type[_M], config: Any, attention: str = "eager", **extra: Any) -> _M:
    """A seeded model in evaluation mode that returns tuples and keeps no cache unless the config says so."""
    torch.manual_seed(20)
    config.return_dict = False
    config._attn_implementation = attention  # noqa: SLF001  # the documented argument exists on from_pretrained alone
    return kind(config, **extra).eval()


def bert_config(**changes: Any) -> hf.BertConfig:
    """BERT of two layers, two heads, hidden size 16, a hundred words, 64 positions."""
    sizes = {"vocab_size": VOCAB, "max_position_embeddings": 64, "initializer_range": _WIDE, **_SIZES}
    return hf.BertConfig(**{**sizes, **changes})


def bert(kind: type[_M] = hf.BertModel, attention: str = "eager", **changes: Any) -> _M:
    """A BERT with the head that ``kind`` names."""
    return build(kind, bert_config(**changes), attention)


def encoder(family: str, attention: str = "eager") -> torch.nn.Module:
    """A headless encoder of another family."""
    sizes = {"vocab_size": VOCAB, "max_position_embeddings": 64, "initializer_range": _WIDE, **_SIZES}
    table = {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1}
    makers = {
        "roberta": lambda: (hf.RobertaModel, hf.RobertaConfig(**{**sizes, **table})),
        "mpnet": lambda: (hf.MPNetModel, hf.MPNetConfig(**{**sizes, "max_position_embeddings": 66, "pad_token_id": 1})),
        "deberta": lambda: (
            hf.DebertaV2Model,
            hf.DebertaV2Config(
                **{**sizes, "type_vocab_size": 0}, relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"]
            ),
        ),
        "distilbert": lambda: (
            hf.DistilBertModel,
            hf.DistilBertConfig(
                vocab_size=VOCAB,
                max_position_embeddings=64,
                dim=16,
                n_layers=2,
                n_heads=2,
                hidden_dim=32,
                initializer_range=_WIDE,
            ),
        ),
        "t5": lambda: (hf.T5EncoderModel, t5_config()),
        "fnet": lambda: (hf.FNetModel, hf.FNetConfig(**{k: v for k, v in sizes.items() if k != "num_attention_heads"})),
        "clip_text": lambda: (
            hf.CLIPTextModel,
            hf.CLIPTextConfig(**{**sizes, "max_position_embeddings": 64}, bos_token_id=98, eos_token_id=99, projection_dim=16),
        ),
        "vit": lambda: (hf.ViTModel, hf.ViTConfig(**_SIZES, image_size=16, patch_size=4, initializer_range=_WIDE)),
    }
    kind, config = makers[family]()
    return build(kind, config, attention)


def t5_config(**changes: Any) -> hf.T5Config:
    """T5 of two layers with its relative position bias."""
    sizes = {"vocab_size": VOCAB, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    return hf.T5Config(**{**sizes, "relative_attention_num_buckets": 8, **changes})


def decoder(family: str, attention: str = "eager", *, cache: bool = False) -> torch.nn.Module:
    """A decoder with its language-model head: ``gpt2`` or ``llama``."""
    if family == "gpt2":
        config = hf.GPT2Config(
            vocab_size=VOCAB, n_positions=64, n_embd=16, n_layer=2, n_head=2, initializer_range=_WIDE, use_cache=cache
        )
        return build(hf.GPT2LMHeadModel, config, attention)
    sizes = {"vocab_size": VOCAB, "max_position_embeddings": 64, "initializer_range": _WIDE, **_SIZES}
    config = hf.LlamaConfig(**sizes, num_key_value_heads=1, use_cache=cache)
    model = build(hf.LlamaForCausalLM, config, attention)
    config.return_dict = True  # its head reads its body's output by name
    return model


def detr() -> hf.DetrModel:
    """DETR: a small ResNet, then an encoder and a decoder with four queries."""
    backbone = hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    sizes = {f"{part}_{size}": count for part in ("encoder", "decoder") for size, count in _DETR.items()}
    config = hf.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        d_model=16,
        num_queries=4,
        **sizes,
    )
    return build(hf.DetrModel, config)


_DETR = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}


def example(*names: str, batch: int = 2, length: int = 7) -> dict[str, torch.Tensor]:
    """Traced arguments: ids, ones for a mask (with a padded tail), zeros for segments, a range for positions."""
    ids = torch.arange(5, 5 + batch * length).reshape(batch, length) % 90 + 5
    mask = torch.ones_like(ids)
    mask[-1, length - 2 :] = 0
    positions = torch.arange(length).expand(batch, length)
    made = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids), "position_ids": positions}
    return {name: made[name] for name in names}
