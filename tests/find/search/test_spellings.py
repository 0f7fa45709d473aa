"""A word is found however a text spells it: apostrophes, umlauts, hyphens, points, signs in numbers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviola.library import WantedCues
from moviola.search import Library
from moviola.words import asked_of, words_in
from moviola.words.spellings import forms_of

LINES = (
    "You don't know",
    "they dont care",
    "Captain O’Brien sails",
    "sergeant OBRIEN sleeps",
    "Wir fahren nach Köln",
    "Ein Zug aus Koeln kommt",
    "a pot boils over",
    "it costs 1,299.00 here",
    "it weighs 1299 there",
    "she'll come at five",
    "a shell on the beach",
    "c'est l'école buissonnière",
    "nous aimons une école",
    "Johns Hut",
    "John's hat",
    "the answer is 3.5",
    "in room 3 of 5",
    "send me an e\u2011mail",
    "my email is full",
    "the U.S.A. team",
    "the USA flag",
    "see fig. 3.b, i.e. below",
)


@pytest.fixture(scope="module")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library of one film by its subtitles alone, and of a copy under the name of a town."""
    videos = tmp_path_factory.mktemp("spellings") / "videos"
    videos.mkdir()
    shutil.copy(films / "film2.mp4", videos)
    cues = (
        f"{n + 1}\n00:00:{n // 2:02},{n % 2 * 500:03} --> 00:00:{n // 2:02},{n % 2 * 500 + 99:03}\n{line}\n"
        for n, line in enumerate(LINES)
    )
    (videos / "film2.srt").write_text("\n".join(cues), encoding="utf-8")
    shutil.copy(films / "film1.mp4", videos / "Köln O'Brien.mp4")
    shutil.copy(films / "film0.mp4", videos / "Paris.mp4")
    with Library(videos.parent / "library", encoder="none", sentence_encoder="none") as made:
        made.index(videos)
        yield made


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("dont", {0, 1}),
        ("don't", {0, 1}),
        ("don’t", {0, 1}),
        ("obrien", {2, 3}),
        ("OBrien", {2, 3}),
        ("O'Brien", {2, 3}),
        ("koeln", {4, 5}),
        ("Köln", {4, 5}),
        ("KÖLN", {4, 5}),
        ("poet", set()),  # no "pöt", though full text knows no marks
        ("1299", {7, 8}),
        ("1,299", {7, 8}),
        ("1.299,00", {7, 8}),
        ("1,299.50", set()),
        ("shell", {10}),  # not what she will
        ("she'll", {9}),
        ("école", {11, 12}),
        ("l'école", {11, 12}),
        ("john's", {13, 14}),
        ("3.5", {15}),  # one number, not two
        ("email", {17, 18}),
        ("USA", {19, 20}),
        ("ie", {21}),
        ("figb", set()),
    ],
)
def test_a_word_is_found_by_any_of_its_spellings(library: Library, query: str, lines: set[int]) -> None:
    read = asked_of(words_in(query), query, library.catalogue.languages())
    terms = frozenset().union(*(word.terms for word in read.words))
    found = {cue.number for cue in library.catalogue.match_cues(WantedCues(terms), 100)}
    assert found == lines
    moments = library.search(query, by="said")
    assert {moment.video_id for moment in moments} == ({"film2"} if lines else set())
    assert all(moment.snippet in {LINES[n] for n in lines} for moment in moments)


@pytest.mark.parametrize(("query", "line"), [("my e-mail", 18), ("the U.S.A. flag", 20)])
def test_parts_of_a_word_are_found_in_the_whole(library: Library, query: str, line: int) -> None:
    """Each part asks for the word without signs, too, so that a line that has it lacks none."""
    assert library.search(query, by="said")[0].snippet == LINES[line]


def test_the_word_as_it_is_written_is_the_reason(library: Library) -> None:
    (mail,) = library.search("email full e-mail", by="said", top_k=1)
    assert {*mail.why[0].words} == {"email", "full"}
    moments = library.search("koeln obrien", by="said")
    assert {word for moment in moments for word in moment.why[0].words} == {
        "O’Brien",
        "OBRIEN",
        "Köln",
        "Koeln",
    }


@pytest.mark.parametrize("query", ["koeln", "köln", "obrien", "O’Brien"])
def test_names_of_files_are_found_by_them_too(library: Library, query: str) -> None:
    assert [moment.video_id for moment in library.search(query, by="named")] == ["Köln O'Brien"]


def test_other_words_keep_one_spelling() -> None:
    for word in ("house", "shell", "blue", "2", "42", "über-", "mp4", "toe"):
        for one in words_in(word):
            assert forms_of(one)[0] == one
    assert [forms_of(word) for word in ("house", "shell", "42", "mp4")] == [
        ["house"],
        ["shell"],
        ["42"],
        ["mp4"],
    ]
