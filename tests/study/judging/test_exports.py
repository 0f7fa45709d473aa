"""What comes out of a task is read by those who use it: evaluation, training, other raters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from moviola.errors import InvalidValue
from moviola.study.datasets.building.annotation_files import read_pairs, read_ratings, write_ratings
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.consensus import Rating, agreement
from moviola.study.datasets.readers import read_annotations
from moviola.study.judging import (
    EXPORTS,
    Imported,
    JudgingTask,
    TaskSettings,
    export_splits,
    export_task,
    import_ratings,
    progress_of,
)
from moviola.study.measures import Run, evaluate, read_qrels
from moviola.study.training.data import Pairs

NewTask = Callable[..., JudgingTask]


def judge(task: JudgingTask, levels: dict[str, tuple[int, ...]]) -> None:
    """``{"1:2": (3, 4)}``: what Anna, Ben, Carla and Dirk say of a pair."""
    names = [task.sign_in(name) for name in ("Anna", "Ben", "Carla", "Dirk")]
    for pair, given in levels.items():
        for name, level in zip(names, given, strict=False):
            task.answer(name, pair, level)


@pytest.fixture
def judged(new_task: NewTask) -> JudgingTask:
    """Two queries: one moment discarded, one open, four agreed."""
    task = new_task(queries=2, moments=3)
    judge(
        task,
        {"1:1": (3, 4), "1:2": (0, 4, 0, 4), "1:3": (0, 1), "2:1": (2, 2), "2:2": (0, 4, 3, 4), "2:3": (1,)},
    )
    return task


@pytest.mark.parametrize("form", ["tvr_ranking", "qrels"])
def test_judgements_are_read_by_evaluation(judged: JudgingTask, tmp_path: Path, form: str) -> None:
    path = tmp_path / "judged.json"
    assert export_task(judged, path, form) == 4
    qrels = read_qrels(path)
    found = {
        (query, row["video_id"], row["start"]): row["relevance"]
        for query, rows in qrels.rows().items()
        for row in rows
    }
    assert found == {
        ("1", "film 1", 1): 4, ("1", "film 0", 3): 1, ("2", "film 1", 1): 2, ("2", "film 2", 2): 4,
    }  # fmt: skip
    best = [{"video_id": "film 1", "start": 1, "end": 1.5, "score": 1.0}]
    scores = evaluate(Run.from_dict({"1": best, "2": best}), qrels, ["nDCG@1,IoU>=0.5"])
    assert scores.measures["nDCG@1,IoU>=0.5"] == pytest.approx((1 + 3 / 15) / 2)


def test_a_judged_set_is_a_data_set(judged: JudgingTask, tmp_path: Path) -> None:
    export_task(judged, tmp_path / "judged.json")
    moments = read_annotations(tmp_path / "judged.json", "tvr_ranking")
    assert len(moments) == 3 and not moments.flaws  # one of the four pairs is another query's moment too
    assert moments.durations.tolist() == [100.0] * 3


def test_ratings_go_out_and_come_back(judged: JudgingTask, tmp_path: Path) -> None:
    assert export_task(judged, tmp_path / "ratings.csv", "ratings") == 15
    assert read_ratings(tmp_path / "ratings.csv") == list(judged.outcome().ratings)
    other = JudgingTask.create(tmp_path / "other.sqlite", judged.pairs, TaskSettings())
    assert export_task(other, tmp_path / "pairs.csv", "pairs") == 6
    assert "pair_id" in (tmp_path / "pairs.csv").read_text()
    assert import_ratings(other, tmp_path / "ratings.csv") == Imported(15, 0, {})
    assert other.outcome().agreed == judged.outcome().agreed


def test_only_moments_that_need_ratings_are_to_be_rated_elsewhere(
    judged: JudgingTask, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    assert export_task(judged, path, "pairs") == 1
    assert [pair.pair_id for pair in read_pairs(path)] == ["2:3"]
    path.unlink()
    judged.answer(judged.sign_in("Ben"), "2:3", 1)
    with pytest.raises(InvalidValue, match="no moment is left to rate"):
        export_task(judged, path, "pairs")
    assert not path.exists()


def test_of_two_spellings_of_a_rater_the_first_stands(new_task: NewTask, tmp_path: Path) -> None:
    names, path = [f"rater {letter}" for letter in "abcdefgh"], tmp_path / "ratings.csv"
    pairs = [f"1:{number}" for number in range(1, 9)]
    spelt = [*zip(pairs, names, strict=True), *zip(pairs, map(str.upper, names), strict=True)]
    write_ratings([Rating(pair, name, 3) for pair, name in spelt], path)
    task = new_task(moments=8)
    assert import_ratings(task, path) == Imported(8, 0, {}, replaced=8)
    assert task.raters() == names


def test_of_two_ratings_by_one_rater_the_last_is_counted(new_task: NewTask, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    write_ratings([Rating("1:1", "Anna", 0), Rating("1:1", "anna", 3)], path)
    task = new_task()
    assert import_ratings(task, path) == Imported(1, 0, {}, replaced=1)
    assert export_task(task, tmp_path / "kept.csv", "ratings") == 1
    assert read_ratings(tmp_path / "kept.csv") == [Rating("1:1", "Anna", 3)]


def test_ratings_beyond_the_rule_are_refused_by_name(judged: JudgingTask, tmp_path: Path) -> None:
    again = [Rating(one.pair_id, f"{one.worker} again", one.relevance) for one in judged.outcome().ratings]
    write_ratings([*again, Rating("9:9", "Anna", 1)], tmp_path / "ratings.csv")
    found = import_ratings(judged, tmp_path / "ratings.csv")
    assert (found.accepted, found.refusals) == (1, 15)
    assert found.refused.keys() == {"9:9", "1:1", "1:2", "1:3", "2:1", "2:2"}
    assert "not in this task" in found.refused["9:9"] and "others have judged it" in found.refused["1:2"]
    assert judged.raters() == ["Anna", "Anna again", "Ben", "Carla", "Dirk"]  # of 2:3; no other has a rating
    write_ratings([Rating("2:3", "Eve", 1), Rating("2:3", "x" * 61, 1)], tmp_path / "ratings.csv")
    with pytest.raises(InvalidValue, match="give 1 to 60 letters"):
        import_ratings(judged, tmp_path / "ratings.csv")
    assert "Eve" not in judged.raters()


def test_nothing_is_written_of_a_task_that_nobody_judged(new_task: NewTask, tmp_path: Path) -> None:
    task = new_task()
    with pytest.raises(InvalidValue, match="raters agree on no moment yet"):
        export_task(task, tmp_path / "judged.json")
    with pytest.raises(InvalidValue, match="choose tvr_ranking, qrels"):
        export_task(task, tmp_path / "judged.json", "xml")
    with pytest.raises(InvalidValue, match="0 queries have a moment of level 2, and 2 are kept"):
        export_splits(task, tmp_path, val=1, test=1)
    assert list(tmp_path.glob("*.json")) == []
    assert set(EXPORTS) == {"tvr_ranking", "qrels", "ratings", "pairs"}


def test_the_suffix_gives_the_form_of_judgements(judged: JudgingTask, tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    export_task(judged, path, "qrels")
    assert path.read_text().startswith("query_id,video_id,start,end,relevance\n")
    with pytest.raises(InvalidValue, match=r"'tvr_ranking' is written as \.json"):
        export_task(judged, tmp_path / "again.csv")


def test_one_is_counted_as_one(new_task: NewTask, tmp_path: Path) -> None:
    task = new_task()
    judge(task, {"1:1": (3, 3)})
    with pytest.raises(InvalidValue, match="1 query has a moment of level 2, and 1 is kept for val"):
        export_splits(task, tmp_path, val=1, test=0)


def test_a_task_is_not_written_over(judged: JudgingTask, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(judged.path)
    for path in (judged.path, link):
        with pytest.raises(InvalidValue, match="is the task itself, whose ratings would be lost"):
            export_task(judged, path)
    assert len(JudgingTask(judged.path).answers()) == 15


def test_no_library_is_written_into(judged: JudgingTask, tmp_path: Path) -> None:
    """Judgements took the place of its catalogue."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "moviola.toml").touch()
    (tmp_path / "link").symlink_to(library)
    for place in (library, tmp_path / "link"):
        with pytest.raises(InvalidValue, match="lies in the folder of the library"):
            export_task(judged, place / "catalogue.sqlite")
        with pytest.raises(InvalidValue, match="lies in the folder of the library"):
            export_splits(judged, place, val=1, test=0)
    assert [path.name for path in library.iterdir()] == ["moviola.toml"]


def test_likes_are_pairs_to_train_on(new_task: NewTask, tmp_path: Path) -> None:
    task = new_task(queries=6, moments=3)
    judge(task, {f"{q}:{m}": (level, level) for q in range(1, 7) for m, level in ((1, 1), (2, 4), (3, 3))})
    counts = export_splits(task, tmp_path, val=2, test=1, level=3)
    assert counts == {"train": (3, 6), "val": (2, 6), "test": (1, 3)}
    videos = ["film 0", "film 1", "film 2"]
    read = {name: Pairs.read(tmp_path / f"{name}.json", videos) for name in counts}
    texts = [set(pairs.texts) for pairs in read.values()]
    assert not texts[0] & texts[1] and not texts[1] & texts[2] and len(set.union(*texts)) == 6
    train = read["train"]
    assert train.similarity.tolist() == [1, 0.75] * 3  # the best first, weighed by its level
    assert read["val"].relevance.tolist() == [1, 4, 3] * 2


def test_queries_of_one_text_are_counted_one_by_one(tmp_path: Path) -> None:
    pairs = [
        Pair(f"{q}:1", str(q), "A dog?" if q <= 3 else "A cat?", f"film {q}", 1, 2, 100.0, "", 1.0, 1)
        for q in range(1, 7)
    ]
    task = JudgingTask.create(tmp_path / "task.sqlite", pairs, TaskSettings(raters=1))
    judge(task, {pair.pair_id: (3,) for pair in pairs})
    counts = export_splits(task, tmp_path, val=1, test=0)
    written = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in counts}
    assert {name: len(entries) for name, entries in written.items()} == {"train": 3, "val": 3}
    assert counts == {"train": (3, 3), "val": (3, 3)}


def test_pairs_to_train_on_must_be_there(judged: JudgingTask, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="2 queries have a moment of level 2, and 2 are kept"):
        export_splits(judged, tmp_path, val=1, test=1)
    with pytest.raises(InvalidValue, match="1 to 4"):
        export_splits(judged, tmp_path, val=1, test=0, level=0)


def test_no_split_of_before_lies_beside_new_ones(new_task: NewTask, tmp_path: Path) -> None:
    task = new_task(queries=4, moments=1)
    judge(task, {f"{q}:1": (3, 3) for q in range(1, 5)})
    export_splits(task, tmp_path, val=1, test=2)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    with pytest.raises(InvalidValue, match=r"test\.json: of an earlier split; give --test 1 or more"):
        export_splits(task, tmp_path, val=1, test=0)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.json")} == before
    assert export_splits(task, tmp_path, val=1, test=1).keys() == {"train", "val", "test"}


def test_progress_counts_every_moment_once(judged: JudgingTask) -> None:
    found = progress_of(judged)
    first, second = found.queries
    assert (first.moments, first.agreed, first.discarded, first.open, first.answers) == (3, 2, 1, 0, 2)
    assert (second.moments, second.agreed, second.discarded, second.open, second.answers) == (3, 2, 0, 1, 2)
    assert found.count("agreed") == 4
    assert {rater.name: rater.judged for rater in found.raters} == {
        "Anna": 6,
        "Ben": 5,
        "Carla": 2,
        "Dirk": 2,
    }
    assert found.agreement.kappa == agreement(judged.outcome().ratings).kappa
    by_name = {rater.name: rater.distance for rater in found.raters}
    assert by_name["Dirk"] == pytest.approx((2 + 0.5) / 2)
    assert found.raters[0].kappa is not None


def test_progress_counts_the_levels_of_one_rater(new_task: NewTask) -> None:
    """Where one person is taken at their word, the levels that are exported are those that are shown."""
    task = new_task(raters=1)
    task.sign_in("Anna")
    batch = task.next_batch("Anna")
    assert batch is not None
    for moment, level in zip(batch.moments, (3, 0, 3), strict=True):
        task.answer("Anna", moment.pair_id, level)
    found = progress_of(task)
    assert found.count("agreed") == 3
    assert found.agreement.histogram.tolist() == [1, 0, 0, 2, 0]


def test_progress_before_anybody_came(new_task: NewTask) -> None:
    found = progress_of(new_task())
    assert (found.count("moments"), found.count("open"), found.raters) == (3, 3, ())
    assert found.agreement.kappa != found.agreement.kappa
