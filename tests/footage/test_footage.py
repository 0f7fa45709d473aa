"""Real files that nobody here made, against what ffprobe and ffmpeg say of them.

Nothing is known here about single files: what each of them is comes from manifest.json and from ffprobe.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import MediaError, NoVideoStream, UnreadableMedia
from moviola.media import find_videos, frame_at, probe, read_subtitles, sample_frames
from moviola.types import FrameSize

WIDTH, HEIGHT = 64, 48
SMALL = FrameSize(HEIGHT, WIDTH, fit="stretch")
SUBTITLES = {".srt", ".vtt", ".ass"}
MILLISECOND = 0.001


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a file: the folder is read when tests are collected, the ``footage`` fixture checks it."""
    if "name" in metafunc.fixturenames:
        default = Path(__file__).resolve().parents[2].parent / "shared" / "videos"
        manifest = Path(os.environ.get("MOVIOLA_VIDEOS", default)) / "manifest.json"
        entries = json.loads(manifest.read_text()) if manifest.is_file() else []
        names = [entry["file"] for entry in entries if Path(entry["file"]).suffix.lower() not in SUBTITLES]
        metafunc.parametrize("name", names or ["no footage"])


@dataclass(frozen=True)
class Reference:
    """What ffprobe and ffmpeg say of a file. Without a video stream there are no times."""

    stream: dict[str, Any]
    times: list[float]  # seconds from zero, in order of display
    durations: list[float]
    errors: str
    path: Path

    def pictures(self) -> NDArray[np.uint8]:
        """All pictures in order, turned for display, (n, h, w, 3)."""
        command = [*_tool("ffmpeg"), "-i", f"file:{self.path}", "-map", "0:V:0", "-vsync", "passthrough"]
        command += [
            "-vf",
            f"scale={WIDTH}:{HEIGHT}:flags=bicubic",
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-",
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        return np.frombuffer(done.stdout, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def _tool(name: str) -> list[str]:
    found = shutil.which(name)
    if found is None:
        reason = f"{name} is missing: apt-get install ffmpeg"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return [found, "-v", "error"]


@pytest.fixture(scope="module")
def references() -> dict[Path, Reference | None]:
    return {}


@pytest.fixture
def path(footage: Path, name: str) -> Path:
    return footage / name


@pytest.fixture
def reference(path: Path, references: dict[Path, Reference | None]) -> Reference | None:
    """What ffprobe says, None when it finds no video stream that is no cover art."""
    if path not in references:
        references[path] = _ask(path)
    return references[path]


def _ask(path: Path) -> Reference | None:
    entries = "stream:stream_disposition:frame=best_effort_timestamp_time,pkt_duration_time,duration_time"
    command = [*_tool("ffprobe"), "-select_streams", "V:0", "-show_entries", entries, "-of", "json"]
    done = subprocess.run([*command, f"file:{path}"], capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if not answer.get("streams"):
        return None
    stream = answer["streams"][0]
    stamps = [float(frame["best_effort_timestamp_time"]) for frame in answer["frames"]]
    zero = min(stamps) if path.suffix == ".avi" else float(stream["start_time"])
    times = sorted(stamp - zero for stamp in stamps)
    durations = [
        float(frame.get("duration_time", frame.get("pkt_duration_time", 0))) for frame in answer["frames"]
    ]
    return Reference(stream, times, durations, done.stderr, path)


def test_every_file_is_read_or_refused_with_a_reason(path: Path, reference: Reference | None) -> None:
    if reference is None:
        with pytest.raises(NoVideoStream, match="no video stream") as refused:
            probe(path)
        assert refused.value.path == str(path)
        with pytest.raises(MediaError):
            sample_frames(path, size=SMALL)
        return
    with sample_frames(path, rate=1, size=SMALL) as frames:
        images = [frame.image for frame in frames]
    assert len(images) == math.ceil(round(frames.duration, 6))
    assert all(image.shape == (HEIGHT, WIDTH, 3) and image.dtype == np.uint8 for image in images)
    if not reference.errors:
        assert frames.broken_at is None
        assert frames.lost == 0


@pytest.mark.parametrize("rate", [1, 7])
def test_frames_on_screen_are_those_that_ffprobe_says(
    path: Path, reference: Reference | None, rate: float
) -> None:
    if reference is None:
        pytest.skip("no video stream")
    with sample_frames(path, rate=rate, size=SMALL) as frames:
        sampled = list(frames)
    for frame in sampled:
        shown = bisect_right(reference.times, frame.time + 1e-6) - 1
        assert abs(frame.shown_since - reference.times[max(shown, 0)]) <= MILLISECOND
    last = reference.durations[-1] or reference.times[-1] - reference.times[-2]
    assert frames.duration == pytest.approx(reference.times[-1] + last, abs=MILLISECOND)


def test_pictures_are_those_that_ffmpeg_decodes(path: Path, reference: Reference | None) -> None:
    if reference is None or reference.errors:
        pytest.skip("no video stream, or damaged: what stands in for lost pictures differs")
    pictures = reference.pictures()
    assert len(pictures) == len(reference.times)
    with sample_frames(path, rate=4, size=SMALL) as frames:
        for frame in frames:
            shown = bisect_right(reference.times, frame.time + 1e-6) - 1
            difference = np.abs(pictures[shown].astype(int) - frame.image).mean()
            assert difference < 4, f"picture at {frame.time} s"


def test_single_frames_are_the_same_as_sampled_ones(path: Path, reference: Reference | None) -> None:
    if reference is None or reference.errors:
        pytest.skip("no video stream, or damaged")
    pictures = reference.pictures()
    for time in np.linspace(0, reference.times[-1], 5):
        shown = bisect_right(reference.times, time + 1e-6) - 1
        image = frame_at(path, float(time), 64)
        rows = np.arange(HEIGHT) * image.shape[0] // HEIGHT
        assert np.abs(pictures[shown].astype(int) - image[rows]).mean() < 16


def test_header_is_that_of_the_manifest(footage: Path, name: str, path: Path) -> None:
    entries = json.loads((footage / "manifest.json").read_text())
    entry = next(entry for entry in entries if entry["file"] == name)
    if "codec" not in entry:
        pytest.skip("the manifest says nothing of the stream")
    info = probe(path)
    turned = round(entry["rot"]) % 180 == 90
    assert (info.width, info.height) == ((entry["h"], entry["w"]) if turned else (entry["w"], entry["h"]))
    assert info.rotation == -entry["rot"] % 360
    assert info.video_codec == entry["codec"]
    assert (info.audio_codec is not None) == bool(entry["audio"])
    assert info.frame_rate == pytest.approx(entry["fps"], rel=0.01)
    if entry["duration"] < 0:
        assert info.duration is None
    else:
        assert info.duration == pytest.approx(entry["duration"], abs=0.06)


def test_subtitle_files_are_read(footage: Path) -> None:
    files = [file for file in sorted(footage.iterdir()) if file.suffix.lower() in SUBTITLES]
    for file in files:
        subtitles = read_subtitles(file)
        assert subtitles.cues
        assert subtitles.skipped == 0
        assert all(0 <= cue.start < cue.end and cue.text for cue in subtitles.cues)


def test_the_folder_is_searched_by_suffix(footage: Path) -> None:
    found = find_videos(footage)
    assert found == sorted(found)
    entries = json.loads((footage / "manifest.json").read_text())
    moving = {entry["file"] for entry in entries if "codec" in entry}
    assert moving <= {file.name for file in found}
    assert not {file.suffix for file in found} & (SUBTITLES | {".json", ".md", ".mp3"})


@pytest.mark.parametrize("keep", [0.02, 0.6])
def test_files_that_break_off(path: Path, reference: Reference | None, tmp_path: Path, keep: float) -> None:
    """Frames that are right, or a reason; and what is missing is noticed where the format lets one."""
    if reference is None:
        pytest.skip("no video stream")
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
    assert frames.duration <= reference.times[-1] + max(reference.durations) + 1
