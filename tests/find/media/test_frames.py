"""Frames on a grid, from films whose pictures carry their number: the right picture at the right time."""

from __future__ import annotations

import math
import shutil
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame

from moviola.errors import InvalidValue
from moviola.media import frame_at, probe, sample_frames, sample_stills
from moviola.types import FrameSize

SMALL = FrameSize(48, 64, fit="stretch")
B = {"bf": "3", "preset": "veryfast"}
CFR = {"tick": Fraction(1, 25)}


def x264(parameters: str) -> dict[str, str]:
    return {"preset": "veryfast", "x264-params": parameters}


def x265(parameters: str) -> dict[str, str]:
    return {"preset": "ultrafast", "x265-params": f"log-level=none:{parameters}"}


OPEN = "open-gop=1:bframes=5:b-pyramid=normal:keyint=9:min-keyint=9:ref=4"
OPEN_HEVC = x265("bframes=4:b-pyramid=1:keyint=15:min-keyint=15:open-gop=1")
FILMS: dict[str, dict[str, Any]] = {
    "h264": {"options": B},
    "h264_short_gop": {"options": B, "gop": 12},
    "h264_ntsc": {"options": B, "rate": Fraction(30000, 1001)},
    "h264_cinema_mkv": {"options": B, "rate": Fraction(24000, 1001), "suffix": "mkv", "gop": 24},
    "h264_10_bit": {"options": B, "pix_fmt": "yuv420p10le"},
    "h264_odd_size": {"options": B, "pix_fmt": "yuv444p", "size": (97, 63)},
    "h264_flv": {"options": B, "suffix": "flv", "tick": Fraction(1, 1000)},
    "start_5_mp4": {"options": B, "start": 5.0},
    "start_5_mkv": {"options": B, "start": 5.0, "suffix": "mkv"},
    "start_100_ts": {"options": B, "start": 100.0, "suffix": "ts", "gop": 20},
    "uneven_mp4": {"options": B, "uneven": True},
    "uneven_mov": {"options": B, "uneven": True, "suffix": "mov", "gop": 7},
    "uneven_mkv": {"options": B, "uneven": True, "suffix": "mkv", "gop": 7},
    "uneven_ts": {"options": B, "uneven": True, "suffix": "ts", "gop": 7},
    "uneven_webm": {"uneven": True, "suffix": "webm", "codec": "libvpx-vp9", "options": {"cpu-used": "8"}},
    "open_gop_mp4": {"options": x264(OPEN)},
    "open_gop_mkv": {"options": x264(OPEN), "suffix": "mkv"},
    "open_gop_ts": {"options": x264(OPEN), "suffix": "ts"},
    "intra_refresh_ts": {"options": x264("intra-refresh=1:keyint=20"), "suffix": "ts"},
    "hevc": {"codec": "libx265", "options": x265("bframes=4:keyint=250")},
    "hevc_10_bit": {"codec": "libx265", "options": x265("bframes=3"), "pix_fmt": "yuv420p10le"},
    "hevc_open_gop_mkv": {"codec": "libx265", "options": OPEN_HEVC, "suffix": "mkv"},
    "hevc_open_gop_ts": {"codec": "libx265", "options": OPEN_HEVC, "suffix": "ts"},
    "vp8": {"codec": "libvpx", "suffix": "webm", "options": {"auto-alt-ref": "1", "cpu-used": "8"}},
    "vp9": {"codec": "libvpx-vp9", "suffix": "webm", "options": {"auto-alt-ref": "1", "cpu-used": "8"}},
    "vp9_alpha": {
        "codec": "libvpx-vp9",
        "suffix": "webm",
        "pix_fmt": "yuva420p",
        "options": {"cpu-used": "8", "deadline": "realtime"},
    },
    "mpeg4": {"codec": "mpeg4", "options": {"bf": "2", "qscale": "3"}, "gop": 12, **CFR},
    "mpeg4_avi": {"codec": "mpeg4", "suffix": "avi", "options": {"bf": "2"}, "gop": 12, **CFR},
    "h264_avi": {"suffix": "avi", "options": B, **CFR},
    "mpeg2_ts": {"codec": "mpeg2video", "suffix": "ts", "options": {"bf": "2", "b": "2M"}, "gop": 12, **CFR},
    "mpeg2_mpg": {
        "codec": "mpeg2video",
        "suffix": "mpg",
        "options": {"bf": "2", "b": "2M"},
        "gop": 12,
        **CFR,
    },
    "mjpeg_mov": {"codec": "mjpeg", "suffix": "mov", "pix_fmt": "yuvj420p", **CFR},
    "prores": {"codec": "prores_ks", "suffix": "mov", "pix_fmt": "yuv422p10le"},
    "gif": {
        "codec": "gif",
        "suffix": "gif",
        "pix_fmt": "rgb8",
        "rate": Fraction(10),
        "tick": Fraction(1, 100),
    },
}
# What prunes, and to how much of the pictures at one frame a second.
PRUNES = {
    "h264": 0.6,
    "h264_short_gop": 0.3,
    "open_gop_mp4": 0.25,
    "open_gop_ts": 0.25,
    "hevc": 0.5,
    "hevc_open_gop_ts": 0.3,
    "mpeg2_ts": 0.3,
    "prores": 0.05,
}


def stamps(path: Path) -> list[float]:
    """Presentation times in seconds from the first picture, read from all packets."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.time_base
        if path.suffix == ".avi":
            ticks = sorted(p.dts for p in container.demux(stream) if p.size and p.dts is not None)
        else:
            ticks = sorted(p.pts for p in container.demux(stream) if p.size and p.pts is not None)
        return [float((tick - ticks[0]) * stream.time_base) for tick in ticks]


@pytest.mark.parametrize("name", FILMS)
def test_frame_on_screen_at_each_moment(films: Any, name: str) -> None:
    path, film = films.make(name, **FILMS[name])
    times = stamps(path)
    assert np.allclose(times, [float(time) for time in film.times], atol=0.00101)  # ticks of a millisecond
    for rate in (0.3, 1, 2, 7, 30):
        with sample_frames(path, rate=rate, size=SMALL) as stream:
            frames = list(stream)
        assert [frame.time for frame in frames] == pytest.approx([k / rate for k in range(len(frames))])
        assert len(frames) == math.ceil(round(stream.duration * rate, 6))
        expected = [bisect_right(times, frame.time + 1e-9) - 1 for frame in frames]
        assert [films.number_of(frame.image) for frame in frames] == expected
        assert [frame.shown_since for frame in frames] == pytest.approx([times[n] for n in expected])
        assert stream.lost == 0
        assert stream.broken_at is None
        assert stream.duration == pytest.approx(
            times[-1] + (times[-1] - times[-2]), abs=0.9 if film.uneven else 0.13
        )


class Watching:
    """Notes what passes by: when pictures are shown, and the numbers of those that were decoded."""

    def __init__(self, films: Any) -> None:
        self.times: list[float] = []
        self.seen: dict[float, int] = {}
        self.whole = False
        self.served: list[tuple[float, float]] = []
        self._number_of = films.number_of

    def shown(self, since: float) -> None:
        self.times.append(since)

    def decoded(self, since: float, frame: VideoFrame) -> None:
        self.seen[since] = self._number_of(frame.to_ndarray(format="rgb24"))

    def sampled(self, time: float, since: float, frame: VideoFrame) -> None:
        self.served.append((time, since))

    def cut_off(self, since: float) -> None:
        self.whole = True
        self.times = [time for time in self.times if time <= since]
        self.seen = {time: number for time, number in self.seen.items() if time <= since}


@pytest.mark.parametrize("name", FILMS)
def test_a_watcher_gets_every_picture_and_changes_none(films: Any, name: str) -> None:
    path, _ = films.make(name, **FILMS[name])
    times = stamps(path)
    with sample_frames(path, size=SMALL) as stream:
        expected = [(frame.shown_since, films.number_of(frame.image)) for frame in stream]
    watching = Watching(films)
    with sample_frames(path, size=SMALL, watcher=watching) as stream:
        assert [(frame.shown_since, films.number_of(frame.image)) for frame in stream] == expected
    assert [since for _, since in watching.served] == [since for since, _ in expected]
    assert watching.whole or path.suffix != ".avi"
    assert sorted(watching.times) == pytest.approx(times, abs=0.00101)
    assert len(watching.seen) == (len(times) if watching.whole else stream.decoded)
    for since, number in watching.seen.items():
        assert number == bisect_right(times, since + 0.00101) - 1


@pytest.mark.parametrize(("name", "decoded"), [("h264_long_gop", 1.0), ("h264_short_gop", 0.1)])
def test_who_watches_sees_what_leads_to_rare_key_frames(films: Any, name: str, decoded: float) -> None:
    # Every picture is referred to; of the long film's 200 those from 12.5 to 13 s lead to no wanted picture.
    long = {"options": {"bf": "0", "preset": "veryfast", "sc_threshold": "0"}, "gop": 157, "seconds": 16}
    path, film = films.make(name, **(long if "long" in name else FILMS[name]))
    watching = Watching(films)
    with sample_frames(path, size=SMALL, watcher=watching) as stream:
        list(stream)
    assert not watching.whole
    assert len(watching.seen) == pytest.approx(decoded * len(film.times), rel=0.1)


@pytest.mark.parametrize(("name", "share"), PRUNES.items())
def test_pictures_that_nothing_needs_are_not_decoded(films: Any, name: str, share: float) -> None:
    path, film = films.make(name, **FILMS[name])
    with sample_frames(path, rate=1, size=SMALL) as stream:
        list(stream)
    assert stream.decoded <= share * len(film.times)


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "mpg", "avi"])
def test_frame_at_any_time(films: Any, suffix: str) -> None:
    codec: dict[str, Any] = {"options": B} if suffix in {"mp4", "mkv"} else {}
    if suffix in {"ts", "mpg", "avi"}:
        codec = {"codec": "mpeg2video", "options": {"bf": "2", "b": "2M"}, **CFR}
    path, _ = films.make(f"long_{suffix}", suffix=suffix, gop=30, seconds=32, **codec)
    times = stamps(path)
    generator = np.random.default_rng(7)
    for time in [0.0, times[-1], times[-1] + 60, *generator.uniform(0, times[-1], 25)]:
        image = frame_at(path, time, 64)
        assert image.shape == (48, 64, 3)
        assert films.number_of(image) == bisect_right(times, time + 1e-9) - 1


def test_duration_is_exact_without_one_in_the_header(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("live", **FILMS["h264"] | {"suffix": "mkv"})
    live = tmp_path / "live.mkv"
    with av.open(str(path)) as source, av.open(str(live), "w", options={"live": "1"}) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    assert probe(live).promised is None
    assert probe(live).duration == pytest.approx(5.0, abs=0.001)
    with sample_frames(live, size=SMALL) as frames:
        assert len(list(frames)) == 5
    assert frames.duration == pytest.approx(5.0, abs=0.001)


def test_edit_list_hides_what_comes_before_it(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("h264_short_gop", **FILMS["h264_short_gop"])
    edited = tmp_path / "edited.mp4"
    with av.open(str(path)) as source, av.open(str(edited), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size and packet.pts is not None and packet.dts is not None:
                hidden = round(1.72 / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts - hidden, packet.dts - hidden, stream
                target.mux(packet)
    with sample_frames(edited, rate=5, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames]
    assert numbers == [43 + 5 * k for k in range(17)]
    assert frames.duration == pytest.approx(5 - 1.72, abs=0.001)


def test_joined_transport_streams_go_on(films: Any, tmp_path: Path) -> None:
    path, film = films.make("joined", **FILMS["mpeg2_ts"] | {"start": 10.0})
    joined = tmp_path / "joined.ts"
    joined.write_bytes(path.read_bytes() * 3)
    with sample_frames(joined, rate=1, size=SMALL) as stream:
        frames = list(stream)
    numbers = [films.number_of(frame.image) for frame in frames]
    assert stream.duration == pytest.approx(15, abs=0.2)
    assert numbers[:5] == [0, 25, 50, 75, 100]
    for part in (5, 10):
        assert np.allclose(numbers[part : part + 5], numbers[:5], atol=4)  # the joint takes up to 0.16 s
    assert len(film.times) == 125


def test_time_stamps_are_not_needed(films: Any, tmp_path: Path) -> None:
    path, _ = films.make("h264_no_b", options={"bf": "0", "preset": "veryfast"})
    raw = tmp_path / "raw.h264"
    with av.open(str(path)) as source, av.open(str(raw), "w", format="h264") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    with sample_frames(raw, rate=1, size=SMALL) as frames:
        assert [films.number_of(frame.image) for frame in frames] == [0, 25, 50, 75, 100]
    assert frames.duration == pytest.approx(5.0)


@pytest.mark.parametrize(("turn", "clockwise"), [(0, 0), (90, 270), (180, 180), (-90, 90)])
def test_rotation_is_applied(films: Any, turn: int, clockwise: int) -> None:
    path, _ = films.make(f"turned_{turn % 360}", options=B, rotation=turn, seconds=1)
    info = probe(path)
    assert info.rotation == clockwise
    upright = (128, 96) if turn % 180 == 0 else (96, 128)
    assert (info.width, info.height) == upright
    with sample_frames(path, rate=25, size=FrameSize(64, 64, fit="stretch")) as frames:
        image = list(frames)[7].image
    expected = np.rot90(films.numbered(7, 64, 64), turn // 90)
    assert np.abs(image.astype(int) - expected).mean() < 12


def test_sample_aspect_ratio_is_applied(films: Any) -> None:
    path, _ = films.make("anamorphic", options=B, aspect=Fraction(2), seconds=1)
    info = probe(path)
    assert (info.width, info.height) == (256, 96)
    assert frame_at(path, 0, 64).shape == (24, 64, 3)


def test_crop_takes_the_middle(films: Any) -> None:
    """A wide film: the outer columns of the number fall away at a square crop."""
    path, _ = films.make("wide", options=B | {"crf": "5"}, size=(256, 96), seconds=1)
    size = FrameSize(48, 48, shortest_edge=48)
    with sample_frames(path, rate=25, size=size) as frames:
        image = list(frames)[6].image
    whole = films.numbered(6, 128, 48)
    assert np.abs(image.astype(int) - whole[:, 40:88]).mean() < 12


def test_conversion_agrees_with_full_conversion(films: Any) -> None:
    """One pass of swscale is within 2 of 255, on average, of full RGB resized by Pillow."""
    from PIL import Image

    path, _ = films.make("h264", **FILMS["h264"])
    with av.open(str(path)) as container:
        picture = next(container.decode(video=0)).to_image()
    expected = np.asarray(picture.resize((64, 48), Image.Resampling.BICUBIC))
    assert np.abs(frame_at(path, 0, 64).astype(int) - expected).mean() < 2


def test_names_that_look_like_something_else(
    films: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = films.make("h264", **FILMS["h264"])
    monkeypatch.chdir(tmp_path)
    for name in ("-x.mp4", "a:b.mp4", "file:c.mp4", "100%d.mp4", "späß ☂.mp4"):
        shutil.copy(path, tmp_path / name)
        assert probe(Path(name)).width == 128
        assert films.number_of(frame_at(Path(name), 1.0, 64)) == 25


def test_frames_can_be_left_early(films: Any) -> None:
    path, _ = films.make("h264", **FILMS["h264"])
    with sample_frames(path, size=SMALL) as frames:
        next(frames)
        frames.close()
        assert list(frames) == []


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf, 1e9])
def test_impossible_rates_are_refused(films: Any, rate: float) -> None:
    path, _ = films.make("h264", **FILMS["h264"])
    with pytest.raises(InvalidValue, match="rate"):
        sample_frames(path, rate=rate, size=SMALL)


def test_a_rate_of_less_than_one_frame_in_a_month_gives_the_first(films: Any) -> None:
    path, _ = films.make("h264", **FILMS["h264"])
    with sample_frames(path, rate=1e-7, size=SMALL) as frames:
        assert [frame.time for frame in frames] == [0.0]


def test_sampled_pictures_are_let_go_without_the_garbage_collector(films: Any) -> None:
    """A picture in a reference cycle would stay until a collection that may come hundreds later."""
    import gc

    from av.video.frame import VideoFrame

    path, _ = films.make("h264", **FILMS["h264"])
    gc.collect()
    gc.disable()
    try:
        with sample_frames(path, rate=25, size=SMALL) as frames:
            for _ in frames:
                pass
            alive = sum(type(thing) is VideoFrame for thing in gc.get_objects())
    finally:
        gc.enable()
    assert alive < 30  # of 125


def test_stills_at_chosen_times(films: Any) -> None:
    path, film = films.make("steady", size=(640, 360))
    times = [0.1, 0.5, 2.34, 4.99, 60.0]
    with sample_stills(path, times, longest_side=320) as stream:
        stills = list(stream)
    assert [still.time for still in stills] == times
    shown = [max(t for t in film.times if t <= time + 1e-9) for time in times]
    assert [still.shown_since for still in stills] == pytest.approx([float(t) for t in shown], abs=1e-4)
    assert {still.image.shape for still in stills} == {(180, 320, 3)}
    with sample_stills(path, [1.0], longest_side=2000) as stream:
        assert next(stream).image.shape == (360, 640, 3)


@pytest.mark.parametrize("times", [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [float("nan")]])
def test_stills_need_times_that_rise(films: Any, times: list[float]) -> None:
    path, _ = films.make("steady", size=(640, 360))
    with pytest.raises(InvalidValue):
        sample_stills(path, times, longest_side=320)
