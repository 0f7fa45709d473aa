"""The rule of consensus and the figures of agreement, on cases whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.datasets.building.annotation_files import read_ratings, write_agreed
from moviola.datasets.building.consensus import (
    Rating,
    agree,
    agreement,
    consensus,
    exam_scores,
)
from moviola.errors import DataError, NotFound

levels = st.integers(0, 4)


@given(levels, levels)
def test_two_agree_within_one(a: int, b: int) -> None:
    agreed = agree([a, b])
    assert (agreed is not None) == (abs(a - b) <= 1)
    if agreed is not None:
        assert agreed == math.ceil((a + b) / 2)


@given(st.lists(levels, min_size=4, max_size=4).flatmap(st.permutations))
def test_of_four_one_extreme_on_each_side_is_dropped(given_levels: list[int]) -> None:
    low, high = sorted(given_levels)[1:3]
    assert agree(given_levels) == (math.ceil((low + high) / 2) if high - low <= 1 else None)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_other_numbers_of_ratings_are_refused(count: int) -> None:
    with pytest.raises(DataError, match="two or four"):
        agree([1] * count)


def rate(pair: str, *given_levels: int) -> list[Rating]:
    return [Rating(pair, f"w{n}", level) for n, level in enumerate(given_levels)]


def test_every_pair_has_one_outcome() -> None:
    outcome = consensus(
        [*rate("a", 2, 3), *rate("b", 0, 4), *rate("c", 0, 0, 2, 4), *rate("d", 1), *rate("e", 1, 1, 1)]
    )
    assert outcome.agreed == {"a": 3}
    assert (outcome.open, outcome.discarded, outcome.uncountable) == (("b", "d"), ("c",), ("e",))


def test_kappa_of_perfect_chance_and_no_agreement() -> None:
    perfect = agreement([*rate("a", 1, 1), *rate("b", 3, 3), *rate("c", 4, 4)])
    assert perfect.kappa == perfect.weighted_kappa == 1
    opposite = agreement([*rate("a", 0, 4), *rate("b", 0, 4)])
    assert opposite.kappa == -1
    assert opposite.low_high[0, 4] == 2
    assert math.isnan(agreement(rate("a", 2, 2)).kappa)
    half = agreement([*rate("a", 0, 0), *rate("b", 1, 1), *rate("c", 0, 1), *rate("d", 1, 0)])
    assert half.kappa == pytest.approx(0)


def test_exam_distances_from_the_median() -> None:
    scores = exam_scores([*rate("a", 1, 1, 3), *rate("b", 2, 2, 2)])
    assert list(scores.items()) == [("w0", 0.0), ("w1", 0.0), ("w2", 1.0)]


def test_ratings_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("pair_id,worker,relevance\n7,a,3\n7,b,4\n12,a,0\n12,b,0\n")
    write_agreed(consensus(read_ratings(path)).agreed, tmp_path / "agreed.csv")
    assert (tmp_path / "agreed.csv").read_text() == "pair_id,relevance\n7,4\n12,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the field 'pair_id' is missing"),
        ("pair_id,worker\n1,2\n", "line 1: the field 'relevance' is missing"),
        ("pair_id,worker,relevance\n1,a,5\n", r"line 2: relevance '5' is no level from 0 to 4"),
        ("pair_id,worker,relevance\n1,a,2\n1,b,two\n", "line 3: relevance 'two'"),
        ("pair_id,worker,relevance\n1,,2\n", "line 2: the field 'worker' is missing"),
        ("pair_id,worker,relevance\n1\n", "line 2: the field worker is missing"),
    ],
)
def test_damaged_files_are_named_with_line_and_field(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "raw.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_ratings(path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_ratings(tmp_path / "none.csv")
