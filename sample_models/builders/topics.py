"""Imports every topic, so that its samples are registered."""

from __future__ import annotations

from builders import clean, expectation, file, inputs, mask, padding, segment, shape, stories

__all__ = ["TOPICS"]

TOPICS = {
    "stories": stories,
    "clean": clean,
    "inputs": inputs,
    "mask": mask,
    "segment": segment,
    "padding": padding,
    "shape": shape,
    "expectation": expectation,
    "file": file,
}
