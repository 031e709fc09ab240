"""Where mended models go."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for what is written."""
    made = tmp_path / "out"
    made.mkdir()
    return made
