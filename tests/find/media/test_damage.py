"""Broken files: frames or a reason, never anything else."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moviola.errors import InvalidValue, MediaError, NoVideoStream, UnreadableMedia
from moviola.media import (
    SmallStills,
    cut,
    embedded_subtitles,
    frame_at,
    probe,
    read_subtitles,
    sample_frames,
)
from moviola.types import FrameSize, Span

SMALL = FrameSize(48, 64, fit="stretch")
CFR = {"tick": Fraction(1, 25)}
B = {"bf": "2", "preset": "veryfast"}
KINDS: dict[str, dict[str, Any]] = {
    "mp4": {"options": B, "gop": 10, "sound": "aac"},
    "mov": {"options": B, "gop": 10},
    "mkv": {"options": B, "gop": 10, "sound": "aac"},
    "ts": {"options": B, "gop": 10, "sound": "aac"},
    "avi": {"codec": "mpeg4", "gop": 10, **CFR},
    "webm": {"codec": "libvpx", "options": {"cpu-used": "8"}, "gop": 10},
    "flv": {"options": B, "gop": 10},
    "mpg": {"codec": "mpeg2video", "gop": 10, **CFR},
    "gif": {"codec": "gif", "pix_fmt": "rgb8"},
}


def film(films: Any, suffix: str) -> Path:
    return films.make(f"sound_{suffix}", suffix=suffix, seconds=3, **KINDS[suffix])[0]  # type: ignore[no-any-return]


def outcome(path: Path, scratch: Path) -> int:
    """Everything that reads a file, on this one; the number of frames sampled."""
    for read in (
        lambda: probe(path),
        lambda: frame_at(path, 1.3, 64),
        lambda: embedded_subtitles(path),
        lambda: cut(path, Span(0.5, 1.5), scratch / "cut.mp4", mode="copy"),
        lambda: cut(path, Span(0.5, 1.5), scratch / "cut.mp4", mode="encode"),
    ):
        try:
            read()
        except (MediaError, InvalidValue) as error:
            assert str(path) in str(error)
    try:
        with sample_frames(path, rate=3, size=SMALL) as frames:
            count = sum(1 for _ in frames)
    except MediaError as error:
        assert error.reason
        return 0
    assert count >= 1
    assert frames.duration > 0
    assert frames.broken_at is None or frames.broken_at >= 0
    return count


@pytest.mark.parametrize("suffix", KINDS)
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([0.02, 0.3, 1.0])))
def test_flipped_bits(films: Any, tmp_path: Path, suffix: str, how: tuple[int, int, float]) -> None:
    seed, flips, where = how
    data = np.frombuffer(film(films, suffix).read_bytes(), np.uint8).copy()
    generator = np.random.default_rng(seed)
    places = generator.integers(0, max(1, int(len(data) * where)), flips)
    data[places] ^= (1 << generator.integers(0, 8, flips)).astype(np.uint8)
    path = tmp_path / f"flipped.{suffix}"
    path.write_bytes(data.tobytes())
    assert outcome(path, tmp_path) < 200_000


@pytest.mark.parametrize("suffix", KINDS)
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(keep=st.floats(0, 1))
def test_cut_off_anywhere(films: Any, tmp_path: Path, suffix: str, keep: float) -> None:
    data = film(films, suffix).read_bytes()
    path = tmp_path / f"short.{suffix}"
    path.write_bytes(data[: int(len(data) * keep)])
    assert outcome(path, tmp_path) <= 10


@pytest.mark.parametrize(
    ("suffix", "options"), [("mp4", {"movflags": "+faststart"}), ("mkv", {}), ("avi", {})]
)
def test_a_file_cut_off_gives_what_decodes_and_says_where_it_broke(
    films: Any, tmp_path: Path, suffix: str, options: dict[str, str]
) -> None:
    import av

    how: dict[str, Any] = {"codec": "mpeg4", **CFR} if suffix == "avi" else {"options": B}
    whole, _ = films.make(f"whole_{suffix}", suffix="mkv" if suffix != "avi" else "avi", seconds=10, **how)
    path = tmp_path / f"short.{suffix}"
    with av.open(str(whole)) as source, av.open(str(path), "w", options=options) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.6)])
    with sample_frames(path, rate=1, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames]
    assert 4 <= len(numbers) <= 8
    assert numbers[:4] == [0, 25, 50, 75]
    assert frames.broken_at is not None
    assert frames.broken_at == pytest.approx(frames.duration, abs=1)


FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
CHAINS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "gif": (KINDS["gif"], {}),
    "webm": (KINDS["webm"], {}),
    "live.webm": (KINDS["webm"], {"live": "1"}),
    "mkv": ({"options": B, "gop": 10}, {}),
    "mp4": ({"options": B, "gop": 10}, FRAGMENTS),
    "mpg": (KINDS["mpg"], {}),
    "vob": (KINDS["mpg"], {}),
    "wmv": ({"codec": "wmv2", "gop": 10}, {}),
}


def chain(films: Any, folder: Path, name: str) -> Path:
    """Ten seconds in a format that is a chain of blocks."""
    import av

    how, options = CHAINS[name]
    source = "mkv" if name in ("mkv", "mp4") else name.rpartition(".")[2]
    made, _ = films.make(f"chain_{source}", suffix=source, seconds=10, **how)
    path = folder / f"whole.{name}"
    if name == "gif":
        path.write_bytes(made.read_bytes())
        return path
    with av.open(str(made)) as given, av.open(str(path), "w", options=options) as target:
        stream = target.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(given.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    return path


def broken_at(path: Path) -> float | None:
    with sample_frames(path, rate=1, size=SMALL) as frames:
        for _ in frames:
            pass
    return frames.broken_at


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("lost", ["cut out", "zeros", "end"])
def test_a_chain_that_lost_its_middle_says_so(films: Any, tmp_path: Path, name: str, lost: str) -> None:
    whole = chain(films, tmp_path, name)
    assert broken_at(whole) is None
    data = whole.read_bytes()
    first, stop = len(data) * 2 // 5, len(data) * 3 // 5
    between = {"cut out": b"", "zeros": bytes(stop - first), "end": b""}[lost]
    path = tmp_path / f"torn.{name}"
    path.write_bytes(data[:first] + between + (b"" if lost == "end" else data[stop:]))
    at = broken_at(path)
    assert at is not None and 2 < at < 7


def test_a_transport_stream_goes_on_behind_a_hole(films: Any, tmp_path: Path) -> None:
    """Pictures behind a large one were given up, and were searched for in vain."""
    made, _ = films.make("chain_ts", suffix="ts", seconds=10, **KINDS["ts"])
    data = made.read_bytes()
    first, stop = (len(data) * part // 5 // 188 * 188 for part in (2, 3))
    path = tmp_path / "torn.ts"
    path.write_bytes(data[:first] + bytes(400_000) + data[stop:])
    with sample_frames(path, rate=1, size=SMALL) as frames:
        assert len([*frames]) >= 9
    assert frames.broken_at is not None and 2 < frames.broken_at < 7


def test_fragments_that_are_missing_are_missed(films: Any, tmp_path: Path) -> None:
    whole = chain(films, tmp_path, "mp4")
    data, places, place = whole.read_bytes(), [], 0
    while place < len(data):
        if data[place + 4 : place + 8] == b"moof":
            places.append(place)
        place += int.from_bytes(data[place : place + 4], "big")
    middle = len(places) // 2
    path = tmp_path / "gap.mp4"
    path.write_bytes(data[: places[middle]] + data[places[middle + 4] :])
    at = broken_at(path)
    assert at is not None and 3 < at < 6


def test_a_still_picture_is_no_damage(tmp_path: Path) -> None:
    import av

    path = tmp_path / "slides.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number, time in enumerate((0, 1, 2, 90, 91, 200)):
            image = np.full((48, 64, 3), 40 * number, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = time * 5, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert broken_at(path) is None


def test_a_damaged_picture_is_bridged_and_counted(films: Any, tmp_path: Path) -> None:
    import av

    path, _ = films.make("bridged", options={"bf": "0", "preset": "veryfast"}, gop=10)
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(container.streams.video[0]) if p.size]
        place, size = packets[50].pos, packets[50].size
    assert place is not None
    data = bytearray(path.read_bytes())
    data[place : place + size] = bytes([255] * size)
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(data)
    with sample_frames(broken, rate=1, size=SMALL) as frames:
        sampled = list(frames)
    assert [films.number_of(frame.image) for frame in sampled] == [0, 25, 49, 75, 100]
    assert sampled[2].shown_since == pytest.approx(49 / 25)
    assert frames.lost == 1
    assert frames.broken_at == pytest.approx(2.0)
    assert frames.duration == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("name", "content", "error", "reason"),
    [
        ("none.mp4", None, UnreadableMedia, "no such file"),
        ("empty.mp4", b"", UnreadableMedia, "empty"),
        ("zeros.mkv", bytes(100_000), UnreadableMedia, "only zeros"),
        ("text.mp4", b"Dear diary,\nthis is no film.\n" * 200, UnreadableMedia, "text file"),
        ("noise.mp4", bytes(range(256)) * 400, UnreadableMedia, "not a media file"),
        ("list.mp4", b"#EXTM3U\n#EXTINF:9,\nother.ts\n", UnreadableMedia, "text file"),
        ("talk.mkv", b"1\n00:00:01,000 --> 00:00:02,000\nHello\n", NoVideoStream, "subtitle only"),
    ],
)
def test_a_file_that_is_no_video_is_refused_with_its_reason(
    tmp_path: Path, name: str, content: bytes | None, error: type[MediaError], reason: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for read in (lambda: probe(path), lambda: sample_frames(path, size=SMALL), lambda: frame_at(path, 0, 64)):
        with pytest.raises(error, match=reason) as refused:
            read()
        assert refused.value.path == str(path)


def test_mp4_without_its_index_says_so(films: Any, tmp_path: Path) -> None:
    data = film(films, "mp4").read_bytes()
    path = tmp_path / "unfinished.mp4"
    path.write_bytes(data[: data.index(b"moov") - 4])
    with pytest.raises(UnreadableMedia, match="moov"):
        probe(path)


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    import av

    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 48_000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 48_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(NoVideoStream, match="audio only"):
        probe(path)


def test_a_stream_that_starts_without_key_frame_gives_what_decodes(films: Any, tmp_path: Path) -> None:
    data = film(films, "ts").read_bytes()
    path = tmp_path / "tail.ts"
    path.write_bytes(data[len(data) // 188 // 3 * 188 :])
    with sample_frames(path, rate=5, size=SMALL) as frames:
        sampled = list(frames)
    numbers = [films.number_of(frame.image) for frame in sampled]
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 70


def a_gif(path: Path, width: int, height: int) -> Path:
    """One picture of which one pixel is given: some bytes that declare any size."""
    picture = b"\x21\xf9\x04\x04\x32\0\0\0" + b"\x2c" + bytes(4) + b"\1\0\1\0\0" + b"\x02\x02\x44\x01\x00"
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    path.write_bytes(b"GIF89a" + size + b"\x80\0\0" + bytes(3) + b"\xff\xff\xff" + picture + b"\x3b")
    return path


@pytest.mark.parametrize(
    ("width", "height", "reason"),
    [
        (16_000, 16_000, "at most 67,108,864 pixels"),
        (65_000, 1, "at most 64 times"),
        (1, 65, "at most 64 times"),
    ],
)
def test_pictures_of_impossible_shapes_are_refused(
    tmp_path: Path, width: int, height: int, reason: str
) -> None:
    path = a_gif(tmp_path / "film.gif", width, height)
    readers = (
        lambda: probe(path),
        lambda: list(sample_frames(path, size=FrameSize(48, 48, shortest_edge=48))),
        lambda: list(sample_frames(path, size=FrameSize(48, 48, "stretch"), stills=[SmallStills(1)])),
        lambda: frame_at(path, 0, 64),
        lambda: cut(path, Span(0, 1), tmp_path / "cut.mp4", mode="encode"),
    )
    for read in readers:
        with pytest.raises(UnreadableMedia, match=f"{width} x {height} pixels.*{reason}") as refused:
            read()
        assert refused.value.path == str(path)
    assert probe(a_gif(tmp_path / "long.gif", 64, 1)).width == 64


def test_pictures_that_grow_past_the_limit_are_damage(
    films: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header gives the size of the first pictures only; the others must not take more memory."""
    from moviola.media import container

    parts = [
        films.make(f"part_{width}", suffix="ts", options=B, gop=10, seconds=2, size=(width, width))[0]
        for width in (64, 256)
    ]
    path = tmp_path / "growing.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    monkeypatch.setattr(container, "MAX_PIXELS", 128 * 128)
    with sample_frames(path, rate=5, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames]
    assert numbers[:10] == list(range(0, 50, 5))
    assert set(numbers[10:]) <= {49}
    assert frames.broken_at is not None


def test_time_stamps_that_make_days_of_it_are_refused(films: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from moviola.media import frames

    monkeypatch.setattr(frames, "LONGEST_VIDEO", 1)
    with pytest.raises(UnreadableMedia, match="longer than"):
        list(sample_frames(film(films, "mp4"), rate=1, size=SMALL))


def test_few_large_pictures_wait_in_memory(films: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pruner lets go of pictures that no moment will show sooner where they are large."""
    from moviola.media import frame_selection

    path, _ = films.make("waiting", options=B, gop=250)
    pruner = frame_selection._Pruner
    waited: list[int] = []
    collect = pruner._collect

    def count(self: Any, pictures: list[Any]) -> None:
        collect(self, pictures)
        waited.append(len(self._decoded))

    monkeypatch.setattr(pruner, "_collect", count)
    monkeypatch.setattr(pruner, "_WAITING_BYTES", 2 * 4 * 128 * 96)
    with sample_frames(path, rate=1, size=SMALL) as frames:
        numbers = [films.number_of(frame.image) for frame in frames]
    assert numbers == [0, 25, 50, 75, 100]
    assert max(waited) <= 4


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_path_that_is_no_regular_file_is_refused_before_it_is_opened(tmp_path: Path, kind: str) -> None:
    import os

    make = {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda path: path.symlink_to(path)}[kind]
    for suffix, read in (
        ("mp4", probe),
        ("mp4", lambda path: frame_at(path, 0, 64)),
        ("mp4", lambda path: sample_frames(path, size=SMALL)),
        ("mp4", embedded_subtitles),
        ("mp4", lambda path: cut(path, Span(0, 1), tmp_path / "cut.mp4", mode="copy")),
        ("srt", read_subtitles),
    ):
        path = tmp_path / f"{kind}.{suffix}"
        if not os.path.lexists(path):
            make(path)  # type: ignore[operator]
        with pytest.raises(UnreadableMedia, match=r"a named pipe|a folder|Too many levels"):
            read(path)  # type: ignore[operator]


def test_a_file_that_may_not_be_read_is_refused(films: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import av

    def closed(*_: object, **__: object) -> None:
        raise av.error.PermissionError(errno.EACCES, "Permission denied")

    def shut(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path = film(films, "mp4")
    monkeypatch.setattr(av, "open", closed)
    monkeypatch.setattr(Path, "open", shut)
    with pytest.raises(UnreadableMedia, match=r"cannot be read \(Permission denied\)"):
        probe(path)


def test_subtitles_of_a_size_that_none_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UnreadableMedia, match="subtitles have at most"):
        read_subtitles(path)
