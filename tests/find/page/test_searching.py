"""Asking: words, sequences, exclusions, pictures, filters, links."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from page_server import Served
from page_visitor import card, moments, search, searching

pytestmark = pytest.mark.slow


def test_a_first_search_shows_moments_with_time_and_score(page: Page) -> None:
    expect(page.locator(".shelf .moment")).to_have_count(4)
    found = [moment for moment in search(page, "a rocket")["moments"] if moment["band"] != "weak"]
    expect(moments(page)).to_have_count(len(found))
    expect(page.get_by_role("status").filter(has_text="moments in")).to_contain_text(f"{len(found)} moments")
    expect(card(page).locator(".title")).to_have_text("launch")
    expect(card(page).locator(".opener")).to_have_accessible_name(re.compile(rf", {found[0]['band']}"))
    expect(card(page).locator("img").first).to_have_js_property("complete", True)


def test_a_link_shows_nothing_else_while_its_answer_is_awaited(
    open_page: Callable[..., Page], served: Served
) -> None:
    page = open_page(served, "#/library")
    page.route("**/api/search", lambda route: None)  # no answer comes
    page.goto(f"{served.url}/#/search?query=a+rocket")
    with page.expect_request("**/api/search"):
        page.reload()
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".welcome")).to_have_count(0)


def test_words_that_are_said_are_marked_and_data_is_never_markup(page: Page) -> None:
    search(page, "every point of light is a galaxy")
    snippet = page.locator(".snippet").first
    expect(snippet.locator("mark", has_text="galaxy")).to_be_visible()
    search(page, "<img src=x onerror=alert(1)> galaxy")
    page.get_by_role("button", name="Show the nearest moments").or_(moments(page).first).first.wait_for()
    assert page.locator("img[src=x]").count() == 0


def banded(page: Page, *bands: str) -> None:
    """Answers of one moment of each of these bands, whatever is asked."""

    def answer(route: Route) -> None:
        found = route.fetch()
        first = found.json()["moments"][0] | {"folded": []}
        moments = [
            first | {"start": first["start"] + place / 100, "rank": place + 1, "band": band}
            for place, band in enumerate(bands)
        ]
        route.fulfill(
            response=found, json=found.json() | {"moments": moments, "confident": "strong" in bands}
        )

    page.route("**/api/search", answer)


def test_possible_moments_come_below_a_line(page: Page) -> None:
    """An answer without a strong moment is uncertain, and says how many are possible."""
    banded(page, "strong", "possible", "possible", "weak")
    search(page, "a rocket")
    expect(moments(page)).to_have_count(3)
    expect(page.get_by_role("heading", name="2 possible")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="3 moments in")).to_be_visible()
    page.unroute_all()
    banded(page, "possible", "possible", "weak")
    search(page, "an astronaut")
    expect(moments(page)).to_have_count(2)
    expect(page.get_by_role("status").filter(has_text="Nothing certain; 2 possible")).to_be_visible()


def test_how_a_query_was_read_is_said_and_can_be_undone(page: Page) -> None:
    """With a button, and with a key; what no one holds is named with words to try."""
    search(page, "a rocket without stars")
    note = page.locator(".notes li")
    expect(note).to_contain_text("Read as “a rocket” without “stars”.")
    with searching(page, r"\"a rocket without stars\""):
        note.get_by_role("button", name="Take the words as they are").click()
    expect(page.locator(".notes")).to_have_count(0)
    search(page, "no rocket")
    expect(note).to_contain_text("says only what is not wanted")
    page.locator("#results").press('"')
    expect(page.get_by_label("What to look for")).to_have_value('"no rocket"')
    search(page, "every poynt of light")
    expect(note).to_contain_text("No “poynt” here. Perhaps “point”?")


def test_no_match_is_said_and_the_nearest_are_shown_when_wanted(page: Page) -> None:
    assert search(page, "tax return")["confident"] is False
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    expect(moments(page)).to_have_count(0)
    page.get_by_role("button", name="Show the nearest moments").click()
    expect(moments(page).first).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="nearest")).to_be_visible()


def test_then_and_not_with_a_gap(page: Page) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="then", exact=True).click()
    page.get_by_label("Then, step 2").fill("a galaxy")
    expect(card(page).locator(".time")).to_contain_text("→")
    with page.expect_request(lambda request: '"gap":5' in (request.post_data or "")):
        page.get_by_label("Largest gap in seconds").fill("5")
    page.get_by_role("button", name="not", exact=True).click()
    with page.expect_response(
        lambda response: '"without":["a cat"]' in (response.request.post_data or "")
    ) as one:
        page.get_by_label("Not, 1").fill("a cat")
    assert one.value.ok
    expect(card(page).locator(".title")).to_have_text("launch")
    page.get_by_role("button", name="Without this exclusion").click()
    page.get_by_role("button", name="Without this step").click()
    expect(card(page).locator(".time")).not_to_contain_text("→")


def test_any_number_of_seconds_is_a_gap_and_back_brings_the_one_before(page: Page) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="then", exact=True).click()
    with searching(page, "a galaxy"):
        page.get_by_label("Then, step 2").fill("a galaxy")
    gap = page.get_by_label("Largest gap in seconds")
    gap.fill("")
    for typed in ("7", "2.5"):
        with searching(page, f'"gap":{typed}}}'):
            gap.press_sequentially(typed)
        expect(gap).to_be_focused()
        expect(gap).to_have_value(typed)
        with searching(page, '"gap":null'):
            gap.fill("")
    for wrong in ("-3", "100000000"):
        gap.fill(wrong)
        expect(gap).to_have_attribute("aria-invalid", "true")
    with searching(page, '"gap":30}'):
        gap.fill("30")
    expect(gap).not_to_have_attribute("aria-invalid", "true")
    card(page).locator(".opener").click()  # the earlier search is one to come back to
    page.keyboard.press("Escape")
    expect(page.locator("#player")).to_be_hidden()
    with searching(page, '"gap":90}'):
        gap.fill("90")
    expect(page).to_have_url(re.compile("gap%22%3A90"))
    with searching(page, '"gap":30}'):
        page.go_back()
    expect(gap).to_have_value("30")
    expect(gap).to_be_focused()


def test_filters_narrow_the_answer_and_can_be_taken_away(page: Page) -> None:
    search(page, "a cat")
    page.get_by_role("button", name=re.compile("weak one|nearest moments")).click()
    work = page.locator(".caption .title").filter(has_text="launch")
    expect(work.first).to_be_visible()
    page.get_by_role("button", name="filters", exact=True).click()
    page.get_by_role("checkbox", name="home").check()
    chip = page.locator("#status .chip", has_text="/home")
    expect(chip).to_be_visible()
    expect(work).to_have_count(0)
    expect(moments(page).first).to_be_visible()
    page.get_by_label("Length of the moment, to").fill("0:06")
    expect(page.locator("#status .chip", has_text="moment ..0:06")).to_be_visible()
    chip.get_by_role("button").press("Enter")
    expect(work.first).to_be_visible()
    expect(page.get_by_role("button", name="Without “moment ..0:06”")).to_be_focused()
    shown = moments(page).count()
    page.get_by_label("Length of the moment, to").fill("soon")
    expect(page.get_by_role("alert").filter(has_text="moment length")).to_be_visible()
    for end in ("from", "to"):
        expect(page.get_by_label(f"Length of the moment, {end}")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Where in the video, to")).not_to_have_attribute("aria-invalid", "true")
    expect(moments(page)).to_have_count(shown)
    page.get_by_label("Length of the moment, to").fill("0:10")
    expect(page.locator("#failure")).to_be_empty()


def test_filters_that_are_typed_quickly_all_count(page: Page) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="filters", exact=True).click()
    expect(page.get_by_label("Where in the video, from")).to_be_visible()
    page.evaluate(
        """() => {
          for (const name of ["Length of the moment, from", "Where in the video, from"]) {
            const input = document.querySelector(`[aria-label="${name}"]`);
            input.value = "1";
            input.dispatchEvent(new Event("input"));
          }
        }"""
    )
    for chip in ("moment 1..", "at 1.."):
        expect(page.locator("#status .chip", has_text=chip)).to_be_visible()


def test_no_more_is_taken_than_a_query_may_have(page: Page) -> None:
    page.get_by_label("What to look for").fill("a rocket " * 500)
    expect(page.get_by_label("What to look for")).to_have_attribute("maxlength", "2000")
    page.goto(f"{page.url.split('#')[0]}#/search?query={'a' * 3000}")
    said = page.get_by_role("alert")
    expect(said.filter(has_text="2,000 characters")).to_have_text(
        "Too long: at most 2,000 characters can be given."
    )
    expect(page.get_by_label("What to look for")).to_have_attribute("aria-invalid", "true")


def test_a_picture_that_is_not_there_is_said_without_names_of_the_api(page: Page) -> None:
    start = page.url.split("#")[0]
    for picture in ("abc", "0" * 32):
        with searching(page):
            page.goto(f'{start}#/search?query={{"terms":[{{"picture":"{picture}"}}]}}')
        expect(page.locator("#failure")).to_have_text(
            "A picture of this search is not on the server, or no longer: choose it again."
        )
        page.get_by_role("button", name="Without picture").click()
        expect(page.locator("#failure")).to_be_empty()


def test_coarse_and_by_evidence(page: Page) -> None:
    search(page, "galaxy")
    page.get_by_role("button", name="filters", exact=True).click()
    with page.expect_request(lambda request: '"refine":false' in (request.post_data or "")):
        page.get_by_label("Refined ends").uncheck()
    with page.expect_request(lambda request: '"by":"subtitles"' in (request.post_data or "")):
        page.get_by_label("Found by").select_option("subtitles")
    expect(card(page).locator(".snippet")).to_contain_text("galaxy")


def test_more_like_this_from_a_still(page: Page) -> None:
    search(page, "a cat")
    card(page).hover()
    card(page).get_by_role("button", name="More like this picture").click()
    expect(page.locator(".chip.picture")).to_contain_text("a cat")
    expect(card(page).locator(".title")).to_have_text("a cat")
    expect(page).to_have_url(re.compile("video_id"))


def test_a_picture_that_is_chosen_pasted_or_dropped(page: Page, tmp_path: Path) -> None:
    expect(page.locator(".shelf .moment").first).to_be_visible()
    photograph = page.request.get(
        f"{page.url.split('#')[0]}api/videos/work%2Flaunch/still?time=10&width=320"
    ).body()
    picture = tmp_path / "rocket.jpg"
    picture.write_bytes(photograph)
    page.get_by_label("A picture to look for").set_input_files(picture)
    expect(page.locator(".chip.picture")).to_contain_text("rocket.jpg")
    expect(card(page).locator(".title")).to_have_text("launch")
    page.get_by_label("What to look for").fill("a rocket")
    expect(page.get_by_label("Weight of the words")).to_be_visible()
    page.get_by_role("button", name="Clear the search").click()
    data = page.evaluate_handle(
        """async (bytes) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], "dropped.jpg", { type: "image/jpeg" }));
          return data;
        }""",
        list(photograph),
    )
    page.dispatch_event("main", "dragover", {"dataTransfer": data})
    expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": data})
    expect(page.locator(".chip.picture")).to_contain_text("dropped.jpg")
    expect(card(page).locator(".title")).to_have_text("launch")
    page.get_by_role("button", name="Without dropped.jpg").click()
    expect(page.locator(".chip.picture")).to_have_count(0)
    page.evaluate(
        """clipboardData => {
          document.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
        }""",
        data,
    )
    expect(page.locator(".chip.picture")).to_have_count(1)
    expect(card(page).locator(".title")).to_have_text("launch")


def test_rows_by_video_with_a_number_a_row(page: Page) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="As rows by video").click()
    expect(page.get_by_role("button", name="As rows by video")).to_be_focused()
    rows = page.locator(".rows > section")
    expect(rows.first.get_by_role("heading")).to_contain_text("launch")
    with page.expect_request(lambda request: '"per_video":3' in (request.post_data or "")):
        page.get_by_label("Moments a row").select_option("3")
    page.keyboard.press("w")
    expect(rows.first.locator(".moment")).to_have_count(3)


def test_a_link_repeats_the_search(page: Page, open_page: Callable[..., Page], served: Served) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="then", exact=True).click()
    page.get_by_label("Then, step 2").fill("a galaxy")
    page.get_by_label("Largest gap in seconds").fill("30")
    page.get_by_role("button", name="filters", exact=True).click()
    page.get_by_label("Where in the video, from").fill("1%")
    expect(page.locator("#status .chip", has_text="at 1%..")).to_be_visible()
    with page.expect_response(lambda response: '"by":"subtitles"' in (response.request.post_data or "")):
        page.get_by_label("Found by").select_option("subtitles")
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    times = card(page).locator(".time").text_content()
    assert times
    other = open_page(served, "#" + page.url.partition("#")[2])
    expect(card(other).locator(".time")).to_have_text(times)
    expect(other.get_by_label("What to look for")).to_have_value("a rocket")
    expect(other.get_by_label("Then, step 2")).to_have_value("a galaxy")
    expect(other.locator("#status .chip", has_text="at 1%..")).to_be_visible()
    expect(other.locator("#status .chip", has_text="by subtitles")).to_be_visible()


def test_back_goes_back_to_the_search_before(page: Page) -> None:
    search(page, "a rocket")
    page.keyboard.press("Enter")
    search(page, "a cat")
    expect(card(page).locator(".title")).to_have_text("a cat")
    page.go_back()
    expect(page.get_by_label("What to look for")).to_have_value("a rocket")
    expect(card(page).locator(".title")).to_have_text("launch")


def test_what_was_looked_for_lately_is_a_click_away(page: Page) -> None:
    search(page, "a rock")
    page.keyboard.press("Enter")
    search(page, "a rocket")
    page.keyboard.press("Enter")
    card(page).locator(".opener").focus()
    page.keyboard.press("l")
    expect(page.locator(".chip.picture")).to_be_visible()
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    card(page).locator(".opener").press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear the search").click()
    lately = page.get_by_role("region", name="Recent searches").get_by_role("link")
    expect(lately).to_have_text([re.compile(r"^like launch 0:\d\d$"), "a rocket"])
    lately.last.click()
    expect(card(page).locator(".title")).to_have_text("launch")


def test_only_this_video(page: Page) -> None:
    search(page, "a rocket")
    page.get_by_role("button", name="As rows by video").click()
    page.locator(".rows > section").first.get_by_role("button", name="only this video").click()
    expect(page.locator(".rows > section")).to_have_count(1)
    expect(page.locator("#status .chip", has_text="only launch")).to_be_visible()


def test_a_later_answer_never_gives_way_to_an_earlier_one(page: Page) -> None:
    """A slow answer to an earlier search is thrown away."""
    held: list[object] = []
    page.route(
        "**/api/search",
        lambda route: held.append(route) if "a cat" in (route.request.post_data or "") else route.continue_(),
    )
    with page.expect_request("**/api/search"):
        page.get_by_label("What to look for").fill("a cat")
    search(page, "a rocket")
    expect(card(page).locator(".title")).to_have_text("launch")
    assert len(held) == 1


def test_examples_to_try_come_from_the_library(page: Page) -> None:
    examples = page.get_by_role("region", name="Try")
    expect(examples.get_by_role("link", name="breakfast")).to_have_count(0)  # a file's name
    expect(page.locator(".shelf .title").first).to_have_text("the collector")  # the one that came in last
    examples.get_by_role("link", name="a cat", exact=True).click()  # it is seen
    expect(page.get_by_label("What to look for")).to_have_value("a cat")
    expect(card(page).locator(".title")).to_have_text("a cat")


def test_strong_moments_come_first_and_say_why(page: Page) -> None:
    found = search(page, "every point of light is a galaxy")["moments"]
    likely = sum(moment["band"] != "weak" for moment in found)
    expect(moments(page)).to_have_count(likely)
    expect(card(page).locator(".reason", has_text="said").locator("q")).to_contain_text("galaxy")
    more = page.get_by_role("button", name="weak one")
    expect(more).to_have_text(re.compile(rf"^{len(found) - likely} weak"))
    page.locator("body").press("w")
    card(page).locator(".opener").focus()
    page.keyboard.press("w")
    expect(moments(page)).to_have_count(len(found))
    page.keyboard.press("w")
    expect(moments(page)).to_have_count(likely)


def test_weak_moments_and_the_address_agree(page: Page) -> None:
    found = search(page, "every point of light is a galaxy")["moments"]
    likely = sum(moment["band"] != "weak" for moment in found)
    button = page.get_by_role("button", name="weak one")
    button.click()
    expect(page).to_have_url(re.compile("shown=all"))
    page.go_back()
    expect(moments(page)).to_have_count(likely)
    expect(page).not_to_have_url(re.compile("shown="))
    page.go_forward()
    expect(moments(page)).to_have_count(len(found))
    expect(page).to_have_url(re.compile("shown=all"))
    card(page).locator(".opener").focus()
    page.keyboard.press("w")
    expect(moments(page)).to_have_count(likely)
    expect(page).not_to_have_url(re.compile("shown="))
    button.click()
    page.keyboard.press("2")
    page.get_by_role("link", name="Search", exact=True).click()
    expect(moments(page)).to_have_count(len(found))
    search(page, "a rocket")
    expect(page).not_to_have_url(re.compile("shown="))


def test_the_first_new_moment_has_the_focus_where_the_button_was(page: Page) -> None:
    """The page stays where it is scrolled to."""

    def many(route: Route) -> None:
        answer = route.fetch()
        first = answer.json()["moments"][0]
        top_k = route.request.post_data_json["top_k"]
        found = [
            first
            | {
                "start": first["start"] + i / 100,
                "band": "strong" if i < top_k - 10 else "weak",
                "folded": [],
            }
            for i in range(top_k)
        ]
        route.fulfill(response=answer, json=answer.json() | {"moments": found})

    def pressed(name: str, new: int) -> None:
        button = page.get_by_role("button", name=name)
        button.scroll_into_view_if_needed()
        scrolled = page.evaluate("window.scrollY")
        button.click()
        expect(card(page, new).locator(".opener")).to_be_focused()
        assert page.evaluate("window.scrollY") == scrolled > 0

    page.route("**/api/search", many)
    search(page, "a rocket")
    expect(moments(page)).to_have_count(14)
    pressed("10 weak ones", 14)
    pressed("More moments", 24)
    expect(moments(page)).to_have_count(48)
    page.get_by_role("button", name="10 weak ones").click()
    expect(moments(page)).to_have_count(38)
    expect(page.get_by_role("button", name="10 weak ones")).to_be_focused()


def test_moments_that_overlap_are_opened_in_place(page: Page) -> None:
    def folding(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        second = content["moments"][1]
        second["folded"] = [{"start": second["start"], "end": second["end"] - 1}]
        route.fulfill(response=answer, json=content)

    page.route("**/api/search", folding)
    search(page, "a rocket")
    card(page, 1).get_by_role("button", name="1 more that overlap").click()
    card(page, 1).locator(".folded .opener").click()
    expect(page.locator("#player")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#player")).to_be_hidden()
    expect(card(page, 1).locator(".folded .opener")).to_be_focused()


def test_each_undo_takes_its_own_mark_back(page: Page) -> None:
    search(page, "a rocket")
    for place, key, kind in ((0, "+", "right"), (1, "-", "wrong")):
        card(page, place).locator(".opener").focus()
        with searching(page, f'"{kind}"'):
            page.keyboard.press(key)
    chip, undo = page.locator("#status .chip"), page.get_by_role("button", name="Undo")
    expect(chip).to_have_text("1 right, 1 wrong")
    with searching(page):
        undo.first.click()
    expect(chip).to_have_text("1 wrong")
    expect(undo).to_have_count(1)
    card(page).locator(".opener").focus()
    with searching(page):
        page.keyboard.press("u")
    expect(chip).to_have_count(0)
    expect(undo).to_have_count(0)


def test_undo_carries_no_marks_into_another_query(page: Page) -> None:
    search(page, "a rocket")
    card(page).locator(".opener").focus()
    with searching(page, '"right"'):
        page.keyboard.press("+")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.keyboard.press("=")  # the same key: taken away
    expect(page.locator("#status .chip")).to_have_count(0)
    search(page, "a cat")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    card(page).locator(".opener").focus()
    page.keyboard.press("u")
    page.keyboard.press("u")
    expect(page).not_to_have_url(re.compile("right"))
    expect(page.locator("#status .chip")).to_have_count(0)


def test_marks_teach_the_answer_and_a_name(open_page: Callable[..., Page], own_server: Served) -> None:
    page = open_page(own_server)
    first = search(page, "a rocket")["moments"][0]
    card(page).locator(".opener").focus()
    with searching(page, '"right"') as answered:
        page.keyboard.press("+")
    marks = answered.value.request.post_data_json["query"]["right"]
    assert [mark["video_id"] for mark in marks] == [first["video_id"]]
    expect(page.locator(".moment.right")).to_have_count(1)
    expect(page.locator("#status .chip", has_text="1 right")).to_be_visible()
    with searching(page, '"wrong"'):
        card(page, 1).hover()
        card(page, 1).get_by_role("button", name="Wrong").click()
    expect(page).to_have_url(re.compile("wrong"))
    with searching(page):
        page.get_by_role("button", name="Undo").last.click()
    expect(page.locator("#status .chip", has_text="1 right")).to_have_text("1 right")
    teach = page.get_by_role("button", name="teach this as…")
    teach.click()
    page.get_by_label("Name of the concept").fill("our")
    page.keyboard.press("Escape")
    expect(teach).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("Name of the concept").fill("our rocket")
    page.keyboard.press("Enter")
    expect(page.locator("#notices")).to_contain_text("@our-rocket stands for this")
    expect(teach).to_be_focused()
    box = page.get_by_label("What to look for")
    box.fill("")
    box.press_sequentially("@o")
    expect(page.locator("#words-names").get_by_role("option")).to_have_text("@our-rocketour rocket")
    page.keyboard.press("ArrowDown")  # there is no other one: it stays chosen
    with searching(page, "@our-rocket"):
        page.keyboard.press("Enter")
    expect(box).to_have_value("@our-rocket ")
    expect(card(page).locator(".title")).to_have_text("launch")


def test_a_search_that_fails_late_is_no_longer_said_to_be_going_on(page: Page) -> None:
    search(page, "a rocket")
    late: list[Route] = []
    page.route("**/api/search", lambda route: late.append(route))  # noqa: PLW0108 -- playwright reads its signature
    page.get_by_label("What to look for").fill("a cat")
    expect(page.locator("#status")).to_contain_text("Searching…")
    late[0].fulfill(status=409, json={"error": {"code": "unavailable", "message": "the index is damaged"}})
    expect(page.locator("#failure")).to_have_text("the index is damaged")
    expect(page.locator("#status")).not_to_contain_text("Searching…")
    expect(page.locator("#status")).to_contain_text("moment")


def test_keys_act_on_the_moment_that_has_the_focus_in_any_of_its_buttons(page: Page) -> None:
    shown: list[dict[str, float]] = []

    def folded(route: Route) -> None:
        answer = route.fetch().json()
        shown[:] = answer["moments"]
        for moment in answer["moments"]:
            moment["folded"] = [{"start": moment["start"], "end": moment["end"]}]
        route.fulfill(json=answer)

    page.route("**/api/search", folded)
    page.get_by_label("What to look for").fill("a rocket")
    page.get_by_role("button", name=re.compile("weak one|nearest", re.IGNORECASE)).first.click()
    card(page, 1).get_by_role("button", name="1 more that overlaps").focus()
    with page.expect_request("**/api/search") as asked:
        page.keyboard.press("+")
    assert asked.value.post_data_json["query"]["right"][0]["start"] == shown[1]["start"]
