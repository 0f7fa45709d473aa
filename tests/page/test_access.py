"""By keyboard alone, on a phone, in light and dark, for screen readers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from page_server import Served
from page_visitor import card, moments, opened, search, searching, serious, until, video_time

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_everything_by_keyboard(page: Page) -> None:
    expect(page.get_by_label("What to look for")).to_be_focused()
    page.keyboard.type("a rocket")
    expect(moments(page).first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(card(page).locator(".opener")).to_be_focused()
    assert card(page).locator(".opener").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    expect(card(page, 1).locator(".opener")).to_be_focused()
    expect(page.locator("#results .opener[tabindex='0']")).to_have_count(1)
    page.keyboard.press(".")
    expect(card(page, 1).locator(".strip")).to_be_visible()
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    expect(page.locator("#player")).to_be_visible()
    until(page, "video.readyState >= 2")
    page.keyboard.press("Space")
    until(page, "video.paused")
    before = video_time(page)
    page.keyboard.press("ArrowRight")
    until(page, f"video.currentTime > {before} + 0.5")
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    expect(card(page, 2).locator(".opener")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("What to look for")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.locator("body").press("2")
    expect(page.locator(".item")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_label("What to look for")).to_be_focused()


def test_on_a_phone(open_page: Callable[..., Page], served: Served) -> None:
    page = open_page(served, **PHONE)
    search(page, "a rocket")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first, second = card(page).bounding_box(), card(page, 1).bounding_box()
    assert first and second
    assert first["y"] == second["y"], "two moments stand side by side"
    opened(page)
    box = page.locator("#player video").bounding_box()
    assert box and box["width"] == 390
    assert page.locator("#player").evaluate("one => one.scrollWidth <= one.clientWidth")
    page.go_back()
    expect(page.locator("#player")).to_be_hidden()
    card(page).get_by_role("button", name="Into the collection").tap()
    for name in ("Collection 1", "Library"):
        page.get_by_role("link", name=name).tap()
        page.locator("section:not([hidden]) :is(.item, .videos tbody tr)").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


WINDOWS = [(1440, 900), (1366, 657), (1280, 600), (1024, 768), (844, 390), (740, 360), (390, 844), (320, 640)]


def test_the_player_in_windows_of_any_size(page: Page) -> None:
    """Each control is in sight, none lies over the video, and nothing is wider than the window."""
    search(page, "every point of light is a galaxy")
    player = opened(page)
    player.locator(".cues button").first.wait_for()
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        screen, *controls = player.evaluate(
            """player => [".screen", ".transport button, .timeline, .player-actions > *"]
              .flatMap(those => [...player.querySelectorAll(those)])
              .map(one => one.getBoundingClientRect())
              .map(({ left, top, right, bottom }) => [left, top, right, bottom])"""
        )
        window = (width, height)
        assert min(screen[2] - screen[0], screen[3] - screen[1]) >= 120, window
        assert player.evaluate("one => one.scrollWidth <= one.clientWidth"), window
        assert len(controls) >= 9, window
        for left, top, right, bottom in controls:
            assert left >= screen[2] - 1 or top >= screen[3] - 1, window
            assert left >= 0 and top >= 0 and right <= width and bottom <= height, window


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_view(open_page: Callable[..., Page], served: Served, scheme: str) -> None:
    page = open_page(served, color_scheme=scheme)
    page.locator(".shelf .moment").first.wait_for()
    found = {"welcome": serious(page)}
    search(page, "a rocket")
    with searching(page):
        page.get_by_role("button", name="then", exact=True).click()
    page.get_by_role("button", name="filters", exact=True).click()
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    found["results"] = serious(page)
    with searching(page):
        page.get_by_role("button", name="As rows by video").click()
    page.locator(".rows .moment").first.wait_for()
    found["rows"] = serious(page)
    page.set_viewport_size({"width": 390, "height": 844})
    found["rows on a phone"] = serious(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    card(page).locator(".opener").focus()
    page.keyboard.press("Enter")
    page.locator("#player .curve").wait_for(state="attached")
    found["player"] = serious(page)
    page.keyboard.press("Escape")
    page.locator("body").press("2")
    page.locator(".item").wait_for()
    found["collection"] = serious(page)
    page.locator("body").press("3")
    page.locator(".videos tbody tr").first.wait_for()
    found["library"] = serious(page)
    page.locator("body").press("?")
    found["keys"] = serious(page)
    page.keyboard.press("Escape")
    page.locator("body").press("1")
    page.get_by_role("button", name="Clear the search").click()
    search(page, "tax return")
    page.get_by_role("heading", name="No strong match").wait_for()
    found["no match"] = serious(page)
    assert found == {view: [] for view in found}


def test_the_theme_can_be_chosen_and_stays(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="choose light").click()
    page.get_by_role("button", name="choose dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    expect(page.get_by_role("button", name="choose as the system has them")).to_be_visible()
    assert page.evaluate(ground) == dark
