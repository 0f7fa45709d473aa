"""`search` on a library, and `answer` on its features, read or exported: equal moments and scores.

What else is asked, and in which order, changes neither, to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.features import FeatureFolder
from moviola.library import LibrarySource, LibraryStore, export_features
from moviola.search import Library
from moviola.study.measures import Run
from moviola.study.training.answering import answer
from moviola.types import Moment, Query

Trained = Callable[..., Path]
TEXTS = ("a red square", "the umbrella of the lighthouse keeper", "something green moves to the left")
CALIBRATED = {"calibration": {"slope": 0.25, "intercept": -0.5, "answers": 40, "right": 10}}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "reel": ("reel", {}),
    "reel without subtitles": ("reel", {"subtitle_size": 0}),
    "reel that reads cuts": ("reel", {"cuts": True}),
    "spr-clip": ("spr-clip", {}),
    "spr-relo": ("reloclnet", {}),
    "spr-relo, padded as in its release": ("reloclnet", {"reference_padding": True}),
    "spr-relo, padded, longer ones pooled": ("reloclnet", {"reference_padding": True, "max_clips": 16}),
}
RECIPES = {"reloclnet": "spr-relo"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A pair file with the queries; whatever moments it names, all videos are searched."""
    moment = {"video_name": "film0", "timestamp": [0, 4], "duration": 34, "caption": "c", "relevance": 1}
    rows = [
        {"query_id": number, "query": text, "relevant_moment": [moment]} for number, text in enumerate(TEXTS)
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(rows))
    return path


def searched(library: Library, **options: Any) -> dict[str, list[tuple[str, float, float, float]]]:
    queries = [Query(str(number), text) for number, text in enumerate(TEXTS)]
    found = library.search_many(queries, top_k=1000, by="visual", **options)
    return {
        query.query_id: [(m.video_id, m.start, m.end, m.score) for m in moments]
        for query, moments in zip(queries, found, strict=True)
    }


def require_same(expected: dict[str, list[tuple[str, float, float, float]]], run: Run) -> None:
    """The same moments in the same order, and the same scores but for the rounding of compiled graphs.

    Encodings of clips are kept in half precision: one that lies at the border of two halves may fall to
    either side, half a thousandth of its value (2^-11) apart. Scores, which are probabilities, may differ so.
    """
    assert set(run.query_ids) == set(expected)
    for query, rows in run.rows().items():
        assert [(m["video_id"], m["start"], m["end"]) for m in rows] == [row[:3] for row in expected[query]]
        np.testing.assert_allclose(
            [m["score"] for m in rows], [row[3] for row in expected[query]], rtol=1e-3, atol=5e-4
        )


@pytest.mark.parametrize("calibrated", [True, False], ids=["calibrated", "by chance"])
@pytest.mark.parametrize("name", MODELS)
def test_refined_moments(
    library: Library, trained: Trained, pairs: Path, tmp_path: Path, name: str, calibrated: bool
) -> None:
    architecture, changes = MODELS[name]
    stage1 = trained("spr-stage1")
    model = trained(architecture, extra=CALIBRATED if calibrated else {}, **changes)
    library.indexer.use(stage1=stage1, refiner=model)
    expected = searched(library)
    assert all(len(moments) >= 3 for moments in expected.values())
    options: dict[str, Any] = {
        "stage1": stage1, "as_search": True, "recipe_name": RECIPES.get(architecture, architecture),
    }  # fmt: skip
    with LibraryStore(library.folder, read_only=True) as store:
        require_same(expected, answer(model, LibrarySource(store), pairs, **options).run)
        export_features(store, TEXTS, tmp_path / "exported")
    require_same(expected, answer(model, FeatureFolder.open(tmp_path / "exported"), pairs, **options).run)


@pytest.mark.parametrize("architecture", ["spr-stage1", "reel-stage1"])
def test_coarse_moments(
    library: Library, trained: Trained, pairs: Path, tmp_path: Path, architecture: str
) -> None:
    stage1 = trained(architecture)
    library.indexer.use(stage1=stage1)
    expected = searched(library, refine=False)
    export_features(library.store, TEXTS, tmp_path / "exported")
    for source in (LibrarySource(library.store), FeatureFolder.open(tmp_path / "exported")):
        require_same(expected, answer(stage1, source, pairs, as_search=True).run)


@pytest.mark.parametrize(
    ("stage1", "refiner"), [("spr-stage1", "reloclnet"), ("reel-stage1", "spr-clip"), ("spr-stage1", "reel")]
)
def test_queries_before_or_beside_change_no_bit(
    library: Library, trained: Trained, stage1: str, refiner: str
) -> None:
    """Windows are encoded when first asked for, and kept: padded to the longest of their batch, those of one
    query differed by whether another one had asked before.
    """
    library.indexer.use(stage1=trained(stage1), refiner=trained(refiner))
    queries = [Query(text, text) for text in (*TEXTS, "blue", "two yellow circles above a wall of stone")]

    def found(asked: list[Query], at_once: bool) -> list[list[Moment]]:
        with Library(library.folder, read_only=True) as opened:
            if at_once:
                return [list(moments) for moments in opened.search_many(asked, top_k=1000)]
            return [list(opened.search_many([query], top_k=1000)[0]) for query in asked]

    alone = {query.text: found([query], True)[0] for query in queries}
    assert all(len(moments) >= 3 for moments in alone.values())
    for order, at_once in ((queries, False), (queries[::-1], False), (queries * 8, True)):
        assert found(order, at_once) == [alone[query.text] for query in order]
