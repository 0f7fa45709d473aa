"""Losses that several papers share.

Every loss here takes a matrix of scores between the queries (rows) and the videos, windows or segments
(columns) of a batch, together with a mask of the pairs that belong together.

The ranking loss in the batch is that of XML (Lei et al., ECCV 2020) and of ReLoCLNet (Zhang et al., SIGIR 2021);
what belongs together is left out of the negatives as TVR-Ranking, appendix C, has it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from moviola.errors import InvalidValue

__all__ = [
    "PAIRWISE_LOSSES",
    "draw_ranks",
    "hinge",
    "in_batch_ranking_loss",
    "log_sum_exp_hinge",
    "take_ranked",
]


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
"""What makes a loss of a positive and a negative score, by name."""


def draw_ranks(eligible: Tensor, *, pool: int | None, generator: torch.Generator | None) -> Tensor:
    """Draws the rank of one negative a row, uniformly among the ``pool`` eligible columns that score highest.

    Args:
        eligible: (B, N) bool, which columns may be drawn.
        pool: how many of the hardest to draw from; None means all eligible ones. 1 always takes the hardest.
        generator: source of randomness; None uses PyTorch's own.

    Returns:
        (B,) int64 ranks among the eligible columns of a row, 0 for the hardest; 0 too where none is eligible.

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
        pool: draw from that many hardest negatives; None draws from all.
        generator: source of randomness; None uses PyTorch's own.
        ranks: instead of drawing, the ranks of the negative videos and of the negative queries, (B,) int64
            each, 0 for the hardest.
        pairwise: a key of :data:`PAIRWISE_LOSSES`.

    Returns:
        The two terms, (context negatives, query negatives), each a mean over the B pairs; a pair without any
        negative adds 0.
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
