"""The style of the HTML report: one column that grows, light and dark, nothing from outside."""

from __future__ import annotations

from importlib import resources

from wirelint.picture import matrix, svg

__all__ = ["style"]


def style() -> str:
    """The style sheet, that of the pictures included."""
    page = resources.files("wirelint.report.page").joinpath("page.css").read_text(encoding="utf-8")
    return page + svg.STYLE + matrix.STYLE
