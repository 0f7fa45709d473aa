"""``moviola judge``: from a library and a file of queries to judgements that ``moviola evaluate`` reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Outcome
from moviola import Library
from moviola.search import Marked, MarkedMoment
from moviola.study.judging import JudgingTask

Moviola = Callable[..., Outcome]


@pytest.fixture(scope="module")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two films, indexed; not to be changed."""
    folder = tmp_path_factory.mktemp("judged") / "library"
    with Library(folder, encoder="demo", sentence_encoder="minilm") as opened:
        opened.index(films / "harbour.mp4", films / "street.mp4")
    return folder


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """Three queries, one per line."""
    (tmp_path / "queries.txt").write_text("an umbrella is gone\na robot\na red door\n")
    return tmp_path / "queries.txt"


def judge(path: Path, rater: str, level: Callable[[str], int]) -> None:
    task = JudgingTask(path)
    task.sign_in(rater)
    while batch := task.next_batch(rater):
        for moment in batch.moments:
            if moment.level is None:
                task.answer(rater, moment.pair_id, level(moment.video_id))
    task.close()


def test_from_queries_to_an_evaluation(
    moviola: Moviola, library: Path, queries: Path, tmp_path: Path
) -> None:
    task, run = tmp_path / "task.sqlite", tmp_path / "other.json"
    assert moviola("answer", queries, "--out", run, "-l", library, "--top-k", 5).code == 0
    made = moviola(
        "judge", "new", "-l", library, queries, "--out", task, "--run", run, "--depth", 4, "--json"
    )
    assert made.code == 0, made.err
    printed = json.loads(made.out)
    assert printed["queries"] == 3 and printed["moments"] > 3
    assert set(printed["systems"]) == {"refined", "coarse", "said", "joined", "other"}
    assert "kappa undefined so far" in moviola("judge", "progress", task).out

    judge(task, "Anna", lambda video: 4 if video == "harbour" else 0)
    judge(task, "Ben", lambda video: 3 if video == "harbour" else 1)
    done = moviola("judge", "progress", task)
    assert "Anna: " in done.out and "kappa" in done.out and "a red door" in done.out
    figures = json.loads(moviola("judge", "progress", task, "--json").out)
    assert sum(query["agreed"] for query in figures["queries"]) == printed["moments"]
    assert sum(figures["levels"]) == printed["moments"]

    judged = tmp_path / "judged.json"
    written = moviola("judge", "export", task, "--out", judged)
    assert written.out.endswith(f"{printed['moments']} judged moments\n")
    scored = moviola("evaluate", run, judged, "-m", "nDCG@5,IoU>=0.5", "--json")
    assert scored.code == 0, scored.err
    assert 0 < json.loads(scored.out)["measures"]["nDCG@5,IoU>=0.5"] <= 1

    split = moviola("judge", "training", task, "--out", tmp_path / "pairs", "--val", 1, "--level", 3)
    assert split.code == 0, split.err
    assert {path.name for path in (tmp_path / "pairs").iterdir()} == {"train.json", "val.json"}


def test_ratings_there_and_back(moviola: Moviola, library: Path, queries: Path, tmp_path: Path) -> None:
    task, rated = tmp_path / "task.sqlite", tmp_path / "ratings.csv"
    made = moviola("judge", "new", "-l", library, queries, "--out", task, "--system", "coarse", "--raters", 1)
    assert "coarse: " in made.out
    judge(task, "Anna", lambda video: 2)
    assert "ratings" in moviola("judge", "export", task, "--as", "ratings", "--out", rated).out
    again = tmp_path / "again.sqlite"
    moviola("judge", "new", "-l", library, queries, "--out", again, "--system", "coarse", "--raters", 1)
    taken = moviola("judge", "import", again, rated)
    number = len(rated.read_text().splitlines()) - 1
    assert (taken.code, taken.out) == (0, f"{again}: {number} ratings accepted, 0 refused\n")
    assert JudgingTask(again).outcome().agreed == JudgingTask(task).outcome().agreed
    rated.write_text(rated.read_text().replace("Anna", "Ben"))
    refused = moviola("judge", "import", again, rated)
    assert refused.code == 3 and "others have judged it" in refused.err
    assert f"0 ratings accepted, {number} refused" in refused.out
    assert JudgingTask(again).raters() == ["Anna"]


def test_queries_without_an_answer_are_left_out(moviola: Moviola, library: Path, tmp_path: Path) -> None:
    task, queries = tmp_path / "task.sqlite", tmp_path / "queries.txt"
    with Library(library) as opened:
        for name in ("a", "b"):
            opened.concepts.teach(name, Marked(None, (MarkedMoment("street", 0, 2),)))
    queries.write_text("@a @b\na robot\n@b @a\n")
    made = moviola("judge", "new", "-l", library, queries, "--out", task, "--json")
    assert made.code == 3
    printed = json.loads(made.out)
    assert printed["queries"] == 1 and list(printed["refused"]) == ["1", "3"]
    assert [line.split(": ")[0] for line in made.err.splitlines()] == [
        "query 1 is left out", "query 3 is left out",
    ]  # fmt: skip
    assert "'@a @b': name one concept at a time" in made.err
    assert {pair.query_id for pair in JudgingTask(task).pairs} == {"2"}
    queries.write_text("@a\n")
    known = moviola("judge", "new", "-l", library, queries, "--out", tmp_path / "known.sqlite")
    assert (known.code, known.err) == (0, ""), "words alone have no answer, but pictures have"
    queries.write_text("@a @b\n")
    none = moviola("judge", "new", "-l", library, queries, "--out", tmp_path / "none.sqlite")
    assert none.code == 1 and "name one concept at a time" in none.err


def test_what_cannot_be_judged(moviola: Moviola, library: Path, queries: Path, tmp_path: Path) -> None:
    task = tmp_path / "task.sqlite"
    wrong = moviola("judge", "new", "-l", library, queries, "--out", task, "--system", "magic")
    assert wrong.code == 1 and "systems magic: choose from refined, coarse" in wrong.err
    wrong = moviola("judge", "new", "-l", library, queries, "--out", task, "--raters", 3)
    assert wrong.code == 1 and "raters=3" in wrong.err
    runs = [tmp_path / folder / "mine.json" for folder in ("one", "other")]
    for names in (runs, [tmp_path / "coarse.json"]):
        options = [word for name in names for word in ("--run", name)]
        wrong = moviola("judge", "new", "-l", library, queries, "--out", task, *options)
        assert wrong.code == 1 and f"{names[0].stem}: two systems of that name" in wrong.err
    words = ("--system", "coarse", "--system", "coarse", "--run", runs[0].with_name("refined.json"))
    missing = moviola("judge", "new", "-l", library, queries, "--out", task, *words)
    assert missing.code == 1 and "refined.json" in missing.err and "of that name" not in missing.err
    assert moviola("judge", "new", "-l", library, queries, "--out", task, "--system", "coarse").code == 0
    twice = moviola("judge", "new", "-l", library, queries, "--out", task)
    assert twice.code == 1 and "exists already" in twice.err
    early = moviola("judge", "export", task, "--out", tmp_path / "judged.json")
    assert early.code == 1 and "raters agree on no moment yet" in early.err
