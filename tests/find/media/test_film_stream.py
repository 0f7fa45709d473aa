"""Which stream is the film, among covers, thumbnails and other angles, wherever they lie in the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from av.stream import Disposition

from made_films import Pictures, Sound, make_film
from moviola.errors import NoVideoStream
from moviola.media import probe, sample_frames
from moviola.types import FrameSize

FILM = Pictures(3.0, size=(64, 48))
COVER = Pictures(times=[0.0], size=(128, 128), codec="mjpeg", pix_fmt="yuvj420p", options={})
SLIDES = Pictures(times=[0.0, 1.0, 2.0], size=(128, 72))
SMALL = Pictures(3.0, size=(32, 24))


def tagged(track: Pictures, disposition: Disposition) -> Pictures:
    return replace(track, disposition=disposition)


DEFAULT, COVER_ART = Disposition.default, Disposition.attached_pic
CASES = {
    "a still before": (FILM, [COVER, FILM]),
    "a still behind": (FILM, [FILM, COVER]),
    "a still that is the default": (FILM, [tagged(COVER, DEFAULT), tagged(FILM, Disposition(0))]),
    "two stills before": (FILM, [COVER, COVER, FILM]),
    "the smaller is the default": (FILM, [tagged(SLIDES, Disposition(0)), tagged(FILM, DEFAULT)]),
    "the larger is not first": (FILM, [tagged(SMALL, DEFAULT), tagged(FILM, DEFAULT)]),
    "a short one before": (FILM, [Pictures(0.4, size=(128, 72)), FILM]),
}


@pytest.mark.parametrize("suffix", ["mkv", "mov"])
@pytest.mark.parametrize("name", CASES)
def test_the_film_is_what_moves(tmp_path: Path, name: str, suffix: str) -> None:
    """A cover that is no cover by its flags, or lies first, or is the default was taken for the film."""
    film, tracks = CASES[name]
    path = make_film(tmp_path / f"film.{suffix}", *tracks, Sound(3.0))
    info = probe(path)
    assert (info.width, info.height, info.duration) == (*film.size, pytest.approx(3.0, abs=0.05))
    with sample_frames(path, rate=5, size=FrameSize(8, 8, fit="stretch")) as stream:
        images = np.array([frame.image.mean() for frame in stream])
    assert stream.broken_at is None and len(images) == 15
    assert (np.abs(np.diff(images)) > 5).all()


def test_a_still_alone_is_a_film(tmp_path: Path) -> None:
    """Songs have one picture; only where its flags say that it is a cover, there is no film."""
    song = make_film(tmp_path / "song.mkv", COVER, Sound(3.0))
    assert probe(song).width == 128
    album = make_film(tmp_path / "album.mp4", tagged(COVER, COVER_ART), Sound(3.0))
    with pytest.raises(NoVideoStream, match="cover art"):
        probe(album)
