"""Spans of clips in PREM: the moment's own clips, spans like it, scores of all spans, and suppression."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from moviola.study.models.prem.config import PremConfig

__all__ = ["relevant_spans", "span_scores", "suppress_spans"]


def relevant_spans(
    labels: Tensor, lengths: Tensor, size: int, config: PremConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """All spans that overlap the moment by more than ``config.adversarial_iou`` (section 3.4).

    The moment [5, 8] has [4, 8], [5, 7], [6, 8], [5, 9] and itself.

    Args:
        labels: (B, 2) int64, first and last clip, both inclusive.
        lengths: (B,) int64, clips of each video; the longest has ``size`` clips.

    Returns:
        Pair, first and last clip of P spans, (P,) int64 each, ordered by pair, start and end.
    """
    first = torch.arange(size, device=labels.device)[:, None]
    last = first.T
    start, end = labels[:, 0, None, None], labels[:, 1, None, None]
    shared = (torch.minimum(last, end) - torch.maximum(first, start) + 1).clamp(min=0)
    union = (last - first + 1) + (end - start + 1) - shared
    # In double precision 7 / 10 is not above 0.7, as it must be.
    alike = (shared.double() / union.clamp(min=1) > config.adversarial_iou) & (last >= first)
    pair, begin, stop = (alike & (last < lengths[:, None, None])).nonzero(as_tuple=True)
    return pair, begin, stop


def suppress_spans(scores: Tensor, *, threshold: float, keep: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best spans of R videos together, without those too like a better one of the same video.

    Exact greedy suppression over all spans at once, one step per moment that is kept.

    Args:
        scores: (Q, R, L, W), of the span that starts at clip l and has w + 1 clips; -inf where there is none.
        threshold: an IoU above it is too like.

    Returns:
        Place among the R videos, first clip, last clip, all (Q, K) int64, and score (Q, K), falling. Where
        fewer than K are left the place is -1, the span 0..-1 and the score -inf.
    """
    count, videos, length, width = scores.shape
    first = torch.arange(length, device=scores.device).repeat_interleave(width)
    size = torch.arange(1, width + 1, device=scores.device).repeat(length)
    stop = first + size
    left = scores.flatten(2).clone()
    best = left.amax(2)
    everyone = torch.arange(count, device=scores.device)
    kept = []
    for _ in range(min(keep, videos * length * width)):
        video = best.argmax(1)
        spans = left[everyone, video]
        score, pick = spans.max(1)
        pick = pick[:, None]
        shared = (torch.minimum(stop[pick], stop) - torch.maximum(first[pick], first)).clamp(min=0)
        spans = spans.masked_fill(shared / (size[pick] + size - shared) > threshold, -torch.inf)
        spans = spans.scatter(1, pick, -torch.inf)
        left[everyone, video] = spans
        best[everyone, video] = spans.amax(1)
        kept.append((video, first[pick[:, 0]], stop[pick[:, 0]] - 1, score))
    columns = [torch.stack(column, 1) for column in zip(*kept, strict=True)]
    none, rest = columns[-1] == -torch.inf, (0, keep - columns[-1].shape[1])
    place, begin, last, score = (
        F.pad(values.masked_fill(none, missing), rest, value=missing)
        for values, missing in zip(columns, (-1, 0, -1, -torch.inf), strict=True)
    )
    return place, begin, last, score


def span_scores(start: Tensor, end: Tensor, *, shortest: int, longest: int) -> Tensor:
    """start + end of all spans: (N, L) twice to (N, L, longest), -inf unless shortest <= end - start."""
    ends = F.pad(end, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)
    scores = start[..., None] + ends
    scores[..., :shortest] = -torch.inf
    return scores
