"""The collection: put in, trimmed, ordered, noted, exported."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import APIResponse, Page, Request, Response, Route, expect

from http_calls import kept, ok, unkeep
from page_server import Served
from page_visitor import card, opened, search, until

pytestmark = pytest.mark.slow


@pytest.fixture
def collected(page: Page) -> Page:
    """The collection of the first two moments with a rocket."""
    search(page, "a rocket")
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    page.keyboard.press("ArrowRight")
    with page.expect_response(lambda response: keeps(response, moments=2)) as keeping:
        page.keyboard.press("c")
    assert keeping.value.ok
    expect(page.get_by_role("link", name="Collection 2")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator(".item")).to_have_count(2)
    return page


def keeps(response: Response, moments: int) -> bool:
    """Whether it answers a request to keep a collection of that size."""
    request = response.request
    if request.method != "PUT" or not request.url.endswith("/api/kept"):
        return False
    return len(request.post_data_json["value"]["moments"]) == moments


def starts(page: Page) -> list[str]:
    fields = page.locator(".item").get_by_label(re.compile("^Start of"))
    return [fields.nth(place).input_value() for place in range(fields.count())]


def test_one_key_puts_in_and_takes_out(page: Page) -> None:
    search(page, "a rocket")
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    expect(page.get_by_role("link", name="Collection 1")).to_be_visible()
    page.keyboard.press("c")
    expect(page.locator("#collected")).to_be_empty()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="Collection 1")).to_be_visible()


def test_undo_puts_back_what_was_taken_out_and_leaves_what_was_done_since(collected: Page) -> None:
    first, second = starts(collected)
    collected.get_by_role("button", name=re.compile("^Take .* out")).first.click()
    expect(collected.locator(".item")).to_have_count(1)
    note = collected.get_by_label(re.compile("^Note on")).first
    note.fill("written since")
    note.blur()
    collected.keyboard.press("1")
    collected.keyboard.press("w")
    card(collected, 2).locator(".opener").focus()
    collected.keyboard.press("c")
    collected.keyboard.press("2")
    expect(collected.locator(".item")).to_have_count(2)
    collected.get_by_role("button", name="Undo").click()
    expect(collected.locator(".item")).to_have_count(3)
    assert starts(collected)[:2] == [first, second]
    expect(collected.get_by_label(re.compile("^Note on")).nth(1)).to_have_value("written since")


def test_undo_puts_back_into_the_collection_that_it_was_taken_out_of(collected: Page) -> None:
    title, items = collected.get_by_label("Title of the collection"), collected.locator(".item")
    others, before = collected.get_by_label("Other collections"), starts(collected)
    collected.get_by_role("button", name=re.compile("^Take .* out")).first.click()
    title.fill("Rockets")
    title.press("Enter")
    expect(others.locator("option")).to_have_text(["Rockets"])
    collected.get_by_role("button", name="new", exact=True).click()
    expect(items).to_have_count(0)
    with collected.expect_response("**/api/kept") as kept:
        collected.get_by_role("button", name="Undo").click()
    assert kept.value.ok
    expect(title).to_have_value("Untitled")
    expect(items).to_have_count(0)
    others.select_option("Rockets")
    expect(items).to_have_count(2)
    assert starts(collected) == before


def test_it_is_there_after_a_reload_and_in_another_tab(collected: Page) -> None:
    other = collected.context.new_page()
    other.goto(collected.url)
    expect(other.locator(".item")).to_have_count(2)
    other.get_by_role("button", name=re.compile("^Take .* out")).first.click()
    expect(collected.locator(".item")).to_have_count(1)
    collected.reload()
    expect(collected.locator(".item")).to_have_count(1)


def test_an_older_answer_of_the_library_does_not_hide_what_another_tab_kept(collected: Page) -> None:
    """A tab that met a second version while a third one was being kept showed the second for good."""
    held: dict[str, tuple[Route, APIResponse | None]] = {}
    awaited = ["PUT"]
    passed: set[Request] = set()

    def hold(route: Route) -> None:
        method = route.request.method
        if method not in awaited:
            passed.add(route.request)
            route.continue_()
            return
        awaited.remove(method)
        held[method] = (route, route.fetch() if method == "GET" else None)
        other.evaluate("title => { document.title = title; }", f"{method} is held")

    other = collected.context.new_page()
    other.goto(collected.url)
    expect(other.locator(".item")).to_have_count(2)
    other.route(re.compile("/api/kept([?]kind=collection)?$"), hold)

    def end(request: Request) -> None:
        passed.discard(request)

    def hear() -> None:
        """Wait until the tab has heard of a change and has read what it asked for then."""
        expect(other).to_have_title("heard")
        other.evaluate("async () => (await fetch('/api/kept?kind=collection')).text()")
        while passed:
            other.wait_for_timeout(10)
        other.evaluate("document.title = ''")

    other.on("requestfinished", end)
    other.evaluate(HEAR)
    other.get_by_role("button", name=re.compile("^Take .* out")).last.click()
    expect(other).to_have_title("PUT is held")  # without the last moment, on its way
    collected.get_by_role("button", name=re.compile("^Take .* out")).first.click()
    hear()
    awaited.append("GET")
    held["PUT"][0].continue_()
    expect(other).to_have_title("GET is held")  # without the first one, on its way back
    collected.get_by_role("button", name="Undo").click()
    hear()
    route, answer = held["GET"]
    route.fulfill(response=answer)
    expect(other.locator(".item")).to_have_count(2)


HEAR = """() => {
  const channel = new BroadcastChannel("moviola.collections");
  channel.onmessage = () => { document.title = "heard"; };
}"""


def test_a_note_that_is_being_written_outlives_a_change_in_another_tab(collected: Page) -> None:
    other = collected.context.new_page()
    other.goto(collected.url)
    expect(other.locator(".item")).to_have_count(2)
    note = collected.get_by_label(re.compile("^Note on")).first
    note.press_sequentially("a thought")
    note.press("Home")
    other.get_by_role("button", name=re.compile("^Take .* out")).last.click()
    expect(collected.locator(".item")).to_have_count(1)
    expect(note).to_be_focused()
    collected.keyboard.type("half ")
    expect(note).to_have_value("half a thought")
    expect(other.get_by_label(re.compile("^Note on"))).to_have_value("half a thought")
    expect(other.locator(".item")).to_have_count(1)


def test_a_note_that_is_being_written_outlives_a_reload(collected: Page) -> None:
    collected.get_by_label(re.compile("^Note on")).first.press_sequentially("not left yet")
    collected.reload()
    expect(collected.get_by_label(re.compile("^Note on")).first).to_have_value("not left yet")
    expect(collected.locator("#notices")).to_be_empty()


def test_a_note_takes_no_more_than_is_kept_of_it(collected: Page) -> None:
    note = collected.get_by_label(re.compile("^Note on")).first
    note.focus()
    collected.keyboard.insert_text("x" * 5001)
    expect(note).to_have_value("x" * 5000)
    note.blur()
    collected.reload()
    expect(note).to_have_value("x" * 5000)


def test_order_by_keys_buttons_and_dragging(collected: Page) -> None:
    first, second = starts(collected)
    collected.locator(".item .opener").first.focus()
    collected.keyboard.press("Alt+ArrowDown")
    assert starts(collected) == [second, first]
    expect(collected.locator(".item .opener").nth(1)).to_be_focused()
    collected.get_by_role("button", name=re.compile("^Move .* up")).nth(1).click()
    assert starts(collected) == [first, second]
    collected.locator(".grip").nth(1).drag_to(collected.locator(".item").first)
    assert starts(collected) == [second, first]


def test_ends_are_trimmed_on_the_timeline_and_in_the_list(collected: Page) -> None:
    before = starts(collected)[0]
    player = collected.locator("#player")
    collected.locator(".item .opener").first.click()
    # The timeline is as long as the moment until the video is known.
    expect(player.locator(".player-time")).to_contain_text("/ 0:24")
    handle = player.get_by_role("slider", name="Start of the moment")
    expect(handle).to_have_attribute("aria-valuetext", before)
    handle.focus()
    for _ in range(3):
        collected.keyboard.press("ArrowRight")
    later = handle.get_attribute("aria-valuetext")
    assert later and later != before
    box = player.get_by_role("slider", name="End of the moment").bounding_box()
    assert box
    end = player.get_by_role("slider", name="End of the moment").get_attribute("aria-valuenow")
    collected.mouse.move(box["x"] + 7, box["y"] + 30)
    collected.mouse.down()
    collected.mouse.move(box["x"] + 60, box["y"] + 30, steps=4)
    collected.mouse.up()
    collected.keyboard.press("Escape")
    assert starts(collected)[0] == later
    moved = collected.locator(".item").get_by_label(re.compile("^End of")).first
    assert float(moved.input_value().split(":")[1]) > float(end or 0)
    moved.fill("0:01")
    moved.press("Enter")
    assert moved.evaluate("field => field.validationMessage") == "The end must come after the start"
    moved.fill("9:59")
    moved.press("Enter")
    expect(moved).to_have_js_property("validationMessage", "The video ends at 0:24.0")
    moved.fill("0:12.5")
    moved.press("Enter")
    expect(collected.locator(".item").first).to_contain_text(" s")
    collected.reload()
    expect(collected.locator(".item").get_by_label(re.compile("^End of")).first).to_have_value("0:12.5")


def test_a_field_that_is_left_shows_what_holds(collected: Page) -> None:
    notices = collected.locator("#notices")
    end = collected.locator(".item").get_by_label(re.compile("^End of")).first
    before = end.input_value()
    for wrong, why in (
        ("abc", "Write seconds or m:ss"),
        ("", "Write seconds"),
        ("9:59", "The video ends at"),
    ):
        end.fill(wrong)
        end.blur()
        expect(notices).to_contain_text(why)
        expect(end).to_have_value(before)
        assert end.evaluate("field => field.validity.valid")
    end.fill("abc")
    end.press("Enter")
    expect(end).to_have_js_property("validationMessage", "Write seconds or m:ss")
    end.blur()
    expect(end).to_have_value(before)
    title = collected.get_by_label("Title of the collection")
    title.fill("Rockets")
    title.press("Enter")
    collected.get_by_role("button", name="new", exact=True).click()
    expect(title).to_have_value("Untitled")
    for wrong, why in (("", "Give it a name"), ("Rockets", "There is a collection “Rockets” already")):
        title.fill(wrong)
        title.blur()
        expect(notices).to_contain_text(why)
        expect(title).to_have_value("Untitled")
    title.fill("  Cats ")
    title.blur()
    expect(title).to_have_value("Cats")


def test_notes_title_and_files(collected: Page, tmp_path: Path) -> None:
    collected.get_by_label(re.compile("^Note on")).first.fill("the best one, <b>really</b>")
    collected.get_by_label("Title of the collection").fill("Rockets")
    with collected.expect_download() as download:
        collected.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "Rockets.csv"
    path = tmp_path / "rockets.csv"
    download.value.save_as(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert "the best one, <b>really</b>" in rows[0].values()
    names = [
        option.text_content() or "" for option in collected.get_by_label("Format").locator("option").all()
    ]
    edl = next(name for name in names if "CMX" in name)
    collected.get_by_label("Format").select_option(label=edl)
    with collected.expect_download() as download:
        collected.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "rockets.edl")
    text = (tmp_path / "rockets.edl").read_text()
    assert text.startswith("TITLE: Rockets")
    assert len(re.findall(r"^\d{3}\s", text, re.MULTILINE)) == 2


def test_rate_and_timecode_are_chosen_where_the_format_has_them(collected: Page, tmp_path: Path) -> None:
    rate = collected.get_by_label("Frames a second")
    expect(rate).to_have_count(0)
    collected.get_by_label("Format").select_option("edl")
    rate.select_option("29.97")
    collected.get_by_label("Timecode", exact=True).select_option("drop")
    collected.get_by_label("Timecode of the first frame").fill("02:00:00:00")
    collected.get_by_label("Format").select_option("fcpxml")
    expect(rate).to_have_value("29.97")
    collected.get_by_label("Format").select_option("edl")
    with collected.expect_download() as download:
        collected.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "cut.edl")
    text = (tmp_path / "cut.edl").read_text()
    assert "FCM: DROP FRAME" in text and "02:00:00;00" in text
    collected.get_by_label("Format").select_option("clips")
    expect(rate).to_have_count(0)
    expect(collected.get_by_label("How clips are cut")).to_have_value("exact")


def test_all_play_one_after_another(collected: Page) -> None:
    collected.get_by_role("button", name="Play all").click()
    player = collected.locator("#player")
    expect(player.get_by_text("1 of 2")).to_be_visible()
    until(collected, "!video.paused && !video.seeking && video.readyState >= 3")
    collected.evaluate("document.querySelector('#player video').currentTime += 4.5")
    expect(player.get_by_text("2 of 2")).to_be_visible()


def test_trimming_a_result_before_it_is_collected(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("Space")
    page.evaluate("document.querySelector('#player video').currentTime = 9")
    until(page, "!video.seeking")
    page.keyboard.press("i")
    expect(player.get_by_role("slider", name="Start of the moment")).to_have_attribute(
        "aria-valuetext", "0:09.0"
    )
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    assert starts(page) == ["0:09.0"]


def test_collections_have_names_links_and_an_end(
    collected: Page, open_page: Callable[..., Page], served: Served
) -> None:
    title = collected.get_by_label("Title of the collection")
    title.fill("Rockets & stars")
    title.press("Enter")
    expect(collected).to_have_url(re.compile("name=Rockets"))
    collected.get_by_role("button", name="new", exact=True).click()
    expect(collected.locator(".item")).to_have_count(0)
    expect(title).to_have_value("Untitled")
    collected.get_by_label("Other collections").select_option("Rockets & stars")
    expect(collected.locator(".item")).to_have_count(2)
    visitor = open_page(served, "#" + collected.url.partition("#")[2])
    expect(visitor.locator(".item")).to_have_count(2)
    with visitor.expect_response("**/api/kept") as kept:
        visitor.get_by_label(re.compile("^Note on")).first.fill("theirs")
        visitor.get_by_label(re.compile("^Note on")).first.blur()
    assert kept.value.ok
    # Two who change the same: the second one is shown what the first one did.
    collected.get_by_role("button", name=re.compile("^Take .* out")).last.click()
    expect(collected.locator("#notices")).to_contain_text("changed elsewhere")
    expect(collected.get_by_label(re.compile("^Note on")).first).to_have_value("theirs")
    expect(collected.locator(".item")).to_have_count(2)
    collected.get_by_role("button", name="delete", exact=True).click()
    expect(collected.locator("#notices")).to_contain_text("is deleted")
    expect(collected.locator(".item")).to_have_count(0)
    collected.get_by_role("button", name="Undo").last.click()
    expect(collected.locator(".item")).to_have_count(2)


def test_a_link_to_a_collection_that_is_not_there_says_so(
    collected: Page, open_page: Callable[..., Page], served: Served
) -> None:
    other = open_page(served, "#/collection?name=Theirs")
    expect(other.locator("#notices")).to_contain_text("no collection “Theirs”")
    expect(other.locator(".item")).to_have_count(0)
    known = open_page(served, "#/collection?name=Untitled")
    expect(known.locator(".item")).to_have_count(2)
    expect(known.locator("#notices")).not_to_contain_text("no collection")


def test_what_another_one_renames_or_deletes_is_lost_to_nobody(
    collected: Page, open_page: Callable[..., Page], served: Served
) -> None:
    def annotate(words: str) -> None:
        collected.get_by_label(re.compile("^Note on")).first.fill(words)
        collected.get_by_label(re.compile("^Note on")).first.blur()

    with collected.expect_response("**/api/kept"):
        annotate("first")
    other = open_page(served, "#/collection")
    expect(other.get_by_label(re.compile("^Note on")).first).to_have_value("first")
    with collected.expect_response("**/api/kept"):
        annotate("second")
    other.get_by_label("Title of the collection").fill("Theirs")
    other.get_by_label("Title of the collection").press("Enter")
    expect(other.locator("#notices")).to_contain_text("stays beside this one")
    with httpx2.Client(base_url=served.url) as http:
        assert [entry["name"] for entry in kept(http, "collection")] == ["Theirs", "Untitled"]
        ok(unkeep(http, "collection", "Untitled"))
        annotate("third")
        expect(collected.locator("#notices")).to_contain_text("it is kept again")
        other.get_by_label("Title of the collection").focus()
        other.reload()
        other.get_by_label("Other collections").select_option("Untitled")
        expect(other.get_by_label(re.compile("^Note on")).first).to_have_value("third")
        # Neither is a collection deleted of which there is a newer version than the one that is shown.
        annotate("fourth")
        collected.reload()
        expect(collected.get_by_label(re.compile("^Note on")).first).to_have_value("fourth")
        other.get_by_role("button", name="delete", exact=True).click()
        expect(other.locator("#notices")).to_contain_text("changed elsewhere")
        expect(other.get_by_label(re.compile("^Note on")).first).to_have_value("fourth")


def test_the_focus_stays_when_the_last_moment_is_taken_out(collected: Page) -> None:
    for left in (1, 0):
        collected.get_by_role("button", name=re.compile("^Take .* out")).first.press("Enter")
        expect(collected.locator(".item")).to_have_count(left)
    expect(collected.get_by_label("Title of the collection")).to_be_focused()
    collected.get_by_role("button", name="Undo").last.press("Enter")
    expect(collected.locator(".item")).to_have_count(1)
    expect(collected.get_by_label("Title of the collection")).to_be_focused()


def test_what_the_browser_kept_is_taken_over_once(page: Page) -> None:
    expect(page.locator(".shelf .moment")).to_have_count(4)
    span = {"video_id": "work/launch", "start": 1, "end": 4}
    item = {"id": "a", **span, "score": 0.5, "query": "x", "note": "old"}
    page.evaluate(
        """item => {
          localStorage.clear();
          localStorage.setItem("moviola.collection:photographs", JSON.stringify([item]));
          localStorage.setItem("moviola.collection-title:photographs", JSON.stringify("My cut"));
        }""",
        item,
    )
    with page.expect_response("**/api/kept") as kept:
        page.reload()
    assert kept.value.ok
    page.get_by_role("link", name="Collection 1").click()
    expect(page.get_by_label("Title of the collection")).to_have_value("My cut")
    expect(page.get_by_label(re.compile("^Note on"))).to_have_value("old")
    page.reload()
    expect(page.locator(".item")).to_have_count(1)
    assert page.evaluate("localStorage.getItem('moviola.collection:photographs')") is None
