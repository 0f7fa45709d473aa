"""How long a film is: one answer, whatever its header says, with the sound and the words that go on."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from made_films import Pictures, Sound, Words, make_film
from moviola.export import FORMATS, write_moments
from moviola.media import embedded_subtitles, length_of, make_playable, probe, read_sound, sample_frames
from moviola.types import FrameSize, Moment

TINY = FrameSize(16, 16, fit="stretch")
PLAIN: dict[str, str] = {}
CONTAINERS = {
    "mp4": ("libx264", "aac"), "mov": ("libx264", "aac"), "mkv": ("libx264", "libmp3lame"),
    "webm": ("libvpx", "libopus"), "avi": ("mpeg4", "libmp3lame"), "ts": ("libx264", "aac"),
    "flv": ("libx264", "aac"), "mpg": ("mpeg2video", "mp2"),
}  # fmt: skip
X264 = {"preset": "veryfast", "bf": "0"}


def read(path: Path, rate: float = 1.0) -> tuple[int, float, float | None]:
    """Frames sampled, duration by decoding, damage."""
    with sample_frames(path, rate=rate, size=TINY) as stream:
        count = sum(1 for _ in stream)
    return count, stream.duration, stream.broken_at


def sides(path: Path) -> float:
    """The one answer: by decoding, by reading, of ``probe``."""
    count, duration, broken_at = read(path)
    assert (broken_at, length_of(path), probe(path).duration) == (None, duration, duration)
    assert count == max(1, int(np.ceil(duration - 1e-9)))
    return duration


@pytest.mark.parametrize("suffix", CONTAINERS)
@pytest.mark.parametrize("pictures", [1, 40])
def test_the_last_picture_lasts_as_long_as_the_sound(tmp_path: Path, suffix: str, pictures: int) -> None:
    """Podcasts and songs have one picture, for the smallest time that their format can say: what is said in
    them was neither read nor found, and could not be exported.
    """
    codec, sound = CONTAINERS[suffix]
    options = X264 if codec == "libx264" else PLAIN
    times = [n / 25 for n in range(pictures)]
    film = make_film(
        tmp_path / f"talk.{suffix}",
        Pictures(times=times, codec=codec, options=options),
        Sound(6, codec=sound),
    )
    assert sides(film) == pytest.approx(6, abs=0.06)
    moment = Moment("talk", 4.0, 5.5, 1.0, 1)
    for name in ("clips", "film"):
        out = tmp_path / f"out{FORMATS[name].suffix}"
        written = write_moments([moment], {"talk": film}, out, name)
        assert not written.refused
        (clip,) = written.files
        assert length_of(clip) == pytest.approx(1.5, abs=0.05)
        heard = np.concatenate(list(read_sound(clip)))
        assert len(heard) / 16_000 == pytest.approx(1.5, abs=0.1) and np.abs(heard).max() > 0.1
    make_playable(film, tmp_path / "playable.mp4")
    assert length_of(tmp_path / "playable.mp4") == pytest.approx(6, abs=0.1)


def test_a_little_more_sound_is_no_longer_film(tmp_path: Path) -> None:
    """Encoders of sound fill their last block."""
    film = make_film(tmp_path / "film.mkv", Pictures(3.0), Sound(3.06))
    assert sides(film) == pytest.approx(3.0)


@pytest.mark.parametrize(("name", "inside"), [("last", True), ("after", True), ("always", False)])
def test_words_last_like_sound(tmp_path: Path, name: str, inside: bool) -> None:
    """A cue that begins after the last picture is not lost; a mark that is shown for all time is no film."""
    cues = {
        "last": [(0.5, 1.0, "said"), (1.8, 4.0, "the last word")],
        "after": [(0.5, 1.0, "said"), (3.0, 4.0, "the last word")],
        "always": [(0.0, 35_999.0, "a mark"), (0.5, 1.0, "said")],
    }[name]
    film = make_film(tmp_path / "film.mkv", Pictures(2.0), Words(cues, codec="ass"))
    assert sides(film) == pytest.approx(4.0 if inside else 2.0)
    assert {cue.text for cue in embedded_subtitles(film).cues} == {text for *_, text in cues}


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
@pytest.mark.parametrize(
    "times", [[0, 10, 30, 35, 95, 97, 127], [0, 60, 61, 62, 63], [0, 5, 10, 500, 3500], [0, 3700]]
)
def test_slides_stand_as_long_as_they_are_shown(tmp_path: Path, times: list[float], suffix: str) -> None:
    """By ffmpeg's concat recipe, the last slide twice: with B pictures MP4 has the times between decodings,
    and their sum in its header. Slides that stand for hours are no damage where the header knows of them, nor
    for less than an hour where it does not.
    """
    film = make_film(tmp_path / f"slides.{suffix}", Pictures(times=times, options={"bf": "3"}))
    _, duration, broken_at = read(film, rate=1 / 50)
    assert broken_at is None
    assert duration == length_of(film) == pytest.approx(times[-1] + 0.04, abs=0.002)
    out = tmp_path / "film.mp4"
    write_moments([Moment("slides", times[-2] + 0.2, times[-2] + 0.8, 1.0, 1)], {"slides": film}, out, "film")
    assert length_of(out) == pytest.approx(0.6)


def test_one_picture_for_hours_is_no_damage_beside_its_sound(tmp_path: Path) -> None:
    """A picture every two hours was taken for a wrong time scale."""
    sound = Sound(7300, codec="pcm_u8", rate=1000)
    film = make_film(tmp_path / "talk.mov", Pictures(times=[0.0, 7200.0]), sound)
    with av.open(str(film)) as container:
        assert (container.streams.video[0].average_rate or 1) < 1 / 60
    count, duration, broken_at = read(film, rate=1 / 100)
    assert (count, broken_at) == (73, None) and duration == pytest.approx(7300)


def test_fragments_go_on_after_their_header(tmp_path: Path) -> None:
    """Recorders of browsers write the length of the first fragment: exports refused what search had found."""
    options = {"movflags": "frag_keyframe+default_base_moof", "frag_duration": "300000"}
    film = make_film(tmp_path / "recording.mp4", Pictures(8.0), Sound(8.0), **options)
    data = film.read_bytes()
    for kind, at in ((b"mvhd", 20), (b"mdhd", 20)):  # 32-bit durations
        place = 0
        while (place := data.find(kind, place) + 4) > 4:
            data = data[: place + at - 4] + struct.pack(">I", 250) + data[place + at :]
    film.write_bytes(data)
    assert sides(film) == pytest.approx(8.0, abs=0.05)
    for name, form in FORMATS.items():
        out = tmp_path / f"out-{name}{form.suffix}"
        assert not write_moments([Moment("r", 3.0, 5.0, 1.0, 1)], {"r": film}, out, name).refused


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> Path:
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize("factor", [0.2, 3.0, None])
def test_a_matroska_header_that_lies_is_not_asked(tmp_path: Path, factor: float | None) -> None:
    """Too short, too long, absent; the file is whole by its structure."""
    film = make_film(tmp_path / "film.mkv", Pictures(5.0), Sound(5.0))

    def lie(data: bytes) -> bytes:
        place = data.index(b"\x44\x89\x88") + 3  # Duration, a float of 8 bytes
        if factor is None:
            data = data[: place - 3] + b"\xec\x89\x88" + data[place:]
        else:
            (stated,) = struct.unpack(">d", data[place : place + 8])
            data = data[:place] + struct.pack(">d", stated * factor) + data[place + 8 :]
        while (tag := data.find(b"DURATION")) >= 0:  # of the streams
            data = data[:tag] + b"DURATIOX" + data[tag + 8 :]
        return data

    assert sides(rewritten(film, lie)) == pytest.approx(5.0, abs=0.03)


@pytest.mark.parametrize("stated", [1.0, 60.0])
def test_an_mp4_header_that_lies_is_not_asked(tmp_path: Path, stated: float) -> None:
    """Where all pictures are there of which the header says that they are, none is missing."""
    film = make_film(tmp_path / "film.mp4", Pictures(5.0))

    def lie(data: bytes) -> bytes:
        for kind, scale_at, at in ((b"mdhd", 16, 20), (b"mvhd", 16, 20)):
            place = data.index(kind)
            scale = int.from_bytes(data[place + scale_at : place + scale_at + 4], "big")
            data = data[: place + at] + struct.pack(">I", round(stated * scale)) + data[place + at + 4 :]
        return data.replace(b"edts", b"free")

    assert sides(rewritten(film, lie)) == pytest.approx(5.0)


def test_flash_that_was_recorded_has_no_length_in_its_header(tmp_path: Path) -> None:
    film = make_film(tmp_path / "film.flv", Pictures(5.0), Sound(5.0))

    def lie(data: bytes) -> bytes:
        place = data.index(b"duration") + 9
        return data[:place] + struct.pack(">d", 3000.0) + data[place + 8 :]

    assert sides(rewritten(film, lie)) == pytest.approx(5.0, abs=0.05)


def test_the_checksum_of_what_was_read_is_that_of_the_content(tmp_path: Path) -> None:
    """The same while decoding and while reading, and another one where a byte of a packet differs."""
    from moviola.media import read_through

    film = make_film(
        tmp_path / "film.mkv", Pictures(3.0), Sound(3.0), Words([(1.0, 2.0, "a walrus hums")], "ass")
    )
    with sample_frames(film, rate=1, size=TINY) as stream:
        assert list(stream)
    known = read_through(film).checksum
    assert stream.checksum == known
    with av.open(str(film)) as container:
        middle = [packet.pos or 0 for packet in container.demux(container.streams.video[0]) if packet.size][7]
    for place in (film.read_bytes().index(b"walrus"), middle + 30):
        data = bytearray(film.read_bytes())
        data[place] ^= 1
        other = tmp_path / "other.mkv"
        other.write_bytes(data)
        assert read_through(other).checksum != known
