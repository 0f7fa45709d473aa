"""Losses that several papers share.

Every loss here takes a matrix of scores between the queries (rows) and the videos, windows or segments
(columns) of a batch, together with a mask of the pairs that belong together.

References: the ranking loss is that of XML (Lei et al., ECCV 2020) and ReLoCLNet (Zhang et al., SIGIR
2021), without what belongs together among the negatives (TVR-Ranking, appendix C.1); the contrasts of frames
and of videos are ReLoCLNet's (FCL and VCL); :data:`CONTRASTIVE` is that of SPR's first stage (Eq. 1), after
MIL-NCE (Miech et al., CVPR 2020): how badly each row of logits finds its positives.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from moviola.errors import InvalidValue

__all__ = [
    "CONTRASTIVE", "PAIRWISE_LOSSES", "draw_ranks", "frame_contrast", "hinge", "in_batch_ranking_loss",
    "info_nce", "list_wise", "log_sum_exp_hinge", "mil_ce", "mil_nce", "span_cross_entropy", "take_ranked",
    "video_contrast", "weighted_mil_nce",
]  # fmt: skip


def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """max(0, margin + negative - positive), for every element."""
    return (margin + negative - positive).clamp(min=0)


def log_sum_exp_hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """log(1 + exp(negative - positive)), the smooth form of :func:`hinge` in XML's release; no margin."""
    return F.softplus(negative - positive)


PAIRWISE_LOSSES: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "hinge": hinge,
    "lse": log_sum_exp_hinge,
}
"""Losses of a positive and a negative score, by name."""


def draw_ranks(eligible: Tensor, *, pool: int | None, generator: torch.Generator | None) -> Tensor:
    """Draws the rank of one negative a row, uniformly among the ``pool`` eligible columns that score highest.

    Args:
        eligible: (B, N) bool, which columns may be drawn.
        pool: draw from that many of the hardest; None: from all. 1 always takes the hardest.
        generator: source of randomness; None uses PyTorch's own.

    Returns:
        (B,) int64 ranks among the eligible columns of a row, 0 for the hardest, and where none is eligible.

    Raises:
        InvalidValue: ``pool`` is below 1.
    """
    if pool is not None and pool < 1:
        raise InvalidValue(f"hard-negative pool of {pool}: give at least 1, or None for the whole batch")
    available = eligible.sum(dim=1)
    if pool is not None:
        available = available.clamp(max=pool)
    device = generator.device if generator is not None else eligible.device
    drawn = torch.rand(len(eligible), generator=generator, device=device).to(eligible.device)
    return (drawn * available).long().clamp(max=(available - 1).clamp(min=0))


def take_ranked(scores: Tensor, eligible: Tensor, rank: Tensor) -> Tensor:
    """The score at ``rank`` (B,) among the eligible columns of each row of ``scores`` (B, N), as (B,).

    Gradients flow into the scores taken, not into the choice.
    """
    best_first = scores.detach().masked_fill(~eligible, -torch.inf).argsort(dim=1, descending=True)
    return scores.gather(1, best_first.gather(1, rank[:, None])).squeeze(1)


def in_batch_ranking_loss(
    scores: Tensor,
    positives: Tensor,
    *,
    margin: float = 0.1,
    pool: int | None = None,
    generator: torch.Generator | None = None,
    ranks: tuple[Tensor, Tensor] | None = None,
    pairwise: str = "hinge",
) -> tuple[Tensor, Tensor]:
    """Each pair's score against one negative video of its query, and against one negative query of its video.

    Args:
        scores: (B, B) float32, query i (row) with the video of pair j (column); the diagonal holds the pairs.
        positives: (B, B) bool; marked entries, and the diagonal in any case, are no negatives.
        margin: by how much a positive has to win.
        pool, generator: see :func:`draw_ranks`.
        ranks: instead of drawing, the ranks of the negative videos and of the negative queries, (B,) int64.
        pairwise: a key of :data:`PAIRWISE_LOSSES`.

    Returns:
        Context negatives and query negatives, each a mean over the B pairs; one without any negative adds 0.
    """
    loss = PAIRWISE_LOSSES[pairwise]
    eligible = ~(positives.bool() | torch.eye(len(scores), dtype=torch.bool, device=scores.device))
    own = scores.diagonal()
    terms = []
    for direction, (table, allowed) in enumerate(((scores, eligible), (scores.T, eligible.T))):
        rank = draw_ranks(allowed, pool=pool, generator=generator) if ranks is None else ranks[direction]
        negative = take_ranked(table, allowed, rank)
        terms.append((loss(own, negative, margin) * allowed.any(dim=1)).mean())
    return terms[0], terms[1]


def frame_contrast(similarity: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Clips inside the moment against the others of their video, (B,): bounds mutual information (FCL).

    Args:
        similarity: (B, L) float32, each query with the clips of its own video, not brought to [-1, 1].
        labels: (B, 2) int64, clips of start and end.
        mask: (B, L) float32, 1 for a clip that takes part.
    """
    places = torch.arange(mask.shape[1], device=labels.device)
    inside = ((places >= labels[:, :1]) & (places <= labels[:, 1:])).float()
    outside = (1 - inside) * mask
    negative = _masked_mean(F.softplus(similarity) - math.log(2), outside)
    return negative - _masked_mean(math.log(2) - F.softplus(-similarity), inside * mask)


def span_cross_entropy(start: Tensor, end: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of start plus that of end, (B,): logits (B, L) twice and clips of both, (B, 2) int64."""
    at_start = F.cross_entropy(start, labels[:, 0], reduction="none")
    return at_start + F.cross_entropy(end, labels[:, 1], reduction="none")


def video_contrast(
    scores: Tensor,
    positives: Tensor,
    *,
    more: Tensor | None = None,
    sum_positives: bool = True,
    count_pair_twice: bool = False,
) -> Tensor:
    """-log of the positives' share among the videos of a query and the queries of its video, (B,) (VCL).

    Args:
        scores: (B, B) float32, query i (row) with the video of pair j (column).
        positives: (B, B) bool, True on the diagonal; marked entries are no negatives.
        more: (B,) float32, the score of one more negative video of each query.
        sum_positives: sum all of a query's positives in the numerator, rather than take the pair's own score.
        count_pair_twice: count the pair's own score twice in the denominator, as TVR-Ranking's release does.
            Only without ``sum_positives``.
    """
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    of_query, of_video = (positives, positives.T & ~own) if sum_positives else (own, torch.zeros_like(own))
    both = torch.cat([scores, scores.T], dim=1)
    positive = both.masked_fill(~torch.cat([of_query, of_video], dim=1), -torch.inf).logsumexp(dim=1)
    if count_pair_twice:
        of_video = own
    compared = torch.cat([of_query | ~positives, of_video | ~positives.T], dim=1)
    everything = both.masked_fill(~compared, -torch.inf)
    if more is not None:
        everything = torch.cat([everything, more[:, None]], dim=1)
    return everything.logsumexp(dim=1) - positive


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the last dimension where ``mask`` is 1; 0 where it is so nowhere."""
    return (values * mask).sum(dim=-1) / mask.sum(dim=-1).clamp(min=1)


def mil_nce(logits: Tensor, relevance: Tensor) -> Tensor:
    """-log of the softmax mass that each row gives to its positives, averaged over rows that have any.

    Logits are (Q, S), relevance (Q, S) bool or float, positive where > 0. A difference of logsumexps, as the
    logarithm of a sum of softmax values is infinite once they underflow, which cosines times 100 do at first.
    """
    return _row_mean(logits, (relevance > 0).to(logits.dtype))


def weighted_mil_nce(logits: Tensor, relevance: Tensor) -> Tensor:
    """MIL-NCE where a positive counts by its relevance over the row's largest (``relevance`` >= 0)."""
    weights = relevance.to(logits.dtype)
    return _row_mean(logits, weights / weights.amax(dim=1, keepdim=True).clamp(min=1e-12))


def mil_ce(logits: Tensor, relevance: Tensor) -> Tensor:
    """Cross entropy against relevance (>= 0) made a distribution in each row, averaged over the rows."""
    targets = F.normalize(relevance.to(logits.dtype), p=1.0, dim=1)
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()


def info_nce(logits: Tensor, relevance: Tensor) -> Tensor:
    """Cross entropy against the diagonal of square logits (B, B): every other pair counts as a negative.

    Raises:
        InvalidValue: the logits are not square, or a pair of the diagonal is not relevant.
    """
    rows, columns = logits.shape
    if rows != columns or not bool((relevance.diagonal() > 0).all()):
        raise InvalidValue(
            f"info-nce: {rows} queries and {columns} segments must be pairs, in the same order; "
            "give such a batch or use mil-nce"
        )
    return -logits.log_softmax(dim=1).diagonal().mean()


CONTRASTIVE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mil-nce": mil_nce,
    "weighted-mil-nce": weighted_mil_nce,
    "mil-ce": mil_ce,
    "info-nce": info_nce,
}


def _row_mean(logits: Tensor, weights: Tensor) -> Tensor:
    """Mean over the rows with any weight of logsumexp(logits) - logsumexp(logits + log weights)."""
    any_weight = weights.amax(dim=1) > 0
    logits, weights = logits[any_weight], weights[any_weight]
    missed = logits.logsumexp(dim=1) - (logits + weights.log()).logsumexp(dim=1)
    return missed.sum() / any_weight.sum().clamp(min=1)


def list_wise(scores: Tensor, gains: Tensor) -> Tensor:
    """Cross-entropy of the softmax of each row of scores (Q, N) with its gains (Q, N), as in ListNet.

    Rows without a gain are left out. Source: Cao et al., ICML 2007.
    """
    total = gains.sum(dim=1)
    answered = total > 0
    target = gains[answered] / total[answered, None]
    missed = -(target * scores[answered].log_softmax(dim=1)).sum(dim=1)
    return missed.sum() / max(1, len(missed))
