"""Batches of Reel against brute force; refining reads what training reads; it learns the toy world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from moviola.errors import DataError, InvalidValue
from moviola.retrieval import Calibration, Moments, Proposals, refiner_of
from moviola.retrieval.calibration import sigmoid
from moviola.study.measures import Run
from moviola.study.models.pretrained import build
from moviola.study.models.reel import Reel, ReelContext
from moviola.study.models.running import TorchRunner
from moviola.study.training.batches import token_batch, video_batch
from moviola.study.training.data import Split
from moviola.study.training.recipe import AnswerSettings, train
from moviola.study.training.recipes.reel import CROSSINGS, PROPOSAL_SHARES, REEL
from moviola.study.training.settings import read_settings
from moviola.study.training.tasks.answers import AnswerTask
from moviola.study.training.validation import judge

SMALL = [
    "model.hidden_size=16", "model.heads=2", "model.longest_span=8", "model.dropout=0.0",
    "loop.batch_size=4", "loop.optimizer.lr=1e-2",
]  # fmt: skip


def proposed(split: Split, own: list[tuple[int, float, float]]) -> Split:
    """The split with the same proposals, video and span, for every query."""
    queries = range(len(split.queries))
    rows = [(query, *row) for query in queries for row in own]
    query, video, start, end = zip(*rows, strict=True)
    proposals = Proposals.of_columns(query, video, start, end, [1.0] * len(rows), queries=len(queries))
    return replace(split, proposals=proposals)


def whole_videos(split: Split) -> Split:
    """The split with every video as one proposal of every query."""
    return proposed(split, [(row, 0.0, float(end)) for row, end in enumerate(split.features.durations)])


def reel_run(model: Reel, split: Split, **how: Any) -> Run:
    return REEL.run(model, split, AnswerSettings(**how))


def model_for(split: Split, seed: int = 0) -> Reel:
    torch.manual_seed(seed)
    settings = read_settings(REEL, overrides=SMALL)
    model = build("reel", {**REEL.sized(split.sizes), **settings.model})
    assert isinstance(model, Reel)
    return model.eval()


def task_for(split: Split, batch_size: int = 3) -> AnswerTask:
    model = model_for(split)
    return AnswerTask(model, model.loss, split.features, split.queries, split.pairs, dict, batch_size)


def test_an_epoch_asks_each_query_once(world: Any) -> None:
    split = world.train
    task = task_for(split, 4)
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch()
    queries = [
        query[mask > 0]
        for batch in batches
        for query, mask in zip(batch.query, batch.query_mask, strict=True)
    ]
    every, mask = token_batch(split.queries, np.arange(len(split.queries)))
    expected = sorted(tokens[there > 0].sum().item() for tokens, there in zip(every, mask, strict=True))
    assert sorted(tokens.sum().item() for tokens in queries) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_has_all_answers_in_its_videos_and_no_others(world: Any, seed: int) -> None:
    split = world.train
    pairs, features = split.pairs, split.features
    queries = np.array([4, 1, 2])
    batch = task_for(split).batch(queries, np.random.default_rng(seed))
    counts = batch.mask.sum(dim=1).long().tolist()
    videos = []
    for visual, count in zip(batch.visual, counts, strict=True):
        same = [v for v in range(len(features)) if np.array_equal(features.read(v), visual[:count])]
        videos += same
    assert len(videos) == len(counts)
    assert len(set(videos)) == len(videos)
    expected = set()
    for row, query in enumerate(queries):
        own = [p for p in range(len(pairs)) if pairs.query[p] == query]
        held = [p for p in own if pairs.video[pairs.moment[p]] in videos]
        assert held, "a query without any answer in the batch"
        for p in held:
            m = pairs.moment[p]
            expected.add(
                (row, videos.index(pairs.video[m]), pairs.start[m], pairs.end[m], float(pairs.similarity[p]))
            )
    found = [
        (*answer, *span, similarity)
        for answer, span, similarity in zip(
            batch.answer.tolist(), batch.span.tolist(), batch.similarity.tolist(), strict=True
        )
    ]
    assert len(found) == len(expected)
    assert set(found) == expected


def test_videos_are_stored_as_training_encodes_them(heard_world: Any) -> None:
    """In half precision, and without what they were padded with in their batch."""
    features = heard_world.train.features.with_fresh_cache()
    model = model_for(heard_world.train)
    refiner, rows = refiner_of("reel", TorchRunner(model), "toy"), np.arange(len(features))
    with torch.inference_mode():
        context = model.encode_context(*video_batch(features, rows))
    for row in rows.tolist():
        refiner.prepare(features, row)
        count = int(features.counts[row])
        stored = features.cache.get("toy", row, count, lambda: pytest.fail("prepared before"))
        expected = context.clips[row, :count].numpy()
        assert stored.dtype == np.float16
        np.testing.assert_allclose(stored, expected, rtol=2e-3, atol=1e-3)


def test_refining_whole_videos_finds_what_the_loss_scores_highest(world: Any) -> None:
    """Encode once and slice: the same spans as the training path, query by query and video by video."""
    split = whole_videos(world.val)
    model = model_for(split)
    found = reel_run(model, split, suppress_above=1.0).rows()
    rows = np.arange(len(split.features))
    visual, mask, _ = video_batch(split.features, rows)
    with torch.inference_mode():
        context = model.encode_context(visual, mask)
        context = replace(context, clips=context.clips.half().float())  # as it is kept
        query = model.encode_query(*token_batch(split.queries, np.arange(len(split.queries))))
        scores = model.span_scores(model.curves(query, context), mask, context.cuts)
    for place, name in enumerate(split.queries.query_ids):
        best, cell = scores[place].flatten(1).max(dim=1)
        expected = [
            (split.features.video_ids[v], int(cell[v]) // 8, int(cell[v]) // 8 + int(cell[v]) % 8 + 1)
            for v in best.argsort(descending=True)
        ]
        assert [(row["video_id"], row["start"], row["end"]) for row in found[name]] == expected
        assert [row["score"] for row in found[name]] == pytest.approx(
            best.sort(descending=True).values.tolist(), rel=1e-4, abs=1e-5
        )


def test_windows_do_not_depend_on_each_other(world: Any) -> None:
    """A short window first must not hide the end of a long one."""
    split, model = world.val, model_for(world.val)
    video, duration = split.features.video_ids[0], float(split.features.durations[0])
    short = (0, 0.0, 1.0)
    others = [(row, 0.0, 30.0) for row in range(1, len(split.features))]

    def answers(own: list[tuple[int, float, float]]) -> dict[tuple[str, float], float]:
        run = reel_run(model, proposed(split, own), context=0.0, suppress_above=1.0)
        rows = run.rows()[split.queries.query_ids[0]]
        return {(row["video_id"], row["start"]): row["score"] for row in rows if row["video_id"] != video}

    assert duration > 2
    alone, beside = answers(others), answers([short, *others])
    assert list(alone) == list(beside)
    assert list(alone.values()) == pytest.approx(list(beside.values()), rel=1e-4)


@pytest.mark.parametrize("edges", [(3.0, 7.0), (0.0, 4.0), (5.0, 9.0), (1.0, 2.0), (0.0, 30.0)])
def test_a_span_at_an_edge_of_its_window_is_completed_from_beyond(
    world: Any, edges: tuple[float, float]
) -> None:
    """Against brute force over the spans of the whole video, with what the window alone gives."""
    split, model = world.val, model_for(world.val)
    one = proposed(split, [(row, *edges) for row in range(len(split.features))])
    run = reel_run(model, one, context=0.0, suppress_above=1.0).rows()
    completed = 0
    for query, name in enumerate(split.queries.query_ids):
        for row in run[name]:
            video = split.features.video_ids.index(row["video_id"])
            first, last, whole = completed_span(model, split, query, video, edges)
            completed += whole
            assert (row["start"], row["end"]) == (first, last + 1)
    assert completed > 0 or edges == (0.0, 30.0)


def completed_span(
    model: Reel, split: Split, query: int, video: int, edges: tuple[float, float]
) -> tuple[int, int, bool]:
    """First and last clip of what a window answers, and whether a part of it lies beyond the window."""
    tokens, mask = token_batch(split.queries, np.array([query]))
    with torch.inference_mode():
        vectors = model.encode_query(tokens, mask)
        whole = model.encode_context(*video_batch(split.features, np.array([video])))
    kept = whole.clips.half().float()  # as it is stored
    count, longest = kept.shape[1], model.config.longest_span

    def best(begin: int, stop: int) -> tuple[int, int]:
        there = slice(begin, stop)
        part = ReelContext(kept[:, there], whole.mask[:, there], whole.cuts[:, there])
        with torch.inference_mode():
            _, first, last = model.refine(vectors, part)
        return begin + int(first), begin + int(last)

    begin, stop = int(edges[0]), min(int(edges[1]), count)
    first, last = best(begin, stop)
    before = min(begin, longest) if first == begin else 0
    after = min(count - stop, longest) if last == stop - 1 else 0
    if last - first + 1 > 3 or not before + after:
        return first, last, False
    found = best(begin - before, stop + after)
    if found[0] > first or found[1] < last:
        return first, last, False
    return *found, found != (first, last)


def test_overlapping_answers_of_one_video_are_thinned(world: Any) -> None:
    twice = proposed(world.val, [(0, 0.0, 9.0), (0, 0.5, 9.5)])
    model = model_for(twice)
    assert {len(rows) for rows in reel_run(model, twice, suppress_above=1.0).rows().values()} == {2}
    assert {len(rows) for rows in reel_run(model, twice, suppress_above=0.5).rows().values()} == {1}
    assert {len(rows) for rows in REEL.run(model, twice).rows().values()} == {1}  # by default


def scored(split: Split) -> Split:
    """Two proposals of every query with different scores, the second one's higher."""
    twice = proposed(split, [(0, 0.0, 9.0), (1, 0.0, 9.0)])
    assert twice.proposals is not None
    score = np.tile(np.array([0.2, 0.6], np.float32), len(split.queries))
    return replace(twice, proposals=replace(twice.proposals, score=score))


def test_a_proposals_score_is_added_by_its_weight(world: Any) -> None:
    split, model = scored(world.val), model_for(world.val)
    plain, weighed = (
        REEL.moments(model, split, AnswerSettings(proposal_weight=weight, suppress_above=1.0))
        for weight in (0.0, 100.0)
    )
    assert set(weighed.video[::2].tolist()) == {1}  # a large weight orders by it alone
    for query in range(len(split.queries)):
        own, added = (
            dict(zip(found.video[found.rows(query)], found.match[found.rows(query)], strict=True))
            for found in (plain, weighed)
        )
        assert [added[video] - own[video] for video in (0, 1)] == pytest.approx([20, 60], rel=1e-4)


def test_the_weight_of_proposals_is_the_best_on_val(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    split, model = scored(world.val), model_for(world.val)
    assert REEL.proposal_weight(model, whole_videos(world.val), AnswerSettings(), "any") == 0  # all alike
    tried: list[float] = []

    def run(self: object, model: object, split: Split, how: AnswerSettings) -> float:
        tried.append(how.proposal_weight)
        return how.proposal_weight

    monkeypatch.setattr("moviola.study.training.recipes.reel.ReelRecipe.run", run)
    for place, values in enumerate(([3, 3, 1, 3, 2, 0], [0, 2, 2, 1, 0, 0], [0, 0, 0, 0, 0, 1])):
        tried.clear()
        found = iter(values)
        monkeypatch.setattr(
            "moviola.study.training.recipes.reel.judge", lambda *_, f=found: {"nDCG": next(f)}
        )
        weight = REEL.proposal_weight(model, split, AnswerSettings(), "nDCG")
        assert tried[0] == 0 and tried == sorted(set(tried)) and len(tried) == len(PROPOSAL_SHARES)
        assert weight == tried[(0, 1, 5)[place]]


def cut(split: Split) -> Split:
    """The split with a cut in the middle of each moment of its videos."""
    qrels, names = split.pairs.qrels, split.features.video_ids
    middles: list[set[float]] = [{0.0} for _ in names]
    for video, start, end in zip(qrels.video.tolist(), qrels.start, qrels.end, strict=True):
        middles[names.index(qrels.video_ids[video])].add(float(start + end) / 2)
    starts = [np.array(sorted(own)) for own in middles]
    shots = dict(zip(split.features.keys.tolist(), starts, strict=True))
    return replace(split, features=replace(split.features, shots=lambda keys: [shots[key] for key in keys]))


def test_the_price_of_a_crossed_cut_is_the_best_on_val(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    split, model = whole_videos(world.val), model_for(world.val)
    assert model.config.cuts
    how = AnswerSettings(suppress_above=1.0)
    REEL.settle(model, split, how, "nDCG")  # nothing is cut, so nothing is tried
    assert model.crossing == 0
    inside = REEL.moments(model, cut(split), how)
    model.crossing.fill_(100.0)
    apart = REEL.moments(model, cut(split), how)
    assert _crossed(cut(split), inside) > _crossed(cut(split), apart)

    def run(self: object, model: Reel, split: Split, how: AnswerSettings) -> float:
        return float(model.crossing)

    monkeypatch.setattr("moviola.study.training.recipes.reel.ReelRecipe.run", run)
    for values in ([3, 3, 1, 3, 2], [0, 1, 2, 2, 0]):
        value = dict(zip(CROSSINGS, values, strict=True))
        monkeypatch.setattr("moviola.study.training.recipes.reel.judge", lambda r, _, v=value: {"nDCG": v[r]})
        REEL.settle(model, cut(split), how, "nDCG")
        assert model.crossing == CROSSINGS[values.index(max(values))]


def _crossed(split: Split, moments: Moments) -> int:
    """Number of moments with a cut inside."""
    offsets, edges = split.features.shot_edges_of(moments.video)
    return sum(
        bool(((edges[low:high] > start + 0.5) & (edges[low:high] < end - 0.5)).any())
        for low, high, start, end in zip(offsets, offsets[1:], moments.start, moments.end, strict=False)
    )


def test_training_beats_not_training(world: Any) -> None:
    learned, val = whole_videos(world.train), whole_videos(world.val)
    settings = read_settings(REEL, overrides=[*SMALL, "loop.steps=60", "loop.evaluate_every=20"])
    trained = train(REEL, learned, val, settings)
    fitted = trained.fitted[0]
    before = judge(REEL.run(model_for(val), val), val)["nDCG@20,IoU>=0.5"]
    after = judge(REEL.run(trained.model, val), val)["nDCG@20,IoU>=0.5"]
    assert after == fitted.best
    assert after > before + 0.1
    assert fitted.history[-1]["loss/list"] < fitted.history[0]["loss/list"]


def test_a_model_that_has_learned_meanwhile_encodes_videos_again(world: Any) -> None:
    split, model = whole_videos(world.val), model_for(world.val)
    before = reel_run(model, split).rows()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 8)
    after = reel_run(model, split).rows()
    fresh = replace(split, features=split.features.with_fresh_cache())
    assert after == reel_run(model, fresh).rows() != before


# ---- queries without an answer ---------------------------------------------------------------------------


def with_unanswered(split: Split, *rows: int) -> Split:
    """The split in which nothing answers some queries."""
    kept = np.flatnonzero(~np.isin(split.pairs.query, rows))
    return replace(split, pairs=split.pairs.select(kept, unanswered=np.array(sorted(rows))))


@pytest.mark.parametrize("asks", [True, False])
def test_batches_have_queries_without_an_answer_if_they_are_asked_for(world: Any, asks: bool) -> None:
    """Each once an epoch, with some video and no answer; else none of them, and no draw for them."""
    split = with_unanswered(world.train, 0, 3)
    task = replace(task_for(split, 4), unanswered=asks)
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert sum(len(batch.answered) for batch in batches) == len(split.queries) - 2 * (not asks)
    assert sum(int((batch.answered == 0).sum()) for batch in batches) == 2 * asks
    for batch in batches:
        has = np.isin(np.arange(len(batch.answered)), batch.answer[:, 0].numpy())
        np.testing.assert_array_equal(has, batch.answered.numpy() == 1)


@pytest.mark.parametrize("part", ["train", "val"])
def test_without_queries_that_nothing_answers_there_is_nothing_to_learn(world: Any, part: str) -> None:
    """The split that lacks them is named, before anything is trained."""
    splits = {"train": with_unanswered(world.train, 0), "val": with_unanswered(world.val, 0)}
    splits[part] = getattr(world, part)
    settings = read_settings(REEL, overrides=[*SMALL, "model.answerable=true", "loop.steps=2"])
    with pytest.raises(InvalidValue, match=f"every query of {part} has an answer.*relevant_moment is empty"):
        train(REEL, whole_videos(splits["train"]), whole_videos(splits["val"]), settings)


def test_it_learns_which_queries_have_an_answer(world: Any) -> None:
    """Of the queries that it has seen: those that nothing answers have smaller log odds than any other, while
    their log odds are in the answers, one number a query.
    """
    split = whole_videos(with_unanswered(world.train, 0, 3, 5))
    settings = read_settings(
        REEL, overrides=[*SMALL, "model.answerable=true", "loop.steps=80", "loop.evaluate_every=80"]
    )
    model = train(REEL, split, whole_videos(with_unanswered(world.val, 0)), settings).model
    sure = REEL.moments(model, split, AnswerSettings()).answerable
    assert sure is not None and sure.shape == (len(split.queries),)
    absent = np.isin(np.arange(len(sure)), split.pairs.unanswered)
    assert sure[absent].max() < sure[~absent].min()


def test_scores_of_search_count_whether_the_query_has_an_answer(world: Any) -> None:
    """Each query has its own log odds in the scores of all its moments, by the calibration's weight; matching
    scores, and the order, stay.
    """
    split = whole_videos(world.val)
    torch.manual_seed(1)
    settings = read_settings(REEL, overrides=[*SMALL, "model.answerable=true"])
    model = build("reel", {**REEL.sized(split.sizes), **settings.model}).eval()
    found = {
        weight: REEL.moments(
            model, split,
            AnswerSettings(calibration=Calibration(0.5, -1.0, answerable=weight), scored=True),
        )
        for weight in (0.0, 0.5)
    }  # fmt: skip
    odds = found[0.5].answerable
    assert odds is not None and len(set(odds.tolist())) > 1
    for weight, moments in found.items():
        np.testing.assert_array_equal(moments.match, found[0.0].match)
        expected = sigmoid(0.5 * moments.match - 1 + weight * odds[moments.query])
        np.testing.assert_allclose(moments.score, expected)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), "much"])
def test_a_weight_that_cannot_be_is_damage(tmp_path: Path, weight: Any) -> None:
    kept = {"calibration": {"slope": 1.0, "intercept": 0.0, "answerable": weight}}
    with pytest.raises(DataError, match="train the model again"):
        Calibration.of(kept, tmp_path)
