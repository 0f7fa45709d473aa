"""CONQUER: padding, candidates, similarities, ranking and training, on tiny models with random weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad

from moviola.errors import InvalidValue
from moviola.study.models.batches import CandidateBatch, Ranked
from moviola.study.models.conquer import SIMILARITIES, Conquer, ConquerConfig, Scores

TINY = ConquerConfig(
    visual_size=6,
    subtitle_size=5,
    query_size=4,
    hidden_size=8,
    heads=2,
    feed_forward_size=12,
    max_clips=14,
    max_tokens=7,
    clusters=3,
    clip_score_size=4,
    video_score_size=4,
    top_moments=12,
    shortest_span=0,
    longest_span=5,
)
EVERY_SIMILARITY = pytest.mark.parametrize("similarity", list(SIMILARITIES))


def tiny(seed: int = 0, **changes: object) -> Conquer:
    """A model whose weights are large enough for its outputs to differ clearly."""
    torch.manual_seed(seed)
    return Conquer(replace(TINY, **({"initial_std": 0.4} | changes))).eval()  # type: ignore[arg-type]


def mask_of(lengths: list[int], width: int) -> Tensor:
    return (torch.arange(width) < torch.tensor(lengths)[:, None]).float()


def batch_of(seed: int = 0, *, subtitles: bool = True) -> CandidateBatch:
    """Three queries over five videos; some videos are candidates of several queries."""
    generator = torch.Generator().manual_seed(seed)
    mask, query_mask = mask_of([9, 4, 7, 2, 8], 9), mask_of([5, 2, 3], 5)

    def features(mask: Tensor, size: int) -> Tensor:
        return torch.randn(*mask.shape, size, generator=generator) * mask[..., None]

    return CandidateBatch(
        query=features(query_mask, 4),
        query_mask=query_mask,
        visual=features(mask, 6),
        mask=mask,
        subtitles=features(mask, 5) if subtitles else None,
        candidates=torch.tensor([[0, 1, 2], [4, 2, 3], [0, 3, 4]]),
        labels=torch.tensor([[1, 3], [5, 5], [7, 8]]),
        similarity=torch.tensor([1.0, 0.5, 0.25]),
    )


def scores_of(model: Conquer, batch: CandidateBatch) -> Scores:
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    return model.match(model.encode_query(batch.query, batch.query_mask), context.select(batch.candidates))


def total(model: Conquer, batch: CandidateBatch) -> Tensor:
    return torch.stack(list(model.loss(batch).values())).sum()


@pytest.mark.parametrize(
    ("similarity", "parameters"),
    [("general", 47_672_640), ("disjoint", 47_672_640), ("exclusive", 57_816_512)],
)
def test_default_config_has_the_size_of_the_release(similarity: str, parameters: int) -> None:
    with torch.device("meta"):
        model = Conquer(ConquerConfig(similarity=similarity))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


# ---- padding ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    similarity=st.sampled_from(list(SIMILARITIES)),
    subtitles=st.booleans(),
    clips=st.integers(0, 5),
    tokens=st.integers(0, 2),
    rubbish=st.floats(-5, 5),
    seed=st.integers(0, 10),
)
def test_padding_changes_nothing(
    similarity: str, subtitles: bool, clips: int, tokens: int, rubbish: float, seed: int
) -> None:
    """Neither how much there is nor what stands in it, in forward values, losses and ranked moments."""
    model = tiny(seed, similarity=similarity, **({} if subtitles else {"subtitle_size": 0}))
    batch = batch_of(seed, subtitles=subtitles)

    def padded(features: Tensor, mask: Tensor, more: int) -> Tensor:
        features = torch.where(mask[..., None] == 1, features, rubbish)
        return pad(features, (0, 0, 0, more), value=rubbish)

    wider = replace(
        batch,
        query=padded(batch.query, batch.query_mask, tokens),
        query_mask=pad(batch.query_mask, (0, tokens)),
        visual=padded(batch.visual, batch.mask, clips),
        mask=pad(batch.mask, (0, clips)),
        subtitles=None if batch.subtitles is None else padded(batch.subtitles, batch.mask, clips),
    )
    with torch.no_grad():
        expected, found = scores_of(model, batch), scores_of(model, wider)
        close = {"rtol": 1e-4, "atol": 1e-4}
        valid = batch.mask[batch.candidates] == 1
        for name in ("start", "end"):
            wide = getattr(found, name)
            torch.testing.assert_close(wide[..., :9][valid], getattr(expected, name)[valid], **close)
            assert (wide[..., 9:] < -1e9).all()
        if expected.video is not None:
            torch.testing.assert_close(found.video, expected.video, **close)
        torch.testing.assert_close(model.loss(wider), model.loss(batch), **close)
        first_stage = torch.ones(batch.candidates.shape)
        moments = (model.decode(scores, first_stage).score for scores in (found, expected))
        torch.testing.assert_close(*moments, rtol=1e-3, atol=1e-3)


def test_reference_padding_fills_up_to_the_maximum() -> None:
    """The release's numbers don't depend on how far the caller has padded, but on the padding they do."""
    batch = batch_of()
    longest = replace(
        batch,
        query=pad(batch.query, (0, 0, 0, 2)),
        query_mask=pad(batch.query_mask, (0, 2)),
        visual=pad(batch.visual, (0, 0, 0, 5)),
        mask=pad(batch.mask, (0, 5)),
        subtitles=pad(batch.subtitles, (0, 0, 0, 5)),  # type: ignore[arg-type]
    )
    reference = tiny(similarity="exclusive", reference_padding=True)
    ours = tiny(similarity="exclusive")
    with torch.no_grad():
        torch.testing.assert_close(total(reference, batch), total(reference, longest))
        found, expected = scores_of(ours, batch).video, scores_of(reference, batch).video
    assert not torch.allclose(found, expected, atol=1e-3)  # type: ignore[arg-type]


# ---- streams ---------------------------------------------------------------------------------------------


@EVERY_SIMILARITY
def test_pictures_alone(similarity: str) -> None:
    model, batch = tiny(similarity=similarity, subtitle_size=0), batch_of(subtitles=False)
    assert not any(
        name.startswith(("query_weight", "encoder.videoEncoder.text")) for name in model.state_dict()
    )
    assert model.encode_query(batch.query, batch.query_mask).fusion is None
    assert model.encode_context(batch.visual, batch.mask).subtitles is None
    total(model, batch).backward()
    unused = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not unused


def test_subtitles_count_as_the_query_says() -> None:
    model, batch = tiny(), batch_of()
    fusion = model.encode_query(batch.query, batch.query_mask).fusion
    assert fusion is not None
    torch.testing.assert_close(fusion.sum(dim=1), torch.ones(3))
    assert fusion.std(dim=0).min() > 1e-3
    assert batch.subtitles is not None
    changed = replace(batch, subtitles=batch.subtitles.flip(0))
    assert not torch.allclose(scores_of(model, batch).start, scores_of(model, changed).start, atol=1e-3)


@pytest.mark.parametrize("subtitle_size", [0, 5])
def test_wrong_streams_are_refused(subtitle_size: int) -> None:
    batch = batch_of(subtitles=not subtitle_size)
    with pytest.raises(InvalidValue, match="subtitle_size"):
        tiny(subtitle_size=subtitle_size).loss(batch)


# ---- candidates ------------------------------------------------------------------------------------------


@EVERY_SIMILARITY
def test_a_video_held_once_counts_like_copies(similarity: str) -> None:
    batch = batch_of()
    rows = batch.candidates.flatten()
    copies = replace(
        batch,
        visual=batch.visual[rows],
        mask=batch.mask[rows],
        subtitles=batch.subtitles[rows],  # type: ignore[index]
        candidates=torch.arange(9).view(3, 3),
    )
    one, other = tiny(similarity=similarity), tiny(similarity=similarity)
    found, expected = total(one, batch), total(other, copies)
    torch.testing.assert_close(found, expected)
    found.backward()
    expected.backward()
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-6)


def test_loss_is_the_shared_cross_entropy_weighted_by_similarity() -> None:
    batch, config = batch_of(), replace(TINY, similarity="exclusive")
    model = tiny(similarity="exclusive")
    with torch.no_grad():
        scores, terms = scores_of(model, batch), model.loss(batch)
    moment = video = 0.0
    for i, (start, end) in enumerate(batch.labels.tolist()):
        # all valid clips of the query's candidates compete with each other
        valid = batch.mask[batch.candidates[i]].numpy() == 1
        weight = float(batch.similarity[i]) / 3
        for logits, label in ((scores.start, start), (scores.end, end)):
            values = logits[i].double().numpy()
            moment += weight * (math.log(np.exp(values[valid]).sum()) - values[0, label])
        assert scores.video is not None
        values = scores.video[i].double().numpy()
        video += weight * (math.log(np.exp(values).sum()) - values[0])
    assert terms.keys() == {"span", "video"}
    assert terms["span"].item() == pytest.approx(config.span_weight * moment, rel=1e-4)
    assert terms["video"].item() == pytest.approx(config.video_weight * video, rel=1e-4)


def test_context_rows_are_independent() -> None:
    model, batch = tiny(), batch_of()
    whole = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    rows = torch.tensor([3, 1])
    part = model.encode_context(batch.visual[rows], batch.mask[rows], batch.subtitles[rows])  # type: ignore[index]
    chosen = whole.select(rows)
    torch.testing.assert_close(part.visual, chosen.visual)
    torch.testing.assert_close(part.subtitles, chosen.subtitles)
    torch.testing.assert_close(part.mask, chosen.mask)


# ---- ranking ---------------------------------------------------------------------------------------------


def slow_moments(
    model: Conquer, scores: Scores, first_stage: Tensor, query: int
) -> list[tuple[float, int, float, float]]:
    """(score, candidate, start, end) of one query by loops over all spans, best first."""
    config = model.config
    found = []
    candidates = [v for v in range(first_stage.shape[1]) if first_stage[query, v] > -math.inf]
    for v in candidates:
        start, end = scores.start[query, v].double(), scores.end[query, v].double()
        moments = []
        for i in range(len(start)):
            for j in range(i + config.shortest_span, min(i + config.longest_span, len(start))):
                if start[i] < -1e9 or end[j] < -1e9:
                    continue
                if config.similarity == "disjoint":
                    score = (start[i] + end[j]).item()
                else:
                    score = (start.softmax(0)[i] * end.softmax(0)[j]).item()
                moments.append((score, v, i * config.clip_seconds, (j + 1) * config.clip_seconds))
        if config.similarity == "general":
            video = first_stage[query, v].item()
        elif config.similarity == "exclusive":
            assert scores.video is not None
            video = scores.video[query, candidates].double().softmax(0)[candidates.index(v)].item()
        else:
            video = max((moment[0] for moment in moments), default=-math.inf)
        factor = 1.0 if config.similarity == "disjoint" else video
        found.append((video, [(factor * moment[0], *moment[1:]) for moment in moments]))
    found = sorted(found, key=lambda one: -one[0])[: config.top_videos]
    return sorted((moment for _, moments in found for moment in moments), reverse=True)


@EVERY_SIMILARITY
@pytest.mark.parametrize(("shortest", "longest", "top_videos"), [(0, 5, 100), (2, 16, 100), (1, 4, 2)])
@torch.no_grad()
def test_decoding_is_what_loops_find(similarity: str, shortest: int, longest: int, top_videos: int) -> None:
    model = tiny(similarity=similarity, shortest_span=shortest, longest_span=longest, top_videos=top_videos)
    scores = scores_of(model, batch_of())
    first_stage = torch.tensor([[0.5, 0.9, 0.2], [0.3, -math.inf, 0.8], [0.1, 0.7, 0.4]])
    ranked = model.decode(scores, first_stage)
    for query in range(3):
        expected = slow_moments(model, scores, first_stage, query)
        best = [score for score, *_ in expected][: TINY.top_moments]
        found = ranked.video[query] >= 0
        assert found.tolist() == [place < len(best) for place in range(len(found))]
        np.testing.assert_allclose(ranked.score[query, found], best, rtol=1e-4, atol=1e-6)
        # Which moments they are: by their scores, as two may score the same.
        columns = (ranked.video, ranked.start, ranked.end)
        moments = list(zip(*(column[query, found].tolist() for column in columns), strict=True))
        assert len(set(moments)) == len(moments)
        score_of = {tuple(moment): score for score, *moment in expected}
        np.testing.assert_allclose([score_of[one] for one in moments], best, rtol=1e-4, atol=1e-6)


@EVERY_SIMILARITY
@pytest.mark.parametrize("candidates", [2, 100])
def test_ranking_does_not_depend_on_how_pairs_are_divided(
    similarity: str, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = tiny(similarity=similarity, candidates=candidates), batch_of()
    first_stage = torch.rand(3, 5, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
        found = []
        for pairs_at_once in (1000, 7, 1):
            monkeypatch.setattr("moviola.study.models.conquer.model.PAIRS_AT_ONCE", pairs_at_once)
            found.append(model.rank(batch.query, batch.query_mask, context, first_stage=first_stage))
    one, *others = found
    best = first_stage.topk(min(candidates, 5)).indices
    for query in range(3):
        assert set(one.video[query].tolist()) <= set(best[query].tolist())
    for other in others:
        assert torch.equal(other.video, one.video)
        assert torch.equal(other.start, one.start)
        assert torch.equal(other.end, one.end)
        torch.testing.assert_close(other.score, one.score)


@pytest.mark.parametrize("similarity", ["exclusive", "disjoint"])
@pytest.mark.parametrize("candidates", [2, 100])
@torch.inference_mode()
def test_videos_are_ranked_by_their_head_or_their_best_span(
    similarity: str, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.study.models.conquer.model.PAIRS_AT_ONCE", 3)
    model, batch = tiny(similarity=similarity, candidates=candidates), batch_of()
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    first_stage = torch.rand(3, 5, generator=torch.Generator().manual_seed(1))
    first_stage[1, 2:] = -math.inf
    rows, values = model.rank_videos(batch.query, batch.query_mask, context, first_stage=first_stage, keep=4)
    every = model.match(
        model.encode_query(batch.query, batch.query_mask), context.select(torch.arange(5).expand(3, 5))
    )
    for query in range(3):
        there = [v for v in first_stage[query].argsort(descending=True).tolist() if first_stage[query, v] > 0]
        there = there[:candidates]
        if similarity == "exclusive":
            assert every.video is not None
            score = dict(zip(there, every.video[query, there].softmax(0).tolist(), strict=True))
        else:
            score = {v: best_span(model, every, query, v) for v in there}
        best = sorted(there, key=lambda v: -score[v])[:4]
        found = [row for row in rows[query].tolist() if row >= 0]
        assert found == best
        np.testing.assert_allclose(values[query, : len(best)], [score[v] for v in best], rtol=1e-4, atol=1e-6)


def best_span(model: Conquer, scores: Scores, query: int, video: int) -> float:
    """The largest sum of a start and an end within the limits, by loops."""
    start, end = scores.start[query, video].tolist(), scores.end[query, video].tolist()
    limits = range(model.config.shortest_span, model.config.longest_span)
    return max(a + end[i + n] for i, a in enumerate(start) for n in limits if i + n < len(end))


@EVERY_SIMILARITY
def test_a_query_without_candidates_has_no_moments(similarity: str) -> None:
    model, batch = tiny(similarity=similarity), batch_of()
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    first_stage = torch.ones(3, 5)
    first_stage[1] = -math.inf
    ranked = model.rank(batch.query, batch.query_mask, context, first_stage=first_stage)
    assert (ranked.video[1] == -1).all()
    assert (ranked.score[1] == -math.inf).all()
    assert (ranked.video[[0, 2]] >= 0).all()
    assert not ranked.score.isnan().any()


def slow_suppression(ranked: Ranked, query: int, threshold: float) -> list[int]:
    kept: list[int] = []
    columns = (ranked.video, ranked.start, ranked.end)
    moments = list(zip(*(column[query].tolist() for column in columns), strict=True))
    for place, (video, start, end) in enumerate(moments):
        rivals = [moments[k][1:] for k in kept if moments[k][0] == video]
        shared = [max(0.0, min(end, e) - max(start, s)) for s, e in rivals]
        union = [end - start + e - s - common for (s, e), common in zip(rivals, shared, strict=True)]
        if all(common <= threshold * u for common, u in zip(shared, union, strict=True)):
            kept.append(place)
    return kept


@EVERY_SIMILARITY
@pytest.mark.parametrize("threshold", [0.3, 0.7])
@torch.no_grad()
def test_suppression_of_overlapping_moments(similarity: str, threshold: float) -> None:
    model = tiny(similarity=similarity, top_moments=40)
    scores, first_stage = scores_of(model, batch_of()), torch.ones(3, 3)
    every = model.decode(scores, first_stage)
    suppressing = tiny(similarity=similarity, top_moments=9, nms=threshold, moments_before_nms=40)
    found = suppressing.decode(scores, first_stage)
    assert found.video.shape == (3, 9)
    for query in range(3):
        kept = slow_suppression(every, query, threshold)
        assert len(kept) < (every.video[query] >= 0).sum(), "nothing was suppressed"
        kept = kept[:9]
        for name in ("video", "start", "end", "score"):
            expected = getattr(every, name)[query, kept]
            assert torch.equal(getattr(found, name)[query, : len(kept)], expected)
        assert (found.video[query, len(kept) :] == -1).all()


# ---- refusals --------------------------------------------------------------------------------------------


def test_refusals_name_value_and_remedy() -> None:
    model, batch = tiny(), batch_of()
    with pytest.raises(InvalidValue, match=r"'bilinear'.*general, exclusive, disjoint"):
        tiny(similarity="bilinear")
    with pytest.raises(InvalidValue, match=r"video of 15 clips.*14"):
        model.encode_context(torch.zeros(1, 15, 6), torch.ones(1, 15), torch.zeros(1, 15, 5))
    with pytest.raises(InvalidValue, match=r"query of 8 tokens.*7"):
        model.encode_query(torch.zeros(1, 8, 4), torch.ones(1, 8))
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    with pytest.raises(InvalidValue, match=r"\(3, 4\).*3 queries and 5 videos"):
        model.rank(batch.query, batch.query_mask, context, first_stage=torch.ones(3, 4))
    negative = torch.full((3, 5), -0.25)
    with pytest.raises(InvalidValue, match=r"-0\.25.*exp"):
        model.rank(batch.query, batch.query_mask, context, first_stage=negative)
    tiny(similarity="disjoint").rank(batch.query, batch.query_mask, context, first_stage=negative)


# ---- training --------------------------------------------------------------------------------------------


def test_dropout_is_for_training_only() -> None:
    model, batch = tiny(dropout=0.5), batch_of()
    assert torch.equal(scores_of(model, batch).start, scores_of(model, batch).start)
    model.train()
    assert not torch.equal(scores_of(model, batch).start, scores_of(model, batch).start)


@EVERY_SIMILARITY
def test_every_weight_is_trained(similarity: str) -> None:
    model = tiny(similarity=similarity)
    total(model, batch_of()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@EVERY_SIMILARITY
def test_it_learns_where_the_moments_are(similarity: str) -> None:
    model = tiny(similarity=similarity, initial_std=0.1, dropout=0.0, hidden_size=16, top_moments=1)
    batch = replace(batch_of(), similarity=torch.ones(3))
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(120):
        optimiser.zero_grad()
        total(model, batch).backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        best = model.decode(scores_of(model, batch), torch.ones(3, 3))
    clips = torch.stack([best.start[:, 0], best.end[:, 0]], dim=1) / model.config.clip_seconds
    assert (clips == batch.labels + torch.tensor([0, 1])).all()
    if similarity != "general":  # there, which video it is comes from the first stage alone
        assert (best.video == 0).all()


def test_batches_move_whole() -> None:
    batch = batch_of()
    moved = batch.to("meta")
    assert len(batch) == len(moved) == 3
    assert {value.device.type for value in vars(moved).values() if value is not None} == {"meta"}
    assert batch_of(subtitles=False).to("meta").subtitles is None
