"""The rule of consensus and the figures of agreement, on cases whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import DataError, NotFound
from moviola.study.datasets.building.annotation_files import read_ratings, write_agreed
from moviola.study.datasets.building.consensus import (
    Rating,
    agree,
    agreement,
    consensus,
    exam,
)

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
    raters = exam([*rate("a", 1, 1, 3), *rate("b", 2, 2, 2)]).raters
    distances = [(worker, rater.distance) for worker, rater in raters.items()]
    assert distances == [("w0", 0.0), ("w1", 0.0), ("w2", 1.0)]


@given(st.lists(st.tuples(st.sampled_from("abc"), levels), max_size=12))
def test_figure_5a_counts_all_ratings_of_a_pair(given_ratings: list[tuple[str, int]]) -> None:
    found = agreement(Rating(pair, "w", level) for pair, level in given_ratings).low_high
    expected = np.zeros((5, 5), int)
    for pair in "abc":
        mine = sorted(level for name, level in given_ratings if name == pair)
        if len(mine) > 1:
            expected[mine[0], mine[-1]] += 1
    assert found.tolist() == expected.tolist()


def test_an_exam_by_hand() -> None:
    """Medians 1, 2, 1; one rater is 2 and 3 levels off."""
    found = exam([*rate("a", 1, 1, 3), *rate("b", 2, 2, 2), *rate("c", 1, 1, 4)])
    assert list(found.raters) == ["w0", "w1", "w2"]
    assert found.raters["w2"].out_of_consensus == pytest.approx(2 / 3)
    assert found.out_of_consensus == pytest.approx(2 / 9)
    # w0 and w1 agree wholly. w0 has levels 1, 2, 1 and w2 3, 2, 4: they agree in 1 of 3, by chance in 1 of 9.
    by_hand = (1 / 3 - 1 / 9) / (1 - 1 / 9)
    assert found.raters["w0"].kappa == pytest.approx((1 + by_hand) / 2)
    assert found.raters["w2"].kappa == pytest.approx(by_hand)
    assert found.kappa == pytest.approx((1 + 2 * by_hand) / 3)


@given(st.lists(st.lists(levels, min_size=3, max_size=3), min_size=1, max_size=8))
def test_kappa_of_two_raters_is_cohens(table: list[list[int]]) -> None:
    found = exam(rating for place, row in enumerate(table) for rating in rate(str(place), *row))
    kappas = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        one, other = ([row[rater] for row in table] for rater in (a, b))
        observed = sum(x == y for x, y in zip(one, other, strict=True)) / len(table)
        chance = sum(one.count(level) * other.count(level) for level in range(5)) / len(table) ** 2
        if chance < 1:
            kappas.append((observed - chance) / (1 - chance))
    if kappas:
        assert found.kappa == pytest.approx(sum(kappas) / len(kappas))
    else:
        assert math.isnan(found.kappa)


def test_an_exam_without_ratings() -> None:
    with pytest.raises(DataError, match="without ratings"):
        exam([])


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
