"""Takes the pictures in docs/images/ again: what a browser shows of the report, and of the route, on a sample model.

    python docs/screenshots.py

Needs the ``test`` extra and Chromium.  Pixels differ between versions of a browser and its fonts, so that no check compares
them; run it after a change of what the report looks like, and look at what it made.
"""  # noqa: INP001 -- a script, not part of a package

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import wirelint
from wirelint.picture.drawing import draw_route
from wirelint.picture.svg import render
from wirelint.report import RenderOptions, renderer

DOCS = Path(__file__).resolve().parent
MODEL = "sample_models/mask/bert_mask_partial.onnx"
INPUT = "attention_mask"
WIDTH = 1100


def main() -> None:
    os.chdir(DOCS.parent)  # the report names the model as it was named to it
    browser = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("no Chromium here: install Debian's package chromium, or Google Chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        # The sandbox needs what containers and root do not have; the page shown is one of our own, without any script.
        chromium = driver.chromium.launch(executable_path=browser, chromium_sandbox=False)
        page = chromium.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        shoot_report(page, Path(folder))
        shoot_route(page, Path(folder))
        chromium.close()


def shoot_report(page: Page, folder: Path) -> None:
    """The head of the report with its finding and routes, and its part about attention and padding."""
    path = folder / "report.html"
    path.write_text(renderer("html")(wirelint.check(MODEL, config=False), RenderOptions()), encoding="utf-8")
    page.goto(path.as_uri())
    attention = page.get_by_role("heading", name="Who hears whom").bounding_box()
    end = page.locator("section.model").bounding_box()
    assert attention is not None
    assert end is not None
    cut(page, "html-report.png", 0, attention["y"] - 12)
    cut(page, "html-attention.png", attention["y"] - 12, end["y"] + end["height"])


def cut(page: Page, name: str, top: float, bottom: float) -> None:
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
    page.screenshot(path=DOCS / "images" / name, full_page=True, clip=clip)


def shoot_route(page: Page, folder: Path) -> None:
    """What ``wirelint graph`` draws."""
    (entry,) = [entry for entry in wirelint.facts(MODEL).inputs if entry.name == INPUT]
    path = folder / "route.svg"
    path.write_text(render(draw_route(entry.route, entry.shown)), encoding="utf-8")
    page.goto(path.as_uri())
    page.locator("svg").screenshot(path=DOCS / "images" / "graph.png")


if __name__ == "__main__":
    main()
