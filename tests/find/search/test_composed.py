"""What queries that are no texts find in a library, and that the algebra holds for their answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from moviola.errors import InvalidValue, LibraryError, NotFound, UnreadableMedia
from moviola.media import frame_at
from moviola.retrieval.cosines import Cosines
from moviola.search import (
    Filter,
    Library,
    LikeMoment,
    LikePicture,
    SearchOptions,
    SearchQuery,
    Text,
    answers,
)
from moviola.search.answers import chains
from moviola.search.found import Candidate
from moviola.search.fusion import with_odds_times
from moviola.types import Moment, Span

Trained = Callable[..., Path]
RED, GREEN = Text("a red square"), Text("something green moves to the left")


def answer(library: Library, query: str | SearchQuery, **options: object) -> list[Moment]:
    return library.search(query, top_k=1000, **options)  # type: ignore[arg-type]


def places(moments: list[Moment]) -> list[tuple[str, float, float]]:
    return [(m.video_id, m.start, m.end) for m in moments]


@pytest.fixture
def picture(library: Library, tmp_path: Path) -> Path:
    """The frame of film1 at 10 s."""
    path = tmp_path / "picture.png"
    Image.fromarray(frame_at(Path(library.catalogue.video("film1").path), 10.0, 64)).save(path)
    return path


# ---- moments and pictures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("models", ["untrained", "trained"])
@pytest.mark.parametrize(("video", "time"), [("film0", 2.0), ("film1", 10.0), ("film2", 15.9)])
def test_a_moment_looks_most_like_itself(
    library: Library, trained: Trained, models: str, video: str, time: float
) -> None:
    if models == "trained":
        library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    best = answer(library, LikeMoment(video, time), by="visual")[0]
    assert best.video_id == video
    assert best.start <= time < best.end


def test_a_picture_finds_what_its_moment_finds(library: Library, picture: Path) -> None:
    by_moment = answer(library, LikeMoment("film1", 10.0), by="visual")
    by_picture = answer(library, LikePicture(picture), by="visual")
    # What follows the best one is alike to a rounding of the picture.
    assert places(by_picture[:1]) == places(by_moment[:1])
    scores = [{(m.video_id, m.start, m.end): m.score for m in found} for found in (by_picture, by_moment)]
    assert scores[0] == pytest.approx(scores[1], abs=0.1)


def test_a_video_is_a_picture_of_its_first_frame(library: Library, films: Path) -> None:
    by_video = answer(library, LikePicture(films / "film2.mp4"), by="visual")
    by_moment = answer(library, LikeMoment("film2", 0.0), by="visual")
    assert places(by_video) == places(by_moment)


def test_parts_without_text_are_refined_without_training(library: Library, trained: Trained) -> None:
    before = answer(library, LikeMoment("film1", 10.0), by="visual")
    library.indexer.use(refiner=trained("reel"))
    assert answer(library, LikeMoment("film1", 10.0), by="visual") == before
    assert answer(library, RED, by="visual") != answer(library, RED + GREEN, by="visual")


def test_moments_that_are_not_there_are_named(library: Library, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="film9"):
        library.search(LikeMoment("film9", 1))
    with pytest.raises(InvalidValue, match=r"like film2@16: the video ends at 16 s"):
        library.search(LikeMoment("film2", 16.0))
    with pytest.raises(
        LibraryError, match="needs a search by pictures, which the chosen evidence leaves out"
    ):
        library.search(LikeMoment("film2", 1), by="subtitles")
    (tmp_path / "no picture.png").write_text("no picture")
    for name in ("no picture.png", "missing.png"):
        with pytest.raises(UnreadableMedia, match=name):
            library.search(LikePicture(tmp_path / name))


# ---- sums --------------------------------------------------------------------------------------------------


def test_sums_answer_alike_in_any_order_and_scale(library: Library, picture: Path) -> None:
    a, b = LikePicture(picture), RED
    expected = answer(library, a + 0.5 * b)
    assert answer(library, 0.5 * b + a) == expected
    doubled = answer(library, 2 * (a + 0.5 * b))
    assert places(doubled) == places(expected)
    assert answer(library, 3 * b) == answer(library, b) == answer(library, b.text)


def test_weights_lead_from_one_term_to_the_other(library: Library) -> None:
    first, second = LikeMoment("film0", 2.0), LikeMoment("film1", 10.0)
    options = {"by": "visual"}
    for one, other in itertools.permutations((first, second)):
        best = answer(library, 50 * one + other, **options)[0]
        assert best.video_id == one.video_id and best.start <= one.time < best.end


def test_lines_count_by_their_share(library: Library) -> None:
    umbrella = Text("lighthouse umbrella")
    alone = answer(library, umbrella, by="subtitles")[0]
    half = answer(library, umbrella + RED, by="subtitles")[0]
    assert places([alone]) == places([half])
    assert half.score == pytest.approx(alone.score / 2)


# ---- sequences ---------------------------------------------------------------------------------------------


def test_a_sequence_finds_this_and_then_that(library: Library) -> None:
    query = LikeMoment("film0", 2.0).then(LikeMoment("film0", 20.0), gap=math.inf)
    best = answer(library, query, by="visual")[0]
    first, second = best.steps
    assert (best.video_id, best.start, best.end) == ("film0", first.start, second.end)
    assert first.start <= 2.0 < first.end and second.start <= 20.0 < second.end
    assert best.score == min(first.score, second.score)
    assert {step.rank for step in best.steps} == {best.rank}


def test_an_exclusion_compares_all_that_a_step_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the step is searched for once more, among the videos of the other."""
    everywhere, judged = answers.candidates, []

    def candidates(
        gatherer: Any, query: SearchQuery, rows: Any, segments: int = 1, **how: bool
    ) -> list[Candidate]:
        found = everywhere(gatherer, query, rows, segments, **how)
        away = rows is None and query in (RED, GREEN.without(Text("snow")))  # as in a library of thousands
        return [one for one in found if (one.row % 2 == 0) == (query is RED)] if away else found

    def factors(gatherer: Any, retrieval: Any, excluded: Any, found: list[Candidate]) -> Any:
        judged.append({one.row for one in found})
        return np.ones(len(found))

    monkeypatch.setattr(answers, "candidates", candidates)
    monkeypatch.setattr(answers, "_seen_factors", factors)
    assert answer(library, RED.then(GREEN.without("snow")), by="visual")
    assert judged == [{video.row for video in library.catalogue.videos() if video.frames is not None}]


def test_speech_may_be_a_step(library: Library) -> None:
    best = answer(library, Text("lighthouse umbrella").then("harbour winter"), by="subtitles")[0]
    assert [(step.start, step.end) for step in best.steps] == [(1.0, 3.0), (6.5, 8.0)]
    assert [step.source for step in best.steps] == ["subtitle", "subtitle"]
    assert not answer(library, Text("lighthouse umbrella").then("harbour winter", gap=3), by="subtitles")
    assert not answer(library, Text("harbour winter").then("lighthouse umbrella"), by="subtitles")


spans = st.tuples(st.integers(0, 40), st.integers(1, 10)).map(lambda p: Span(float(p[0]), float(p[0] + p[1])))
candidates = st.lists(
    st.builds(Candidate, st.integers(1, 2), spans, st.floats(0.01, 1), st.just("visual")), max_size=6
)


@given(candidates, candidates, st.sampled_from([0.0, 5.0, math.inf]))
def test_chains_against_all_pairs(first: list[Candidate], second: list[Candidate], gap: float) -> None:
    def follows(a: Candidate, b: Candidate) -> bool:
        apart = (
            a.span.end <= (b.span.start + b.span.end) / 2 and (a.span.start + a.span.end) / 2 <= b.span.start
        )
        return a.row == b.row and apart and b.span.start - a.span.end <= gap

    pairs = [(a, b) for a in first for b in second if follows(a, b)]
    found = chains([first, second], [gap])
    for chain in found:
        a, b = chain.steps
        assert (a, b) in pairs
        best = max(x.score for x, y in pairs if y is b)
        assert chain.score == min(best, b.score)
    assert bool(found) == bool(pairs)
    if pairs:
        assert max(c.score for c in found) == max(min(a.score, b.score) for a, b in pairs)
    for one, other in itertools.combinations(found, 2):
        assert one.row != other.row or one.span.iou(other.span) <= 0.5


def test_of_chains_that_overlap_the_one_with_more_matches_stays() -> None:
    opens = Candidate(1, Span(0, 2), 0.9, "visual")
    weak, close = (
        Candidate(1, Span(3, end), 0.9, "visual", match=match) for end, match in ((5, 0.1), (6, 0.3))
    )
    (chain,) = chains([[opens], [weak, close]], [60.0])
    assert chain.steps == (opens, close)
    assert chains([[], []], [60.0]) == []


def test_a_chain_says_what_its_words_are() -> None:
    said, written = (
        Candidate(1, Span(start, start + 2), 0.9, kind, "words", snippet_kind=kind)
        for start, kind in ((0, "subtitle"), (9, "text"))
    )
    seen = Candidate(1, Span(3, 5), 0.9, "visual")
    (two,) = chains([[said], [seen]], [60.0])
    (three,) = chains([[said], [seen], [written]], [60.0, 60.0])
    assert (two.snippet_kind, three.snippet_kind) == ("subtitle", "")


# ---- exclusions --------------------------------------------------------------------------------------------


def scores(moments: list[Moment]) -> dict[tuple[str, float, float], float]:
    return dict(zip(places(moments), (m.score for m in moments), strict=True))


def test_exclusions_count_where_only_a_part_is_searched(library: Library) -> None:
    """The middle of the speech is not in that part, but the moment overlaps it."""
    part = Filter.parse(where="0..1.9")
    (plain,) = answer(library, RED, videos=["film0"], filter=part, by="all")
    (without,) = answer(library, RED.without("umbrella"), videos=["film0"], filter=part)
    assert plain.end > 1 and without.score < plain.score / 4


def test_two_texts_that_are_said_together_stand_above_one(library: Library) -> None:
    for by in ("subtitles", "all"):
        together = answer(library, Text("umbrella") + "lighthouse", by=by)[0]
        apart = answer(library, Text("umbrella") + "harbour", by=by)[0]
        assert together.score > apart.score + 0.2


@pytest.mark.parametrize("models", ["untrained", "trained"])
def test_exclusions_only_lower_scores(library: Library, trained: Trained, models: str) -> None:
    if models == "trained":
        library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    plain = scores(answer(library, RED))
    other = LikeMoment("film1", 10.0)
    without = scores(answer(library, RED.without(other)))
    assert set(without) == set(plain)
    assert all(without[place] <= plain[place] + 1e-12 for place in plain)
    # Texts of one query are encoded in one batch, in half precision: kernels round a batch of two differently
    # from one text, by some millionths of a score.
    twice = scores(answer(library, RED.without(other, GREEN)))
    assert all(twice[place] <= without[place] + 1e-5 for place in plain)


def test_an_exclusion_lowers_most_where_it_is(library: Library) -> None:
    plain = scores(answer(library, RED, by="visual"))
    without = scores(answer(library, RED.without(LikeMoment("film1", 10.0)), by="visual"))
    kept = {place: without[place] / plain[place] for place in plain}
    there = [share for (video, start, end), share in kept.items() if video == "film1" and start <= 10 < end]
    assert max(there) < np.median(list(kept.values()))


def test_speech_can_be_excluded(library: Library) -> None:
    (before,) = answer(library, "lighthouse umbrella", by="subtitles")
    excluded = answer(
        library, Text("lighthouse umbrella").without("the keeper lost his umbrella"), by="subtitles"
    )
    assert excluded[0].score < 0.5 * before.score


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_factors_of_odds(score: float, factor: float, other: float) -> None:
    found = Candidate(1, Span(0, 1), score, "visual")
    once = with_odds_times(found, factor)
    assert 0 <= once.score <= score
    assert with_odds_times(found, 1.0).score == pytest.approx(score, abs=1e-9)
    assert with_odds_times(once, other).score == pytest.approx(
        with_odds_times(found, factor * other).score, abs=1e-6
    )


# ---- filters -----------------------------------------------------------------------------------------------


def test_filters_hold_for_every_kind(library: Library) -> None:
    filter = Filter(video_length=(None, 30.0))
    for query in (RED + GREEN, LikeMoment("film0", 2.0), RED.then(GREEN), RED.without(GREEN)):
        found = answer(library, query, filter=filter, by="visual")
        assert {m.video_id for m in found} == {"film1", "film2"}
        assert found == answer(library, query, videos=["film1", "film2"], by="visual")


def test_of_equal_chains_the_one_that_begins_first_stays() -> None:
    early, late, after = (
        Candidate(1, Span(start, start + 2), 0.9, "visual", match=0.5) for start in (0, 3, 6)
    )
    for first in ([early, late], [late, early]):
        (chain,) = chains([first, [after]], [60.0])
        assert chain.steps == (early, after)


@pytest.mark.parametrize(
    ("standing", "above"),
    [([-2.0, -1.0, 0.5], [0, 0, 0.5]), ([0.25, 0.5, 1.5], [0, 0, 1.0]), ([4.0, 3.0, 2.0], [3, 2, 1])],
)
def test_the_usual_score_of_an_exclusion_is_the_median_between_0_and_1(
    library: Library, monkeypatch: pytest.MonkeyPatch, standing: list[float], above: list[float]
) -> None:
    searcher = library._searcher
    gatherer = searcher._gatherer(searcher._viewer.view(), SearchOptions(by="visual"))
    gatherer = gatherer.prepare([RED])
    retrieval = gatherer.stages(RED)
    assert retrieval is not None
    monkeypatch.setattr(Cosines, "standing", lambda *_: np.array(standing))
    found = [Candidate(int(row), Span(0, 4), 0.5, "visual") for row in gatherer.view.features.keys]
    factors = answers._seen_factors(gatherer, retrieval, RED, found)
    assert factors == pytest.approx(np.exp(-np.array(above)))
