"""Model folders of earlier formats: they are read, never rewritten.

In format 1 settings and weights had other names. In formats 1 and 2 clips without a subtitle took part in the
stream of subtitles; models of that time go on doing so.

Libraries keep copies of model folders and know them by a hash of their files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RENAMED", "current_settings", "current_weights"]

_SPR = {"dim": "hidden_size", "mlp_ratio": "feed_forward_size", "positions": "max_clips"}
_SPANS = {"shortest": "shortest_span", "longest": "longest_span"}

RENAMED: dict[str, dict[str, str]] = {
    "spr-stage1": _SPR,
    "spr-clip": _SPR,
    "reloclnet": {"longest_video": "max_clips", "longest_query": "max_tokens", "pairwise": "ranking_loss"},
    "xml": _SPANS,
    "conquer": {**_SPANS, "moment_weight": "span_weight"},
    "prem": {
        **_SPANS,
        "max_words": "max_tokens",
        "intermediate_size": "feed_forward_size",
        "videos": "top_videos",
        "moments": "top_moments",
    },
    "reel": {"max_query_tokens": "max_tokens", "longest": "longest_span"},
}
"""Settings that bear another name since format 2: of each architecture, the old name and the new one."""

_CONVERTED: dict[tuple[str, str], Callable[[Mapping[str, Any]], Any]] = {
    ("spr-stage1", "mlp_ratio"): lambda old: old["mlp_ratio"] * old["dim"],
    ("spr-clip", "mlp_ratio"): lambda old: old["mlp_ratio"] * old["dim"],
    ("prem", "shortest"): lambda old: old["shortest"] - 1,  # was a number of clips, is a distance
}
"""Of these also the value changed; it follows from the old settings."""

_WEIGHTS: dict[str, tuple[tuple[str, str], ...]] = {
    "prem": (
        (r"words\.project\.0\.", "query_encoder.projection.LayerNorm."),
        (r"words\.project\.2\.", "query_encoder.projection.net.1."),
        (r"videos\.project\.(\d)\.0\.", r"video_encoder.projections.\1.LayerNorm."),
        (r"videos\.project\.(\d)\.2\.", r"video_encoder.projections.\1.net.1."),
        (r"positions\.weight$", "positions.position_embeddings.weight"),
        (r"pooling\.likelihood\.", "pooling."),
        (r"words\.", "query_encoder."),
        (r"videos\.", "video_encoder."),
    ),
}
"""Weights that bear another name since format 2: patterns and replacements, one after the other."""


_HEARD_SILENCE = ("xml", "reloclnet", "conquer", "prem")
"""Architectures whose models of formats 1 and 2 learned with silent clips (``mask_silent=False``)."""


def current_settings(architecture: str, config: Mapping[str, Any], written_in: int) -> dict[str, Any]:
    """Settings of an earlier format under today's names, and what they meant then.

    Args:
        architecture: of the model.
        config: as the folder has them.
        written_in: the folder's format.

    Raises:
        KeyError, TypeError: a setting is missing or of a wrong type.
    """
    meant = {"mask_silent": False} if architecture in _HEARD_SILENCE else {}
    if written_in > 1:
        return meant | dict(config)
    names = RENAMED.get(architecture, {})
    return meant | {
        names.get(name, name): _CONVERTED.get((architecture, name), itemgetter(name))(config)
        for name in config
    }


def current_weights(architecture: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of format 1 under today's names."""
    renamed = {}
    for name, tensor in state.items():
        for pattern, instead in _WEIGHTS.get(architecture, ()):
            name = re.sub(pattern, instead, name)
        renamed[name] = tensor
    return renamed
