"""Times of cues: read whole from the first line of a cue, never out of what is said."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.media import Notice, Subtitles, read_subtitles
from moviola.media.subtitles.blocks import read_subrip, read_webvtt
from moviola.media.subtitles.values import Notes
from moviola.types import Cue


def read(path: Path, text: str) -> Subtitles:
    path.write_text(text, encoding="utf-8")
    return read_subtitles(path)


def said(subtitles: Subtitles) -> list[tuple[float, float, str]]:
    return [(cue.start, cue.end, cue.text) for cue in subtitles.cues]


def test_two_stamps_in_a_line_are_no_line_of_times(tmp_path: Path) -> None:
    """A parser that takes any line with two stamps for a time line loses every line of three words of
    automatic captions, and lines in which two times are said.
    """
    captions = (
        "WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n"
        "singing<00:00:02.000><c> purple</c><00:00:03.000><c> penguins</c>\n\n"
        "00:00:05.000 --> 00:00:08.000\nfrom 00:01:00.000 to 00:02:00.000 nobody spoke\n"
    )
    expected = [
        (1.0, 4.0, "singing purple penguins"),
        (5.0, 8.0, "from 00:01:00.000 to 00:02:00.000 nobody spoke"),
    ]
    assert said(read(tmp_path / "a.vtt", captions)) == expected
    subrip = captions.removeprefix("WEBVTT\n\n").replace(".000 --> ", ",000 --> ")
    assert said(read(tmp_path / "a.srt", subrip)) == expected


WORDS = st.lists(
    st.sampled_from(
        [
            "00:01:00.000", "00:00:02,500", "to", "a < b", "c > d", "-", "->", "one", "1:30", "&", "{", "}",
            "x<y", "[", "NOTE", "42", "<3", "WEBVTT", "#7", "…", "\N{EIGHTH NOTE}",
        ]
    ),
    min_size=1,
    max_size=5,
).map(" ".join).filter(lambda text: not text.isdigit())  # fmt: skip
ROWS = st.lists(WORDS, min_size=1, max_size=3)


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_whatever_is_said_stays_as_it_is(cues: list[list[str]], webvtt: bool) -> None:
    """Nothing of a text is lost, taken for times, for a number, a tag or a command, or for another cue."""
    stamp = "00:00:{:02}.000 --> 00:00:{:02}.500"
    blocks = [stamp.format(n, n) + "\n" + "\n".join(rows) for n, rows in enumerate(cues)]
    if webvtt:
        text = "WEBVTT\n\n" + "\n\n".join(blocks) + "\n"
    else:
        text = "\n".join(f"{n}\n{block}\n" for n, block in enumerate(blocks, 1)).replace(".", ",", 0)
    notes = Notes()
    lines = list((read_webvtt if webvtt else read_subrip)(text, notes))
    assert [(line.start, line.end, line.text) for line in lines] == [
        (n, n + 0.5, "\n".join(rows)) for n, rows in enumerate(cues)
    ]
    assert not notes.notices()


@pytest.mark.parametrize(
    ("start", "end", "times"),
    [
        ("0:0:5,1", "0:0:7,25", (5.1, 7.25)),  # a decimal fraction, not milliseconds
        ("00:00:09", "00:00:11", (9.0, 11.0)),
        ("00:00:01:500", "00:00:02:750", (1.5, 2.75)),
        ("00:00:01;500", "00:00:02;750", (1.5, 2.75)),
        ("00\uff1a00\uff1a01\uff0c500", "00\uff1a00\uff1a02\uff0c750", (1.5, 2.75)),
        ("00: 00: 01, 500", "00: 00: 02, 000", (1.5, 2.0)),
        ("120:00:00,000", "120:00:01,000", (432000.0, 432001.0)),  # never 20 hours
        ("1000:00:00.000", "1000:00:01.000", (3_600_000.0, 3_600_001.0)),
        ("90:15.000", "90:16.000", (5415.0, 5416.0)),
        ("00:00:65,000", "00:00:66,000", None),
        ("00:61:00,000", "00:62:00,000", None),
        ("00:00:01:12", "00:00:02:12", None),  # pictures, of an unknown rate
        ("00:00:-1,000", "00:00:02,000", None),
        ("00:-1:58,000", "00:00:02,000", None),
        ("99999999:00:00,000", "99999999:00:01,000", None),
        ("00:00:xx,000", "00:00:02,000", None),
        ("00:00:02,000", "00:00:02,000", None),
        ("00:00:02,000", "never", None),
        ("-00:00:04,000", "-00:00:02,000", None),
    ],
)
@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_stamp_is_read_whole_or_refused(
    tmp_path: Path, suffix: str, start: str, end: str, times: tuple[float, float] | None
) -> None:
    """A refused one takes its text with it, is counted, and is not shown as part of the cue before."""
    head = "WEBVTT\n\n" if suffix == ".vtt" else ""
    first = "1\n00:00:00.500 --> 00:00:00.900\nfirst\n\n"
    subtitles = read(tmp_path / f"a{suffix}", f"{head}{first}2\n{start} --> {end}\nsecond\n")
    second = [(*times, "second")] if times else []
    assert said(subtitles) == [(0.5, 0.9, "first"), *second]
    refused = () if times else (Notice("damaged", 1, f"{start} --> {end}"),)
    assert subtitles.notices == refused


@pytest.mark.parametrize("minus", ["-", "\N{MINUS SIGN}"])
@pytest.mark.parametrize("suffix", [".srt", ".vtt", ".ass", ".sbv"])
def test_below_zero_a_cue_begins_with_the_film(tmp_path: Path, suffix: str, minus: str) -> None:
    """A dropped minus sign would show it two seconds late."""
    text = {
        ".ass": f"Dialogue: 0,{minus}0:00:02.00,0:00:04.00,Default,,0,0,0,,owl\n",
        ".sbv": f"{minus}0:00:02.000,0:00:04.000\nowl\n",
    }.get(suffix, f"1\n{minus}00:00:02.000 --> 00:00:04.000\nowl\n")
    subtitles = read(tmp_path / f"a{suffix}", text)
    assert said(subtitles) == [(0.0, 4.0, "owl")]
    assert [notice.kind for notice in subtitles.notices] == ["before zero"]


def test_comments_of_webvtt_are_no_cues(tmp_path: Path) -> None:
    """Neither with an arrow in them, nor with a whole cue that was commented out."""
    text = (
        "WEBVTT - title\n\nSTYLE\n::cue {color:red}\n\nNOTE a comment --> not a cue\n\nREGION\nid:fred\n\n"
        "NOTE\n00:07.000 --> 00:09.000\ncommented out\n\n"
        "id-1\n00:01.000 --> 00:03.000 line:0\n<v Roger Bingham>voice vireo</v> and <c.yellow>class</c>\n\n"
        "NOTE the end\n"
    )
    subtitles = read(tmp_path / "a.vtt", text)
    assert said(subtitles) == [(1.0, 3.0, "voice vireo and class")]
    assert subtitles.notices == ()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            '<font color="#ffff00" face="Arial"><b>bold <i>finch</i></b></font> &amp; co &lt;3',
            "bold finch & co <3",
        ),
        ("a < b and c > d swallow", "a < b and c > d swallow"),
        ("i<j and k>l", "i<j and k>l"),
        ("{\\an8}top tit", "top tit"),
        ("{laughs} wren", "{laughs} wren"),
        ("fish&section AT&T &copy;", "fish&section AT&T ©"),
        ("x <y> z", "x <y> z"),
        ("one<br/>two", "one\ntwo"),
        ("<c.loud>a</c> <ruby>kanji<rt>reading</rt></ruby>", "a kanji reading"),
        ("<lang en-GB>colour</lang> <v.loud Mary>said", "colour said"),
    ],
)
@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_tags_go_and_signs_stay(tmp_path: Path, suffix: str, written: str, shown: str) -> None:
    text = f"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n{written}\n"
    assert said(read(tmp_path / f"a{suffix}", text)) == [(1.0, 2.0, shown)]


@pytest.mark.parametrize(
    "arrow", ["->", "-- >", "- ->", "- - >", "--&gt;", "=>", "\N{EN DASH}>", "\N{RIGHTWARDS ARROW}", "--->"]
)
def test_other_arrows(tmp_path: Path, arrow: str) -> None:
    said_times = f"00:00:05,000 {arrow} 00:00:06,000"
    text = (
        f"1\n00:00:01,000 {arrow} 00:00:02,000\nfinch\n\n2\n00:00:03,000 {arrow} 00:00:04,000\n{said_times}\n"
    )
    assert said(read(tmp_path / "a.srt", text)) == [
        (1.0, 2.0, "finch"),
        (3.0, 4.0, html.unescape(said_times)),
    ]


def test_an_empty_line_inside_a_text_of_subrip(tmp_path: Path) -> None:
    """Players show what follows; a parser of blocks loses it without a word."""
    text = "1\n00:00:01,000 --> 00:00:02,000\none\n\ntwo\n\n2\n\n00:00:03,000 --> 00:00:04,000 three\nfour\n"
    subtitles = read(tmp_path / "a.srt", text)
    assert said(subtitles) == [(1.0, 2.0, "one\ntwo"), (3.0, 4.0, "three\nfour")]
    assert subtitles.notices == ()


def test_lines_outside_of_cues_are_counted(tmp_path: Path) -> None:
    """In WebVTT an empty line ends a cue, and browsers do not show what follows."""
    webvtt = "WEBVTT\n\nlost\n\n00:01.000 --> 00:02.000\nshown\n\nalso\nlost\n\nNOTE not\n"
    subtitles = read(tmp_path / "a.vtt", webvtt)
    assert subtitles == Subtitles((Cue(1.0, 2.0, "shown"),), (Notice("stray", 2, "also lost"),))
    subtitles = read(tmp_path / "a.srt", "by nobody\n\n1\n00:00:01,000 --> 00:00:02,000\nshown\n")
    assert subtitles == Subtitles((Cue(1.0, 2.0, "shown"),), (Notice("stray", 1, "by nobody"),))
