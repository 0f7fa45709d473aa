"""ReLoCLNet for ranked retrieval against the values that the release computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from golden_reloclnet import assert_gradients, assert_labels, assert_near, load, published, training_batch
from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.losses import in_batch_ranking_loss
from moviola.study.models.reloclnet import Context, Queries, ReLoCLNet, ReLoCLNetConfig
from moviola.study.models.spans import corpus_spans, top_scores

NAME = "model_reloclnet_tvr_ranking"
TERMS = {
    "loss_fcl": "frame",
    "loss_vcl": "video",
    "loss_st_ed": "span",
    "loss_neg_ctx": "context",
    "loss_neg_q": "query",
}


@pytest.fixture(scope="module")
def config(fixture: dict[str, Any]) -> ReLoCLNetConfig:
    decoding = fixture["decoding"]
    return ReLoCLNetConfig(
        **published(fixture), sum_positives=False, count_pair_twice=True, top_videos=decoding["top_videos"],
        top_moments=decoding["top_moments"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(config: ReLoCLNetConfig, arrays: dict[str, Tensor]) -> ReLoCLNet:
    return load(config, arrays)


def test_number_of_parameters(fixture: dict[str, Any], model: ReLoCLNet) -> None:
    assert sum(parameter.numel() for parameter in model.parameters()) == fixture["number_of_parameters"]


@torch.inference_mode()
def test_context(fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet) -> None:
    seen: dict[str, Tensor] = {}
    hooks = [
        getattr(model, f"{stream}_encoder{depth}").register_forward_hook(
            lambda _module, _inputs, output, key=f"out/enc_{stream}_{depth}": seen.update({key: output})
        )
        for stream in ("video", "sub")
        for depth in (1, 2)
    ]
    mask = arrays["in/video_mask"]
    context = model.encode_context(arrays["in/video_feat"], mask, arrays["in/sub_feat"])
    for hook in hooks:
        hook.remove()
    seen |= {"out/video_context": context.clips[0], "out/sub_context": context.clips[1]}
    for name, computed in seen.items():
        assert_near(computed, arrays[name], mask, fixture["tolerance"])


@torch.inference_mode()
def test_queries_scores_and_logits(
    fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet
) -> None:
    tolerance = fixture["tolerance"]
    valid = tolerance["valid_positions_forward"]
    mask = arrays["in/video_mask"]
    context = model.encode_context(arrays["in/video_feat"], mask, arrays["in/sub_feat"])
    queries = model.encode_query(arrays["in/query_feat"], arrays["in/query_mask"])
    torch.testing.assert_close(queries.vectors[:, 0], arrays["out/video_query"], **valid)
    torch.testing.assert_close(queries.vectors[:, 1], arrays["out/sub_query"], **valid)
    torch.testing.assert_close(model.video_scores(queries, context), arrays["out/query_video_score"], **valid)
    for name, computed in zip(("start", "end"), all_span_logits(model, queries, context), strict=True):
        expected = arrays[f"out/{name}_logit"]
        everywhere = mask.expand(expected.shape)
        assert_near(computed * everywhere, expected * everywhere, everywhere, tolerance)
        assert (computed[everywhere == 0] < -1e9).all()


def all_span_logits(model: ReLoCLNet, queries: Queries, context: Context) -> tuple[Tensor, Tensor]:
    """Every query with every video, (Q, V, L) each."""
    query, video = torch.cartesian_prod(torch.arange(len(queries)), torch.arange(len(context))).T
    start, end = model.span_logits(queries.select(query), context.select(video))
    shape = (len(queries), len(context), -1)
    return start.view(shape), end.view(shape)


def test_decoding_of_the_stored_scores(arrays: dict[str, Tensor], config: ReLoCLNetConfig) -> None:
    score, video = top_scores(arrays["out/query_video_score"], config.top_videos)
    rows = torch.arange(len(video))[:, None]
    place, spans = corpus_spans(
        (config.alpha * score).exp(),
        arrays["out/start_logit"][rows, video].softmax(dim=-1),
        arrays["out/end_logit"][rows, video].softmax(dim=-1),
        shortest=config.shortest_span,
        longest=config.longest_span,
        k=config.top_moments,
    )
    assert torch.equal(video.gather(1, place).int(), arrays["out/top_video"])
    assert torch.equal(spans.start.int(), arrays["out/top_start_index"])
    assert torch.equal(spans.end.int(), arrays["out/top_end_index"])
    torch.testing.assert_close(spans.score, arrays["out/top_score"], rtol=1e-4, atol=0)
    seconds = torch.stack([spans.start, LABELS[config.labels].end_clip(spans.end)], -1) * config.clip_seconds
    torch.testing.assert_close(seconds, arrays["out/top_seconds"], rtol=0, atol=1e-6)


@torch.inference_mode()
def test_ranking_from_features(arrays: dict[str, Tensor], model: ReLoCLNet) -> None:
    context = model.encode_context(arrays["in/video_feat"], arrays["in/video_mask"], arrays["in/sub_feat"])
    ranked = model.rank(arrays["in/query_feat"], arrays["in/query_mask"], context)
    torch.testing.assert_close(ranked.score, arrays["out/top_score"], rtol=2e-3, atol=0)
    # neighbours may swap within that tolerance, so that the sets are compared, but for the last places
    for q in range(len(ranked.video)):
        found = {
            tuple(row) for row in torch.stack([ranked.video[q], ranked.start[q], ranked.end[q]], -1).tolist()
        }
        expected = torch.cat([arrays["out/top_video"][q, :, None], arrays["out/top_seconds"][q]], -1).tolist()
        assert {tuple(row) for row in expected[: len(expected) // 2]} <= found


def test_labels(arrays: dict[str, Tensor], config: ReLoCLNetConfig) -> None:
    assert_labels(config, arrays)


def test_losses(fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet) -> None:
    tolerance = fixture["tolerance"]["loss"]
    pool = fixture["config"]["hard_pool_size"]
    terms = model.train().loss(training_batch(arrays), hard_pool=pool, generator=None)
    model.eval()
    assert set(terms) == set(TERMS.values())
    for theirs, term in TERMS.items():
        torch.testing.assert_close(terms[term], arrays[f"out/{theirs}"], **tolerance)
    torch.testing.assert_close(sum(terms.values()), arrays["out/loss"], **tolerance)


def test_smooth_ranking_loss(
    fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig
) -> None:
    model = load(replace(config, ranking_loss="lse"), arrays).train()
    pool = fixture["config"]["hard_pool_size"]
    terms = model.loss(training_batch(arrays), hard_pool=pool, generator=None)
    torch.testing.assert_close(sum(terms.values()), arrays["out/loss_lse"], **fixture["tolerance"]["loss"])


@torch.inference_mode()
def test_negatives_at_given_ranks(
    fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet
) -> None:
    batch = training_batch(arrays)
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    scores = model.video_scores(model.encode_query(batch.query, batch.query_mask), context)
    torch.testing.assert_close(
        scores,
        arrays["out/train_query_video_score"],
        **fixture["tolerance"]["valid_positions_forward"],
    )
    terms = model.loss(batch, hard_pool=1, generator=None)
    ranking = in_batch_ranking_loss(
        scores,
        batch.positives,
        margin=model.config.margin,
        ranks=(arrays["in/train_neg_rank_ctx"].long() - 1, arrays["in/train_neg_rank_q"].long() - 1),
    )
    terms |= {
        "context": model.config.context_weight * ranking[0],
        "query": model.config.query_weight * ranking[1],
    }
    torch.testing.assert_close(
        sum(terms.values()), arrays["out/loss_given_rank"], **fixture["tolerance"]["loss"]
    )


def test_gradients(fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig) -> None:
    model = load(config, arrays).train()
    pool = fixture["config"]["hard_pool_size"]
    terms = model.loss(training_batch(arrays), hard_pool=pool, generator=None)
    assert_gradients(model, terms, arrays, "grad/")


@torch.inference_mode()
def test_without_the_leak_only_the_last_two_clips_differ(
    fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig
) -> None:
    model = load(replace(config, reference_padding=False), arrays)
    mask = arrays["in/video_mask"]
    context = model.encode_context(arrays["in/video_feat"], mask, arrays["in/sub_feat"])
    queries = model.encode_query(arrays["in/query_feat"], arrays["in/query_mask"])
    valid = fixture["tolerance"]["valid_positions_forward"]
    for stream, name in enumerate(("video_context", "sub_context")):
        torch.testing.assert_close(context.clips[stream][mask > 0], arrays[f"out/{name}"][mask > 0], **valid)
    torch.testing.assert_close(model.video_scores(queries, context), arrays["out/query_video_score"], **valid)
    for name, computed in zip(("start", "end"), all_span_logits(model, queries, context), strict=True):
        expected = arrays[f"out/{name}_logit"]
        clips, length = mask.sum(dim=1, keepdim=True), mask.shape[1]
        # a video without padding has nothing that could leak
        clear = torch.arange(length) < torch.where(clips < length, clips - 2, clips)
        chosen = clear.expand(expected.shape)
        torch.testing.assert_close(computed[chosen], expected[chosen], **valid)
        leaked = (mask > 0).expand(expected.shape) & ~chosen
        assert (computed - expected)[leaked].abs().max() > valid["atol"]
