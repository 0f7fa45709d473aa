"""Whole videos for browsers: copied where that plays, else encoded, all their pictures and their sound."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from late_pictures import late_pictures
from moviola.errors import UnreadableMedia
from moviola.media import make_playable, plays_in_browsers, probe, read_sound, sample_frames
from moviola.types import FrameSize

H264 = {"options": {"bf": "3", "preset": "veryfast"}, "seconds": 3}
PLAYED: dict[str, dict[str, Any]] = {
    "mp4": {**H264, "sound": "aac"},
    "silent": H264,
    "mov": {**H264, "suffix": "mov", "sound": "aac"},
    "webm": {
        "suffix": "webm",
        "codec": "libvpx",
        "options": {"cpu-used": "8"},
        "seconds": 3,
        "sound": "libopus",
    },
}
NOT_PLAYED: dict[str, dict[str, Any]] = {
    "matroska": {**H264, "suffix": "mkv", "sound": "aac"},
    "flac": {**H264, "suffix": "mkv", "sound": "flac"},
    "avi": {"suffix": "avi", "codec": "mpeg4", "seconds": 3, "sound": "mp3", "tick": Fraction(1, 25)},
    "444": {**H264, "pix_fmt": "yuv444p"},
    "turned": {**H264, "suffix": "mkv", "rotation": -90},
}


@pytest.mark.parametrize("name", PLAYED)
def test_what_browsers_play_is_known(films: Any, name: str) -> None:
    assert plays_in_browsers(probe(films.make(f"played_{name}", **PLAYED[name])[0]))


@pytest.mark.parametrize("name", NOT_PLAYED)
def test_what_they_do_not_play_is_made_playable(films: Any, tmp_path: Path, name: str) -> None:
    path, film = films.make(f"not_played_{name}", **NOT_PLAYED[name])
    out = tmp_path / "out.mp4"
    assert not plays_in_browsers(probe(path))
    make_playable(path, out)
    made = probe(out)
    assert plays_in_browsers(made) and made.duration == pytest.approx(film.seconds, abs=0.05)
    if not film.rotation:
        assert numbers_of(films, out) == numbers_of(films, path)
    heard = np.concatenate([np.zeros(1, np.float32), *read_sound(out)])
    assert bool(film.sound) == (np.abs(heard).max() > 0.1)
    if film.sound:
        assert len(heard) / 16_000 == pytest.approx(film.seconds, abs=0.1)


def test_sound_before_the_pictures_is_not_what_browsers_count_from(films: Any, tmp_path: Path) -> None:
    path, film = films.make("silent", **PLAYED["silent"])
    late = late_pictures(path, tmp_path / "late.mp4", 2)
    assert (probe(path).lead, probe(late).lead) == (0, pytest.approx(2))
    assert not plays_in_browsers(probe(late))
    make_playable(late, tmp_path / "out.mp4")
    made = probe(tmp_path / "out.mp4")
    assert made.lead == 0 and made.duration == pytest.approx(film.seconds, abs=0.05)
    assert numbers_of(films, tmp_path / "out.mp4") == numbers_of(films, path)


def numbers_of(films: Any, path: Path) -> list[int]:
    """Numbers of the pictures that are shown, each twenty-fifth of a second."""
    with sample_frames(path, rate=25, size=FrameSize(48, 64, fit="stretch")) as frames:
        return [films.number_of(frame.image) for frame in frames]


def test_a_sound_track_that_cannot_be_copied_costs_no_picture(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("not_played_flac", **NOT_PLAYED["flac"])
    make_playable(path, tmp_path / "out.mp4")
    made = probe(tmp_path / "out.mp4")
    assert made.audio_codec == "aac"
    assert packets_of(path) == packets_of(tmp_path / "out.mp4")


def packets_of(path: Path) -> list[int]:
    """Sizes of the compressed pictures: the same where nothing was encoded again."""
    import av

    with av.open(str(path)) as container:
        return [packet.size for packet in container.demux(video=0) if packet.size]


def test_nothing_is_left_where_it_fails(tmp_path: Path) -> None:
    (tmp_path / "broken.mkv").write_bytes(b"no film")
    with pytest.raises(UnreadableMedia):
        make_playable(tmp_path / "broken.mkv", tmp_path / "out.mp4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.mkv"]
