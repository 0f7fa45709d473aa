"""Measures of public benchmarks, on cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.study.measures.public import (
    Answered,
    CorpusAnswered,
    extreme_when_bench,
    fig,
    moment_seeker,
    qv_m2,
    soccer_gmr,
    timelens,
)

NOTHING = Answered.of([[0, 10]], [])


def test_extreme_when_bench() -> None:
    answers = [
        Answered.of([[90, 99]], [[90, 99, 1]]),  # 1
        Answered.of([[0, 10]], [[5, 0, 1]]),  # turned round: .5
        Answered.of([[0, 10]], [[20, 30, 0.9], [0, 10, 0.1]]),  # only the first counts: 0
        NOTHING,
    ]
    assert extreme_when_bench(answers) == {
        "mIoU": 0.375, "R@0.3": 0.5, "R@0.5": 0.5, "R@0.7": 0.25, "no span": 0.25,
    }  # fmt: skip


def test_timelens_does_not_turn_spans_round_and_its_successor_leaves_nothing_out_of_miou() -> None:
    answers = [Answered.of([[0, 10]], [[0, 7, 1]]), Answered.of([[0, 10]], [[5, 0, 1]]), NOTHING]
    found = timelens(answers)
    assert found["mIoU"] == pytest.approx(70 / 3)
    assert found["mIoU (TimeLens2)"] == pytest.approx(35)
    assert found["R1@0.7"] == pytest.approx(100 / 3)


def test_moment_seeker_by_paper_and_by_code() -> None:
    # IoU with [0, 10) and [20, 30): a miss, .8 with the first, the first again, .5 with the second.
    windows = [[50, 60, 5], [0, 8, 4], [0, 9, 3], [20, 25, 2]]
    found = moment_seeker([Answered.of([[0, 10], [20, 30]], windows)])
    assert found["R@1"] == 0
    assert found["mAP@5 (paper)"] == pytest.approx(100 * np.mean([1 / 2, 2 / 4]))  # hits at ranks 2 and 4
    hull = [0, 8 / 30, 9 / 30, 5 / 30]
    code = sum(value * np.mean(hull[: rank + 1]) for rank, value in enumerate(hull))
    assert found["mAP@5 (code)"] == pytest.approx(100 * code)
    # An IoU of .3 is no hit, and five perfect answers to one moment give 500 % by the code.
    assert moment_seeker([Answered.of([[0, 10]], [[0, 3, 1]])])["R@1"] == 0
    five = moment_seeker([Answered.of([[0, 10]], [[0, 10, 1]] * 5)])
    assert (five["mAP@5 (paper)"], five["mAP@5 (code)"]) == (100, 500)


def test_qv_m2_by_paper_and_by_code() -> None:
    two = Answered.of([[0, 10], [20, 30]], [[0, 10, 0.9], [21, 30, 0.8]])  # IoU 1 and .9
    short = Answered.of([[0, 10], [20, 30]], [[0, 10, 0.9]])
    silent = Answered.of([[0, 10]], [])
    found = qv_m2([two, short, silent])
    reached = 13 / 14  # .9 reaches .30 to .90, thirteen of fourteen thresholds
    assert found["mR@1 (code)"] == 100  # of two queries; the silent one is left out
    assert found["mR@1 (paper)"] == pytest.approx(200 / 3)
    assert found["mR@2 (code)"] == pytest.approx(100 * (1 + reached) / 2)
    assert found["mR@2 (paper)"] == pytest.approx(100 * (1 + reached + 1) / 4)
    assert found["mIoU@1"] == 100 and found["mIoU@2"] == pytest.approx(95)
    assert found["mR@3 (code)"] is found["mIoU@3"] is found["mAP@3+tgt"] is None  # no query has three
    # AP: both windows right at .50 to .90, at .95 the first alone (.5); the short one always has .5.
    own = (9 * 1 + 0.5) / 10
    assert found["G-mAP (code)"] == pytest.approx(100 * (own + 0.5) / 2)
    assert found["G-mAP (paper)"] == pytest.approx(100 * (1 + 0.5 + 0) / 3)
    assert found["mAP@2_tgt"] == found["G-mAP (code)"] and found["mAP@1_tgt"] == 0


def test_qv_m2_counts_groups_of_three_and_more_alike() -> None:
    def of(count: int, found: int) -> Answered:
        truths = [[20 * i, 20 * i + 10] for i in range(count)]
        return Answered.of(truths, [[*window, 1 - i / 9] for i, window in enumerate(truths[:found])])

    # Two queries with 3 windows (AP 1 and 1/3) and one with 4 (AP 1/2).
    assert qv_m2([of(3, 3), of(3, 1), of(4, 2)])["mAP@3+tgt"] == pytest.approx(100 * (2 / 3 + 1 / 2) / 2)


def test_soccer_gmr() -> None:
    truths = [[0, 10], [20, 30], [20, 30], [25, 99]]  # one given twice, one cut at 35
    several = Answered.of(truths, [[0, 8, 0.5], [40, 50, 0.4]], duration=35)
    one = Answered.of([[0, 10]], [[0, 10, 0.45]])
    refused = Answered.of([], [[0, 10, 0.4]])
    taken = Answered.of([], [[0, 10, 0.1]], sureness=0.9)
    found = soccer_gmr([several, one, refused, taken])
    assert found["AUROC"] == pytest.approx(50)  # .5 and .45 against .4 and .9
    assert found["Rej-F1@0.4"] == pytest.approx(200 / 3)  # one refused of two, rightly
    assert found["Acc@0.4"] == 75
    assert (found["Rej-F1@0.6"], found["Acc@0.6"]) == (40, 25)  # three refused, one rightly
    assert found["mR@1"] == pytest.approx(100 * (0.7 / 3 + 1) / 2)  # .8 reaches seven of ten thresholds
    assert found["mR+@5"] == 0
    assert found["mIoU@1"] == pytest.approx(90)
    assert found["mIoU@3"] == pytest.approx(100 * (0.8 / 2 + 1) / 2)
    assert found["mIoU+@3"] == 0  # the forced second match has no overlap
    assert found["G-mIoU@1 (paper)"] == pytest.approx(100 * (0.8 / 3 + 1 + 1 + 0) / 4)


def test_soccer_gmr_counts_what_is_found_beyond_one_moment() -> None:
    """Two of three moments found exactly: mR+@5 is (2 - 1) / (3 - 1), mIoU+@5 the IoU of the second match."""
    answer = Answered.of([[0, 10], [20, 30], [40, 50]], [[0, 10, 0.9], [20, 30, 0.8]])
    found = soccer_gmr([answer, Answered.of([[0, 10]], [[0, 10, 0.9]])])
    assert found["mR+@5"] == pytest.approx(50) and found["mIoU+@5"] == pytest.approx(100)
    assert found["mR@5"] == pytest.approx(100 * (2 / 3 + 1) / 2)


def test_soccer_gmr_forces_matches_in_code() -> None:
    """Two windows, two true ones, one pair that overlaps by .8: .8 / 3 as documented, .8 / 2 by the code."""
    answer = Answered.of([[0, 10], [20, 30]], [[0, 8, 0.9], [40, 50, 0.8]])
    found = soccer_gmr([answer])
    assert found["G-mIoU@3 (paper)"] == pytest.approx(26.6667, abs=1e-3)
    assert found["G-mIoU@3 (code)"] == pytest.approx(40)
    assert found["AUROC"] == 50 and found["Rej-F1@0.4"] == 0  # every query has an answer


def test_soccer_gmr_drops_windows_without_extent() -> None:
    found = soccer_gmr([Answered.of([], [[5, 5, 0.9]]), Answered.of([[0, 10]], [[5, 2, 0.9], [0, 10, 0.5]])])
    assert found["G-mIoU@1 (paper)"] == found["G-mIoU@1 (code)"] == 100


def test_fig() -> None:
    scores = {"a": 0.9, "b": 0.9, "c": 0.5}
    answers = [
        CorpusAnswered(
            "a", (0, 10), 12, scores, "a", (0, 30), True
        ),  # cut at 12: 10/12; equals do not push back
        CorpusAnswered("c", (0, 10), 10, scores, "a", (0, 10), True),  # third; another video
        CorpusAnswered("b", (0, 10), 10, scores, "b", (0, 10), False),  # right, but said not to be
        CorpusAnswered("d", (0, 10), 10, scores, "a", None, None),  # not found, no verdict
    ]
    found = fig(answers)
    assert (found["VR R@1"], found["VR R@5"], found["VR R@100"]) == (50, 75, 75)
    assert (found["0.7/R@1"], found["0.7/R@1 (any verdict)"]) == (25, 50)
    assert found["verdict"] == pytest.approx(100 / 3)  # right of the first, wrong of the next two
    assert "verdict" not in fig(answers[3:])


spans = st.tuples(st.integers(0, 30), st.integers(1, 20)).map(lambda s: [float(s[0]), float(s[0] + s[1])])
answered = st.builds(
    lambda truths, windows: Answered.of(
        truths, [[*window, 1 - i / 20] for i, window in enumerate(windows)], duration=40
    ),
    st.lists(spans, max_size=4),
    st.lists(spans, max_size=6),
)


@given(st.lists(answered, max_size=5))
def test_values_stay_in_their_range(answers: list[Answered]) -> None:
    own = [one for one in answers if len(one.truths)]
    for measure, rows in ((extreme_when_bench, own), (timelens, own), (qv_m2, own), (soccer_gmr, answers)):
        values = measure(rows)
        limit = 1 if measure is extreme_when_bench else 100
        assert all(0 <= value <= limit + 1e-9 for value in values.values() if value is not None)
    found = moment_seeker(own)
    assert all(0 <= value <= (500 if "code" in name else 100) + 1e-9 for name, value in found.items())
    # Without thresholds in between, forcing matches can only make the denominator smaller.
    gmr = soccer_gmr(answers)
    assert gmr["G-mIoU@1 (code)"] >= gmr["G-mIoU@1 (paper)"] - 1e-9


@given(st.lists(st.lists(spans, min_size=1, max_size=4), min_size=1, max_size=4))
def test_the_truth_itself_is_all_right(truths: list[list[list[float]]]) -> None:
    apart = [[[100.0 * i + s, 100.0 * i + e] for i, (s, e) in enumerate(rows)] for rows in truths]
    answers = [Answered.of(rows, [[*span, 1 - i / 9] for i, span in enumerate(rows)]) for rows in apart]
    assert extreme_when_bench(answers)["mIoU"] == 1
    assert timelens(answers)["R1@0.7"] == 100
    assert qv_m2(answers)["G-mAP (code)"] == pytest.approx(100)
    gmr = soccer_gmr(answers)
    assert gmr["mR@5"] == pytest.approx(100) and gmr["G-mIoU@5 (paper)"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("truths", "windows", "complaint"),
    [
        ([[0, math.nan]], [], "truths, row 1: .*finite"),
        ([[5, 0]], [], "it ends before it starts"),
        ([[0, 1]], [[0, 1]] * 3, "a list of .start, end, score. is expected"),
        ([[0, 1]], [0, 1], "a list of .start, end, score. is expected"),
        ([[0, 1]], [[0, math.inf, 1]], "windows, row 1: .*finite"),
    ],
)
def test_a_span_that_is_no_window_is_refused(truths: list, windows: list, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        Answered.of(truths, windows)


def test_a_sureness_must_be_finite() -> None:
    with pytest.raises(InvalidValue, match="sureness nan"):
        Answered.of([], [], sureness=math.nan)


def test_an_iou_of_three_tenths_is_no_hit_by_the_paper_either() -> None:
    assert moment_seeker([Answered.of([[0, 10]], [[0, 3, 1]])])["mAP@5 (paper)"] == 0


def test_soccer_gmr_counts_moments_once_that_are_equal_within_the_video() -> None:
    found = soccer_gmr([Answered.of([[20, 40], [20, 50]], [[20, 30, 0.9]], duration=30)])
    assert found["mR@1"] == found["mIoU@1"] == found["G-mIoU@1 (paper)"] == 100
