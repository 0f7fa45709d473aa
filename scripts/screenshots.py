"""Pictures of every view of the page, and a moving one, for the documentation.

    python scripts/screenshots.py docs/images

A library of photographs is made and served, and a browser opens its page. Views are saved as JPEG, a walk
from a search to a collection as an animated WebP.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from browser import require_browser
from photo_library import make_library

WIDE = {"width": 1280, "height": 820}
PHONE = {"width": 390, "height": 780}
QUALITY = 84
# For pictures and videos to arrive.
SETTLED = 1500
FILM_WIDTH = 800
FILM_QUALITY = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--library", type=Path, help="serve this one instead of making one of photographs")
    parser.add_argument("--only-film", action="store_true", help="the moving picture alone")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made, sync_playwright() as playwright:
        library = options.library or make_library(Path(made))
        browser = playwright.chromium.launch(executable_path=require_browser(), args=["--no-sandbox"])
        with served(library, Path(made)) as url:
            if not options.only_film:
                take_all(browser, url, options.folder)
            take_film(browser, url, options.folder)
        browser.close()


@contextmanager
def served(library: Path, incoming: Path) -> Iterator[str]:
    """The address of a server on a library, from which videos of a folder may be brought in."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "moviola",
        "serve",
        "--library",
        library,
        "--port",
        "0",
        "--allow-ingest",
        incoming,
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        try:
            yield json.loads(said)["url"]
        finally:
            server.terminate()


def take_all(browser: Browser, url: str, folder: Path) -> None:
    """Save all views, light and dark taking turns, and two on a phone."""
    take_wide(browser, url, folder, "light", ("welcome", "results", "collection", "then"))
    take_wide(browser, url, folder, "dark", ("player", "rows", "library", "keys"))
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True, device_scale_factor=2)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}#/search?query=a+rocket")
    page.locator("#results .score").first.wait_for()
    save(page, folder, "phone")
    page.locator("#results .opener").first.tap()
    save(page, folder, "phone-player")
    context.close()


def take_wide(browser: Browser, url: str, folder: Path, scheme: str, wanted: tuple[str, ...]) -> None:
    """Walk through all views in one colour scheme and save those that are wanted."""
    forget_kept(url)
    context = browser.new_context(viewport=WIDE, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()

    def view(name: str) -> None:
        if name in wanted:
            save(page, folder, name)

    page.goto(url)
    page.locator(".shelf .moment").first.wait_for()
    page.get_by_role("heading", name="Try").wait_for()
    view("welcome")
    page.get_by_label("What to look for").fill("a rocket")
    page.locator("#results .score").first.wait_for()
    view("results")
    openers = collect_three(page)
    openers.first.click()
    page.locator("#player .curve").wait_for(state="attached")
    page.locator("#notices .notice").first.wait_for(state="detached")
    page.keyboard.press("a")
    view("player")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="As rows by video").click()
    page.locator(".rows").wait_for()
    view("rows")
    page.get_by_role("button", name="As a grid").click()
    page.keyboard.press("t")
    page.get_by_label("Then, step 2").fill("stars and galaxies")
    page.locator(".moment.steps").first.wait_for()
    view("then")
    page.locator("#to-collection").click()
    page.get_by_label("Title of the collection").fill("Launch")
    page.get_by_label("Note on").first.fill("Opens the film; hold it until the count ends.")
    view("collection")
    page.locator("#to-library").click()
    page.locator(".videos tbody tr").first.wait_for()
    view("library")
    page.locator("body").press("?")
    view("keys")
    context.close()


def collect_three(page: Page) -> Locator:
    """Put three moments of an answer into the collection, weak ones where no others are; returns all."""
    openers = page.locator("#results .opener")
    openers.first.focus()
    page.keyboard.press("w")
    for place in range(3):
        openers.nth(place).focus()
        page.keyboard.press("c")
    page.keyboard.press("w")
    return openers


class Film:
    """Frames of a page, each with the milliseconds for which it is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._durations: list[int] = []

    def shoot(self, duration: int) -> None:
        """Add what the page shows now."""
        frame = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        height = FILM_WIDTH * frame.height // frame.width
        self._frames.append(frame.resize((FILM_WIDTH, height), Image.Resampling.LANCZOS))
        self._durations.append(duration)

    def save(self, path: Path) -> None:
        """Write an animated WebP that repeats."""
        first, *others = self._frames
        first.save(
            path, save_all=True, append_images=others, duration=self._durations,
            loop=0, quality=FILM_QUALITY, method=6,
        )  # fmt: skip


def take_film(browser: Browser, url: str, folder: Path) -> None:
    """A search as it is typed, the player, and the collection, as ``page.webp``."""
    forget_kept(url)
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    page = context.new_page()
    film = Film(page)
    page.goto(url)
    page.locator(".shelf .moment").first.wait_for()
    page.wait_for_timeout(SETTLED)
    film.shoot(1500)
    box = page.get_by_label("What to look for")
    for letter in "a rocket":
        box.press_sequentially(letter)
        film.shoot(120)
    openers = page.locator("#results .opener")
    page.locator("#results .score").first.wait_for()
    page.wait_for_timeout(SETTLED)
    film.shoot(2000)
    collect_three(page)
    page.wait_for_timeout(300)
    film.shoot(1200)
    page.locator("#notices .notice").first.wait_for(state="detached")
    openers.first.click()
    page.locator("#player .curve").wait_for(state="attached")
    page.wait_for_timeout(SETTLED)
    for _ in range(8):
        film.shoot(250)
    film.shoot(1200)
    page.keyboard.press("Escape")
    page.locator("#to-collection").click()
    page.get_by_label("Title of the collection").fill("Launch")
    page.wait_for_timeout(SETTLED)
    film.shoot(2500)
    context.close()
    film.save(folder / "page.webp")


def forget_kept(url: str) -> None:
    """Delete what an earlier walk has collected."""
    with httpx2.Client(base_url=url, timeout=60) as http:
        for entry in http.get("/api/kept").raise_for_status().json()["entries"]:
            chosen = {"kind": entry["kind"], "name": entry["name"]}
            http.delete("/api/kept", params=chosen).raise_for_status()


def save(page: Page, folder: Path, name: str) -> None:
    """What the page shows, as ``page-NAME.jpg``."""
    page.wait_for_timeout(SETTLED)
    page.screenshot(path=folder / f"page-{name}.jpg", type="jpeg", quality=QUALITY)


if __name__ == "__main__":
    main()
