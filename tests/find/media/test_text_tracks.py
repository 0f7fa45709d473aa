"""Which tracks of text in a file are read: those of all languages, each line once."""

from __future__ import annotations

from pathlib import Path

import pytest
from av.stream import Disposition

from made_films import Pictures, Words, make_film
from moviola.media import embedded_subtitles

NONE, DEFAULT, FORCED = Disposition(0), Disposition.default, Disposition.forced
DEAF = Disposition.hearing_impaired


def track(text: str, language: str = "", flags: Disposition = NONE, codec: str = "subrip") -> Words:
    tags = {"language": language} if language else {}
    return Words([(1.0, 2.0, text), (2.5, 2.9, f"{text} again")], codec, tags, flags)


CASES = {
    "the second is the default": (
        [track("Walross", "ger"), track("walrus", "eng", DEFAULT)],
        [("walrus", ""), ("Walross", "")],
    ),
    "without languages": ([track("Walross"), track("walrus")], [("Walross", ""), ("walrus", "")]),
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
