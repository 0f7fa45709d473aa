from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from moviola.datasets.features import Computed, ShardFeatures, convert
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.pretrained import build
from moviola.models.spans import LABELS, pool_clips
from moviola.models.spr import SegmentRetriever, SegmentRetrieverConfig, SprClip
from moviola.training.data import Clips, Pairs, Queries
from moviola.training.recipes import SUM, Split, Trained, judge, read_settings, train
from moviola.training.refiners import (
    SPR_CLIP,
    SPR_RELO,
    SPR_RELO_LARGE,
    STRATEGIES,
    EncodedWindows,
    Examples,
    RefinerBatch,
    RefinerRecipe,
    RefinerSampling,
    RefinerTask,
)
from moviola.training.segments import coarse_run
from moviola.types import Proposal, Span

DIM, CONCEPTS, VIDEOS, ASKED = 16, 6, 24, 3
SMALL: dict[RefinerRecipe, list[str]] = {
    SPR_CLIP: ["model.layers=1", "model.heads=2", "model.max_clips=40"],
    SPR_RELO: ["model.hidden_size=16", "model.heads=2", "model.max_clips=40"],
}
QUICK = ["loop.optimizer.lr=5e-3", "loop.optimizer.warmup=0.1", "loop.batch_size=32", "sampling.strong=2"]
RECIPES = pytest.mark.parametrize("recipe", SMALL, ids=lambda recipe: recipe.architecture)


def toy(folder: Path, seed: int, *, subtitles: bool = False) -> Split:
    """Videos of noise with moments in which a concept shows; a query's last token is its concept.

    A proposal holds an answer, or holds a part of it, or lies where there is none; their order is chance.
    """
    draw = np.random.default_rng(seed)
    concepts = np.linalg.qr(np.random.default_rng(0).normal(size=(DIM, DIM)))[0][:CONCEPTS]
    frames: dict[str, NDArray[np.float32]] = {}
    spans: list[tuple[str, float, float, int]] = []
    for number in range(VIDEOS):
        name, count = f"v{number}", int(draw.integers(36, 50))
        shown = draw.normal(size=(count, DIM)) * 0.15
        for begin, concept in zip((2, 14, 26), draw.permutation(CONCEPTS)[:3].tolist(), strict=True):
            start = begin + float(draw.uniform(0, 3))
            end = start + float(draw.uniform(3, 6))
            shown[int(start) : int(np.ceil(end))] += concepts[concept]
            spans.append((name, start, end, concept))
        frames[name] = shown.astype(np.float32)
    texts = [f"concept {concept}, said {way}" for concept in range(CONCEPTS) for way in range(ASKED)]
    tokens = {text: draw.normal(size=(3, DIM)).astype(np.float32) for text in texts}
    rows = []
    for number, text in enumerate(texts):
        concept = number // ASKED
        tokens[text][-1] = concepts[concept] + 0.1 * draw.normal(size=DIM)
        answers = [
            {
                "video_name": video,
                "timestamp": [start, end],
                "duration": float(len(frames[video])),
                "caption": f"{text} {place}",
                "similarity": 0.5,
                "relevance": 1,
                "pair_id": place,
            }
            for place, (video, start, end, seen) in enumerate(spans)
            if seen == concept
        ]
        rows.append({"query_id": number, "query": text, "type": "v", "relevant_moment": answers})
    (folder / "pairs.json").write_text(json.dumps(rows))
    visual = _shards(frames, folder / "visual")
    heard = _shards(frames, folder / "subtitles") if subtitles else None
    durations = np.array([len(frames[name]) - 0.25 for name in frames])
    clips = Clips(tuple(frames), durations, 1.0, visual, heard)
    pairs = Pairs.read(folder / "pairs.json", clips.videos)
    queries = Queries(pairs.query_ids, pairs.texts, _shards(tokens, folder / "queries"), 30)
    proposals = []
    for number in range(len(texts)):
        own = [_proposal(span, draw) for span in spans if draw.random() < 0.9 or span[3] == number // ASKED]
        proposals.append([own[place] for place in draw.permutation(len(own))])
    return Split(clips, queries, pairs, proposals)


def _shards(arrays: Mapping[str, NDArray[np.float32]], folder: Path) -> ShardFeatures:
    return convert(Computed(tuple(arrays), arrays.__getitem__), folder)


def _proposal(span: tuple[str, float, float, int], draw: np.random.Generator) -> Proposal:
    video, start, end, _ = span
    whole = draw.random() < 0.8
    first, last = (start // 4 * 4, -(-end // 4) * 4) if whole else (start // 4 * 4 + 4, start // 4 * 4 + 8)
    return Proposal(video, Span(first, min(last, 35.0)), 1.0, 1)


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Split, Split]:
    return toy(tmp_path_factory.mktemp("train"), 1), toy(tmp_path_factory.mktemp("val"), 2)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def examples(split: Split, **sampling: Any) -> Examples:
    assert split.proposals is not None
    return Examples(split.clips, split.pairs, split.proposals, RefinerSampling(**sampling))


def learn(recipe: RefinerRecipe, splits: tuple[Split, Split], *overrides: str) -> Trained:
    return train(recipe, *splits, read_settings(recipe, overrides=[*SMALL[recipe], *QUICK, *overrides]))


def small_model(recipe: RefinerRecipe, split: Split) -> nn.Module:
    torch.manual_seed(3)
    overrides = read_settings(recipe, overrides=SMALL[recipe]).model
    return build(recipe.architecture, {**recipe.sized(split.sizes), **overrides}).eval()


def task(recipe: RefinerRecipe, split: Split, model: nn.Module | None = None, **sampling: Any) -> RefinerTask:
    return RefinerTask(
        recipe, model or small_model(recipe, split), examples(split, **sampling), split.queries, dict, 32
    )


# ---- windows ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    context=st.floats(0, 12),
    segment=st.floats(0.5, 9),
    longest=st.integers(3, 60),
    share=st.floats(0, 1),
)
def test_window_holds_the_moment(
    splits: tuple[Split, Split], seed: int, context: float, segment: float, longest: int, share: float
) -> None:
    split, draw = splits[0], np.random.default_rng(seed)
    assert split.proposals is not None
    few = [[p for p in own if draw.random() < share] for own in split.proposals]
    pool = examples(replace(split, proposals=few), context=context, segment_seconds=segment)
    rows = draw.permutation(len(split.pairs))
    video, start, end = pool.moments(rows)
    windows = pool.around(rows, draw, longest)
    assert (windows.start <= start).all()
    assert (windows.end >= end - 1e-9).all()
    assert (windows.first >= 0).all()
    assert (windows.stop <= split.clips.counts[video]).all()
    assert (windows.clips <= longest).all()
    for convention in LABELS.values():
        labels = windows.labels(start, end, convention)
        assert (labels >= 0).all()
        assert (labels < windows.clips[:, None]).all()
        assert (labels[:, 0] <= labels[:, 1]).all()
    first, last = windows.labels(start, end, LABELS["spr"]).T
    back = windows.seconds(first, last, LABELS["spr"], windows.end)
    assert (back[0] <= start + 1e-9).all()
    assert (back[1] >= end - 1e-9).all()


def test_window_is_a_proposal_that_holds_the_moment(splits: tuple[Split, Split]) -> None:
    pool = examples(splits[0], context=0.0)
    rows = np.arange(len(pool.pairs))
    _, start, end = pool.moments(rows)
    windows = pool.around(rows, np.random.default_rng(0), 100)
    held = pool.holding.counts > 0
    assert 0.5 < held.mean() < 1
    for row in np.flatnonzero(held):
        own = pool.holding.rows[pool.holding.begin[row] : pool.holding.begin[row + 1]]
        assert windows.start[row] in pool.start[own]
    # Otherwise whole segments of 4 s, at most one more a side.
    assert (windows.start[~held] % 4 == 0).all()
    assert (start[~held] - windows.start[~held] < 8).all()
    assert (windows.end[~held] - end[~held] < 8).all()


def test_windows_without_a_proposal_vary(splits: tuple[Split, Split]) -> None:
    pool = examples(replace(splits[0], proposals=[[] for _ in splits[0].queries.query_ids]))
    rows = np.arange(len(pool.pairs))
    first, second = (pool.around(rows, np.random.default_rng(seed), 100) for seed in (0, 1))
    assert (first.first != second.first).any()
    assert (first.stop != second.stop).any()


def test_lists_are_what_they_say(splits: tuple[Split, Split]) -> None:
    split = splits[0]
    pool = examples(split, context=2.0)
    assert split.proposals is not None
    pairs, place, free = split.pairs, 0, []
    for query, own in enumerate(split.proposals):
        rows = np.flatnonzero(pairs.query == query)
        moments = {
            row: (pairs.videos[pairs.video[m]], Span(pairs.start[m], pairs.end[m]))
            for row, m in zip(rows.tolist(), pairs.moment[rows].tolist(), strict=True)
        }
        holding: dict[int, list[int]] = {row: [] for row in moments}
        for number, p in enumerate(own, place):
            wide = p.span.padded(2.0, 2.0, 100.0)
            there = {row: span for row, (video, span) in moments.items() if video == p.video_id}
            for row, span in there.items():
                if p.span.start <= span.start and span.end <= p.span.end:
                    holding[row].append(number)
            if not any(wide.intersection(span) for span in there.values()):
                free.append(number)
        for row, expected in holding.items():
            got = pool.holding.rows[pool.holding.begin[row] : pool.holding.begin[row + 1]]
            assert got.tolist() == expected
        place += len(own)
    assert pool.free.rows.tolist() == free
    assert 0 < len(free) < place


# ---- strategies ------------------------------------------------------------------------------------------


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(5)


def test_standard_draws_every_pair(splits: tuple[Split, Split], draw: np.random.Generator) -> None:
    drawn = STRATEGIES["standard"](examples(splits[0]), draw)
    assert sorted(drawn.pairs) == list(range(len(splits[0].pairs)))
    assert drawn.weak is None
    assert drawn.free is None


def test_hard_negatives_are_of_the_query_and_hold_no_answer(
    splits: tuple[Split, Split], draw: np.random.Generator
) -> None:
    pool = examples(splits[0], context=8.0)
    drawn = STRATEGIES["hard-negative"](pool, draw)
    assert drawn.free is not None
    assert sorted(drawn.pairs) == list(range(len(pool.pairs)))
    assert len(np.unique(drawn.free)) > len(pool.pairs.query_ids)
    owner = np.repeat(np.arange(len(pool.proposals)), [len(own) for own in pool.proposals])
    assert (owner[drawn.free] == pool.pairs.query[drawn.pairs]).all()
    video, start, end = pool.moments(np.arange(len(pool.pairs)))
    for row, proposal in zip(drawn.pairs, drawn.free, strict=True):
        same = (pool.pairs.query == pool.pairs.query[row]) & (video == pool.video[proposal])
        apart = (end <= pool.start[proposal] - 8) | (start >= pool.end[proposal] + 8)
        assert apart[same].all()


@pytest.mark.parametrize(("strong", "weak"), [(2, 3), (5, 100), (1, 1)])
def test_strong_comes_before_weak(
    splits: tuple[Split, Split], draw: np.random.Generator, strong: int, weak: int
) -> None:
    pool = examples(splits[0], strong=strong, weak=weak)
    seen_strong, seen_weak = set(), set()
    for _ in range(60):
        drawn = STRATEGIES["strong-weak"](pool, draw)
        assert drawn.weak is not None
        assert drawn.free is not None
        query = pool.pairs.query[drawn.pairs]
        assert query.tolist() == list(range(len(pool.pairs.query_ids)))
        assert (pool.pairs.query[drawn.weak] == query).all()
        for q, own, other in zip(query, drawn.pairs, drawn.weak, strict=True):
            rows = np.flatnonzero(pool.pairs.query == q).tolist()
            assert own in rows[:strong]
            assert other in rows[strong:][-weak:]
        seen_strong |= set(drawn.pairs.tolist())
        seen_weak |= set(drawn.weak.tolist())
    ranks = [rank for count in pool.of_query.counts for rank in range(count)]
    first = pool.of_query.rows[[rank < strong for rank in ranks]]
    assert seen_strong == set(first.tolist())
    assert seen_strong.isdisjoint(seen_weak)


def test_strategies_that_find_nothing_say_so(splits: tuple[Split, Split]) -> None:
    with pytest.raises(InvalidValue, match="strategy 'strong-weak': no query"):
        task(SPR_CLIP, splits[0], strategy="strong-weak", strong=1000).batches_per_epoch()
    with pytest.raises(InvalidValue, match="strategy 'strng'"):
        RefinerSampling(strategy="strng")
    with pytest.raises(InvalidValue, match="give at least 1"):
        RefinerSampling(weak=0)
    with pytest.raises(InvalidValue, match="context=-1"):
        RefinerSampling(context=-1.0)


# ---- batches ---------------------------------------------------------------------------------------------


@RECIPES
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches(splits: tuple[Split, Split], recipe: RefinerRecipe, strategy: str) -> None:
    made = task(recipe, splits[0], strategy=strategy, strong=2)
    batches = list(made.batches(0, np.random.default_rng(0)))
    assert len(batches) == made.batches_per_epoch()
    for batch in batches:
        pairs = batch.pairs
        count = len(pairs)
        inside = pairs.labels < pairs.mask[pairs.video].sum(dim=1, keepdim=True)
        assert inside.all()
        assert (pairs.labels >= 0).all()
        assert pairs.positives.diagonal().all()
        assert sorted(set(pairs.video.tolist())) == list(range(len(pairs.visual)))
        assert pairs.query.shape[:2] == pairs.query_mask.shape
        for other, there in ((batch.free, strategy != "standard"), (batch.weak, strategy == "strong-weak")):
            assert (other is not None) == there
            assert other is None or len(other.visual) == len(other.mask) == count
    sizes = [len(batch.pairs) for batch in batches]
    assert sum(sizes) == len(splits[0].queries if strategy == "strong-weak" else splits[0].pairs)


def test_batch_shows_what_the_labels_say(splits: tuple[Split, Split]) -> None:
    # The first and the last frame of a moment look like the query, those right before and after it don't.
    inside, outside = [], []
    for batch in task(SPR_CLIP, splits[0]).batches(0, np.random.default_rng(0)):
        pairs = batch.pairs
        curve = torch.einsum("bd,bld->bl", pairs.query[:, 0], pairs.visual[pairs.video])
        rows, (first, last) = torch.arange(len(pairs)), pairs.labels.T
        before, after = first > 0, last + 1 < pairs.mask[pairs.video].sum(dim=1)
        inside += [curve[rows, first], curve[rows, last]]
        outside += [curve[rows, first - 1][before], curve[rows, (last + 1) % curve.shape[1]][after]]
    assert torch.cat(inside).mean() > 0.7
    assert torch.cat(outside).mean() < 0.2


def test_same_window_is_held_once(splits: tuple[Split, Split]) -> None:
    # Three queries say the same of each moment, and a video as a whole is everybody's window.
    whole = task(SPR_CLIP, splits[0], context=100.0)
    batch = next(whole.batches(0, np.random.default_rng(0)))
    assert len(batch.pairs.visual) <= VIDEOS < len(batch.pairs)


def test_long_windows_are_pooled(splits: tuple[Split, Split]) -> None:
    split = splits[0]
    model = SprClip(replace(small_model(SPR_CLIP, split).config, max_clips=20))  # type: ignore[arg-type, type-var]
    made = task(SPR_CLIP, split, model, context=100.0)
    for batch in made.batches(0, np.random.default_rng(0)):
        assert batch.pairs.visual.shape[1] == 20
        found = {tuple(frames.flatten().tolist()) for frames in batch.pairs.visual}
        known = {tuple(pool_clips(split.clips.read(row), 20).flatten().tolist()) for row in range(VIDEOS)}
        assert found <= known


class Listener(nn.Module):
    """A model that remembers what its loss was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.pools: list[int | None] = []

    def loss(self, pairs: object, *, hard_pool: int | None, **others: object) -> Mapping[str, Tensor]:
        self.pools.append(hard_pool)
        return {"nothing": self.weight}


def test_hard_pool_begins_with_its_epoch(splits: tuple[Split, Split]) -> None:
    model = Listener()
    made = task(SPR_CLIP, splits[0])
    batch = next(made.batches(0, np.random.default_rng(0)))
    late = replace(made, model=model, examples=examples(splits[0], hard_negatives_from_epoch=2, hard_pool=7))
    for epoch in range(4):
        late.losses(batch, epoch, torch.Generator())
    assert model.pools == [None, None, 7, 7]


def test_losses_see_what_was_drawn(splits: tuple[Split, Split]) -> None:
    for recipe in SMALL:
        made = task(recipe, splits[0], strategy="strong-weak", strong=2)
        batch = next(made.batches(0, np.random.default_rng(0)))
        assert isinstance(batch, RefinerBatch)
        terms = made.losses(batch, 0, torch.Generator())
        assert {"hard_negative", "weak", "span"} <= set(terms)
        assert all(term.isfinite() for term in terms.values())


# ---- answers ---------------------------------------------------------------------------------------------


@RECIPES
def test_stored_windows_change_nothing(splits: tuple[Split, Split], recipe: RefinerRecipe) -> None:
    split = splits[1]
    model = small_model(recipe, split)
    pool = examples(split)
    rows = np.array([3, 0, 3, 7, 1, 0])
    calls = []

    def encode(visual: Tensor, mask: Tensor, heard: Tensor | None) -> Tensor:
        calls.append(len(visual))
        return recipe.encode(model, visual, mask, heard)

    windows = pool.beside(rows, 40)
    with torch.inference_mode():
        kept = EncodedWindows(encode, split.clips, batch=2)
        first = kept(pool.video[rows], windows)
        assert calls == [2, 2]
        again = kept(pool.video[rows], windows)
        assert calls == [2, 2]
        forgetful = EncodedWindows(encode, split.clips, most=0)
        forgetful(pool.video[rows], windows)
        anew = forgetful(pool.video[rows], windows)
        assert calls == [2, 2, 4, 4]
    for stored, mask in (again, anew):
        torch.testing.assert_close(stored, first[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(mask, first[1])
    assert mask.sum(dim=1).tolist() == windows.clips.tolist()


@RECIPES
def test_run_is_each_window_by_itself(splits: tuple[Split, Split], recipe: RefinerRecipe) -> None:
    split = splits[1]
    assert split.proposals is not None
    model = small_model(recipe, split)
    name = split.queries.query_ids[0]
    together = recipe.run(model, split).rows()[name]
    assert len(together) == min(100, len(split.proposals[0]))
    nothing: list[list[Proposal]] = [[] for _ in split.proposals[1:]]
    alone = [
        recipe.run(model, replace(split, proposals=[[proposal], *nothing])).rows()[name][0]
        for proposal in split.proposals[0]
    ]
    alone.sort(key=lambda found: -found["score"])
    for one, other in zip(alone, together, strict=False):
        assert one["score"] == pytest.approx(other["score"], rel=1e-3)
    assert (alone[0]["video_id"], alone[0]["start"]) == (together[0]["video_id"], together[0]["start"])


def test_subtitles_are_heard_by_relo_alone(tmp_path: Path) -> None:
    split = toy(tmp_path, 4, subtitles=True)
    for recipe, heard in ((SPR_CLIP, False), (SPR_RELO, True)):
        made = replace(
            task(recipe, split), examples=replace(examples(split), clips=recipe.heard(split.clips))
        )
        batch = next(made.batches(0, np.random.default_rng(0)))
        assert (batch.pairs.subtitles is not None) == heard
        assert all(term.isfinite() for term in made.losses(batch, 0, torch.Generator()).values())
        assert len(recipe.run(made.model, split))


# ---- learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "strategy", "steps"),
    [
        (SPR_CLIP, "standard", 60),
        (SPR_CLIP, "hard-negative", 60),
        (SPR_RELO, "standard", 120),
        (SPR_RELO, "strong-weak", 120),
    ],
    ids=lambda value: getattr(value, "architecture", value),
)
def test_learns(splits: tuple[Split, Split], recipe: RefinerRecipe, strategy: str, steps: int) -> None:
    val = splits[1]
    assert val.proposals is not None
    chance = judge(coarse_run(val.proposals, val.queries.query_ids), val)
    before = judge(recipe.run(small_model(recipe, val), val), val)
    trained = learn(
        recipe,
        splits,
        f"loop.steps={steps}",
        "loop.epochs=1000",
        "loop.evaluate_every=30",
        f"sampling.strategy={strategy}",
    )
    after = judge(recipe.run(trained.model, val), val)
    assert after[SUM] == pytest.approx(trained.fitted[0].best)
    name = "nDCG@10,IoU>=0.5"
    assert after[name] > 2 * max(chance[name], before[name])
    assert after[name] > 0.4


@RECIPES
def test_same_seed_same_weights(splits: tuple[Split, Split], recipe: RefinerRecipe) -> None:
    overrides = ("loop.steps=4", "loop.evaluate_every=2", "sampling.strategy=strong-weak")
    first, second = (learn(recipe, splits, *overrides).model.state_dict() for _ in range(2))
    other = learn(recipe, splits, *overrides, "loop.seed=1").model.state_dict()
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert any(not torch.equal(value, other[name]) for name, value in first.items())


def test_starts_from_stage_1(splits: tuple[Split, Split]) -> None:
    torch.manual_seed(1)
    retriever = SegmentRetriever(SegmentRetrieverConfig(hidden_size=DIM, layers=1, heads=2))
    seen: list[nn.Module] = []

    def start(model: nn.Module) -> None:
        assert isinstance(model, SprClip)
        model.start_from(retriever)
        torch.testing.assert_close(model.temp_proj.weight, retriever.temp_proj.weight)
        seen.append(model)

    settings = read_settings(SPR_CLIP, overrides=[*SMALL[SPR_CLIP], *QUICK, "loop.steps=1"])
    assert train(SPR_CLIP, *splits, settings, start=start).model is seen[0]


def test_needs_proposals(splits: tuple[Split, Split]) -> None:
    with pytest.raises(InvalidValue, match="needs proposals"):
        train(SPR_CLIP, replace(splits[0], proposals=None), splits[1])


def test_settings_are_the_papers(splits: tuple[Split, Split]) -> None:
    for recipe in (SPR_CLIP, SPR_RELO, SPR_RELO_LARGE):
        loop = recipe.settings.loops["train"]
        assert (loop.batch_size, loop.optimizer.lr, loop.select) == (256, 1e-4, SUM)
    assert SPR_RELO.settings.model["labels"] == "spr"
    assert SPR_RELO_LARGE.settings.model["hidden_size"] == 768
    assert "hidden_size" not in SPR_RELO.settings.model
    with pytest.raises(InvalidValue, match="both of one CLIP"):
        SPR_CLIP.sized(replace(splits[0].sizes, query=DIM + 1))
