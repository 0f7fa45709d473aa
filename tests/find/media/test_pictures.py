"""Files that are written: films with the same bytes each time, contact sheets."""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from moviola.errors import InvalidValue
from moviola.media import (
    SheetCell,
    contact_sheet,
    frame_at,
    letters_without_font,
    probe,
    sample_frames,
    write_video,
)
from moviola.types import Cue, FrameSize


def as_jpeg(image: np.ndarray[Any, Any]) -> bytes:
    buffer = BytesIO()
    Image.fromarray(image).save(buffer, "JPEG")
    return buffer.getvalue()


def moving(count: int) -> list[np.ndarray[Any, Any]]:
    """Frames of coloured fields that move."""
    small = np.random.default_rng(1).integers(0, 255, (9, 16, 3), dtype=np.uint8)
    field = np.kron(small, np.ones((20, 20, 1), np.uint8))
    return [np.roll(field, 3 * number, axis=1) for number in range(count)]


def test_the_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_video(tmp_path / name / "film.mp4", moving(60), rate=8, subtitles=[Cue(1, 2, "hello")])
    first, second = ((tmp_path / name / "film.mp4").read_bytes() for name in ("a", "b"))
    assert first == second
    assert b"Lavf" not in first
    assert first.index(b"moov") < first.index(b"mdat")


def test_frames_come_back(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    frames = moving(40)
    write_video(path, iter(frames), rate=8, crf=10, keyframe_every=1)
    info = probe(path)
    assert (info.duration, info.frame_rate, info.video_codec) == (5.0, 8.0, "h264")
    with sample_frames(path, rate=8, size=FrameSize(180, 320, fit="stretch")) as stream:
        for frame, written in zip(stream, frames, strict=True):
            assert np.abs(frame.image.astype(int) - written).mean() < 6


@pytest.mark.parametrize("rate", [0.0009, 0.3, 24, 30000 / 1001])
def test_a_film_lasts_as_long_as_its_rate_says(tmp_path: Path, rate: float) -> None:
    write_video(tmp_path / "film.mp4", moving(3), rate=rate)
    assert probe(tmp_path / "film.mp4").duration == pytest.approx(3 / rate, abs=1e-3)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "no frames"),
        ([np.zeros((33, 32, 3), np.uint8)], "even"),
        ([np.zeros((32, 32, 3), np.uint8), np.zeros((32, 30, 3), np.uint8)], "frame 1"),
    ],
)
def test_frames_that_cannot_be_written(tmp_path: Path, frames: list[Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        write_video(tmp_path / "film.mp4", frames, rate=8)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_source_of_frames_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Any:
        yield from moving(3)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_video(tmp_path / "film.mp4", failing(), rate=8)
    assert list(tmp_path.iterdir()) == []


def test_writing_can_be_handed_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(write_video)) is write_video


def test_contact_sheet(tmp_path: Path, films: Any) -> None:
    path, _ = films.make("h264_plain", options={"preset": "veryfast"}, seconds=1)
    out = tmp_path / "sheet.png"
    cells = [
        SheetCell(frame_at(path, 0.0, 320), ("1. film.mp4", "0:00:01.0 – 0:00:04.2   0.312")),
        SheetCell(
            np.full((400, 100, 3), 200, np.uint8), ("a caption that is far too long for one cell " * 3,)
        ),
        SheetCell(as_jpeg(np.zeros((10, 10, 3), np.uint8))),
    ]
    contact_sheet(cells, out, columns=2, title="“pick up a key”")
    with Image.open(out) as sheet:
        assert sheet.format == "PNG"
        width = sheet.width
    assert width > 2 * 320
    contact_sheet([(np.zeros((10, 10, 3), np.uint8), ["größer – Tür"])], out)
    with Image.open(out) as sheet:
        assert sheet.width < width
    assert [file.name for file in tmp_path.iterdir()] == ["sheet.png"]


def test_letters_that_no_font_has_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes stood for a name, and nothing said so."""
    sheets = sys.modules["moviola.media.contact_sheet"]  # a function of the room has its name, too
    monkeypatch.setattr(sheets, "_SYSTEM_FONTS", ())
    sheets._font.cache_clear()
    assert letters_without_font(["a – b", "東京 film", "京"]) == "東京"
    sheets._font.cache_clear()


def test_contact_sheet_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="0 cells"):
        contact_sheet([], tmp_path / "sheet.png")
