"""Exports that take long: progress, cancelling, failures; options that are remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from page_server import Served
from page_visitor import card, search, serious

pytestmark = pytest.mark.slow

STATE = {
    "export": "e" * 32,
    "state": "running",
    "file": "",
    "error": "",
    "share": 0.43,
    "seconds_left": 120.0,
}

AWAY: dict[str, Any] = {}


@pytest.fixture
def collected(open_page: Callable[..., Page], served: Served) -> Page:
    """A collection of one moment."""
    page = open_page(served)
    search(page, "a rocket")
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    page.locator("body").press("2")
    page.locator(".item").wait_for()
    return page


def answered(page: Page, states: list[dict[str, Any]]) -> list[str]:
    """Let the server say these states, the last one again and again, or be away at AWAY; gives the methods of
    requests.
    """
    requests: list[str] = []

    def answer(route: Route) -> None:
        requests.append(route.request.method)
        if route.request.method == "DELETE":
            states[:] = [{"error": {"code": "not_found", "message": "not here any more"}}]
            route.fulfill(status=204)
        else:
            state = states.pop(0) if len(states) > 1 else states[0]
            if state is AWAY:
                route.abort()
            else:
                route.fulfill(status=404 if "code" in str(state) else 201, json=state)

    page.route("**/api/exports**", answer)
    page.route("**/api/exports/*", answer)
    return requests


def test_a_long_export_shows_how_far_it_is_and_can_be_cancelled(collected: Page) -> None:
    requests = answered(collected, [STATE | {"share": None, "seconds_left": None}, STATE])
    collected.get_by_role("button", name="Export", exact=True).click()
    progress = collected.get_by_role("article", name="Export")
    cancel = progress.get_by_role("button", name="Cancel the export")
    cancel.focus()
    expect(progress).to_contain_text("43%, about 2 minutes left")
    for width in (1280, 320):
        collected.set_viewport_size({"width": width, "height": 640})
        assert collected.evaluate("document.documentElement.scrollWidth") <= width
    assert serious(collected) == []
    expect(cancel).to_be_focused()
    cancel.press("Enter")
    expect(progress).to_have_count(0)
    expect(collected.locator("body")).not_to_be_focused()
    assert "DELETE" in requests
    expect(collected.locator("#collection-view [role=alert]")).to_be_empty()
    expect(collected.get_by_role("button", name="Export", exact=True)).to_be_enabled()


def test_an_export_that_fails_says_why(collected: Page) -> None:
    answered(collected, [STATE, STATE | {"state": "failed", "error": "launch.mp4: its file is gone"}])
    collected.get_by_role("button", name="Export", exact=True).click()
    expect(collected.locator("#collection-view [role=alert]")).to_contain_text("launch.mp4: its file is gone")


def test_format_and_options_are_remembered(collected: Page) -> None:
    collected.get_by_label("Format").select_option("edl")
    collected.get_by_label("Frames a second").select_option("29.97")
    collected.get_by_label("Timecode", exact=True).select_option("drop")
    with collected.expect_download():
        collected.get_by_role("button", name="Export", exact=True).click()
    collected.reload()
    expect(collected.get_by_label("Format")).to_have_value("edl")
    expect(collected.get_by_label("Frames a second")).to_have_value("29.97")
    expect(collected.get_by_label("Timecode", exact=True)).to_have_value("drop")
    collected.get_by_label("Format").select_option("csv")
    with collected.expect_download() as download:
        collected.get_by_role("button", name="Export", exact=True).click()
    assert download.value.suggested_filename.endswith(".csv")


def test_an_export_goes_on_when_the_server_was_away(collected: Page) -> None:
    states = [STATE, STATE | {"share": 0.5}, AWAY, STATE | {"share": 0.9}]
    answered(collected, states)
    collected.get_by_role("button", name="Export", exact=True).click()
    expect(collected.get_by_role("article", name="Export")).to_contain_text("90%")
    assert AWAY not in states
    expect(collected.locator("#collection-view [role=alert]")).to_be_empty()


def test_an_export_that_the_server_has_forgotten_is_not_passed_over(collected: Page) -> None:
    gone = {"error": {"code": "not_found", "message": "export 'e': not here any more; begin it again"}}
    answered(collected, [STATE, gone])
    collected.get_by_role("button", name="Export", exact=True).click()
    expect(collected.locator("#collection-view [role=alert]")).to_contain_text("begin it again")
