"""Sound on the time line of the pictures: every sample where it is heard."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.stream import Disposition
from numpy.typing import NDArray

from moviola.errors import InvalidValue, MediaError, NoVideoStream, UnreadableMedia
from moviola.media import (
    cut,
    make_playable,
    probe,
    read_sound,
    read_subtitles,
    track_among,
    write_subtitles,
    write_video,
)
from moviola.types import Cue, Span

RATE = 16_000


def bursts(*seconds: float, length: float, rate: int = RATE) -> NDArray[np.float32]:
    """Silence with a tenth of a second of tone at some times."""
    samples = np.zeros(round(length * rate), np.float32)
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(rate // 10) / rate)
    for second in seconds:
        first = round(second * rate)
        samples[first : first + len(tone)] = tone
    return samples


def onsets(samples: NDArray[np.float32]) -> list[float]:
    """Seconds at which a tone begins."""
    loud = np.convolve(np.abs(samples), np.ones(32) / 32, "same") > 0.1
    starts = np.flatnonzero(loud & ~np.concatenate([[False], loud[:-1]])) / RATE
    return [
        start for place, start in enumerate(starts.tolist()) if not place or start - starts[place - 1] > 0.2
    ]


def film(path: Path, sound: NDArray[np.float32] | None, rate: int = RATE) -> Path:
    frames = (np.full((64, 64, 3), 40, np.uint8) for _ in range(20))
    write_video(path, frames, rate=5, sound=sound, sound_rate=rate)
    return path


def late_film(path: Path, *, video_start: float, parts: dict[float, NDArray[np.float32]]) -> Path:
    """A film whose pictures begin at one time, and whose sound comes in parts with times of their own."""
    with av.open(str(path), "w") as container:
        pictures = container.add_stream("libx264", rate=5)
        pictures.width = pictures.height = 64
        pictures.pix_fmt = "yuv420p"
        sound = container.add_stream("pcm_s16le", rate=RATE, layout="mono")
        for number in range(30):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 40, np.uint8), format="rgb24")
            frame.pts, frame.time_base = round((video_start + number / 5) * 1000), Fraction(1, 1000)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode(None))
        for start, samples in parts.items():
            whole = (samples * 32767).astype(np.int16)[np.newaxis]
            frame = av.AudioFrame.from_ndarray(whole, format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = RATE, round(start * RATE), Fraction(1, RATE)
            container.mux(sound.encode(frame))
        container.mux(sound.encode(None))
    return path


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("seconds", [0.5, 1.7, 30.0])
def test_sound_is_heard_when_it_is_heard(tmp_path: Path, rate: int, seconds: float) -> None:
    path = film(tmp_path / "a.mp4", bursts(0.5, 1.25, 3.0, length=4, rate=rate), rate)
    pieces = list(read_sound(path, seconds=seconds))
    assert {len(piece) for piece in pieces[:-1]} <= {round(seconds * RATE)}
    assert all(piece.dtype == np.float32 for piece in pieces)
    samples = np.concatenate(pieces)
    assert len(samples) / RATE == pytest.approx(4, abs=0.1)
    assert onsets(samples) == pytest.approx([0.5, 1.25, 3.0], abs=0.005)


def test_sound_that_begins_late_has_silence_before(tmp_path: Path) -> None:
    parts = {3.5: bursts(0.25, length=1)}
    samples = np.concatenate(list(read_sound(late_film(tmp_path / "a.mkv", video_start=2, parts=parts))))
    assert onsets(samples) == pytest.approx([1.75], abs=0.003)
    assert len(samples) == pytest.approx(2.5 * RATE, abs=0.002 * RATE)


def test_sound_before_the_first_picture_is_left_out(tmp_path: Path) -> None:
    parts = {0.0: bursts(0.5, 2.5, length=4)}
    samples = np.concatenate(list(read_sound(late_film(tmp_path / "a.mkv", video_start=2, parts=parts))))
    assert onsets(samples) == pytest.approx([0.5], abs=0.003)
    assert len(samples) == pytest.approx(2 * RATE, abs=0.002 * RATE)


def test_a_gap_is_silence(tmp_path: Path) -> None:
    parts = {0.0: bursts(0.5, length=1), 3.0: bursts(0.5, length=1)}
    samples = np.concatenate(list(read_sound(late_film(tmp_path / "a.mkv", video_start=0, parts=parts))))
    assert onsets(samples) == pytest.approx([0.5, 3.5], abs=0.003)


def test_a_film_without_sound_has_none(tmp_path: Path) -> None:
    assert list(read_sound(film(tmp_path / "a.mp4", None))) == []


def test_a_damaged_file_gives_what_decodes(tmp_path: Path) -> None:
    parts = {0.0: bursts(0.5, length=1), 3.0: bursts(0.5, length=1)}
    path = late_film(tmp_path / "a.mkv", video_start=0, parts=parts)
    path.write_bytes(path.read_bytes()[:-20_000])
    assert len(np.concatenate(list(read_sound(path)))) <= 4 * RATE


def test_what_has_no_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    with pytest.raises(UnreadableMedia):
        next(read_sound(tmp_path / "empty.mp4"))
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=RATE, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, RATE), np.int16), format="s16", layout="mono")
        frame.sample_rate, frame.pts = RATE, 0
        container.mux([*stream.encode(frame), *stream.encode(None)])
    with pytest.raises(NoVideoStream):
        next(read_sound(path))


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"seconds": 0.0}])
def test_wrong_numbers_are_refused(tmp_path: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="must be above 0"):
        next(read_sound(tmp_path / "a.mp4", **wrong))  # type: ignore[arg-type]


# ---- what is written down ------------------------------------------------------------------------------

CUES = (
    Cue(0.5, 2.25, "Hello {you}\nand <you>", "speech"),
    Cue(2.5, 3.125, "THE END & more", "text"),
)


@pytest.mark.parametrize("suffix", [".srt", ".vtt", ".ass"])
def test_cues_are_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"film{suffix}"
    write_subtitles(path, reversed(CUES))
    found = read_subtitles(path)
    assert found.skipped == 0
    assert [cue.start for cue in found.cues] == pytest.approx([0.5, 2.5], abs=0.01)
    assert [cue.end for cue in found.cues] == pytest.approx([2.25, 3.125], abs=0.01)
    assert [cue.text.split("\n")[-1].split()[-1] for cue in found.cues][1] == "more"
    assert found.cues[0].text.startswith("Hello (you)\nand")


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"\.srt, \.vtt, \.ass"):
        write_subtitles(tmp_path / "film.txt", CUES)


# ---- several tracks ------------------------------------------------------------------------------------

TRACKS = {"eng": (440, Disposition.comment), "ger": (660, Disposition.default), "fre": (880, Disposition(0))}


def film_of_tracks(path: Path, tracks: dict[str, tuple[int, Disposition]] = TRACKS) -> Path:
    """Two seconds with tracks of sound, each a tone of its own."""
    with av.open(str(path), "w") as container:
        pictures = container.add_stream("libx264", rate=5, options={"preset": "ultrafast"})
        pictures.width = pictures.height = 64
        pictures.pix_fmt = "yuv420p"
        streams = []
        for language, (_, disposition) in tracks.items():
            stream = container.add_stream("aac", rate=RATE, layout="mono")
            if language.isalpha():
                stream.metadata["language"] = language
            stream.disposition = disposition
            streams.append(stream)
        for number in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 40, np.uint8))
            frame.pts, frame.time_base = number, Fraction(1, 5)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode(None))
        for stream, (hertz, _) in zip(streams, tracks.values(), strict=True):
            wave = 0.3 * np.sin(2 * np.pi * hertz * np.arange(2 * RATE) / RATE, dtype=np.float32)
            heard = av.AudioFrame.from_ndarray(wave[None].astype(np.float32), format="fltp", layout="mono")
            heard.sample_rate, heard.pts, heard.time_base = RATE, 0, Fraction(1, RATE)
            container.mux([*stream.encode(heard), *stream.encode(None)])
    return path


def pitch(path: Path, track: int | str | None = None) -> int:
    """Hertz of what is heard."""
    wave = np.concatenate(list(read_sound(path, track=track)))[4000:20_000]
    return round(float(np.abs(np.fft.rfft(wave)).argmax()) * RATE / 16_000)


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_a_track_is_chosen_by_flags_number_or_language(tmp_path: Path, suffix: str) -> None:
    path = film_of_tracks(tmp_path / f"a.{suffix}")
    tracks = probe(path).sound_tracks
    assert [(track.number, track.language, track.default) for track in tracks] == [
        (1, "en", False), (2, "de", True), (3, "fr", False),
    ]  # fmt: skip
    assert pitch(path) == 660
    assert [pitch(path, number) for number in (1, 2, 3)] == [440, 660, 880]
    assert [pitch(path, language) for language in ("en", "eng", "de-AT", "fra", "fre", "2")] == [
        440, 440, 660, 880, 880, 660,
    ]  # fmt: skip


def test_clips_have_the_track_that_is_chosen(tmp_path: Path) -> None:
    path = film_of_tracks(tmp_path / "a.mkv")
    for mode in ("copy", "encode"):
        for track, hertz in ((None, 660), ("fr", 880), (1, 440)):
            cut(path, Span(0, 2), tmp_path / "clip.mp4", mode=mode, track=track)  # type: ignore[arg-type]
            assert pitch(tmp_path / "clip.mp4") == hertz
    make_playable(
        path, tmp_path / "whole.mp4", track=track_among(probe(path).sound_tracks, path, "fr").number
    )
    assert pitch(tmp_path / "whole.mp4") == 880


def test_asides_are_not_the_default(tmp_path: Path) -> None:
    tracks = {"eng": (440, Disposition.comment), "ger": (660, Disposition(0))}
    path = film_of_tracks(tmp_path / "a.mov", tracks)
    if not probe(path).sound_tracks[0].default:
        assert pitch(path) == 660


def test_a_track_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = film_of_tracks(tmp_path / "a.mkv")
    for track in (4, "es"):
        with pytest.raises(MediaError, match=r"no sound track (4|es); there is 1 \(en, .*aac\), 2 \(de"):
            list(read_sound(path, track=track))
    for nonsense in (0, -1, "german", "", "1.5", "1" * 5000):
        with pytest.raises(InvalidValue, match="give a number"):
            list(read_sound(path, track=nonsense))
    silent = film(tmp_path / "silent.mp4", None)
    assert list(read_sound(silent, track="de")) == []


def test_where_no_language_is_said_the_default_track_is_taken(tmp_path: Path) -> None:
    path = film_of_tracks(tmp_path / "a.mp4", {"1": (440, Disposition(0)), "2": (660, Disposition.default)})
    assert [track.language for track in probe(path).sound_tracks] == ["", ""]
    assert pitch(path, "de") == pitch(path)
