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
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Computed, FeatureRows, QueryFeatures, VideoFeatures, convert
from moviola.retrieval import MeanPooling, Proposals, Retrieval, refiner_of, segment_index
from moviola.retrieval.calibration import Chance
from moviola.retrieval.encoded_windows import EncodedWindows, context_windows
from moviola.retrieval.model_parts import WindowParts
from moviola.retrieval.refiners.trained import WindowRefiner
from moviola.retrieval.saved.clip_windows import LABELS, pool_clips
from moviola.study.models.pretrained import build
from moviola.study.models.running import TorchRunner
from moviola.study.models.spr import SegmentRetriever, SegmentRetrieverConfig, SprClip
from moviola.study.training.data import Pairs, Split
from moviola.study.training.recipe import AnswerSettings, Trained, train
from moviola.study.training.recipes.spr import SPR_CLIP, SPR_RELO, SPR_RELO_LARGE, WindowRecipe
from moviola.study.training.settings import read_settings
from moviola.study.training.tasks.windows import STRATEGIES, Examples, WindowBatch, WindowSampling, WindowTask
from moviola.study.training.validation import SUM, judge
from moviola.types import Span

Floats = NDArray[np.float32]

DIM, CONCEPTS, VIDEOS, QUERIES = 16, 6, 24, 3
SMALL: dict[WindowRecipe, list[str]] = {
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
    texts = [f"concept {concept}, said {way}" for concept in range(CONCEPTS) for way in range(QUERIES)]
    tokens = {text: draw.normal(size=(3, DIM)).astype(np.float32) for text in texts}
    rows = []
    for number, text in enumerate(texts):
        concept = number // QUERIES
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
    visual = _stored(frames, folder / "visual")
    said = _stored(frames, folder / "subtitles") if subtitles else None
    counts = np.array([len(rows) for rows in frames.values()], dtype=np.int64)
    features = VideoFeatures(tuple(frames), counts - 0.25, 1.0, counts, visual, said)
    pairs = Pairs.read(folder / "pairs.json", features.video_ids)
    queries = QueryFeatures.of(pairs.query_ids, pairs.texts, [tokens[text] for text in pairs.texts])
    proposed: list[tuple[int, int, float, float]] = []
    for number in range(len(texts)):
        own = [_proposal(span, draw) for span in spans if draw.random() < 0.9 or span[3] == number // QUERIES]
        proposed += [
            (number, features.row_of[own[place][0]], *own[place][1:]) for place in draw.permutation(len(own))
        ]
    return Split(features, queries, pairs, proposals_of(proposed, len(texts)))


def proposals_of(rows: list[tuple[int, int, float, float]], queries: int) -> Proposals:
    """Query, video, start and end of each, in order of rank."""
    query, video, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Proposals.of_columns(query, video, start, end, np.ones(len(rows)), queries=queries)


def _stored(arrays: Mapping[str, NDArray[np.float32]], folder: Path) -> FeatureRows:
    shards = convert(Computed(tuple(arrays), arrays.__getitem__), folder)
    return FeatureRows.stored(shards.shards, tuple(shards.extent(name) for name in arrays))


def _proposal(span: tuple[str, float, float, int], draw: np.random.Generator) -> tuple[str, float, float]:
    video, start, end, _ = span
    whole = draw.random() < 0.8
    first, last = (start // 4 * 4, -(-end // 4) * 4) if whole else (start // 4 * 4 + 4, start // 4 * 4 + 8)
    return video, first, min(last, 35.0)


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
    return Examples(split.features, split.pairs, split.proposals, WindowSampling(**sampling))


def learn(recipe: WindowRecipe, splits: tuple[Split, Split], *overrides: str) -> Trained:
    return train(recipe, *splits, read_settings(recipe, overrides=[*SMALL[recipe], *QUICK, *overrides]))


def small_model(recipe: WindowRecipe, split: Split) -> nn.Module:
    torch.manual_seed(3)
    overrides = read_settings(recipe, overrides=SMALL[recipe]).model
    return build(recipe.architecture, {**recipe.sized(split.sizes), **overrides}).eval()


def runner(recipe: WindowRecipe, model: nn.Module, **options: Any) -> Any:
    return refiner_of(recipe.architecture, TorchRunner(model), "toy", **options)


def task(recipe: WindowRecipe, split: Split, model: nn.Module | None = None, **sampling: Any) -> WindowTask:
    refiner = runner(recipe, model or small_model(recipe, split))
    return WindowTask(refiner, examples(split, **sampling), split.queries, dict, 32)


def coarse(split: Split) -> dict[str, float]:
    """How good the proposals are as they are."""
    from moviola.study.measures import Run

    assert split.proposals is not None
    names, videos = np.array(split.queries.query_ids), np.array(split.features.video_ids)
    own = split.proposals
    run = Run.from_columns(
        names[own.query], videos[own.video], own.start, own.end, -own.rank, queries=split.queries.query_ids
    )
    return judge(run, split)


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
    own = split.proposals
    columns = (own.query, own.video, own.start, own.end)
    rows = [row for row in zip(*(c.tolist() for c in columns), strict=True) if draw.random() < share]
    few = proposals_of(rows, len(own))
    pool = examples(replace(split, proposals=few), context=context, segment_seconds=segment)
    rows = draw.permutation(len(split.pairs))
    video, start, end = pool.moments(rows)
    windows = pool.around(rows, draw, longest)
    assert (windows.start <= start).all()
    assert (windows.end >= end - 1e-9).all()
    assert (windows.first >= 0).all()
    assert (windows.stop <= split.features.counts[video]).all()
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
        assert windows.start[row] in pool.proposals.start[own]
    # The others are whole segments of 4 s, at most one more a side.
    assert (windows.start[~held] % 4 == 0).all()
    assert (start[~held] - windows.start[~held] < 8).all()
    assert (windows.end[~held] - end[~held] < 8).all()


def test_windows_without_a_proposal_vary(splits: tuple[Split, Split]) -> None:
    pool = examples(replace(splits[0], proposals=proposals_of([], len(splits[0].queries))))
    rows = np.arange(len(pool.pairs))
    first, second = (pool.around(rows, np.random.default_rng(seed), 100) for seed in (0, 1))
    assert (first.first != second.first).any()
    assert (first.stop != second.stop).any()


def test_lists_are_what_they_say(splits: tuple[Split, Split]) -> None:
    split = splits[0]
    pool = examples(split, context=2.0)
    assert split.proposals is not None
    pairs, free = split.pairs, []
    for query in range(len(split.proposals)):
        rows = np.flatnonzero(pairs.query == query)
        moments = {
            row: (pairs.video[m], Span(pairs.start[m], pairs.end[m]))
            for row, m in zip(rows.tolist(), pairs.moment[rows].tolist(), strict=True)
        }
        holding: dict[int, list[int]] = {row: [] for row in moments}
        at = split.proposals.rows(query)
        for number in range(at.start, at.stop):
            span = Span(float(split.proposals.start[number]), float(split.proposals.end[number]))
            wide = span.padded(2.0, 2.0, 100.0)
            shown = split.proposals.video[number]
            there = {row: moment for row, (video, moment) in moments.items() if video == shown}
            for row, moment in there.items():
                if span.start <= moment.start and moment.end <= span.end:
                    holding[row].append(number)
            if not any(wide.intersection(moment) for moment in there.values()):
                free.append(number)
        for row, expected in holding.items():
            got = pool.holding.rows[pool.holding.begin[row] : pool.holding.begin[row + 1]]
            assert got.tolist() == expected
    assert pool.free.rows.tolist() == free
    assert 0 < len(free) < len(split.proposals.video)


def test_at_its_edges_a_moment_is_held_and_not_touched(splits: tuple[Split, Split]) -> None:
    """A proposal with the moment's own start and end holds it; a window whose context ends where the moment
    begins, or begins where it ends, has nothing of it, and one that reaches in by a hair has.
    """
    split = splits[0]
    count = len(split.pairs.start)
    pairs = replace(split.pairs.select(np.array([0])), start=np.full(count, 8.0), end=np.full(count, 12.0))
    query, video = int(pairs.query[0]), int(pairs.video[pairs.moment[0]])
    spans = [
        (8.0, 12.0),
        (2.0, 6.0),
        (14.0, 18.0),
        (2.0, 6.001),
        (13.999, 18.0),
        (8.0, 11.999),
        (8.001, 12.0),
        (10.0, 10.001),
        (10.001, 14.0),
        (6.0, 9.999),
    ]
    proposals = proposals_of([(query, video, *span) for span in spans], len(split.queries))
    pool = Examples(split.features, pairs, proposals, WindowSampling(context=2.0))
    assert pool.holding.rows.tolist() == [0]
    assert pool.free.rows.tolist() == [1, 2]
    # Where windows hold moments, the context counts on both sides.
    wider = Examples(split.features, pairs, proposals, WindowSampling(context=2.0, held_by_window=True))
    assert wider.holding.rows.tolist() == [0, 5, 6, 7]
    assert wider.free.rows.tolist() == [1, 2]


def test_what_the_pseudo_set_names_beyond_the_first_is_no_negative(splits: tuple[Split, Split]) -> None:
    split = splits[0]
    before = examples(split)
    proposal = int(before.free.rows[0])
    query, video = (int(column[proposal]) for column in (before.proposals.query, before.proposals.video))
    start, end = (float(column[proposal]) for column in (before.proposals.start, before.proposals.end))
    named = np.array([(query, video, start, end)], split.pairs.beyond.dtype)
    after = examples(replace(split, pairs=replace(split.pairs, beyond=named)))
    gone = set(before.free.rows.tolist()) - set(after.free.rows.tolist())
    assert proposal in gone
    assert set(before.proposals.query[list(gone)].tolist()) == {query}
    assert set(before.proposals.video[list(gone)].tolist()) == {video}
    assert np.array_equal(after.holding.rows, before.holding.rows)


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
    assert (pool.proposals.query[drawn.free] == pool.pairs.query[drawn.pairs]).all()
    video, start, end = pool.moments(np.arange(len(pool.pairs)))
    for row, proposal in zip(drawn.pairs, drawn.free, strict=True):
        same = (pool.pairs.query == pool.pairs.query[row]) & (video == pool.proposals.video[proposal])
        apart = (end <= pool.proposals.start[proposal] - 8) | (start >= pool.proposals.end[proposal] + 8)
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
    ranks = [rank for count in pool.pairs.of_query.counts for rank in range(count)]
    first = pool.pairs.of_query.rows[[rank < strong for rank in ranks]]
    assert seen_strong == set(first.tolist())
    assert seen_strong.isdisjoint(seen_weak)


def test_one_moment_beyond_the_strong_ones_is_weak(
    splits: tuple[Split, Split], draw: np.random.Generator
) -> None:
    """A query with one moment more than strong ones takes part, with its last as the weak one."""
    pairs = splits[0].pairs
    fewest = int(pairs.of_query.counts.min())
    for strong, there in ((fewest - 1, True), (fewest, False)):
        pool = examples(splits[0], strategy="strong-weak", strong=strong, weak=5)
        drawn = STRATEGIES["strong-weak"](pool, draw)
        assert drawn.weak is not None
        for query in np.flatnonzero(pairs.of_query.counts == fewest).tolist():
            weak = drawn.weak[pairs.query[drawn.pairs] == query].tolist()
            assert weak == ([pairs.of_query.rows_of(query)[-1]] if there else [])


def test_weak_positives_are_trained_where_that_is_chosen(splits: tuple[Split, Split]) -> None:
    """Both readings of the paper: which pairs are ever trained, and which are kept below a strong one.

    Of 9 moments a query the first 2 are strong and the last 3 weak: 2 of 9 are trained, or 5, and never the 4
    between. Either way each strong pair is above a weak one of its query, and no weak pair above anything.
    """
    ranks = {row: rank for q in range(len(splits[0].queries)) for rank, row in enumerate(of(splits[0], q))}
    trained = {}
    for train_weak in (False, True):
        pool = examples(splits[0], strategy="strong-weak", strong=2, weak=3, train_weak=train_weak)
        seen: set[int] = set()
        for seed in range(40):
            drawn = STRATEGIES["strong-weak"](pool, np.random.default_rng(seed))
            assert drawn.weak is not None and drawn.free is not None
            assert len(drawn.pairs) == len(drawn.weak) == len(drawn.free)
            strong = np.array([ranks[row] < 2 for row in drawn.pairs.tolist()])
            assert (strong == (drawn.weak >= 0)).all()
            assert (pool.pairs.query[drawn.weak[strong]] == pool.pairs.query[drawn.pairs[strong]]).all()
            assert (pool.proposals.query[drawn.free] == pool.pairs.query[drawn.pairs]).all()
            seen |= set(drawn.pairs.tolist())
        counts = pool.pairs.of_query.counts
        trained[train_weak] = {(ranks[row], len(of(splits[0], int(pool.pairs.query[row])))) for row in seen}
        assert all(rank < 2 or (train_weak and rank >= count - 3) for rank, count in trained[train_weak])
        assert len(seen) == len(counts) * (5 if train_weak else 2)
    with pytest.raises(InvalidValue, match="train_weak: strategy 'standard' has no weak"):
        WindowSampling(train_weak=True)


def of(split: Split, query: int) -> list[int]:
    """Rows of a query's pairs, the most similar moment first."""
    return np.flatnonzero(split.pairs.query == query).tolist()  # type: ignore[no-any-return]


@RECIPES
def test_a_weak_pair_is_below_nothing(splits: tuple[Split, Split], recipe: WindowRecipe) -> None:
    """The hinge counts strong pairs alone: what stands in for a weak pair's own changes nothing."""
    made = task(recipe, splits[0], strategy="strong-weak", strong=2, weak=3, train_weak=True)
    batch = next(made.batches(0, np.random.default_rng(0)))
    assert batch.weak is not None and batch.weak.there is not None
    there = batch.weak.there
    assert 0 < int(there.sum()) < len(there)
    noise = torch.where(there[:, None, None], batch.weak.visual, torch.randn_like(batch.weak.visual))
    other = replace(batch, weak=replace(batch.weak, visual=noise))
    moved = replace(batch, weak=replace(batch.weak, visual=torch.randn_like(batch.weak.visual)))
    made.model.eval()
    first, same, third = (
        made.losses(own, 0, torch.Generator().manual_seed(0)) for own in (batch, other, moved)
    )
    torch.testing.assert_close(first["weak"], same["weak"])
    assert not torch.allclose(first["weak"], third["weak"])


def test_strategies_that_find_nothing_say_so(splits: tuple[Split, Split]) -> None:
    with pytest.raises(InvalidValue, match="strategy 'strong-weak': no query"):
        task(SPR_CLIP, splits[0], strategy="strong-weak", strong=1000).batches_per_epoch()
    with pytest.raises(InvalidValue, match="strategy 'strng'"):
        WindowSampling(strategy="strng")
    with pytest.raises(InvalidValue, match="give at least 1"):
        WindowSampling(weak=0)
    with pytest.raises(InvalidValue, match="context=-1"):
        WindowSampling(context=-1.0)


# ---- batches ---------------------------------------------------------------------------------------------


@RECIPES
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches(splits: tuple[Split, Split], recipe: WindowRecipe, strategy: str) -> None:
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


def test_windows_of_a_related_video_are_no_negatives(splits: tuple[Split, Split]) -> None:
    """Also where the pair that relates them is not in the batch."""
    made, pairs = task(SPR_CLIP, splits[0]), splits[0].pairs
    rows = np.arange(0, len(pairs), 3)
    video = made.examples.moments(rows)[0]
    windows = made.examples.around(rows, np.random.default_rng(0), made.refiner.max_clips)
    related = {*zip(pairs.query.tolist(), pairs.video[pairs.moment].tolist(), strict=True)}
    expected = [[(q, v) in related for v in video.tolist()] for q in pairs.query[rows].tolist()]
    assert made._pairs(rows, video, windows).positives.tolist() == expected


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
        known = {tuple(pool_clips(split.features.read(row), 20).flatten().tolist()) for row in range(VIDEOS)}
        assert found <= known


class Listener(nn.Module):
    """A model that remembers the arguments of its loss."""

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
    late = replace(
        made,
        refiner=WindowRefiner(WindowParts(TorchRunner(model)), "toy"),
        examples=examples(splits[0], hard_negatives_from_epoch=2, hard_pool=7),
    )
    for epoch in range(4):
        late.losses(batch, epoch, torch.Generator())
    assert model.pools == [None, None, 7, 7]


def test_losses_see_what_was_drawn(splits: tuple[Split, Split]) -> None:
    for recipe in SMALL:
        made = task(recipe, splits[0], strategy="strong-weak", strong=2)
        batch = next(made.batches(0, np.random.default_rng(0)))
        assert isinstance(batch, WindowBatch)
        terms = made.losses(batch, 0, torch.Generator())
        assert {"hard_negative", "weak", "span"} <= set(terms)
        assert all(term.isfinite() for term in terms.values())


# ---- answers ---------------------------------------------------------------------------------------------


@RECIPES
def test_stored_windows_change_nothing(splits: tuple[Split, Split], recipe: WindowRecipe) -> None:
    split = splits[1]
    refiner, pool = runner(recipe, small_model(recipe, split)), examples(split)
    rows = np.array([3, 0, 3, 7, 1, 0])
    calls = []

    def encode(visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
        calls.append(len(visual))
        encoded: Floats = refiner.model.encode(visual, mask, subtitles)
        return encoded

    windows, sources = pool.beside(rows, 40), (split.features, pool.proposals.video[rows])
    kept = EncodedWindows(encode, batch=2)
    first = kept(*sources, windows)
    assert sum(calls) == 4 and max(calls) <= 2
    again = kept(*sources, windows)
    assert sum(calls) == 4
    forgetful = EncodedWindows(encode, most=0)
    forgetful(*sources, windows)
    other = pool.beside(np.array([2, 4]), 40)
    forgetful(split.features, pool.proposals.video[[2, 4]], other)
    once_more = forgetful(*sources, windows)
    assert sum(calls) == 4 + 4 + 2 + 4
    for stored, mask in (again, once_more):
        np.testing.assert_allclose(stored, first[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(mask, first[1])
    assert mask.sum(axis=1).tolist() == windows.clips.tolist()


@RECIPES
def test_run_is_each_window_by_itself(splits: tuple[Split, Split], recipe: WindowRecipe) -> None:
    split, every = splits[1], AnswerSettings(suppress_above=1.0)
    assert split.proposals is not None
    model = small_model(recipe, split)
    name, own = split.queries.query_ids[0], split.proposals.of(0)
    together = recipe.run(model, split, every).rows()[name]
    assert len(together) == len(own.video)
    alone = []
    for row in zip(own.video.tolist(), own.start.tolist(), own.end.tolist(), strict=True):
        one = replace(split, proposals=proposals_of([(0, *row)], len(split.queries)))
        alone.append(recipe.run(model, one, every).rows()[name][0])
    alone.sort(key=lambda found: -found["score"])
    for one_found, other in zip(alone, together, strict=True):
        assert one_found["score"] == pytest.approx(other["score"], rel=1e-3)
    assert (alone[0]["video_id"], alone[0]["start"]) == (together[0]["video_id"], together[0]["start"])


@RECIPES
def test_overlapping_answers_of_one_video_are_thinned_unless_all_are_wanted(
    splits: tuple[Split, Split], recipe: WindowRecipe
) -> None:
    split = splits[1]
    same = [
        (query, 0, 4.0 * first, 12.0 + 4 * first) for query in range(len(split.queries)) for first in (0, 1)
    ]
    twice = replace(split, proposals=proposals_of(same, len(split.queries)))
    model = small_model(recipe, split)
    every = recipe.run(model, twice, AnswerSettings(suppress_above=1.0)).rows()
    thinned = recipe.run(model, twice).rows()
    assert {len(rows) for rows in every.values()} == {2}
    for name, (best, other) in every.items():
        a, b = Span(best["start"], best["end"]), Span(other["start"], other["end"])
        alike = a.iou(b) > 0.5 or a.intersection(b) == min(a.duration, b.duration)
        assert thinned[name] == ([best] if alike else [best, other])
    assert {len(rows) for rows in thinned.values()} >= {1}


@RECIPES
def test_a_video_is_as_good_as_its_best_refined_moment(
    splits: tuple[Split, Split], recipe: WindowRecipe
) -> None:
    """SPR scores moments, no videos: those without a proposal are not ranked at all."""
    split = splits[1]
    assert split.proposals is not None
    model = small_model(recipe, split)
    answers, videos = recipe.run(model, split).rows(), recipe.video_run(model, split).rows()
    durations = dict(zip(split.features.video_ids, split.features.durations.tolist(), strict=True))
    for row, query in enumerate(split.queries.query_ids):
        best: dict[str, float] = {}
        for moment in answers[query]:
            best[moment["video_id"]] = max(moment["score"], best.get(moment["video_id"], -np.inf))
        found = [(m["video_id"], m["start"], m["end"], m["score"]) for m in videos[query]]
        expected = sorted(best, key=lambda video: -best[video])
        assert found == [(video, 0.0, durations[video], best[video]) for video in expected]
        proposed = {split.features.video_ids[video] for video in split.proposals.of(row).video.tolist()}
        assert set(best) == proposed


def test_subtitles_are_read_by_relo_alone(tmp_path: Path) -> None:
    split = toy(tmp_path, 4, subtitles=True)
    for recipe, there in ((SPR_CLIP, False), (SPR_RELO, True)):
        made = task(recipe, split)
        batch = next(made.batches(0, np.random.default_rng(0)))
        assert (batch.pairs.subtitles is not None) == there
        assert all(term.isfinite() for term in made.losses(batch, 0, torch.Generator()).values())
        assert len(recipe.run(made.model, split))


def test_streams_apart_learn_from_windows_too(tmp_path: Path) -> None:
    split = toy(tmp_path, 4, subtitles=True)
    settings = read_settings(
        SPR_RELO, overrides=[*SMALL[SPR_RELO], *QUICK, "model.stream_weights=type", "loop.steps=2"]
    )
    learned: Any = train(SPR_RELO, split, split, settings).model
    assert learned.apart
    assert len(SPR_RELO.run(learned, split))


# ---- learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "strategy", "steps"),
    [
        (SPR_CLIP, "standard", 60),
        (SPR_CLIP, "hard-negative", 60),
        (SPR_RELO, "standard", 120),
        (SPR_RELO, "strong-weak", 120),
        (SPR_RELO, "strong-weak sampling.train_weak=true", 120),
    ],
    ids=lambda value: getattr(value, "architecture", value),
)
def test_learns(splits: tuple[Split, Split], recipe: WindowRecipe, strategy: str, steps: int) -> None:
    val = splits[1]
    assert val.proposals is not None
    chance = coarse(val)
    before = judge(recipe.run(small_model(recipe, val), val), val)
    trained = learn(
        recipe,
        splits,
        f"loop.steps={steps}",
        "loop.epochs=1000",
        "loop.evaluate_every=30",
        *f"sampling.strategy={strategy}".split(),
    )
    after = judge(recipe.run(trained.model, val), val)
    assert after[SUM] == pytest.approx(trained.fitted[0].best)
    name = "nDCG@10,IoU>=0.5"
    assert after[name] > 2 * max(chance[name], before[name])
    assert after[name] > 0.4


@RECIPES
def test_same_seed_same_weights(splits: tuple[Split, Split], recipe: WindowRecipe) -> None:
    overrides = ("loop.steps=4", "loop.evaluate_every=2", "sampling.strategy=strong-weak")
    first, second = (learn(recipe, splits, *overrides).model.state_dict() for _ in range(2))
    other = learn(recipe, splits, *overrides, "loop.seed=1").model.state_dict()
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert any(not torch.equal(value, other[name]) for name, value in first.items())


def test_starts_from_stage_1(splits: tuple[Split, Split]) -> None:
    torch.manual_seed(1)
    retriever = SegmentRetriever(SegmentRetrieverConfig(hidden_size=DIM, layers=1, heads=2))
    overrides = [*SMALL[SPR_CLIP], *QUICK, "loop.steps=1", "loop.optimizer.lr=1e-30"]
    settings = read_settings(SPR_CLIP, overrides=overrides)
    trained = train(SPR_CLIP, *splits, settings, stage1=retriever).model
    assert isinstance(trained, SprClip)
    torch.testing.assert_close(trained.temp_proj.weight, retriever.temp_proj.weight)
    alone = train(SPR_CLIP, *splits, settings).model
    assert isinstance(alone, SprClip)
    assert not torch.equal(alone.temp_proj.weight, retriever.temp_proj.weight)


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
    with pytest.raises(InvalidValue, match="both of one image-text encoder"):
        SPR_CLIP.sized(replace(splits[0].sizes, query=DIM + 1))


def test_what_a_pair_is_compared_with_is_of_its_own_query(splits: tuple[Split, Split]) -> None:
    """A window of one of its weak moments, and one of its proposals without an answer."""
    split = splits[0]
    made = task(SPR_CLIP, split, strategy="strong-weak", strong=2)
    pool, shown = made.examples, made.examples.free.rows
    at = {row.tobytes(): (v, clip) for v in range(VIDEOS) for clip, row in enumerate(split.features.read(v))}
    query_of = {vector.tobytes(): query for query, vector in enumerate(split.queries.vectors)}
    beside = pool.beside(shown, made.refiner.max_clips)
    columns = (pool.proposals.query[shown], pool.proposals.video[shown], beside.first, beside.stop)
    free = set(zip(*(column.tolist() for column in columns), strict=True))
    for batch in made.batches(0, np.random.default_rng(0)):
        assert batch.free is not None and batch.weak is not None
        for row, vector in enumerate(batch.pairs.query[:, 0]):
            query, places = query_of[vector.numpy().tobytes()], []
            for windows in (batch.free, batch.weak):
                video, first = at[windows.visual[row, 0].numpy().tobytes()]
                places.append((video, first, first + int(windows.mask[row].sum())))
            assert (query, *places[0]) in free
            video, first, stop = places[1]
            own, start, end = pool.moments(pool.pairs.of_query.rows_of(query)[2:])
            assert ((own == video) & (first <= start) & (end <= stop)).any()


def test_a_moment_that_outlasts_its_video_ends_with_it(splits: tuple[Split, Split]) -> None:
    """So a proposal up to the video's end holds it."""
    split = splits[0]
    query, moment = int(split.pairs.query[0]), int(split.pairs.moment[0])
    video, ends = int(split.pairs.video[moment]), split.pairs.end.copy()
    last = float(split.features.durations[video])
    ends[moment] = last + 5
    proposals = proposals_of([(query, video, 0.0, last)], len(split.queries))
    pool = examples(replace(split, pairs=replace(split.pairs, end=ends), proposals=proposals))
    assert pool.moments(np.array([0]))[2].tolist() == [last]
    assert pool.holding.rows_of(0).tolist() == [0]


@RECIPES
def test_windows_that_begin_together_and_end_apart_are_stored_apart(
    splits: tuple[Split, Split], recipe: WindowRecipe
) -> None:
    split, video = splits[1], np.zeros(2, np.int64)
    refiner = runner(recipe, small_model(recipe, split))
    start, end = np.array([4.0, 4.0]), np.array([9.0, 15.0])
    windows = context_windows(split.features, video, start, end, context=0.0, max_clips=40)
    assert windows.clips.tolist() == [5, 11]
    together, mask = EncodedWindows(refiner.model.encode)(split.features, video, windows)
    assert mask.sum(axis=1).tolist() == [5, 11]
    for row in range(2):
        one = np.array([row])
        alone, _ = EncodedWindows(refiner.model.encode)(split.features, video[one], windows.take(one))
        np.testing.assert_allclose(together[row, : alone.shape[1]], alone[0], rtol=1e-4, atol=1e-5)


def test_without_a_calibration_scores_are_set_against_the_luckiest_of_all_segments(
    splits: tuple[Split, Split],
) -> None:
    """Though only some windows show what chance gives."""
    split = splits[1]
    refiner = runner(SPR_CLIP, small_model(SPR_CLIP, split))
    index = segment_index(MeanPooling(), split.features, 4)
    retrieval = Retrieval(split.features, index, MeanPooling(), refiner, 4)
    moments, some = retrieval.moments(split.queries, split.proposals), retrieval._random_windows
    assert len(some.video) == 64 < len(index)
    for query in (0, 5):
        own, drawn = moments.rows(query), refiner.refine(split.queries, query, split.features, some).score
        chance = Chance.of(refiner.evidence(drawn), len(index))
        expected = chance.scores(refiner.evidence(moments.match[own]))
        np.testing.assert_allclose(moments.score[own], expected, rtol=1e-4)
