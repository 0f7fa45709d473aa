"""Table 3, Table 4's relevant moments and Figure 4 on data small enough to count by hand; subtitles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from measure_studies.judged_pairs import (
    caption_changes,
    read_judged,
    relevance_by_similarity,
    replacements,
)
from measure_studies.judgements import rating_study, relevance_study
from moviola.cli import all_commands
from moviola.errors import DataError, InvalidValue
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.annotation_files import read_ratings
from moviola.study.datasets.readers import read_tvr

app = all_commands()

LEVELS = [[4, 3, 0], [2, 2, 1]]
COSINES = [[1.0, 0.8, 0.2], [0.9, 0.7, 0.5]]


@pytest.fixture
def judged_file(tmp_path: Path) -> Path:
    entries = [
        {
            "query_id": q,
            "query": f"a man {q}",
            "relevant_moment": [
                {"pair_id": m, "video_name": "v", "timestamp": [m, m + 1], "duration": 9, "caption": "c",
                 "similarity": COSINES[q][m], "relevance": LEVELS[q][m]}
                for m in range(3)
            ],
        }
        for q in range(2)
    ]  # fmt: skip
    path = tmp_path / "val.json"
    path.write_text(json.dumps(entries))
    return path


def test_replacing_words_are_counted_without_articles() -> None:
    found = replacements(
        [
            ("Joey sees the cat.", "A man sees the cat."),
            ("Ross's man and Monica walk.", "A man's man and a woman walk."),
            ("Ann and Bob sit.", "Two people sit."),
        ]
    )
    assert [(one.word, one.count, one.gender) for one in found] == [
        ("man", 2, "M"),
        ("people", 1, "N"),
        ("two", 1, "N"),
        ("woman", 1, "F"),
    ]


def test_relevance_by_similarity(judged_file: Path) -> None:
    judged = read_judged(judged_file)
    assert judged.relevant_per_query == 2.5
    table = relevance_by_similarity(judged, bins=2)
    assert table.edges.tolist() == pytest.approx([0.2, 0.6, 1.0])
    assert table.counts.tolist() == [[1, 0], [1, 0], [0, 2], [0, 1], [0, 1]]
    assert table.means.tolist() == [0.5, 2.75]
    assert table.by_rank.tolist() == [3.0, 2.5, 0.5]
    expected = spearmanr(np.ravel(COSINES), np.ravel(LEVELS)).statistic
    assert table.rank_correlation == pytest.approx(expected)


def test_figure_4_has_the_pairs_of_its_queries(judged_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'moviola[studies]'")
    made = relevance_study(read_judged(judged_file))
    expected = [
        {"query": str(q), "similarity": COSINES[q][m], "rank": m + 1, "relevance": LEVELS[q][m]}
        for q in range(2)
        for m in range(3)
    ]
    assert [dict(zip(made.header, row, strict=True)) for row in made.rows] == expected
    assert [file.suffix for file in made.write(tmp_path)] == [".csv", ".png", ".svg"]
    one = relevance_study(read_judged(judged_file), queries=1)
    assert len({row[0] for row in one.rows}) == 1 and len(one.rows) == 3


def test_figure_5_has_every_pair_once(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'moviola[studies]'")
    raw = tmp_path / "raw.csv"
    given = {"a": [0, 1], "b": [0, 4, 3, 3], "c": [2, 2], "d": [4], "e": [0, 0, 2, 4]}
    rows = [f"{pair},w{n},{level}" for pair, levels in given.items() for n, level in enumerate(levels)]
    raw.write_text("pair_id,worker,relevance\n" + "\n".join(rows) + "\n")
    made = rating_study(read_ratings(raw))
    found = [dict(zip(made.header, row, strict=True)) for row in made.rows]
    spread = {(r["lowest"], r["highest"]): r["share"] for r in found if r["part"] == "ratings" and r["pairs"]}
    assert spread == {(0, 1): 0.25, (0, 4): 0.5, (2, 2): 0.25}
    final = {r["lowest"]: r["pairs"] for r in found if r["part"] == "final"}
    assert final == {0: 0, 1: 1, 2: 1, 3: 1, 4: 0}


def test_a_level_that_is_none_is_refused(judged_file: Path) -> None:
    assert read_judged(judged_file).relevant_per_query == 2.5
    judged_file.write_text(judged_file.read_text().replace('"relevance": 4', '"relevance": 5'))
    with pytest.raises(DataError, match="entry 1, moment 1: relevance: 5 is no level"):
        read_judged(judged_file)


def test_ranked_sets_count_their_own_queries(judged_file: Path) -> None:
    run = CliRunner().invoke(app, ["dataset", "stats", str(judged_file), "--json"])
    assert run.exit_code == 0, run.output
    figures = json.loads(run.stdout)
    assert (figures["queries"], figures["moments"]) == (2, 3)


def tvr(path: Path, captions: dict[int, str]) -> Annotations:
    rows = [
        {"vid_name": "v", "duration": 60, "ts": [n, n + 2], "desc_id": n, "desc": caption}
        for n, caption in captions.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_tvr(path)


def test_changes_are_joined_by_moment(tmp_path: Path) -> None:
    before = tvr(tmp_path / "before", {1: "Ross sits.", 2: "Rachel waves.", 3: "Joey eats."})
    after = tvr(tmp_path / "after", {3: "A man eats.", 1: "A man sits."})
    assert caption_changes(before, after) == [("Joey eats.", "A man eats."), ("Ross sits.", "A man sits.")]
    with pytest.raises(InvalidValue, match="no moment id is in both"):
        caption_changes(before, tvr(tmp_path / "other", {9: "A dog."}))
