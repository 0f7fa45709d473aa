"""The player: conversions, swipes, speed, pictures, words, what comes next."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO

import httpx2
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import CDPSession, Page, Route, expect

from page_server import Served
from page_visitor import PHONE, WINDOWS, card, moments, opened, search, serious, until, video_time

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]


def test_a_conversion_shows_how_far_it_is(page: Page) -> None:
    answers = [{"share": None, "seconds_left": None}, {"share": 0.43, "seconds_left": 120.0}]
    held: list[Route] = []
    done = False

    def converting(route: Route) -> None:
        if done:
            route.continue_()
            return
        if not answers:
            held.append(route)
            return
        error = {"code": "busy", "message": "being converted", "progress": answers.pop(0)}
        route.fulfill(status=503, json={"error": error})

    page.route("**/stream", converting)
    search(page, "a rocket")
    card(page).locator(".opener").click()
    player = page.locator("#player")
    expect(player.get_by_role("status").filter(has_text="Being converted")).to_be_visible()
    expect(player.get_by_text("43%, about 2 minutes left")).to_be_visible()
    expect(player.get_by_role("progressbar")).to_have_js_property("value", 0.43)
    assert serious(page) == []
    done = True
    for route in held:
        route.continue_()
    until(page, "video.readyState >= 2 && !video.paused")
    expect(player.get_by_role("progressbar")).to_have_count(0)


# ---- swipes ------------------------------------------------------------------------------------------------


@pytest.fixture
def phone(open_page: Opener, served: Served) -> Page:
    """A phone with the first of several moments open."""
    page = open_page(served, **PHONE)
    search(page, "a rocket")
    opened(page)
    return page


@contextmanager
def finger(page: Page, by: tuple[float, float]) -> Iterator[CDPSession]:
    """A finger that moves over the video; it is lifted at the end."""
    box = page.locator("#player .screen").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    touch = page.context.new_cdp_session(page)
    points = [(x + by[0] * part, y + by[1] * part) for part in (0, 0.25, 0.5, 0.75, 1)]
    for kind, (left, top) in zip(["touchStart", *["touchMove"] * 4], points, strict=True):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": left, "y": top}]})
    yield touch
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_band_is_whole_beside_a_short_title(phone: Page) -> None:
    place = phone.locator("#player .player-head .muted")
    expect(place).to_contain_text("strong")
    assert place.evaluate("place => place.scrollWidth <= place.clientWidth")


def test_a_swipe_goes_on_and_back_and_closes(phone: Page) -> None:
    place, screen = phone.locator("#player .player-head .muted"), phone.locator("#player .screen")
    expect(place).to_contain_text("1 of")
    with finger(phone, (-140, 10)):
        expect(screen).to_have_css("translate", re.compile(r"-140px"))
    expect(place).to_contain_text("2 of")
    expect(screen).to_have_css("translate", "none")
    with finger(phone, (140, 10)):
        pass
    expect(place).to_contain_text("1 of")
    with finger(phone, (30, 20)):  # too short for anything
        pass
    with finger(phone, (0, -140)):  # up means nothing
        pass
    expect(place).to_contain_text("1 of")
    with finger(phone, (10, 200)):
        pass
    expect(phone.locator("#player")).to_be_hidden()


def test_nothing_moves_with_the_finger_of_those_who_want_stillness(phone: Page) -> None:
    phone.emulate_media(reduced_motion="reduce")
    with finger(phone, (-140, 0)):
        expect(phone.locator("#player .screen")).to_have_css("translate", "none")
    expect(phone.locator("#player .player-head .muted")).to_contain_text("2 of")


def test_a_tap_plays_and_pauses_after_a_swipe_too(phone: Page) -> None:
    with finger(phone, (-140, 0)):
        pass
    until(phone, "video.readyState >= 2 && !video.paused")
    phone.locator("#player .screen").tap()
    until(phone, "video.paused")


# ---- speed, pictures, words --------------------------------------------------------------------------------


def test_the_speed_is_chosen_by_keys_and_menu_and_stays(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press(">")
    page.keyboard.press(">")
    until(page, "video.playbackRate === 1.5")
    expect(player.get_by_label("Speed")).to_have_value("1.5")
    page.keyboard.press("<")
    until(page, "video.playbackRate === 1.25")
    player.get_by_label("Speed").select_option("2×")
    player.get_by_role("button", name="Next moment").click()
    until(page, "video.readyState >= 2 && video.playbackRate === 2")


def test_the_picture_that_is_shown_is_saved_as_it_is(page: Page, served: Served) -> None:
    search(page, "a rocket")
    opened(page)
    page.keyboard.press("Space")
    until(page, "video.paused && !video.seeking")
    # Eight pictures a second: one is shown from 8 to 8.125, and the step ends in the middle of the next.
    page.locator("video").evaluate("video => { video.currentTime = 8.06; }")
    until(page, "!video.seeking && video.readyState >= 2")
    page.keyboard.press(".")
    until(page, "video.currentTime > 8.1 && !video.seeking && video.readyState >= 2")
    with page.expect_download() as saved:
        page.keyboard.press("S")
    assert re.fullmatch(r"launch 0\.\d\d\.\d{3}\.png", saved.value.suggested_filename)
    picture = Image.open(saved.value.path()).convert("RGB")
    wanted = {"time": video_time(page), "width": picture.width}
    still = httpx2.get(f"{served.url}/api/videos/work%2Flaunch/still", params=wanted)
    shown = Image.open(BytesIO(still.content)).convert("RGB")
    assert picture.size == shown.size == (320, 180)
    assert np.abs(np.asarray(picture, float) - np.asarray(shown, float)).mean() < 6  # the next picture has 12


def test_picture_and_path_are_copied_from_the_menu(open_page: Opener, served: Served) -> None:
    page = open_page(served, permissions=["clipboard-read", "clipboard-write"])
    search(page, "a rocket")
    player = opened(page)
    player.locator("summary").click()
    player.get_by_role("button", name="copy the picture").click()
    expect(page.locator("#notices")).to_contain_text("The picture is copied")
    kinds = page.evaluate("async () => (await navigator.clipboard.read()).flatMap(item => item.types)")
    assert kinds == ["image/png"]
    player.locator("summary").click()
    assert serious(page) == []
    page.keyboard.press("Escape")
    expect(player.get_by_role("button", name="copy the file's path")).to_be_hidden()
    expect(player).to_be_visible()
    player.locator("summary").click()
    player.get_by_role("button", name="copy the file's path").click()
    expect(page.locator("#notices")).to_contain_text("The path is copied")
    path = page.evaluate("navigator.clipboard.readText()")
    assert path.endswith("launch.mp4") and path.startswith("/")


def test_the_folder_is_opened_by_a_server_on_this_machine(page: Page) -> None:
    """The request alone: no file manager is started by a test."""
    page.route("**/folder", lambda route: route.fulfill(status=204))
    search(page, "a rocket")
    player = opened(page)
    player.locator("summary").click()
    with page.expect_request("**/api/videos/work%2Flaunch/folder") as opening:
        player.get_by_role("button", name="open its folder").click()
    assert opening.value.method == "POST"


def test_the_menu_lies_inside_windows_of_any_size(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    player.locator(".more-actions button").nth(2).wait_for(state="attached")
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        player.locator("summary").click()
        for button in player.locator(".more-actions button").all():
            box = button.bounding_box()
            assert box and box["x"] >= 0 and box["x"] + box["width"] <= width, (width, height)
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, (width, height)
        player.locator("h2").click()  # elsewhere
        expect(player.locator(".more-actions button").first).to_be_hidden()


def test_said_and_written_stand_apart_and_both_follow(page: Page) -> None:
    cues = [
        {"start": 2.0 * i, "end": 2.0 * i + 2, "text": f"{kind} {i}", "kind": kind}
        for i in range(400)
        for kind in ("speech", "text")
    ]
    page.route(re.compile("/cues$"), lambda route: route.fulfill(json={"cues": cues}))
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("Space")
    said, written = (player.get_by_role("region", name=name) for name in ("Said", "Written"))
    expect(said.locator("li").first).to_contain_text("speech 0")
    expect(written.locator("li").first).to_contain_text("text 0")
    written.locator("button", has_text=re.compile(r"text 3$")).click()
    for words, kind in ((said, "speech"), (written, "text")):
        expect(words.locator("[aria-current]")).to_have_count(1)
        expect(words.locator("[aria-current]")).to_contain_text(f"{kind} 3")
        expect(words.locator("[aria-current]")).to_be_in_viewport()


def test_what_comes_next_is_loaded_ahead(page: Page) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    found = search(page, "a rocket")["moments"]
    until_next = next(i for i, one in enumerate(found) if one["video_id"] != found[0]["video_id"])
    card(page).locator(".opener").focus()
    page.keyboard.press("w")  # weak moments follow strong ones, too
    expect(moments(page)).to_have_count(len(found))
    page.evaluate("document.querySelector('#results').scrollTo(0, 0)")
    following = found[until_next]
    name = following["video_id"].replace("/", "%2F").replace(" ", "%20")
    wanted = (f"/{name}/stream", f"/{name}/still?time={following['start']:g}&width=960", f"/{name}/strip")
    # Where the next moment is of another video at once, it is loaded as soon as the player opens.
    with page.expect_request(lambda request: f"/{name}/stream" in request.url):
        opened(page)
        for _ in range(until_next - 1):
            page.keyboard.press("n")
    assert all(any(part in url for url in requested) for part in wanted[:2])


def test_the_focus_stays_where_it_was_as_the_video_plays_and_pauses(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    until(page, "!video.paused")
    player.get_by_role("button", name="Pause (space)").focus()
    page.keyboard.press("Enter")
    until(page, "video.paused")
    expect(player.get_by_role("button", name="Play (space)")).to_be_focused()
    player.get_by_role("button", name="collect", exact=True).focus()
    page.keyboard.press("Enter")
    expect(player.get_by_role("button", name="collected")).to_be_focused()


def test_a_moment_lies_within_the_video(page: Page) -> None:
    """At its end, the picture that is shown is at its length, or beyond where that is rounded."""
    page.goto(page.url.partition("#")[0] + "#/search?play=work/launch@1-5")
    time = page.locator("#player .player-time")
    expect(time).to_contain_text("/ 0:24")
    until(page, "video.readyState >= 2")
    page.evaluate("document.querySelector('#player video').pause()")
    page.evaluate("document.querySelector('#player video').currentTime = 24")
    until(page, "!video.seeking && video.currentTime > 23.95")
    page.keyboard.press("i")
    expect(time).to_contain_text("0:23.9–0:24.0")
    page.keyboard.press("o")
    expect(time).to_contain_text("0:23.9–0:24.0")
    clip = page.get_by_role("link", name="clip").get_attribute("href")
    assert page.request.get(f"{page.url.partition('#')[0]}{clip}").ok


def test_messages_are_seen_over_an_open_player_and_on_the_full_screen(
    open_page: Opener, own_server: Served
) -> None:
    page = open_page(own_server)
    found = search(page, "a rocket")["moments"]
    page.locator("#results").press("w")
    expect(moments(page)).to_have_count(len(found))
    player = opened(page)
    own_server.stop()
    page.keyboard.press("ArrowDown")
    away = player.locator("#offline")
    expect(away).to_contain_text("does not answer")
    page.keyboard.press("F")
    until(page, "document.fullscreenElement !== null")
    expect(page.locator(":fullscreen #offline")).to_be_visible()
    expect(page.locator(":fullscreen video")).to_have_js_property("controls", True)
    page.evaluate("document.querySelector('#player video').pause()")
    until(page, "video.paused")
    page.locator(":fullscreen video").click()
    until(page, "!video.paused")
    page.locator(":fullscreen video").click()
    until(page, "video.paused")
    page.keyboard.press("c")
    expect(page.locator(":fullscreen .notice").filter(has_text="In “")).to_be_visible()
    page.keyboard.press("F")
    until(page, "document.fullscreenElement === null")
    expect(player.locator("#offline")).to_be_visible()
    expect(page.locator("#player video")).to_have_js_property("controls", False)
