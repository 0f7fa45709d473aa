"""From drawn queries to judgements: splits, candidates, second batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.encoders import load_sentence_encoder
from moviola.errors import DataError, InvalidValue
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.building.annotation_files import read_pairs, write_judgements, write_pairs
from moviola.study.datasets.building.candidate_pairs import Pair, draw_queries, next_pairs
from moviola.study.datasets.building.steps import find_candidates
from moviola.study.datasets.readers import read_tvr, read_tvr_ranking, write_tvr


def moments(count: int, duration: float = 100.0) -> Annotations:
    found = Collector("test")
    found.add_video("v", duration)
    for place in range(count):
        found.add("v", place, place + 1.5, f'Caption {place}, "quoted".', moment_id=f"m{place}", type="v")
    return found.made()


class Falling:
    """Caption n is less similar to every query than caption n - 1: from 1 down to -0.5 for the last."""

    def __init__(self, depth: int) -> None:
        self.cosines = np.linspace(1, -0.5, depth, dtype=np.float32)

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        places = [0 if text.startswith("Query") else int(text.split()[1].strip(",")) for text in texts]
        return np.stack([self.cosines[places], np.sqrt(1 - self.cosines[places] ** 2)], axis=1)


def pairs(queries: int = 2, depth: int = 40) -> list[Pair]:
    texts = {str(n): f"Query {n}?" for n in range(queries)}
    return find_candidates(texts, moments(depth), Falling(depth), depth)


def test_further_candidates_are_drawn_from_the_others() -> None:
    """TVR-Ranking's Figure 4: the nearest, and as many of the rest by chance, at their own ranks."""
    texts = {str(n): f"Query {n}?" for n in range(2)}
    found = find_candidates(texts, moments(200), Falling(200), 60, drawn=60, seed=1)
    for query in texts:
        own = [pair for pair in found if pair.query_id == query]
        assert [pair.rank for pair in own[:60]] == list(range(1, 61))
        assert [pair.pair_id for pair in own] == [f"{query}:m{pair.rank - 1}" for pair in own]
        ranks = [pair.rank for pair in own[60:]]
        assert ranks == sorted(set(ranks)) and len(ranks) == 60 and ranks[0] > 60
        assert ranks[-1] > 150  # from all of the rest
    first, second = ([p.rank for p in found if p.query_id == query][60:] for query in texts)
    assert first != second
    assert found == find_candidates(texts, moments(200), Falling(200), 60, drawn=60, seed=1)
    with pytest.raises(InvalidValue, match="at most the 40 others"):
        find_candidates(texts, moments(100), Falling(100), 60, drawn=41)


def test_pairs_are_ranked_in_two_batches(tmp_path: Path) -> None:
    made = pairs()
    assert [pair.batch for pair in made[:40]] == [1] * 20 + [2] * 20
    assert made[0].pair_id == "0:m0" and made[0].rank == 1
    write_pairs(made, tmp_path / "pairs.csv")
    assert read_pairs(tmp_path / "pairs.csv") == made
    without = [replace(pair, caption="") for pair in made]
    write_pairs(without, tmp_path / "without.csv")
    assert read_pairs(tmp_path / "without.csv") == without
    damaged = (tmp_path / "pairs.csv").read_text().replace("1.0,1\n", "much,1\n", 1)
    (tmp_path / "pairs.csv").write_text(damaged)
    with pytest.raises(DataError, match="line 2: similarity: 'much'"):
        read_pairs(tmp_path / "pairs.csv")


def test_only_queries_that_end_relevant_get_a_second_batch() -> None:
    agreed = {pair.pair_id: 3 if pair.query_id == "0" else 1 for pair in pairs() if pair.batch == 1}
    second = next_pairs(pairs(), agreed)
    assert {pair.query_id for pair in second} == {"0"}
    assert [pair.rank for pair in second] == list(range(21, 41))
    assert next_pairs(pairs(), agreed, threshold=3.5) == []
    assert next_pairs(pairs(), {}) == []


@pytest.mark.parametrize("rank", ["0", "-1", "1.5"])
def test_a_pair_of_no_batch_is_refused(tmp_path: Path, rank: str) -> None:
    """It would be in neither batch, and never judged."""
    pair = Pair("p", "q", "A query", "v", 0.0, 1.0, 9.0, "c", 0.5, 1)
    write_pairs([pair], tmp_path / "pairs.csv")
    text = (tmp_path / "pairs.csv").read_text()
    (tmp_path / "pairs.csv").write_text(text.rstrip().removesuffix("1") + rank + "\n")
    with pytest.raises(DataError, match=r"line 2.*rank"):
        read_pairs(tmp_path / "pairs.csv")


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
    with pytest.raises(InvalidValue, match="give at least 0"):
        draw_queries(captions, {"val": -1, "test": 2}, seed=0)
    with pytest.raises(InvalidValue, match="seed -1"):
        draw_queries(captions, {"val": 1}, seed=-1)


def test_the_common_form_is_read_back(tmp_path: Path) -> None:
    made = moments(3)
    write_tvr(made, tmp_path / "a.jsonl")
    again = read_tvr(tmp_path / "a.jsonl")
    assert (again.captions, again.moment_ids, again.types) == (made.captions, made.moment_ids, made.types)
    np.testing.assert_array_equal(again.end, made.end)
    with pytest.raises(InvalidValue, match="v: its duration is unknown"):
        write_tvr(moments(1, float("nan")), tmp_path / "b.jsonl")


def test_candidates_need_durations() -> None:
    with pytest.raises(InvalidValue, match="its duration is unknown"):
        find_candidates({"1": "q"}, moments(2, float("nan")), load_sentence_encoder(), 2)


def test_candidates_need_different_ids(tmp_path: Path) -> None:
    """Files that `moviola dataset convert` numbered from 1, joined."""
    write_tvr(replace(moments(2), moment_ids=("1", "2")), tmp_path / "a.jsonl")
    (tmp_path / "both.jsonl").write_text((tmp_path / "a.jsonl").read_text() * 2)
    joined = read_tvr(tmp_path / "both.jsonl")
    with pytest.raises(InvalidValue, match="TVR: moment 1 is given 2 times; give each an id"):
        find_candidates({"1": "Query?"}, joined, Falling(2), 2)


def test_a_pair_id_given_twice_is_refused(tmp_path: Path) -> None:
    write_pairs([*pairs(1, 2), *pairs(1, 1)], tmp_path / "pairs.csv")
    with pytest.raises(DataError, match=r"pairs\.csv: line 4: pair_id 0:m0 is given twice"):
        read_pairs(tmp_path / "pairs.csv")
