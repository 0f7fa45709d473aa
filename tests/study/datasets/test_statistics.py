"""Counts and spreads, on captions whose numbers are known, and on a real set."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from moviola.study.datasets.annotations import Collector
from moviola.study.datasets.english import verb_forms
from moviola.study.datasets.readers import read_charades
from moviola.study.datasets.statistics import statistics, words


def test_numbers_of_a_small_set() -> None:
    found = Collector("small")
    found.add_video("a", 20.0)
    found.add_video("b", 40.0)
    found.add_video("unused", 99.0)
    found.add("a", 0, 4, "A man walks.")
    found.add("a", 0, 4, "Somebody walked away!")
    found.add("b", 10, 20, "The dog's ball")
    assert statistics(found.made()).verbs is None
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'moviola[language]'")
    figures = statistics(found.made(), count_verbs=True)
    assert (figures.queries, figures.moments, figures.videos) == (3, 2, 2)
    assert (figures.vocabulary, figures.verbs) == (9, 2)
    assert figures.moment_hours == pytest.approx(14 / 3600)
    assert figures.video_hours == pytest.approx(60 / 3600)
    assert (figures.query_length.least, figures.query_length.most) == (3, 3)
    assert figures.moment_seconds.mean == pytest.approx(7)
    assert figures.ratio == pytest.approx((0.2 + 0.25) / 2)


def test_a_moment_of_several_captions_counts_once_in_its_spreads() -> None:
    found = Collector("captions")
    found.add_video("a", 20.0)
    for caption in ("A man walks.", "Somebody walks.", "He goes."):
        found.add("a", 0, 10, caption)
    found.add("a", 10, 12, "He stops.")
    figures = statistics(found.made())
    assert (figures.queries, figures.moments) == (4, 2)
    assert figures.moment_seconds.mean == pytest.approx(figures.moment_hours * 3600 / 2)
    assert figures.ratio == pytest.approx(0.3)


def test_an_empty_set_has_no_numbers() -> None:
    figures = statistics(Collector("empty").made())
    assert figures.moments == 0
    assert math.isnan(figures.moment_seconds.mean)


def test_verbs_are_what_stands_as_one() -> None:
    """Not what ends like one, nor what is one elsewhere."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'moviola[language]'")
    texts = ["She is putting the box down.", "He walks home.", "The kitchen has red walls and a ceiling."]
    assert verb_forms(texts) == {"is", "putting", "walks", "has"}


def test_words_are_lower_case_without_marks() -> None:
    assert words("Dr. House's cane, it's red!") == ["dr", "house's", "cane", "it's", "red"]


def test_charades_has_the_papers_size(annotations: Path) -> None:
    """Table 1: 16,128 queries, 1,303 words and, by a tagger, 469 verbs over both splits."""
    splits = [
        read_charades(annotations / "charades-sta" / f"charades_sta_{s}.txt") for s in ("train", "test")
    ]
    assert abs(sum(len(split) for split in splits) - 16_128) <= 4
    vocabulary = {word for split in splits for caption in split.captions for word in words(caption)}
    assert 1_200 < len(vocabulary) < 1_500
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'moviola[language]'")
    some = [caption for split in splits for caption in split.captions[::8]]
    assert 150 < len(verb_forms(some)) < 469
