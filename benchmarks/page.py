"""How soon the page answers, and whether it stays fluent: a real Chromium on a library of 500 or more videos.

    python benchmarks/page.py LIBRARY [--films 500] [--rows 10000] [--queries 20] [--out FILE]

LIBRARY is made if nothing is there: ``--films`` films of photographs (16 to 24 s each; four, with other
bytes), indexed with the offline encoder, then as many rows without a file that ``--rows`` videos stand in the
library's list. The measurements, in the page's own clock:

- *answer*: from the last letter of a query to its results on the screen, the page's own wait for another
  letter included;
- *first visit*: from opening a link to a search, in a browser that has nothing yet, over a slow mobile
  network, to the results on the screen, in English and German, with the bytes that came without pictures; the
  middle of three;
- *filters*: from the button to the counts of all filters, then from a choice of folder, camera or day to the
  answer;
- *list*: from opening the library view to its first rows, then from one name in its search field to the rows;
- *long tasks*: stretches of more than 50 ms in which the page takes no input, while searching, scrubbing over
  stills and scrolling the list; and pictures a second while scrubbing, of those that the screen offers (60).
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "worlds"))

from browser import require_browser
from distinct import film_like
from measuring import arguments, say
from moviola import Library
from moviola.library import VideoRow
from moviola.types import Capture
from photo_library import make_library
from serving import served

THINGS = (
    "a cat", "grass", "coffee", "a brick wall", "an astronaut", "a rocket", "galaxies", "a camera", "coins",
    "an eye",
)  # fmt: skip
WATCH = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration));
  }).observe({ type: "longtask", buffered: false });
}"""
ANSWERED = """(text) => new Promise((resolve) => {
  const words = document.querySelector("#words"), results = document.querySelector("#results");
  const ask = window.fetch;
  let arrived = false;
  window.fetch = async (address, options) => {
    const response = await ask(address, options);
    if (String(address).endsWith("api/search") && options.body.includes(text)) arrived = true;
    return response;
  };
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (!arrived || results.getAttribute("aria-busy") === "true") return;
    if (!results.querySelector(".moment .score, .empty")) return;
    observer.disconnect();
    window.fetch = ask;
    requestAnimationFrame(() => resolve(performance.now() - began));
  }).observe(results, { childList: true, subtree: true, attributes: true });
  words.value = text;
  words.dispatchEvent(new Event("input", { bubbles: true }));
})"""
FIRST = """() => new Promise((resolve) => {
  const look = () => {
    if (document.querySelector("#results .moment .score")) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""
# "Slow 4G" of Chromium's developer tools: milliseconds before each answer, bytes a second down and up.
NETWORK = {"offline": False, "latency": 562.5, "downloadThroughput": 180_000, "uploadThroughput": 84_375}
RECEIVED = """() => performance.getEntries()
  .filter((entry) => entry.transferSize && entry.initiatorType !== "img")
  .reduce((sum, entry) => sum + entry.transferSize, 0)"""
COUNTED = """() => new Promise((resolve) => {
  const began = performance.now();
  const filters = document.querySelector("#filters");
  const look = () => {
    const drawn = [".facet-camera .figure", ".facet-taken select option", ".facet-near circle"];
    if (drawn.every((part) => filters.querySelector(part))) resolve(performance.now() - began);
    else requestAnimationFrame(look);
  };
  document.querySelector(".filter-button").click();
  look();
})"""
NARROWED = """(selector) => new Promise((resolve) => {
  const ask = window.fetch, results = document.querySelector("#results");
  let arrived = false;
  window.fetch = async (address, options) => {
    const response = await ask(address, options);
    if (String(address).endsWith("api/search")) arrived = true;
    return response;
  };
  const began = performance.now();
  const look = () => {
    if (!arrived || results.getAttribute("aria-busy") === "true") return requestAnimationFrame(look);
    window.fetch = ask;
    resolve(performance.now() - began);
  };
  document.querySelector(selector).click();
  look();
})"""
LISTED = """([selector, act]) => new Promise((resolve) => {
  const began = performance.now();
  const view = document.querySelector("#library-view");
  const before = view.querySelector(selector);
  new MutationObserver((_, observer) => {
    const now = view.querySelector(selector);
    if (!now || now === before) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - began));
  }).observe(view, { childList: true, subtree: true });
  if (act === "open") document.querySelector("#to-library").click();
  else {
    const field = view.querySelector("input[type=search]");
    field.value = act;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
})"""
FRAMES = """(milliseconds) => new Promise((resolve) => {
  const times = [];
  const began = performance.now();
  const frame = (now) => {
    times.push(now);
    if (now - began < milliseconds) requestAnimationFrame(frame);
    else resolve(times.slice(1).map((time, at) => time - times[at]));
  };
  requestAnimationFrame(frame);
})"""


def main() -> None:
    options = arguments(__doc__, "library", films=500, rows=10_000, queries=20, out=None)
    if not (options.library / "moviola.toml").is_file():
        make(options.library, options.films, options.rows)
    with served(options.library) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_browser(), args=["--no-sandbox"])
        figures = measured(browser.new_page(viewport={"width": 1440, "height": 900}), url, options.queries)
        figures["first visit"] = {code: first_visit(browser, url, code) for code in ("en", "de")}
        browser.close()
    print(json.dumps(figures, indent=1))
    say(figures, options.out)


def make(folder: Path, films: int, rows: int) -> None:
    """The library; its films lie beside it."""
    videos = folder.with_name(f"{folder.name}-films")
    videos.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        make_library(Path(scratch), size=(320, 180), rate=8)
        originals = sorted(Path(scratch).glob("films/**/*.mp4"))
        for number in range(films):
            original = originals[number % len(originals)]
            film_like(original, videos / f"{original.stem} {number:04d}.mp4", number)
    with Library(folder, encoder="conse-lite1") as library:
        library.index(videos, ocr=False)
    with Library(folder) as library, library.store.writing(), library.catalogue.transaction():
        store = library.store
        draw = np.random.default_rng(0)
        dim = store.frame_features.dim
        for number in range(films, rows):
            end = store.catalogue.feature_end("frames")
            extent = store.frame_features.append(
                draw.normal(size=(4, dim)).astype(np.float32), end, sync=False
            )
            video = VideoRow(
                row=0, video_id=f"archive {number:05d}", size=1, mtime_ns=1,
                path=f"/archive/{number % 40:02d}/{number % 7}/archive {number:05d}.mp4",
                hash=f"{number:032x}", sidecars="", state="ready", duration=4.0, width=640,
                height=360, codec="h264", frames=extent,
            )  # fmt: skip
            stored = store.catalogue.put(video, [])
            store.catalogue.put_captures({stored.row: capture_of(draw)})


def capture_of(draw: np.random.Generator) -> Capture:
    """When, where and with what a film of the archive was taken: in ten years, at one of 3,000 places."""
    taken = datetime(2014, 1, 1) + timedelta(minutes=int(draw.integers(10 * 365 * 24 * 60)))
    place = int(draw.integers(3_000))
    return Capture(
        taken.isoformat(),
        "tags",
        35 + place // 60 * 0.5,
        -10 + place % 60 * 0.5,
        "Maker",
        f"Model {place % 40}",
    )


def measured(page: Page, url: str, queries: int) -> dict[str, Any]:
    """The figures; times in milliseconds."""
    page.goto(url)
    page.locator("#words").wait_for()
    page.evaluate(WATCH)
    page.evaluate(ANSWERED, "a first query")
    answers = sorted(page.evaluate(ANSWERED, f"{THINGS[n % len(THINGS)]} {n}") for n in range(queries))
    searching = long_tasks(page)
    page.evaluate(ANSWERED, "a rocket")
    frames = scrubbed(page)
    scrubbing = long_tasks(page)
    counted = page.evaluate(COUNTED)
    choices = (".facet-folder input", ".facet-camera input", ".facet-taken button.day")
    narrowed = [page.evaluate(NARROWED, choice) for choice in choices]
    filtering = long_tasks(page)
    opened = page.evaluate(LISTED, ["tbody tr", "open"])
    named = page.evaluate(LISTED, ["tbody tr", "archive 00"])
    for _ in range(20):
        page.mouse.wheel(0, 2000)
        page.wait_for_timeout(30)
    return {
        "answer": {"median": median(answers), "p95": answers[int(0.95 * (len(answers) - 1))]},
        "filters": {"counted": counted, "narrowed": max(narrowed)},
        "list": {"opened": opened, "named": named},
        "long tasks": {
            "searching": searching, "scrubbing": scrubbing, "filtering": filtering,
            "listing": long_tasks(page),
        },
        "frame interval while scrubbing": {
            "median": median(frames), "p95": sorted(frames)[int(0.95 * (len(frames) - 1))],
        },
    }  # fmt: skip


def first_visit(browser: Browser, url: str, language: str) -> dict[str, float]:
    """Milliseconds until the first answer on a slow network, and the bytes that came besides pictures."""
    visits = []
    for _ in range(3):
        context = browser.new_context(locale=language)
        page = context.new_page()
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.emulateNetworkConditions", NETWORK)
        page.goto(f"{url}#/search?query=a+rocket", wait_until="commit")
        taken = page.evaluate(FIRST)
        visits.append((taken, page.evaluate(RECEIVED)))
        context.close()
    taken, received = sorted(visits)[1]
    return {"answer": taken, "bytes": received}


def scrubbed(page: Page) -> list[float]:
    """Intervals of the screen's pictures while the wheel scrubs over the first still."""
    still = page.locator("#results .moment .still").first
    box = still.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.wait_for_timeout(1000)
    page.mouse.move(x - 5, y)
    page.mouse.move(x, y)
    page.evaluate(f"() => {{ window.frames_ = ({FRAMES})(3000); }}")
    for step in range(60):
        page.mouse.wheel(0, 40 if step % 20 < 10 else -40)
        page.wait_for_timeout(40)
    intervals: list[float] = page.evaluate("() => window.frames_")
    return intervals


def long_tasks(page: Page) -> list[int]:
    """Milliseconds of each since the last call."""
    taken: list[int] = page.evaluate(
        "() => { const taken = window.longTasks; window.longTasks = []; return taken; }"
    )
    return taken


if __name__ == "__main__":
    main()
