"""Facts as text and as JSON."""

from __future__ import annotations

import json
import math

from wirelint.facts import AttentionFacts, EmbeddingFacts, Evidence, InputFacts, ModelFacts, Place, ReductionFacts, SiteFacts
from wirelint.report.facts import json_document, text_pages

FACTS = ModelFacts(
    "m.onnx",
    "onnx",
    producer="pytorch",
    producer_version="2.13",
    opsets={"": 17},
    inputs=[
        InputFacts(
            0,
            "ids\x1b[0m",
            (),
            "",
            "i64",
            ("batch", None),
            role="ids",
            confidence=1.0,
            evidence=(Evidence("indexes a table of 99 rows", Place("g", "Gather"), "ids"),),
        )
    ],
    attention=AttentionFacts(
        total=2, maskable=2, effective=1, absent=1, sites=[SiteFacts(Place("s", "Softmax"), fill=-math.inf)]
    ),
    embeddings=[EmbeddingFacts(Place("g", "Gather"), "t", 2, 8, kind="segment", index_from="constant", constant_index=0)],
    reductions=[ReductionFacts(Place("r", "ReduceMean"), "mean")],
)


def test_json_holds_every_fact_and_is_json() -> None:
    text = json_document([FACTS, FACTS])
    document = json.loads(text, parse_constant=refuse)
    assert len(document["models"]) == 2
    assert document["models"][0]["attention"]["sites"][0]["fill"] == "-inf"
    assert document["models"][0]["inputs"][0]["evidence"][0]["place"]["op_type"] == "Gather"


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_text_says_what_people_ask_for() -> None:
    text = text_pages([FACTS])
    for line in (
        "m.onnx  ONNX opset 17, 1 input, 2 attention sites",
        "written by pytorch 2.13, computes in fp32",
        "0  ids\\x1b[0m  i64[batch, ?]: ids (100%)",
        "ids: indexes a table of 99 rows",
        "2 attention sites, 0 causal; padding mask: 1 effective, 1 absent",
        "segment table of 2 rows, indexed by constant 0",
        "mean over positions at ReduceMean 'r', not masked",
    ):
        assert line in text
