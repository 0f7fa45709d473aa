"""Channels and tracks of sound in what editors read."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import opentimelineio as otio
import pytest

from made_films import Pictures, Sound, make_film
from moviola.export import write_moments
from moviola.types import Moment

CASES = {
    "none": ([], "V", {"V"}, None),
    "mono": ([1], "B", {"V", "A1"}, ("1", "1")),
    "stereo": ([2], "AA/V", {"V", "A1", "A2"}, ("1", "2")),
    "two mono": ([1, 1], "AA/V", {"V", "A1", "A2"}, ("2", "1")),
    "surround": ([6], "AA/V", {"V", "A1", "A2"}, ("1", "6")),
}


@pytest.mark.parametrize("name", CASES)
def test_no_channel_is_lost(tmp_path: Path, name: str) -> None:
    """``B`` is one channel: of stereo the right one was left behind, of two recorded tracks the second."""
    channels, letters, tracks, sound = CASES[name]
    film = make_film(tmp_path / "film.mov", Pictures(3.0), *(Sound(3.0, channels=n) for n in channels))
    moments = [Moment("film", 1.0, 2.0, 0.5, 1)]
    write_moments(moments, {"film": film}, tmp_path / "cut.edl", "edl", rate=25)
    assert (tmp_path / "cut.edl").read_text().splitlines()[3].split()[2] == letters
    read = otio.adapters.read_from_file(str(tmp_path / "cut.edl"), rate=25.0)
    assert {track.name for track in read.tracks} <= tracks | {"A"} and len(read.tracks) == len(tracks)
    write_moments(moments, {"film": film}, tmp_path / "cut.fcpxml", "fcpxml")
    (asset,) = ElementTree.parse(tmp_path / "cut.fcpxml").iter("asset")
    found = (asset.get("audioSources"), asset.get("audioChannels"))
    assert found == (sound or (None, None))
