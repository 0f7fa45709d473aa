"""Which texts are English, by words alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from moviola.retrieval import unrelated_queries
from moviola.words.english import STEMS, WORDS, english_like, is_english

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
    "text", ["", "12345", "???", "WINTER", "don't look up", "the film about Amélie", "a TV", "a naïve café"]
)
def test_what_says_nothing_against_english(text: str) -> None:
    """Numbers, capitals, apostrophes, and one name beside a word that only English has."""
    assert is_english(text)


def test_words_to_offer_are_words_once() -> None:
    """Of letters alone, and none that nobody wants to be offered."""
    words = WORDS.read_text(encoding="ascii").split("\n")
    assert words.pop() == "" and len(words) == len(set(words)) and all(map(str.isalpha, words))
    assert {"bicycle", "giraffe", "skateboard", "umbrella"} <= set(words)
    assert not {"bitch", "fuck", "nigger", "shit", "whore"} & set(words)


MISSPELT = """
bycicle:bicycle elefant:elephant umbrela:umbrella lighthous:lighthouse giraf:giraffe pinaple:pineapple
snowbord:snowboard saxofone:saxophone motorcicle:motorcycle chruch:church kichen:kitchen runing:running
wheather:weather tigger:tiger bycicles:bicycles gitar:guitar caar:car tabels:tables wasser: katze: fahrrad:
botella: regenschirm: zoltan: casa: perro: qwrtzkp:
"""


@pytest.mark.parametrize("pair", MISSPELT.split())
def test_a_misspelt_word_is_offered_right_or_not_at_all(pair: str) -> None:
    """By sound, too: "bycicle" is two letters away. Words of other languages, and names, are no English words
    of which a letter or two are wrong.
    """
    misspelt, meant = pair.split(":")
    assert english_like(misspelt)[:1] == [meant][: len(meant)]
