"""Cuts: the pictures of the span and no others, at their times, with their sound."""

from __future__ import annotations

import gc
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np
import pytest

from full_disk import full_disk
from moviola.errors import InvalidValue, MediaError
from moviola.export import export_clip
from moviola.media import Card, Piece, cut, join, probe, sample_frames, write_video
from moviola.types import FrameSize, Moment, Span

SMALL = FrameSize(48, 64, fit="stretch")
B = {"bf": "3", "preset": "veryfast"}
OPEN = {"preset": "veryfast", "x264-params": "open-gop=1:bframes=4:b-pyramid=normal:keyint=12:min-keyint=12"}
SOURCES: dict[str, dict[str, Any]] = {
    "mp4": {"options": B},
    "mkv": {"options": B, "suffix": "mkv", "gop": 20, "start": 3.0},
    "ts": {"options": B, "suffix": "ts", "gop": 20, "seconds": 16},
    "open_gop": {"options": OPEN, "suffix": "mkv"},
    "uneven": {"options": B, "uneven": True},
    "slow_mkv": {"options": B, "rate": Fraction(5), "suffix": "mkv", "gop": 10, "seconds": 12},
    "turned": {"options": B, "rotation": -90},
}
OTHERS: dict[str, dict[str, Any]] = {
    "avi": {"suffix": "avi", "codec": "mpeg4", "options": {"bf": "2"}, "tick": Fraction(1, 25)},
    "webm": {"suffix": "webm", "codec": "libvpx", "options": {"cpu-used": "8"}},
    "odd": {"options": B, "pix_fmt": "yuv444p", "size": (97, 63)},
}


def shown(films: Any, path: Path) -> tuple[list[int], list[float]]:
    """Numbers of the pictures in a film and when each is shown, read at 100 frames a second."""
    numbers, times = [], []
    with sample_frames(path, rate=100, size=SMALL) as frames:
        for frame in frames:
            if not times or frame.shown_since != times[-1]:
                numbers.append(films.number_of(frame.image))
                times.append(frame.shown_since)
    return numbers, times


@pytest.mark.parametrize("mode", ["copy", "encode"])
@pytest.mark.parametrize("name", SOURCES)
def test_cut_shows_the_pictures_of_the_span(
    films: Any, tmp_path: Path, name: str, mode: Literal["copy", "encode"]
) -> None:
    path, film = films.make(f"cut_{name}", **SOURCES[name])
    times = [float(time) for time in film.times]
    for start, end in ((1.23, 3.01), (0.0, 0.5), (times[-1] - 0.7, times[-1] + 50)):
        out = tmp_path / "piece.mp4"
        cut(path, Span(start, end), out, mode=mode)
        first = bisect_right(times, start) - 1
        last = bisect_left(times, end)
        upright = probe(out)
        assert (upright.width, upright.height) == ((96, 128) if film.rotation else (128, 96))
        if not film.rotation:
            numbers, since = shown(films, out)
            assert numbers == list(range(first, last))
            expected = [time - times[first] for time in times[first:last]]
            assert since == pytest.approx(expected, abs=0.0011)
        with av.open(str(out)) as container:
            stream = container.streams.video[0]
            assert stream.codec_context.name == "h264"
            assert stream.duration and stream.time_base
            if end < times[-1]:
                length = float(stream.duration * stream.time_base)
                assert length == pytest.approx(end - times[first], abs=0.002)


@pytest.mark.parametrize("name", OTHERS)
def test_what_browsers_do_not_play_is_encoded(films: Any, tmp_path: Path, name: str) -> None:
    path, _ = films.make(f"cut_{name}", **OTHERS[name])
    out = tmp_path / "piece.mp4"
    with pytest.raises(MediaError, match="choose the mode that encodes"):
        cut(path, Span(1, 2), out, mode="copy")
    assert list(tmp_path.iterdir()) == []
    cut(path, Span(1, 2), out, mode="encode")
    info = probe(out)
    assert info.video_codec == "h264"
    assert info.width % 2 == info.height % 2 == 0
    assert shown(films, out)[0] == list(range(25, 50))


@pytest.mark.parametrize(("mode", "sound"), [("copy", "aac"), ("encode", "aac"), ("encode", "libopus")])
def test_sound_is_kept(films: Any, tmp_path: Path, mode: Literal["copy", "encode"], sound: str) -> None:
    path, _ = films.make(f"cut_sound_{sound}", options=B, sound=sound, suffix="mkv")
    out = tmp_path / "piece.mp4"
    cut(path, Span(1.5, 3.5), out, mode=mode)
    assert probe(out).audio_codec == "aac"
    with av.open(str(out)) as container:
        heard = [frame.to_ndarray() for frame in container.decode(audio=0) if frame.pts is not None]
    wave = np.concatenate(heard, axis=1)[0]
    assert len(wave) == pytest.approx(2 * 48_000, abs=3000)
    spectrum = np.abs(np.fft.rfft(wave[4000:52_000]))
    assert int(spectrum.argmax()) == pytest.approx(440, abs=2)


def test_sound_that_cannot_be_copied_is_said(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("cut_sound_libopus", options=B, sound="libopus", suffix="mkv")
    with pytest.raises(MediaError, match="opus sound"):
        cut(path, Span(1, 2), tmp_path / "piece.mp4", mode="copy")


@pytest.mark.parametrize("filled", [0, 255])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_clip_of_a_damaged_stretch_decodes_to_its_end(
    films: Any, tmp_path: Path, suffix: str, filled: int
) -> None:
    """Damaged packets were copied, at which browsers stop."""
    path, _ = films.make(
        f"stretch_{suffix}", options={"bf": "0", "preset": "veryfast"}, gop=10, suffix=suffix
    )
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        packets = [(bytes(p), p.pos or 0) for p in container.demux(container.streams.video[0]) if p.size]
    for packet, near in packets[50:75]:  # the third second
        place = data.find(packet, near)
        data[place : place + len(packet)] = bytes([filled] * len(packet))
    broken, out = tmp_path / f"broken.{suffix}", tmp_path / "clip.mp4"
    broken.write_bytes(data)
    for start, end, seen in ((1.0, 4.0, {*range(25, 50), *range(80, 100)}), (2.2, 2.8, {49})):
        export_clip(Moment("v", start, end, 0.0, 1), broken, out)
        with av.open(str(out)) as container:
            numbers = {films.number_of(f.to_ndarray(format="rgb24")) for f in container.decode(video=0)}
        assert seen <= numbers and not numbers & set(range(50, 75))
    with pytest.raises(MediaError, match=r"its picture at 2\.\d s is damaged; choose the mode that encodes"):
        export_clip(Moment("v", 1.0, 4.0, 0.0, 1), broken, out, mode="key-frames")
    export_clip(Moment("v", 0.2, 1.5, 0.0, 1), broken, out, mode="key-frames")  # what is sound is copied


@pytest.mark.parametrize("mode", ["copy", "encode"])
def test_a_span_after_the_end_is_refused(films: Any, tmp_path: Path, mode: Literal["copy", "encode"]) -> None:
    path, _ = films.make("cut_mp4", **SOURCES["mp4"])
    with pytest.raises(InvalidValue, match="after the end"):
        cut(path, Span(8, 9), tmp_path / "piece.mp4", mode=mode)
    assert list(tmp_path.iterdir()) == []


WRITERS: dict[str, Callable[[Path, Path], object]] = {
    "copy": lambda path, out: cut(path, Span(1, 3), out, mode="copy"),
    "encode": lambda path, out: cut(path, Span(1, 3), out, mode="encode"),
    "join": lambda path, out: join(
        [Card(np.zeros((96, 128, 3), np.uint8), 5), Piece(path, Fraction(1), 20)],
        out, rate=Fraction(10), size=(128, 96),
    ),
    "frames": lambda _, out: write_video(
        out, np.random.default_rng(3).integers(0, 255, (20, 64, 64, 3), np.uint8), rate=10
    ),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_said_and_leaves_nothing_open(films: Any, tmp_path: Path, writer: str) -> None:
    path, _ = films.make("cut_mp4", **SOURCES["mp4"])
    out, write = tmp_path / "piece.mp4", WRITERS[writer]
    write(path, out)
    size = out.stat().st_size
    out.unlink()
    gc.collect()  # what earlier tests left open
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for room in (0, 30, size // 2, size - 1):
        refused = pytest.raises(InvalidValue, match=r"piece\.mp4: cannot be written \(File too large\)")
        with refused, full_disk(room):
            write(path, out)
        assert list(tmp_path.iterdir()) == []
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_a_part_of_a_still_is_encoded(films: Any, tmp_path: Path, suffix: str) -> None:
    path, _ = films.make("still", suffix=suffix, uneven=True, options={"bf": "2", "x264-params": "b-adapt=0"})
    out = tmp_path / "out.mp4"
    span = Span(0.2, 0.85)  # the fifth picture stays from 0.1 to 0.9 s
    with pytest.raises(MediaError, match="its last picture outlasts its packet"):
        cut(path, span, out, mode="copy")
    export_clip(Moment("still", span.start, span.end, 1.0, 1), path, out)
    assert probe(out).duration == pytest.approx(0.75, abs=0.02)
    cut(path, Span(2.1, 2.3), out, mode="encode")  # the eighth stays from 0.98 to 2.38 s
    assert probe(out).duration == pytest.approx(0.2, abs=0.02)
    path, _ = films.make(f"slides_{suffix}", suffix=suffix, rate=Fraction(1, 5), seconds=20, sound="aac")
    with pytest.raises(MediaError, match="begins amid a still"):
        cut(path, Span(7, 11), out, mode="copy")
    export_clip(Moment("slides", 7.0, 11.0, 1.0, 1), path, out)
    assert probe(out).duration == pytest.approx(4, abs=0.05)
    assert shown(films, out)[1] == pytest.approx([0, 3], abs=0.02)
