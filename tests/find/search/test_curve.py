"""The score curve of a video agrees with what a search says of its moments."""

from __future__ import annotations

import numpy as np
import pytest

from moviola.errors import NotFound
from moviola.search import Library, LikeMoment, Text


def test_there_is_a_score_for_every_clip(library: Library) -> None:
    times, scores = library.curve("a green wall", "film1")
    assert times.tolist() == [second + 0.5 for second in range(21)]
    assert scores.shape == (21,) and 0 <= scores.min() < scores.max() <= 1


def test_it_is_highest_at_the_moment_of_the_query(library: Library) -> None:
    times, scores = library.curve(LikeMoment("film1", 10.0), "film1")
    assert abs(times[int(scores.argmax())] - 10.5) <= 1.5


def test_moments_of_a_search_lie_where_it_is_high(library: Library) -> None:
    query = Text("a green wall")
    best = next(m for m in library.search(query, by="visual", top_k=50) if m.video_id == "film0")
    times, scores = library.curve(query, "film0")
    inside = (times > best.start) & (times < best.end)
    assert scores[inside].max() == pytest.approx(best.score, abs=0.35)
    assert scores[inside].mean() > scores[~inside].mean()


def test_speech_raises_it(library: Library) -> None:
    _, scores = library.curve("umbrella lighthouse", "film0")
    assert scores[1:3].min() > max(scores[:1].max(), scores[4:].max())


def test_a_sequence_takes_the_better_step(library: Library) -> None:
    _, first = library.curve("a green wall", "film0")
    _, second = library.curve("harbour in winter", "film0")
    _, both = library.curve(Text("a green wall").then("harbour in winter"), "film0")
    # Two texts in one batch have other last bits than each alone, and vectors of queries are kept in halves.
    np.testing.assert_allclose(both, np.maximum(first, second), rtol=2e-3)


def test_an_exclusion_only_lowers_it(library: Library) -> None:
    _, plain = library.curve("a green wall", "film0")
    _, lowered = library.curve(Text("a green wall").without("harbour"), "film0")
    assert (lowered <= plain + 1e-12).all() and (lowered < plain).any()


def test_an_unknown_video_is_named(library: Library) -> None:
    with pytest.raises(NotFound, match="film9"):
        library.curve("a wall", "film9")
