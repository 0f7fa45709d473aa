"""Signing in with a token that reads, and with one that changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from http_calls import keep, ok, unkeep
from page_server import Served
from page_visitor import card, search, serious

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]


@pytest.fixture
def guarded(open_page: Opener, copied: Path) -> Iterator[Served]:
    """A server with a token for each right; it has ended before visitors are cleaned up after."""
    with Served(copied, options=("--token", "changes", "--read-token", "reads")) as server:
        yield server


def test_what_the_right_does_not_allow_is_not_offered(open_page: Opener, guarded: Served) -> None:
    page = open_page(guarded)
    page.get_by_label("Token").fill("reads")
    page.get_by_role("button", name="Open the library").click()
    search(page, "a rocket")
    note = page.get_by_role("link", name="reading only")
    expect(note).to_have_attribute("title", re.compile("^Your token only reads"))
    expect(page.get_by_role("button", name="save this search")).to_be_hidden()
    assert serious(page) == []
    read_collections(page, guarded)
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("body").press("3")
    expect(page.locator("#library-view")).to_contain_text("Your token only reads")
    expect(page.get_by_role("button", name="Bring in")).to_have_count(0)
    expect(page.get_by_role("button", name="out of the library")).to_have_count(0)
    page.locator("#library-view").get_by_role("link", name="Sign in with another one").click()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Open the library").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill("changes")
    page.get_by_role("button", name="Open the library").click()
    expect(page.get_by_label("What to look for")).to_be_visible()
    expect(page.get_by_role("link", name="reading only")).to_have_count(0)
    page.get_by_role("link", name="Library").click()
    expect(page.get_by_role("button", name="Bring in")).to_be_visible()


def test_what_a_library_that_cannot_be_written_to_would_refuse_is_not_offered(
    open_page: Opener, own_server: Served
) -> None:
    with httpx2.Client(base_url=own_server.url) as http:
        ok(keep(http, "search", "cats", {"query": "a cat"}))
    page = open_page(own_server)
    page.route(
        "**/api/library", lambda route: route.fulfill(json={**route.fetch().json(), "writable": False})
    )
    page.goto(own_server.url)
    saved = page.get_by_role("region", name="Saved searches")
    expect(saved.get_by_role("link", name="cats")).to_be_visible()
    expect(saved.get_by_role("button")).to_have_count(0)
    search(page, "a cat")
    expect(page.locator("#status .said")).not_to_be_empty()
    expect(page.get_by_role("button", name="save this search")).to_have_count(0)


def read_collections(page: Page, server: Served) -> None:
    """Open a collection of the library, and those of this browser's own, which stand beside it."""
    asked, title = page.url, page.get_by_label("Title of the collection")
    shared = {"moments": [{"video_id": "work/launch", "start": 1, "end": 4}]}
    with httpx2.Client(base_url=server.url, headers={"Authorization": "Bearer changes"}) as http:
        ok(keep(http, "collection", "Shared", shared))
        page.goto(f"{server.url}/#/collection?name=Shared")
        expect(page.locator(".item")).to_have_count(1)
        expect(page.get_by_role("button", name="delete", exact=True)).to_be_hidden()
        page.get_by_role("button", name="new", exact=True).click()
        expect(title).to_have_value("Untitled")
        page.goto(asked)
        card(page).locator(".opener").focus()
        page.keyboard.press("c")
        page.goto(f"{server.url}/#/collection?name=Shared")
        expect(title).to_have_value("Shared")
        expect(page.locator(".item")).to_have_attribute("data-video", "work/launch")
        page.reload()
        expect(title).to_have_value("Shared")
        others = page.get_by_label("Other collections")
        others.select_option("Untitled")
        expect(title).to_have_value("Untitled")
        expect(page.locator(".item")).to_have_count(1)
        # The library's stays as it is; a copy is changed.
        others.select_option("Shared")
        expect(title).to_have_value("Shared")
        note = page.get_by_label(re.compile("^Note on"))
        note.press_sequentially("mine")
        expect(title).to_have_value("Shared 2")
        expect(note).to_have_value("mine")
        page.get_by_role("button", name=re.compile("^Take .* out")).click()
        others.select_option("Shared")
        expect(note).to_have_value("")
        page.get_by_role("button", name="Undo").click()
        others.select_option("Shared 2")
        expect(note).to_have_value("mine")
        # A name that the library has now, too, is another one's.
        ok(keep(http, "collection", "Untitled", shared))
        page.reload()
        expect(others.locator("option")).to_have_text(["Shared 2", "Shared", "Untitled", "Untitled 2"])
        for own, next_ in (("Shared 2", "Shared"), ("Untitled 2", "Shared")):
            others.select_option(own)
            expect(title).to_have_value(own)
            page.get_by_role("button", name="delete", exact=True).click()
            expect(title).to_have_value(next_)
        expect(others.locator("option")).to_have_text(["Shared", "Untitled"])
        ok(unkeep(http, "collection", "Untitled"))
        ok(unkeep(http, "collection", "Shared"))
    page.goto(asked)
    expect(card(page)).to_be_visible()
