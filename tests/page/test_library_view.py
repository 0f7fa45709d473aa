"""Bringing videos in, what was refused, and a server that goes and comes back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from distinct import film_like
from page_server import Served
from page_visitor import moments, search

pytestmark = pytest.mark.slow


def test_the_library_says_what_is_in_it_and_in_use(open_page: Callable[..., Page], served: Served) -> None:
    page = open_page(served, "#/library")
    expect(page.locator(".facts")).to_contain_text("conse")
    expect(page.locator(".videos tbody tr")).to_have_count(4)
    page.get_by_label("Videos by name").fill("launch")
    expect(page.locator(".videos tbody tr")).to_have_count(1)
    page.get_by_role("button", name="launch", exact=True).click()
    expect(page.locator("#player h2")).to_have_text("launch")


def test_an_ingest_with_a_broken_file_among_good_ones(
    open_page: Callable[..., Page], own_server: Served, made: Path
) -> None:
    film_like(made / "films" / "home" / "a cat.mp4", own_server.incoming / "another cat.mp4")
    (own_server.incoming / "broken.mp4").write_bytes(b"no film at all" * 1000)
    page = open_page(own_server, "#/library")
    page.get_by_role("button", name="Bring in").click()
    job = page.get_by_role("article", name=re.compile("^Ingest"))
    expect(job.locator(".refused")).to_contain_text("broken", timeout=120_000)
    expect(job).to_contain_text("1 video added", timeout=120_000)
    expect(page.locator(".videos tbody tr", has_text="another cat")).to_be_visible()
    page.get_by_label("Videos by state").select_option("refused")
    expect(page.locator(".videos tbody tr")).to_have_count(1)
    expect(page.locator(".videos .why")).not_to_be_empty()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Search").click()
    search(page, "a cat")
    expect(page.locator(".caption .title", has_text="another cat").first).to_be_visible()


def test_a_folder_that_is_not_allowed_is_refused_in_words(
    open_page: Callable[..., Page], served: Served
) -> None:
    page = open_page(served, "#/library")
    page.get_by_label("A folder or a file").fill("/etc")
    page.get_by_role("button", name="Bring in").click()
    expect(page.get_by_role("alert").filter(has_text="/etc")).to_be_visible()


def test_a_server_that_is_restarted_under_an_open_page(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server)
    search(page, "a rocket")
    shown = moments(page).count()
    own_server.stop()
    page.get_by_label("What to look for").fill("a cat")
    expect(page.locator("#offline")).to_contain_text("does not answer")
    expect(moments(page)).to_have_count(shown)
    own_server.start()
    expect(page.locator("#offline")).to_be_empty()
    expect(page.locator(".caption .title").first).to_have_text("a cat")
