"""What both tests of ReLoCLNet against a release share: its settings, weights, batch and tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import PairBatch
from moviola.study.models.reloclnet import ReLoCLNet, ReLoCLNetConfig


def published(fixture: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of our model by those of a release."""
    config, decoding = fixture["config"], fixture["decoding"]
    return {
        "visual_size": config["visual_input_size"], "subtitle_size": config["sub_input_size"],
        "query_size": config["query_input_size"], "hidden_size": config["hidden_size"],
        "heads": config["n_heads"], "dropout": config["drop"], "max_clips": config["max_ctx_l"],
        "max_tokens": config["max_desc_l"], "frame_weight": config["lw_fcl"],
        "video_weight": config["lw_vcl"], "span_weight": config["lw_st_ed"],
        "context_weight": config["lw_neg_ctx"], "query_weight": config["lw_neg_q"],
        "margin": config["margin"], "ranking_loss": config["ranking_loss_type"],
        "clip_seconds": decoding["clip_length"], "shortest_span": decoding["min_pred_l"],
        "longest_span": decoding["max_pred_l"], "alpha": decoding["q2c_alpha"],
        "reference_padding": True, "mask_silent": False,
    }  # fmt: skip


def load(config: ReLoCLNetConfig, arrays: Mapping[str, Tensor]) -> ReLoCLNet:
    """A model with the stored weights."""
    model = ReLoCLNet(config)
    model.load_state_dict(
        {name.removeprefix("state/"): value for name, value in arrays.items() if name.startswith("state/")}
    )
    return model.eval()


def training_batch(arrays: Mapping[str, Tensor]) -> PairBatch:
    """The stored batch; without stored positives each pair has its own alone."""
    pairs = len(arrays["in/train_query_feat"])
    return PairBatch(
        query=arrays["in/train_query_feat"],
        query_mask=arrays["in/train_query_mask"],
        visual=arrays["in/train_video_feat"],
        mask=arrays["in/train_video_mask"],
        subtitles=arrays["in/train_sub_feat"],
        video=torch.arange(pairs),
        labels=arrays["in/train_st_ed_indices"].long(),
        similarity=arrays["in/train_similarity"],
        positives=arrays.get("in/train_positive_mask", torch.eye(pairs)).bool(),
    )


def assert_near(computed: Tensor, expected: Tensor, mask: Tensor, tolerance: Mapping[str, Any]) -> None:
    """Tight where the mask (..., L) is 1, but for the last two clips there, and loose elsewhere."""
    clear = mask.clone()
    last = mask.sum(dim=-1).long() - 1
    for back in (0, 1):
        clear.scatter_(-1, (last - back).clamp(min=0)[..., None], 0)
    if expected.dim() > mask.dim():
        clear = clear[..., None]
    for where, kind in (
        (clear > 0, "valid_positions_forward"),
        (clear == 0, "padded_rows_and_last_two_valid_clips"),
    ):
        chosen = where.expand(expected.shape)
        torch.testing.assert_close(computed[chosen], expected[chosen], **tolerance[kind])


def assert_gradients(
    model: ReLoCLNet, terms: Mapping[str, Tensor], arrays: Mapping[str, Tensor], prefix: str
) -> None:
    """Gradients of the sum of terms are those stored under a prefix, to a thousandth of the largest."""
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    stored = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
    assert stored
    for name, expected in stored.items():
        computed = model.get_parameter(name).grad
        assert computed is not None
        worst = (computed - expected).abs().max() / expected.abs().max()
        assert worst <= 1e-3, f"{name}: {worst}"


def assert_labels(config: ReLoCLNetConfig, arrays: Mapping[str, Tensor]) -> None:
    """First and last clips of moments are the stored ones."""
    starts, ends = arrays["in/train_timestamp"].double().numpy().round(4).T
    clips = arrays["in/train_video_mask"].sum(dim=1).long().numpy()
    labels = LABELS[config.labels].labels(starts, ends, clips, config.clip_seconds)
    np.testing.assert_array_equal(labels, arrays["in/train_st_ed_indices"].numpy())
