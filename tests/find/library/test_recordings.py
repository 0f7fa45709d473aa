"""Files of one recording are recognised by their names, and by times that join; others are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from made_films import Pictures, make_film
from moviola.cli import all_commands
from moviola.library import Recording, VideoRow, common_recording, recordings_of
from moviola.search import Library, Text
from moviola.search.asked import Asked
from moviola.search.last_answer import KeptAnswer, keep_answer
from moviola.types import Capture, Moment


def grouped(names: Mapping[str, float], **others: Capture) -> list[tuple[str, ...]]:
    """The recordings among files of some seconds; ids are their paths."""
    videos = [
        VideoRow(
            row, name, f"/card/{name}", 1, 0, str(row), "", "ready", duration=seconds, width=64, height=48
        )
        for row, (name, seconds) in enumerate(names.items(), 1)
    ]
    captures = {
        video.row: others[Path(video.path).stem] for video in videos if Path(video.path).stem in others
    }
    return sorted({one.video_ids for one in recordings_of(videos, captures).values()})


@pytest.mark.parametrize(
    ("names", "recordings"),
    [
        (["GX020123.MP4", "GX010123.MP4", "GX010124.MP4"], [("GX010123.MP4", "GX020123.MP4")]),
        (["GOPR0007.MP4", "GP010007.MP4"], [("GOPR0007.MP4", "GP010007.MP4")]),
        (["gh010001.mp4", "GH020001.MP4"], [("gh010001.mp4", "GH020001.MP4")]),
        (["GX010123.MP4", "other/GX020123.MP4"], []),
        (["GX010123.MP4", "GX020123.LRV"], []),
        (["GX010123.MP4", "GH020123.MP4"], []),
        (["GX010123.MP4"], []),
        (["film1.mp4", "film2.mp4"], []),
        (
            ["2023_0501_143000_0001F.MP4", "2023_0501_143000_0002R.MP4", "2023_0501_143100_0003F.MP4",
             "2023_0501_143100_0004R.MP4", "2023_0501_143500_0005F.MP4"],
            [("2023_0501_143000_0001F.MP4", "2023_0501_143100_0003F.MP4"),
             ("2023_0501_143000_0002R.MP4", "2023_0501_143100_0004R.MP4")],
        ),
        (
            ["DJI_20230501143000_0001_D.MP4", "DJI_20230501143100_0002_D.MP4",
             "DJI_20230501143210_0003_D.MP4"],
            [("DJI_20230501143000_0001_D.MP4", "DJI_20230501143100_0002_D.MP4")],
        ),
        (["IMG_20230501.mp4", "IMG_20230502.mp4"], []),
    ],
)  # fmt: skip
def test_what_belongs_together(names: list[str], recordings: list[tuple[str, ...]]) -> None:
    """Each film is a minute long."""
    assert grouped(dict.fromkeys(names, 60.0)) == recordings


def test_only_parts_of_the_same_recording_have_one_in_common() -> None:
    one, other = Recording(("a", "b")), Recording(("c", "d"))
    known = {"a": one, "b": one, "c": other, "d": other}
    assert common_recording(known, ("a", "b")) == ("a", "b")
    assert common_recording(known, ("a", "c")) == common_recording(known, ("a", "alone")) == ()
    assert common_recording(known, ("alone", "other")) == ()


def test_only_what_joins_is_one_recording() -> None:
    """Not where a file was started by hand later, nor by another camera with such names; overlaps join."""
    first, later = "2023_0501_143000_0001F.MP4", "2023_0501_143100_0002F.MP4"
    assert grouped({first: 50.0, later: 60.0}) == []
    assert grouped({first: 62.0, later: 60.0}) == [(first, later)]
    cameras = {"2023_0501_143000_0001F": Capture(model="A"), "2023_0501_143100_0002F": Capture(model="B")}
    assert grouped({first: 60.0, later: 60.0}, **cameras) == []


def test_a_library_says_what_is_one_recording(
    tmp_path: Path, opened: Callable[..., Library], capsys: pytest.CaptureFixture[str]
) -> None:
    """Videos keep their own times; a part that is removed leaves the others."""
    for name in ("GX010001", "GX020001", "GX030001", "GX010002"):
        make_film(tmp_path / "films" / f"{name}.mp4", Pictures(2.0), tags={"title": name})
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films")
    recording = library.recordings["GX020001"]
    assert (
        recording.video_ids == ("GX010001", "GX020001", "GX030001") and "GX010002" not in library.recordings
    )
    assert (recording.part("GX020001"), recording.next("GX020001"), recording.next("GX030001")) == (
        2, "GX030001", None
    )  # fmt: skip
    library.indexer.remove(["GX020001"])
    assert library.recordings["GX030001"].video_ids == ("GX010001", "GX030001")


def test_playing_goes_on_up_to_a_part_that_is_away(
    tmp_path: Path, opened: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the part of the moment on; behind a part whose file is gone nothing, which would be a jump."""
    monkeypatch.setattr("moviola.export.play", lambda command: None)
    for name in ("GX010001", "GX020001", "GX030001", "GX040001", "other"):
        make_film(tmp_path / "films" / f"{name}.mp4", Pictures(2.0), tags={"title": name})
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films")
    (tmp_path / "films" / "GX040001.mp4").unlink()
    found = {}
    for video_id in ("GX020001", "GX030001", "other"):
        moments = [Moment(video_id, 0.5, 1.0, 0.5, 1)]
        keep_answer(library.folder, KeptAnswer(Asked(Text("any")), moments))
        command = ["open", "1", "-l", str(library.folder), "--player", "true {path} {next}", "--json"]
        done = CliRunner().invoke(all_commands(), command)
        assert done.exit_code == 0, done.output
        found[video_id] = [Path(word).stem for word in json.loads(done.stdout)["command"][1:]]
    assert found == {
        "GX020001": ["GX020001", "GX030001"], "GX030001": ["GX030001"], "other": ["other"],
    }  # fmt: skip
