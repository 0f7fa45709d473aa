"""Bringing videos in, what was refused, and a server that goes and comes back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect

from distinct import film_like
from http_calls import keep, kept, ok
from moviola.search import Library
from moviola.types import BANDS
from page_server import Served
from page_visitor import card, moments, search, searching, serious, until

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
    job = page.get_by_role("article", name=re.compile("^Videos being brought in"))
    expect(job.locator(".refused")).to_contain_text("broken", timeout=120_000)
    expect(job).to_contain_text("1 video added", timeout=120_000)
    expect(page.locator(".videos tbody tr", has_text="another cat")).to_be_visible()
    files = page.get_by_role("region", name="Refused files").get_by_role("listitem")
    expect(files).to_have_count(1)
    expect(files.get_by_role("button", name="Read broken again")).to_be_visible()
    said = page.locator("[aria-labelledby=videos-title] .table-head").get_by_role("status")
    expect(said).to_have_text("5 videos, 1 file refused")
    expect(page.locator(".roots li", has_text=str(own_server.incoming))).to_contain_text("1 video")
    expect(page.locator(".facts div", has_text="Videos")).to_contain_text("5,")
    page.get_by_label("Videos by state").select_option("refused")
    expect(page.locator(".videos tbody tr")).to_have_count(1)
    expect(said).to_have_text("1 file refused")
    expect(page.locator(".videos .why")).not_to_be_empty()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Search").click()
    search(page, "a cat")
    expect(page.locator(".caption .title", has_text="another cat").first).to_be_visible()
    page.get_by_role("link", name="Library").click()
    page.get_by_label("Language").select_option("de")
    files = page.get_by_role("region", name="Abgelehnte Dateien").get_by_role("listitem")
    expect(files.locator(".why")).to_have_text("trotz des Namens (.mp4) eine Textdatei, kein Video")
    page.get_by_label("Sprache").select_option("en")
    files = page.get_by_role("region", name="Refused files").get_by_role("listitem")
    files.get_by_role("button", name="Take broken out of the library").click()
    expect(page.locator("#notices")).to_contain_text("is out of the library")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    expect(files).to_have_count(0)
    expect(said).to_have_text("5 videos")
    page.get_by_label("Videos by state").select_option("refused")
    expect(said).to_have_text("No video is in this state.")
    page.get_by_label("Videos by name").fill("a cat")
    expect(said).to_have_text("No video in this state has this name.")


def test_of_an_empty_library_it_is_said_that_it_is_empty(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    with (
        Library(tmp_path / "photographs", encoder="demo", sentence_encoder="none"),
        Served(tmp_path) as server,
    ):
        page = open_page(server, "#/library")
        expect(page.get_by_role("status").filter(has_text="This library is empty")).to_be_visible()
        page.get_by_label("Videos by name").fill("x")
        expect(page.get_by_role("status").filter(has_text="No video has this name")).to_be_visible()
        page.get_by_role("link", name="Search").click()
        search(page, "a cat")
        expect(page.locator("#results")).to_contain_text("This library is empty")
    page.goto("about:blank")


def test_a_search_of_any_kind_is_saved_and_repeated(
    open_page: Callable[..., Page], own_server: Served, tmp_path: Path
) -> None:
    """Its steps with a gap each, its picture, its marks, its least score; also after the server has ended."""
    page = open_page(own_server)
    search(page, "a cat")
    then = page.get_by_role("button", name="then", exact=True)
    for number, words, gap in ((2, "a rocket", ""), (3, "grass", "90")):
        then.click()
        page.get_by_label(f"Then, step {number}").fill(words)
        page.get_by_label("Largest gap in seconds").last.fill(gap)
    picture = tmp_path / "rocket.jpg"
    picture.write_bytes(
        page.request.get(f"{own_server.url}/api/videos/work%2Flaunch/still?time=10&width=320").body()
    )
    with searching(page, "picture"):
        page.get_by_label("A picture to look for").set_input_files(picture)
    page.get_by_role("button", name="filters", exact=True).click()
    with searching(page, "min_score"):
        page.get_by_label("Score at least").select_option("possible")
    page.get_by_role("button", name="save this search").click()
    expect(page.locator("#notices")).to_contain_text("The search is saved")
    own_server.stop()
    own_server.start()
    page.goto(f"{own_server.url}/#/library")
    page.reload()
    kept = page.locator("#library-view").get_by_role("region", name="Saved searches").get_by_role("link")
    with searching(page) as answered:
        kept.click()
    assert answered.value.ok
    sent = answered.value.request.post_data_json
    assert [step["gap"] for step in sent["query"]["then"]] == [None, 90]
    assert [*sent["query"]["terms"][1]] == ["picture"] and sent["min_score"] == BANDS["possible"]
    expect(page.get_by_label("What to look for")).to_have_value("a cat")
    expect(page.locator(".chip.picture img")).to_have_js_property("naturalWidth", 256)
    expect(page.get_by_label("Largest gap in seconds").first).to_have_value("")
    expect(page.locator("#status .chip", has_text="strong or possible")).to_be_visible()


def test_what_cannot_be_typed_is_shown_and_kept(open_page: Callable[..., Page], own_server: Served) -> None:
    """A question of the command line, of agents, of Python may have parts that the page has no fields for."""
    then = [{"terms": [{"video_id": "work/launch", "time": 9}], "without": ["a cat"], "gap": 30}]
    first = {"terms": [{"text": "a cat"}], "without": ["grass"]}
    without = [{"terms": [{"text": "snow"}, {"text": "ice"}]}]
    query = {"first": first, "then": then, "without": without}
    with httpx2.Client(base_url=own_server.url) as http:
        ok(keep(http, "search", "odd", {"query": query, "weak": False}))
    page = open_page(own_server)
    with searching(page) as answered:
        page.get_by_role("region", name="Saved searches").get_by_role("link").click()
    assert answered.value.request.post_data_json["query"] == query
    expect(page.locator(".search-box .chip")).to_have_text("a cat, without grass")
    expect(page.locator(".query-row .shown")).to_have_text(["like launch 0:09, without a cat", "snow + ice"])
    with searching(page) as answered:
        page.get_by_role("button", name="Without this exclusion").click()
    sent = answered.value.request.post_data_json
    assert sent["query"] == {"first": first, "then": then} and sent["weak"] is False


def test_videos_are_sent_by_dropping_sorted_taken_out_and_brought_back(
    open_page: Callable[..., Page], own_server: Served, made: Path, tmp_path: Path
) -> None:
    film_like(made / "films" / "home" / "a cat.mp4", tmp_path / "another cat.mp4")
    page = open_page(own_server)
    search(page, "a cat")
    page.get_by_role("button", name="save this search").click()
    expect(page.locator("#notices")).to_contain_text("The search is saved")
    page.get_by_role("link", name="Library").click()
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(4)
    expect(page.locator(".roots li")).to_contain_text("4 videos")
    data = page.evaluate_handle(
        """bytes => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], "another cat.mp4", { type: "video/mp4" }));
          return data;
        }""",
        list((tmp_path / "another cat.mp4").read_bytes()),
    )
    page.dispatch_event("main", "drop", {"dataTransfer": data})
    expect(page.get_by_role("article", name=re.compile("^Videos being brought in"))).to_contain_text(
        "1 video added", timeout=120_000
    )
    expect(rows).to_have_count(5)
    page.get_by_label("Order of the videos").select_option("-added")
    expect(rows.first).to_contain_text("another cat")
    page.get_by_label("Order of the videos").select_option("-length")
    expect(rows.first).to_contain_text("launch")
    page.get_by_role("button", name="Take another cat out of the library").click()
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(5)
    assert (own_server.incoming / "another cat.mp4").is_file()
    page.goto(f"{own_server.url}/")
    page.reload()
    saved = page.get_by_role("region", name="Saved searches")
    expect(saved.locator(".number")).to_have_text(re.compile(r"^\d+ new$"))
    saved.get_by_role("link", name="a cat").click()
    expect(page.get_by_label("What to look for")).to_have_value("a cat")
    page.get_by_role("button", name="Clear the search").click()
    expect(saved.locator(".number")).to_be_empty()
    saved.get_by_role("button", name="Forget the search").press("Enter")
    expect(saved).to_be_hidden()
    page.get_by_role("button", name="Undo").click()
    saved.get_by_role("button", name="Forget the search").press("Enter")
    expect(saved).to_be_hidden()
    expect(page.locator("body")).not_to_be_focused()


def test_several_videos_are_tagged_and_taken_out_at_once(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    """Each had to be chosen by itself; a tag could not be given on the page at all."""
    page = open_page(own_server, "#/library")
    for name in ("a cat", "launch"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    selected = page.get_by_role("group", name="Selected videos")
    expect(selected).to_contain_text("2 videos selected")
    selected.get_by_label("Tag to give").fill("laurels")
    selected.get_by_role("button", name="give the tag").click()
    expect(page.locator("#notices")).to_contain_text("2 videos are tagged")
    expect(selected).to_be_hidden()
    with httpx2.Client(base_url=own_server.url) as http:
        marks = {one["name"]: one["value"]["tags"] for one in kept(http, "mark")}
    assert marks == {"home/a cat": ["laurels"], "work/launch": ["laurels"]}
    page.reload()
    page.get_by_role("checkbox", name="Select a cat").check()
    selected.get_by_role("button", name="Select all that are listed").click()
    expect(selected).to_contain_text("4 videos selected")
    assert serious(page) == []
    page.get_by_role("checkbox", name="Select launch").uncheck()
    selected.get_by_role("button", name="take out").click()
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(4)


def test_a_folder_that_is_not_allowed_is_refused_in_words(
    open_page: Callable[..., Page], served: Served
) -> None:
    page = open_page(served, "#/library")
    source = page.get_by_label("A folder or a file")
    source.fill("   ")
    with page.expect_event("request", lambda request: request.method == "POST") as asked:
        page.get_by_role("button", name="Bring in").click()
        expect(source).to_be_focused()  # where the browser says that something is missing
        source.fill("/etc")
        page.get_by_role("button", name="Bring in").click()
    assert asked.value.post_data_json == {"sources": ["/etc"]}
    expect(page.get_by_role("alert").filter(has_text="/etc")).to_be_visible()


def test_a_long_name_has_a_line_of_its_own_in_a_narrow_window(
    open_page: Callable[..., Page], served: Served
) -> None:
    page = open_page(served, viewport={"width": 320, "height": 640})
    name = "Holiday in the mountains, the second part, uncut_2023-07-11_14.32.10"

    def named(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        content["videos"] = [{**video, "video_id": f"trips/{name}"} for video in content["videos"]]
        route.fulfill(response=answer, json=content)

    page.route("**/api/videos?*", named)
    page.get_by_role("link", name="Library").click()
    row = page.locator(".videos tbody tr").first
    expect(row).to_contain_text(name)
    box, words = row.bounding_box(), row.locator(".name").bounding_box()
    assert box and words
    assert words["width"] > 0.9 * box["width"] and box["height"] < 200
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []


def test_names_have_room_beside_the_buttons_in_any_window(
    open_page: Callable[..., Page], served: Served
) -> None:
    """Not slices of three letters in windows as wide as a tablet, where further columns take all."""
    page = open_page(served, "#/library", locale="es-ES")
    name = page.locator(".videos tbody .name").first
    name.wait_for()
    for width in (320, 480, 721, 768, 961, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        box = name.bounding_box()
        assert box and box["width"] > 150, width


def test_jobs_are_followed_by_one_request_to_their_ends(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    job = {
        "job": "a", "sources": ["/films"], "state": "queued", "done": 0, "total": 0, "share": 0.0,
        "seconds_left": None, "step": "", "video": "", "refused": [], "added": 0, "error": "",
    }  # fmt: skip
    states = [[job, {**job, "job": "b"}], [{**job, "state": "done", "added": 3}]]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"jobs": states[0] if len(states) == 1 else states.pop(0)})

    page = open_page(own_server)
    page.route("**/api/jobs**", answer)
    page.get_by_role("link", name="Library").click()
    jobs = page.get_by_role("article", name=re.compile("^Videos being brought in"))
    expect(jobs).to_have_count(2)
    expect(jobs.filter(has_text="3 videos added")).to_be_visible()
    expect(jobs.filter(has_text="the server was restarted")).to_be_visible()
    assert set(asked) == {f"{own_server.url}/api/jobs"}


def test_the_focus_stays_while_a_job_runs_and_when_a_video_is_taken_out(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server)
    job = {"job": "a", "state": "running", "done": 0, "total": 4, "share": 0.0, "seconds_left": None}
    job |= {
        "sources": ["/films"],
        "step": "pictures",
        "video": "x",
        "refused": [],
        "added": 0,
        "copies": 0,
        "error": "",
    }

    def running(route: Route) -> None:
        job["done"] += 1
        route.fulfill(json={"jobs": [{**job, "share": min(job["done"] / 10, 0.9)}]})

    page.route("**/api/jobs", running)
    page.get_by_role("link", name="Library").click()
    cancel = page.get_by_role("button", name="Cancel")
    cancel.focus()
    shown = page.locator(".job progress").get_attribute("value")
    expect(page.locator(".job progress")).not_to_have_attribute("value", shown or "")
    expect(cancel).to_be_focused()
    page.route("**/api/jobs/a", lambda route: route.fulfill(json=job))
    job["state"] = "cancelled"
    cancel.press("Enter")
    expect(cancel).to_have_count(0)
    expect(page.locator(".job strong")).to_have_text("films")
    dismiss = page.get_by_role("button", name="Dismiss this job")
    expect(dismiss).to_be_focused()
    dismiss.press("Enter")
    expect(page.locator(".job:visible")).to_have_count(0)
    expect(page.get_by_role("button", name="choose some to send")).to_be_focused()
    page.get_by_role("button", name="Take launch out of the library").press("Enter")
    expect(page.locator(".videos tbody tr")).to_have_count(3)
    expect(page.get_by_role("button", name="Take breakfast out of the library")).to_be_focused()


def test_what_others_change_is_seen_when_the_library_is_shown_again(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server, "#/library")
    videos = page.locator(".facts div", has_text="Videos")
    expect(videos).to_contain_text("4,")
    page.request.delete(f"{own_server.url}/api/videos/work%2Flaunch")
    sources = {"sources": [str(own_server.incoming)]}
    job = page.request.post(f"{own_server.url}/api/jobs", data=sources).json()["job"]
    page.get_by_role("link", name="Search").click()
    page.get_by_role("link", name="Library").click()
    expect(videos).to_contain_text("3,")
    expect(page.get_by_role("article", name=f"Videos being brought in, job {job}")).to_be_visible()


def test_a_search_is_asked_again_when_the_library_changed(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server)
    search(page, "a rocket")
    expect(card(page).locator(".title")).to_have_text("launch")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/search" in request.url else None)
    page.get_by_role("link", name="Library").click()
    expect(page.locator(".videos tbody tr")).to_have_count(4)
    page.get_by_role("link", name="Search").click()
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    expect(card(page).locator(".title")).to_have_text("launch")
    assert not asked  # nothing changed
    page.get_by_role("link", name="Library").click()
    page.get_by_role("button", name="Take launch out of the library").click()
    expect(page.locator(".videos tbody tr")).to_have_count(3)
    expect(page.locator(".facts div", has_text="Videos")).to_contain_text("3,")
    with searching(page, "a rocket"):
        page.get_by_role("link", name="Search").click()
    expect(page.locator(".caption .title", has_text="launch")).to_have_count(0)
    page.get_by_role("link", name="Library").click()
    page.go_back()
    expect(page).to_have_url(re.compile("#/search"))
    assert len(asked) == 1


def test_the_first_video_of_a_library_is_found_by_a_search_that_was_there_before(
    open_page: Callable[..., Page], tmp_path: Path, made: Path
) -> None:
    with (
        Library(tmp_path / "photographs", encoder="demo", sentence_encoder="none"),
        Served(tmp_path) as server,
    ):
        film_like(made / "films" / "home" / "a cat.mp4", server.incoming / "a cat.mp4")
        page = open_page(server)
        search(page, "a cat")
        expect(page.locator("#results")).to_contain_text("This library is empty")
        page.locator("#to-library").click()
        page.get_by_role("button", name="Bring in").click()
        page.get_by_role("link", name="Search").click()
        found = moments(page).first.or_(page.get_by_role("button", name="Show the nearest moments"))
        expect(found.first).to_be_visible(timeout=120_000)
    page.goto("about:blank")


def test_the_library_is_read_again_when_the_server_is_back(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server, "#/library")
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(4)
    own_server.stop()
    with Library(Path(own_server.folder) / "photographs") as library:
        library.indexer.remove(["work/launch"])
    page.get_by_label("Videos by name").fill("a")  # which the page asks for
    expect(page.locator("#offline")).to_contain_text("does not answer")
    page.get_by_label("Videos by name").fill("")
    own_server.start()
    expect(rows).to_have_count(3)
    expect(page.locator(".facts div", has_text="Videos")).to_contain_text("3,")


def test_a_failure_is_said_until_it_is_dismissed_or_goes_well(
    open_page: Callable[..., Page], own_server: Served, tmp_path: Path
) -> None:
    page = open_page(own_server, "#/library")
    rows = page.locator(".videos tbody tr")
    expect(rows).to_have_count(4)
    for name in ("one.mp4", "two.mp4"):
        (tmp_path / name).write_text("no film at all")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="choose some to send").click()
    chooser.value.set_files([tmp_path / "one.mp4", tmp_path / "two.mp4"])
    failures = page.locator("#library-view [role=alert] .failure")
    expect(failures).to_have_count(2)
    page.get_by_label("A folder or a file").fill("/etc")
    page.get_by_role("button", name="Bring in").click()
    expect(failures).to_have_count(3)
    page.get_by_label("A folder or a file").fill(str(own_server.incoming))
    page.get_by_role("button", name="Bring in").click()
    expect(page.get_by_role("article", name=re.compile("^Videos being brought in"))).to_contain_text(
        "0 videos added"
    )
    page.get_by_role("button", name="Take launch out of the library").click()
    expect(rows).to_have_count(3)
    expect(failures.locator("strong")).to_have_text(["one.mp4 was not sent", "two.mp4 was not sent"])
    page.get_by_role("button", name="Dismiss: one.mp4 was not sent").press("Enter")
    expect(failures.locator("strong")).to_have_text(["two.mp4 was not sent"])
    expect(page.locator("body")).not_to_be_focused()


def test_the_library_is_shown_when_the_server_is_back(
    open_page: Callable[..., Page], own_server: Served
) -> None:
    page = open_page(own_server)
    page.get_by_role("region", name="Try").wait_for()
    own_server.stop()
    page.get_by_role("link", name="Library").click()
    expect(page.locator("#offline")).to_contain_text("does not answer")
    expect(page.locator("#notices .notice")).to_have_count(0)
    own_server.start()
    expect(page.locator(".videos tbody tr")).to_have_count(4)


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
    card(page).locator(".opener").click()
    expect(page.locator(".player-failure:visible")).to_have_text("the server does not answer")
    own_server.start()
    expect(page.locator("#offline")).to_be_empty()
    until(page, "video.readyState >= 2")
    expect(page.locator(".player-failure:visible")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".caption .title").first).to_have_text("a cat")
