"""Search with a refiner that knows what its scores mean, and with one that does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola import refine
from moviola.errors import DataError
from moviola.refine import REFINERS, CurveRefiner
from moviola.search import Library
from moviola.training import calibration
from moviola.types import Moment

Trained = Callable[..., Path]
QUERIES = ("a red square", "the umbrella of the lighthouse keeper", "something green")
KNOWN = {"slope": 0.25, "intercept": -0.5, "answers": 40, "right": 10}


def answers(library: Library, **options: Any) -> list[list[Moment]]:
    return [library.search(query, top_k=100, by="visual", **options) for query in QUERIES]


def places(found: list[list[Moment]]) -> list[list[tuple[str, float, float]]]:
    return [[(m.video_id, m.start, m.end) for m in moments] for moments in found]


@pytest.fixture
def raws(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Fills with what refiners give."""
    seen: list[float] = []
    given = refine.TrainedRefiner.refine

    def spy(self: Any, *arguments: Any) -> list[refine.Refined]:
        found = given(self, *arguments)
        seen.extend(one.score for one in found)
        return found

    monkeypatch.setattr(refine.TrainedRefiner, "refine", spy)
    return seen


def test_untrained_refinement_is_not_calibrated() -> None:
    assert CurveRefiner().calibration is None


@pytest.mark.parametrize("stage1", [False, True])
@pytest.mark.parametrize("refiner", sorted(REFINERS))
def test_scores_are_the_calibrated_ones_in_the_same_order(
    library: Library, trained: Trained, raws: list[float], refiner: str, stage1: bool
) -> None:
    if stage1:
        library.use(stage1=trained("spr-stage1"))
    library.use(refiner=trained(refiner))
    by_chance, coarse = answers(library), answers(library, refine=False)
    library.use(refiner=trained(refiner, extra={"calibration": KNOWN}))
    raws.clear()
    found = answers(library)
    assert places(found) == places(by_chance) and found != by_chance
    possible = np.array([1 / (1 + math.exp(0.5 - raw / 4)) for raw in raws])
    for moment in chain.from_iterable(found):
        assert np.abs(possible - moment.score).min() < 1e-12
    assert answers(library, refine=False) == coarse


def test_only_a_refiner_without_calibration_is_asked_for_what_chance_gives(
    library: Library, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    drawn = Library._background_windows
    monkeypatch.setattr(Library, "_background_windows", lambda *given: asked.append(1) or drawn(*given))
    library.use(refiner=trained("reel", extra={"calibration": KNOWN}))
    assert answers(library)[0] and not asked
    library.use(refiner=trained("reel"))
    assert answers(library)[0] and len(asked) == len(QUERIES)


def test_the_least_score_is_the_least_probability(library: Library, trained: Trained) -> None:
    library.use(refiner=trained("reel", extra={"calibration": KNOWN}))
    found = answers(library)
    middle = found[0][len(found[0]) // 2].score
    kept = answers(library, min_score=middle)[0]
    assert 0 < len(kept) < len(found[0])
    assert kept == [moment for moment in found[0] if moment.score >= middle]


@pytest.mark.parametrize(
    "malformed",
    [
        {"slope": 1.0}, {"slope": 0.0, "intercept": 1.0}, {"slope": -1.0, "intercept": 1.0}, "yes", [1, 2],
        {"slope": "steep", "intercept": 1.0}, {"slope": 1.0, "intercept": "nan"},
    ],
)  # fmt: skip
def test_a_malformed_calibration_is_refused(library: Library, trained: Trained, malformed: Any) -> None:
    with pytest.raises(DataError, match=r"config\.json: extra\.calibration = .*train the model again"):
        library.use(refiner=trained("reel", extra={"calibration": malformed}))
    assert library.models_in_use()["refiner"] is None


def test_training_thins_and_knows_refiners_as_search_does() -> None:
    assert set(calibration.EVIDENCE) == set(REFINERS)
    assert calibration.SAME == refine.SAME


@pytest.mark.parametrize("refiner", sorted(REFINERS))
def test_training_calibrates_the_raw_scores_that_search_has(
    library: Library, trained: Trained, raws: list[float], monkeypatch: pytest.MonkeyPatch, refiner: str
) -> None:
    library.use(refiner=trained(refiner, extra={"calibration": KNOWN}))
    model = type(library.refiner.model)  # type: ignore[attr-defined]
    scores: list[float] = []
    # Search has Reel's dot products with a query before it looks for spans; training comes there too.
    decoding = "best_spans" if refiner == "reel" else "refine"
    given = getattr(model, decoding)

    def spy(*arguments: Any) -> Any:
        found = given(*arguments)
        scores.extend(found[0].tolist())
        return found

    monkeypatch.setattr(model, decoding, spy)
    assert answers(library)[0]
    np.testing.assert_allclose(calibration.EVIDENCE[refiner](np.array(scores)), raws, rtol=1e-5)
