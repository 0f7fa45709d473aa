"""A file that changes under its name and keeps its size: received in pieces, or written in place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from made_films import Pictures, Sound, make_film
from moviola.search import Library


def big_film(path: Path, suffix: str, seconds: float) -> Path:
    """A film larger than the pieces that are hashed."""
    codec = {"mpg": "mpeg2video", "mkv": "mpeg4"}[suffix]
    film = Pictures(seconds, size=(64, 48), codec=codec, options={})
    return make_film(
        path.with_suffix(f".{suffix}"), film, Sound(seconds, "pcm_s16le" if suffix == "mkv" else "mp2")
    )


@pytest.fixture
def empty(opened: Callable[..., Library]) -> Library:
    return opened(encoder="demo", sentence_encoder="none")


def written(path: Path, data: bytes) -> None:
    """Write in place, a second later."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


@pytest.mark.parametrize("encoder", ["demo", "none"])
def test_other_content_between_the_hashed_pieces(
    tmp_path: Path, opened: Callable[..., Library], encoder: str
) -> None:
    """Four pieces are hashed: a file with other bytes between them was "moved", and kept its old features."""
    film = big_film(tmp_path / "films" / "film", "mkv", 16)
    library = opened(encoder=encoder, sentence_encoder="none")
    library.index(film.parent)
    whole = bytearray(film.read_bytes())
    assert len(whole) > 5 * 256 * 1024
    written(film, whole)
    report = library.index(film.parent)
    assert (report.moved, report.updated) == (["film"], [])
    with av.open(str(film)) as container:
        places = [packet.pos or 0 for packet in container.demux(container.streams.audio[0]) if packet.size]
    (place, *_) = [at for at in places if 260 * 1024 < at < (len(whole) - 256 * 1024) // 3 - 1000]
    whole[place + 100] ^= 0xFF
    written(film, whole)
    report = library.index(film.parent)
    assert (report.moved, report.updated) == ([], ["film"])
    assert library.index(film.parent).unchanged == ["film"]


def test_a_file_of_which_pieces_came_later(tmp_path: Path, empty: Library) -> None:
    """A client of torrents makes the file in its size; an MPEG with holes was ``ready`` for ever."""
    film = big_film(tmp_path / "films" / "film", "mpg", 60)
    whole = film.read_bytes()
    assert len(whole) > 5 * 256 * 1024
    holes = bytearray(whole)
    third = (len(whole) - 256 * 1024) // 3
    for n in range(3):
        start, end = n * third + 256 * 1024, (n + 1) * third
        holes[start:end] = bytes(end - start)
    film.write_bytes(holes)
    empty.index(film.parent)
    assert empty.catalogue.video("film").state == "partial"
    written(film, whole)
    assert empty.index(film.parent).updated == ["film"]
    video = empty.catalogue.video("film")
    assert video.state == "ready" and video.duration == pytest.approx(60, abs=0.2)
