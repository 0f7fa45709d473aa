"""Clips and contact sheets at places that cannot be written: an error that names the place, no traceback."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from moviola.errors import InvalidValue
from moviola.export import Selection, clips, export_clips, export_sheet, write_moments
from moviola.export.sheet import moment_cells
from moviola.media import write_video
from moviola.types import Moment


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, str]:
    """One film of four seconds, ``a``."""
    path = tmp_path / "a.mp4"
    write_video(path, [np.full((32, 32, 3), 5 * number, np.uint8) for number in range(40)], rate=10)
    return {"a": str(path)}


def moments(*spans: tuple[float, float]) -> list[Moment]:
    return [Moment("a", start, end, 0.5, rank) for rank, (start, end) in enumerate(spans, 1)]


def impossible(folder: Path) -> list[Path]:
    """A file, something below it, a pipe, something below a device, a file system that takes no files."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    return [folder / "a.mp4", folder / "a.mp4" / "inner", pipe, Path("/dev/null/x"), Path("/proc/x")]


def test_clips_and_sheets_where_they_can_be_written(tmp_path: Path, sources: dict[str, str]) -> None:
    written, failed = export_clips(moments((0, 1), (2, 3)), sources, tmp_path / "new" / "clips")
    assert [path.name for path in written] == ["001_a_0.0-1.0.mp4", "002_a_2.0-3.0.mp4"]
    assert sorted((tmp_path / "new" / "clips").iterdir()) == written
    assert failed == {}
    assert export_sheet(moments((0, 1)), sources, tmp_path / "found.png", title="a") == {}
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    written_sheet = write_moments(moments((0, 1)), sources, tmp_path / "b.png", title="\U0010fffd")
    assert "boxes stand for them; install fonts" in written_sheet.remark


@pytest.mark.parametrize("place", range(5))
def test_clips_at_impossible_places(tmp_path: Path, sources: dict[str, str], place: int) -> None:
    folder = impossible(tmp_path)[place]
    with pytest.raises(InvalidValue, match=f"{folder}: clips cannot be written there .*name a folder"):
        export_clips(moments((0, 1)), sources, folder)


@pytest.mark.parametrize("place", range(1, 5))
def test_sheets_at_impossible_places(tmp_path: Path, sources: dict[str, str], place: int) -> None:
    out = impossible(tmp_path)[place]
    with pytest.raises(InvalidValue, match=f"{out}: cannot be written .*name a"):
        export_sheet(moments((0, 1)), sources, out, title="a")
    with pytest.raises(InvalidValue, match=f"{tmp_path}: cannot be written .*name a"):
        export_sheet(moments((0, 1)), sources, tmp_path, title="a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_clip_that_cannot_be_written_does_not_stop_the_others(
    tmp_path: Path, sources: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clips" / "001_a_0.0-1.0.mp4").mkdir(parents=True)
    ranked = moments((0, 1), (9, 10), (2, 3))
    written, failed = export_clips(ranked, sources, tmp_path / "clips")
    assert [path.name for path in written] == ["003_a_2.0-3.0.mp4"]
    assert "cannot be written" in failed["001_a_0.0-1.0.mp4"]
    assert "after the end" in failed["002_a_9.0-10.0.mp4"]

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(clips, "cut", full)
    written, failed = export_clips(ranked, sources, tmp_path / "clips")
    assert not written
    assert all("No space left" in reason for reason in failed.values())


def test_films_at_impossible_places(tmp_path: Path, sources: dict[str, str]) -> None:
    for out in impossible(tmp_path)[1:]:
        with pytest.raises(InvalidValue, match=f"{out}: cannot be written"):
            write_video(out, [np.zeros((32, 32, 3), np.uint8)], rate=10)


def test_sheets_round_scores_down(sources: dict[str, str]) -> None:
    (moment,) = moments((0, 1))
    (cell,), _ = moment_cells([replace(moment, score=0.2499)], sources)
    assert cell.caption[1].endswith("   0.249")


def test_sheets_show_titles(tmp_path: Path, sources: dict[str, str]) -> None:
    plain, titled = tmp_path / "plain.png", tmp_path / "titled.png"
    write_moments(moments((0, 1), (2, 3)), sources, plain, title="a", columns=1)
    chosen = [Selection(moment, "A door") for moment in moments((0, 1), (2, 3))]
    assert write_moments(chosen, sources, titled, title="a", columns=1).files == (titled,)
    with Image.open(plain) as without, Image.open(titled) as image:
        assert image.width == without.width and image.height > without.height
