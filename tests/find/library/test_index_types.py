"""A library's type of index: chosen by size or by name, changed, tuned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import InvalidValue
from moviola.index import BACKENDS, RerankedIndex, TrainedIndex, load_index
from moviola.library import verify
from moviola.search import Library
from written_settings import in_format


def backend(library: Library, name: str = "segments") -> str:
    manifest = json.loads((library.folder / "index" / f"{name}.json").read_text())
    return str(manifest["backend"])


def test_a_small_library_is_searched_exactly(library: Library) -> None:
    assert library.settings.index == "auto"
    assert backend(library) == "flat"


def test_a_library_that_has_grown_gets_another_type(
    library: Library, opened: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = library.search("anything", top_k=50)
    monkeypatch.setattr("moviola.index._MANY", 5)
    monkeypatch.setattr("moviola.index._FEW", 3)
    again = opened()
    assert [moment.span for moment in again.search("anything", top_k=50)] == [m.span for m in expected]
    again.indexer.remove(["a"])
    assert backend(again) == "reranked"
    monkeypatch.setattr("moviola.index._FEW", 1000)
    again.indexer.remove(["b"])
    assert backend(again) == "flat"


@pytest.fixture
def longer(
    library: Library, films: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Library:
    """The library with a film more: enough segments to learn from, where that takes few."""
    monkeypatch.setattr(TrainedIndex, "LEAST", 16)
    film(films / "long.mp4", 60, seed=9)
    library.index(films)
    return library


def test_the_type_is_changed_and_stays(longer: Library, opened: Callable[..., Library]) -> None:
    library = longer
    expected = library.search("anything", top_k=5)
    library.indexer.use_index("reranked")
    assert backend(library) == "reranked"
    again = opened(read_only=True)
    assert again.settings.index == "reranked"
    found = again.search("anything", top_k=5)
    assert [moment.video_id for moment in found] == [moment.video_id for moment in expected]
    assert verify(again.store) == []
    again.close()
    assert opened().indexer.remove(["a"]) == ["a"]
    assert "a" not in {moment.video_id for moment in opened().search("anything", top_k=50)}
    with pytest.raises(InvalidValue, match="nosuch"):
        library.indexer.use_index("nosuch")


def test_a_library_of_an_earlier_version_stays_exact(
    library: Library, opened: Callable[..., Library]
) -> None:
    in_format(library.folder, 3, index="flat")
    expected = library.search("anything", top_k=20)
    assert opened().search("anything", top_k=20) == expected


def test_tuning_is_written_down(longer: Library) -> None:
    library = longer
    assert library.indexer.tune_index() == []
    library.indexer.use_index("reranked")
    trials = library.indexer.tune_index()
    assert trials
    assert all(set(trial.recall) == {"text", "picture"} for trial in trials)
    loaded = load_index(library.folder / "index", "segments", BACKENDS)
    assert loaded is not None
    assert isinstance(loaded[0], RerankedIndex)
    manifest = json.loads((library.folder / "index" / "segments.json").read_text())
    assert loaded[0].parameters == manifest["parameters"]
    assert manifest["parameters"] in [dict(trial.parameters) for trial in trials]
    np.testing.assert_allclose([min(t.recall.values()) for t in trials], 1)
