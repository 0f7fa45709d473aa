"""Which tracks of text in a file are read: those of all languages, each line once."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from av.stream import Disposition
from hypothesis import given, settings
from hypothesis import strategies as st

from made_films import Boxed, Pictures, Words, make_film
from moviola.media import embedded_subtitles, probe, read_facts
from moviola.media.subtitles.boxed import BOXED_READERS
from moviola.media.subtitles.values import Notes

NONE, DEFAULT, FORCED = Disposition(0), Disposition.default, Disposition.forced
DEAF = Disposition.hearing_impaired


def track(
    text: str, language: str = "", flags: Disposition = NONE, codec: str = "subrip", title: str = ""
) -> Words:
    tags = {name: value for name, value in (("language", language), ("title", title)) if value}
    return Words([(1.0, 2.0, text), (2.5, 2.9, f"{text} again")], codec, tags, flags)


CASES = {
    "the second is the default": (
        [track("Walross", "ger"), track("walrus", "eng", DEFAULT)],
        [("walrus", ""), ("Walross", "")],
    ),
    "without languages": ([track("Walross"), track("walrus")], [("Walross", ""), ("walrus", "2")]),
    "two of a language": (
        [track("seal", "eng"), track("walrus", "eng", DEFAULT)],
        [("walrus", ""), ("seal", "2")],
    ),
    "commentary": (
        [
            track("how it was made", "eng", title="Director's Commentary"),
            track("walrus", "en", title="English"),
        ],
        [("walrus", ""), ("how it was made", "commentary")],
    ),
    "a title alone": ([track("walrus", "eng", title="Commentary")], [("walrus", "")]),
    "foreign lines of a language": (
        [track("sign", "eng", FORCED), track("walrus", "eng")],
        [("walrus", ""), ("sign", "forced")],
    ),
    "foreign lines alone": (
        [track("sign", "eng", FORCED), track("Walross", "ger")],
        [("Walross", ""), ("sign", "forced")],
    ),
    "the same foreign lines": ([track("walrus", "eng", FORCED), track("walrus", "eng")], [("walrus", "")]),
    "sounds for the deaf": (
        [track("[hums] walrus", "eng", DEAF), track("walrus", "en")],
        [("walrus", ""), ("[hums]", "hearing impaired")],
    ),
    "speakers for the deaf": (
        [track("ÉVA: walrus", "eng", DEAF), track("- walrus", "en")],
        [("- walrus", "")],
    ),
    "other words for the deaf": (
        [track("[hums] seal", "eng", DEAF), track("walrus", "en")],
        [("walrus", ""), ("[hums] seal", "hearing impaired")],
    ),
    "no speaker": (
        [track("Note: walrus", "eng", DEAF), track("walrus", "en")],
        [("walrus", ""), ("Note: walrus", "hearing impaired")],
    ),
    "sounds in both": (
        [track("(hums) walrus", "eng", DEAF), track("walrus [hums]", "en")],
        [("walrus [hums]", "")],
    ),
    "sounds alone": (
        [track("(hums)", "eng", DEAF), track("(hums)", "en")],
        [("(hums)", "")],
    ),
    "the same in two": ([track("walrus"), track("walrus")], [("walrus", "")]),
}


@pytest.mark.parametrize("name", CASES)
def test_all_tracks_are_read_and_each_text_once(tmp_path: Path, name: str) -> None:
    """Only the first track was read, whatever its flags: words of the default one were not found. Lines for
    all and for the deaf alike were there twice, and are there once, without loss of the sounds.
    """
    tracks, expected = CASES[name]
    film = make_film(tmp_path / "film.mkv", Pictures(3.0), *tracks)
    cues = embedded_subtitles(film).cues
    first, second = ([cue for cue in cues if cue.start == start] for start in (1.0, 2.5))
    assert [(cue.text, cue.form) for cue in first] == expected
    sounds_alone = {"[hums]"}
    again = [text if text in sounds_alone else f"{text} again" for text, _ in expected]
    assert [cue.text for cue in second] == again
    assert [*cues] == first + second


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def cue(text: str) -> bytes:
    return box(b"vttc", box(b"iden", b"7") + box(b"sttg", b"line:80%") + box(b"payl", text.encode()))


def document(*lines: tuple[str, str, str]) -> bytes:
    shown = "".join(f'<p begin="{a}" end="{b}">{text}</p>' for a, b, text in lines)
    return f'<tt xmlns="http://www.w3.org/ns/ttml"><body><div>{shown}</div></body></tt>'.encode()


EMPTY = box(b"vtte", b"")
BOXED = {
    "webvtt": Boxed(
        [
            (0.0, 0.5, EMPTY),
            (0.5, 1.0, cue("<b>walrus</b> &amp; seal")),
            (1.0, 1.5, cue("<b>walrus</b> &amp; seal") + cue("an\nauk")),
            (1.5, 2.9, box(b"vtta", b"NOTE") + EMPTY + box(b"vttc", b"")),
        ],
        b"wvtt",
    ),
    "ttml": Boxed(
        [
            (0.0, 1.0, document(("00:00:00.500", "1.5s", "walrus &amp; seal"), ("5s", "6s", "later"))),
            (1.0, 2.9, document(("0.5s", "1.5s", "walrus &amp; seal"), ("1s", "1.5s", "an<br/>auk"))),
        ]
    ),
}


@pytest.mark.parametrize("codec", BOXED)
@pytest.mark.parametrize("options", [{}, {"movflags": "frag_keyframe+empty_moov"}])
def test_text_that_libav_does_not_decode(tmp_path: Path, codec: str, options: dict[str, str]) -> None:
    """Files for streaming have Timed Text or WebVTT in boxes, which was data, or text that is not read. A
    text that several samples show is one cue; times of a document are those of the track, cut to its sample.
    """
    film = make_film(tmp_path / "film.mp4", Pictures(3.0), BOXED[codec], **options)
    found = embedded_subtitles(film)
    assert [(one.start, one.end, one.text) for one in found.cues] == [
        (0.5, 1.5, "walrus & seal"), (1.0, 1.5, "an\nauk"),
    ]  # fmt: skip
    (held,) = [one for one in read_facts(film).holdings if one.held_as == "subtitles"]
    assert (held.stream, held.about) == (1, f"subtitle, {codec}")
    (stream,) = probe(film).subtitle_streams
    assert stream.text and stream.codec == codec
    losses = [notice for notice in found.notices if notice.loss]
    assert [(one.kind, one.example) for one in losses] == ([("damaged", "later")] if codec == "ttml" else [])


def test_documents_that_count_from_their_samples(tmp_path: Path) -> None:
    """Some programs write each as a file of its own: its times lie before its sample."""
    text = Boxed([(0.0, 1.0, document(("0s", "1s", "walrus"))), (2.0, 2.9, document(("0s", "0.8s", "auk")))])
    film = make_film(tmp_path / "film.mp4", Pictures(3.0), text)
    assert [(one.start, one.end, one.text) for one in embedded_subtitles(film).cues] == [
        (0.0, 1.0, "walrus"), (2.0, 2.8, "auk"),
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["ttml", "webvtt"]), st.binary(max_size=80), st.integers(0, 200), st.integers(0, 300))
def test_damaged_samples_never_break_the_rest(codec: str, noise: bytes, at: int, gone: int) -> None:
    whole = b"".join(sample for _, _, sample in BOXED[codec].samples[1:2])
    lines = list(BOXED_READERS[codec]((0.0, 9.0, whole[:at] + noise + whole[at + gone :]), Notes()))
    assert all(0 <= line.start < line.end <= 9 and line.text for line in lines)
