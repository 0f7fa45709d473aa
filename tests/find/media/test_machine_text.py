"""Text by machines is not taken for speech: rolling captions, moving signs, sung syllables, instruments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.subtitles.subtitle import SubtitleSet
from hypothesis import given
from hypothesis import strategies as st

from moviola.media import Fix, embedded_subtitles, read_subtitles, within_film, write_subtitles, write_video
from moviola.media.subtitles.repeats import without_repeats
from moviola.media.subtitles.values import Line, Notes
from moviola.types import Cue


def lines_of(path: Path) -> list[tuple[float, float, str]]:
    return [(cue.start, cue.end, cue.text) for cue in read_subtitles(path).cues]


# ---- captions that roll and grow ---------------------------------------------------------------------------

SAID = [
    "welcome to the series",
    "about growing tomatoes",
    "in a small garden",
    "we begin with soil",
    "and add water",
]


def rolling(rows: int, gap: float, *, between: bool) -> list[Line]:
    """Captions of ``rows`` rows: each line comes below the earlier ones; ``between`` they are shown alone."""
    found = []
    for n, said in enumerate(SAID):
        start = 2.0 * n
        found.append(
            Line(
                start,
                start + 2 - gap - (0.01 if between else 0),
                "\n".join([*SAID[max(0, n + 1 - rows) : n], said]),
            )
        )
        if between:
            found.append(
                Line(start + 2 - gap - 0.01, start + 2 - gap, "\n".join(SAID[max(0, n + 2 - rows) : n + 1]))
            )
    return found


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("gap", [0.0, 0.033, 0.4])
@pytest.mark.parametrize("rows", [2, 3])
def test_rolling_captions_say_each_line_once(rows: int, gap: float, between: bool) -> None:
    """Each line stands two or three times in the file; it is said when it first stands there."""
    notes = Notes()
    found = without_repeats(rolling(rows, gap, between=between), notes)
    assert [(line.start, line.text) for line in found] == [(2.0 * n, said) for n, said in enumerate(SAID)]
    assert notes.counts["repeated"] == len(SAID) * (1 + between) - 1


def test_captions_of_a_machine_as_they_are_published(tmp_path: Path) -> None:
    """With an empty first row, times of words, and cues of ten milliseconds between the others."""
    path = tmp_path / "a.vtt"
    path.write_text(
        "WEBVTT\nKind: captions\n\n"
        "00:00:00.000 --> 00:00:02.500 align:start position:0%\n \nwelcome<00:00:00.300><c> to</c>\n\n"
        "00:00:02.500 --> 00:00:02.510 align:start position:0%\nwelcome to\n \n\n"
        "00:00:02.510 --> 00:00:05.010 align:start position:0%\n"
        "welcome to\nthe<00:00:02.810><c> garden</c>\n\n"
        "00:00:05.010 --> 00:00:05.020 align:start position:0%\nthe garden\n \n\n"
    )
    assert [(start, said) for start, _, said in lines_of(path)] == [(0.0, "welcome to"), (2.51, "the garden")]


def test_captions_that_grow_are_one() -> None:
    """Word by word, and letter by letter, below a line that stays."""
    growing = [
        "so",
        "so today",
        "so today we",
        "so today we dig\nfir",
        "so today we dig\nfirst",
        "so today we dig\nfirst holes",
    ]
    found = without_repeats([Line(0.5 * n, 0.5 * n + 0.5, text) for n, text in enumerate(growing)], Notes())
    assert found == [Line(0.0, 2.0, "so today we dig"), Line(1.5, 3.0, "first holes")]


@pytest.mark.parametrize(
    "said",
    [
        [(0.0, 1.0, "No!"), (1.5, 2.0, "No!")],  # said twice
        [(0.0, 1.0, "Who is there?"), (1.0, 2.0, "It is me.")],
        [(0.0, 1.0, "No"), (1.0, 2.0, "Nobody")],
        [(0.0, 1.0, "Come\nhere"), (3.0, 4.0, "here\nnow")],  # after a pause
        [(0.0, 1.0, "Come in"), (1.2, 2.0, "Come in, all of you")],
    ],
)
def test_what_people_say_again_stays(said: list[tuple[float, float, str]]) -> None:
    lines = [Line(*one) for one in said]
    assert without_repeats(lines, Notes()) == lines


@given(
    st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(1, 20), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
        ),
        max_size=12,
    )
)
def test_no_row_is_lost_where_repeats_go(cues: list[tuple[int, int, list[str]]]) -> None:
    """Every row is in the transcript from when it is first shown at the latest; nothing is invented."""
    lines = sorted(Line(start / 10, (start + length) / 10, "\n".join(rows)) for start, length, rows in cues)
    found = without_repeats(lines, Notes())
    for line in lines:
        for row in line.text.split("\n"):
            assert any(row in other.text.split("\n") and other.start <= line.start for other in found)
    rows = {row for line in lines for row in line.text.split("\n")}
    assert {row for line in found for row in line.text.split("\n")} == rows
    assert sum(len(line.text) for line in found) <= sum(len(line.text) for line in lines)


# ---- signs and songs of SubStation Alpha -------------------------------------------------------------------

EVENT = "Dialogue: {},0:00:{:05.2f},0:00:{:05.2f},Default,,0,0,0,{},{}\n"


def test_a_sign_that_moves_is_said_once(tmp_path: Path) -> None:
    """Also beside another that moves at the same time, and in three layers."""
    path = tmp_path / "sign.ass"
    path.write_text(
        "".join(
            EVENT.format(layer, 1 + n / 50, 1.02 + n / 50, "", f"{{\\pos({n},50)}}{sign}")
            for n in range(40)
            for sign in ("NO ENTRY", "EXIT")
            for layer in range(3)
        )
    )
    assert sorted(lines_of(path)) == [(1.0, 1.8, "EXIT"), (1.0, 1.8, "NO ENTRY")]
    notices = {notice.kind: notice.count for notice in read_subtitles(path).notices}
    assert notices == {"repeated": 238}


SYLLABLES = ("ka", "ra", "o", "ke ", "pen", "guin")


def karaoke(*, effect: str, comment: bool, whole: bool) -> str:
    """A sung line as typesetters write it: syllables in two layers and three phases, one after another or all
    of them as long as the line.
    """
    events = (
        "Comment: 0,0:00:01.00,0:00:07.00,Default,,0,0,0,karaoke,{\\k20}karaoke {\\k20}penguin\n" * comment
    )
    for n, syllable in enumerate(SYLLABLES):
        phases = ((0.9 + n / 10, 1 + n), (1 + n, 2 + n), (2 + n, 7.3)) if whole else ((1 + n, 2 + n),)
        for start, end in phases:
            for layer in range(2):
                text = f"{{\\an5\\pos({20 * n},100)\\t(0,100,\\fscx120)}}{syllable}"
                events += EVENT.format(layer, start, end, effect, text)
    return events + EVENT.format(0, 8, 10, "", "{\\k20}full {\\k20}line {\\k20}pelican")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("comment", [True, False])
def test_a_song_by_syllables_is_a_line(tmp_path: Path, comment: bool, whole: bool) -> None:
    """As its comment has it, else put together; a line with times of its syllables is one anyway."""
    path = tmp_path / "kara.ass"
    path.write_text(karaoke(effect="fx", comment=comment, whole=whole))
    start, end = (1.0, 7.0) if comment or not whole else (0.9, 7.3)
    assert lines_of(path) == [(start, end, "karaoke penguin"), (8.0, 10.0, "full line pelican")]
    notices = {notice.kind: notice.count for notice in read_subtitles(path).notices}
    assert notices == {"syllables": 36 if whole else 12}


def test_a_sign_by_letters_is_a_word(tmp_path: Path) -> None:
    """Without the name of an effect: pieces that have a place and follow one another."""
    path = tmp_path / "sign.ass"
    path.write_text(
        "".join(EVENT.format(0, 2, 4, "", f"{{\\pos({n},5)}}{letter}") for n, letter in enumerate("PELICAN"))
    )
    assert lines_of(path) == [(2.0, 4.0, "PELICAN")]
    path.write_text(
        "".join(EVENT.format(0, n, n + 1, "", word) for n, word in enumerate(["Yes", "No", "Yes", "Oh"]))
    )
    assert [said for _, _, said in lines_of(path)] == ["Yes", "No", "Yes", "Oh"]


def test_songs_and_signs_of_a_track(films: Any, tmp_path: Path) -> None:
    """The same of a track inside the video, whose drawings are no letters either."""
    film, _ = films.make("karaoke_mkv", suffix="mkv", seconds=4)
    path = tmp_path / "kara.mkv"
    with av.open(str(film)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        track = target.add_stream("ass")
        track.codec_context.subtitle_header = b"[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
        events = [(500 + 300 * n, "fx", f"{{\\pos({n},5)}}{text}") for n, text in enumerate(SYLLABLES)]
        for start, effect, text in [*events, (2500, "", "{\\p1}m 0 0 l 9 9"), (2800, "", "{\\p0}said")]:
            line = f"0,0,Default,,0,0,0,{effect},{text}".encode()
            packet = track.codec_context.encode_subtitle(SubtitleSet.create(line, 0, 300, start))
            packet.stream = track
            target.mux(packet)
        for picture in source.demux(source.streams.video[0]):
            if picture.size:
                picture.stream = stream
                target.mux(picture)
    found = embedded_subtitles(path)
    assert [cue.text for cue in found.cues] == ["karaoke penguin", "said"]
    assert [notice.kind for notice in found.notices] == ["syllables"]


# ---- instruments -------------------------------------------------------------------------------------------

NEW = (
    '<font size="28">FrameCnt: {n}, DiffTime: 33ms\n2024-05-21 14:23:{n:02}.033\n[iso: 100] '
    "[shutter: 1/1000.0] [fnum: 1.7] [ev: 0] [focal_len: 24.00] [latitude: 48.200000] [longitude: 16.370000] "
    "[rel_alt: 10.000 abs_alt: 200.000] [ct: 5500] </font>"
)
TELEMETRY = {
    "new": (NEW, Fix(1.0, "2024-05-21T14:23:01", 48.2, 16.37, 200.0)),
    "longtitude": (
        "[iso : 110] [shutter : 1/200.0] [fnum : 280] [latitude : -37.5] [longtitude : 144.9] "
        "[altitude: 12.0]",
        Fix(1.0, "", -37.5, 144.9, 12.0),
    ),
    "old": (
        "HOME(149.0251,-20.2532) 2017.08.05 14:11:{n:02}\nGPS(149.0251,-20.2533,16) BAROMETER:1.9\n"
        "ISO:100 Shutter:60 EV: Fnum:2.2",
        Fix(1.0, "2017-08-05T14:11:01", -20.2533, 149.0251, 16.0),
    ),
    "one line": (
        "F/2.8, SS 206.14, ISO 150, EV 0, GPS (-122.3699, 37.8166, 15), D 2.96m, H 1.00m, H.S 0.00m/s",
        Fix(1.0, "", 37.8166, -122.3699, 15.0),
    ),
    "no satellite": (
        NEW.replace("48.200000", "0.000000").replace("16.370000", "0.000000"), Fix(1.0, "2024-05-21T14:23:01")
    ),
    "dash camera": (
        "2021/05/05 10:10:{n:02} N48.2000 E16.3000 35 km/h", Fix(1.0, "2021-05-05T10:10:01", 48.2, 16.3)
    ),
    "east first, after the place of the start": (
        "HOME(W: 13.100000, S: 52.100000) 2023-05-01 14:30:{n:02}\nGPS(W: 13.405100, S: 52.520100, 15.20m)\n"
        "ISO:100 SHUTTER:240 EV:0.0 F-NUM:2.8",
        Fix(1.0, "2023-05-01T14:30:01", -52.5201, -13.4051),
    ),
    "universal time": (
        "2023-05-01T14:30:{n:02}.000Z Lat: 52.52 Lon: 13.4 Alt: 30.1 m",
        Fix(1.0, "2023-05-01T14:30:01+00:00", 52.52, 13.4, 30.1),
    ),
    "receiver": (
        "$GPRMC,1010{n:02}.000,A,4812.0000,N,01622.2000,E,12.3,0.0,050521,,,A*7C",
        Fix(1.0, "2021-05-05T10:10:01+00:00", 48.2, 16.37),
    ),
    "date": ("2021-05-05 10:10:{n:02}", Fix(1.0, "2021-05-05T10:10:01")),
    "clock": ("14:30:{n:02}", None),
    "watermark": ("Camera 2  05/01/2023 14:30:{n:02} PM", None),
    "unknown instruments": ("RC: 100% HD: 90% SPD: 3{n:02}km/h BAT: 14.8V", None),
    "goggles": ("signal:4 ch:8 flightTime:{n} uavBat:15.9V glsBat:15.6V delay:45ms bitrate:30.0Mbps", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", TELEMETRY)
def test_instruments_are_no_speech(tmp_path: Path, kind: str) -> None:
    """Else "shutter" finds every picture of a drone; time and place are kept."""
    template, fix = TELEMETRY[kind]
    path = tmp_path / "DJI_0001.SRT"
    path.write_text(
        "".join(
            f"{n}\n00:00:{n // 30:02},{n % 30 * 33:03} --> 00:00:{n // 30:02},{n % 30 * 33 + 33:03}\n"
            f"{template.replace('{n:02}', f'{n // 30:02}').replace('{n}', str(n))}\n\n"
            for n in range(1, 75)
        )
    )
    subtitles = read_subtitles(path)
    assert subtitles.cues == ()
    assert [(notice.kind, notice.count) for notice in subtitles.notices] == [("telemetry", 74)]
    assert [other.time for other in subtitles.fixes] == ([0.033, 1.0, 2.0] if fix else [])
    assert fix is None or fix in subtitles.fixes


def test_a_lesson_about_cameras_is_speech(tmp_path: Path) -> None:
    path = tmp_path / "lesson.srt"
    said = [
        "Set ISO 100, shutter 1/50, f/2.8",
        "and then go out",
        "On 2021-05-05 at 10:10:10 it rained",
        "1984",
        "10",
        "9",
        *(f"Take {n} steps and {n + 1} pictures" for n in range(9)),
    ]
    write_subtitles(path, [Cue(n, n + 0.9, text) for n, text in enumerate(said)])
    subtitles = read_subtitles(path)
    assert [cue.text for cue in subtitles.cues] == said
    assert subtitles.fixes == ()


def test_instruments_in_a_track(tmp_path: Path) -> None:
    path = tmp_path / "DJI_0002.mp4"
    said = NEW.format(n=1).replace('<font size="28">', "").replace(" </font>", "")
    cues = [Cue(n / 10, n / 10 + 0.1, said) for n in range(10)]
    write_video(path, [np.zeros((32, 32, 3), np.uint8)] * 10, rate=10, subtitles=cues)
    subtitles = embedded_subtitles(path)
    assert subtitles.cues == ()
    assert subtitles.fixes == (Fix(0.0, "2024-05-21T14:23:01", 48.2, 16.37, 200.0),)


# ---- the film ----------------------------------------------------------------------------------------------


def test_cues_after_the_end_of_a_film_are_named() -> None:
    cues = [
        Cue(1.0, 2.0, "in"),
        Cue(7.5, 9.0, "at the end"),
        Cue(8.0, 9.0, "after"),
        Cue(3600.0, 3601.0, "long after"),
    ]
    inside, notices = within_film(cues, 8.0)
    assert [(cue.start, cue.end, cue.text) for cue in inside] == [(1.0, 2.0, "in"), (7.5, 8.0, "at the end")]
    assert [(notice.kind, notice.count) for notice in notices] == [("past the end", 2)]


@pytest.mark.parametrize("hour", [1, 10])
def test_a_programme_that_begins_at_an_hour(hour: int) -> None:
    """Moved where the film's timecode says so, else named; never stored after its end."""
    cues = [Cue(hour * 3600.0 + 10, hour * 3600.0 + 12, "condor")]
    inside, notices = within_film(cues, 60.0, begins_at=hour * 3600.0)
    assert inside == [Cue(10.0, 12.0, "condor")]
    assert [notice.kind for notice in notices] == ["shifted"]
    for begins_at in (None, 0.0, hour * 3600.0 + 20, 7200.0):
        inside, notices = within_film(cues, 60.0, begins_at=begins_at)
        assert ([notice.kind for notice in notices], inside) == (["past the end"], [])
    early = [Cue(1.0, 2.0, "in")]
    assert within_film(early, 60.0, begins_at=3600.0) == (early, ())


def test_no_film_has_more_cues_than_can_be_read() -> None:
    """40,000 in 12 seconds would each be encoded; joined, no word of theirs is lost while it can be read."""
    cues = [Cue(n * 12 / 40_000, n * 12 / 40_000 + 0.0003, f"w{n % 300}") for n in range(40_000)]
    inside, notices = within_film(cues, 12.0)
    assert len(inside) == 120
    assert {word for cue in inside for word in cue.text.split()} == {cue.text for cue in cues}
    assert [(notice.kind, notice.count) for notice in notices] == [("crowded", 40_000)]
    # Speech shown word by word stays as it is.
    words = [Cue(n / 10, n / 10 + 0.1, f"w{n}") for n in range(100)]
    assert within_film(words, 12.0) == (words, ())


def test_a_text_that_nobody_can_read_is_cut() -> None:
    inside, notices = within_film([Cue(1.0, 3.0, "a " * 1_000_000)], 12.0)
    assert [len(cue.text) for cue in inside] == [20_000]
    assert [notice.kind for notice in notices] == ["unreadable"]
    many = [Cue(1.0, 2.0, f"{n} " * 5000) for n in range(1000)]
    inside, notices = within_film(many, 12.0)
    assert max(len(cue.text) for cue in inside) <= 10_000
    assert {notice.kind: notice.count for notice in notices}["crowded"] == 1000
