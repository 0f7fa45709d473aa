"""Marks: what is like a right one rises, what is like a wrong one falls, all else keeps its score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.retrieval import Marks
from moviola.retrieval.segments import normalised

DIM = 8
NONE = np.empty((0, DIM), np.float32)
# Numbers with exact zeros and repetitions, so that rows of zeros and rows twice come up.
NUMBERS = st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0])
SCORES = st.floats(0, 1)


def rows(most: int = 6, least: int = 0) -> st.SearchStrategy[NDArray[np.float32]]:
    return st.integers(least, most).flatmap(lambda n: arrays(np.float32, (n, DIM), elements=NUMBERS))


def random_rows(count: int, seed: int) -> NDArray[np.float32]:
    return normalised(np.random.default_rng(seed).standard_normal((count, DIM)))


# ---- what they do ------------------------------------------------------------------------------------------


def test_likes_of_right_ones_rise_and_likes_of_wrong_ones_fall() -> None:
    right, wrong, other = np.eye(DIM, dtype=np.float32)[:3]
    pieces = normalised(np.stack([right + 0.2 * other, wrong + 0.2 * other, other]))
    near, far, apart = Marks.of(right[None], wrong[None]).scores(pieces, np.full(3, 0.5))
    assert near > 0.9
    assert far < 0.2
    assert apart == pytest.approx(0.5, abs=1e-4)


def test_a_right_mark_outdoes_the_text() -> None:
    pieces = np.eye(DIM, dtype=np.float32)[:2]
    taught, text_only = Marks.of(pieces[:1], NONE).scores(pieces, np.array([0.02, 0.2]))
    assert taught > text_only
    assert text_only == pytest.approx(0.2, abs=1e-4)


def test_without_a_text_the_picture_itself_scores_nine_tenths_and_nothing_like_it_next_to_nothing() -> None:
    pieces = np.eye(DIM, dtype=np.float32)[:2]
    itself, other = Marks.of(pieces[:1], NONE).scores(pieces)
    assert itself == pytest.approx(0.9)
    assert other < 0.02


def test_of_each_kind_of_right_ones_one_is_looked_for_before_a_second_of_any() -> None:
    kinds = np.eye(DIM, dtype=np.float32)[:3]
    noise = 0.05 * random_rows(12, 0)
    marked = normalised(np.repeat(kinds, 4, axis=0) + noise)
    probes = Marks.of(marked, NONE).probes(3)
    assert sorted((probes @ kinds.T).argmax(axis=1).tolist()) == [0, 1, 2]


# ---- what always holds -------------------------------------------------------------------------------------


@given(rows(), st.data())
def test_without_marks_scores_are_exactly_those_of_the_text(
    pieces: NDArray[np.float32], data: st.DataObject
) -> None:
    scores = np.array(data.draw(st.lists(SCORES, min_size=len(pieces), max_size=len(pieces))))
    marks = Marks.of(NONE, NONE)
    assert (marks.scores(pieces, scores) == scores).all()
    assert not marks.evidence(pieces).any()
    assert marks.probes().shape == (0, DIM)


@given(rows(least=1), rows(), SCORES)
def test_no_mark_lowers_a_piece_that_was_marked_right(
    right: NDArray[np.float32], wrong: NDArray[np.float32], score: float
) -> None:
    for against in (wrong, np.concatenate([wrong, right, right * 0.999])):
        assert (Marks.of(right, against).scores(right, np.full(len(right), score)) >= score).all()


@given(rows(), rows(), rows(least=1), rows(least=1, most=1), SCORES)
def test_a_right_mark_lowers_nothing_and_a_wrong_mark_raises_nothing(
    right: NDArray[np.float32],
    wrong: NDArray[np.float32],
    pieces: NDArray[np.float32],
    more: NDArray[np.float32],
    score: float,
) -> None:
    scores = np.full(len(pieces), score)
    before = Marks.of(right, wrong).scores(pieces, scores)
    # Cosines are float32, and those of one mark are rounded differently beside another.
    assert (Marks.of(np.concatenate([right, more]), wrong).scores(pieces, scores) >= before - 1e-5).all()
    assert (Marks.of(right, np.concatenate([wrong, more])).scores(pieces, scores) <= before + 1e-5).all()


@given(rows(), rows(), rows(), st.randoms(use_true_random=False))
def test_the_order_of_marks_and_marks_made_twice_change_nothing(
    right: NDArray[np.float32],
    wrong: NDArray[np.float32],
    pieces: NDArray[np.float32],
    random: st.RandomSource,
) -> None:
    def shuffled(marked: NDArray[np.float32]) -> NDArray[np.float32]:
        places = list(range(len(marked))) * 2
        random.shuffle(places)
        return marked[np.array(places, np.int64)]

    marks, again = Marks.of(right, wrong), Marks.of(shuffled(right), shuffled(wrong))
    assert (marks.evidence(pieces) == again.evidence(pieces)).all()
    assert (marks.probes() == again.probes()).all()


@given(rows(), rows(), rows(), SCORES)
def test_scores_are_finite_and_between_0_and_1(
    right: NDArray[np.float32], wrong: NDArray[np.float32], pieces: NDArray[np.float32], score: float
) -> None:
    marks = Marks.of(right, wrong)
    for scores in (marks.scores(pieces, np.full(len(pieces), score)), marks.scores(pieces)):
        assert scores.shape == (len(pieces),)
        assert scores.dtype == np.float64
        assert ((scores >= 0) & (scores <= 1)).all()
    probes = marks.probes()
    assert len(probes) == min(4, len(marks.right))
    assert np.allclose(np.linalg.norm(probes, axis=1), 1)


@given(rows(least=2), SCORES, SCORES)
def test_the_order_of_equally_marked_pieces_is_that_of_the_text(
    right: NDArray[np.float32], one: float, other: float
) -> None:
    pieces = np.repeat(right[:1], 2, axis=0)
    low, high = Marks.of(right, NONE).scores(pieces, np.array(sorted((one, other))))
    assert low <= high


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (np.ones(DIM), NONE),
        (np.ones((1, DIM)), np.ones((1, DIM + 1))),
        (np.full((1, DIM), np.nan), NONE),
        (NONE, np.full((1, DIM), np.inf)),
    ],
)
def test_marks_that_are_no_features_are_refused(
    right: NDArray[np.float32], wrong: NDArray[np.float32]
) -> None:
    with pytest.raises(InvalidValue, match="marks"):
        Marks.of(right, wrong)


def test_pieces_and_scores_that_do_not_fit_are_refused() -> None:
    marks = Marks.of(random_rows(2, 0), NONE)
    with pytest.raises(InvalidValue, match=r"\(n, 8\)"):
        marks.evidence(np.ones((3, DIM + 1)))
    with pytest.raises(InvalidValue, match="not finite"):
        marks.evidence(np.full((1, DIM), np.nan))
    for scores in (np.ones(2), np.array([0.5, 0.5, 1.5]), np.array([0.5, 0.5, np.nan])):
        with pytest.raises(InvalidValue, match="one in"):
            marks.scores(np.ones((3, DIM)), scores)
    with pytest.raises(InvalidValue, match="most=0"):
        marks.probes(0)
