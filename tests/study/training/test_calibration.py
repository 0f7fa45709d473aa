"""Logistic regression against known truth; which answers are right; what `moviola train` leaves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.errors import InvalidValue
from moviola.retrieval import Calibration
from moviola.retrieval.calibration import logarithm, sigmoid
from moviola.retrieval.saved.description import read_description
from moviola.study.measures import Qrels, Run
from moviola.study.training.fit_calibration import closed_language, first_answers, fit

app = all_commands()

# ---- the fit -----------------------------------------------------------------------------------------------


def chances(raw: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    return Calibration(slope, intercept).scores(raw)


@pytest.mark.parametrize(("slope", "intercept"), [(0.5, -9.0), (2.0, 1.0), (40.0, 3.0), (0.01, -2.0)])
def test_a_known_slope_and_intercept_are_recovered(slope: float, intercept: float) -> None:
    draw = np.random.default_rng(0)
    raw = (draw.normal(0, 2, 20_000) - intercept) / slope
    right = draw.random(len(raw)) < chances(raw, slope, intercept)
    found = fit(raw, right)
    assert found is not None
    assert found[2] == 0
    np.testing.assert_allclose(found[:2], (slope, intercept), rtol=0.05)


@pytest.mark.parametrize("weight", [0.7, 0.0, -0.7])
def test_the_log_odds_that_a_query_has_an_answer_get_their_weight(weight: float) -> None:
    """Of answers, those of their queries; where they mislead, or are all equal, they have none."""
    draw = np.random.default_rng(0)
    raw, sure = draw.normal(0, 2, 20_000), np.repeat(draw.normal(3, 2, 2000), 10)
    right = draw.random(len(raw)) < sigmoid(1.5 * raw + weight * sure - 1)
    found = fit(raw, right, sure)
    assert found is not None
    expected = (1.5, -1.0, weight) if weight > 0 else (*(fit(raw, right) or ())[:2], 0.0)
    np.testing.assert_allclose(found, expected, atol=0.08)
    same = fit(raw, right, np.ones_like(raw))
    assert same == fit(raw, right) and found[2] >= 0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(10, 300), st.floats(0.01, 100), st.floats(-1000, 1000))
def test_as_many_are_promised_as_are_right_and_units_do_not_matter(
    seed: int, count: int, unit: float, origin: float
) -> None:
    draw = np.random.default_rng(seed)
    raw = draw.normal(size=count)
    right = draw.random(count) < chances(raw, 1.5, -0.5)
    found = fit(raw, right)
    if found is None:
        return
    assert chances(raw, *found[:2]).sum() == pytest.approx(right.sum(), rel=1e-5)
    other = fit(raw * unit + origin, right)
    assert other is not None and other[0] * unit == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("gap", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("wrong", [1, 10, 5000])
def test_separable_data_give_finite_numbers_and_keep_the_order(gap: float, wrong: int) -> None:
    raw = np.concatenate([np.linspace(0, 1, wrong), 1 + gap + np.linspace(0, 1, 10)])
    found = fit(raw, np.arange(len(raw)) >= wrong)
    assert found is not None and np.isfinite(found).all()
    scores = chances(raw, *found[:2])
    assert (np.diff(scores) >= 0).all() and scores[-1] > scores[0]


def test_where_there_is_nothing_to_learn_there_is_no_calibration() -> None:
    raw = np.arange(10.0)
    assert fit(raw, np.ones(10, bool)) is None
    assert fit(raw, np.zeros(10, bool)) is None
    assert fit(np.ones(10), raw > 5) is None
    assert fit(-raw, raw > 5) is None
    assert fit(np.empty(0), np.empty(0, bool)) is None


def test_scores_rise_to_the_ends_of_what_floats_hold() -> None:
    known = Calibration(3.0, -1.0)
    scores = known.scores(np.array([-1e300, -200.0, -1.0, 0.0, 1.0, 1e300])).tolist()
    assert scores == sorted(scores) and scores[0] > 0 and scores[-1] == 1
    assert known.scores(np.array([1 / 3])).tolist() == [0.5]
    for slope, intercept in ((0.0, 0.0), (-1.0, 0.0), (np.nan, 0.0), (1.0, np.inf)):
        with pytest.raises(InvalidValue, match="slope above 0"):
            Calibration(slope, intercept)


# ---- which answers are right -------------------------------------------------------------------------------


def test_right_overlaps_a_moment_of_positive_relevance_by_half() -> None:
    def answer(video: str, start: float, end: float, score: float) -> dict[str, Any]:
        return {"video_id": video, "start": start, "end": end, "score": score}

    def judged(video: str, start: float, end: float, relevance: int) -> dict[str, Any]:
        return {"video_id": video, "start": start, "end": end, "relevance": relevance}

    qrels = Qrels.from_dict({
        "a": [judged("v", 0, 10, 1), judged("v", 20, 30, 0), judged("w", 0, 10, 4)],
        "b": [judged("v", 50, 60, 4)],
    })  # fmt: skip
    run = Run.from_dict({
        "a": [
            answer("v", 0, 5, 9),  # half of it
            answer("v", 0, 4.9, 8),  # the same again, so it is not shown
            answer("v", 12, 16, 7),
            answer("v", 20, 30, 6),  # judged not to be relevant
            answer("v", 50, 60, 5),  # of another query
            answer("unknown", 0, 10, 4),
            answer("w", 5, 15, 3),  # a third
            answer("w", 0, 10, 2),
        ],
        "b": [answer("v", 50, 60, 1)],
    })  # fmt: skip
    raw, right, of = first_answers(run, qrels)
    assert dict(zip(raw.tolist(), right.tolist(), strict=True)) == {
        9: True, 7: False, 6: False, 5: False, 4: False, 3: False, 2: True, 1: True,
    }  # fmt: skip
    assert [qrels.query_ids[place] for place in of.tolist()] == [*"aaaaaaa", "b"]
    assert first_answers(run, qrels, 2)[0].tolist() == [9, 7, 1]


def test_the_evidence_of_products_is_their_logarithm_and_finite() -> None:
    np.testing.assert_array_equal(logarithm(np.array([0.5, 2.0])), np.log([0.5, 2.0]))
    assert np.isfinite(logarithm(np.zeros(1))).all()


# ---- the command -------------------------------------------------------------------------------------------

TINY = {
    "spr-stage1": ["model.layers=1", "loop.steps=30"],
    "reel": ["model.hidden_size=16", "model.heads=2", "model.longest_span=8", "loop.steps=40"],
    "spr-clip": ["model.layers=1", "loop.steps=2"],
    "spr-relo": ["model.hidden_size=16", "model.heads=2", "sampling.strategy=standard", "loop.steps=2"],
    "spr-relo-large": ["model.hidden_size=8", "model.heads=2", "sampling.strategy=standard", "loop.steps=2"],
    "reloclnet": ["model.hidden_size=16", "model.heads=2", "loop.steps=2"],
}  # fmt: skip


@pytest.fixture(scope="module")
def models(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``models(recipe)``: the folder that `moviola train` writes, and what it says."""
    out = tmp_path_factory.mktemp("models")

    @cache
    def make(name: str, place: str = "") -> tuple[Path, str]:
        folder = out / f"{name}{place}"
        words = ["train", name, "--features", str(world.folder / "features"), "--out", str(folder)]
        for part in ("train", "val"):
            words += [f"--{part}", str(world.folder / f"{part}.json")]
            words += [f"--{part}-videos", str(world.folder / f"{part}_videos.json")]
        for setting in (
            *TINY[name],
            "loop.optimizer.lr=1e-2",
            "loop.batch_size=8",
            "loop.evaluate_every=100",
        ):
            words += ["--set", setting]
        if name not in {"spr-stage1", "reloclnet"}:
            words += ["--stage1", str(make("spr-stage1")[0])]
        answer = CliRunner().invoke(app, words)
        assert answer.exit_code == 0, answer.output
        return folder, answer.stderr

    return make


def test_what_training_reel_writes_raises_the_right_answers(models: Any) -> None:
    folder, said = models("reel")
    assert "not calibrated" not in said
    extra = read_description(folder).extra
    assert Calibration.of(extra, folder) is not None
    assert 0 < extra["calibration"]["right"] < extra["calibration"]["answers"]


@pytest.mark.parametrize("name", ["spr-clip", "spr-relo", "spr-relo-large"])
def test_training_a_refiner_writes_its_calibration(
    models: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    given: list[np.ndarray] = []

    def fitted(raw: np.ndarray, right: np.ndarray, answerable: None) -> tuple[float, float, float]:
        given.extend((raw, right))
        return 0.125, -1.5, 0.0  # two steps do not teach them to separate right from wrong

    monkeypatch.setattr("moviola.study.training.fit_calibration.fit", fitted)
    folder, said = models(name)
    assert "not calibrated" not in said
    extra = read_description(folder).extra
    known = Calibration.of(extra, folder)
    raw, right = given
    words = extra["calibration"]["words"]  # of a closed language
    assert known == Calibration(0.125, -1.5, frozenset(words)) and {"robot", "ball"} <= set(words)
    assert extra["calibration"] == {
        "slope": 0.125, "intercept": -1.5, "answers": len(raw), "right": int(right.sum()), "words": words,
    }  # fmt: skip
    assert len(raw) >= 6 and np.isfinite(raw).all() and raw.std() > 0
    card = (folder / "README.md").read_text()
    assert "## Scores" in card and "sigmoid(0.125 evidence - 1.5)" in card


def test_a_refiner_that_cannot_be_calibrated_is_written_without(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.study.training.fit_calibration.fit", lambda *_: None)
    folder, said = models("spr-clip", " without")
    assert "not calibrated" in said
    assert "calibration" not in read_description(folder).extra
    assert "## Scores" not in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", ["spr-stage1", "reloclnet"])
def test_other_models_have_none(models: Any, name: str) -> None:
    folder, said = models(name)
    assert "not calibrated" not in said
    assert "calibration" not in read_description(folder).extra
    assert "## Scores" not in (folder / "README.md").read_text()


def test_a_language_is_closed_where_held_out_texts_have_no_other_word() -> None:
    learned = ["A robot picks", "the BALL up"]
    assert closed_language(learned, ["the robot", "a ball"]) == ["a", "ball", "picks", "robot", "the", "up"]
    assert closed_language(learned, ["the robot", "a cat"]) == []
