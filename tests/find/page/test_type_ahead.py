"""Names that are offered while a user types, and one video searched alone from wherever it is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from moviola.library.userdata.values import Mark
from moviola.search import Library
from page_server import Served
from page_visitor import PHONE, card, moments, opened, search, searching, serious

pytestmark = pytest.mark.slow


@pytest.fixture
def tagged(own_server: Served) -> Served:
    """A server of which two videos bear a tag."""
    with Library(Path(own_server.folder) / "photographs", read_only=True) as library:
        for name in ("home/a cat", "work/launch"):
            library.userdata.mark(Mark(video_id=name), add=["Laurels"])
    return own_server


def test_videos_and_tags_are_offered_and_taken_by_keys(
    tagged: Served, open_page: Callable[..., Page]
) -> None:
    page = open_page(tagged)
    box = page.get_by_label("What to look for")
    box.press_sequentially("la")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(options).to_have_text(["launchin this video, 0:24", "Laurelstag, 2 videos"])
    expect(box).to_have_attribute("aria-expanded", "true")
    expect(box).not_to_have_attribute("aria-activedescendant", "words-names-0")
    assert serious(page) == []
    box.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", "words-names-0")
    box.press("Enter")
    expect(box).to_have_value("")
    expect(options).to_have_count(0)
    expect(page.locator("#status .chip", has_text="only launch")).to_be_visible()
    box.press_sequentially("lau")
    expect(options).to_have_count(2)
    box.press("ArrowDown")
    box.press("ArrowDown")
    box.press("Tab")
    expect(page.locator("#status .chip", has_text="tagged Laurels")).to_be_visible()
    with searching(page, "a rocket") as answered:
        box.fill("a rocket")
    sent = answered.value.request.post_data_json
    assert (sent["videos"], sent["filter"]) == (["work/launch"], {"tag": "Laurels"})
    expect(options).to_have_count(0)


def test_a_name_that_nobody_taught_is_said(page: Page) -> None:
    search(page, "a cat")
    page.get_by_label("What to look for").fill("@nobody")
    expect(page.locator(".notes")).to_contain_text(
        "No concept is called @nobody; it is searched for as a word."
    )


def test_nothing_is_offered_for_a_long_text(page: Page) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "completions" in request.url else None)
    search(page, "a cat " * 50 + "on a roof")
    with page.expect_request("**/api/completions?*"):
        page.get_by_label("What to look for").fill("a cat")
    assert [url.rpartition("text=")[2] for url in sent] == ["a+cat"]


def test_the_offer_goes_away_by_escape_and_leaves_the_way_to_the_results(page: Page) -> None:
    search(page, "a cat")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(options).to_have_count(1)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(card(page).locator(".opener")).to_be_focused()
    page.get_by_role("button", name="Clear the search").click()
    search(page, "a cat")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(options).to_have_count(0)
    expect(page.get_by_label("What to look for")).to_have_value("a cat")


def test_an_offer_is_taken_by_a_finger(served: Served, open_page: Callable[..., Page]) -> None:
    page = open_page(served, **PHONE)
    page.get_by_label("What to look for").tap()
    page.route(
        "**/api/completions?*",
        lambda route: route.fulfill(
            json={
                "videos": [{"video_id": f"home/breakfast {n}", "duration": 9} for n in range(5)],
                "tags": [],
            }
        ),
    )
    page.keyboard.type("break")
    page.get_by_role("option", name="breakfast 1").wait_for()
    assert serious(page) == []
    page.unroute("**/api/completions?*")
    page.keyboard.type("fast")
    expect(page.locator("#words-names").get_by_role("option")).to_have_count(1)
    page.get_by_role("option", name="breakfast").tap()
    expect(page.locator("#status .chip", has_text="only breakfast")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_in_this_video_from_anywhere(page: Page) -> None:
    chip = page.locator("#status .chip", has_text="only launch")
    search(page, "a rocket")
    page.get_by_role("button", name="weak one").or_(moments(page).first).first.wait_for()

    def is_within() -> None:
        expect(chip).to_be_visible()
        expect(page.get_by_label("What to look for")).to_be_focused()
        with searching(page):
            chip.get_by_role("button").click()
        expect(chip).to_be_hidden()

    card(page).hover()
    card(page).get_by_role("button", name="Search in this video").click()
    is_within()
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    page.keyboard.press("s")
    is_within()
    opened(page).get_by_role("button", name="Search in this video").click()
    expect(page.locator("#player")).to_be_hidden()
    is_within()
    opened(page)
    page.keyboard.press("s")
    expect(page.locator("#player")).to_be_hidden()
    is_within()
    page.get_by_role("link", name="Collection").click()
    page.locator(".item").get_by_role("button", name="Search in this video").click()
    is_within()
    page.get_by_role("link", name="Library").click()
    page.locator(".videos tr", has_text="launch").get_by_role("button", name="Search in this video").click()
    is_within()
