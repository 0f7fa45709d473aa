"""XML, ReLoCLNet, CONQUER and PREM learn a toy corpus; their batches, answers and runs are what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, normalise_rows
from moviola.retrieval import TrainedStage1
from moviola.retrieval.saved.clip_windows import pool_clips
from moviola.study.datasets.building.relevant_pairs import (
    RelevantPairs,
    mark_of,
    relevant_pairs,
    write_relevant_pairs,
)
from moviola.study.measures import Run
from moviola.study.models.batches import PairBatch
from moviola.study.models.pretrained import build
from moviola.study.models.running import TorchRunner
from moviola.study.training.batches import token_batch
from moviola.study.training.corpus import PooledVideos, best_videos, encoded_corpus
from moviola.study.training.data import Pairs, Split
from moviola.study.training.recipe import AnswerSettings, Trained, train
from moviola.study.training.recipes import recipe
from moviola.study.training.recipes.conquer import CONQUER
from moviola.study.training.recipes.prem import PREM
from moviola.study.training.recipes.reloclnet import RELOCLNET
from moviola.study.training.recipes.spr import SPR_STAGE1
from moviola.study.training.recipes.xml import XML_RECIPE, _relevance
from moviola.study.training.settings import TrainingSettings, read_settings
from moviola.study.training.tasks.candidates import hardest_videos, without_answer
from moviola.study.training.tasks.pairs import PairSampling, PairTask
from moviola.study.training.validation import judge, judge_videos

SMALL = ["model.hidden_size=16", "model.heads=2", "model.dropout=0.0"]
QUICK = ["loop.optimizer.lr=3e-3", "loop.batch_size=16", "loop.evaluate_every=1000", "loop.patience=0"]
OVERRIDES: dict[str, list[str]] = {
    "xml": ["model.shortest_span=1", "model.span_weight=0.3", "loop.steps=120", "sampling.hard_from=3"],
    "reloclnet": ["model.shortest_span=1", "model.span_weight=0.3", "loop.steps=120"],
    "conquer": ["model.feed_forward_size=32", "model.span_weight=1.0", "loop.steps=60"],
    "prem": ["model.feed_forward_size=32", "loop.steps=60"],
}
for rival in ("conquer", "prem"):
    OVERRIDES[rival].append("sampling.negatives=2")  # some queries have answers in all but two videos
CHOSEN = "nDCG@10,IoU>=0.5"


def settings_of(name: str, *more: str) -> TrainingSettings:
    return read_settings(recipe(name), overrides=[*SMALL, *QUICK, *OVERRIDES[name], *more])


def with_first_stage(split: Split) -> Split:
    """The first stage likes the videos that hold answers somewhat better, as a real one does."""
    pairs = split.pairs
    scores = np.random.default_rng(0).random((len(pairs.query_ids), len(pairs.videos))).astype(np.float32)
    scores[pairs.query, pairs.video[pairs.moment]] += 1
    return replace(split, first_stage=(scores + 0.1).__getitem__)


def trained(name: str, world: Any, *more: str, **how: Any) -> Trained:
    learned, val = (with_first_stage(split) for split in (world.train, world.val))
    return train(recipe(name), learned, val, settings_of(name, *more), **how)


def untrained(name: str, split: Split, *more: str) -> nn.Module:
    torch.manual_seed(0)
    chosen = recipe(name)
    return build(name, {**chosen.sized(split.sizes), **settings_of(name, *more).model}).eval()


def captions_alike(split: Split) -> RelevantPairs:
    """Pairs of captions that say the same, by one-hot sentence embeddings."""
    kinds = {caption: place for place, caption in enumerate(dict.fromkeys(split.pairs.captions))}
    vectors = np.eye(len(kinds), dtype=np.float32)[[kinds[caption] for caption in split.pairs.captions]]
    found = relevant_pairs(vectors, vectors, np.arange(len(vectors) + 1), 0.5)
    return replace(found, mark=mark_of(split.pairs.captions))


# ---- learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OVERRIDES)
def test_a_recipe_learns_to_rank(name: str, world: Any) -> None:
    val = with_first_stage(world.val)
    before = judge(recipe(name).run(untrained(name, val), val), val)[CHOSEN]
    result = trained(name, world)
    after = judge(recipe(name).run(result.model, val), val)[CHOSEN]
    assert after > before + 0.15, f"{name}: {before:.3f} untrained, {after:.3f} trained"
    assert not result.model.training
    if name != "prem":
        assert result.fitted[-1].history[-1][CHOSEN] == pytest.approx(after)


@pytest.mark.parametrize("name", OVERRIDES)
def test_the_same_seed_gives_the_same_weights(name: str, world: Any) -> None:
    first, second, other = (
        trained(name, world, "loop.steps=4", f"loop.seed={seed}", "model.dropout=0.1").model.state_dict()
        for seed in (3, 3, 4)
    )
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


class Interrupted(Exception):
    """Stands for whatever ends a run."""


@pytest.mark.parametrize(("name", "after"), [("xml", 5), ("conquer", 5), ("prem", 5), ("prem", 9 + 5)])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    name: str, after: int, world: Any, tmp_path: Path
) -> None:
    more = ("loop.steps=9", "loop.evaluate_every=3", "model.dropout=0.1")
    whole = trained(name, world, *more, folder=tmp_path / "whole").model.state_dict()
    done: set[tuple[bool, int]] = set()

    def stop(step: int, total: int, values: Any) -> None:
        done.add((any(term in values for term in ("start", "nDCG@10,IoU>=0.5")), step))
        if len(done) == after:
            raise Interrupted

    # What an older run left in the folder must not be taken for this one's.
    trained(name, world, *more, "loop.seed=1", folder=tmp_path / "run")
    with pytest.raises(Interrupted):
        trained(name, world, *more, folder=tmp_path / "run", progress=stop)
    resumed = trained(name, world, *more, folder=tmp_path / "run", resume=True).model.state_dict()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


@pytest.mark.parametrize("name", OVERRIDES)
def test_subtitles_are_read_where_there_are_any(name: str, heard_world: Any) -> None:
    train_split = heard_world.train
    assert recipe(name).sized(train_split.sizes)["subtitle_size"] == (8 if name == "xml" else 6)
    result = trained(name, heard_world, "loop.steps=2")
    run = recipe(name).run(result.model, with_first_stage(heard_world.val))
    assert len(run) > 0


def test_the_papers_settings() -> None:
    loops = {name: recipe(name).settings.loops for name in OVERRIDES}
    assert {name: [loop.batch_size for loop in own.values()] for name, own in loops.items()} == {
        "xml": [128], "reloclnet": [512], "conquer": [16], "prem": [256, 32],
    }  # fmt: skip
    assert {loop.optimizer.lr for own in loops.values() for loop in own.values()} == {1e-4}
    assert [own["train"].optimizer.name for own in (loops["xml"], loops["reloclnet"], loops["conquer"])] == [
        "bert_adam", "bert_adam", "adamw",
    ]  # fmt: skip
    assert list(loops["prem"]) == ["retriever", "localizer"]
    assert [PairSampling().pool(epoch) for epoch in (0, 19, 20, 500)] == [None, None, 20, 20]
    literal = PairSampling(first_pool=1)  # paper 003, appendix A
    assert [literal.pool(epoch) for epoch in (0, 19, 20, 500)] == [1, 1, 20, 20]
    assert (CONQUER.settings.sampling.negatives, PREM.settings.sampling.negatives) == (3, 4)


@pytest.mark.parametrize("clip_seconds", [0.5, 1.0, 1.5, 60.0])
def test_limits_of_moments_are_the_papers_in_seconds(clip_seconds: float, world: Any) -> None:
    sizes = replace(world.train.sizes, clip_seconds=clip_seconds)
    for chosen in (XML_RECIPE, RELOCLNET):
        sized = chosen.sized(sizes)
        assert 0 <= sized["shortest_span"] < sized["longest_span"]
        if clip_seconds <= 1.5:
            assert (sized["shortest_span"] + 1) * clip_seconds == pytest.approx(3.0)
            assert sized["longest_span"] * clip_seconds == pytest.approx(22.5, abs=clip_seconds / 2)
    assert PREM.sized(sizes)["longest_span"] == max(1, round(36 / clip_seconds))


@pytest.mark.parametrize(("name", "value"), [("clip_seconds", 3), ("visual_size", 7), ("query_size", 7)])
def test_properties_of_the_features_are_no_settings(name: str, value: int, world: Any) -> None:
    with pytest.raises(InvalidValue, match=rf"model\.{name}={value}: the features have"):
        train(XML_RECIPE, world.train, world.val, settings_of("xml", f"model.{name}={value}"))


def test_subtitles_may_be_left_out(heard_world: Any) -> None:
    settings = settings_of("xml", "model.subtitle_size=0", "loop.steps=1")
    found: Any = train(XML_RECIPE, heard_world.train, heard_world.val, settings).model
    assert found.config.subtitle_size == 0


def test_prem_may_read_lines_alone_and_xml_may_not(heard_world: Any) -> None:
    """Without pictures PREM's answers do not change with them (its row "Text")."""
    phases = [f"{phase}.steps=1" for phase in ("retriever", "localizer")]
    settings = settings_of("prem", "model.visual_size=0", "sampling.negatives=1", *phases)
    found: Any = train(PREM, heard_world.train, heard_world.val, settings).model
    assert found.config.stream_sizes == (heard_world.val.sizes.subtitle,)
    assert len(PREM.run(found, heard_world.val)) > 0
    with pytest.raises(InvalidValue, match=r"model\.visual_size=0: the features have"):
        settings = settings_of("xml", "model.visual_size=0")
        train(XML_RECIPE, heard_world.train, heard_world.val, settings)


# ---- batches ---------------------------------------------------------------------------------------------


def pair_task(split: Split, batch_size: int = 8, longest: int = 100) -> PairTask:
    videos = PooledVideos(split.features, longest)
    return PairTask(nn.Linear(1, 1), videos, split.queries, split.pairs, lambda *_: {}, dict, batch_size)


def held_by(batch: PairBatch, split: Split) -> tuple[Integers, Integers]:
    """Rows of the queries and of the moments of a batch."""
    assert batch.rows is not None
    rows = batch.rows.numpy()
    return split.pairs.query[rows], split.pairs.moment[rows]


def assert_whole_set(pairs: Pairs, queries: Integers, mask: Tensor, videos: Integers) -> None:
    """A query is related to the videos of all its moments, whichever of them are in the batch."""
    answers = {*zip(pairs.query.tolist(), pairs.video[pairs.moment].tolist(), strict=True)}
    assert mask.tolist() == [[(q, v) in answers for v in videos.tolist()] for q in queries.tolist()]


def test_an_epoch_holds_each_pair_once_and_a_batch_each_video_once(world: Any) -> None:
    split = world.train
    task = pair_task(split)
    seen: list[tuple[str, int]] = []
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch()
    for pairs in batches:
        queries, moments = held_by(pairs, split)
        assert len(pairs.visual) == len(np.unique(split.pairs.video[moments]))
        for row, moment in enumerate(moments):
            video = split.pairs.video[moment]
            own = pairs.visual[pairs.video[row]][pairs.mask[pairs.video[row]] > 0]
            assert torch.equal(own, torch.from_numpy(split.features.read(int(video))))
            start, end = pairs.labels[row].tolist()
            assert (start, end + 1) == (split.pairs.start[moment], split.pairs.end[moment])
        assert_whole_set(split.pairs, queries, pairs.positives, split.pairs.video[moments])
        seen += [(str(pairs.query[row].sum().item()), int(m)) for row, m in enumerate(moments)]
    assert len(seen) == len(set(seen)) == len(split.pairs)


def test_batches_by_stream_have_queries_of_one_stream(world: Any) -> None:
    types = tuple("vt" if row % 3 else "t" for row in range(len(world.train.pairs.query_ids)))
    split = replace(world.train, pairs=replace(world.train.pairs, types=types))
    task = replace(pair_task(split), by_stream=True)
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch()
    spoken = [{types[query] == "t" for query in held_by(batch, split)[0]} for batch in batches]
    assert {len(kinds) for kinds in spoken} == {1}
    assert set().union(*spoken) == {True, False}
    assert sum(map(len, batches)) == len(split.pairs)
    assert spoken != sorted(spoken, key=max)  # parts are not learned one after the other
    for batch in batches:
        assert batch.spoken is not None
        assert batch.spoken.tolist() == [types[query] == "t" for query in held_by(batch, split)[0]]


def test_a_long_video_is_pooled_and_its_moments_come_back_in_seconds(world: Any) -> None:
    split = world.train
    videos = PooledVideos(split.features, 5)
    row = int(split.features.counts.argmax())
    count = int(split.features.counts[row])
    visual, mask, _ = videos.batch(np.array([row]))
    assert mask.sum() == 5
    pooled = normalise_rows(pool_clips(split.features.read(row), 5))
    assert torch.equal(visual[0], torch.from_numpy(pooled))
    moments = np.flatnonzero(split.pairs.video == row)
    labels = videos.labels(split.pairs.video[moments], split.pairs.start[moments], split.pairs.end[moments])
    stretch = count / 5
    assert videos.stretch[row] == stretch
    assert (labels[:, 0] * stretch <= split.pairs.start[moments] + 1e-9).all()
    assert ((labels[:, 1] + 1) * stretch >= split.pairs.end[moments] - 1e-9).all()


def test_moments_of_pooled_videos_end_with_their_videos(world: Any) -> None:
    val = world.val  # 4 videos of 5 clips have 60 spans, which are all among the answers
    model = untrained("xml", val, "model.max_clips=5", "model.top_moments=100", "model.shortest_span=0")
    for moments in XML_RECIPE.run(model, val).rows().values():
        assert len(moments) == 60
        for video, duration in zip(val.features.video_ids, val.features.durations, strict=True):
            spans = sorted((m["start"], m["end"]) for m in moments if m["video_id"] == video)
            clips = [(i, j) for i in range(5) for j in range(i + 1, 6)]
            assert np.allclose(spans, np.array(clips) * duration / 5)


def test_moments_in_a_last_clip_that_is_cut_short_end_with_the_video(world: Any) -> None:
    """Not with the clip, which is a whole second."""
    val = world.val
    short = replace(val, features=replace(val.features, durations=val.features.durations - 0.4))
    moments = XML_RECIPE.moments(
        untrained("xml", short, "model.shortest_span=0", "model.top_moments=100"), short, AnswerSettings()
    )
    ends = short.features.durations[moments.video]
    assert (moments.end <= ends).all() and (moments.end == ends).any()


def test_negatives_are_videos_without_an_answer_that_the_retriever_likes_best(world: Any) -> None:
    split = world.train
    pairs, count = split.pairs, len(split.pairs.videos)
    scores = np.random.default_rng(1).random((len(pairs.query_ids), count)).astype(np.float32)
    scores[:, 3] = -np.inf
    hardest = hardest_videos(scores.__getitem__, pairs, 4)
    for query, row in enumerate(hardest):
        answering = set(pairs.video[pairs.moment[pairs.query == query]].tolist())
        free = [v for v in np.argsort(-scores[query]) if v not in answering and v != 3]
        assert [v for v in row.tolist() if v >= 0] == free[:4]
        assert (row[len(free) :] == -1).all()
    assert np.isneginf(scores[:, 3]).all() and np.isfinite(np.delete(scores, 3, axis=1)).all()


def test_candidates_lead_with_the_own_video_and_never_repeat(world: Any) -> None:
    split = with_first_stage(world.train)
    model = untrained("conquer", split)
    task: Any
    (task,) = CONQUER.phases(model, split, split, settings_of("conquer", "sampling.negatives=2"))
    batch = task.batch(np.arange(len(split.pairs)), np.random.default_rng(0))
    own = split.pairs.video[split.pairs.moment]
    for row, candidates in enumerate(batch.candidates):
        assert len(set(candidates.tolist())) == 3
        kept = batch.visual[candidates[0]][batch.mask[candidates[0]] > 0]
        assert torch.equal(kept, torch.from_numpy(split.features.read(int(own[row]))))
    with pytest.raises(InvalidValue, match="fewer negatives"):
        list(CONQUER.phases(model, split, split, settings_of("conquer", "sampling.negatives=10")))


def test_prem_counts_its_candidates_before_the_retriever_is_trained(world: Any) -> None:
    pairs, model = world.train.pairs, untrained("prem", world.train)
    scores = np.random.default_rng(0).random((len(pairs.query_ids), len(pairs.videos)))
    for pool in (1, 3, 100):
        found = (hardest_videos(scores.__getitem__, pairs, pool) >= 0).sum(axis=1)
        assert without_answer(pairs, pool).tolist() == found.tolist()

    def first_phase(split: Split) -> Any:
        return next(iter(PREM.phases(model, split, world.val, settings_of("prem", "sampling.negatives=10"))))

    poorest = int(without_answer(pairs, 100)[pairs.query].argmin())
    text = re.escape(pairs.texts[pairs.query[poorest]])
    with pytest.raises(InvalidValue, match=f"{text}.*: 2 videos .* give more videos or fewer negatives"):
        first_phase(world.train)
    everywhere = replace(
        pairs, query=np.zeros(len(pairs), np.int64), moment=np.arange(len(pairs)) % len(pairs.video)
    )
    with pytest.raises(InvalidValue, match=r": 0 videos .* leave the query out"):
        first_phase(replace(world.train, pairs=everywhere))


@pytest.mark.parametrize("recipe", [CONQUER, PREM])
def test_types_are_drawn_evenly_with_candidates_too(world: Any, recipe: Any) -> None:
    """The pairs of the world have no types, which is refused as soon as batches are counted."""
    name = recipe.architecture
    settings = settings_of(name, "sampling.even_types=true", "sampling.negatives=1")
    train = replace(world.train, pairs=replace(world.train.pairs, types=()))
    if name == "conquer":
        train = replace(
            train, first_stage=lambda some: np.ones((len(range(some.start, some.stop)), len(train.features)))
        )
    first = next(iter(recipe.phases(untrained(name, train), train, world.val, settings)))
    with pytest.raises(InvalidValue, match=r"sampling\.even_types: a training query has no type"):
        first.batches_per_epoch()


def test_conquer_without_a_first_stage_says_so(world: Any) -> None:
    with pytest.raises(InvalidValue, match="first_stage"):
        train(CONQUER, world.train, world.val, settings_of("conquer"))
    with pytest.raises(InvalidValue, match="first_stage"):
        CONQUER.run(untrained("conquer", world.val), world.val)


# ---- potentially relevant pairs --------------------------------------------------------------------------

RELEVANT = ("model.relevant_pairs={pairs=true, segments=true}", "loop.steps=3")


@pytest.fixture
def alike(world: Any, tmp_path: Path) -> str:
    """The setting that names the file of the training captions' relevant pairs."""
    path = tmp_path / "relevant.npz"
    write_relevant_pairs(captions_alike(world.train), path)
    return f"sampling.relevant_pairs={str(path)!r}"


def test_relevant_pairs_are_learned_from(world: Any, alike: str) -> None:
    given, again = (trained("xml", world, *RELEVANT, alike) for _ in range(2))
    plain = trained("xml", world, "loop.steps=3")
    weights, same, other = (result.model.state_dict() for result in (given, again, plain))
    assert all(torch.equal(weights[key], same[key]) for key in weights)
    assert not all(torch.equal(weights[key], other[key]) for key in weights)
    assert "loss/segment_relevant_over_negative" in given.fitted[0].history[0]
    assert "loss/relevant_span" not in plain.fitted[0].history[0]


def test_a_known_answer_is_not_merely_relevant(world: Any) -> None:
    split = world.train
    batch = pair_task(split, batch_size=len(split.pairs)).batch(
        np.arange(len(split.pairs)), np.random.default_rng(0)
    )
    count = len(split.pairs.captions)
    all_alike = relevant_pairs(np.ones((count, 1)), np.ones((count, 1)), np.arange(count + 1), 0.5)
    found = _relevance(all_alike, split.pairs, batch)["relevance"]
    answers = {*zip(split.pairs.query.tolist(), split.pairs.moment.tolist(), strict=True)}
    queries, moments = held_by(batch, split)
    known = torch.tensor([[(q, m) in answers for m in moments.tolist()] for q in queries.tolist()])
    assert found.any()
    assert not found[known].any()


def test_moments_that_come_twice_in_a_batch_keep_their_relevant_pairs(world: Any, alike: str) -> None:
    shared = np.bincount(world.train.pairs.moment)
    assert shared.max() > 1, "the toy world has moments that answer two queries"
    trained("xml", world, *RELEVANT, "loop.batch_size=200", alike)


def test_missing_or_foreign_relevant_pairs_are_refused(world: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"sampling\.relevant_pairs"):
        trained("xml", world, *RELEVANT)
    path = tmp_path / "foreign.npz"
    write_relevant_pairs(captions_alike(world.val), path)
    with pytest.raises(InvalidValue, match="make them of this training file"):
        trained("xml", world, *RELEVANT, f"sampling.relevant_pairs={str(path)!r}")
    # The same captions in another order, as another pair file of the same moments has them.
    reversed_mark = mark_of(world.train.pairs.captions[::-1])
    write_relevant_pairs(replace(captions_alike(world.train), mark=reversed_mark), path)
    with pytest.raises(InvalidValue, match=r"foreign\.npz: relevant pairs of other captions .* order; make"):
        trained("xml", world, *RELEVANT, f"sampling.relevant_pairs={str(path)!r}")


# ---- answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OVERRIDES)
def test_a_corpus_encoded_in_batches_is_the_corpus_encoded_at_once(name: str, world: Any) -> None:
    split = world.train
    model = untrained(name, split)
    videos = recipe(name).videos(model, split.features)  # type: ignore[attr-defined]
    with torch.inference_mode():
        one, many = (encoded_corpus(model, videos, batch=size) for size in (1000, 3))
    for field, value in vars(one).items():
        streams = [value, getattr(many, field)]
        if value is None:
            continue
        columns = zip(*streams, strict=True) if isinstance(value, tuple) else [streams]
        there = one.mask[:, 0] if one.mask.ndim == 3 else one.mask
        for left, right in columns:
            if field != "mask":  # at padding an encoder may say what it likes
                shape = [len(there), *[1] * (left.ndim - 3), there.shape[1], 1]
                left, right = (x * there.view(shape) for x in (left, right))
            assert torch.allclose(left.float(), right.float(), atol=1e-5), field


@pytest.mark.parametrize("name", OVERRIDES)
def test_runs_stay_in_their_videos(name: str, world: Any) -> None:
    val = with_first_stage(world.val)
    run = recipe(name).run(untrained(name, val), val)
    durations = dict(zip(val.features.video_ids, val.features.durations, strict=True))
    assert run.query_ids == val.queries.query_ids
    for moments in run.rows().values():
        assert 0 < len(moments) <= 100
        assert all(0 <= m["start"] < m["end"] <= durations[m["video_id"]] for m in moments)
        scores = [m["score"] for m in moments]
        assert scores == sorted(scores, reverse=True)


def test_prem_ranks_whole_videos(world: Any) -> None:
    val = world.val
    model: Any = trained("prem", world).model
    run = PREM.video_run(model, val)
    durations = dict(zip(val.features.video_ids, val.features.durations, strict=True))
    for moments in run.rows().values():
        assert sorted(m["video_id"] for m in moments) == sorted(val.features.video_ids)
        assert all((m["start"], m["end"]) == (0.0, durations[m["video_id"]]) for m in moments)
    before = judge_videos(PREM.video_run(untrained("prem", val), val), val)
    assert judge_videos(run, val)["video nDCG@5"] > before["video nDCG@5"]


def best_first(scores: Tensor | NDArray[np.float32], names: tuple[str, ...]) -> list[list[str]]:
    """Videos of each query by a table of scores, equal ones in their order."""
    return [
        [names[video] for video in sorted(range(len(names)), key=lambda v, row=row: -row[v])]
        for row in np.asarray(scores).tolist()
    ]


def ranked_names(run: Run) -> list[list[str]]:
    return [[moment["video_id"] for moment in rows] for rows in run.rows().values()]


@pytest.mark.parametrize("name", ["xml", "reloclnet", "prem"])
def test_videos_are_ranked_by_the_models_own_score_of_a_video(name: str, world: Any) -> None:
    """Also those in which no moment is an answer."""
    val, how = world.val, recipe(name)
    model: Any = untrained(name, val, "model.top_videos=2")
    with torch.inference_mode():
        context = encoded_corpus(model, how.videos(model, val.features))  # type: ignore[attr-defined]
        tokens, mask = token_batch(how.queries(model, val.queries), np.arange(len(val.queries)))  # type: ignore[attr-defined]
        if name == "prem":
            units = model.retriever.encode_query(tokens, mask)
            scores = model.retriever.score(units, context.units, context.mask)
        else:
            scores = model.video_scores(model.encode_query(tokens, mask), context)
    found = how.video_run(model, val)
    assert ranked_names(found) == best_first(scores, val.features.video_ids)
    durations = dict(zip(val.features.video_ids, val.features.durations, strict=True))
    for rows in found.rows().values():
        assert all((m["start"], m["end"]) == (0.0, durations[m["video_id"]]) for m in rows)
    answered = {m["video_id"] for m in how.run(model, val).rows()[val.queries.query_ids[0]]}
    assert len(answered) <= 2 < len(val.features)


@pytest.mark.parametrize("similarity", ["exclusive", "disjoint"])
def test_conquer_ranks_its_candidates_again_where_it_scores_videos(world: Any, similarity: str) -> None:
    val = with_first_stage(world.val)
    assert val.first_stage is not None
    model: Any = untrained("conquer", val, f"model.similarity={similarity}", "model.candidates=3")
    found = CONQUER.video_run(model, val)
    with torch.inference_mode():
        context = encoded_corpus(model, CONQUER.videos(model, val.features))
        tokens, mask = token_batch(CONQUER.queries(model, val.queries), np.arange(len(val.queries)))
        first_stage = torch.from_numpy(val.first_stage(slice(0, len(val.queries))))
        candidates = first_stage.topk(3).indices
        scores = model.match(model.encode_query(tokens, mask), context.select(candidates))
        terms = model.video_terms(scores, first_stage.gather(1, candidates))
    names, order = val.features.video_ids, terms.argsort(dim=1, descending=True)
    expected = [[names[v] for v in row] for row in candidates.gather(1, order).tolist()]
    assert ranked_names(found) == expected
    assert ranked_names(found) != [[names[v] for v in row] for row in candidates.tolist()]


def test_conquer_ranks_no_videos_again_and_stage_1_by_the_best_segment(world: Any) -> None:
    val = with_first_stage(world.val)
    found = CONQUER.video_run(untrained("conquer", val), val)
    assert val.first_stage is not None
    assert ranked_names(found) == best_first(
        val.first_stage(slice(0, len(val.queries))), val.features.video_ids
    )
    torch.manual_seed(0)
    model = build("spr-stage1", {"hidden_size": val.features.visual.dim, "layers": 1, "heads": 2}).eval()
    stage1 = TrainedStage1(TorchRunner(model), "test")  # type: ignore[arg-type]
    cosines = [
        (stage1.queries(val.queries) @ stage1.segments(val.features.read(video), 4).T).max(axis=1)
        for video in range(len(val.features))
    ]
    found = SPR_STAGE1.video_run(model, val)
    assert ranked_names(found) == best_first(np.stack(cosines, axis=1), val.features.video_ids)


@pytest.mark.parametrize("name", OVERRIDES)
def test_scores_of_search_are_none_of_these_models(name: str, world: Any) -> None:
    val = with_first_stage(world.val)
    with pytest.raises(InvalidValue, match="`moviola search` does not use it"):
        recipe(name).moments(untrained(name, val), val, AnswerSettings(scored=True))


def test_whole_videos_are_judged_by_their_most_relevant_moment(world: Any) -> None:
    val = world.val
    pairs = val.pairs
    relevance = np.zeros((len(pairs.query_ids), len(pairs.videos)))
    for row, moment, grade in zip(pairs.query, pairs.moment, pairs.relevance, strict=True):
        relevance[row, pairs.video[moment]] = max(relevance[row, pairs.video[moment]], grade)
    query, video = (axis.ravel() for axis in np.indices(relevance.shape))

    def judged(scores: NDArray[np.float64]) -> dict[str, float]:
        names, videos = np.array(pairs.query_ids), np.array(pairs.videos)
        ends = val.features.durations[video]
        run = Run.from_columns(names[query], videos[video], np.zeros(len(ends)), ends, scores.ravel())
        return judge_videos(run, val)

    assert list(judged(relevance).values()) == pytest.approx([1.0] * 4)
    assert judged(-relevance)["video nDCG@5"] < 1


def test_of_videos_with_equal_scores_the_first_comes_first(world: Any) -> None:
    """Whole videos by a score, ties in the order of the videos, so that a run is the same everywhere."""
    features = world.val.features
    count = len(features)
    scores = np.array([[0.5] * count, [0.1, *[0.7] * (count - 1)]], np.float32)
    found = best_videos(lambda some: scores[some], features, 2, keep=3)
    assert found.video.tolist() == [0, 1, 2, 1, 2, 3]


def test_negatives_are_drawn_from_all_of_the_pool(world: Any) -> None:
    """Each has its turn, not the hardest alone."""
    split = with_first_stage(world.train)
    task: Any
    settings = settings_of("conquer", "sampling.negatives=1", "sampling.pool=3")
    (task,) = CONQUER.phases(untrained("conquer", split), split, split, settings)
    known = {split.features.read(video).tobytes(): video for video in range(len(split.features))}
    draw, drawn = np.random.default_rng(0), set()
    for _ in range(30):
        batch = task.batch(np.array([0]), draw)
        other = batch.candidates[0, 1]
        drawn.add(known[batch.visual[other][batch.mask[other] > 0].numpy().tobytes()])
    hardest = task.hardest[split.pairs.query[0]]
    assert drawn == set(hardest[hardest >= 0].tolist()) and len(drawn) > 1


def test_a_batch_knows_how_alike_its_pairs_are(world: Any) -> None:
    similarity = np.linspace(0.1, 1, len(world.train.pairs), dtype=np.float32)
    split = with_first_stage(replace(world.train, pairs=replace(world.train.pairs, similarity=similarity)))
    task: Any
    (task,) = CONQUER.phases(untrained("conquer", split), split, split, settings_of("conquer"))
    rows = np.array([5, 0, 3])
    for pairs in (
        task.batch(rows, np.random.default_rng(0)),
        pair_task(split).batch(rows, np.random.default_rng(0)),
    ):
        assert pairs.similarity.tolist() == similarity[rows].tolist()


def test_a_model_has_places_for_the_longest_video_of_both_splits(world: Any) -> None:
    longest = [int(split.features.counts.max()) for split in (world.train, world.val)]
    assert longest[0] != longest[1]
    settings = settings_of("reloclnet", "loop.steps=1")
    for one, other in ((world.train, world.val), (world.val, world.train)):
        model: Any = train(RELOCLNET, one, other, settings).model
        assert model.config.max_clips == max(longest)


def test_queries_ranked_in_parts_are_ranked_as_at_once(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    val = world.val
    model = untrained("xml", val)
    whole = XML_RECIPE.run(model, val).rows()
    monkeypatch.setattr("moviola.study.training.corpus._CHUNK", 2)
    parts = XML_RECIPE.run(model, val).rows()
    assert parts.keys() == whole.keys() and len(whole) > 2
    for query, moments in whole.items():
        assert [m["score"] for m in parts[query]] == pytest.approx([m["score"] for m in moments], rel=1e-4)
        assert (parts[query][0]["video_id"], parts[query][0]["start"]) == (
            moments[0]["video_id"], moments[0]["start"],
        )  # fmt: skip


@pytest.mark.parametrize("name", OVERRIDES)
def test_a_model_is_asked_in_batches_of_one_shape(
    name: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last bits of products depend on their shape: in batches of as many queries as are left, as wide as
    the longest, a score depended on the other queries.
    """
    monkeypatch.setattr("moviola.study.training.corpus._CHUNK", 4)
    val = with_first_stage(world.val)
    model: Any = untrained(name, val)
    shapes, own = set(), model.rank

    def rank(query: Tensor, mask: Tensor, *given: Any, **named: Any) -> Any:
        shapes.add((*query.shape, *mask.shape))
        return own(query, mask, *given, **named)

    monkeypatch.setattr(model, "rank", rank)
    few = replace(val, queries=val.queries.select([2]))
    whole, alone = (recipe(name).moments(model, split, AnswerSettings()) for split in (val, few))
    assert shapes == {(4, model.config.max_tokens, val.queries.dim, 4, model.config.max_tokens)}
    assert len(whole) == len(val.queries) == 6 and len(alone) == 1
    if name != "conquer":  # whose first stage's scores are by place
        assert alone.score == pytest.approx(whole.score[whole.rows(2)], rel=1e-4)


def test_both_halves_of_prem_apart_learn_by_stream(heard_world: Any) -> None:
    pairs, apart = heard_world.train.pairs, recipe("prem-apart")
    types = tuple("vt"[row % 2] for row in range(len(pairs.query_ids)))
    split = replace(heard_world.train, pairs=replace(pairs, types=types))
    more = ("model.feed_forward_size=32", "model.shared_encoder=false", "sampling.negatives=1")
    settings = read_settings(apart, overrides=[*SMALL, *QUICK, *more])
    model = build("prem-apart", {**apart.sized(split.sizes), **settings.model}).eval()
    tasks: list[Any] = list(apart.phases(model, split, heard_world.val, settings))
    assert len(tasks) == 2
    for task in tasks:
        batches = [getattr(batch, "pairs", batch) for batch in task.batches(0, np.random.default_rng(0))]
        assert {len(set(batch.spoken.tolist())) for batch in batches} == {1}
        assert {bool(batch.spoken[0]) for batch in batches} == {True, False}
