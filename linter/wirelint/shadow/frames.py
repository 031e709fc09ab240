"""Which frames of a downsampled sequence are real, read off the convolutions that make them.

A convolution without padding yields frames that lie wholly within the real samples, or not: the frame counts of speech
models (``_get_feat_extract_output_lengths`` in transformers) count the former.  One with padding of its own, which keeps the
length but for its stride, yields a frame for each stride, and the one at the edge hears both; it is real if its centre is.
"""

from __future__ import annotations

import numpy as np

from wirelint.graph import Graph, Op
from wirelint.ops import Family, family
from wirelint.shadow.interpreter import Run
from wirelint.shadow.scenario import Scenario, Sequence
from wirelint.shadow.value import Array, Shadow

__all__ = ["settle_frames"]

_DEEPEST = 400


def settle_frames(graph: Graph, scenario: Scenario, run: Run) -> None:
    """Tells the continuous sequence of a scenario which of its frames are real, for each length that convolutions give it."""
    sequence = next((entry for entry in scenario.sequences if entry.role == "features"), None)
    if sequence is None:
        return
    padded = False
    for op in graph.ops[:_DEEPEST]:
        if family(op.kind) in (Family.ATTENTION, Family.SOFTMAX):
            return  # from here on frames hear one another
        if op.kind not in ("Conv", "MaxPool", "AveragePool") or not op.outputs:
            continue
        shadow = run.values.get(op.outputs[0])
        padded = padded or _pads(op)
        found = None if shadow is None else _frames(shadow, scenario, sequence)
        if found is None:
            continue
        inside, edge = found
        length = inside.shape[1]
        if length >= sequence.length or not inside.any():
            continue  # a normalisation over the whole sequence stands before it
        if padded:
            centre = ((np.arange(length) + 0.5) * sequence.length / length).astype(int)
            inside = inside | (edge & sequence.real[:, centre])
        sequence.frames.setdefault(length, inside)


def _pads(op: Op) -> bool:
    return any(op.attrs.get("pads") or ()) or str(op.attrs.get("auto_pad", "")).startswith("SAME")


def _frames(shadow: Shadow, scenario: Scenario, sequence: Sequence) -> tuple[Array, Array] | None:
    """For each row and frame: it hears real samples only; it hears both."""
    time = [axis for axis in range(2, shadow.rank) if shadow.labels.shape[axis] > 1]
    if len(time) != 1 or shadow.shape[0] != scenario.batch:
        return None
    labels = np.moveaxis(shadow.spread([0, time[0]]).labels, time[0], 1)
    flat = np.bitwise_or.reduce(labels.reshape(*labels.shape[:2], -1), axis=2)
    real, pad = (
        np.stack([(flat[row] & bits[0 if row == 0 else 1]) != 0 for row in range(len(flat))])
        for bits in (sequence.part.real, sequence.part.padded)
    )
    return real & ~pad, real & pad
