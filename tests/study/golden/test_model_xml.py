"""XML equal to the reference: forward, losses, gradients and decoding (golden ``model_xml``)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import PairBatch, Ranked
from moviola.study.models.layers import MASKED
from moviola.study.models.spans import corpus_spans, top_scores
from moviola.study.models.xml import XML, XMLConfig, with_endpoints


@dataclass(frozen=True)
class Case:
    """The golden file, the model that it describes, and the model's forward pass."""

    facts: dict[str, Any]
    arrays: dict[str, Tensor]
    model: XML

    def inputs(self, prefix: str = "") -> list[Tensor]:
        names = ("video_feat", "video_mask", "sub_feat", "query_feat", "query_mask")
        return [self.arrays[f"in/{prefix}{name}"] for name in names]

    def batch(self) -> PairBatch:
        visual, mask, subtitles, query, query_mask = self.inputs("train_")
        pairs = len(query)
        return PairBatch(
            query, query_mask, visual, mask, subtitles, torch.arange(pairs),
            self.arrays["in/train_st_ed_indices"].long(), torch.ones(pairs), torch.eye(pairs).bool(),
        )  # fmt: skip


@pytest.fixture(scope="module")
def case(golden: Path) -> Case:
    facts: dict[str, Any] = json.loads((golden / "model_xml.json").read_text())
    with np.load(golden / "model_xml.npz", allow_pickle=False) as stored:
        arrays = {name: torch.from_numpy(stored[name]) for name in stored.files}
    given, decoding = facts["config"], facts["decoding"]
    config = XMLConfig(
        visual_size=given["visual_input_size"],
        subtitle_size=given["sub_input_size"],
        query_size=given["query_input_size"],
        hidden_size=given["hidden_size"],
        heads=given["n_heads"],
        dropout=given["drop"],
        max_clips=given["max_ctx_l"],
        max_tokens=given["max_desc_l"],
        kernel=given["conv_kernel_size"],
        ranking_loss=given["ranking_loss_type"],
        margin=given["margin"],
        context_weight=given["lw_neg_ctx"],
        query_weight=given["lw_neg_q"],
        span_weight=given["lw_st_ed"],
        positive_mask=False,
        alpha=decoding["q2c_alpha"],
        top_videos=decoding["top_videos"],
        top_moments=decoding["top_moments"],
        shortest_span=decoding["min_pred_l"],
        longest_span=decoding["max_pred_l"],
        clip_seconds=decoding["clip_length"],
        release_end=True,
        reference_padding=True,
        mask_silent=False,
    )
    model = XML(config).eval()
    model.load_state_dict({name: arrays[f"state/{name}"] for name in facts["state"]})
    return Case(facts, arrays, model)


def close(case: Case, found: Tensor, name: str, tolerance: str, where: Tensor | None = None) -> None:
    expected = case.arrays[f"out/{name}"]
    where = torch.ones_like(expected, dtype=torch.bool) if where is None else where
    torch.testing.assert_close(found[where], expected[where], **case.facts["tolerance"][tolerance])


def test_the_state_dict_is_the_release_s(case: Case) -> None:
    shapes = {name: list(tensor.shape) for name, tensor in case.model.state_dict().items()}
    assert shapes == case.facts["state"]
    assert sum(p.numel() for p in case.model.parameters()) == case.facts["number_of_parameters"]


def test_forward_values(case: Case) -> None:
    visual, mask, subtitles, query, query_mask = case.inputs()
    with torch.inference_mode():
        context = case.model.encode_context(visual, mask, subtitles)
        queries = case.model.encode_query(query, query_mask)
        scores = case.model.video_scores(queries, context)
        logits = case.model.boundary_logits(queries, context)
    for number, stream in enumerate(("video", "sub")):
        close(case, queries.retrieval[:, number], f"{stream}_query", "valid_positions_forward")
        located = context.localisation.chunk(2, dim=-1)
        for part, features in (("1", context.retrieval[:, number]), ("2", located[number])):
            name, valid = f"{stream}_context_{part}", mask.bool()
            close(case, features, name, "valid_positions_forward", valid)
            close(case, features, name, "padded_rows_and_last_two_valid_clips", ~valid)
    close(case, scores, "query_video_score", "valid_positions_forward")
    # The convolution lets the padding reach the last half of its width of the valid clips.
    reach = case.facts["config"]["conv_kernel_size"] // 2
    clear = torch.nn.functional.pad(mask, (0, reach), value=0.0)[:, reach:].bool()
    clear |= mask.bool().all(dim=1, keepdim=True)
    for name, found in zip(("start_logit", "end_logit"), logits, strict=True):
        for where, tolerance in (
            (clear & mask.bool(), "valid_positions_forward"),
            (~clear & mask.bool(), "padded_rows_and_last_two_valid_clips"),
        ):
            close(case, found, name, tolerance, where.expand_as(found))
        assert (found[~mask.bool().expand_as(found)] < -1e9).all()


def test_losses(case: Case) -> None:
    batch, pool = case.batch(), case.facts["config"]["hard_pool_size"]
    terms = case.model.loss(batch, hard_pool=pool)
    close(case, torch.stack(list(terms.values())).sum(), "loss", "loss")
    for name, term in (("loss_st_ed", "span"), ("loss_neg_ctx", "context"), ("loss_neg_q", "query")):
        close(case, terms[term], name, "loss")
    smooth = XML(replace(case.model.config, ranking_loss="lse"))
    smooth.load_state_dict(case.model.state_dict())
    close(case, torch.stack(list(smooth.loss(batch, hard_pool=pool).values())).sum(), "loss_lse", "loss")
    with torch.inference_mode():
        context = case.model.encode_context(batch.visual, batch.mask, batch.subtitles)
        queries = case.model.encode_query(batch.query, batch.query_mask)
        scores = case.model.video_scores(queries, context)
    close(case, scores, "train_query_video_score", "valid_positions_forward")


def test_gradients(case: Case) -> None:
    case.model.zero_grad()
    terms = case.model.loss(case.batch(), hard_pool=case.facts["config"]["hard_pool_size"])
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    stored = [name for name in case.arrays if name.startswith("grad/")]
    assert stored
    for name in stored:
        expected, found = case.arrays[name], case.model.get_parameter(name.removeprefix("grad/")).grad
        assert found is not None
        assert (found - expected).abs().max() <= 1e-3 * expected.abs().max(), name


def test_decoding_the_stored_scores_is_exact(case: Case) -> None:
    config, arrays = case.model.config, case.arrays
    best, rows = top_scores(arrays["out/query_video_score"], config.top_videos)
    assert torch.equal(rows, arrays["out/ranked_video"].long())
    torch.testing.assert_close(
        (config.alpha * best).exp(), arrays["out/ranked_video_score"], rtol=1e-4, atol=0
    )
    own = arrays["in/query_video"].long()[:, None]
    for kind, videos, weight in (
        ("corpus", rows, (config.alpha * best).exp()),
        ("single", own, torch.ones(own.shape)),
    ):
        each = torch.arange(len(own))[:, None]
        start, end = (arrays[f"out/{side}_logit"][each, videos].softmax(-1) for side in ("start", "end"))
        place, spans = corpus_spans(
            weight,
            start,
            end,
            shortest=config.shortest_span,
            longest=config.longest_span,
            k=config.top_moments,
        )
        assert torch.equal(videos.gather(1, place), arrays[f"out/{kind}_video"].long())
        seconds = torch.stack([spans.start, spans.end + 1], dim=-1) * config.clip_seconds
        assert torch.equal(seconds, arrays[f"out/{kind}_seconds"])
        torch.testing.assert_close(spans.score, arrays[f"out/{kind}_score"], rtol=1e-4, atol=0)


def moments(video: Tensor, seconds: Tensor, score: Tensor) -> list[dict[tuple[int, float, float], float]]:
    return [
        {(int(v), *map(float, t)): float(s) for v, t, s in zip(*row, strict=True)}
        for row in zip(video, seconds, score, strict=True)
    ]


def test_ranking_from_raw_features(case: Case) -> None:
    visual, mask, subtitles, query, query_mask = case.inputs()
    own = case.arrays["in/query_video"].long()
    with torch.inference_mode():
        context = case.model.encode_context(visual, mask, subtitles)
        answers: dict[str, Ranked] = {
            "corpus": case.model.rank(query, query_mask, context),
            "single": case.model.rank_in(
                case.model.encode_query(query, query_mask), context, own[:, None], torch.ones(len(own), 1)
            ),
        }
        rows, scores = case.model.rank_videos(query, query_mask, context)
    assert torch.equal(rows, case.arrays["out/ranked_video"].long())
    torch.testing.assert_close(scores, case.arrays["out/ranked_video_score"], rtol=2e-3, atol=0)
    for kind, found in answers.items():
        expected = case.arrays[f"out/{kind}_score"]
        torch.testing.assert_close(found.score, expected, rtol=2e-3, atol=0)
        # Neighbours may change places within the tolerance, and the last ones drop out.
        seconds = torch.stack([found.start, found.end], dim=-1)
        wanted = moments(case.arrays[f"out/{kind}_video"], case.arrays[f"out/{kind}_seconds"], expected)
        for mine, theirs in zip(moments(found.video, seconds, found.score), wanted, strict=True):
            last = min(theirs.values())
            for moment, score in theirs.items():
                if score > last * 1.004:
                    assert mine[moment] == pytest.approx(score, rel=2e-3)


def test_labels_and_endpoints_are_the_release_s(case: Case) -> None:
    _, mask, *_ = case.inputs("train_")
    times = case.arrays["in/train_timestamp"].numpy().astype(np.float64)
    labels = LABELS[case.model.config.labels].labels(
        times[:, 0], times[:, 1], mask.sum(dim=1).long().numpy(), case.model.config.clip_seconds
    )
    assert (labels == case.arrays["in/train_st_ed_indices"].numpy()).all()
    for name in ("in/video_feat", "in/sub_feat"):
        features, mask = case.arrays[name], case.arrays["in/video_mask"]
        torch.testing.assert_close(with_endpoints(features[..., :-2], mask), features, rtol=0, atol=1e-3)


def test_padded_clips_are_masked_as_the_reference_masks_them(case: Case) -> None:
    hidden = ~case.arrays["in/video_mask"].bool()
    assert (case.arrays["out/start_logit"][:, hidden] <= MASKED * 0.9).all()
