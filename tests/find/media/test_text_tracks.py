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
        ["walrus", "Walross"],
    ),
    "without languages": ([track("Walross"), track("walrus")], ["Walross", "walrus"]),
    "foreign lines of a language": ([track("sign", "eng", FORCED), track("walrus", "eng")], ["walrus"]),
    "foreign lines alone": ([track("sign", "eng", FORCED), track("Walross", "ger")], ["Walross", "sign"]),
    "for the deaf": ([track("[hums] walrus", "eng", DEAF), track("walrus", "en")], ["walrus"]),
    "the same in two": ([track("walrus"), track("walrus")], ["walrus"]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_language_is_read_once(tmp_path: Path, name: str) -> None:
    """Only the first track was read, whatever its flags: words of the default one were not found."""
    tracks, words = CASES[name]
    film = make_film(tmp_path / "film.mkv", Pictures(3.0), *tracks)
    cues = embedded_subtitles(film).cues
    assert [cue.text for cue in cues] == [*words, *(f"{word} again" for word in words)]
    assert [cue.start for cue in cues] == sorted(cue.start for cue in cues)
