"""Files of one recording, and files whose names are in any letters: every format points at the right file and
time, as OpenTimelineIO reads it.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import opentimelineio as otio
import pytest

from moviola.errors import InvalidValue
from moviola.export import player_command, write_moments
from moviola.media import frame_at
from moviola.types import Moment, Span
from numbered import number_of, numbered_film

NAMES = {
    "GX010007": "GX010007.mov",
    "GX020007": "GX020007.mov",
    "rtl": "שלום עולם ١٢٣ — مرحبا.mov",
    "cjk": "海邊日落・夕焼け 노을.mov",
    "mixed": "Ça va? שלום 海 🎬 (é).mov",
}
RATE = 25


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two parts of a recording, whose timecode goes on, and others; two seconds each."""
    folder = tmp_path_factory.mktemp("סרטים 電影")
    return {
        video_id: str(numbered_film(folder / name, RATE, 2, timecode=f"10:00:{2 * place:02}:00"))
        for place, (video_id, name) in enumerate(NAMES.items())
    }


def chosen() -> list[Moment]:
    """The end of the first part, the beginning of the next, and a moment of each of the others."""
    spans = {"GX010007": (1.6, 2.0), "GX020007": (0.0, 0.4)}
    return [
        Moment(video_id, *spans.get(video_id, (0.4, 1.2)), 0.5, rank)
        for rank, video_id in enumerate(NAMES, 1)
    ]


@pytest.mark.parametrize("suffix", [".edl", ".fcpxml", ".otio"])
def test_formats_of_editors(tmp_path: Path, parts: dict[str, str], suffix: str) -> None:
    """Clips in order, each with the timecode of its own file; a part begins where the one before it ends."""
    out = tmp_path / f"שלום 海{suffix}"
    write_moments(chosen(), parts, out)
    read: Any = otio.adapters.read_from_file(str(out), **({"rate": RATE} if suffix == ".edl" else {}))
    clips = list(read.find_clips())
    assert len(clips) == len(NAMES)
    for place, (clip, moment) in enumerate(zip(clips, chosen(), strict=True)):
        path = Path(parts[moment.video_id])
        first = (36_000 + 2 * place) * RATE
        range_ = clip.source_range
        assert range_.start_time.rescaled_to(RATE).value == first + round(moment.start * RATE)
        assert range_.duration.rescaled_to(RATE).value == round((moment.end - moment.start) * RATE)
        if suffix == ".edl":  # which has no paths
            assert clip.name == path.name
        elif suffix == ".otio":
            assert unquote(urlsplit(clip.media_reference.target_url).path) == str(path)
    if suffix == ".fcpxml":  # whose paths OpenTimelineIO reads where they were before version 1.9
        sources = [one.attrib["src"] for one in ElementTree.parse(out).getroot().iter("media-rep")]
        assert [unquote(urlsplit(source).path) for source in sources] == [*parts.values()]
    ends, begins = clips[0].source_range.end_time_exclusive(), clips[1].source_range.start_time
    assert ends == begins
    if suffix == ".edl":
        reels = [line.split()[1] for line in out.read_text("utf-8").splitlines() if line[:3].isdigit()]
        assert reels[:2] == ["GX010007", "GX020007"]
        assert len(set(reels)) == len(NAMES)


def test_tables_chapters_and_players(tmp_path: Path, parts: dict[str, str]) -> None:
    write_moments(chosen(), parts, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    write_moments(chosen(), parts, tmp_path / "a.json")
    objects = json.loads((tmp_path / "a.json").read_text("utf-8"))
    objects = objects if isinstance(objects, list) else objects["moments"]
    for row, one, moment in zip(rows, objects, chosen(), strict=True):
        for found in (row, one):
            assert (found["path"], float(found["start"])) == (parts[moment.video_id], moment.start)
        command = player_command(
            parts[moment.video_id], Span(moment.start, moment.end), "true {path} {start}"
        )
        assert command[1:] == [parts[moment.video_id], f"{moment.start:.3f}"]
    written = write_moments(chosen(), parts, tmp_path / "chapters", format="vtt-videos")
    begins = [path.read_text("utf-8").split("-->")[0].split()[-1] for path in written.files]
    assert begins == [f"00:00:0{moment.start:.3f}" for moment in chosen()]
    assert [path.stem for path in written.files][:2] == ["GX010007", "GX020007"]
    for one_video in ("vtt", "edl-markers-video"):
        with pytest.raises(InvalidValue, match="moments of 5 videos"):
            write_moments(chosen(), parts, tmp_path / "one", format=one_video)


def test_films_and_clips(tmp_path: Path, parts: dict[str, str]) -> None:
    """One film of two parts goes on without a gap; each clip begins with the picture of its own file."""
    both = chosen()[:2]
    write_moments(both, parts, tmp_path / "film.mp4")
    film = tmp_path / "film.mp4"
    assert [number_of(frame_at(film, at, 160)) for at in (0.01, 0.37, 0.41)] == [40, 49, 0]
    written = write_moments(both, parts, tmp_path / "clips", format="clips")
    assert [number_of(frame_at(path, 0.01, 160)) for path in written.files] == [40, 0]
