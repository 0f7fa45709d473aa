"""Videos sent from the page: progress, a broken connection, a page that is opened again, cancelling."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from distinct import film_like
from page_server import Served
from page_visitor import serious

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]
INGEST = re.compile("^Videos being brought in")


@pytest.fixture
def film(made: Path, tmp_path: Path) -> Path:
    """A film that the library does not have."""
    path = tmp_path / "another cat.mp4"
    film_like(made / "films" / "home" / "a cat.mp4", path)
    return path


def stay_unsent(page: Page) -> None:
    """Hold every part of an upload."""
    page.route(
        "**/api/uploads/*", lambda route: None if route.request.method == "PATCH" else route.continue_()
    )


def choose(page: Page, *films: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="choose some to send").click()
    chooser.value.set_files(list(films))


def begin(page: Page, film: Path) -> str:
    """Choose a film whose first part is held; gives the address of its upload."""
    with page.expect_request(lambda request: request.method == "PATCH") as asked:
        choose(page, film)
    return asked.value.url


def test_all_that_are_chosen_are_sent(open_page: Opener, own_server: Served, tmp_path: Path) -> None:
    page = open_page(own_server, "#/library")
    begun: list[str] = []

    def refused(route: Route) -> None:
        begun.append(b64decode(route.request.headers["upload-metadata"].removeprefix("filename ")).decode())
        route.fulfill(status=422, json={"error": {"code": "invalid_value", "message": "no room"}})

    page.route("**/api/uploads", refused)
    films = [tmp_path / f"{name}.mp4" for name in ("one", "two", "three")]
    for film in films:
        film.write_bytes(b"a film")
    choose(page, *films)
    expect(page.get_by_role("alert").filter(has_text="three.mp4 was not sent")).to_be_visible()
    assert begun == [film.name for film in films]


def test_a_broken_connection_does_not_end_an_upload(
    open_page: Opener, own_server: Served, film: Path
) -> None:
    page = open_page(own_server, "#/library")
    failures = [None, 503, 409]

    def broken(route: Route) -> None:
        if route.request.method != "PATCH" or not failures:
            route.continue_()
        elif (status := failures.pop(0)) is None:
            route.abort()
        else:
            code = "busy" if status == 503 else "unavailable"
            route.fulfill(status=status, json={"error": {"code": code, "message": "not now"}})

    page.route("**/api/uploads/*", broken)
    choose(page, film)
    expect(page.get_by_role("article", name=INGEST)).to_contain_text("1 video added", timeout=120_000)
    assert not failures
    sent = own_server.incoming / film.name
    assert sent.read_bytes() == film.read_bytes()
    assert not list(own_server.incoming.glob(".*"))


def test_an_upload_goes_on_when_the_page_is_opened_again(
    open_page: Opener, own_server: Served, film: Path
) -> None:
    page = open_page(own_server, "#/library")
    content = film.read_bytes()
    stay_unsent(page)
    address = begin(page, film)
    article = page.get_by_role("article", name="Sending another cat.mp4")
    expect(article).to_contain_text("another cat.mp4, 0 B of")
    assert serious(page) == []
    expect(page.get_by_role("progressbar")).to_be_visible()
    headers = {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": "0",
        "Content-Type": "application/offset+octet-stream",
    }
    page.request.patch(address, headers=headers, data=content[:1000])
    page.unroute("**/api/uploads/*")
    page.reload()
    left = page.get_by_role("article", name="Unfinished: another cat.mp4")
    expect(left).to_contain_text("choose or drop it again")
    assert serious(page) == []
    with page.expect_request(lambda request: request.method == "PATCH") as asked:
        choose(page, film)
    assert asked.value.headers["upload-offset"] == "1000"
    expect(page.get_by_role("article", name=INGEST)).to_contain_text("1 video added", timeout=120_000)
    expect(left).to_have_count(0)
    assert (own_server.incoming / film.name).read_bytes() == content


def test_a_file_that_is_no_video_leaves_nothing(
    open_page: Opener, own_server: Served, tmp_path: Path
) -> None:
    page = open_page(own_server, "#/library")
    (tmp_path / "notes.mp4").write_text("no film at all")
    choose(page, tmp_path / "notes.mp4")
    expect(page.get_by_role("alert").filter(has_text="notes.mp4 was not sent")).to_contain_text("a text file")
    expect(page.get_by_role("article")).to_have_count(0)
    assert not list(own_server.incoming.iterdir())


def test_a_cancelled_upload_is_deleted(open_page: Opener, own_server: Served, film: Path) -> None:
    page = open_page(own_server, "#/library")
    stay_unsent(page)
    begin(page, film)
    article = page.get_by_role("article", name="Sending another cat.mp4")
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        article.get_by_role("button", name="Do not send another cat.mp4").click()
    expect(page.get_by_role("article")).to_have_count(0)
    assert not list(own_server.incoming.iterdir())
    begin(page, film)
    page.reload()
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        page.get_by_role("button", name="Do not send another cat.mp4").click()
    expect(page.get_by_role("article")).to_have_count(0)
    assert not list(own_server.incoming.iterdir())
