"""The sample models, each checked once in a process however many tests look at the result."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import yaml

import wirelint

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirelint.findings import ModelReport

SAMPLES = Path(__file__).parents[1] / "sample_models"

# How long an example takes says how busy the machine is; tests that are about time measure it themselves.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


@functools.cache
def manifest() -> dict[str, dict[str, Any]]:
    """What ``expected.yaml`` says, by path."""
    return {entry["path"]: entry for entry in yaml.safe_load((SAMPLES / "expected.yaml").read_text())["models"]}


@functools.cache
def checked(sample: str) -> ModelReport:
    """The report on a sample, held to its reference if it has one."""
    reference = manifest()[sample].get("reference")
    report = wirelint.check(SAMPLES / sample, config=False, reference=None if reference is None else SAMPLES / reference)
    (model,) = report.models
    assert not model.fault, model.fault
    return model


@pytest.fixture(scope="session")
def check_sample() -> Callable[[str], ModelReport]:
    return checked
