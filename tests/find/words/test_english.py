"""Which texts are English, by words alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from moviola.retrieval import unrelated_queries
from moviola.words.english import STEMS, is_english

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_a_list_that_can_be_searched() -> None:
    """Stems are found by the line ends around them: none at the end of the file, or letters of other
    alphabets, would never be found.
    """
    text = STEMS.read_bytes()
    lines = text.decode("ascii").split("\n")
    assert lines[0] == lines[-1] == "" and lines[1:-1] == sorted(set(lines[1:-1]))


def test_english_is_known_by_its_words() -> None:
    """Queries of our own, and texts about everything, with inflected words: nearly all; a stem that is no
    word of WordNet ("danc") would lose hundreds.
    """
    with (BENCHMARKS / "footage" / "queries.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["query"] for row in csv.DictReader(file)] + list(unrelated_queries())
    assert [text for text in texts if not is_english(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "ein rotes Auto", "une bouteille d'eau", "un perro en la playa", "la mar", "es regnet", "un gato",
        "собака", "красная машина", "自転車", "一只大象", "قطة", "हाथी", "여름 바다", "ＣＡＴ", "niño",
        "samolot na niebie", "en hund i parken", "asdfgh", "asdfgh qwertz the",
    ],
)  # fmt: skip
def test_other_languages_are_not(text: str) -> None:
    """Symbols of WordNet ("la", "un", "es") are words of other languages, and letters of other scripts none
    of English; one English word among nonsense is not enough.
    """
    assert not is_english(text)


@pytest.mark.parametrize(
    "text", ["", "12345", "???", "WINTER", "don't look up", "the film about Amélie", "a TV"]
)
def test_what_says_nothing_against_english(text: str) -> None:
    """Numbers, capitals, apostrophes, and one name beside a word that only English has."""
    assert is_english(text)
