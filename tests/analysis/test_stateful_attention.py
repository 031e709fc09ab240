"""Causal attention with a mask of truth values in OpenVINO: with keys in a state of the model, and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset15 as op

from wirelint import check, facts

HEADS, SIZE, ROWS = 2, 16, 50
RANDOM = np.random.default_rng(5)


def weights(*shape: int) -> ov.Node:
    return op.constant(RANDOM.normal(size=shape).astype(np.float32))


def heads(hidden: ov.Node) -> ov.Node:
    apart = op.reshape(hidden, op.constant([0, 0, HEADS, SIZE]), True)
    return op.transpose(apart, op.constant([0, 2, 1, 3]))


def kept(new: ov.Node, ids: ov.Node, beams: ov.Node, name: str) -> tuple[ov.Node, ov.Node]:
    """New keys behind those of a variable, whose rows follow the beams; and what writes them back."""
    batch = op.gather(op.shape_of(ids), op.constant([0]), op.constant(0))
    empty = op.concat([batch, op.constant([HEADS]), op.constant([0]), op.constant([SIZE])], 0)
    shape, kind = ov.PartialShape([-1, HEADS, -1, SIZE]), ov.Type.f32
    past = op.read_value(op.broadcast(op.constant(np.float32(0)), empty), name, kind, shape)
    joined = op.concat([op.gather(past, beams, op.constant(0)), new], 2)
    return joined, op.assign(joined, name)


def keeps(ids: ov.Node, mask: ov.Node) -> ov.Node:
    """[batch, 1, queries, keys]: no key after the query, none that is padding."""
    one = op.constant(1)
    steps = op.range(op.constant(0), op.gather(op.shape_of(ids), one, op.constant(0)), one, "i64")
    causal = op.less_equal(op.unsqueeze(steps, op.constant(0)), op.unsqueeze(steps, one))
    real = op.unsqueeze(op.convert(mask, "boolean"), op.constant([1, 2]))
    return op.logical_and(causal, real)


def decoder(path: Path, *, stateful: bool) -> Path:
    """Two layers over embedded ids."""
    ids, mask = op.parameter([-1, -1], np.int64, name="input_ids"), op.parameter([-1, -1], np.int64, name="attention_mask")
    beams = op.parameter([-1], np.int32, name="beam_idx")
    for value in (ids, mask, beams):
        value.output(0).set_names({value.get_friendly_name()})
    hidden, sinks = op.gather(weights(ROWS, HEADS * SIZE), ids, op.constant(0)), []
    seen = keeps(ids, mask)
    for layer in range(2):
        query, key, value = (heads(op.matmul(hidden, weights(HEADS * SIZE, HEADS * SIZE), False, False)) for _ in range(3))
        if stateful:
            (key, first), (value, second) = (kept(new, ids, beams, f"{layer}{at}") for at, new in enumerate((key, value)))
            sinks += [first, second]
        heard = op.transpose(op.scaled_dot_product_attention(query, key, value, seen), op.constant([0, 2, 1, 3]))
        hidden = op.add(hidden, op.reshape(heard, op.constant([0, 0, HEADS * SIZE]), True))
    result = op.result(hidden)
    result.input_value(0).set_names({"hidden"})
    model = ov.Model([result], sinks, [ids, mask, beams] if stateful else [ids, mask], "decoder")
    ov.save_model(model, str(path), compress_to_fp16=False)
    return path


def is_finite(path: Path) -> bool:
    """At real positions of a left-padded prompt."""
    real = np.arange(6)[None] >= np.array([[0], [3]])
    feed = {"input_ids": RANDOM.integers(1, ROWS, (2, 6)), "attention_mask": real.astype(np.int64)}
    request = ov.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    if len(request.model_inputs) > 2:
        feed["beam_idx"] = np.arange(2, dtype=np.int32)
    return bool(np.isfinite(request.infer(feed)[0][real]).all())


@pytest.mark.parametrize("stateful", [True, False])
def test_a_left_padded_prompt_makes_nan_only_where_no_state_keeps_the_keys(tmp_path, stateful):
    path = decoder(tmp_path / "model.xml", stateful=stateful)
    loud = {finding.rule for _, finding in check(path, config=False).findings() if finding.severity != "note"}
    assert is_finite(path) is stateful
    assert ("mask-not-finite" not in loud) is stateful


def test_encoder_states_that_a_variable_is_first_given_are_still_encoder_states(tmp_path):
    """optimum-intel's stateful translators keep what the encoder made in a variable from the first step on."""
    ids, states = op.parameter([-1, -1], np.int64), op.parameter([-1, -1, HEADS * SIZE], np.float32)
    for value, name in ((ids, "input_ids"), (states, "encoder_hidden_states")):
        value.output(0).set_names({name})
    given = op.read_value(states, "states", ov.Type.f32, ov.PartialShape([-1, -1, HEADS * SIZE]))
    hidden = op.gather(weights(ROWS, HEADS * SIZE), ids, op.constant(0))
    query, key, value = (
        heads(op.matmul(source, weights(HEADS * SIZE, HEADS * SIZE), False, False)) for source in (hidden, given, given)
    )
    result = op.result(op.scaled_dot_product_attention(query, key, value))
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([result], [op.assign(given, "states")], [ids, states]), str(path), compress_to_fp16=False)
    assert [entry.role for entry in facts(path).inputs] == ["decoder_ids", "encoder_states"]
