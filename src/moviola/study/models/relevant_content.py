"""Relevant content-enhanced contrastive learning (PREM, section 3.3): for its retriever, or for another one.

The best clip of the moment is a strong positive of the query, the best clip outside it a weak one, and both
compete with the best clips of other videos. The paper tunes HERO with these terms too (HERO* of Table 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from moviola.errors import InvalidValue
from moviola.study.models.batches import PairBatch
from moviola.study.models.checks import require_known

__all__ = ["POSITIVES", "ContentConfig", "RelevantContent", "clips_inside", "relevant_content_losses"]

POSITIVES = ("strong+weak", "strong", "video")


class ContentConfig(Protocol):
    """The options of the terms, see :class:`RelevantContent`; a model's own settings may have them."""

    @property
    def positives(self) -> Literal["strong+weak", "strong", "video"]: ...
    @property
    def weak_weight(self) -> float: ...
    @property
    def video_to_query(self) -> bool: ...
    @property
    def temperature(self) -> float: ...


@dataclass(frozen=True)
class RelevantContent:
    """Options of the terms; the defaults are the paper's.

    Attributes:
        positives: clips to learn from: the best of the moment and, weaker, the best outside it; the best of
            the moment; or the best of the whole video (table 2, "SR", "WR").
        weak_weight: lambda of equation 8.
        video_to_query: with L^q, in which queries compete for a video.
        temperature: t of equation 7, > 0.
    """

    positives: Literal["strong+weak", "strong", "video"] = "strong+weak"
    weak_weight: float = 0.5
    video_to_query: bool = True
    temperature: float = 0.01

    def __post_init__(self) -> None:
        require_known("positives", self.positives, POSITIVES)
        if self.temperature <= 0:
            raise InvalidValue(f"temperature {self.temperature}: must be above 0")


def clips_inside(labels: Tensor, mask: Tensor) -> Tensor:
    """(B, L) bool, the clips of moments (B, 2) int64, first and last inclusive, in videos with mask (B, L).

    Raises:
        InvalidValue: a moment does not lie in its video.
    """
    start, end = labels.T
    wrong = (start < 0) | (end < start) | (end >= mask.sum(1))
    if bool(wrong.any()):
        pair = int(wrong.nonzero()[0, 0])
        raise InvalidValue(
            f"pair {pair}: moment {labels[pair].tolist()} does not lie in its video of "
            f"{int(mask[pair].sum())} clips; give first and last clip, both inclusive, counted from 0"
        )
    clip = torch.arange(mask.shape[1], device=mask.device)
    return cast("Tensor", (clip >= start[:, None]) & (clip <= end[:, None]))


def relevant_content_losses(
    config: ContentConfig,
    batch: PairBatch,
    scores: Tensor,
    best_of: Callable[[Tensor], Tensor],
    own_mask: Tensor,
    *,
    positives: Tensor | None = None,
) -> dict[str, Tensor]:
    """Equations 7 and 8, and L^q.

    Args:
        batch: B pairs over V videos; labels are first and last clip, both inclusive. Negatives are the other
            videos of the batch, each once however many pairs share it, and the queries of the other pairs.
        scores: (B, V) float32, of each query with each video.
        best_of: scores (B,) of the pairs' own videos by some clips alone, (B, S, L) bool.
        own_mask: (B, S, L) bool, the clips of each stream of the pairs' own videos that take part.
        positives: (B, B) bool, what is no negative; ``batch.positives`` by default.

    Returns:
        Weighted terms, each a mean over pairs: ``strong`` (``video`` where the positive is the best of the
        whole video), ``weak``, ``query``, as configured.
    """
    positives = batch.positives if positives is None else positives
    against = scores / config.temperature
    inside = clips_inside(batch.labels, batch.mask[batch.video])[:, None]
    pair_of = F.one_hot(batch.video, len(batch.mask)).to(against.dtype)
    negative = (positives.to(against.dtype) @ pair_of) == 0  # (B, V): a video counts once

    def contrast(positive: Tensor, others: Tensor, allowed: Tensor) -> Tensor:
        """InfoNCE of one (B,) positive against the others of its row: (B,)."""
        row = torch.cat([positive[:, None], others.masked_fill(~allowed, -torch.inf)], dim=1)
        return batch.similarity * (row.logsumexp(1) - positive)

    clips = own_mask if config.positives == "video" else own_mask & inside
    positive = best_of(clips) / config.temperature
    terms = {"video" if config.positives == "video" else "strong": contrast(positive, against, negative)}
    if config.positives == "strong+weak":
        outside = own_mask & ~inside
        any_outside = outside.any(-1).any(-1)
        weak = best_of(outside) / config.temperature
        terms["weak"] = config.weak_weight * contrast(weak, against, negative) * any_outside
    if config.video_to_query:
        terms["query"] = contrast(positive, against[:, batch.video].T, ~positives.T)
    return {name: term.mean() for name, term in terms.items()}
