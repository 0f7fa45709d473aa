"""Phrases of a text: itself in two ways, and pairs of content words, each kind with a third of the weight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.encoders.texts import FEW_TEXTS
from moviola.retrieval.phrases import FUNCTION_WORDS, phrases_of


def test_a_sentence_has_its_pairs_of_words() -> None:
    assert phrases_of("a spider wraps a fly") == pytest.approx({
        "a spider wraps a fly": 1 / 3, "footage of a spider wraps a fly": 1 / 3,
        "spider wraps": 1 / 6, "wraps fly": 1 / 6,
    })  # fmt: skip


def test_one_content_word_takes_the_share_of_pairs() -> None:
    assert phrases_of("a cat") == pytest.approx({"a cat": 1 / 3, "footage of a cat": 1 / 3, "cat": 1 / 3})


@pytest.mark.parametrize("text", ["winter", "to be with", "…", "1"])
def test_what_has_no_other_phrase_stands_for_itself(text: str) -> None:
    assert phrases_of(text) == pytest.approx({text: 2 / 3, f"footage of {text}": 1 / 3})


@given(st.text(max_size=200))
def test_weights_sum_to_one_and_a_query_stays_a_small_batch(text: str) -> None:
    phrases = phrases_of(text)
    assert next(iter(phrases)) == text
    assert sum(phrases.values()) == pytest.approx(1)
    assert min(phrases.values()) > 0
    assert len(phrases) <= FEW_TEXTS
    whole = (text, f"footage of {text}")
    assert not FUNCTION_WORDS & {phrase.lower() for phrase in phrases if phrase not in whole}
