"""Time stamps that are missing, repeat, run back, wrap or are edited: every picture at its time."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from moviola.errors import MediaError
from moviola.media import cut, frame_at, make_playable, probe, read_sound, sample_frames
from moviola.types import FrameSize, Span

SMALL = FrameSize(48, 64, fit="stretch")
X264 = {"options": {"bf": "3", "preset": "veryfast"}, "gop": 25}
MPEG = {"options": {"bf": "2", "b": "2M"}, "gop": 12, "tick": Fraction(1, 25), "sound": "mp2"}
MPEG2 = {"codec": "mpeg2video", **MPEG}
WRAP = 2**33 / 90_000
"""Seconds after which the time stamps of MPEG begin again."""

WHOLE: dict[str, dict[str, Any]] = {
    "vob": {**MPEG2, "suffix": "vob", "seconds": 16},
    "mpg": {**MPEG2, "suffix": "mpg", "seconds": 16},
    "mpeg1": {"codec": "mpeg1video", **MPEG, "suffix": "mpg", "seconds": 16},
    "h264_in_mpg": {**X264, "suffix": "mpg", "sound": "mp2", "seconds": 16},
    "wrapping_ts": {**X264, "suffix": "ts", "seconds": 16, "start": WRAP - 8},
    "wrapping_late_ts": {**X264, "suffix": "ts", "seconds": 80, "start": WRAP - 70, "size": (64, 48)},
    "wrapping_vob": {**MPEG2, "suffix": "vob", "seconds": 16, "start": WRAP - 8},
}
JOINED: dict[str, dict[str, Any]] = {
    "vob": {**MPEG2, "suffix": "vob", "seconds": 6},
    "ts": {**MPEG2, "suffix": "ts", "seconds": 6, "start": 10.0},
    "h264_ts": {**X264, "suffix": "ts", "seconds": 6, "sound": "aac"},
}


def shown(films: Any, path: Path, rate: float = 25) -> list[int]:
    """Numbers of the pictures on screen, picture by picture, taken in the middle of each."""
    with sample_frames(path, rate=2 * rate, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames][1::2]
    while numbers[-2:] == numbers[-1:] * 2:  # how long the last picture stays is not always known
        numbers.pop()
    return numbers


def require_right(films: Any, path: Path, numbers: Sequence[int], tmp_path: Path) -> None:
    """All pictures of a film of 25 a second, in stills, clips and a playable copy."""
    assert shown(films, path) == numbers
    with sample_frames(path, rate=1, size=SMALL) as frames:
        seconds = [films.number_of(frame.image) for frame in frames]
    assert seconds[: len(numbers[::25])] == numbers[::25]
    for number in (0, 37, len(numbers) // 2 + 3, len(numbers) - 2):
        assert films.number_of(frame_at(path, (number + 0.5) / 25, 64)) == numbers[number]
    out = tmp_path / "out.mp4"
    for first in (3, len(numbers) // 2 - 20, len(numbers) - 40):
        span = Span((first + 0.5) / 25, (first + 30) / 25)
        for mode in ("copy", "encode") if probe(path).video_codec == "h264" else ("encode",):
            if mode == "copy" and path.suffix == ".mpg":
                with pytest.raises(MediaError, match="its pictures have no times"):
                    cut(path, span, out, mode="copy")
                continue
            cut(path, span, out, mode=mode)
            assert shown(films, out) == numbers[first : first + 30]
    make_playable(path, out)
    assert shown(films, out) == numbers


@pytest.mark.parametrize("name", WHOLE)
def test_every_picture_comes_at_its_time(films: Any, tmp_path: Path, name: str) -> None:
    path, film = films.make(f"stamps_{name}", **WHOLE[name])
    require_right(films, path, [*range(len(film.times))], tmp_path)
    if film.sound:
        heard = np.concatenate(list(read_sound(tmp_path / "out.mp4")))
        assert len(heard) / 16_000 == pytest.approx(film.seconds, abs=0.1)


@pytest.mark.parametrize("name", JOINED)
def test_joined_recordings_go_on_with_their_sound(films: Any, tmp_path: Path, name: str) -> None:
    path, film = films.make(f"recording_{name}", **JOINED[name])
    joined = tmp_path / f"joined.{film.suffix}"
    joined.write_bytes(path.read_bytes() * 3)
    require_right(films, joined, [*range(150)] * 3, tmp_path)
    for heard_in in (joined, tmp_path / "out.mp4"):
        heard = np.concatenate(list(read_sound(heard_in)))
        assert len(heard) / 16_000 == pytest.approx(18, abs=0.1)
        tenths = np.abs(heard[: 179 * 1600].reshape(-1, 1600)).max(1)
        assert (tenths > 0.1).mean() > 0.97
    cut(joined, Span(12.5, 14.5), tmp_path / "out.mp4", mode="encode")
    assert np.abs(np.concatenate(list(read_sound(tmp_path / "out.mp4")))[1000:30_000]).max() > 0.1


def test_a_repeated_time_stamp_stops_nothing(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("unrepeated", options={"bf": "0", "preset": "veryfast"}, gop=25)
    repeated = tmp_path / "repeated.mkv"
    with av.open(str(path)) as source, av.open(str(repeated), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        before = None
        for number, packet in enumerate(source.demux(source.streams.video[0])):
            if packet.size:
                if number % 20 == 13:
                    packet.pts, packet.dts = before
                before, packet.stream = (packet.pts, packet.dts), stream
                target.mux(packet)
    # Of two pictures with one time stamp the later is seen, as long as both would be.
    expected = [number + 1 if number % 20 == 12 else number for number in range(125)]
    out = tmp_path / "out.mp4"
    for mode in ("copy", "encode"):
        cut(repeated, Span(1.1, 3.1), out, mode=mode)
        assert 50 <= len(shown(films, out)) <= 52
        assert shown(films, out)[::20] == expected[27:78:20]
    make_playable(repeated, out)
    assert len(shown(films, out)) == 125
    assert shown(films, out)[::20] == expected[::20]


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_b_pictures_among_stills_of_minutes(films: Any, suffix: str) -> None:
    path, film = films.make(
        "stills",
        suffix=suffix,
        rate=Fraction(1, 90),
        seconds=900,
        options={"bf": "3", "x264-params": "b-adapt=0"},
    )
    with sample_frames(path, rate=1 / 45, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames]
    assert frames.broken_at is None
    assert numbers[: 2 * len(film.times) - 1] == [number // 2 for number in range(2 * len(film.times) - 1)]
    assert films.number_of(frame_at(path, 100, 64)) == 1


def test_edit_lists_of_several_parts(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("unedited", **X264, seconds=16)
    edited = tmp_path / "edited.mp4"
    delay = 0.08  # of B pictures, in media time
    edited.write_bytes(with_edits(path.read_bytes(), [(3, delay + 10), (3, delay + 4), (2, delay + 4)]))
    numbers = [*range(250, 325), *range(100, 175), *range(100, 150)]
    assert shown(films, edited)[:150] == numbers[:150]
    for number in (10, 80, 120):
        assert films.number_of(frame_at(edited, (number + 0.5) / 25, 64)) == numbers[number]
    out = tmp_path / "out.mp4"
    with pytest.raises(MediaError, match="edit list"):
        cut(edited, Span(2.5, 4.5), out, mode="copy")
    cut(edited, Span(2.5, 4.5), out, mode="encode")
    assert shown(films, out) == numbers[62:113]
    make_playable(edited, out)
    assert shown(films, out)[:150] == numbers[:150]


def with_edits(data: bytes, edits: Sequence[tuple[float, float]], scale: int = 1000) -> bytes:
    """An MP4 whose index comes last, with another edit list: (seconds shown, media time in seconds)."""

    def box(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I4s", 8 + len(content), kind) + content

    def boxes(start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
        while start < end:
            size = int.from_bytes(data[start : start + 4], "big")
            yield data[start + 4 : start + 8], start, start + size
            start += size

    ticks = 90_000
    entries = [struct.pack(">iiI", round(n * scale), round(at * ticks), 1 << 16) for n, at in edits]
    edit_box = box(b"edts", box(b"elst", struct.pack(">II", 0, len(edits)) + b"".join(entries)))
    *_, (kind, moov, end) = boxes(0, len(data))
    assert kind == b"moov"
    parts = []
    for kind, start, stop in boxes(moov + 8, end):
        part = data[start:stop]
        if kind == b"trak":
            inside = [(k, data[a:b]) for k, a, b in boxes(start + 8, stop) if k != b"edts"]
            part = box(b"trak", b"".join(d + (edit_box if k == b"tkhd" else b"") for k, d in inside))
        parts.append(part)
    return data[:moov] + box(b"moov", b"".join(parts))


def test_the_last_picture_of_a_varying_rate_ends_with_the_film(tmp_path: Path) -> None:
    """MP4 has the times between decodings, which with B pictures are not those that pictures are shown."""
    film, clip = tmp_path / "film.mkv", tmp_path / "clip.mp4"
    with av.open(str(film), "w") as target:
        track = target.add_stream("libx264", rate=25, options={"bf": "2"})
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        track.codec_context.time_base = Fraction(1, 1000)
        noise = np.random.default_rng(0)
        for stamp in (0, 40, 80, 500, 2500, 2520, 2540, 4000, 4033):  # milliseconds
            picture = av.VideoFrame.from_ndarray(noise.integers(0, 256, (48, 64, 3), np.uint8), "rgb24")
            picture.pts, picture.time_base = stamp, Fraction(1, 1000)
            target.mux(track.encode(picture))
        target.mux(track.encode(None))
    cut(film, Span(0, 2.66), clip, mode="encode")
    with sample_frames(clip, rate=1, size=SMALL) as frames:
        assert [frame.time for frame in frames] == [0, 1, 2]
        assert frames.duration == pytest.approx(probe(clip).duration, abs=0.05)
