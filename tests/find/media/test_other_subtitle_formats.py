"""Further formats of subtitle files: Timed Text, SAMI, MicroDVD, MPL2, SubViewer, TMPlayer, LRC."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import UnreadableMedia
from moviola.media import SUBTITLE_SUFFIXES, read_subtitles, within_film
from moviola.media.subtitles.reading import FORMATS, _parsed
from moviola.media.subtitles.repeats import without_repeats

TTML = """<?xml version="1.0" encoding="utf-16"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25"
    ttp:tickRate="10000000" xml:lang="en">
 <head><metadata><ttm:title xmlns:ttm="x">not said</ttm:title></metadata></head>
 <body><div begin="1s">
  <p begin="00:00:00.000" end="00:00:01.500">first <i>line</i><br/>second&nbsp;line &amp; more</p>
  <p begin="00:00:02:05" dur="1.5s"><metadata>not said</metadata>pictures</p>
  <p begin="40000000t" end="50000000t">ticks</p>
  <p><span begin="6s" end="7s">word</span> <span begin="7s" end="8s">by word</span></p>
  <p begin="9s">until the next</p>
  <p begin="3m" end="2m">backwards</p>
  <p begin="soon">never</p>
  <p begin="10s" end="11s">last</p>
 </div></body>
</tt>"""
SAMI = """<SAMI><HEAD><STYLE><!-- P {font:x} --></STYLE></HEAD><BODY>
<SYNC Start=1000><P Class=ENCC>Hello<br>there &amp; you&nbsp;
<SYNC Start=1000><P Class=KRCC>안녕
<SYNC Start=2500><P Class=ENCC>&nbsp;
<SYNC Start="4000"><P Class=ENCC><FONT color=red>Good</FONT> bye
<SYNC Start=6000><P Class=ENCC>&nbsp<P Class=KRCC>&nbsp</BODY></SAMI>"""
SUBVIEWER = """[INFORMATION]
[TITLE]x
[END INFORMATION]
[SUBTITLE]
00:00:01.00,00:00:02.50
first[br]line

00:00:04.00,00:00:05.00
second
"""
LRC = """[ti:title]
[offset:+500]
[00:01.50][00:11.50]chorus
[00:03.50]<00:03.50>word <00:04.00>by word
[00:05.50]
[00:30.00]last
"""
READ = {
    "a.ttml": (
        TTML,
        [
            (1.0, 2.5, "first line\nsecond line & more"), (3.2, 4.7, "pictures"), (5.0, 6.0, "ticks"),
            (7.0, 8.0, "word"), (8.0, 9.0, "by word"), (10.0, 11.0, "until the next"), (11.0, 12.0, "last"),
        ],
    ),
    "a.dfxp": ('<tt><body><p begin="1s" end="2s">one</p></body></tt>', [(1.0, 2.0, "one")]),
    "a.smi": (SAMI, [(1.0, 2.5, "Hello\nthere & you"), (1.0, 6.0, "안녕"), (4.0, 6.0, "Good bye")]),
    "viewer.sub": (SUBVIEWER, [(1.0, 2.5, "first\nline"), (4.0, 5.0, "second")]),
    "a.sbv": ("0:00:01.000,0:00:02.500\nfirst\nline\n\n", [(1.0, 2.5, "first\nline")]),
    "dvd.sub": (
        "{1}{1}25\n{25}{50}{y:i}first|/line\n{100}{}second\n{150}{125}back\n{150}{200}third\n",
        [(1.0, 2.0, "first\nline"), (4.0, 6.0, "second"), (6.0, 8.0, "third")],
    ),
    "mpl.sub": ("[10][25]/first|line\n[40][50]second\n", [(1.0, 2.5, "first\nline"), (4.0, 5.0, "second")]),
    "tmp.sub": (
        "00:00:01:first|line\n00:00:04:second\n00:00:05:\n", [(1.0, 4.0, "first\nline"), (4.0, 5.0, "second")]
    ),
    "a.lrc": (
        LRC,
        [(1.0, 3.0, "chorus"), (3.0, 5.0, "word by word"), (11.0, 21.0, "chorus"), (29.5, 39.5, "last")],
    ),
    "a.ssa": (
        "[Events]\nFormat: Marked, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: Marked=0,0:00:01.00,0:00:02.00,Default,,0,0,0,,one, two\n",
        [(1.0, 2.0, "one, two")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_further_formats(tmp_path: Path, name: str) -> None:
    """By the suffix, and by the content under the name of SubRip."""
    text, expected = READ[name]
    for path in (tmp_path / name, tmp_path / "a.srt"):
        path.write_text(text, encoding="utf-8")
        cues = read_subtitles(path).cues
        assert [(pytest.approx(cue.start), pytest.approx(cue.end), cue.text) for cue in cues] == expected


def test_pictures_are_counted_by_the_rate_of_the_film(tmp_path: Path) -> None:
    path = tmp_path / "a.sub"
    path.write_text("{30}{60}one\n")
    assert [(cue.start, cue.end) for cue in read_subtitles(path, frame_rate=30.0).cues] == [(1.0, 2.0)]
    with pytest.raises(UnreadableMedia, match=r"counts pictures.*rate of its film is not known"):
        read_subtitles(path)
    path.write_bytes(b"\x00\x00\x01\xba" + bytes(100))
    with pytest.raises(UnreadableMedia, match="pictures of text"):
        read_subtitles(path)


@pytest.mark.parametrize("external", [False, True])
def test_timed_text_expands_no_entities(tmp_path: Path, external: bool) -> None:
    """A file of a kilobyte would become gigabytes, or the text of another file of this machine."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    value = f'SYSTEM "{secret.as_uri()}"' if external else '"' + "ha" * 10 + '"'
    entities = f"<!ENTITY a {value}>" + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    path = tmp_path / "a.ttml"
    path.write_text(f'<!DOCTYPE tt [{entities}]><tt><body><p begin="1s" end="2s">before &i;</p></body></tt>')
    with pytest.raises(UnreadableMedia, match=r"no subtitle in it can be read \(1 damaged\)"):
        read_subtitles(path)


def test_timed_text_in_which_paragraphs_follow_each_other(tmp_path: Path) -> None:
    """All began at zero: in a sequence times count from the end of what is before."""
    path = tmp_path / "a.ttml"
    path.write_text(
        '<tt><body begin="10s"><div timeContainer="seq"><p dur="1s">one</p><p begin="1s" dur="2s">two</p>'
        '</div><div><p begin="1s" end="2s">apart</p></div></body></tt>'
    )
    cues = read_subtitles(path).cues
    assert [(c.start, c.end, c.text) for c in cues] == [
        (10, 11, "one"), (11, 12, "apart"), (12, 14, "two")
    ]  # fmt: skip


def test_damaged_timed_text_is_read_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.ttml"
    path.write_text('<tt><body><p begin="1s" end="2s">one</p><p begin="3s" end="4s">two</div>')
    subtitles = read_subtitles(path)
    assert [cue.text for cue in subtitles.cues] == ["one"]
    assert [notice.kind for notice in subtitles.notices] == ["damaged"]


PIECES = [text for text, _ in READ.values()]
PARTS = st.sampled_from(
    sorted({part for text in PIECES for part in (*text.split("\n"), *text.split(), text)})
)
NOISE = st.text(st.sampled_from("0123456789:.,->[]{}<>/&;|\n \\\ufeff\x85-N"), max_size=12)


@given(
    st.lists(PARTS | NOISE, max_size=12),
    st.sampled_from(["", " ", "\n", "\n\n"]),
    st.sampled_from(SUBTITLE_SUFFIXES),
)
def test_any_text_gives_cues_of_a_film(parts: list[str], between: str, suffix: str) -> None:
    """Whatever stands in a file: times in order, text in every cue, a count of the rest, no crash."""
    lines, notes = _parsed(between.join(parts), suffix, 25.0)
    found = without_repeats(lines, notes)
    assert all(0 <= line.start < line.end < float("inf") for line in found)
    assert all(line.text and line.text == line.text.strip() and "\n\n" not in line.text for line in found)
    assert all(notice.count > 0 and len(notice.example) <= 60 for notice in notes.notices())
    assert [line.start for line in found] == sorted(line.start for line in found)


@given(st.binary(max_size=60), st.integers(0, 4000), st.sampled_from(sorted(READ)))
def test_damaged_bytes_leave_a_file_readable_or_refused(
    tmp_path_factory: pytest.TempPathFactory, bytes_: bytes, place: int, name: str
) -> None:
    data = bytearray(READ[name][0].encode())
    place %= len(data)
    data[place : place + len(bytes_)] = bytes_
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(data)
    try:
        subtitles = read_subtitles(path)
    except UnreadableMedia as error:
        assert name in str(error)
        return
    assert subtitles.cues
    inside, notices = within_film(subtitles.cues, 20.0)
    assert all(0 <= cue.start < cue.end <= 20.0 and cue.text for cue in inside)
    dropped = sum(notice.count for notice in notices if notice.kind == "past the end")
    joined = any(notice.kind == "crowded" for notice in notices)
    assert joined or dropped + len(inside) == len(subtitles.cues)


def test_every_suffix_has_a_reader() -> None:
    assert set(FORMATS) == {Path(name).suffix for name in READ} | {".srt", ".vtt", ".ass", ".sami"}
