"""What the benchmark of scores counts: moments by band, of queries that were labelled by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moviola.types import Moment, Span

NO_MATCH = Path(__file__).resolve().parents[3] / "benchmarks" / "no_match"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(NO_MATCH))
    import bands
    import labels

    return bands, labels


def found(start: float, end: float, score: float, video_id: str = "film") -> Moment:
    return Moment(video_id, start, end, score, 1)


def test_figures_by_hand(modules: Any) -> None:
    """Unclear moments count neither way, those below .05 not in the error; a share is of the right whole."""
    bands, labels = modules
    dog, cat = (
        labels.Scene(name, name, "film", Span(begin, begin + 10)) for name, begin in (("dog", 0), ("cat", 20))
    )
    queries = [
        labels.LabelledQuery("noun", "a dog", (dog,), (cat,)),
        labels.LabelledQuery("noun", "a cat", (cat,)),
        labels.LabelledQuery("absent", "a whale", ()),
    ]
    answers = [
        [found(1, 4, 0.9), found(21, 22, 0.8), found(12, 14, 0.3)],
        [found(40, 44, 0.6), found(25, 35, 0.25), found(20, 30, 0.25, "other")],
        [found(0, 9, 0.7), found(0, 1, 0.01)],
    ]
    figures = bands.figures(bands.judged(queries, answers))
    shares = {name: value[0] if isinstance(value, list) else value for name, value in figures.items()}
    assert shares == {
        "queries": 3, "moments": 7, "promised": 3.0, "right": 2,
        "reciprocal rank": 0.75,
        "calibration error": pytest.approx((0.1 + 0.6 + 0.7 + 0.3 + 2 * 0.25) / 6, abs=1e-4),
        "strong": 3, "strong right": 0.333, "answerable with a strong right": 0.5,
        "absent with a strong": 1.0, "possible": 3, "strong or possible right": 0.333,
        "answerable with a possible right": 1.0, "absent with a possible": 1.0, "weak": 1, "weak right": 0,
    }  # fmt: skip
    nothing = bands.figures(bands.judged(queries[2:], [[]]))
    assert nothing["strong right"] is None and nothing["absent with a strong"][0] == 0


def test_every_label_is_of_a_scene(modules: Any) -> None:
    """A right half of the shorter one makes a moment right; each kind of query has some."""
    _, labels = modules
    kinds = {query.kind for query in labels.labelled()}
    assert {"noun", "phrase", "sentence", "deed", "place", "style", "absent", "nonsense"} <= kinds
    for query in (*labels.labelled(), *labels.labelled("written.csv"), *labels.earlier()):
        assert not (query.right and query.kind in labels.NO_ANSWER), query.text
    scene = labels.Scene("dog", "dog", "film", Span(10, 20))
    assert (
        scene.is_in(found(15, 25, 0.5)) and scene.is_in(found(12, 13, 0.5)) and scene.is_in(found(0, 99, 0))
    )
    assert not scene.is_in(found(16, 26, 0.5)) and not scene.is_in(found(10, 20, 0.5, "other"))
