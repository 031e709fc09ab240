"""The HTML report in a real browser: it fits the screen, can be read by everybody, and asks nothing of anybody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from report_pages import MARKUP, PAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

WIDTHS = (390, 800, 1600)
SCHEMES = ("light", "dark")
TEXT_CONTRAST, PICTURE_CONTRAST = 4.5, 3.0
"""WCAG 2.2, success criteria 1.4.3 and 1.4.11."""
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
STICKING_OUT = """() => [...document.body.querySelectorAll('*')].filter(part => !part.closest('svg, .scroll, .skip'))
    .filter(part => part.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(part => `${part.tagName} ${part.className}: ${part.textContent.slice(0, 80)}`)"""
FOCUSED = """() => { const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
    return {what: at.tagName.toLowerCase(), said: (at.getAttribute('aria-label') || at.textContent).trim().slice(0, 60),
    outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, skip: at.className === 'skip',
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth} }"""


def name_of(picture: Locator) -> str:
    """What is read aloud in its place."""
    return picture.locator("title").first.text_content()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_fits_the_screen_and_keeps_to_itself(page_of: Callable, show: Callable, name: str) -> None:
    shown = show(page_of(name))
    for width in (*WIDTHS, *WIDTHS):
        shown.page.set_viewport_size({"width": width, "height": 900})
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.page.evaluate(STICKING_OUT) == []
        if width == WIDTHS[-1]:
            shown.unfold()
    assert shown.said == []
    assert shown.asked == []


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("broken", 390, "light"),
        ("broken", 800, "dark"),
        ("broken", 1600, "light"),
        ("mixed", 390, "dark"),
        ("unreadable", 390, "light"),
        ("nothing", 390, "dark"),
        ("long-names", 390, "light"),
    ],
)
def test_accessibility_checks_pass(page_of: Callable, show: Callable, name: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    shown = show(page_of(name), width, scheme)
    shown.unfold()
    violations = axe.Axe().run(shown.page).response["violations"]
    assert [(entry["id"], entry["nodes"][0]["html"][:200]) for entry in violations] == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["broken", "mixed"])
def test_text_and_pictures_stand_out(page_of: Callable, show: Callable, name: str, scheme: str) -> None:
    shown = show(page_of(name), scheme=scheme)
    shown.unfold()
    page = shown.page
    page.set_viewport_size({"width": 1600, "height": page.evaluate("document.documentElement.scrollHeight")})
    found = page.evaluate(CONTRAST)
    assert sum(entry["kind"] == "text" for entry in found) > 50
    wanted = {"text": TEXT_CONTRAST, "picture": PICTURE_CONTRAST}
    assert [entry for entry in found if entry["ratio"] < wanted[entry["kind"]]] == []


def test_light_and_dark_differ(page_of: Callable, show: Callable) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (show(page_of("broken"), scheme=scheme).page.evaluate(ground) for scheme in SCHEMES)
    assert light != dark


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_is_reached_by_keyboard_with_the_focus_seen(page_of: Callable, show: Callable, width: int) -> None:
    page = show(page_of("mixed"), width).page
    stops = page.locator("a:visible, summary:visible, .scroll:visible").count()
    met = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        met.append(page.evaluate(FOCUSED))
    assert met[0]["skip"]
    assert {entry["what"] for entry in met} >= {"a", "summary", "div"}
    assert [entry for entry in met if not (entry["outlined"] and entry["seen"])] == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement === document.body"), "there is more to reach than links, folds and pictures"


def test_the_link_over_the_head_leads_to_the_models(page_of: Callable, show: Callable) -> None:
    page = show(page_of("mixed")).page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#models"


def test_the_rule_s_page_folds_open_by_keyboard(page_of: Callable, show: Callable) -> None:
    page = show(page_of("broken")).page
    fold = page.locator("details.finding summary", has_text="About the rule")
    said = page.get_by_text("Some attention sites keep padding out and others hear it.")
    assert not said.is_visible()
    fold.focus()
    page.keyboard.press("Enter")
    assert said.is_visible()
    page.keyboard.press("Space")
    assert not said.is_visible()


def test_a_summary_leads_to_each_model_worst_first(page_of: Callable, show: Callable) -> None:
    page = show(page_of("folder"), 390).page
    links = page.locator("table a")
    assert links.count() == page.locator("section.model").count() > 30
    badges = page.locator("table td[data-head=findings]").all_inner_texts()
    assert "error" in badges[0]
    assert badges[-1] == "nothing found"
    links.last.click()
    assert page.locator("section.model").last.evaluate("part => Math.abs(part.getBoundingClientRect().top) < innerHeight")


def test_a_path_is_drawn_to_where_it_breaks(page_of: Callable, show: Callable) -> None:
    page = show(page_of("broken"), 390).page
    route = page.get_by_role("img", name="input 1 'attention_mask'")
    assert "Softmax (/layer.1/attention/self/Softmax; not reached; hears padding: nothing hides it), broken here" in name_of(
        route
    )
    (broken,) = route.locator(".broken").all()
    assert "✗ Softmax" in broken.text_content()
    box, frame = broken.bounding_box(), page.locator(".scroll", has=route).bounding_box()
    assert box["x"] >= frame["x"]
    assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, "the break is out of sight on a phone"


def test_matrices_show_which_positions_are_padding_and_who_hears_them(page_of: Callable, show: Callable) -> None:
    page = show(page_of("broken")).page
    pictures = page.get_by_role("img", name="7 queries by 7 keys")
    effective, absent = pictures.all()
    for picture in (effective, absent):
        assert picture.locator(".pad").count() == 4, "two keys and two queries are marked"
    assert effective.locator(".leak").count() == 0
    assert absent.locator(".leak").count() == absent.locator(".cross").count() == 10
    assert "no real query hears padding" in name_of(effective)
    assert "real queries hear padding in 10 cells" in name_of(absent)


def test_every_picture_has_words(page_of: Callable, show: Callable) -> None:
    shown = show(page_of("mixed"))
    shown.unfold()
    names = shown.page.evaluate("""[...document.querySelectorAll('svg[role=img]')].map(picture => ({
        titled: document.getElementById(picture.getAttribute('aria-labelledby'))?.textContent || '',
        words: picture.closest('figure').querySelectorAll('.words li, figcaption').length}))""")
    assert len(names) > 10
    assert all(len(entry["titled"]) > 20 and entry["words"] for entry in names)


def test_names_are_shown_and_never_run(page_of: Callable, show: Callable) -> None:
    shown = show(page_of("hostile"))
    shown.unfold()
    assert shown.page.locator("img, script").count() == 0
    assert f"attention_mask{MARKUP}" in shown.page.inner_text("body")
    assert shown.said == []
    assert shown.asked == []


def test_ten_thousand_nodes_make_a_page_that_opens_at_once(page_of: Callable, show: Callable) -> None:
    path = page_of("large")
    assert path.stat().st_size < 100_000
    start = time.perf_counter()
    page = show(path).page
    page.get_by_text("777 sites of self-attention").wait_for()
    assert time.perf_counter() - start < 10
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
    assert page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") < 5_000, "milliseconds"


def test_print_shows_what_is_folded(page_of: Callable, show: Callable) -> None:
    page = show(page_of("mixed")).page
    folded = page.locator("details.finding.note").first.locator("dl").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.bounding_box()["height"] > 50
