"""Clips and films play in a browser: Debian's chromium, which decodes H.264 and AAC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moviola.export import Selection, write_moments
from moviola.types import Moment
from numbered import numbered_film

CHROMIUM = Path("/usr/bin/chromium")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.is_file(), reason="no chromium; Debian's package has the codecs"),
]

PLAY = """async video => {
    const event = name => new Promise((done, failed) => {
        video.addEventListener(name, done, {once: true});
        video.addEventListener("error", () => failed(new Error(video.error.message)), {once: true});
    });
    if (video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA) await event("canplay");
    video.muted = true;
    await video.play();
    await event("ended");
    return {duration: video.duration, played: video.played.end(video.played.length - 1),
            width: video.videoWidth, height: video.videoHeight};
}"""


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of a browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def played(page: Any, film: Path) -> dict[str, float]:
    """What the browser says of a file after it has played it."""
    html = film.with_suffix(".html")
    html.write_text(f'<video src="{film.as_uri()}" preload="auto"></video>', encoding="utf-8")
    page.goto(html.as_uri())
    measured: dict[str, float] = page.locator("video").evaluate(PLAY)
    return measured


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A wide one with sound, a tall one without."""
    folder = tmp_path_factory.mktemp("sources")
    wide = numbered_film(folder / "wide.mp4", 25, 3, size=(320, 180), sound=True)
    return {"wide": wide, "tall": numbered_film(folder / "tall.mp4", 30, 3, size=(180, 320))}


@pytest.mark.parametrize("mode", ["exact", "key-frames"])
def test_clips_play(tmp_path: Path, sources: dict[str, Path], page: Any, mode: str) -> None:
    moments = [Moment("wide", 1.2, 2.2, 0.5, 1), Moment("tall", 0.5, 1.5, 0.5, 2)]
    clips = write_moments(moments, sources, tmp_path / "clips", mode=mode).files
    assert len(clips) == 2
    for clip in clips:
        measured = played(page, clip)
        slack = 0.05 if mode == "exact" else 2.0
        assert 1 - 0.05 <= measured["duration"] <= 1 + slack
        assert measured["played"] == pytest.approx(measured["duration"], abs=0.1)


@pytest.mark.parametrize("titles", [False, True])
def test_the_film_plays(tmp_path: Path, sources: dict[str, Path], page: Any, titles: bool) -> None:
    moments = [
        Selection(Moment("wide", 1.2, 2.2, 0.5, 1), "Wide"),
        Selection(Moment("tall", 0.5, 1.5, 0.5, 2), "Tall"),
    ]
    (film,) = write_moments(moments, sources, tmp_path / "film.mp4", titles=titles, rate=25).files
    measured = played(page, film)
    assert (measured["width"], measured["height"]) == (320, 180)
    assert measured["duration"] == pytest.approx(6.0 if titles else 2.0, abs=0.05)
    assert measured["played"] == pytest.approx(measured["duration"], abs=0.1)
