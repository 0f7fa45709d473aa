from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models import batches
from moviola.study.models.batches import PairBatch
from moviola.study.models.reloclnet import (
    SPR_LARGE,
    SPR_SMALL,
    Context,
    Queries,
    ReLoCLNet,
    ReLoCLNetConfig,
    Windows,
)

TINY = ReLoCLNetConfig(
    visual_size=6,
    subtitle_size=5,
    query_size=4,
    hidden_size=8,
    heads=2,
    dropout=0.0,
    max_clips=24,
    max_tokens=7,
    longest_span=6,
    top_videos=3,
    top_moments=12,
)


def model_of(config: ReLoCLNetConfig, seed: int = 0) -> ReLoCLNet:
    torch.manual_seed(seed)
    model = ReLoCLNet(config).eval()
    for parameter in model.parameters():  # large enough for scores that differ
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def rows(lengths: list[int], size: int) -> Tensor:
    values = torch.randn(len(lengths), max(lengths), size)
    return values * mask_of(lengths)[:, :, None]


def mask_of(lengths: list[int]) -> Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).float()


def corpus(lengths: list[int], config: ReLoCLNetConfig = TINY) -> tuple[Tensor, Tensor, Tensor | None]:
    subtitles = rows(lengths, config.subtitle_size) if config.subtitle_size else None
    return rows(lengths, config.visual_size), mask_of(lengths), subtitles


def batch_of(
    lengths: list[int], video: list[int], positives: Tensor | None = None, config: ReLoCLNetConfig = TINY
) -> PairBatch:
    visual, mask, subtitles = corpus(lengths, config)
    pairs = len(video)
    return PairBatch(
        query=rows([5] * pairs, config.query_size),
        query_mask=torch.ones(pairs, 5),
        visual=visual,
        mask=mask,
        subtitles=subtitles,
        video=torch.tensor(video),
        labels=torch.tensor(
            [[min(i % 2, lengths[v] - 1), min(2 + i, lengths[v] - 1)] for i, v in enumerate(video)]
        ),
        similarity=torch.linspace(0.4, 1.0, pairs),
        positives=torch.tensor([[v == w for w in video] for v in video]) if positives is None else positives,
    )


def longer(values: Tensor | None, by: int) -> Tensor | None:
    """More padding; of features with nonsense in it, since nothing may look there."""
    if values is None:
        return None
    filling = torch.zeros if values.dim() == 2 else torch.randn
    return torch.cat([values, filling(values.shape[0], by, *values.shape[2:])], dim=1)


@pytest.mark.parametrize(
    ("config", "count"), [(ReLoCLNetConfig(), 6_973_578), (SPR_SMALL, 6_973_578), (SPR_LARGE, 25_738_506)]
)
def test_published_sizes(config: ReLoCLNetConfig, count: int) -> None:
    with torch.device("meta"):
        model = ReLoCLNet(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(0, 9), st.sampled_from([0, 5]))
def test_padding_changes_nothing(lengths: list[int], more: int, subtitle_size: int) -> None:
    config = replace(TINY, subtitle_size=subtitle_size)
    model = model_of(config)
    batch = batch_of(lengths, list(range(len(lengths))), config=config)
    padded = replace(
        batch,
        visual=longer(batch.visual, more),
        mask=longer(batch.mask, more),
        subtitles=longer(batch.subtitles, more),
        query=longer(batch.query, 2),
        query_mask=longer(batch.query_mask, 2),
    )
    terms, more_terms = (model.loss(b, hard_pool=1, generator=None) for b in (batch, padded))
    for name in terms:
        torch.testing.assert_close(more_terms[name], terms[name], rtol=1e-4, atol=1e-5)
    with torch.inference_mode():
        answers = [
            model.rank(b.query, b.query_mask, model.encode_context(b.visual, b.mask, b.subtitles))
            for b in (batch, padded)
        ]
    found = answers[0].video >= 0
    kept = answers[1].score[:, : found.shape[1]]
    torch.testing.assert_close(kept[found], answers[0].score[found], rtol=1e-3, atol=0)
    assert (answers[1].video >= 0).sum() >= found.sum()


def test_pictures_alone() -> None:
    config = replace(TINY, subtitle_size=0)
    model = model_of(config)
    assert not [name for name in model.state_dict() if name.startswith("sub") or "cross" in name]
    assert model.modular_vector_mapping.weight.shape == (1, 8)
    visual, mask, _ = corpus([6, 4], config)
    context = model.encode_context(visual, mask, None)
    queries = model.encode_query(rows([5], 4), torch.ones(1, 5))
    cosine = torch.nn.functional.cosine_similarity(queries.vectors[:, 0], context.clips[0], dim=-1)
    expected = cosine.masked_fill(mask == 0, -1).amax(dim=-1)
    torch.testing.assert_close(model.video_scores(queries, context)[0], expected)


def test_subtitles_must_be_what_the_model_has() -> None:
    visual, mask, subtitles = corpus([6, 4])
    with pytest.raises(InvalidValue, match="subtitles missing: this model has subtitle_size 5"):
        model_of(TINY).encode_context(visual, mask, None)
    with pytest.raises(InvalidValue, match="subtitles given: this model has subtitle_size 0"):
        model_of(replace(TINY, subtitle_size=0)).encode_context(visual, mask, subtitles)


@pytest.mark.parametrize(
    "wrong",
    [{"labels": "charades"}, {"ranking_loss": "square"}, {"count_pair_twice": True, "sum_positives": True}],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        replace(TINY, **wrong)  # type: ignore[arg-type]


# ---- answers ---------------------------------------------------------------------------------------------


@torch.inference_mode()
def test_ranking_is_the_formula() -> None:
    model = model_of(TINY)
    context = model.encode_context(*corpus([9, 7, 4, 8]))
    query, query_mask = rows([5, 3], 4), mask_of([5, 3])
    ranked = model.rank(query, query_mask, context)
    queries = model.encode_query(query, query_mask)
    scores = model.video_scores(queries, context)
    for q in range(2):
        expected = []
        for v in scores[q].argsort(descending=True)[: TINY.top_videos].tolist():
            logits = model.span_logits(queries.select(torch.tensor([q])), context.select(torch.tensor([v])))
            start, end = (curve[0].softmax(dim=-1) for curve in logits)
            weight = math.exp(TINY.alpha * scores[q, v])
            clips = int(context.mask[v].sum())
            expected += [
                (weight * float(start[m] * end[n]), v, m * 1.5, n * 1.5)
                for m in range(clips)
                for n in range(m + TINY.shortest_span, min(m + TINY.longest_span, clips))
            ]
        expected = sorted(expected, reverse=True)[: TINY.top_moments]
        columns = (ranked.video[q], ranked.start[q], ranked.end[q])
        assert list(zip(*(c.tolist() for c in columns), strict=True)) == [row[1:] for row in expected]
        assert ranked.score[q].tolist() == pytest.approx([row[0] for row in expected], rel=1e-3)


@torch.inference_mode()
def test_ranking_in_pieces_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(TINY)
    context = model.encode_context(*corpus([9, 7, 4, 8]))
    query, query_mask = rows([5] * 6, 4), torch.ones(6, 5)
    at_once = model.rank(query, query_mask, context)
    monkeypatch.setattr(batches, "_LARGEST", 1)
    in_pieces = model.rank(query, query_mask, context)
    assert torch.equal(at_once.video, in_pieces.video)
    assert torch.equal(at_once.start, in_pieces.start)
    torch.testing.assert_close(at_once.score, in_pieces.score)


@torch.inference_mode()
def test_a_small_corpus_has_fewer_moments() -> None:
    model = model_of(TINY)
    ranked = model.rank(rows([5], 4), torch.ones(1, 5), model.encode_context(*corpus([4])))
    assert sorted(zip(ranked.start[0, :3].tolist(), ranked.end[0, :3].tolist(), strict=True)) == [
        (0.0, 3.0),
        (0.0, 4.5),
        (1.5, 4.5),
    ]
    assert (ranked.video[0, 3:] == -1).all()
    assert (ranked.end[0, 3:] == 0).all()
    assert (ranked.score[0, 3:] == -torch.inf).all()


@torch.inference_mode()
def test_refining_finds_the_best_span_of_each_window() -> None:
    config = replace(TINY, labels="spr", shortest_span=1, top_videos=1, top_moments=1)
    model = model_of(config)
    context = model.encode_context(*corpus([9, 2, 6], config))
    query, query_mask = rows([5], 4), torch.ones(1, 5)
    score, start, end = model.refine(query, query_mask, context)
    for i in range(3):
        alone = model.rank(query, query_mask, context.select(torch.tensor([i])))
        assert alone.start.item() == start[i] * 1.5
        assert alone.end.item() == (end[i] + 1) * 1.5
        assert alone.score.item() == pytest.approx(score[i].item(), rel=1e-4)
    aligned = model.refine(query.expand(3, -1, -1), query_mask.expand(3, -1), context)
    for one, other in zip(aligned, (score, start, end), strict=True):
        torch.testing.assert_close(one, other)


@torch.inference_mode()
def test_a_window_of_one_clip_is_returned_whole() -> None:
    model = model_of(replace(TINY, labels="spr", shortest_span=1))
    context = model.encode_context(*corpus([1, 5]))
    score, start, end = model.refine(rows([5], 4), torch.ones(1, 5), context)
    assert (start[0].item(), end[0].item()) == (0, 0)
    queries = model.encode_query(rows([5], 4), torch.ones(1, 5))
    assert score.isfinite().all()
    assert (score > 0).all()
    assert model.pair_scores(queries, context).shape == (2,)


# ---- losses ----------------------------------------------------------------------------------------------


def test_a_shared_video_is_encoded_once_and_counts_for_each_pair() -> None:
    model = model_of(TINY)
    shared = batch_of([8, 6], [0, 1, 0])
    apart = replace(
        shared,
        visual=shared.visual[shared.video],
        mask=shared.mask[shared.video],
        subtitles=shared.subtitles[shared.video],  # type: ignore[index]
        video=torch.arange(3),
    )
    one, other = (model.loss(batch, hard_pool=1, generator=None) for batch in (shared, apart))
    for name in one:
        torch.testing.assert_close(one[name], other[name])


def raw_scores(model: ReLoCLNet, batch: PairBatch) -> Tensor:
    middle = model._encode(batch)[0]
    queries = model.encode_query(batch.query, batch.query_mask)
    scores = [
        torch.einsum("qd,vld->qvl", queries.vectors[:, s], middle.clips[s]).masked_fill(batch.mask == 0, -1e9)
        for s in (0, 1)
    ]
    return torch.stack([score.amax(dim=-1) for score in scores]).mean(dim=0)


def test_positives_are_summed_in_the_loss_on_videos() -> None:
    positives = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1]]).bool()
    batch = batch_of([8, 6, 7], [0, 1, 2], positives)
    model = model_of(TINY)
    x = raw_scores(model, batch).exp()
    total = [x[i].sum() + x[:, i].sum() - x[i, i] for i in range(3)]
    numerator = [x[0, 0] + x[0, 1], x[1, 1] + x[0, 1], x[2, 2]]
    expected = [batch.similarity[i] * (total[i] / numerator[i]).log() for i in range(3)]
    terms = model.loss(batch, hard_pool=1, generator=None)
    torch.testing.assert_close(terms["video"], TINY.video_weight * torch.stack(expected).mean())


def test_a_positive_is_no_negative_of_the_ranking_loss() -> None:
    model = model_of(TINY)
    everything = batch_of([8, 6], [0, 1], torch.ones(2, 2, dtype=torch.bool))
    terms = model.loss(everything, hard_pool=None, generator=None)
    assert terms["context"] == terms["query"] == 0
    apart = model.loss(replace(everything, positives=torch.eye(2).bool()), hard_pool=None, generator=None)
    queries = model.encode_query(everything.query, everything.query_mask)
    scores = model.video_scores(
        queries, model.encode_context(everything.visual, everything.mask, everything.subtitles)
    )
    expected = [(0.1 + scores[i, 1 - i] - scores[i, i]).clamp(min=0) for i in (0, 1)]
    torch.testing.assert_close(apart["context"], torch.stack(expected).mean())


def test_the_pool_bounds_what_is_drawn_and_the_generator_decides() -> None:
    model = model_of(TINY)
    batch = batch_of([8, 6, 7, 5, 4], [0, 1, 2, 3, 4])

    def drawn(pool: int | None, seed: int) -> float:
        generator = torch.Generator().manual_seed(seed)
        return model.loss(batch, hard_pool=pool, generator=generator)["context"].item()

    hardest = drawn(1, 0)
    assert len({drawn(1, seed) for seed in range(10)}) == 1
    assert drawn(None, 3) == drawn(None, 3)
    values = {drawn(None, seed) for seed in range(20)}
    assert len(values) > 1
    assert max(values) <= hardest
    with pytest.raises(InvalidValue, match="pool of 0"):
        drawn(0, 0)


def test_strong_positives_must_beat_weak_ones() -> None:
    model = model_of(TINY)
    batch = batch_of([8, 6], [0, 1])
    weak = Windows(*corpus([5, 7]))
    terms = model.loss(batch, hard_pool=1, generator=None, weak_positives=weak)
    plain = model.loss(batch, hard_pool=1, generator=None)
    assert set(terms) - set(plain) == {"weak"}
    queries = model.encode_query(batch.query, batch.query_mask)
    strong = model.video_scores(queries, model.encode_context(batch.visual, batch.mask, batch.subtitles))
    lower = model.video_scores(queries, model.encode_context(weak.visual, weak.mask, weak.subtitles))
    expected = (0.1 + lower.diagonal() - strong.diagonal()).clamp(min=0).mean()
    torch.testing.assert_close(terms["weak"], TINY.weak_weight * expected)
    for name, value in plain.items():
        assert terms[name] == value
    itself = Windows(batch.visual, batch.mask, batch.subtitles)
    level = model.loss(batch, hard_pool=1, generator=None, weak_positives=itself)["weak"]
    assert level.item() == pytest.approx(0.1, abs=1e-6)


def test_similarity_weighs_only_what_it_should() -> None:
    batch = batch_of([8, 6, 7], [0, 1, 2])
    none = replace(batch, similarity=torch.zeros(3))
    model = model_of(TINY)
    terms, plain = (model.loss(b, hard_pool=1, generator=None) for b in (none, batch))
    assert terms["frame"] == terms["video"] == terms["span"] == 0
    assert terms["context"] == plain["context"]
    assert plain["span"] > 0
    unweighed = model_of(replace(TINY, weigh_by_similarity=False))
    same, again = (unweighed.loss(b, hard_pool=1, generator=None) for b in (none, batch))
    assert same["span"] == again["span"] > 0


def test_a_step_lowers_the_loss() -> None:
    torch.manual_seed(0)
    model = ReLoCLNet(TINY).train()
    batch = batch_of([8, 6, 7, 5], [0, 1, 2, 3])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for _ in range(30):
        total = torch.stack(list(model.loss(batch, hard_pool=1, generator=None).values())).sum()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        history.append(total.item())
    assert history[-1] < 0.7 * history[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_dropout_only_in_training() -> None:
    model = ReLoCLNet(replace(TINY, dropout=0.5)).eval()
    visual, mask, subtitles = corpus([6, 4])
    once, twice = (model.encode_context(visual, mask, subtitles).clips[0] for _ in range(2))
    assert torch.equal(once, twice)
    model.train()
    once, twice = (model.encode_context(visual, mask, subtitles).clips[0] for _ in range(2))
    assert not torch.equal(once, twice)


def test_selection() -> None:
    context = Context(mask_of([2, 3]), (torch.arange(12.0).view(2, 3, 2),))
    chosen = context.select(torch.tensor([1, 0, 1]))
    assert len(chosen) == 3
    assert torch.equal(chosen.clips[0][2], context.clips[0][1])
    assert torch.equal(chosen.mask[1], context.mask[0])
    queries = Queries(torch.zeros(4, 2, 3), torch.full((4, 2), 0.5))
    assert len(queries.select(torch.tensor([0]))) == 1


@torch.inference_mode()
def test_scores_keep_their_precision_under_autocast() -> None:
    model = model_of(TINY)
    context = model.encode_context(*corpus([9, 7, 4]))
    queries = model.encode_query(rows([5] * 2, 4), torch.ones(2, 5))
    with torch.autocast("cpu", torch.bfloat16):
        lowered = model.video_scores(queries, context)
    torch.testing.assert_close(lowered, model.video_scores(queries, context), rtol=0, atol=0)
