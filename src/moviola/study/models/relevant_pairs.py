"""Losses with potentially relevant pairs: a query and a moment whose own caption resembles it (paper 003).

Maeoki, Mukuta and Harada, "Video Moment Retrieval with Text Query Considering Many-to-Many Correspondence
Using Potentially Relevant Pair", section 4.2. Everything here is a pure function of one batch of B pairs:

- scores R (B, B) float32: query i (row) with the video, or the moment, of pair j (column);
- relevance f (B, B) bool: whether (i, j) is potentially relevant; never on the diagonal;
- confidence C (B, B) float32 in [0, 1]: how strongly, read where f is set;
- negatives (B, B) bool: which (i, j) may be drawn as negatives.

Which captions resemble each other is decided outside of the models, by the data set's room.

Where the text leaves something open: the number of pairs in Eq. 11, 12 and 17 is that of ordered pairs
(i, j), i != j, with f set, and a term without any pair is 0; the negative of Eq. 11 is drawn again for each
pair; all weights but that of localisation are 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from moviola.study.models.checks import require_known
from moviola.study.models.losses import (
    draw_ranks,
    hinge,
    in_batch_ranking_loss,
    span_cross_entropy,
    take_ranked,
)

__all__ = [
    "BOUNDARY_SCORES", "RelevantPairsConfig", "moment_scores", "positive_over_relevant",
    "relevant_over_negative", "relevant_pair_losses", "relevant_span_loss",
]  # fmt: skip


BOUNDARY_SCORES: dict[str, Callable[[Tensor], Tensor]] = {
    "literal": lambda logits: logits.clamp(min=1e-6).log(),
    "softplus": lambda logits: F.softplus(logits).log1p(),
}
"""Contribution of a boundary's logit to the score of a moment (Eq. 14).

``literal`` is log(max(logit, 1e-6)), as printed. A logit below the floor then adds -13.8 and has no gradient,
and Eq. 11 and 12 multiply a negative score with C, so that a pair of *low* confidence is the better one.
``softplus`` is log(1 + softplus(logit)): never negative, rising, with a gradient everywhere, and the same as
the printed form, up to a vanishing rest, for large logits.
"""


@dataclass(frozen=True)
class RelevantPairsConfig:
    """Terms of the paper added to those of XML, with their weights.

    Attributes:
        pairs: +PR, the terms with relevant pairs, for all that is on; they and pairs of one video are then
            no negatives.
        segments: +SL, ranking of moments besides that of videos.
        confidence: weigh pairs by C; off is the ablation C = 1.
        boundary_score: a name in :data:`BOUNDARY_SCORES`.
        margin: the ranking losses' margin.
        relevant_over_negative, positive_over_relevant: weights of Eq. 11 and 12, for videos.
        relevant_span: weight of Eq. 17, beside that of localisation as a whole.
        segment: weight of all ranking of moments, lambda of L_vcmr in Eq. 9, of which the paper says nothing.
            A moment's score has alpha times its video's in it, so 1 / alpha makes the two as strong.
        segment_relevant_over_negative, segment_positive_over_relevant: weights of Eq. 11 and 12, for moments.
    """

    pairs: bool = True
    segments: bool = False
    confidence: bool = True
    boundary_score: str = "softplus"
    margin: float = 0.1
    relevant_over_negative: float = 1.0
    positive_over_relevant: float = 1.0
    relevant_span: float = 1.0
    segment: float = 1.0
    segment_relevant_over_negative: float = 1.0
    segment_positive_over_relevant: float = 1.0

    def __post_init__(self) -> None:
        require_known("boundary_score", self.boundary_score, BOUNDARY_SCORES)


def relevant_over_negative(
    scores: Tensor,
    relevance: Tensor,
    confidence: Tensor,
    negatives: Tensor,
    *,
    margin: float = 0.1,
    pool: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Eq. 11: C R of each relevant pair above R of a negative of its query, and of its moment, by a margin.

    Args:
        scores, relevance, confidence, negatives: see the module.
        margin: by how much.
        pool, generator: of the negatives, see :func:`~moviola.study.models.losses.draw_ranks`.

    Returns:
        Scalar, >= 0; a pair without any negative adds 0.
    """
    loss = scores.new_zeros(())
    for table, f, weight, allowed in (
        (scores, relevance, confidence, negatives),
        (scores.T, relevance.T, confidence.T, negatives.T),
    ):
        row, column = f.nonzero(as_tuple=True)
        eligible = allowed[row]
        rank = draw_ranks(eligible, pool=pool, generator=generator)
        negative = take_ranked(table[row], eligible, rank)
        missed = hinge(weight[row, column] * table[row, column], negative, margin)
        loss = loss + (missed * eligible.any(dim=1)).sum()
    return loss / relevance.sum().clamp(min=1)


def positive_over_relevant(scores: Tensor, relevance: Tensor, confidence: Tensor) -> Tensor:
    """Eq. 12: R of each relevant pair at most C R of its query's and its moment's own pairs; scalar >= 0."""
    own = scores.diagonal()
    missed = (scores - confidence * own[:, None]).clamp(min=0) + (scores - confidence * own).clamp(min=0)
    return (missed * relevance).sum() / relevance.sum().clamp(min=1)


def relevant_span_loss(
    start: Tensor, end: Tensor, video: Tensor, labels: Tensor, *, relevance: Tensor, confidence: Tensor
) -> Tensor:
    """Eq. 17: cross entropy of a query's start and end in the moments relevant to it, weighted by C; scalar.

    Args:
        start, end: (B, V, L) float32, logits of query i in each video, hugely negative where padded.
        video: (B,) int64, the row of each pair's video.
        labels: (B, 2) int64, clips of start and end.
        relevance, confidence: see the module.
    """
    row, column = relevance.nonzero(as_tuple=True)
    missed = span_cross_entropy(start[row, video[column]], end[row, video[column]], labels[column])
    return (confidence[row, column] * missed).sum() / max(len(row), 1)


def moment_scores(
    video_scores: Tensor,
    start: Tensor,
    end: Tensor,
    video: Tensor,
    labels: Tensor,
    *,
    alpha: float,
    boundary_score: str = "softplus",
) -> Tensor:
    """Eq. 14: (B, B) score of query i with the moment of pair j, boundaries and ``alpha`` times the video.

    Args:
        video_scores: (B, B) float32, query i with the video of pair j.
        start, end, video, labels: as in :func:`relevant_span_loss`.
        alpha: weight of the video's score.
        boundary_score: a name in :data:`BOUNDARY_SCORES`.
    """
    score = BOUNDARY_SCORES[boundary_score]
    at_start, at_end = start[:, video, labels[:, 0]], end[:, video, labels[:, 1]]
    return score(at_start) + score(at_end) + alpha * video_scores


def relevant_pair_losses(
    config: RelevantPairsConfig,
    *,
    video_scores: Tensor,
    start: Tensor,
    end: Tensor,
    video: Tensor,
    labels: Tensor,
    negatives: Tensor,
    relevance: Tensor,
    confidence: Tensor,
    alpha: float,
    span_weight: float,
    pool: int | None = None,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    """All terms that +PR and +SL add to XML's own, already weighted (Eq. 9, 13, 15 and 18).

    Args:
        video_scores, start, end, video, labels: as in :func:`moment_scores`.
        negatives, relevance, confidence: see the module; the latter two are read under ``config.pairs``.
        alpha: weight of the video's score in a moment's.
        span_weight: weight of localisation, lambda of L_tl in Eq. 9.
        pool, generator: as in :func:`relevant_over_negative`.
    """
    terms: dict[str, Tensor] = {}

    def rank_relevant(scores: Tensor, prefix: str, above: float, below: float) -> None:
        terms[f"{prefix}relevant_over_negative"] = above * relevant_over_negative(
            scores, relevance, confidence, negatives, margin=config.margin, pool=pool, generator=generator
        )
        terms[f"{prefix}positive_over_relevant"] = below * positive_over_relevant(
            scores, relevance, confidence
        )

    if config.pairs:
        rank_relevant(video_scores, "", config.relevant_over_negative, config.positive_over_relevant)
        terms["relevant_span"] = (span_weight * config.relevant_span) * relevant_span_loss(
            start, end, video, labels, relevance=relevance, confidence=confidence
        )
    if config.segments:
        scores = moment_scores(
            video_scores, start, end, video, labels, alpha=alpha, boundary_score=config.boundary_score
        )
        context, query = in_batch_ranking_loss(
            scores, ~negatives, margin=config.margin, pool=pool, generator=generator
        )
        terms["segment_context"], terms["segment_query"] = config.segment * context, config.segment * query
        if config.pairs:
            rank_relevant(
                scores,
                "segment_",
                config.segment * config.segment_relevant_over_negative,
                config.segment * config.segment_positive_over_relevant,
            )
    return terms
