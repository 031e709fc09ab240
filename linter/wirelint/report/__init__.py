"""Output formats: one module each, listed here, loaded when it is wanted."""

from __future__ import annotations

import importlib
from typing import cast

from wirelint.report.common import Renderer, RenderOptions

__all__ = ["FORMATS", "RenderOptions", "Renderer", "renderer"]

FORMATS = {
    "text": "wirelint.report.text",
    "concise": "wirelint.report.concise",
    "json": "wirelint.report.json_document",
    "sarif": "wirelint.report.sarif",
    "github": "wirelint.report.github",
    "gitlab": "wirelint.report.gitlab",
    "junit": "wirelint.report.junit",
    "markdown": "wirelint.report.markdown",
    "html": "wirelint.report.html",
    "model-explorer": "wirelint.report.model_explorer",
}
"""Names of the formats, in the order in which help lists them, with the module whose ``render`` writes each."""


def renderer(name: str) -> Renderer:
    """The function that writes a format.

    Raises:
        KeyError: there is no such format.
    """
    return cast("Renderer", importlib.import_module(FORMATS[name]).render)
