"""The data set on disk: its form, its splits, its judgements, and that it can be resumed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.files.rows import read_json
from moviola.media import probe, read_subtitles, write_video
from moviola.study.datasets import gridhouse
from moviola.study.datasets.gridhouse import absent, annotate, dataset, films
from moviola.study.datasets.gridhouse.vocabulary import ACTIONS, COLOURS, FLOORS, ROBOTS, TYPES

SPLITS = ("train_top01", "train_top20", "train_top40", "val", "test")


def make(folder: Path, **options: Any) -> gridhouse.GridhouseReport:
    return gridhouse.build(folder, **{"videos": 10, "seed": 3, "write_video": write_video, **options})


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make(folder, subtitles=True, filler=1)
    return folder


def test_every_film_is_there_as_long_as_the_corpus_says(world: Path) -> None:
    corpus = read(world, "video_corpus")
    assert len(corpus) == 11
    for name, duration in corpus.items():
        info = probe(world / "videos" / f"{name}.mp4")
        assert info.duration == pytest.approx(duration, abs=0.01)
        assert (info.width, info.height, info.video_codec) == (224, 224, "h264")


def test_splits_hold_every_film_once_and_train_pairs_stay_in_theirs(world: Path) -> None:
    splits = read(world, "splits")
    assert set(splits) == {"train", "val", "test"}
    films = [film for own in splits.values() for film in own]
    assert sorted(films) == sorted(read(world, "video_corpus"))
    moments = [m for entry in read(world, "train_top40") for m in entry["relevant_moment"]]
    assert {m["video_name"] for m in moments} <= set(splits["train"])


def test_pair_files_have_tvr_rankings_form(world: Path) -> None:
    corpus = read(world, "video_corpus")
    for name in SPLITS:
        entries = read(world, name)
        assert entries
        for entry in entries:
            assert isinstance(entry["query_id"], int) and entry["query"] and entry["type"] in ("v", "t", "vt")
            for moment in entry["relevant_moment"]:
                start, end = moment["timestamp"]
                assert 0 <= start < end <= moment["duration"] == corpus[moment["video_name"]]
                assert 0 <= moment["similarity"] <= 1.000001
                assert ("relevance" in moment) == (name in ("val", "test"))


def test_top_n_holds_the_n_most_similar_of_training_films(world: Path) -> None:
    for number, name in ((1, "train_top01"), (20, "train_top20"), (40, "train_top40")):
        for entry in read(world, name):
            similarities = [m["similarity"] for m in entry["relevant_moment"]]
            assert len(similarities) <= number
            assert similarities == sorted(similarities, reverse=True)


def test_no_query_is_in_two_splits(world: Path) -> None:
    texts = [{entry["query"] for entry in read(world, name)} for name in ("train_top01", "val", "test")]
    assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    ids = [entry["query_id"] for name in ("train_top01", "val", "test") for entry in read(world, name)]
    assert len(set(ids)) == len(ids)


def test_filler_answers_nothing(world: Path) -> None:
    named = {m["video_name"] for name in SPLITS for e in read(world, name) for m in e["relevant_moment"]}
    assert "filler-0001" in read(world, "video_corpus")
    assert "filler-0001" not in named


def test_the_narrator_is_heard_and_asked_for(world: Path) -> None:
    types = {entry["type"] for entry in read(world, "train_top01")}
    assert types == {"v", "t", "vt"}
    by_words = next(e for e in read(world, "test") if e["type"] == "t")
    best = by_words["relevant_moment"][0]
    cues = read_subtitles(world / "videos" / f"{best['video_name']}.srt").cues
    assert any(
        cue.text == best["caption"] and cue.start == pytest.approx(best["timestamp"][0]) for cue in cues
    )


def test_without_subtitles_everything_is_seen(tmp_path: Path) -> None:
    make(tmp_path, videos=5)
    assert {entry["type"] for entry in read(tmp_path, "train_top01")} == {"v"}
    assert not list((tmp_path / "videos").glob("*.srt"))


def test_same_seed_same_bytes_whatever_the_workers(world: Path, tmp_path: Path) -> None:
    make(tmp_path, subtitles=True, filler=1, workers=2)
    for path in sorted(world.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(world)).read_bytes(), path.name


def test_films_that_are_there_are_kept(world: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (world / "videos").glob("*.mp4")}
    lost = min(before)
    lost.unlink()
    make(world, subtitles=True, filler=1)
    after = {path: path.stat().st_mtime_ns for path in (world / "videos").glob("*.mp4")}
    assert after.keys() == before.keys()
    assert [path for path in after if after[path] != before[path]] == [lost]


def test_other_settings_are_not_mixed_in(world: Path) -> None:
    with pytest.raises(InvalidValue, match="other settings"):
        make(world, subtitles=True, filler=1, seed=4)
    with pytest.raises(InvalidValue, match="at least one video"):
        make(world, videos=0)


@pytest.mark.parametrize(
    "counts",
    [{"videos": 10**320}, {"long_videos": 10**320}, {"filler": 999_999, "edited_videos": 1}],
    ids=["videos", "long", "together"],
)
def test_too_many_films_are_refused_before_anything_is_made(tmp_path: Path, counts: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match="more than 1,000,000 films"):
        make(tmp_path / "many", **counts)
    assert not (tmp_path / "many").exists()


class Letters:
    """A sentence encoder that counts letters."""

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        alphabet = "abcdefghijklmnopqrstuvwxyz "
        return np.array([[text.count(letter) for letter in alphabet] for text in texts], dtype=np.float32)


def test_pseudo_sets_by_a_sentence_encoder(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same films, queries and grades; the training set is what cosines of the texts choose."""
    names: list[str] = []
    monkeypatch.setattr(dataset, "load_sentence_encoder", lambda name, **_: names.append(name) or Letters())
    shutil.copytree(world, tmp_path / "world")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "world" / "videos").iterdir()}
    make(tmp_path / "world", subtitles=True, filler=1, similarity="letters")
    assert names == ["letters"]
    assert read(tmp_path / "world", "gridhouse")["similarity"] == "letters"
    assert before == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "world" / "videos").iterdir()
    }

    def graded(folder: Path, name: str) -> Any:
        return {
            (entry["query_id"], entry["query"], moment["pair_id"], moment["relevance"])
            for entry in read(folder, name) for moment in entry["relevant_moment"]
        }  # fmt: skip

    for name in ("val", "test"):
        assert graded(tmp_path / "world", name) == graded(world, name)
    pool = {
        m["pair_id"]: m["caption"] for entry in read(world, "train_top40") for m in entry["relevant_moment"]
    }
    pool |= {
        m["pair_id"]: m["caption"]
        for entry in read(tmp_path / "world", "train_top40") for m in entry["relevant_moment"]
    }  # fmt: skip
    assert len(pool) > 20
    captions = Letters().encode_text(list(pool.values()))
    differ = 0
    for old, new in zip(read(world, "train_top20"), read(tmp_path / "world", "train_top20"), strict=True):
        assert (old["query_id"], old["query"]) == (new["query_id"], new["query"])
        (query,) = Letters().encode_text([new["query"]])
        cosines = captions @ query / np.linalg.norm(captions, axis=1) / np.linalg.norm(query)
        found = [moment["similarity"] for moment in new["relevant_moment"]]
        np.testing.assert_allclose(found, np.sort(cosines)[::-1][: len(found)], atol=2e-6)
        differ += old["relevant_moment"] != new["relevant_moment"]
    assert differ

    annotate(tmp_path / "annotations", world, similarity="letters")
    assert not (tmp_path / "annotations" / "videos").exists()
    for name in (*SPLITS, "gridhouse", "splits", "video_corpus"):
        made, again = (tmp_path / folder / f"{name}.json" for folder in ("world", "annotations"))
        assert made.read_bytes() == again.read_bytes()

    make(tmp_path / "world", subtitles=True, filler=1)
    for name in (*SPLITS, "gridhouse"):
        assert (tmp_path / "world" / f"{name}.json").read_bytes() == (world / f"{name}.json").read_bytes()


def test_true_labels_are_of_relevant_moments_alone(world: Path, tmp_path: Path) -> None:
    """A control: the same queries, each with the moments that answer it, best first."""
    annotate(tmp_path, world, similarity="truth")
    for name in ("val", "test", "splits", "video_corpus"):
        assert (tmp_path / f"{name}.json").read_bytes() == (world / f"{name}.json").read_bytes()
    training, best = set(read(world, "splits")["train"]), 0
    usual, true = read(world, "train_top20"), read(tmp_path, "train_top20")
    for old, new in zip(usual, true, strict=True):
        assert (old["query_id"], old["query"], old["type"]) == (new["query_id"], new["query"], new["type"])
        moments = new["relevant_moment"]
        found = [moment["similarity"] for moment in moments]
        assert found == sorted(found, reverse=True) and set(found) <= {0.25, 0.5, 0.75, 1.0}
        assert 1 <= len(moments) <= 20 and {moment["video_name"] for moment in moments} <= training
        best += old["relevant_moment"][0]["pair_id"] in {moment["pair_id"] for moment in moments}
    assert best > 0.8 * len(true)
    assert read(tmp_path, "gridhouse")["similarity"] == "truth"


def test_training_queries_have_as_many_moments_as_asked(world: Path, tmp_path: Path) -> None:
    annotate(tmp_path, world, similarity="slots", tops=(3, 60))
    assert not (tmp_path / "train_top20.json").exists()
    few, usual, many = (
        [entry["relevant_moment"] for entry in read(folder, name)]
        for folder, name in ((tmp_path, "train_top03"), (world, "train_top40"), (tmp_path, "train_top60"))
    )
    assert few == [moments[:3] for moments in usual] and usual == [moments[:40] for moments in many]


def test_fewer_training_films_have_fewer_queries_and_the_same_test(world: Path, tmp_path: Path) -> None:
    annotate(tmp_path, world, similarity="slots", training_videos=2)
    for name in ("val", "test", "video_corpus"):
        assert (tmp_path / f"{name}.json").read_bytes() == (world / f"{name}.json").read_bytes()
    whole, few = read(world, "splits"), read(tmp_path, "splits")
    assert few == {**whole, "train": whole["train"][:2]}
    queries = {entry["query"] for entry in read(tmp_path, "train_top40")}
    assert queries < {entry["query"] for entry in read(world, "train_top40")} and queries
    assert not queries & {entry["query"] for name in ("val", "test") for entry in read(world, name)}
    found = [m["video_name"] for entry in read(tmp_path, "train_top40") for m in entry["relevant_moment"]]
    assert set(found) == set(few["train"])


def test_annotations_that_would_be_those_of_no_film_or_in_place_of_the_films_own_are_refused(
    world: Path, tmp_path: Path
) -> None:
    for wrong in (0, -1):
        with pytest.raises(InvalidValue, match=f"training_videos={wrong}: give at least 1"):
            annotate(tmp_path, world, similarity="slots", training_videos=wrong)
    for none in ((), (20, 0)):
        with pytest.raises(InvalidValue, match="tops=0: give at least 1"):
            annotate(tmp_path, world, similarity="slots", tops=none)
    assert not list(tmp_path.iterdir())
    before = (world / "train_top20.json").read_bytes()
    with pytest.raises(InvalidValue, match="is the folder of the films"):
        annotate(world / "videos" / "..", world, similarity="truth")
    assert (world / "train_top20.json").read_bytes() == before


def test_positives_of_one_pool_are_of_all_films_and_queries_are_the_same(world: Path, tmp_path: Path) -> None:
    """Texts, val and test do not depend on it; moments to learn from do, and no text is in two splits."""
    annotate(tmp_path / "pool", world, similarity="slots", one_pool=True)
    kept = {
        name: [read_json(folder / f"{name}.json") for folder in (world, tmp_path / "pool")]
        for name in ("val", "test", "train_top20")
    }
    assert kept["val"][0] == kept["val"][1] and kept["test"][0] == kept["test"][1]
    apart, pool = kept["train_top20"]
    assert [row["query"] for row in pool] == [row["query"] for row in apart]
    splits = read_json(world / "splits.json")
    named = [{m["video_name"] for row in rows for m in row["relevant_moment"]} for rows in (apart, pool)]
    assert named[0] <= set(splits["train"])
    assert named[1] & set(splits["test"]) and named[1] & set(splits["val"])
    judged = {row["query"] for name in ("val", "test") for row in kept[name][0]}
    assert not judged & {row["query"] for row in pool}
    with pytest.raises(InvalidValue, match="one pool has no training films"):
        annotate(tmp_path / "odd", world, similarity="slots", one_pool=True, training_videos=3)


def test_nothing_answers_queries_for_what_is_absent(world: Path, tmp_path: Path) -> None:
    """Half as many as others in each split, with texts and ids of their own, in words of the others, precise
    and imprecise; and everything else stays as it was.
    """
    report = annotate(tmp_path / "a", world, similarity="slots", absent=0.5)
    plain = annotate(tmp_path / "b", world, similarity="slots")
    assert report.queries == plain.queries and plain.unanswered == 0
    entries = {name: read(tmp_path / "a", name) for name in SPLITS}
    absent = {name: [e for e in own if not e["relevant_moment"]] for name, own in entries.items()}
    for name, own in entries.items():
        others = read(tmp_path / "b", name)
        assert own[: len(others)] == others and own[len(others) :] == absent[name]
        assert len(absent[name]) == round(len(others) / 2)
    assert report.unanswered == sum(len(absent[name]) for name in ("train_top01", "val", "test"))
    every = [e for name in ("train_top01", "val", "test") for e in entries[name]]
    assert len({e["query_id"] for e in every}) == len({e["query"] for e in every}) == len(every)
    known = {word for e in every if e["relevant_moment"] for word in e["query"].split()}
    texts = [e["query"] for own in absent.values() for e in own]
    assert len({word for text in texts for word in text.split()} - known) <= 2
    assert any(text.startswith("the ") for text in texts) and any(
        not text.startswith("the ") for text in texts
    )


def test_absent_things_have_no_relevance_to_any_moment() -> None:
    """By the rule of relevance; and a world that holds everything is refused, not searched for ever."""
    moments = [m.slots for n in range(4) for m in gridhouse.simulate(n, number=n, video_id="v").moments]
    taken: set[str] = set()
    found = absent.absent_queries(moments, 20, taken, np.random.default_rng(0))
    assert len(found) == len(taken) == 20
    assert not any(gridhouse.relevance(asked, there) for _, asked in found for there in moments)
    everything = [
        gridhouse.Slots(robot, action, gridhouse.Thing(colour, kind), None, room)
        for robot in ROBOTS for action in ACTIONS for colour in COLOURS for kind in TYPES for room in FLOORS
    ]  # fmt: skip
    with pytest.raises(InvalidValue, match=r"1 queries that nothing answers: after .* ask for fewer"):
        absent.absent_queries(everything[::7], 1, set(), np.random.default_rng(0))


@pytest.mark.parametrize("share", [-0.1, float("nan"), float("inf")])
def test_a_share_of_absent_queries_that_cannot_be_is_refused(
    world: Path, tmp_path: Path, share: float
) -> None:
    with pytest.raises(InvalidValue, match=r"absent .*0 or more"):
        annotate(tmp_path / "a", world, similarity="slots", absent=share)


def test_this_process_keeps_its_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Pool:
        def __init__(self, *given: object, **options: object) -> None:
            pass

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def map(self, *given: object) -> list[None]:
            seen.append(os.environ["OMP_NUM_THREADS"])
            return [None]

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(films, "ProcessPoolExecutor", Pool)
    film = films.Film("gh-0001", 0, 0, "test")
    films.make_videos(tmp_path, [film], print, 1, lambda done, total: None)
    assert seen == ["1"]
    assert "OMP_NUM_THREADS" not in os.environ
