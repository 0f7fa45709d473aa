"""From drawn queries to judgements: splits, candidates, Label Studio there and back, second batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.datasets.annotations import Annotations, Collector
from moviola.datasets.building.annotation_files import read_pairs, write_judgements, write_pairs
from moviola.datasets.building.consensus import Rating, consensus
from moviola.datasets.building.labelstudio import (
    GUIDELINE,
    LABEL_CONFIG,
    Pair,
    candidate_pairs,
    next_pairs,
    ratings_of,
    tasks,
)
from moviola.datasets.building.pseudo import Candidates
from moviola.datasets.building.splits import draw_queries
from moviola.datasets.readers import read_tvr, read_tvr_ranking, write_tvr
from moviola.errors import DataError, InvalidValue


def moments(count: int, duration: float = 100.0) -> Annotations:
    found = Collector("test")
    found.add_video("v", duration)
    for place in range(count):
        found.add("v", place, place + 1.5, f'Caption {place}, "quoted".', moment_id=f"m{place}", type="v")
    return found.made()


def pairs(queries: int = 2, depth: int = 40) -> list[Pair]:
    order = np.tile(np.arange(depth), (queries, 1))
    similarity = np.tile(np.linspace(1, -0.5, depth, dtype=np.float32), (queries, 1))
    return candidate_pairs(
        {str(n): f"Query {n}?" for n in range(queries)}, moments(depth), Candidates(order, similarity)
    )


def export(path: Path, levels: dict[str, list[int]]) -> Path:
    """What Label Studio exports after people chose these levels."""
    made: list[dict[str, Any]] = tasks(pairs())
    for task in made:
        task["annotations"] = [
            {
                "completed_by": worker if worker else {"id": 0, "email": "a@b"},
                "was_cancelled": False,
                "result": [{"from_name": "relevance", "value": {"choices": [str(level)]}}],
            }
            for worker, level in enumerate(levels.get(task["data"]["pair_id"], []))
        ] + [{"completed_by": 9, "was_cancelled": True, "result": []}]
    path.write_text(json.dumps(made))
    return path


def test_pairs_are_ranked_in_two_batches(tmp_path: Path) -> None:
    made = pairs()
    assert [pair.batch for pair in made[:40]] == [1] * 20 + [2] * 20
    assert made[0].pair_id == "0:m0" and made[0].rank == 1
    write_pairs(made, tmp_path / "pairs.csv")
    assert read_pairs(tmp_path / "pairs.csv") == made
    damaged = (tmp_path / "pairs.csv").read_text().replace("1.0,1\n", "much,1\n", 1)
    (tmp_path / "pairs.csv").write_text(damaged)
    with pytest.raises(DataError, match="line 2: similarity: 'much'"):
        read_pairs(tmp_path / "pairs.csv")


def test_tasks_hide_captions_and_show_every_level() -> None:
    task = tasks(pairs(), "https://films/{video_name}.mp4#t={start},{end}")[1]["data"]
    assert task["video"] == "https://films/v.mp4#t=1.0,2.5"
    assert task["query"] == "Query 0?" and "Caption" not in json.dumps(task)
    assert all(f'value="{level}"' in LABEL_CONFIG for level in GUIDELINE)


def test_ratings_come_back(tmp_path: Path) -> None:
    given = ratings_of(export(tmp_path / "e.json", {"0:m0": [3, 4], "1:m5": [0]}))
    assert given == [Rating("0:m0", "a@b", 3), Rating("0:m0", "1", 4), Rating("1:m5", "a@b", 0)]
    assert consensus(given).agreed == {"0:m0": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["data"].pop("pair_id"), "task 1: data.pair_id is missing"),
        (lambda t: t["annotations"][0].update(result=[]), "task 1: relevance: one level"),
        (lambda t: t["annotations"][0].pop("completed_by"), "task 1: completed_by is missing"),
        (lambda t: t["annotations"][0]["result"][0]["value"].update(choices=["5"]), "one level from 0 to 4"),
    ],
)
def test_damaged_exports_are_named(tmp_path: Path, change: Any, message: str) -> None:
    path = export(tmp_path / "e.json", {"0:m0": [3, 4]})
    content = json.loads(path.read_text())
    change(content[0])
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        ratings_of(path)


def test_only_queries_that_end_relevant_get_a_second_batch() -> None:
    agreed = {pair.pair_id: 3 if pair.query_id == "0" else 1 for pair in pairs() if pair.batch == 1}
    second = next_pairs(pairs(), agreed)
    assert {pair.query_id for pair in second} == {"0"}
    assert [pair.rank for pair in second] == list(range(21, 41))
    assert next_pairs(pairs(), agreed, threshold=3.5) == []
    assert next_pairs(pairs(), {}) == []


def test_judgements_are_read_as_a_ranked_set(tmp_path: Path) -> None:
    assert write_judgements(pairs(), {"0:m0": 4, "1:m3": 0}, tmp_path / "val.json") == 2
    content = json.loads((tmp_path / "val.json").read_text())
    assert [(entry["query_id"], entry["relevant_moment"][0]["relevance"]) for entry in content] == [
        ("0", 4),
        ("1", 0),
    ]
    assert len(read_tvr_ranking(tmp_path / "val.json")) == 2


def test_splits_share_no_text() -> None:
    captions = [f"Caption {n % 30}" for n in range(60)]
    splits = draw_queries(captions, {"val": 5, "test": 20}, seed=3)
    val, test = (set(splits[name].values()) for name in ("val", "test"))
    assert len(val) == 5 and len(test) == 20 and not val & test
    assert not splits["val"].keys() & splits["test"].keys()
    assert draw_queries(captions, {"val": 5, "test": 20}, seed=3) == splits
    assert draw_queries(captions, {"val": 5, "test": 20}, seed=4) != splits
    with pytest.raises(InvalidValue, match="31 queries of 30"):
        draw_queries(captions, {"val": 31}, seed=0)


def test_the_common_form_is_read_back(tmp_path: Path) -> None:
    made = moments(3)
    write_tvr(made, tmp_path / "a.jsonl")
    again = read_tvr(tmp_path / "a.jsonl")
    assert (again.captions, again.moment_ids, again.types) == (made.captions, made.moment_ids, made.types)
    np.testing.assert_array_equal(again.end, made.end)
    with pytest.raises(InvalidValue, match="v: its duration is unknown"):
        write_tvr(moments(1, float("nan")), tmp_path / "b.jsonl")
