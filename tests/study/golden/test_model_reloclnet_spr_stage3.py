"""ReLoCLNet on the windows of SPR's proposals against the values that the release computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from golden_reloclnet import assert_gradients, assert_labels, assert_near, load, published, training_batch
from moviola.features import normalise_rows
from moviola.retrieval.saved.clip_windows import LABELS, ClipWindows, clip_windows, pool_clips
from moviola.study.models.refining import Windows
from moviola.study.models.reloclnet import SPR_SMALL, Context, ReLoCLNet, ReLoCLNetConfig
from moviola.study.models.spans import best_spans

NAME = "model_reloclnet_spr_stage3"
TERMS = {
    "fcl": "frame",
    "vcl": "video",
    "st_ed": "span",
    "neg_ctx": "context",
    "neg_q": "query",
    "hard_neg_ctx": "hard_negative",
}


@pytest.fixture(scope="module")
def config(fixture: dict[str, Any]) -> ReLoCLNetConfig:
    hard = fixture["config"]["lw_hard_neg_ctx"]
    return replace(SPR_SMALL, **published(fixture), hard_negative_weight=hard)


@pytest.fixture(scope="module")
def model(config: ReLoCLNetConfig, arrays: dict[str, Tensor]) -> ReLoCLNet:
    return load(config, arrays)


def hard_negatives(arrays: dict[str, Tensor]) -> Windows:
    return Windows(
        arrays["in/train_hard_neg_video_feat"],
        arrays["in/train_hard_neg_video_mask"],
        arrays["in/train_hard_neg_sub_feat"],
    )


# ---- forward values and losses ---------------------------------------------------------------------------


@torch.inference_mode()
def test_forward(fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet) -> None:
    tolerance, batch = fixture["tolerance"], training_batch(arrays)
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    queries = model.encode_query(batch.query, batch.query_mask)
    assert_near(context.clips[0], arrays["out/video_context"], batch.mask, tolerance)
    assert_near(context.clips[1], arrays["out/sub_context"], batch.mask, tolerance)
    scores = model.video_scores(queries, context)
    valid = tolerance["valid_positions_forward"]
    torch.testing.assert_close(scores, arrays["out/query_video_score"], **valid)
    torch.testing.assert_close(model.pair_scores(queries, context), scores.diagonal(), **valid)
    query, video = torch.cartesian_prod(torch.arange(len(queries)), torch.arange(len(context))).T
    logits = model.span_logits(queries.select(query), context.select(video))
    for name, computed in zip(("start", "end"), logits, strict=True):
        expected = arrays[f"out/{name}_logit"].flatten(0, 1)
        everywhere = batch.mask[video]
        assert_near(computed * everywhere, expected * everywhere, everywhere, tolerance)
        assert (computed[everywhere == 0] < -1e9).all()


def losses(kind: str, config: ReLoCLNetConfig, fixture: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """The model and the terms of one of the three losses of the release."""
    model = load(replace(config, weigh_by_similarity=kind == "weighted"), arrays).train()
    terms = model.loss(
        training_batch(arrays),
        hard_pool=fixture["config"]["hard_pool_size"],
        generator=None,
        hard_negatives=hard_negatives(arrays) if kind == "hard_neg" else None,
    )
    return model, terms


@pytest.mark.parametrize("kind", ["rvmr", "hard_neg", "weighted"])
def test_losses(
    fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig, kind: str
) -> None:
    tolerance = fixture["tolerance"]["loss"]
    _, terms = losses(kind, config, fixture, arrays)
    stored = [name for name in arrays if name.startswith(f"out/{kind}_loss_")]
    assert {TERMS[name.removeprefix(f"out/{kind}_loss_")] for name in stored} == set(terms)
    for name in stored:
        term = terms[TERMS[name.removeprefix(f"out/{kind}_loss_")]]
        torch.testing.assert_close(
            term, arrays[name], **tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )
    torch.testing.assert_close(sum(terms.values()), arrays[f"out/{kind}_loss"], **tolerance)


@pytest.mark.parametrize("kind", ["rvmr", "hard_neg"])
def test_gradients(
    fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig, kind: str
) -> None:
    model, terms = losses(kind, config, fixture, arrays)
    assert_gradients(model, terms, arrays, f"grad/{kind}:")


def test_labels(arrays: dict[str, Tensor], config: ReLoCLNetConfig) -> None:
    assert_labels(config, arrays)


# ---- from raw features to refined moments ----------------------------------------------------------------


def windows_of(fixture: dict[str, Any], arrays: dict[str, Tensor], query_id: str) -> ClipWindows:
    decoding, proposals = fixture["decoding"], fixture["proposals"][query_id]
    durations = np.array([fixture["durations"][proposal["video_id"]] for proposal in proposals])
    context = decoding["moment_ctx_len"]
    return clip_windows(
        np.maximum(np.array([proposal["start"] for proposal in proposals]) - context, 0),
        np.minimum(np.array([proposal["end"] for proposal in proposals]) + context, durations),
        [len(arrays[f"in/clips_video/{proposal['video_id']}"]) for proposal in proposals],
        clip_seconds=decoding["clip_length"],
        longest=decoding["padded_length"],
    )


def refined(
    fixture: dict[str, Any], query_id: str, windows: ClipWindows, answer: tuple[Tensor, Tensor, Tensor]
) -> list[dict[str, Any]]:
    """Spans in windows as moments of videos, best first."""
    proposals = fixture["proposals"][query_id]
    durations = [fixture["durations"][proposal["video_id"]] for proposal in proposals]
    score, start, end = (column.numpy() for column in answer)
    starts, ends = windows.seconds(start, end, LABELS["spr"], durations)
    return [
        {"video_id": proposals[i]["video_id"], "start": starts[i], "end": ends[i], "score": score[i]}
        for i in np.argsort(-score, kind="stable")
    ]


def assert_same_moments(found: list[dict[str, Any]], expected: list[dict[str, Any]], rtol: float) -> None:
    assert [moment["video_id"] for moment in found] == [moment["video_id"] for moment in expected]
    for name, tolerance in (("start", {"abs": 1e-4}), ("end", {"abs": 1e-4}), ("score", {"rel": rtol})):
        values = [moment[name] for moment in expected]
        assert [moment[name] for moment in found] == pytest.approx(values, **tolerance)


def test_windows(fixture: dict[str, Any], arrays: dict[str, Tensor]) -> None:
    for query_id, expected in fixture["expected_windows"].items():
        windows = windows_of(fixture, arrays, query_id)
        for i, (window, proposal) in enumerate(zip(expected, fixture["proposals"][query_id], strict=True)):
            duration = fixture["durations"][proposal["video_id"]]
            assert [windows.first[i], windows.stop[i]] == window["clip_range"]
            assert [windows.start[i], min(windows.end[i], duration)] == pytest.approx(window["seconds"])
            assert windows.clip_seconds[i] == pytest.approx(window["clip_length"])


def test_decoding_of_the_stored_logits(
    fixture: dict[str, Any], arrays: dict[str, Tensor], config: ReLoCLNetConfig
) -> None:
    spans = best_spans(
        arrays["out/prop_start_logit"].softmax(dim=-1),
        arrays["out/prop_end_logit"].softmax(dim=-1),
        shortest=config.shortest_span,
        longest=config.longest_span,
    )
    score = spans.score * (config.alpha * arrays["out/prop_score"]).exp()
    first = 0
    for query_id, proposals in fixture["proposals"].items():
        rows = slice(first, first := first + len(proposals))
        windows = windows_of(fixture, arrays, query_id)
        found = refined(fixture, query_id, windows, (score[rows], spans.start[rows], spans.end[rows]))
        assert_same_moments(found, fixture["expected_refined"][query_id], rtol=1e-4)


def encode_windows(
    fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet, query_id: str, length: int
) -> tuple[ClipWindows, Context]:
    windows = windows_of(fixture, arrays, query_id)
    videos = [proposal["video_id"] for proposal in fixture["proposals"][query_id]]
    mask = (torch.arange(length) < torch.from_numpy(windows.clips)[:, None]).float()
    streams = {}
    for kind in ("video", "sub"):
        clips = [arrays[f"in/clips_{kind}/{video}"].numpy() for video in videos]
        streams[kind] = torch.zeros(len(videos), length, clips[0].shape[1])
        for i, features in enumerate(clips):
            cut = features[windows.first[i] : windows.stop[i]]
            pooled = normalise_rows(pool_clips(cut, fixture["decoding"]["padded_length"]))
            streams[kind][i, : len(pooled)] = torch.from_numpy(pooled)
    return windows, model.encode_context(streams["video"], mask, streams["sub"])


@torch.inference_mode()
def test_refinement_from_raw_features(
    fixture: dict[str, Any], arrays: dict[str, Tensor], model: ReLoCLNet
) -> None:
    first = 0
    for query_id, expected in fixture["expected_refined"].items():
        length = fixture["decoding"]["padded_length"]
        windows, context = encode_windows(fixture, arrays, model, query_id, length)
        tokens = normalise_rows(arrays[f"in/query/{query_id}"].numpy())[: model.config.max_tokens]
        query, query_mask = torch.from_numpy(tokens)[None], torch.ones(1, len(tokens))
        answer = model.refine(query, query_mask, context)
        assert_same_moments(refined(fixture, query_id, windows, answer), expected, rtol=5e-3)

        rows = slice(first, first := first + len(expected))
        queries = model.encode_query(query, query_mask)
        torch.testing.assert_close(
            model.pair_scores(queries, context),
            arrays["out/prop_score"][rows],
            **fixture["tolerance"]["valid_positions_forward"],
        )
        for name, computed in zip(("start", "end"), model.span_logits(queries, context), strict=True):
            stored = arrays[f"out/prop_{name}_logit"][rows]
            assert_near(computed * context.mask, stored * context.mask, context.mask, fixture["tolerance"])
