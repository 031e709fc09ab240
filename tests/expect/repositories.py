"""Models as facts, and companions as files beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wirelint.expect import gather, judge
from wirelint.facts import EmbeddingFacts, InputFacts, ModelFacts, OutputFacts, Place, ReductionFacts

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {"ids": "input_ids", "mask": "attention_mask", "segment": "token_type_ids", "position": "position_ids"}


class Repository:
    """A folder with a model in it; companions are written beside the model or anywhere else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = root / "model.onnx"
        self.facts = ModelFacts(str(self.model), "onnx")

    def at(self, path: str) -> Repository:
        self.model = self.root / path
        self.model.parent.mkdir(parents=True, exist_ok=True)
        self.facts.path = str(self.model)
        return self

    def write(self, path: str, content: Any) -> Repository:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(content if isinstance(content, str) else json.dumps(content))
        return self

    def takes(self, *roles: str, **changes: Any) -> Repository:
        """Inputs of these roles, ``[batch, sequence]`` of i64 under their usual names unless told otherwise."""
        for index, role in enumerate(roles):
            name = NAMES.get(role, role)
            made = InputFacts(index, name, (name,), "", "i64", ("batch", "sequence"), role=role, confidence=0.95)
            for key, value in changes.items():
                setattr(made, key, value)
            self.facts.inputs.append(made)
        return self

    def looks_up(self, kind: str, rows: int, *, at: int | None = None) -> Repository:
        source = "input" if at is not None else "constant"
        self.facts.embeddings.append(EmbeddingFacts(Place(), kind, rows, 16, kind, source, at))
        return self

    def gives(self, name: str, *, shape: tuple[int | str | None, ...] = ("batch", 16), axis: int | None = None) -> Repository:
        self.facts.outputs.append(OutputFacts(len(self.facts.outputs), name, "f32", shape, sequence_axis=axis))
        return self

    def pools(self, kind: str, *outputs: str) -> Repository:
        self.facts.reductions.append(ReductionFacts(Place(), kind, outputs=outputs))
        return self

    def judged(self) -> dict[str, tuple[str, ...]]:
        self.facts.expect = gather(self.model)
        return judge(self.facts)
