"""Counts and spreads, on captions whose numbers are known, and on a real set."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from moviola.datasets.annotations import Collector
from moviola.datasets.readers import read_charades
from moviola.datasets.statistics import statistics, verbs, words


def test_numbers_of_a_small_set() -> None:
    found = Collector("small")
    found.add_video("a", 20.0)
    found.add_video("b", 40.0)
    found.add_video("unused", 99.0)
    found.add("a", 0, 4, "A man walks.")
    found.add("a", 0, 4, "Somebody walked away!")
    found.add("b", 10, 20, "The dog's ball")
    figures = statistics(found.made())
    assert (figures.queries, figures.moments, figures.videos) == (3, 2, 2)
    assert (figures.vocabulary, figures.verbs) == (9, 2)
    assert figures.moment_hours == pytest.approx(14 / 3600)
    assert figures.video_hours == pytest.approx(60 / 3600)
    assert (figures.query_length.least, figures.query_length.most) == (3, 3)
    assert figures.moment_seconds.mean == pytest.approx(6)
    assert figures.ratio == pytest.approx((0.2 + 0.2 + 0.25) / 3)


def test_an_empty_set_has_no_numbers() -> None:
    figures = statistics(Collector("empty").made())
    assert figures.moments == 0
    assert math.isnan(figures.moment_seconds.mean)


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        (["walks", "walking", "tables"], {"walks", "walking"}),
        (["stopped", "stops"], {"stopped", "stops"}),
        (["closes", "closing"], {"closes", "closing"}),
        (["kitchen", "is", "king"], {"is"}),
    ],
)
def test_verb_forms(vocabulary: list[str], expected: set[str]) -> None:
    assert verbs(vocabulary) == expected


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
    assert 300 < len(verbs(vocabulary)) < 600
