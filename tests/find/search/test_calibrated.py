"""Search with a refiner that knows what its scores mean, and with one that does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.errors import DataError
from moviola.retrieval.refiners import CurveRefiner, Refined
from moviola.retrieval.refiners.trained import TrainedRefiner
from moviola.retrieval.trained_models import REFINERS
from moviola.search import Library, LikeMoment, SearchOptions
from moviola.types import Moment

Trained = Callable[..., Path]
QUERIES = ("a red square", "the umbrella of the lighthouse keeper", "something green")
KNOWN = {"slope": 0.25, "intercept": -0.5, "answers": 40, "right": 10}


def answers(library: Library, **options: Any) -> list[list[Moment]]:
    return [library.search(query, top_k=100, by="visual", **options) for query in QUERIES]


def places(found: list[list[Moment]]) -> list[list[tuple[str, float, float]]]:
    return [[(m.video_id, m.start, m.end) for m in moments] for moments in found]


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Fills with the evidence that refiners give."""
    seen: list[float] = []
    given = TrainedRefiner.refine

    def spy(self: Any, *arguments: Any) -> Refined:
        found = given(self, *arguments)
        seen.extend(self.evidence(found.score).tolist())
        return found

    monkeypatch.setattr(TrainedRefiner, "refine", spy)
    return seen


def test_untrained_refinement_is_not_calibrated() -> None:
    assert CurveRefiner().calibration is None


@pytest.mark.parametrize("stage1", [False, True])
@pytest.mark.parametrize("refiner", sorted(REFINERS))
def test_scores_are_the_calibrated_ones_in_the_same_order(
    library: Library, trained: Trained, evidence: list[float], refiner: str, stage1: bool
) -> None:
    if stage1:
        library.indexer.use(stage1=trained("spr-stage1"))
    library.indexer.use(refiner=trained(refiner))
    by_chance, coarse = answers(library), answers(library, refine=False)
    library.indexer.use(refiner=trained(refiner, extra={"calibration": KNOWN}))
    evidence.clear()
    found = answers(library)
    assert places(found) == places(by_chance) and found != by_chance
    possible = np.array([1 / (1 + math.exp(0.5 - value / 4)) for value in evidence])
    for moment in chain.from_iterable(found):
        assert np.abs(possible - moment.score).min() < 1e-12
    assert answers(library, refine=False) == coarse


def test_only_a_refiner_without_calibration_computes_what_chance_gives(
    library: Library, trained: Trained, evidence: list[float]
) -> None:
    library.indexer.use(refiner=trained("reel", extra={"calibration": KNOWN}))
    proposals = sum(map(len, answers(library, refine=False)))
    evidence.clear()
    assert answers(library)[0] and len(evidence) == proposals
    library.indexer.use(refiner=trained("reel"))
    evidence.clear()
    assert answers(library)[0] and len(evidence) > proposals


def test_coarse_moments_like_a_picture_are_set_against_chance_in_the_space_of_stage_1(
    library: Library, trained: Trained
) -> None:
    library.indexer.use(stage1=trained("spr-stage1"))
    searcher, like = library._searcher, LikeMoment("film0", 2.0)
    gatherer = searcher._gatherer(searcher._viewer.view(), SearchOptions(refine=False))
    found, stages = gatherer.seen(like, None), gatherer.stages(like)
    assert stages is not None and len(found) > 1
    chance = stages.cosines.segment_chance(stages.vectors(gatherer.features(like))[0])
    expected = chance.scores(np.array([one.match for one in found]))
    np.testing.assert_allclose([one.score for one in found], expected)


def test_the_least_score_is_the_least_probability(library: Library, trained: Trained) -> None:
    library.indexer.use(refiner=trained("reel", extra={"calibration": KNOWN}))
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
        library.indexer.use(refiner=trained("reel", extra={"calibration": malformed}))
    assert library.indexer.models_in_use()["refiner"] is None


@pytest.mark.parametrize(
    "settings", [{"sampling": {"context": "far"}}, {"sampling": {"context": -1.0}}, {"sampling": "drawn"}]
)
def test_a_malformed_context_is_refused(library: Library, trained: Trained, settings: Any) -> None:
    with pytest.raises(
        DataError, match=r"config\.json: extra\.settings\.sampling\.context = .* is no number"
    ):
        library.indexer.use(refiner=trained("reel", extra={"settings": settings}))
    assert library.indexer.models_in_use()["refiner"] is None
