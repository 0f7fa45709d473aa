"""Subtitles: formats, encodings, damage, where they are found."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pysubs2
import pytest
from av.stream import Disposition
from av.subtitles.subtitle import SubtitleSet
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import UnreadableMedia
from moviola.media import (
    Subtitles,
    embedded_subtitles,
    probe,
    read_subtitles,
    write_subtitles,
    write_video,
)
from moviola.media.subtitles.visible import of_commands
from moviola.types import Cue

SRT = """1
00:00:01,000 --> 00:00:02,500
<font color="red">Grüße</font>, {\\an8}<i>Bob</i> &amp; Ann

2
00:00:xx,000 --> 00:00:04,000
damaged

3
00:00:05,000 --> 00:00:04,000
backwards

4
01:00:05,250 --> 01:00:06,000
two
lines
"""
VTT = """WEBVTT - a title

NOTE nothing to see

STYLE
::cue { color: lime }

intro
00:01.000 --> 00:02.500 align:start position:0%
<v Bob>Hello <i>there</i></v> <00:00:02.000>again

00:05.000 --> never
damaged

01:00:05.250 --> 01:00:06.000
last
"""
ASS = """[Script Info]
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,second, with a comma
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\i1}first{\\i0}\\Nline
Dialogue: 0,0:00:xx.00,0:00:02.00,Default,,0,0,0,,damaged
Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,a comment
Dialogue: 0,0:00:06.00,0:00:07.00,Default,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}
"""


@pytest.mark.parametrize(
    ("name", "text", "cues", "skipped"),
    [
        ("a.srt", SRT, (Cue(1.0, 2.5, "Grüße, Bob & Ann"), Cue(3605.25, 3606.0, "two\nlines")), 2),
        ("a.vtt", VTT, (Cue(1.0, 2.5, "Hello there again"), Cue(3605.25, 3606.0, "last")), 1),
        ("a.ass", ASS, (Cue(1.0, 2.5, "first\nline"), Cue(4.0, 5.0, "second, with a comma")), 1),
    ],
    ids=["subrip", "webvtt", "advanced substation alpha"],
)
def test_a_file_of_a_format(
    tmp_path: Path, name: str, text: str, cues: tuple[Cue, ...], skipped: int
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    subtitles = read_subtitles(path)
    assert subtitles.cues == cues
    assert subtitles.skipped == skipped


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\r\r\n"])
def test_encodings(tmp_path: Path, encoding: str, newline: str) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(SRT.replace("\n", newline).encode(encoding))
    assert read_subtitles(path).cues[0].text == "Grüße, Bob & Ann"


def test_quotes_and_ellipses_of_windows(tmp_path: Path) -> None:
    said = "it’s … “café”"
    (tmp_path / "a.srt").write_bytes(f"1\n00:00:01,000 --> 00:00:02,000\n{said}\n".encode("cp1252"))
    (tmp_path / "a.ass").write_bytes(f"Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,{said}\n".encode("cp1252"))
    for path in tmp_path.iterdir():
        subtitles = read_subtitles(path)
        assert (subtitles.cues, subtitles.encoding) == ((Cue(1.0, 2.0, said),), "windows-1252")


def test_a_dialogue_goes_on_after_a_separator_of_unicode(tmp_path: Path) -> None:
    path = tmp_path / "a.ass"
    path.write_text("Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,one\u2028two\n", encoding="utf-8")
    assert read_subtitles(path).cues == (Cue(1.0, 2.0, "one\ntwo"),)


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
@pytest.mark.parametrize("between", ["\n", "\n2\n"])
def test_cues_without_empty_lines_between_them(tmp_path: Path, suffix: str, between: str) -> None:
    path = tmp_path / f"a{suffix}"
    cues = [f"00:00:0{second}.000 --> 00:00:0{second}.500\n{second} a --> b" for second in (1, 2, 3)]
    path.write_text(f"WEBVTT\nKind: captions\nLanguage: en\n{between.join(cues)}\n", encoding="utf-8")
    assert read_subtitles(path).cues == tuple(
        Cue(second, second + 0.5, f"{second:g} a --> b") for second in (1.0, 2.0, 3.0)
    )


def test_what_pads_or_ends_a_file_is_no_text(tmp_path: Path) -> None:
    """Zeros of a file that was allocated before, and the sign that ends one of DOS, stood in the last cue."""
    path = tmp_path / "a.srt"
    path.write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\nHello\x07 there\n\x1a" + bytes(40))
    assert [cue.text for cue in read_subtitles(path).cues] == ["Hello there"]


def test_a_cue_without_a_text_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:04,000\nseven\n")
    assert [(cue.start, cue.text) for cue in read_subtitles(path).cues] == [(3.0, "seven")]


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".srt", "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n"),
        (".vtt", "1\n00:00:01,000 --> 00:00:02,000\nhello\n"),
        (".srt", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,hello\n"),
        (".ass", "1\n00:00:01,000 --> 00:00:02,000\nhello\n"),
    ],
)
def test_another_format_than_the_suffix_says(tmp_path: Path, suffix: str, text: str) -> None:
    (tmp_path / f"a{suffix}").write_text(text)
    assert read_subtitles(tmp_path / f"a{suffix}") == Subtitles((Cue(1.0, 2.0, "hello"),))


def test_a_blank_in_the_first_line_is_not_the_end_of_a_cue(tmp_path: Path) -> None:
    path = tmp_path / "a.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000 align:start\n \nhello<00:01.500><c> there</c>\n")
    assert read_subtitles(path) == Subtitles((Cue(1.0, 2.0, "hello there"),))


def test_signs_of_webvtt_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "film.vtt"
    said = ("if a<b>c", "fish & chips", "&lt;i&gt;", "a --> b", "<i>")
    write_subtitles(path, [Cue(n, n + 1, text) for n, text in enumerate(said)])
    assert [cue.text for cue in read_subtitles(path).cues] == list(said)
    assert "fish &amp; chips" in path.read_text()


@pytest.mark.parametrize("suffix", [".srt", ".vtt", ".ass"])
def test_a_backslash_breaks_no_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"film{suffix}"
    said = (r"C:\New\home", "two\nlines")
    write_subtitles(path, [Cue(n, n + 1, text) for n, text in enumerate(said)])
    assert [cue.text for cue in read_subtitles(path).cues] == list(said)


@pytest.mark.parametrize(("suffix", "step"), [(".srt", 0.001), (".vtt", 0.001), (".ass", 0.01)])
def test_short_cues_last_a_step(tmp_path: Path, suffix: str, step: float) -> None:
    path = tmp_path / f"film{suffix}"
    write_subtitles(path, [Cue(5.0, 5.0001, "short"), Cue(5.004, 5.0041, "later")])
    later = 5.0 if suffix == ".ass" else 5.004
    assert [(c.start, c.end) for c in read_subtitles(path).cues] == [
        (start, pytest.approx(start + step)) for start in (5.0, later)
    ]


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_number_may_be_what_is_said(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nThe answer:\n42\n\n00:03.000 --> 00:04.000\n1984\n")
    if suffix == ".srt":
        path.write_text(path.read_text().replace("00:0", "00:00:0"))
    assert [cue.text for cue in read_subtitles(path).cues] == ["The answer:\n42", "1984"]


@pytest.mark.parametrize(
    "content", [b"", b"no subtitles here", b"1\n00:00:xx --> never\ndamaged\n", bytes(999)]
)
def test_a_file_without_one_good_subtitle_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(content)
    damaged = r" \(1 damaged\)" if b"damaged" in content else ""
    with pytest.raises(UnreadableMedia, match=f"no subtitle in it can be read{damaged}$"):
        read_subtitles(path)
    with pytest.raises(UnreadableMedia, match=r"\.srt, \.vtt, \.ass, \.ssa"):
        read_subtitles(tmp_path / "a.txt")
    with pytest.raises(UnreadableMedia, match="cannot be read"):
        read_subtitles(tmp_path / "missing.srt")


def test_text_tracks_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    cues = (Cue(0.5, 1.25, "Grüße"), Cue(2.0, 3.0, "two\nlines"), Cue(3.0, 3.5, "last"))
    write_video(path, [np.zeros((32, 32, 3), np.uint8)] * 40, rate=10, subtitles=cues)
    streams = probe(path).subtitle_streams
    assert [(stream.codec, stream.text) for stream in streams] == [("mov_text", True)]
    assert embedded_subtitles(path).cues == cues
    assert embedded_subtitles(path, streams[0].index).cues == cues


@pytest.mark.parametrize(("suffix", "codec"), [("mkv", "subrip"), ("mkv", "ass"), ("webm", "webvtt")])
def test_other_text_tracks(films: Any, tmp_path: Path, suffix: str, codec: str) -> None:
    """On the time line of the pictures, which begins when the pictures do."""
    video = {"codec": "libvpx", "options": {"cpu-used": "8"}} if suffix == "webm" else {}
    path, _ = films.make(f"late_{suffix}", suffix=suffix, start=2.0, **video)
    out = tmp_path / f"text.{suffix}"
    with_tracks(path, out, codec, {"{\\i1}Hello{\\i0}, you": 0})
    assert embedded_subtitles(out).cues == (Cue(1.0, 2.5, "Hello, you"),)


def test_tracks_are_separate_and_lines_that_two_of_them_have_are_kept_once(
    films: Any, tmp_path: Path
) -> None:
    path, _ = films.make("forced_mkv", suffix="mkv", seconds=4)
    out = tmp_path / "text.mkv"
    with_tracks(path, out, "subrip", {"Bonjour": Disposition.forced, "Hello": 0})
    cues = embedded_subtitles(out).cues
    assert [(cue.text, cue.form) for cue in cues] == [("Hello", ""), ("Bonjour", "forced")]
    with_tracks(path, out, "subrip", {"Hello": Disposition.hearing_impaired, "Hello!": 0})
    assert [(cue.text, cue.form) for cue in embedded_subtitles(out).cues] == [("Hello!", "")], "once"


def with_tracks(film: Path, out: Path, codec: str, lines: dict[str, int]) -> None:
    """Copy a film with a track for each line, at the third second of the file, and its disposition."""
    header = ASS.partition("Dialogue")[0]
    with av.open(str(film)) as source, av.open(str(out), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        tracks = [target.add_stream(codec) for _ in lines]
        for track, disposition in zip(tracks, lines.values(), strict=True):
            track.codec_context.subtitle_header = header.encode()
            track.disposition = disposition
        for track, line in zip(tracks, lines, strict=True):
            shown = SubtitleSet.create(f"0,0,Default,,0,0,0,,{line}".encode(), 0, 1500, 3000)
            packet = track.codec_context.encode_subtitle(shown)
            packet.stream, packet.time_base = track, Fraction(1, 1000)
            target.mux(packet)
        for picture in source.demux(source.streams.video[0]):
            if picture.size:
                picture.stream = stream
                target.mux(picture)


def test_a_film_without_text_has_no_subtitles(films: Any) -> None:
    path, _ = films.make("h264_plain", options={"preset": "veryfast"}, seconds=1)
    assert embedded_subtitles(path).cues == ()


@given(
    st.lists(st.sampled_from([*"{}a", r"\p1", r"\p0", r"\r", r"\rX", r"\N", r"\i1"]), max_size=10).map(
        "".join
    )
)
def test_commands_are_read_as_by_pysubs2(text: str) -> None:
    event = pysubs2.SSAEvent(text=text)
    lines = (" ".join(line.split()) for line in event.plaintext.splitlines())
    assert of_commands(text) == ("" if event.is_drawing else "\n".join(filter(None, lines)))


@pytest.mark.parametrize("piece", [r"{\p", r"{\i1}a", "{", "{}"])
@pytest.mark.parametrize("suffix", [".ass", ".srt", ".vtt"])
def test_megabytes_of_commands_are_read(tmp_path: Path, piece: str, suffix: str) -> None:
    """Quadratic in their number, each of these would take an hour."""
    words = piece * (2_000_000 // len(piece))
    path = tmp_path / f"x{suffix}"
    if suffix == ".ass":
        line = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,"
        path.write_text(f"[Events]\n{line}{words}\n{line}hello\n")
    else:
        head = "WEBVTT\n\n" if suffix == ".vtt" else "1\n"
        path.write_text(
            f"{head}00:00:01.000 --> 00:00:02.000\n{words}\n\n2\n00:00:01.000 --> 00:00:02.000\nhello\n"
        )
    assert "hello" in {cue.text for cue in read_subtitles(path).cues}
