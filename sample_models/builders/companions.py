"""What lies beside a model in a real repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["config", "image_processor", "sentence_transformers", "tokenizer", "triton"]


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def tokenizer(
    folder: Path, kind: str, names: Sequence[str], *, longest: int = 64, side: str = "right", pad: str = "[PAD]"
) -> None:
    """``tokenizer_config.json``."""
    _write(
        folder / "tokenizer_config.json",
        {
            "model_input_names": list(names),
            "model_max_length": longest,
            "pad_token": pad,
            "padding_side": side,
            "tokenizer_class": kind,
        },
    )


def config(folder: Path, made: Any, architecture: str) -> None:
    """``config.json``, the keys that describe the model's inputs."""
    kept = (
        "hidden_size",
        "max_position_embeddings",
        "model_type",
        "num_attention_heads",
        "num_hidden_layers",
        "pad_token_id",
        "type_vocab_size",
        "vocab_size",
    )
    facts = {key: value for key, value in made.to_dict().items() if key in kept}
    _write(folder / "config.json", {"architectures": [architecture], "model_type": made.model_type, **facts})


def image_processor(folder: Path, kind: str, *, pads: bool) -> None:
    """``preprocessor_config.json`` of an image processor."""
    _write(folder / "preprocessor_config.json", {"do_pad": pads, "do_resize": True, "image_processor_type": kind})


def sentence_transformers(folder: Path, *, size: int, mode: str) -> None:
    """``modules.json`` and ``1_Pooling/config.json``; ``mode`` is ``cls_token``, ``mean_tokens``, ``lasttoken`` and so on."""
    _write(
        folder / "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
    )
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    chosen = {f"pooling_mode_{name}": name == mode for name in modes}
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, **chosen})


def triton(folder: Path, name: str, inputs: Sequence[str], output: tuple[str, int]) -> None:
    """``config.pbtxt`` of a text classifier that batches dynamically."""
    ports = ",\n".join(f'  {{\n    name: "{port}"\n    data_type: TYPE_INT64\n    dims: [ -1 ]\n  }}' for port in inputs)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(
        f'name: "{name}"\nbackend: "onnxruntime"\nmax_batch_size: 16\ninput [\n{ports}\n]\n'
        f'output [\n  {{\n    name: "{output[0]}"\n    data_type: TYPE_FP32\n    dims: [ {output[1]} ]\n  }}\n]\n'
        "dynamic_batching { }\n"
    )
