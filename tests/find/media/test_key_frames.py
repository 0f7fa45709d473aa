"""Key frames of films in many forms: each the picture that is on screen at its time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from moviola.errors import UnreadableMedia
from moviola.media import frame_at, key_frames
from moviola.types import FrameSize

RATE, SECONDS, APART = 5, 30, 4.0
SIZE = FrameSize(24, 32, "stretch")


def film(path: Path, codec: str, gap: int, **options: str) -> Path:
    """A film whose pictures differ from each other, with a key frame every ``gap`` pictures."""
    generator = np.random.default_rng(1)
    with av.open(path, "w") as out:
        settings = {"g": str(gap), "keyint_min": str(gap), "sc_threshold": "0", "bf": "2", **options}
        stream = out.add_stream(codec, rate=RATE, options={} if gap == 1 else settings)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.time_base = Fraction(1, RATE)
        for number in range(RATE * SECONDS):
            blocks = generator.integers(0, 255, (3, 4, 3), np.uint8)
            picture = np.kron(blocks, np.ones((16, 16, 1), np.uint8))
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = number
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("name", "codec", "gap"),
    [
        ("film.mp4", "libx264", 10), ("film.mkv", "libx264", 10), ("film.ts", "libx264", 10),
        ("film.avi", "mpeg4", 10), ("film.mpg", "mpeg2video", 10), ("film.mov", "mjpeg", 1),
        ("open.mkv", "libx264", 10), ("pieces.mp4", "libx264", 10),
    ],
)  # fmt: skip
def test_spread_over_a_film_and_at_their_times(tmp_path: Path, name: str, codec: str, gap: int) -> None:
    """Catches a picture of another time, a stretch that is passed over, and one that is decoded too often."""
    options = {"x264-params": "open-gop=1"} if name.startswith("open") else {}
    if name.startswith("pieces"):
        options["movflags"] = "frag_keyframe+empty_moov"
    path = film(tmp_path / name, codec, gap, **options)
    found = list(key_frames(path, SIZE, APART))
    times = [time for time, _ in found]
    assert times[0] == 0 and all(APART <= gap_ <= APART + 2.5 for gap_ in np.diff(times))
    assert times[-1] > SECONDS - APART - 2.5
    # AVI and MPEG have no time for each picture.
    off = 3 if path.suffix in (".avi", ".mpg") else 0
    for time, image in found:
        near = (max(0.0, time + number / RATE) + 0.01 for number in range(-off, off + 1))
        stills = [frame_at(path, at, 32).astype(int) for at in near]
        assert min(abs(image - still).mean() for still in stills) < 6, time


def test_one_key_frame(tmp_path: Path) -> None:
    """A film with one key frame gives it; what cannot be read says why; what is cut off gives the rest."""
    path = film(tmp_path / "film.mp4", "libx264", 1000)
    assert [time for time, _ in key_frames(path, SIZE, APART)] == [0.0]
    with pytest.raises(UnreadableMedia):
        next(key_frames(tmp_path / "none.mp4", SIZE, APART))
    whole = film(tmp_path / "whole.mkv", "libx264", 10).read_bytes()
    (tmp_path / "half.mkv").write_bytes(whole[: len(whole) // 2])
    times = [time for time, _ in key_frames(tmp_path / "half.mkv", SIZE, APART)]
    assert times[0] == 0 and 2 <= len(times) <= 5
