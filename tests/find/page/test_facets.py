"""Filters that are chosen: folders, days, lengths, cameras, places, tags, each with its number of videos."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from page_server import Served
from page_visitor import WINDOWS, moments, search, searching, serious

pytestmark = pytest.mark.slow


@pytest.fixture
def panel(dated: Served, open_page: Callable[..., Page]) -> Page:
    """The page with its filters open and an answer below."""
    page = open_page(dated)
    search(page, "a cat")
    page.get_by_role("button", name=re.compile("^filters")).click()
    expect(page.get_by_role("checkbox", name="favourite")).to_be_visible()
    return page


def chips(page: Page) -> Locator:
    return page.locator("#status .chip")


def filters_of(answered: object) -> dict[str, str]:
    asked: dict[str, str] = answered.value.request.post_data_json.get("filter", {})  # type: ignore[attr-defined]
    return asked


def test_folders_cameras_and_tags_are_ticked_with_their_numbers(panel: Page, made: Path) -> None:
    page = panel
    films = str(made / "films")
    group = page.get_by_role("group", name="Folder")
    expect(group.locator(".choice")).to_have_text([f"{films}4", "home2", "work2"])
    with searching(page) as answered:
        page.get_by_role("checkbox", name="home").check()
    assert filters_of(answered) == {"folder": f"{films}/home"}
    with searching(page) as answered:
        page.get_by_role("checkbox", name="work").check()
    assert filters_of(answered) == {"folder": f"{films}/home\n{films}/work"}
    with searching(page) as answered:
        page.get_by_role("checkbox", name=films).check()
    assert filters_of(answered) == {"folder": films}
    expect(page.get_by_role("checkbox", name="home")).not_to_be_checked()
    page.get_by_role("button", name="Folders in").click()
    expect(page.get_by_role("checkbox", name="home")).to_be_hidden()
    with searching(page) as answered:
        page.get_by_role("button", name="Any: Folder").click()
    assert filters_of(answered) == {}
    with searching(page) as answered:
        page.get_by_role("checkbox", name="Apple iPhone 15 1 video", exact=True).check()
    assert filters_of(answered) == {"camera": "=Apple iPhone 15"}
    assert {moment["video_id"] for moment in answered.value.json()["moments"]} == {"home/a cat"}
    expect(chips(page)).to_have_text("camera Apple iPhone 15")
    with searching(page) as answered:
        page.get_by_role("checkbox", name="favourite").check()
    assert filters_of(answered) == {"camera": "=Apple iPhone 15", "tag": "favourite"}
    expect(page.get_by_label("Found by").locator("option")).to_have_text(
        ["everything", "what is seen (4)", "subtitles (1)", "names of videos (4)"]
    )
    # The answer stands beside the filters, on a phone above them, with its number in the sheet.
    answer, panel = page.locator("#results").bounding_box(), page.locator("#filters").bounding_box()
    assert answer and panel and panel["x"] + panel["width"] <= answer["x"] and panel["y"] < answer["y"] + 99
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#filters .leaves")).to_have_text(re.compile("^[0-9]+ moment"))
    assert page.locator("#status").bounding_box()["y"] < page.locator("#filters").bounding_box()["y"]  # type: ignore[index]
    page.get_by_role("button", name="Done").click()
    expect(page.locator("#filters")).to_be_hidden()


def test_a_filter_that_is_still_being_typed_goes_with_its_search(
    served: Served, open_page: Callable[..., Page]
) -> None:
    page = open_page(served)
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(hours=1))  # typing rests when the test says so
    length = page.get_by_label("Length of the moment, from")
    for leave in ("moviola", "Clear the search"):
        box = page.get_by_label("What to look for")
        box.fill("a cat")
        page.clock.run_for(5000)
        expect(moments(page).or_(page.get_by_role("heading", name="Nothing matches")).first).to_be_visible()
        if not length.is_visible():
            page.get_by_role("button", name=re.compile("^filters")).click()
        length.fill("3")
        page.get_by_role("link" if leave == "moviola" else "button", name=leave).click()
        expect(box).to_have_value("")
        page.clock.run_for(5000)
        expect(page.locator(".welcome")).to_be_visible()
        expect(length).to_have_value("")
        expect(chips(page)).to_have_count(0)
    length.fill("3")
    box.fill("a cat")  # words go with a filter
    page.clock.run_for(5000)
    expect(chips(page)).to_have_text("moment 3..")


def test_days_are_chosen_by_drag_and_by_keys(panel: Page) -> None:
    page = panel
    bars = page.get_by_role("listbox", name="When it was taken")
    expect(bars.get_by_role("option")).to_have_count(10)
    box = bars.bounding_box()
    assert box
    page.mouse.move(box["x"] + 2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 30)
    with searching(page) as answered:
        page.mouse.up()
    assert filters_of(answered) == {"taken": "2023-05..2023-07"}
    expect(bars.get_by_role("option", selected=True)).to_have_count(3)
    group = page.get_by_role("group", name="When it was taken")
    expect(group).to_contain_text("2023-05 – 2023-07: 2 videos")
    bars.press("End")
    with searching(page) as answered:
        bars.press("Enter")
    assert filters_of(answered) == {"taken": "2024-02"}
    with searching(page) as answered:
        bars.press("Shift+ArrowLeft")
    assert filters_of(answered) == {"taken": "2024-01..2024-02"}
    days = group.locator("button.day")
    expect(days).to_have_text(["3", "24"])  # no other one has a film
    with searching(page) as answered:
        days.last.click()
    assert filters_of(answered) == {"taken": "2024-02-24"}
    expect(bars.get_by_role("option")).to_have_count(10)  # the whole stays in sight
    expect(bars.get_by_role("option", selected=True)).to_have_count(1)
    with searching(page) as answered:
        days.first.click()
    assert filters_of(answered) == {"taken": "2024-02-03..2024-02-24"}
    expect(group.get_by_label("When it was taken, from")).to_have_value("2024-02-03")
    with searching(page) as answered:
        group.get_by_label("When it was taken, from").fill("2023-07-11")
    assert filters_of(answered) == {"taken": "2023-07-11..2024-02-24"}
    group.get_by_label("Month", exact=True).select_option("2023-05")
    expect(days).to_have_accessible_name("May 1, 2023: 1 video")
    with searching(page) as answered:
        bars.press("Delete")
    assert filters_of(answered) == {}
    expect(chips(page)).to_have_count(0)


def test_a_place_is_a_circle_on_the_map(panel: Page) -> None:
    page = panel
    places = page.get_by_role("listbox", name="Places where videos were taken")
    points = places.get_by_role("option")
    expect(points).to_have_count(2)
    expect(points.last).to_have_accessible_name("52.53° N, 13.43° E: 2 videos")
    places.press("End")  # does nothing here
    places.press("ArrowLeft")
    with searching(page) as answered:
        places.press("Enter")
    latitude, longitude, far = filters_of(answered)["near"].split(",")
    assert far.endswith("km") and 52 < float(latitude) < 53 and 13 < float(longitude) < 14
    videos = {moment["video_id"] for moment in answered.value.json()["moments"]}
    assert videos == {"home/a cat", "work/launch"}
    expect(places.get_by_role("option", selected=True)).to_have_count(1)
    with searching(page) as answered:
        places.press("+")
    assert float(filters_of(answered)["near"].split(",")[2][:-2]) > float(far[:-2])
    page.get_by_role("button", name="Nearer").click()
    page.get_by_role("button", name="All places").click()
    box = places.bounding_box()
    first = points.first.bounding_box()
    assert box and first
    page.mouse.move(first["x"] + 4, first["y"] + 4)
    page.mouse.down()
    page.mouse.move(first["x"] + 44, first["y"] + 4)
    with searching(page) as answered:
        page.mouse.up()
    assert {moment["video_id"] for moment in answered.value.json()["moments"]} == {"home/breakfast"}


def test_what_a_link_asks_is_shown_and_wrong_input_is_marked(
    dated: Served, open_page: Callable[..., Page]
) -> None:
    page = open_page(dated, '#/search?query=a+cat&filter={"folder":"*/home/*","taken":"2023.."}')
    expect(chips(page)).to_have_text(["in */home/*", "taken 2023.."])
    page.get_by_role("button", name=re.compile("^filters")).click()
    expect(page.get_by_role("checkbox", name="*/home/*")).to_be_checked()
    expect(page.locator("#results .moment").first).to_be_visible()
    shown = page.locator("#results .moment").count()
    page.goto(f'{dated.url}/#/search?query=a+cat&filter={{"near":"somewhere"}}')
    expect(page.get_by_role("alert").filter(has_text="degrees north")).to_be_visible()
    expect(page.locator(".facet.wrong legend")).to_have_text("Place")
    expect(page.locator("#results .moment")).to_have_count(shown)
    page.get_by_role("button", name="Any: Place").click()
    expect(page.locator("#failure")).to_be_empty()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long(2))])
def test_the_panel_fits_any_window_and_axe_finds_nothing(
    dated: Served, open_page: Callable[..., Page], scheme: str
) -> None:
    page = open_page(
        dated, '#/search?query=a+cat&filter={"taken":"2023","near":"52.5,13.4,30km"}', color_scheme=scheme
    )
    page.get_by_role("button", name=re.compile("^filters")).click()
    expect(page.get_by_role("checkbox", name="favourite")).to_be_visible()
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        for facet in page.locator(".facet:visible").all():
            assert facet.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), width
    assert serious(page) == []
