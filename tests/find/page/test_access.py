"""By keyboard alone, on a phone, in light and dark, for screen readers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from page_server import Served
from page_visitor import PHONE, card, moments, opened, search, until, video_time

pytestmark = pytest.mark.slow


def test_everything_by_keyboard(page: Page) -> None:
    expect(page.get_by_label("What to look for")).to_be_focused()
    page.keyboard.type("a rocket")
    expect(moments(page).first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(card(page).locator(".opener")).to_be_focused()
    assert card(page).locator(".opener").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    page.keyboard.press("w")  # a third one, which is weak
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
    page.keyboard.press("ArrowUp")  # weak ones have lines of their own
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
    until(page, "!document.getAnimations().length")  # of the picture that grows out of its tile
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
