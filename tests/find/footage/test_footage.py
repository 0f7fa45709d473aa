"""Real files that nobody here made, against what ffprobe says of them and what decoding everything gives.

Nothing is known here about single files: what each of them is comes from manifest.json, and from
frame_times.json, which scripts/make_frame_times.py wrote with ffprobe's answers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from moviola.errors import MediaError, NoVideoStream, UnreadableMedia
from moviola.media import VIDEO_SUFFIXES, frame_at, probe, read_subtitles, sample_frames
from moviola.types import FrameSize

WIDTH, HEIGHT = 64, 48
SMALL = FrameSize(HEIGHT, WIDTH, fit="stretch")
SUBTITLES = {".srt", ".vtt", ".ass"}
MILLISECOND = 0.001
FRAME_TIMES: dict[str, dict[str, Any] | None] = json.loads(
    Path(__file__).with_name("frame_times.json").read_text()
)
FILMS = [name for name, entry in FRAME_TIMES.items() if entry]
INTACT_FILMS = [name for name, entry in FRAME_TIMES.items() if entry and not entry["damaged"]]
NO_FILMS = [name for name, entry in FRAME_TIMES.items() if not entry]


def manifest_of(folder: Path) -> list[dict[str, Any]]:
    """The entries of the footage's manifest; none where there is no footage, which each test then says."""
    manifest = folder / "manifest.json"
    return json.loads(manifest.read_text()) if manifest.is_file() else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per file that the manifest describes: the folder is read when tests are collected."""
    if "described" in metafunc.fixturenames:
        default = Path(__file__).resolve().parents[3].parent / "shared" / "videos"
        entries = manifest_of(Path(os.environ.get("MOVIOLA_VIDEOS", default)))
        names = [entry["file"] for entry in entries if "codec" in entry]
        metafunc.parametrize("described", names or ["no footage"])


@dataclass(frozen=True)
class Reference:
    """When ffprobe says that the pictures of a file are shown."""

    times: list[float]  # seconds from zero, in order of display
    last_duration: float  # seconds, 0 where the file does not say
    longest_duration: float
    damaged: bool

    @classmethod
    def of(cls, name: str) -> Reference:
        entry = FRAME_TIMES[name]
        assert entry is not None
        tick = Fraction(entry["tick"])
        steps = chain.from_iterable(repeat(ticks, times) for ticks, times in entry["steps"])
        ticks = accumulate(steps, initial=entry["first"])
        return cls(
            [float(stamp * tick) for stamp in ticks],
            float(entry["last"] * tick),
            float(entry["longest"] * tick),
            entry["damaged"],
        )

    def shown_at(self, time: float) -> int:
        """Number of the picture on screen; the first one before it is shown."""
        return max(bisect_right(self.times, time + 1e-6) - 1, 0)


def all_pictures(path: Path) -> NDArray[np.uint8]:
    """All pictures in order, decoded without selecting any, turned for display, (n, h, w, 3)."""
    images = []
    with av.open(str(path.absolute())) as container:
        for frame in container.decode(video=0):
            turns = round(frame.rotation / 90)
            width, height = (HEIGHT, WIDTH) if turns % 2 else (WIDTH, HEIGHT)
            scaled = frame.reformat(width, height, "rgb24", interpolation=Interpolation.BICUBIC)
            images.append(np.rot90(scaled.to_ndarray(), turns))
    return np.stack(images)


@pytest.fixture
def path(footage: Path, name: str) -> Path:
    return footage / name


@pytest.fixture
def reference(name: str) -> Reference:
    return Reference.of(name)


def test_the_times_are_of_these_files(footage: Path) -> None:
    entries = {e["file"]: e for e in manifest_of(footage) if Path(e["file"]).suffix.lower() not in SUBTITLES}
    assert set(FRAME_TIMES) == set(entries), "run scripts/make_frame_times.py"
    for name in FILMS:
        entry = FRAME_TIMES[name]
        assert entry is not None
        assert entry["sha256"] == hashlib.sha256((footage / name).read_bytes()).hexdigest(), name


@pytest.mark.parametrize("name", NO_FILMS)
def test_files_without_pictures_are_refused(path: Path) -> None:
    with pytest.raises(NoVideoStream, match="no video stream") as refused:
        probe(path)
    assert refused.value.path == str(path)
    with pytest.raises(MediaError):
        sample_frames(path, size=SMALL)


@pytest.mark.parametrize("name", FILMS)
def test_every_film_is_read_to_its_end(path: Path, reference: Reference) -> None:
    with sample_frames(path, rate=1, size=SMALL) as frames:
        images = [frame.image for frame in frames]
    assert len(images) == math.ceil(round(frames.duration, 6))
    assert all(image.shape == (HEIGHT, WIDTH, 3) and image.dtype == np.uint8 for image in images)
    if not reference.damaged:
        assert frames.broken_at is None
        assert frames.lost == 0


@pytest.mark.parametrize("rate", [1, 7])
@pytest.mark.parametrize("name", FILMS)
def test_frames_on_screen_are_those_that_ffprobe_says(path: Path, reference: Reference, rate: float) -> None:
    with sample_frames(path, rate=rate, size=SMALL) as frames:
        sampled = list(frames)
    for frame in sampled:
        assert abs(frame.shown_since - reference.times[reference.shown_at(frame.time)]) <= MILLISECOND
    last = reference.last_duration or reference.times[-1] - reference.times[-2]
    assert frames.duration == pytest.approx(reference.times[-1] + last, abs=MILLISECOND)


# Replacements of lost pictures differ, so damaged files are left out here.
@pytest.mark.parametrize("name", INTACT_FILMS)
def test_pictures_are_those_that_decoding_everything_gives(path: Path, reference: Reference) -> None:
    """Of a stream and of one time each; all of a film is decoded once for both."""
    pictures = all_pictures(path)
    assert len(pictures) == len(reference.times)
    with sample_frames(path, rate=4, size=SMALL) as frames:
        for frame in frames:
            difference = np.abs(pictures[reference.shown_at(frame.time)].astype(int) - frame.image).mean()
            assert difference < 4, f"picture at {frame.time} s"
    for time in np.linspace(0, reference.times[-1], 5):
        image = frame_at(path, float(time), 64)
        rows = np.arange(HEIGHT) * image.shape[0] // HEIGHT
        assert np.abs(pictures[reference.shown_at(time)].astype(int) - image[rows]).mean() < 16


def test_header_is_that_of_the_manifest(footage: Path, described: str) -> None:
    entry = next(entry for entry in manifest_of(footage) if entry["file"] == described)
    info = probe(footage / described)
    turned = round(entry["rot"]) % 180 == 90
    assert (info.width, info.height) == ((entry["h"], entry["w"]) if turned else (entry["w"], entry["h"]))
    assert info.rotation == -entry["rot"] % 360
    assert info.video_codec == entry["codec"]
    assert (info.audio_codec is not None) == bool(entry["audio"])
    assert info.frame_rate == pytest.approx(entry["fps"], rel=0.01)
    if entry["duration"] < 0:
        assert info.promised is None
    else:
        assert info.duration == pytest.approx(entry["duration"], abs=0.06)


def test_subtitle_files_are_read(footage: Path) -> None:
    files = [file for file in sorted(footage.iterdir()) if file.suffix.lower() in SUBTITLES]
    for file in files:
        subtitles = read_subtitles(file)
        assert subtitles.cues
        assert subtitles.skipped == 0
        assert all(0 <= cue.start < cue.end and cue.text for cue in subtitles.cues)


def test_what_moves_is_known_by_its_suffix(footage: Path) -> None:
    moving = {entry["file"] for entry in manifest_of(footage) if "codec" in entry}
    assert {Path(name).suffix.lower() for name in moving} <= VIDEO_SUFFIXES
    assert not VIDEO_SUFFIXES & (SUBTITLES | {".json", ".md", ".mp3"})


@pytest.mark.parametrize("keep", [0.02, 0.6])
@pytest.mark.parametrize("name", FILMS)
def test_files_that_break_off(path: Path, reference: Reference, tmp_path: Path, keep: float) -> None:
    """Frames that are right, or a reason; and what is missing is noticed where the format lets one."""
    whole = path.read_bytes()
    broken = tmp_path / path.name
    broken.write_bytes(whole[: int(len(whole) * keep)])
    try:
        with sample_frames(broken, rate=2, size=SMALL) as frames:
            sampled = list(frames)
    except UnreadableMedia as error:
        assert error.reason
        return
    assert sampled
    assert frames.duration <= reference.times[-1] + reference.longest_duration + 1
