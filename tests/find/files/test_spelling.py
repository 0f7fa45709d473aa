"""Words that are spelt like a misspelt one."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from moviola.files.spelling import alike_in_spelling, most_edits, nearest_alone, sounds_as

WORDS = st.text("abc", max_size=8)


def by_definition(one: str, other: str) -> int:
    """Optimal string alignment, by its recursion."""

    @cache
    def apart(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        ways = [apart(i - 1, j) + 1, apart(i, j - 1) + 1, apart(i - 1, j - 1) + (one[i - 1] != other[j - 1])]
        if i > 1 and j > 1 and (one[i - 1], one[i - 2]) == (other[j - 2], other[j - 1]):
            ways.append(apart(i - 2, j - 2) + 1)
        return min(ways)

    return apart(len(one), len(other))


@given(WORDS, st.lists(WORDS, max_size=8))
def test_edits_are_those_of_the_definition(word: str, others: list[str]) -> None:
    """Of which words are offered, and in which order."""
    alike = [one for one in others if one[:1] == word[:1] or one[-1:] == word[-1:]]
    heard = {one: sounds_as(one) == sounds_as(word) for one in alike}
    limit = most_edits(word)
    near = [one for one in alike if limit and 0 < by_definition(word, one) <= limit + heard[one]]
    order = [(not heard[one], by_definition(word, one)) for one in near]
    found = alike_in_spelling(word, others, len(others))
    assert sorted(found) == sorted(near)
    assert [(not heard[one], by_definition(word, one)) for one in found] == sorted(order)


def test_suggestions_for_a_misspelt_word() -> None:
    """The nearest first, of these the first that is known; short words have no misspellings."""
    known = ["amber", "umbrellas", "umbrella", "umbrela", "ombrella", "lighthouse"]
    assert alike_in_spelling("umbrela", known) == ["umbrella", "umbrellas", "ombrella"]
    assert alike_in_spelling("umbrela", known, 1) == ["umbrella"]
    assert alike_in_spelling("cat", ["car", "hat"]) == [] and alike_in_spelling("xylophone", known) == []
    assert alike_in_spelling("lihgthouse", known) == ["lighthouse"]
    # A text that is longer than words is none: a text of 10,000 letters took 140 s and 6 GB.
    assert alike_in_spelling("x" * 41, ["x" * 40]) == []
    # By sound before by edits; of words that are as near, those with a letter more.
    assert alike_in_spelling("wheather", ["heather", "weather"]) == ["weather", "heather"]
    assert alike_in_spelling("telefon", ["telethon", "telephone"]) == ["telephone", "telethon"]
    assert alike_in_spelling("snowbord", ["snowbird", "snowboard"]) == ["snowboard", "snowbird"]


def test_words_as_likely_of_another_language_are_not_taken_for_misspelt() -> None:
    """A short word of which a letter would be another; neighbours that change places are a slip."""
    assert nearest_alone("hund", ["hand", "hunt"]) == []
    assert nearest_alone("chruch", ["church", "crutch"]) == ["church"]
    assert nearest_alone("tabel", ["table", "label"]) == ["table"] and nearest_alone("tabel", []) == []
