"""Videos that browsers do not play: how far their conversion is, and what is wrong where it fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moviola.errors import NotFound, UnreadableMedia
from moviola.server import converting
from moviola.server.converting import Conversions
from moviola.server.pools import Pool
from moviola.server.problems import Busy
from moviola.server.progress import Progress
from moviola.server.stills import FileCache

Make = Callable[..., None]


@pytest.fixture
def conversions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conversions:
    """A cache of converted videos whose requests do not wait."""
    monkeypatch.setattr(converting, "_PATIENCE", 0.001)
    (tmp_path / "film.mkv").write_bytes(b"a film")
    return Conversions(
        FileCache(tmp_path / "converted", tmp_path, 10**6), Pool("convert", threads=1, waiting=2)
    )


def appear(out: Path) -> None:
    """As a real conversion does: a request that finds the file finds it whole."""
    draft = out.with_suffix(".draft")
    draft.write_bytes(b"converted")
    draft.replace(out)


async def answer(conversions: Conversions, source: Path) -> Path:
    """Ask until it is there or refused, as the page does."""
    while True:
        try:
            return await conversions.get(source, "1.mp4", 100.0)
        except Busy:
            await asyncio.sleep(0)


def test_the_share_that_is_done_is_said(
    conversions: Conversions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, goes_on = threading.Event(), threading.Event()

    def half(source: Path, out: Path, track: int | None, progress: Callable[[float], None]) -> None:
        progress(50.0)
        written.set()
        assert goes_on.wait(30)
        appear(out)

    monkeypatch.setattr(converting, "make_playable", half)

    async def asked() -> tuple[Progress | None, Path]:
        with pytest.raises(Busy, match=r"film\.mkv"):
            await conversions.get(tmp_path / "film.mkv", "1.mp4", 100.0)
        await asyncio.to_thread(written.wait, 30)
        with pytest.raises(Busy, match="being converted") as said:
            await conversions.get(tmp_path / "film.mkv", "1.mp4", 100.0)
        share = said.value.progress
        goes_on.set()
        return share, await answer(conversions, tmp_path / "film.mkv")

    progress, path = asyncio.run(asked())
    assert progress is not None and progress.share == 0.5
    assert path.read_bytes() == b"converted" == conversions.files.find("1.mp4").read_bytes()  # type: ignore[union-attr]


def test_a_conversion_that_nobody_waited_for_leaves_no_share_to_the_next(
    conversions: Conversions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Semaphore(0)

    def convert(source: Path, out: Path, track: int | None, progress: Callable[[float], None]) -> None:
        assert goes_on.acquire(timeout=30)
        appear(out)
        progress(100.0)

    monkeypatch.setattr(converting, "make_playable", convert)

    async def shares() -> list[float | None]:
        found = []
        for _ in range(2):
            with pytest.raises(Busy) as said:
                await conversions.get(tmp_path / "film.mkv", "1.mp4", 100.0)
            found.append(said.value.progress and said.value.progress.share)
            goes_on.release()
            while conversions.files._making:
                await asyncio.sleep(0.001)
            (tmp_path / "converted" / "1.mp4").unlink()
        return found

    assert set(asyncio.run(shares())) <= {None, 0.0}


def test_a_failure_is_said_and_not_repeated_until_the_file_changes(
    conversions: Conversions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tried = tmp_path / "film.mkv", []

    def fails(path: Path, *_: Any) -> None:
        tried.append(path)
        raise UnreadableMedia(path, "no picture can be decoded")

    monkeypatch.setattr(converting, "make_playable", fails)

    async def asked() -> None:
        for content in (b"a film", b"another film"):
            source.write_bytes(content)
            for _ in range(3):
                with pytest.raises(UnreadableMedia, match="no picture can be decoded"):
                    await answer(conversions, source)

    asyncio.run(asked())
    assert len(tried) == 2


def test_a_file_that_went_before_it_was_converted_is_said_to_be_gone(
    conversions: Conversions, tmp_path: Path
) -> None:
    (tmp_path / "film.mkv").unlink()
    with pytest.raises(NotFound, match=r"film\.mkv: its file is not there"):
        asyncio.run(conversions.get(tmp_path / "film.mkv", "1.mp4", 100.0))


def test_the_time_that_is_left_follows_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("moviola.server.progress.monotonic", lambda: now)
    progress = Progress()
    assert (progress.share, progress.seconds_left) == (None, None)
    progress.at(0.0)
    now = 30.0
    assert progress.seconds_left is None
    progress.at(0.25)
    progress.at(0.1)  # a second attempt begins from the start
    assert (progress.share, progress.seconds_left) == (0.25, pytest.approx(90))
    progress.at(1.5)
    assert (progress.share, progress.seconds_left) == (1.0, 0.0)
