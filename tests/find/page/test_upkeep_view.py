"""The library view: copies side by side, videos processed again, saved searches, long lists."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from distinct import film_like
from moviola.search import Library
from page_server import Served
from page_visitor import card, search, searching, serious

pytestmark = pytest.mark.slow

WINDOWS = [(1440, 900), (1366, 657), (1280, 600), (1024, 768), (844, 390), (740, 360), (390, 844), (320, 640)]


def with_copy(server: Served, made: Path) -> None:
    """Bring a copy of a film in whose bytes are others."""
    film_like(made / "films" / "home" / "a cat.mp4", server.incoming / "kitten.mp4")
    with Library(Path(server.folder) / "photographs") as library:
        library.index(server.incoming, ocr=False)


def test_copies_stand_side_by_side_and_one_is_kept(
    open_page: Callable[..., Page], own_server: Served, made: Path
) -> None:
    with_copy(own_server, made)
    page = open_page(own_server, "#/library")
    twins = page.get_by_role("region", name="Videos that show the same")
    expect(twins).to_contain_text("None known.")
    twins.get_by_role("button", name="Compare all videos").click()
    expect(twins).to_contain_text("1 pair")
    expect(twins.get_by_role("button", name="Play a cat")).to_be_visible()
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    assert serious(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(5)
    twins.get_by_role("button", name="Keep a cat and take kitten out").click()
    expect(rows).to_have_count(4)
    expect(twins.locator("li")).to_have_count(0)
    assert (own_server.incoming / "kitten.mp4").is_file()
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(5)
    expect(twins).to_contain_text("1 pair")
    expect(twins.locator("li")).to_have_count(1)


def test_a_video_is_encoded_again_and_read_again(
    open_page: Callable[..., Page], own_server: Served, made: Path
) -> None:
    with_copy(own_server, made)
    page = open_page(own_server, "#/library")
    notices = page.locator("#notices")
    page.get_by_role("button", name="Encode kitten again").click()
    expect(notices).to_contain_text("kitten was processed again", timeout=120_000)
    notices.locator(".notice").last.wait_for(state="detached")
    page.get_by_role("button", name="Read subtitles and text of kitten again").click()
    expect(notices).to_contain_text("kitten was processed again", timeout=120_000)
    row = page.locator(".videos tr", has_text="kitten")
    expect(row.locator(".state")).to_have_text("ready")
    page.get_by_role("button", name="Encode launch again").click()
    expect(page.get_by_role("alert").filter(has_text="--allow-ingest")).to_be_visible()


def test_saved_searches_stand_in_the_library_with_what_is_new(
    open_page: Callable[..., Page], own_server: Served, made: Path
) -> None:
    page = open_page(own_server)
    search(page, "a cat")
    page.get_by_role("button", name="save this search").click()
    expect(page.locator("#notices")).to_contain_text("The search is saved")
    page.get_by_role("link", name="Library").click()
    saved = page.locator("#library-view").get_by_role("region", name="Saved searches")
    expect(saved.get_by_role("link", name="a cat")).to_be_visible()
    expect(saved.locator(".number")).to_be_empty()
    with_copy(own_server, made)
    page.reload()
    expect(saved.locator(".number")).to_contain_text("new")


def test_ten_thousand_videos_are_listed_in_pages(page: Page) -> None:
    """Of a long list a page is fetched and drawn at a time."""
    asked: list[str] = []
    kept: list[dict[str, object]] = []

    def many(route: Route) -> None:
        asked.append(route.request.url)
        answer = route.fetch()
        kept.extend(answer.json()["videos"])
        refused = "state=refused" in route.request.url
        videos = [] if refused else [{**kept[0], "video_id": f"many/{n:05d}"} for n in range(50)]
        route.fulfill(response=answer, json={"total": 0 if refused else 10_000, "videos": videos})

    page.route("**/api/videos?*", many)
    page.get_by_role("link", name="Library").click()
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(50)
    expect(page.locator("#library-view")).to_contain_text("10,000 videos")
    page.get_by_role("button", name="More videos").click()
    expect(rows).to_have_count(100)
    assert all("limit=50" in url for url in asked if "limit=1&" not in url and "limit=48" not in url)


def test_several_libraries_have_one_page(open_page: Callable[..., Page], made: Path, tmp_path: Path) -> None:
    """Videos of both are found and tagged, and brought into the one that is chosen; what belongs to one
    library (saved searches, concepts) is not offered, and the collection is kept in the browser.
    """
    folders = [tmp_path / "photographs", tmp_path / "others"]
    for number, folder in enumerate(folders):
        shutil.copytree(made / "photographs", folder)
        with Library(folder) as library:
            every = library.catalogue.video_ids()
            library.indexer.remove([one for one in every if one.startswith("home/") == bool(number)])
    (tmp_path / "incoming").mkdir()
    film_like(made / "films" / "home" / "a cat.mp4", tmp_path / "incoming" / "kitten.mp4")
    with Served(tmp_path, options=("--library", str(folders[1]))) as server:
        page = open_page(server)
        search(page, "a cat")
        expect(page.locator(".caption .title", has_text="a cat").first).to_be_visible()
        expect(page.get_by_role("button", name="save this search")).to_have_count(0)
        card(page, 1).locator(".opener").focus()
        with searching(page):
            page.keyboard.press("+")
        expect(page.get_by_role("button", name="Without these marks")).to_be_visible()
        expect(page.get_by_role("button", name="teach this as…")).to_have_count(0)
        page.keyboard.press("c")
        page.get_by_role("link", name="Library").click()
        rows = page.locator(".videos tbody tr")
        expect(rows).to_have_count(4)
        expect(page.locator(".facts")).to_contain_text("photographs, others")
        expect(page.get_by_role("region", name="Saved searches")).to_have_count(0)
        for name in ("a cat", "launch"):
            page.get_by_label(f"Select {name}").check()
        page.get_by_label("Tag to give to the selected videos").fill("favourite")
        page.get_by_role("button", name="give the tag").click()
        expect(page.locator("#notices")).to_contain_text("2 videos are tagged")
        page.get_by_label("Library that gets the videos").select_option("others")
        page.get_by_role("button", name="Bring in").click()
        job = page.get_by_role("article", name=re.compile("^Videos being"))
        expect(job).to_contain_text("1 video added", timeout=120_000)
        expect(job).to_contain_text("→ others")
        expect(rows).to_have_count(5)
        assert serious(page) == []
        for width, height in WINDOWS:
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    tagged = []
    for folder in folders:
        with Library(folder, read_only=True) as library:
            tagged.append(library.userdata.tagged())
            assert not library.userdata.entries("collection")
            assert ("kitten" in library.catalogue.video_ids()) == (folder == folders[1])
    assert tagged == [{"favourite": {"home/a cat"}}, {"favourite": {"work/launch"}}]
