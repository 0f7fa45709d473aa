"""Words that are spelt like a misspelt one."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from moviola.files.spelling import alike_in_spelling, most_edits, one_edit_away

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
    near = [one for one in alike if 0 < by_definition(word, one) <= most_edits(word)]
    expected = sorted(near, key=lambda one: by_definition(word, one))
    assert alike_in_spelling(word, others, len(others)) == expected


def test_suggestions_for_a_misspelt_word() -> None:
    """The nearest first, of these the first that is known; short words have no misspellings."""
    known = ["amber", "umbrellas", "umbrella", "umbrela", "ombrella", "lighthouse"]
    assert alike_in_spelling("umbrela", known) == ["umbrella", "umbrellas", "ombrella"]
    assert alike_in_spelling("umbrela", known, 1) == ["umbrella"]
    assert alike_in_spelling("cat", ["car", "hat"]) == [] and alike_in_spelling("xylophone", known) == []
    assert alike_in_spelling("lihgthouse", known) == ["lighthouse"]
    # A text that is longer than words is none: a text of 10,000 letters took 140 s and 6 GB.
    assert one_edit_away("x" * 41) == [] and alike_in_spelling("x" * 41, ["x" * 40]) == []


@given(st.text("abc", max_size=6), st.text("abc", max_size=7))
def test_words_one_edit_away_are_those_of_the_definition(word: str, other: str) -> None:
    """None is left out, and none is further away; of short words there are none."""
    alike = other[:1] == word[:1] or other[-1:] == word[-1:]
    near = bool(other) and alike and most_edits(word) > 0 and by_definition(word, other) == 1
    assert (other in one_edit_away(word)) == near
