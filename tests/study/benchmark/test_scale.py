"""Types of index compared at sizes that are chosen: what is made, measured, kept and reported."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.encoders import load_encoder
from moviola.errors import InvalidValue
from moviola.index import FlatIndex
from random_models import random_clip, text_tower
from scale import measured as measuring
from scale.corpus import MEASURES, made_corpus, ndcg, real_corpus
from scale.plan import PRESETS, Preset, chosen
from scale.report import write_scale_report
from scale.run import ScaleBench, run_scale
from scale.vectors import made_queries, made_segments
from toy_world import MANY_EVENTS, toy_world

TINY = Preset(
    (1500,), ("flat", "reranked"), query_segments=1500, dim=32, queries=5, timed=2, rounds=1, refined=0
)


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "alone", lambda do, *inputs: do(*inputs))


def test_a_small_library_is_the_beginning_of_a_large_one(tmp_path: Path) -> None:
    small = np.array(made_segments(tmp_path / "a.npy", 300, 16))
    large = made_segments(tmp_path / "a.npy", 12_000, 16)
    np.testing.assert_array_equal(large[:300], small)
    np.testing.assert_allclose(np.linalg.norm(large, axis=1), 1, atol=1e-5)
    before = (tmp_path / "a.npy").stat().st_mtime_ns
    assert len(made_segments(tmp_path / "a.npy", 500, 16)) == 500
    assert (tmp_path / "a.npy").stat().st_mtime_ns == before


def test_texts_lie_off_all_segments(tmp_path: Path) -> None:
    segments = made_segments(tmp_path / "a.npy", 2000, 256)
    queries = made_queries(segments, 20)
    best = {kind: (asked @ segments.T).max(axis=1) for kind, asked in queries.items()}
    assert best["text"].max() < 0.5 < best["picture"].min()


def test_exact_answers_have_the_best_ndcg_and_others_less(tmp_path: Path) -> None:
    corpus = made_corpus(tmp_path, TINY, 1500)
    flat = FlatIndex(32)
    flat.build(corpus.ids, corpus.segments)
    scores, ids = flat.search(corpus.queries["text"], 200)
    exact = corpus.proposals(scores, ids)
    assert set(ndcg(corpus, exact, exact).values()) == {1.0}
    worse = corpus.proposals(scores[:, :100], np.roll(ids, 40, axis=1)[:, :100])
    values = ndcg(corpus, worse, exact)
    assert set(values) == set(MEASURES)
    assert 0 < max(values.values()) < 0.9


@pytest.mark.usefixtures("_in_this_process")
def test_pieces_that_are_done_are_kept_until_they_are_asked_for_again(tmp_path: Path) -> None:
    bench, notes = ScaleBench(tmp_path, TINY), list[str]()
    run_scale(bench, note=notes.append)
    assert notes == ["1/2 1500 segments, flat", "2/2 1500 segments, reranked"]
    flat, reranked = bench.results()
    assert flat["recall"] == {"picture": 1.0, "text": 1.0}
    assert min(reranked["recall"].values()) > 0.95
    assert reranked["bytes"]["ranked"] == 2 * 32
    assert reranked["segments"] == 1500

    bench.result_file(1500, "reranked").unlink()
    notes.clear()
    run_scale(bench, note=notes.append)
    assert notes == ["2/2 1500 segments, reranked"]
    indexes = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.faiss")}
    run_scale(bench, again=True, note=notes.append)
    assert len(notes) == 3
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.faiss")} == indexes

    with pytest.raises(InvalidValue, match="other settings"):
        run_scale(ScaleBench(tmp_path, replace(TINY, queries=6)))


@pytest.mark.usefixtures("_in_this_process")
def test_a_report_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="nothing measured"):
        write_scale_report(ScaleBench(tmp_path, TINY), tmp_path / "report")
    run_scale(ScaleBench(tmp_path, TINY))
    path = write_scale_report(ScaleBench(tmp_path, replace(TINY, sizes=(1500, 9000))), tmp_path / "report")
    text = path.read_text()
    assert "Not measured: flat of 9,000, reranked of 9,000." in text
    assert "| 1,500 | reranked |" in text
    assert {"search.csv", "ndcg.csv", "latency.png", "ndcg.png"} <= {
        each.name for each in path.parent.iterdir()
    }


@pytest.mark.usefixtures("_in_this_process")
def test_growth_is_reported_for_libraries_searched_in_turn(tmp_path: Path) -> None:
    bench = ScaleBench(tmp_path, replace(TINY, sizes=(1500, 2500)))
    run_scale(bench)
    for result in bench.results():
        growth = result["growth"]
        assert growth.pop("segments", None) == (1500 if result["segments"] == 2500 else None)
        assert set(growth) == ({"picture", "text"} if result["segments"] == 2500 else set())
        assert all(set(times) == {"own", "smallest"} for times in growth.values())
    write_scale_report(bench, tmp_path / "report")
    with (tmp_path / "report" / "growth.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[:3] for row in rows] == [[kind, "1,500 to 2,500", "1.67"] for kind in ("flat", "reranked")]
    assert all(float(cell) > 0 for row in rows for cell in row[3:5])


@pytest.mark.usefixtures("_in_this_process")
def test_real_features_are_searched_with_their_own_queries(tmp_path: Path) -> None:
    world = toy_world(60, events=MANY_EVENTS)
    world.write_features(tmp_path / "features")
    corpus = real_corpus(tmp_path / "work", tmp_path / "features", 5)
    assert len(corpus.segments) == len(corpus.ids) == len(np.unique(corpus.ids))
    assert {kind: len(queries) for kind, queries in corpus.queries.items()} == {"picture": 5, "text": 5}
    bench = ScaleBench(tmp_path / "work", TINY, tmp_path / "features")
    run_scale(bench)
    assert [result["made"][:5] for result in bench.results()] == ["real:", "real:"]
    with pytest.raises(InvalidValue, match="give 200 segments"):
        few = toy_world(2)
        few.write_features(tmp_path / "few")
        real_corpus(tmp_path / "work2", tmp_path / "few", 5)


@pytest.mark.parametrize(
    ("preset", "sizes", "types", "message"),
    [
        ("large", (), (), "preset 'large'"), ("small", (199,), (), "199 segments"),
        ("small", (), ("flot",), "type 'flot'"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(
    preset: str, sizes: tuple[int, ...], types: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        chosen(preset, sizes, types)


def test_sizes_and_types_can_be_chosen() -> None:
    found = chosen("paper", (500, 300), ("flat",))
    assert found == replace(PRESETS["paper"], sizes=(300, 500), types=("flat",))


def test_a_text_tower_of_any_width_encodes(tmp_path: Path) -> None:
    encoder = load_encoder(str(random_clip(tmp_path / "encoder", **text_tower(64))))
    found = encoder.encode_text(["a man with a camera"])
    assert np.atleast_2d(found[0]).shape[-1] == 64


SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "compare_indexes.py"


@pytest.mark.long(2)
def test_the_small_preset_by_the_command_line(tmp_path: Path) -> None:
    def compare(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, SCRIPT, "--preset", "small", *words, "--json"],
            cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    found = compare("--work", "bench", "--out", "report")
    assert [piece["piece"] for piece in found["pieces"]] == ["flat", "ivf", "ivfpq", "reranked", "stages"] * 2
    text = (tmp_path / "report" / "report.md").read_text()
    for title in ("One query", "A batch", "NDCG of coarse", "What it takes", "Growth", "Stages of one query"):
        assert f"## {title}" in text
    assert "Reel (ours), flat" in text
