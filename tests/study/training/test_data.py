"""Batches: every row once, padded no further than needed; pairs and features read as the files say."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.features import FeatureFolder, KeyedShards, QueryFeatures, normalise_rows
from moviola.study.datasets.annotations import Flaw
from moviola.study.datasets.readers import ranked_queries, read_query_keys, read_videos
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Run, read_qrels
from moviola.study.training.batches import padded, token_batch, video_batch
from moviola.study.training.data import Pairs, Split, batches_by_length
from moviola.study.training.one_video import best_answers, of_each_video
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import read_settings
from moviola.study.training.tasks.candidates import CandidateSampling
from moviola.study.training.tasks.pairs import PairTask
from moviola.study.training.tasks.segments import SegmentSampling
from moviola.study.training.validation import OVER_TYPES, judge, judge_videos


@given(
    lengths=st.lists(st.integers(1, 50), max_size=60),
    size=st.integers(1, 9),
    pool=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_batches_are_a_partition(lengths: list[int], size: int, pool: int, seed: int) -> None:
    rows = np.array(lengths, dtype=np.int64)
    batches = list(batches_by_length(rows, size, np.random.default_rng(seed), pool=pool))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in batches)
    assert len(batches) == -(-len(lengths) // size)
    again = list(batches_by_length(rows, size, np.random.default_rng(seed), pool=pool))
    assert all(np.array_equal(one, two) for one, two in zip(batches, again, strict=True))


def test_batches_of_alike_lengths_pad_little() -> None:
    lengths = np.random.default_rng(0).integers(10, 100, size=640)

    def padding(pool: int) -> int:
        batches = batches_by_length(lengths, 16, np.random.default_rng(1), pool=pool)
        return sum(int(lengths[batch].max() * len(batch) - lengths[batch].sum()) for batch in batches)

    assert padding(8) < padding(1) / 4


def test_batches_come_in_random_order() -> None:
    """Those of one pool, too, which were sorted by length for once."""
    lengths, draw = np.arange(64), np.random.default_rng(0)
    longest = [lengths[batch].max() for batch in batches_by_length(lengths, 4, draw, pool=16)]
    assert longest != sorted(longest)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_padded(lengths: list[int]) -> None:
    arrays = [np.full((length, 2), row + 1, dtype=np.float32) for row, length in enumerate(lengths)]
    values, mask = padded(arrays)
    assert values.shape == (len(lengths), max(lengths), 2)
    assert values.dtype == mask.dtype == torch.float32
    for row, length in enumerate(lengths):
        assert mask[row].tolist() == [1.0] * length + [0.0] * (max(lengths) - length)
        assert (values[row, :length] == row + 1).all()
        assert (values[row, length:] == 0).all()


def written(path: Path, queries: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(queries))
    return path


def moment(video: str, start: float, end: float, caption: str = "c", **more: float) -> dict[str, Any]:
    return {"video_name": video, "timestamp": [start, end], "duration": 20, "caption": caption, **more}


def test_a_moment_of_zero_length_is_one_that_nothing_finds(tmp_path: Path) -> None:
    found = [moment("v", 1, 1), moment("v", 2, 3)]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": found}])
    assert len(Pairs.read(path, ["v"]).qrels) == 2


def test_moments_after_the_first_n_are_known_to_be_alike(tmp_path: Path) -> None:
    first, second = [moment("v", 1, 2), moment("w", 3, 4), moment("v", 5, 6)], [moment("w", 0, 1)]
    path = written(
        tmp_path / "pairs.json",
        [
            {"query_id": 0, "query": "q", "type": "t", "relevant_moment": first},
            {"query_id": 1, "query": "r", "type": "v", "relevant_moment": second},
        ],
    )
    pairs = Pairs.read(path, ["v", "w"], top=1)
    assert pairs.beyond.tolist() == [(0, 1, 3.0, 4.0), (0, 0, 5.0, 6.0)]
    assert pairs.types == ("t", "v")
    assert not len(Pairs.read(path, ["v", "w"]).beyond)
    for wrong in (0, -1, "1", 1.5):
        with pytest.raises(InvalidValue, match=r"top .*: give an integer, 1 or more"):
            Pairs.read(path, ["v", "w"], top=wrong)  # type: ignore[arg-type]
    alone = Pairs.read(path, ["w", "v", "x"], top=1).of_own_videos()
    assert alone.videos == ("w", "v")
    assert alone.beyond.tolist() == [(0, 0, 3.0, 4.0), (0, 1, 5.0, 6.0)]


def epochs_of(pairs: Pairs, *, even_types: bool) -> PairTask:
    """Epochs of pairs, of which nothing else is looked at."""
    rest: Any = None
    return PairTask(rest, rest, rest, pairs, rest, rest, 4, even_types)


def test_rare_types_are_drawn_as_often_by_a_setting(tmp_path: Path) -> None:
    kinds = ["v"] * 9 + ["vt"] * 2 + ["t"]
    queries = [
        {"query_id": row, "query": "q", "type": kind, "relevant_moment": [moment("v", row, row + 1)]}
        for row, kind in enumerate(kinds)
    ]
    pairs = Pairs.read(written(tmp_path / "pairs.json", queries), ["v"])
    draw = np.random.default_rng(0)
    (each,) = epochs_of(pairs, even_types=False).parts(draw)
    assert each.tolist() == list(range(12))
    (drawn,) = epochs_of(pairs, even_types=True).parts(draw)
    assert [sum(kinds[row] == kind for row in drawn) for kind in ("v", "vt", "t")] == [4, 4, 4]
    assert len(set(drawn.tolist())) == 4 + 2 + 1
    del queries[3]["type"]
    some = Pairs.read(written(tmp_path / "pairs.json", queries), ["v"])
    with pytest.raises(InvalidValue, match="a training query has no type"):
        epochs_of(some, even_types=True).parts(draw)


def test_val_may_be_judged_type_by_type(tmp_path: Path) -> None:
    """Three queries about pictures that are answered, and one about subtitles that is not."""
    path = written(
        tmp_path / "pairs.json",
        [
            {"query_id": row, "query": "q", "type": kind, "relevant_moment": [moment("v", row, row + 1)]}
            for row, kind in enumerate(["v", "v", "v", "t"])
        ],
    )
    split = Split(cast("Any", None), cast("Any", None), Pairs.read(path, ["v"]))
    found = [{"video_id": "v", "start": row, "end": row + 1, "score": 1.0} for row in range(3)]
    run = Run.from_dict({str(row): [answer] for row, answer in enumerate(found)} | {"3": []})
    values = judge(run, split)
    assert values["nDCG@20,IoU>=0.5"] == pytest.approx(0.75)
    assert values[OVER_TYPES] == pytest.approx(0.5)


def test_a_video_is_as_relevant_as_its_best_moment(tmp_path: Path) -> None:
    """Graded, as moments are: of two that answer the better one is to come first."""
    moments = [moment(name, 0, 1, relevance=grade) for name, grade in (("a", 1), ("b", 1), ("b", 4))]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": moments}])
    features = SimpleNamespace(durations=np.array([9.0, 9.0]))
    split = Split(cast("Any", features), cast("Any", None), Pairs.read(path, ["a", "b"]))
    found = [{"video_id": name, "start": 0, "end": 9, "score": 2 - row} for row, name in enumerate("ab")]
    better = math.log2(3)
    value = judge_videos(Run.from_dict({"0": found}), split)["video nDCG@5"]
    assert value == pytest.approx((1 + 15 / better) / (15 + 1 / better))


def test_val_without_any_answer_has_the_value_0(world: Any) -> None:
    split = world.val
    nothing = replace(split.pairs, relevance=np.zeros(len(split.pairs)))
    values = judge(Run.from_dict({}), replace(split, pairs=nothing))
    assert set(values.values()) == {0.0}


def test_a_split_of_one_video_has_the_types_and_further_moments_of_its_own_queries(world: Any) -> None:
    split = world.val
    names = split.pairs.query_ids
    further = np.zeros(len(names), split.pairs.beyond.dtype)
    further["query"], further["video"] = np.arange(len(names)), split.pairs.video[: len(names)]
    further["end"] = 1
    typed = replace(split, pairs=replace(split.pairs, types=tuple(f"of {n}" for n in names), beyond=further))
    for part in of_each_video(typed):
        assert part.pairs.types == tuple(f"of {name}" for name in part.pairs.query_ids)
        query, video = part.pairs.beyond["query"], part.pairs.beyond["video"]
        own = [names.index(name) for name in part.pairs.query_ids]
        known = {n for n in own if split.pairs.videos[further["video"][n]] == part.pairs.videos[0]}
        assert {own[q] for q in query.tolist()} == known and not video.any()


@given(
    video=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    answers=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, unique=True),
    chosen=st.data(),
)
def test_the_positive_pair_mask_knows_the_whole_set(
    video: list[int], answers: list[tuple[int, int]], chosen: st.DataObject
) -> None:
    """Whether any pair of the file, in the batch or not, joins query i with the video of pair j."""
    pairs = Pairs(
        query_ids=tuple("abcd"), texts=tuple("abcd"), videos=tuple("vwxy"),
        video=np.array(video), start=np.arange(6.0), end=np.arange(6.0) + 1, captions=("c",) * 6,
        query=np.array([q for q, _ in answers]), moment=np.array([m for _, m in answers]),
        similarity=np.ones(len(answers), np.float32), relevance=np.ones(len(answers)),
    )  # fmt: skip
    rows = np.array(chosen.draw(st.lists(st.integers(0, len(answers) - 1), min_size=1, max_size=6)))
    expected = [
        [
            any(q == answers[i][0] and video[m] == video[answers[j][1]] for q, m in answers)
            for j in rows
        ]
        for i in rows
    ]  # fmt: skip
    assert pairs.positives(rows).tolist() == expected
    assert pairs.positives(rows).diagonal().all()
    assert pairs.related.nnz <= len(pairs)


def test_pairs_hold_every_query_and_every_moment_once(tmp_path: Path) -> None:
    shared = moment("v1", 2, 5)
    path = written(
        tmp_path / "pairs.json",
        [
            {"query_id": 7, "query": "q7", "relevant_moment": [shared, moment("v0", 0, 1, similarity=0.25)]},
            {
                "query_id": 3,
                "query": "q3",
                "relevant_moment": [shared, moment("v1", 2, 5, "other", relevance=3), moment("away", 0, 1)],
            },
        ],
    )
    pairs = Pairs.read(path, ["v0", "v1"])
    assert pairs.query_ids == ("7", "3")
    assert pairs.texts == ("q7", "q3")
    assert list(zip(pairs.video, pairs.start, pairs.end, pairs.captions, strict=True)) == [
        (1, 2, 5, "c"), (0, 0, 1, "c"), (1, 2, 5, "other"),
    ]  # fmt: skip
    assert pairs.query.tolist() == [0, 0, 1, 1]
    assert pairs.moment.tolist() == [0, 1, 0, 2]
    assert pairs.similarity.tolist() == [1, 0.25, 1, 1]
    assert pairs.relevance.tolist() == [1, 1, 1, 3]


def test_top_takes_the_first_moments_of_the_videos(tmp_path: Path) -> None:
    found = [moment("away", 0, 1), moment("v", 1, 2), moment("v", 2, 3), moment("v", 3, 4)]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": found}])
    assert Pairs.read(path, ["v"], top=2).start.tolist() == [1, 2]
    with pytest.raises(InvalidValue, match=r"pairs\.json: no moment of the 1 video"):
        Pairs.read(path, ["w"])


def test_pairs_of_their_own_videos_alone(tmp_path: Path) -> None:
    found = [moment("w", 0, 1), moment("u", 1, 2), moment("away", 2, 3), moment("w", 3, 4)]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": found}])
    pairs = Pairs.read(path, ["u", "v", "w"])
    assert pairs.left_out == 1
    own = pairs.of_own_videos()
    assert own.videos == ("u", "w")
    assert [own.videos[v] for v in own.video] == [pairs.videos[v] for v in pairs.video] == ["w", "u", "w"]
    assert own.qrels.rows() == pairs.qrels.rows()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"timestamp": [1]}, "timestamp"),
        ({"timestamp": ["a", 2]}, "timestamp"),
        ({"timestamp": [3, 2]}, "timestamp"),
        ({"similarity": "much"}, "similarity"),
        ({"similarity": 88}, "similarity"),
        ({"relevance": None}, "relevance"),
        ({"video_name": ""}, "video_name"),
    ],
)
def test_a_malformed_pair_is_named(tmp_path: Path, wrong: dict[str, Any], named: str) -> None:
    rows = [moment("v", 0, 1), moment("v", 1, 2) | wrong]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": rows}])
    with pytest.raises(DataError, match=rf"pairs\.json: entry 1, moment 2: .*{named}"):
        Pairs.read(path, ["v"])


def test_a_negative_similarity_counts_as_none(tmp_path: Path) -> None:
    """Pseudo training sets hold cosines, and the last of a query's moments may be below 0."""
    rows = [moment("v", 0, 1, similarity=0.5), moment("v", 1, 2, similarity=-0.02)]
    path = written(tmp_path / "pairs.json", [{"query_id": 0, "query": "q", "relevant_moment": rows}])
    assert Pairs.read(path, ["v"]).similarity.tolist() == [0.5, 0]


def test_moments_that_cannot_be_and_queries_without_words_are_flaws(world: Any, tmp_path: Path) -> None:
    name = world.val_videos[0]
    rows = [moment(name, 0, 1), moment(name, 5000, 6000), moment(name, 2, 2)]
    text = world.val.pairs.texts[0]
    path = written(tmp_path / "pairs.json", [{"query_id": 7, "query": text, "relevant_moment": rows}])
    split = Split.read(world.features, path, world.val_videos)
    assert split.flaws == (Flaw("beyond the video", f"7 ({name})"), Flaw("no extent", f"7 ({name})"))
    silent = replace(split, pairs=replace(split.pairs, texts=(" ",)))
    assert silent.flaws[-1] == Flaw("no words", "7")
    assert not world.val.flaws


def test_one_id_does_not_stand_for_two_texts(tmp_path: Path) -> None:
    rows = [{"query_id": 7, "query": text, "relevant_moment": [moment("v", 0, 1)]} for text in "ab"]
    path = written(tmp_path / "pairs.json", rows)
    with pytest.raises(DataError, match="entry 2, moment 1: query_id 7 stands for two texts"):
        Pairs.read(path, ["v"])


@pytest.mark.parametrize("content", [[{"id": "v"}], [["v"]], ["v", 1]])
def test_ids_of_videos_are_texts(tmp_path: Path, content: list[Any]) -> None:
    path = written(tmp_path / "videos.json", content)
    with pytest.raises(DataError, match="a list of video ids is expected, each a text"):
        read_videos(str(path))


def test_qrels_are_those_of_the_file(world: Any) -> None:
    split = world.val
    ours, theirs = split.pairs.qrels, read_qrels(world.folder / "val.json")
    answered = [name for name, rows in theirs.rows().items() if rows]
    for name in answered:
        key = lambda row: (row["video_id"], row["start"])  # noqa: E731
        assert sorted(ours.rows()[name], key=key) == sorted(theirs.rows()[name], key=key)
    assert set(ours.query_ids) >= set(answered)


def test_clips_are_of_length_one_and_cut_where_asked(heard_world: Any) -> None:
    folder = heard_world.features
    features, shards = folder.videos(heard_world.val_videos), KeyedShards(folder.folder / "visual")
    assert features.counts.tolist() == [folder.durations[name] for name in features.video_ids]
    for row, name in enumerate(features.video_ids):
        raw = shards.read(name)
        expected = raw / (np.linalg.norm(raw, axis=1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(features.read(row), expected, rtol=1e-6)
        np.testing.assert_array_equal(features.read(row, 1, 4), features.read(row)[1:4])
    visual, mask, subtitles = video_batch(features, np.array([2, 0]))
    assert subtitles is not None
    counts = features.counts[[2, 0]].tolist()
    assert mask.sum(dim=1).tolist() == counts
    np.testing.assert_array_equal(visual[0, : counts[0]], features.read(2))
    said = features.read_subtitles(0)
    assert said is not None
    np.testing.assert_array_equal(subtitles[1, : counts[1]], said)
    whole, full, _ = video_batch(features, np.array([0, 1, 2, 3]))
    assert full.sum(dim=1).tolist() == features.counts.tolist()
    assert whole.shape[1] == features.counts.max()


def test_a_long_query_keeps_its_first_tokens_and_the_last() -> None:
    queries = QueryFeatures.of(("0",), ("long",), [np.eye(6, dtype=np.float32)]).cut(4)
    cut, mask = token_batch(queries, np.array([0]))
    assert cut[0].argmax(dim=1).tolist() == [0, 1, 2, 5]
    assert mask.tolist() == [[1, 1, 1, 1]]
    assert queries.vectors.argmax(axis=1).tolist() == [5]
    assert queries.cut(9).max_tokens == 4  # never more than before


def test_missing_features_are_named(world: Any, tmp_path: Path) -> None:
    folder = world.features
    with pytest.raises(NotFound, match="1 video without features, the first 'nowhere'"):
        folder.videos(["nowhere"])
    pairs = Pairs.read(world.folder / "val.json", world.val_videos)
    with pytest.raises(NotFound, match="1 of 6 queries without features, the first 'unheard of'"):
        folder.queries(pairs.query_ids, ("unheard of", *pairs.texts[1:]))
    with pytest.raises(NotFound, match=r"features\.json: no such file"):
        FeatureFolder.open(tmp_path)
    (tmp_path / "features.json").write_text("{}")
    with pytest.raises((DataError, NotFound)):
        FeatureFolder.open(tmp_path)


def test_a_folder_knows_the_shots_of_videos_that_are_cut(world: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(world.features.folder, tmp_path / "features")
    about = json.loads((folder / "features.json").read_text())
    names = list(about["durations"])
    assert FeatureFolder.open(folder).videos().shots is None
    (folder / "features.json").write_text(json.dumps({**about, "shots": {names[2]: [0, 1.5, 4]}}))
    videos = FeatureFolder.open(folder).videos([names[2], names[5]])
    offsets, edges = videos.shot_edges_of(np.arange(2))
    assert offsets.tolist() == [0, 4, 6]
    assert edges.tolist() == [0, 1.5, 4, about["durations"][names[2]], 0, about["durations"][names[5]]]
    for wrong in ([1, 2], [], [0, 2, 2], [0, float("nan")], ["a"], 3):
        (folder / "features.json").write_text(json.dumps({**about, "shots": {names[2]: wrong}}))
        with pytest.raises(DataError, match="damaged"):
            FeatureFolder.open(folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {"segment_clips": float("inf")}, {"segment_clips": 0}, {"clip_seconds": 0}, {"clip_seconds": "nan"},
        {"durations": {"film": 10**400}}, {"durations": {"film": "short"}},
    ],
)  # fmt: skip
def test_numbers_outside_their_range_are_damage(world: Any, tmp_path: Path, wrong: dict[str, Any]) -> None:
    folder = shutil.copytree(world.features.folder, tmp_path / "features")
    about = json.loads((folder / "features.json").read_text())
    (folder / "features.json").write_text(json.dumps({**about, **wrong}))
    with pytest.raises(DataError, match=r"features\.json: damaged"):
        FeatureFolder.open(folder)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_video_of_no_length_is_named(world: Any, tmp_path: Path, seconds: float) -> None:
    folder = shutil.copytree(world.features.folder, tmp_path / "features")
    about = json.loads((folder / "features.json").read_text())
    about["durations"]["film"] = seconds
    (folder / "features.json").write_text(json.dumps(about))
    with pytest.raises(
        DataError, match=rf"film: a duration of {seconds:g} s; correct it there, or .*without"
    ):
        FeatureFolder.open(folder)


def test_rows_of_zeros_stay_zero() -> None:
    features = np.array([[3, 4], [0, 0]], dtype=np.float32)
    normalised = normalise_rows(features)
    assert normalised == pytest.approx(np.array([[0.6, 0.8], [0, 0]]), abs=1e-5)
    assert normalised.dtype == np.float32


def test_pairs_of_level_0_are_not_learned_from(tmp_path: Path) -> None:
    moments = [
        {"video_name": "v", "timestamp": [start, start + 1], "relevance": level}
        for start, level in ((0, 0), (2, 3))
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([{"query_id": 1, "query": "q", "relevant_moment": moments}]))
    pairs = Pairs.read(path, ["v"]).of_answers()
    assert pairs.start[pairs.moment].tolist() == [2]
    with pytest.raises(InvalidValue, match="relevance 0"):
        replace(pairs, relevance=np.zeros(1)).of_answers()


def test_a_query_that_nothing_answers_has_no_video_of_its_own(world: Any) -> None:
    """Moments of relevance 0 are no truth of retrieval in one video, however few there are beside them."""
    split = world.val
    pairs = split.pairs
    whole = replace(split, pairs=replace(pairs, relevance=np.where(pairs.query == 1, 0.0, pairs.relevance)))
    found = {name for part in of_each_video(whole) for name in part.queries.query_ids}
    assert found == set(pairs.query_ids) - {pairs.query_ids[1]}
    assert not best_answers(whole).rows()[pairs.query_ids[1]]


def test_queries_that_nothing_answers_are_those_that_the_file_says(tmp_path: Path) -> None:
    """An empty list, or moments of relevance 0 alone; not one whose answers are in other videos, or after the
    first N. They are queries of the split, have features and ids, and no answer in its judgements.
    """
    rows = {
        "answered": [moment("v", 0, 2), moment("v", 4, 6, relevance=0)],
        "empty": [],
        "zero": [moment("v", 0, 2, relevance=0), moment("w", 0, 2, relevance=0)],
        "elsewhere": [moment("w", 0, 2)],
        "later": [moment("v", 0, 2, relevance=0), moment("v", 8, 9)],
    }
    path = written(
        tmp_path / "pairs.json",
        [
            {"query_id": name, "query": f"text of {name}", "relevant_moment": own}
            for name, own in rows.items()
        ],
    )
    pairs = Pairs.read(path, ["v"], top=1)
    assert [pairs.query_ids[row] for row in pairs.unanswered.tolist()] == ["empty", "zero"]
    assert pairs.query_ids == tuple(rows) == pairs.qrels.query_ids
    assert pairs.of_answers().of_own_videos().unanswered.tolist() == [1, 2]
    assert len(pairs.of_answers()) == 1
    assert (
        ranked_queries(path) == [f"text of {name}" for name in rows] == [q.text for q in read_queries(path)]
    )
    assert dict(read_query_keys([path], "query_id")) == {f"text of {name}": name for name in rows}


def test_settings_within_settings_are_tables() -> None:
    given: dict[str, Any] = {"loop": {"optimizer": {"lr": 0.1}}}
    settings = read_settings(recipe("xml"), given, ["loop.optimizer.lr=0.2"])
    assert settings.loops["train"].optimizer.lr == 0.2
    assert given == {"loop": {"optimizer": {"lr": 0.1}}}
    for values, overrides in (
        ({}, ["loop.optimizer=adamw"]),
        ({"loop": {"optimizer": "adamw"}}, ["loop.optimizer.lr=0.2"]),
        ({"loop": 5}, []),
    ):
        with pytest.raises(InvalidValue, match="is a table of settings"):
            read_settings(recipe("xml"), values, overrides)


def test_a_text_in_a_file_of_settings_stays_one() -> None:
    """A file says by its quotes what is a text; the command line has none."""
    settings = read_settings(
        recipe("xml"), {"sampling": {"relevant_pairs": "2024"}, "model": {"labels": "1"}}
    )
    assert settings.sampling.relevant_pairs == "2024" and settings.model["labels"] == "1"
    settings = read_settings(recipe("xml"), {"sampling": {"hard_pool": 3}}, ["sampling.hard_pool=4"])
    assert settings.sampling.hard_pool == 4


def test_the_command_line_overrides_a_files_table_of_a_phase() -> None:
    file = {"loop": {"steps": 7, "seed": 7}, "train": {"steps": 6, "seed": 5, "optimizer": {"lr": 0.1}}}
    every = ["loop.steps=2", "loop.optimizer.lr=0.2"]
    loop = read_settings(recipe("xml"), file, every).loops["train"]
    assert (loop.steps, loop.seed, loop.optimizer.lr) == (2, 5, 0.2)
    assert read_settings(recipe("xml"), file, ["train.steps=3", *every]).loops["train"].steps == 3


@pytest.mark.parametrize(
    "sampling, options, message",
    [
        (CandidateSampling, {"negatives": -1}, "negatives=-1: give at least 0"),
        (CandidateSampling, {"pool": 0}, "pool=0: give at least 1"),
        (SegmentSampling, {"segment_clips": 0}, "segment_clips=0: give at least 1"),
    ],
)
def test_options_of_drawing_that_cannot_be(sampling: Any, options: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        sampling(**options)


def test_of_a_type_that_is_drawn_in_part_all_have_their_turn(tmp_path: Path) -> None:
    kinds = ["v"] * 9 + ["t"] * 2  # six of each are drawn: of nine some, of two each thrice
    queries = [
        {"query_id": row, "query": "q", "type": kind, "relevant_moment": [moment("v", row, row + 1)]}
        for row, kind in enumerate(kinds)
    ]
    pairs = Pairs.read(written(tmp_path / "pairs.json", queries), ["v"])
    draw = np.random.default_rng(0)
    epochs = [epochs_of(pairs, even_types=True).parts(draw)[0].tolist() for _ in range(20)]
    assert set(epochs[0]) < set().union(*epochs) == set(range(11))
