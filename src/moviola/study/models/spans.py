"""The best spans of two curves, decoded from a model's logits; vectorised over windows, queries and videos.

A span is a clip of start and a clip of end (:mod:`moviola.retrieval.saved.clip_windows`). Decoding looks only
at the band of spans that are allowed, ``shortest <= end - start < longest`` in clips: a video of L clips has
L x (longest - shortest) of them, in a strided view, never an L x L map. Of two equal cells the one with the
smaller start, then the smaller end, comes first.

References: decoding as in XML (Lei et al., ECCV 2020); the rest as the releases do it (see each function).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.batches import Ranked

__all__ = [
    "PRODUCT", "SUM", "Combination", "Spans", "best_spans", "corpus_spans", "ranked_spans", "sliding",
    "span_band", "top_scores", "window_spans",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Combination:
    """Score of a span from the values of two curves, by a function of two broadcastable tensors.

    Curves are continued by ``padding`` where there is no clip; spans that score no more than ``floor`` touch
    the padding and are none.
    """

    function: Callable[[Tensor, Tensor], Tensor]
    padding: float
    floor: float


PRODUCT = Combination(torch.mul, padding=0.0, floor=0.0)
"""For probabilities."""

SUM = Combination(torch.add, padding=-1e10, floor=-1e9)
"""For logits and logarithms."""


@dataclass(frozen=True)
class Spans:
    """Decoded spans, best first in the last dimension; where there is no further one -1, and -inf as score.

    Attributes:
        start: (..., K) int64, clip.
        end: (..., K) int64, clip, in the convention of the labels.
        score: (..., K) float32, falling.
    """

    start: Tensor
    end: Tensor
    score: Tensor


def top_scores(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last dimension, falling, and their places; of equal scores the first comes first.

    Scores are (..., N) float32 without NaN, results (..., k) float32 and int64, of all N where N < k.
    """
    # One integer orders by score, then by place: a float32's bits as an ordered integer, then the place.
    bits = (scores.float() + 0.0).contiguous().view(torch.int32).long()
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys = (ordered << 32) - torch.arange(scores.shape[-1], device=scores.device)
    places = keys.topk(min(k, scores.shape[-1]), dim=-1).indices
    return scores.gather(-1, places), places


def span_band(
    start: Tensor, end: Tensor, *, shortest: int, longest: int, combine: Combination = PRODUCT
) -> Tensor:
    """Scores of all allowed spans: (..., L) and (..., L) to (..., L, longest - shortest).

    Cell (m, w) is the span from clip m to clip n = m + shortest + w; where n is no clip, the curve of ends is
    continued with ``combine.padding``.

    Args:
        start, end: (..., L) float32, probabilities (or logits) of start and end in each clip.
        shortest: smallest ``end - start`` in clips that is allowed.
        longest: the first ``end - start`` that is no longer allowed.
        combine: :data:`PRODUCT` for probabilities, 0 at padding; :data:`SUM` for logits, -1e10 at padding.

    Raises:
        InvalidValue: ``shortest`` is negative or not below ``longest``.
    """
    if not 0 <= shortest < longest:
        raise InvalidValue(f"spans of {shortest} <= end - start < {longest} clips: no such span exists")
    ends = F.pad(end, (0, longest - 1), value=combine.padding)[..., shortest:]
    return combine.function(start[..., None], sliding(ends, longest - shortest))


def sliding(curve: Tensor, width: int) -> Tensor:
    """All stretches of a curve (..., n): (..., n - width + 1, width), a view where gradients may flow."""
    if not torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return curve.unfold(-1, width, 1)
    # Compiled graphs know no strided views of this kind.
    first = torch.arange(curve.shape[-1] - width + 1, device=curve.device)
    return curve[..., first[:, None] + torch.arange(width, device=curve.device)]


def best_spans(
    start: Tensor, end: Tensor, *, shortest: int, longest: int, combine: Combination = PRODUCT
) -> Spans:
    """The best span of every pair of curves.

    Args are those of :func:`span_band`. Returns :class:`Spans` (...), without dimension K.
    """
    band = span_band(start, end, shortest=shortest, longest=longest, combine=combine)
    cell = band.flatten(-2).argmax(dim=-1, keepdim=True)  # the first among equals
    score, cell = band.flatten(-2).gather(-1, cell).squeeze(-1), cell.squeeze(-1)
    return _spans(score, cell // band.shape[-1], cell % band.shape[-1] + shortest, combine)


def window_spans(start: Tensor, end: Tensor, mask: Tensor, *, shortest: int, longest: int) -> Spans:
    """The best span of each window, from logits; a window too short for any is returned whole.

    Args:
        start, end: (N, L) float32, logits, hugely negative where padded.
        mask: (N, L) float32, 1 for a clip; each window has one.
        shortest, longest: see :func:`span_band`.

    Returns:
        :class:`Spans` (N,); the score is log p(start) + log p(end), which does not underflow.
    """
    start, end = start.log_softmax(dim=-1), end.log_softmax(dim=-1)
    spans = best_spans(start, end, shortest=shortest, longest=longest, combine=SUM)
    last = mask.sum(dim=-1).long() - 1
    whole = last < shortest
    whole_score = start[:, 0] + end.gather(1, last[:, None]).squeeze(1)
    return Spans(
        spans.start.masked_fill(whole, 0),
        torch.where(whole, last, spans.end),
        torch.where(whole, whole_score, spans.score),
    )


def corpus_spans(
    video_score: Tensor,
    start: Tensor,
    end: Tensor,
    *,
    shortest: int,
    longest: int,
    k: int,
    combine: Combination = PRODUCT,
) -> tuple[Tensor, Spans]:
    """The k best spans of each query over its T candidate videos.

    A span scores the combination of its video's score, its start and its end; the video score of XML and
    ReLoCLNet is exp(alpha s).

    Args:
        video_score: (Q, T) float32.
        start, end: (Q, T, L) float32; as ``shortest``, ``longest`` and ``combine``, see :func:`span_band`.
        k: number of spans per query.

    Returns:
        (Q, K) int64, the place in T of each span's video, -1 where there is no further span; and
        :class:`Spans` (Q, K), K = k unless there are fewer cells.
    """
    band = span_band(start, end, shortest=shortest, longest=longest, combine=combine)
    length, width = band.shape[-2:]
    scores = combine.function(video_score[..., None, None], band)
    score, cell = top_scores(scores.flatten(-3), k)
    spans = _spans(score, cell // width % length, cell % width + shortest, combine)
    return (cell // (length * width)).masked_fill(spans.start < 0, -1), spans


def ranked_spans(video: Tensor, spans: Spans, stop: Tensor, clip_seconds: float) -> Ranked:
    """Spans (Q, K) of :func:`corpus_spans` as moments; the time of a missing one is 0 to 0.

    ``video`` is (Q, K) int64, -1 where there is no further span; ``stop`` (Q, K) int64, the clip at whose
    start each span is over.
    """
    start, end = ((clip * clip_seconds).masked_fill(video < 0, 0) for clip in (spans.start, stop))
    return Ranked(video, start, end, spans.score)


def _spans(score: Tensor, start: Tensor, extent: Tensor, combine: Combination) -> Spans:
    none = score <= combine.floor
    return Spans(
        start.masked_fill(none, -1),
        (start + extent).masked_fill(none, -1),
        score.masked_fill(none, -torch.inf),
    )
