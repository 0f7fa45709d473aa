"""A real server on a fresh library of four films of photographs, and a browser that opens its page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from made_once import made_once
from moviola.types import Capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Request

    from page_server import Served

SIZE, RATE = (320, 180), 8
CAPTURES = {
    "home/a cat": Capture("2023-05-01T12:00:00+02:00", "tags", 52.52, 13.405, "Apple", "iPhone 15"),
    "home/breakfast": Capture("2023-07-11T12:00:00+02:00", "tags", 48.85, 2.35, "Apple", "iPhone 15 Pro"),
    "work/launch": Capture("2024-02-03T12:00:00+01:00", "tags", 52.53, 13.45, "Canon", "EOS R5"),
    "work/the collector": Capture("2024-02-24T12:00:00+01:00", "tags"),
}
# Milliseconds: a busy machine encodes a first picture slowly.
PATIENCE = 30_000


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The films and their library; not to be changed, nor served: all workers have the same."""
    from photo_library import make_library

    return made_once(
        tmp_path_factory, "photographs", lambda folder: make_library(folder, size=SIZE, rate=RATE)
    )


@pytest.fixture(scope="session")
def copied(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the library, which servers of this worker may keep something in."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(made / "photographs", folder / "photographs")
    return folder


@pytest.fixture(scope="session")
def served(copied: Path) -> Iterator[Served]:
    """A server on the library that no test changes."""
    from page_server import Served

    with Served(copied) as server:
        yield server


@pytest.fixture
def own_server(made: Path, tmp_path: Path) -> Iterator[Served]:
    """A server of the test's own, on a copy of the library (its films stay where they are)."""
    from page_server import Served

    shutil.copytree(made / "photographs", tmp_path / "photographs")
    with Served(tmp_path) as server:
        yield server


@pytest.fixture
def dated(own_server: Served) -> Iterator[Served]:
    """A server on films that were taken somewhere, some day; two are tagged."""
    from moviola.library.userdata.values import Mark
    from moviola.search import Library

    own_server.stop()
    with Library(Path(own_server.folder) / "photographs") as library:
        rows = {video.video_id: video.row for video in library.catalogue.videos()}
        with library.store.writing(), library.catalogue.transaction():
            library.catalogue.put_captures({rows[name]: capture for name, capture in CAPTURES.items()})
        for name in ("home/a cat", "work/launch"):
            library.userdata.mark(Mark(video_id=name), add=["favourite"])
    own_server.start()
    yield own_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module: while playwright is there, no test of this process can run an event loop."""
    from playwright.sync_api import expect, sync_playwright

    from browser import REMEDY, find_browser

    path = find_browser()
    if path is None:
        pytest.fail(REMEDY, pytrace=False)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        )
        yield chromium
        chromium.close()


Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Open a page: ``open_page(server, "#/search?query=a+cat", **context options)``, each a visitor.

    At the end no page may have asked another host for anything, or have thrown an error. What visitors kept
    in a library is deleted, once nothing of it is on its way any more.
    """
    from http_calls import forget_kept

    contexts: list[BrowserContext] = []
    visited: list[Served] = []
    asked: list[str] = []
    errors: list[str] = []
    keeping: set[Request] = set()

    def opened(server: Served, link: str = "", **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
        contexts.append(context)
        visited.append(server)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)

        def note(request: Request) -> None:
            if not request.url.startswith((f"{server.url}/", "blob:", "data:")):
                asked.append(request.url)

        def begin(request: Request) -> None:
            if request.url.endswith("/api/kept") and request.method == "PUT":
                keeping.add(request)

        def end(request: Request) -> None:
            keeping.discard(request)

        context.on("request", begin)
        context.on("requestfinished", end)
        context.on("requestfailed", end)
        page.on("request", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{server.url}/{link}")
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            wait_for(page, keeping)
        context.set_offline(True)  # a page that is left keeps what it can
        context.close()
    for server in visited:
        if server.process is not None:
            forget_kept(server.url)
    assert not asked
    assert not errors


def wait_for(page: Page, requests: set[Request]) -> None:
    """Wait until the requests have ended, as long as one to a busy machine may take."""
    left, step = PATIENCE, 20
    while left > 0 and any(request.frame.page == page for request in requests):
        page.wait_for_timeout(step)
        left -= step


@pytest.fixture
def page(open_page: Opener, served: Served) -> Page:
    """The page on the library that no test changes."""
    return open_page(served)
