"""Refiners of windows (SPR, section 3.3): decoding and losses that SPR_CLIP and SPR_ReLo share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from moviola.study.models.batches import Tensors
from moviola.study.models.losses import hinge
from moviola.study.models.spans import window_spans

__all__ = ["WindowModel", "Windows"]


@dataclass(frozen=True)
class Windows(Tensors):
    """One more window for each pair of a batch, with the shapes of a batch of B videos.

    Attributes:
        there: (B,) bool, whether the pair is compared with it; None if all are.
    """

    visual: Tensor
    mask: Tensor
    subtitles: Tensor | None
    there: Tensor | None = None


class WindowModel:
    """A model that finds the best span of each window.

    Attributes:
        config: of its settings this part reads the weights of the losses, ``alpha``, ``shortest_span`` and
            ``longest_span``.
    """

    config: Any
    encode_query: Callable[[Tensor, Tensor], Any]
    span_logits: Callable[[Any, Any], tuple[Tensor, Tensor]]
    pair_scores: Callable[[Any, Any], Tensor]

    def weighted(
        self, frame: Tensor, video: Tensor, span: Tensor, context: Tensor, query: Tensor
    ) -> dict[str, Tensor]:
        """The terms that are always there: three of each pair (B,), and the two of the ranking loss."""
        config = self.config
        return {
            "frame": config.frame_weight * frame.mean(),
            "video": config.video_weight * video.mean(),
            "span": config.span_weight * span.mean(),
            "context": config.context_weight * context,
            "query": config.query_weight * query,
        }

    def compared(
        self,
        scores: Tensor,
        harder: Tensor | None,
        weaker: Tensor | None,
        there: Tensor | None = None,
        loss: Callable[[Tensor, Tensor, float], Tensor] = hinge,
    ) -> dict[str, Tensor]:
        """The terms by which pairs' scores, the diagonal of (B, B), lie above those of further windows (B,).

        ``harder`` are those of windows without any answer, ``weaker`` of windows that answer less well, which
        the pairs of ``there`` (B,) are compared with, by default all.
        """
        config, own, terms = self.config, scores.diagonal(), {}
        if harder is not None:
            terms["hard_negative"] = config.hard_negative_weight * loss(own, harder, config.margin).mean()
        if weaker is not None:
            below = loss(own, weaker, config.margin)
            mean = below.mean() if there is None else (below * there).sum() / there.sum().clamp(min=1)
            terms["weak"] = config.weak_weight * mean
        return terms

    def refine(self, query: Tensor, query_mask: Tensor, context: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The best span of each window, p_start(m) p_end(n) exp(alpha s) with the window's score s.

        Args:
            query, query_mask: (N, Lq, d) and (N, Lq) float32, row i for window i; or (1, …) for all windows.
            context: N windows, each with a clip.

        Returns:
            Scores (N,) float32, clips of start and of end (N,) int64, in the convention of the labels. A
            window with too few clips for the shortest span is returned whole.
        """
        config, queries = self.config, self.encode_query(query, query_mask)
        start, end = self.span_logits(queries, context)
        spans = window_spans(
            start, end, context.mask, shortest=config.shortest_span, longest=config.longest_span
        )
        score = spans.score + config.alpha * self.pair_scores(queries, context)
        return score.exp(), spans.start, spans.end
