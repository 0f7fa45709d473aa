"""Stills that move, and the player."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from page_server import Served
from page_visitor import card, opened, search, until, video_time

# Of the address, in whose JSON marks are.
RIGHT, WRONG = re.compile("%22right%22"), re.compile("%22wrong%22")
TWO_RIGHT = re.compile(f"{RIGHT.pattern}.*(%22video_id%22.*){{2}}")

pytestmark = pytest.mark.slow


def test_a_moment_opens_and_plays_inside_its_span(page: Page) -> None:
    found = search(page, "stars and galaxies")["moments"][0]
    opened(page)
    until(page, "!video.paused")
    assert found["start"] <= video_time(page) < found["end"]
    until(page, f"video.currentTime > {found['start']} + 0.5")
    assert found["start"] <= video_time(page) < found["end"]
    expect(page).to_have_url(re.compile("play="))


def test_it_stops_at_the_end_of_the_moment(page: Page) -> None:
    found = search(page, "stars and galaxies")["moments"][0]
    opened(page)
    page.evaluate(f"document.querySelector('#player video').currentTime = {found['end']} - 0.4")
    until(page, "video.paused")
    assert found["end"] - 0.5 <= video_time(page) <= found["end"]


def test_the_timeline_has_span_shots_cues_and_the_curve(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    expect(player.locator(".whole-video .curve")).to_have_count(1)
    expect(player.locator(".whole-video .span")).to_have_count(1)
    expect(player.locator(".whole-video .shot").first).to_be_attached()
    expect(player.locator(".whole-video .cue")).to_have_count(3)
    expect(player.locator(".cues mark", has_text="rocket")).to_have_count(1)
    player.locator(".cues button").last.click()
    until(page, "video.currentTime >= 15")
    strip = player.locator(".near-stills")
    expect(strip).to_have_attribute("src", re.compile("/strip"))
    expect(strip).not_to_have_js_property("naturalWidth", 0)


def test_where_else_a_click_on_the_whole_video_goes_there(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("Space")
    until(page, "video.paused")
    expect(player.locator(".whole-video .curve")).to_have_count(1)
    box = player.locator(".whole-video").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    until(page, "Math.abs(video.currentTime - 18) < 0.5")


def test_next_and_previous_moment(page: Page) -> None:
    found = [moment for moment in search(page, "a rocket")["moments"] if moment["band"] != "weak"]
    player = opened(page)
    expect(player.get_by_text(f"1 of {len(found)}")).to_be_visible()
    page.keyboard.press("n")
    expect(player.get_by_text(f"2 of {len(found)}")).to_be_visible()
    until(page, f"video.currentTime >= {found[1]['start']}")
    player.get_by_role("button", name="Previous moment").click()
    expect(player.get_by_text(f"1 of {len(found)}")).to_be_visible()


def test_the_wheel_over_a_still_scrubs_through_its_moment(page: Page) -> None:
    search(page, "a rocket")
    still = card(page).locator(".still")
    box = still.bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    page.mouse.wheel(0, 150)
    strip = still.locator(".strip")
    expect(strip).to_be_visible()
    expect(still.locator(".position")).to_have_attribute("data-time", re.compile(r"0:0\d"))
    first = still.locator(".position").get_attribute("data-time")
    page.mouse.wheel(0, 100)
    expect(still.locator(".position")).not_to_have_attribute("data-time", first or "")
    assert page.evaluate("window.scrollY") == 0
    page.mouse.move(5, 5)
    expect(strip).to_be_hidden()


def test_resting_on_a_still_plays_it_muted(page: Page) -> None:
    found = search(page, "a rocket")["moments"][0]
    box = card(page).locator(".still").bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    video = card(page).locator(".still video.moving")
    expect(video).to_be_visible()
    expect(video).to_have_js_property("muted", True)
    assert found["start"] - 0.1 <= video.evaluate("video => video.currentTime") <= found["end"] + 0.3
    page.mouse.move(5, 5)
    expect(video).to_have_count(0)


def test_resting_on_a_still_has_no_video_converted(page: Page) -> None:
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/stream" in request.url else None)

    def unplayable(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"playable": False, "stream_ready": False})

    page.route(re.compile("/api/videos/work%2Flaunch$"), unplayable)
    search(page, "a rocket")
    box = card(page).locator(".still").bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    position = card(page).locator(".position")
    expect(position).to_be_visible()
    first = position.get_attribute("data-time") or ""
    expect(position).not_to_have_attribute("data-time", first)
    page.mouse.move(5, 5)
    expect(position).to_be_hidden()
    assert not streams


def test_those_who_want_stillness_get_it(open_page: Callable[..., Page], served: Served) -> None:
    page = open_page(served, reduced_motion="reduce")
    page.clock.install()
    search(page, "a rocket")
    box = card(page).locator(".still").bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    page.clock.run_for(3000)
    expect(page.locator(".still video")).to_have_count(0)


def test_what_was_opened_is_marked_as_seen(page: Page) -> None:
    search(page, "a rocket")
    opened(page)
    page.keyboard.press("Escape")
    expect(page.locator("#player")).to_be_hidden()
    expect(card(page)).to_have_class(re.compile("seen"))
    expect(card(page, 1)).not_to_have_class(re.compile("seen"))
    expect(card(page).locator("img").first).to_have_css("opacity", "1")
    page.reload()
    expect(card(page)).to_have_class(re.compile("seen"))


def test_a_link_opens_the_player_and_back_closes_it(
    page: Page, open_page: Callable[..., Page], served: Served
) -> None:
    search(page, "a rocket")
    opened(page)
    expect(page).to_have_url(re.compile("play="))
    other = open_page(served, "#" + page.url.partition("#")[2])
    expect(other.locator("#player")).to_be_visible()
    expect(other.locator("#player h2")).to_have_text("launch")
    # The answer comes later, and with it the moments before and after; the address stays.
    expect(other.locator(".player-head .muted")).to_contain_text("1 of ")
    expect(other).to_have_url(re.compile(re.escape(page.url.partition("#")[2])))
    other.get_by_role("button", name="Next moment").click()
    expect(other.locator(".player-head .muted")).to_contain_text("2 of ")
    other.get_by_role("button", name="Previous moment").click()
    expect(other.locator(".player-head .muted")).to_contain_text("1 of ")
    page.go_back()
    expect(page.locator("#player")).to_be_hidden()
    expect(page.get_by_label("What to look for")).to_have_value("a rocket")


def test_back_after_escape_does_not_open_the_player_again(page: Page) -> None:
    search(page, "a cat")
    page.keyboard.press("Enter")
    search(page, "a rocket")
    page.keyboard.press("Enter")
    opened(page)
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("play="))
    page.go_back()
    expect(page.get_by_label("What to look for")).to_have_value("a cat")
    expect(page.locator("#player")).to_be_hidden()
    page.go_forward()
    page.go_forward()
    expect(page.locator("#player")).to_be_visible()


def test_back_after_marks_and_escape_does_not_open_the_player_again(page: Page) -> None:
    """The search with the marks has a place of its own, between the one without and nothing."""
    page.clock.install()
    search(page, "a cat")
    page.keyboard.press("Enter")
    search(page, "a rocket")
    page.keyboard.press("Enter")
    opened(page)
    for marked in (RIGHT, TWO_RIGHT):
        page.keyboard.press("+")
        expect(page).to_have_url(marked)
        page.clock.fast_forward(2000)  # the search is settled
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("play="))
    expect(page).to_have_url(TWO_RIGHT)
    page.go_back()
    expect(page).not_to_have_url(re.compile(f"{RIGHT.pattern}|play="))
    expect(page.get_by_label("What to look for")).to_have_value("a rocket")
    expect(page.locator("#player")).to_be_hidden()
    page.go_back()
    expect(page.get_by_label("What to look for")).to_have_value("a cat")


def test_back_closes_the_player_and_what_was_marked_in_it_stays(page: Page) -> None:
    search(page, "a rocket")
    opened(page)
    page.keyboard.press("+")
    expect(page).to_have_url(RIGHT)
    page.go_back()
    expect(page.locator("#player")).to_be_hidden()
    expect(page).to_have_url(RIGHT)
    expect(page).not_to_have_url(re.compile("play="))
    page.go_back()
    expect(page).not_to_have_url(RIGHT)
    expect(page.locator("#player")).to_be_hidden()


def test_marks_in_the_player_are_taken_back_there(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("+")
    expect(page).to_have_url(RIGHT)
    expect(player.get_by_role("status")).to_contain_text("Marked as right")
    player.get_by_role("button", name="Undo").click()
    expect(page).not_to_have_url(RIGHT)
    page.keyboard.press("-")
    expect(page).to_have_url(WRONG)
    page.keyboard.press("u")
    expect(page).not_to_have_url(WRONG)
    page.keyboard.press("p")
    page.keyboard.press("p")
    page.keyboard.press("+")
    page.keyboard.press("p")
    expect(player.get_by_role("button", name="right", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("u")
    expect(player.get_by_role("button", name="right", exact=True)).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("+")
    page.keyboard.press("Escape")
    page.locator("body > #notices").get_by_role("button", name="Undo").click()
    expect(page).not_to_have_url(RIGHT)


def test_the_keys_are_shown_over_the_player(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keys")).to_be_hidden()
    expect(player).to_be_visible()
    expect(player.get_by_text("1 of")).to_be_visible()


def test_a_frame_is_as_long_as_in_the_video(page: Page) -> None:
    """Eight pictures a second."""

    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("Space")
    until(page, "video.paused && !video.seeking")
    expect(player.locator(".whole-video .curve")).to_have_count(1)  # all is known of the video
    for key, frames in ((".", 1), (",", -1)):
        before = video_time(page)
        page.keyboard.press(key)
        until(page, f"Math.abs(video.currentTime - {before + frames / 8}) < 0.005 && !video.seeking")


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [(404, "not_found", "its file is gone"), (409, "unavailable", "no picture can be decoded")],
)
def test_a_fault_of_a_stream_is_shown_and_not_requested_again(
    page: Page, status: int, code: str, said: str
) -> None:
    asked: list[str] = []

    def refused(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=status, json={"error": {"code": code, "message": f"launch: {said}"}})

    page.clock.install()
    page.route("**/stream", refused)
    search(page, "a rocket")
    card(page).locator(".opener").click()
    expect(page.locator("#player").get_by_role("alert")).to_have_text(f"launch: {said}")
    before = len(asked)
    page.clock.run_for(60_000)
    assert len(asked) == before <= 2


def test_a_video_that_is_being_converted_plays_when_that_is_done(page: Page) -> None:
    """503 is asked again; the next stream that is opened is not held up by it."""
    answers = [503, 503, 503]

    def converting(route: Route) -> None:
        if answers:
            message = "launch: being converted for browsers, once"
            error = {"error": {"code": "busy", "message": message}}
            route.fulfill(status=answers.pop(), json=error)
        else:
            route.continue_()

    page.route("**/stream", converting)
    search(page, "a rocket")
    card(page).locator(".opener").click()
    expect(page.locator("#player").get_by_role("alert")).to_contain_text("being converted")
    until(page, "video.readyState >= 2 && !video.paused")
    expect(page.locator("#player").get_by_role("alert")).to_have_count(0)
    assert not answers


def test_more_like_the_picture_that_is_shown(page: Page) -> None:
    search(page, "a rocket")
    opened(page)
    page.keyboard.press("l")
    expect(page.locator("#player")).to_be_hidden()
    expect(page.locator(".chip.picture")).to_contain_text("launch 0:")


def test_a_video_that_is_gone_is_said_to_be(open_page: Callable[..., Page], served: Served) -> None:
    page = open_page(served, "#/search?play=nothing@1-2")
    expect(page.get_by_role("alert").filter(has_text="nothing")).to_be_visible()
