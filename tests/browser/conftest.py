"""A real browser, and what it shows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from report_pages import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Without these a browser asks its maker for updates, which is no request of the page."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install Debian's package chromium, or Google Chrome")
    api = pytest.importorskip("playwright.sync_api")
    # The sandbox needs what containers and root do not have; the page shown is one of our own, without any script.
    with api.sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=list(QUIET))
        yield shown
        shown.close()


@dataclass(slots=True)
class Shown:
    """A page in a browser, with all that it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def unfold(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Shown]]:
    """Opens a file at a width and in a scheme of colours; whatever else the page asks for is written down and refused."""
    opened = []

    def shown(path: Path, width: int = 1600, scheme: str = "light", height: int = 900) -> Shown:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        opened.append(context)
        made = Shown(context.new_page())
        address = path.as_uri()

        def pass_on(route: Route) -> None:
            if route.request.url == address:
                route.continue_()
            else:
                made.asked.append(route.request.url)
                route.abort()

        context.route("**/*", pass_on)
        made.page.on("console", lambda message: made.said.append(message.text))
        made.page.on("pageerror", lambda error: made.said.append(str(error)))

        def note(dialog: object) -> None:
            made.said.append("a dialog was opened")
            dialog.dismiss()  # type: ignore[attr-defined]

        made.page.on("dialog", note)
        made.page.goto(address)
        return made

    yield shown
    for context in opened:
        context.close()


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The report on some models, as a file; each is made once."""
    made: dict[str, Path] = {}

    def page(name: str) -> Path:
        if name not in made:
            made[name] = write_report(name, tmp_path_factory.mktemp(name))
        return made[name]

    return page
