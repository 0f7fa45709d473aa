"""Videos of two streams, pictures and subtitles: what XML and ReLoCLNet share.

The papers' streams are crossed: they share the query's encoder, the positions and the predictors of
boundaries, and each attends to the other. Where few queries are about what is said, the stream of subtitles
learns next to nothing so (docs/benchmark). With ``stream_weights="type"`` streams are apart: they share
nothing, each learns from the queries of its types, and the weights for a query are learned from its type.
Queries and subtitles are both texts: with ``shared_encoder`` the stream of subtitles reads queries with the
encoder of its lines, so that texts which are alike have like vectors before anything is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from moviola.errors import InvalidValue
from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import PairBatch, Ranked, rows_at_once
from moviola.study.models.checks import require_known, require_one_space, require_positive, require_subtitles
from moviola.study.models.layers import (
    LearnedPositions,
    ModularQuery,
    cross_attention_bias,
    initialise,
    self_attention_bias,
    span_logits,
    start_aligned,
)
from moviola.study.models.losses import PAIRWISE_LOSSES
from moviola.study.models.spans import corpus_spans, ranked_spans, top_scores

__all__ = ["STREAM_WEIGHTS", "TwoStreams", "TwoStreamsConfig"]

STREAM_WEIGHTS = ("mean", "query", "type")
"""Weighting of streams in their sum: equal; by the query (:meth:`ModularQuery.stream_weights`); or by the
query's type, as training learns it, with streams that are apart."""


@dataclass(frozen=True)
class TwoStreamsConfig:
    """Settings of both models; the defaults are those of TVR-Ranking for XML.

    Attributes:
        visual_size, subtitle_size, query_size: features of a clip's pictures, of its subtitles (0: no such
            stream), of a query's tokens.
        hidden_size, heads, dropout: of every block.
        max_clips, max_tokens: most clips of a video and tokens of a query.
        ranking_loss: loss of two scores, a name in :data:`~moviola.study.models.losses.PAIRWISE_LOSSES`.
        margin: of all hinges.
        context_weight, query_weight: of the ranking losses against another video, and another query.
        span_weight: of the cross entropies of start and end.
        labels: what training's labels and decoding mean, a name in
            :data:`~moviola.retrieval.saved.clip_windows.LABELS`.
        clip_seconds: length of a clip.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in clips, as labelled.
        alpha: a moment scores exp(alpha s) times the probabilities of its start and end, with the score s of
            its video.
        top_videos, top_moments: numbers of searched videos and of returned moments.
        reference_padding: let padding matter as in the releases (:mod:`moviola.study.models.layers`).
        mask_silent: leave clips without a subtitle out of the stream of subtitles; the releases do not.
        stream_weights: how the streams are summed, a name in :data:`STREAM_WEIGHTS`; the papers' is "mean".
        shared_encoder: streams that are apart: subtitles read queries with the encoder of their lines, which
            needs features of one text encoder; else with one of their own.
        aligned_start: start in the space that the features of pictures, lines and queries share
            (:func:`~moviola.study.models.layers.start_aligned`); the papers start at random.
    """

    visual_size: int = 1026
    subtitle_size: int = 770
    query_size: int = 768
    hidden_size: int = 256
    heads: int = 4
    dropout: float = 0.1
    max_clips: int = 128
    max_tokens: int = 30
    ranking_loss: str = "hinge"
    margin: float = 0.1
    context_weight: float = 1.0
    query_weight: float = 1.0
    span_weight: float = 0.01
    labels: str = "xml"
    clip_seconds: float = 1.5
    shortest_span: int = 2
    longest_span: int = 16
    alpha: float = 20.0
    top_videos: int = 100
    top_moments: int = 40
    reference_padding: bool = False
    mask_silent: bool = True
    stream_weights: str = "mean"
    shared_encoder: bool = True
    aligned_start: bool = False

    def __post_init__(self) -> None:
        require_known("ranking_loss", self.ranking_loss, PAIRWISE_LOSSES)
        require_known("labels", self.labels, LABELS)
        require_known("stream_weights", self.stream_weights, STREAM_WEIGHTS)
        require_positive(top_videos=self.top_videos, top_moments=self.top_moments)


class TwoStreams(nn.Module):
    """A model with parts per stream (``video_encoder1``, ``sub_encoder1``) and one embedding of positions.

    Attributes:
        config: the model's, a :class:`TwoStreamsConfig`.
        stream_sizes: size of the features of each stream that there is, pictures (``video``) before subtitles
            (``sub``).
        apart: whether the streams share nothing.
        shared: whether subtitles read queries with the encoder of their lines.
        endpoints: numbers at the end of a clip's features that say where the clip is, not what is in it.
        later: clips by which a decoded end is later than the labels mean it.
    """

    ctx_pos_embed: LearnedPositions
    sub_ctx_pos_embed: LearnedPositions
    modular_vector_mapping: ModularQuery
    sub_modular_vector_mapping: ModularQuery
    sub_merged_st_predictor: nn.Conv1d
    sub_merged_ed_predictor: nn.Conv1d
    type_predictor: ModularQuery
    encode_query: Callable[[Tensor, Tensor], Any]
    video_scores: Callable[[Any, Any], Tensor]

    def __init__(self, config: Any, *, endpoints: int = 0, later: int = 0) -> None:
        super().__init__()
        self.config, self.endpoints, self.later = config, endpoints, later
        self.mask_silent, self.reference_padding = config.mask_silent, config.reference_padding
        sizes = {"video": config.visual_size, "sub": config.subtitle_size}
        self.stream_sizes: dict[str, int] = {stream: size for stream, size in sizes.items() if size}
        self.apart = config.stream_weights == "type" and len(self.stream_sizes) > 1
        self.shared = self.apart and config.shared_encoder
        if self.shared and config.subtitle_size - endpoints != config.query_size:
            raise InvalidValue(
                f"stream_weights 'type': subtitles of {config.subtitle_size - endpoints} numbers, and tokens "
                f"of {config.query_size}; give features of one text encoder, or set "
                "model.shared_encoder=false"
            )

    def complete(self, kernel: int = 5) -> None:
        """Add the parts that come last in both models, and draw all weights."""
        streams = 1 if self.apart else len(self.stream_sizes)
        self.modular_vector_mapping = ModularQuery(self.config.hidden_size, streams)
        self.merged_st_predictor = nn.Conv1d(1, 1, kernel, padding=kernel // 2, bias=False)
        self.merged_ed_predictor = nn.Conv1d(1, 1, kernel, padding=kernel // 2, bias=False)
        if self.apart:
            of_queries = "query_pos_" if self.shared else "query_"
            for name, part in list(self.named_children()):
                if name.startswith((of_queries, "ctx_", "modular_", "merged_")):
                    self.add_module(f"sub_{name}", deepcopy(part))
            self.type_predictor = ModularQuery(self.config.hidden_size, len(self.stream_sizes))
        initialise(self)
        if self.config.aligned_start:
            size = self.config.query_size
            require_one_space(size, *(of_clip - self.endpoints for of_clip in self.stream_sizes.values()))
            start_aligned(self, size)
            for stream in self.stream_sizes:
                nn.init.eye_(cast("nn.Linear", self.get_submodule(f"{stream}_query_linear")).weight)

    def part(self, stream: str, name: str, *inputs: Tensor) -> Tensor:
        """Result of a part of a stream."""
        return cast("Tensor", self.get_submodule(f"{stream}_{name}")(*inputs))

    def attended_streams(
        self, visual: Tensor, mask: Tensor, subtitles: Tensor | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        """Clips after the first block of their stream, and then after they attended to the other stream.

        Outputs of silent clips are not zero yet: :meth:`without_silence`.

        Args:
            visual: (V, L, visual_size) float32, zero where padded.
            mask: (V, L) float32, 1 for a clip and 0 for padding.
            subtitles: (V, L, subtitle_size) float32; None exactly where the model has no such stream.

        Returns:
            (V, L, hidden_size) per stream, twice (the same twice where there is one stream, or both are
            apart), and the mask of each stream (V, L), in which silent clips are 0 too.

        Raises:
            InvalidValue: subtitles are missing or too many, or a video is too long.
        """
        require_subtitles(subtitles, self.config.subtitle_size)
        masks = {"video": mask}
        first = {"video": self._first_block("video", visual, mask)}
        if subtitles is None:
            return first, first, masks
        masks["sub"] = mask
        if self.mask_silent:
            said = subtitles[..., : subtitles.shape[-1] - self.endpoints]
            masks["sub"] = mask * (said != 0).any(dim=-1)
        first["sub"] = self._first_block("sub", subtitles, masks["sub"])
        if self.apart:
            return first, first, masks
        crossed = {}
        for stream, other in (("video", "sub"), ("sub", "video")):
            bias = cross_attention_bias(mask, masks[other], reference_padding=self.reference_padding)
            attended = self.part(stream, "cross_att", first[stream], first[other], bias)
            if self.mask_silent:  # where nobody speaks at all there is nothing to attend to
                attended = attended * masks[other].any(dim=-1)[:, None, None]
            crossed[stream] = self.part(stream, "cross_layernorm", attended + first[stream])
        return first, crossed, masks

    def attend(self, name: str, clips: dict[str, Tensor], masks: dict[str, Tensor]) -> dict[str, Tensor]:
        """Clips (V, L, hidden_size) of each stream after a block of self-attention."""
        return {
            stream: self.part(
                stream, name, own,
                self_attention_bias(masks[stream], reference_padding=self.reference_padding),
            )
            for stream, own in clips.items()
        }  # fmt: skip

    def without_silence(self, clips: dict[str, Tensor], masks: dict[str, Tensor]) -> list[Tensor]:
        """Clips of each stream, those that are silent as zero vectors."""
        return [
            own * masks[stream][..., None] if self.mask_silent and stream == "sub" else own
            for stream, own in clips.items()
        ]

    def query_tokens(self, query: Tensor, bias: Tensor, *encoders: str) -> list[Tensor]:
        """Encoded tokens (Q, Lq, hidden_size) for both streams, or for each if they are apart.

        Args:
            query: (Q, Lq, query_size) float32.
            bias: of the encoders' attention.
            encoders: names of the blocks, in their order.
        """
        found = [self._tokens(query, bias, "query_input_proj", "query_pos_embed", encoders)]
        if self.shared:
            of_lines = [f"sub_encoder{depth}" for depth in range(1, len(encoders) + 1)]
            lines = functional.pad(query, (0, self.endpoints))
            found.append(self._tokens(lines, bias, "sub_input_proj", "sub_query_pos_embed", of_lines))
        elif self.apart:
            own = [f"sub_{encoder}" for encoder in encoders]
            found.append(self._tokens(query, bias, "sub_query_input_proj", "sub_query_pos_embed", own))
        return found

    def _tokens(
        self, query: Tensor, bias: Tensor, projection: str, positions: str, encoders: Sequence[str]
    ) -> Tensor:
        tokens: Tensor = self.get_submodule(positions)(self.get_submodule(projection)(query))
        for encoder in encoders:
            tokens = self.get_submodule(encoder)(tokens, bias)
        return tokens

    def pooled(self, tokens: Sequence[Tensor], mask: Tensor) -> Tensor:
        """One vector per stream, (Q, S, D), of what :meth:`query_tokens` made."""
        vectors: Tensor = self.modular_vector_mapping(tokens[0], mask)
        if self.apart:
            vectors = torch.cat([vectors, self.sub_modular_vector_mapping(tokens[1], mask)], dim=1)
        return vectors

    def weights_of(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Weight of each stream for a query, (Q, S), sum 1, from its tokens (Q, Lq, D) and their mask."""
        if self.apart:  # learning the types must not change what finds the moments
            return self.type_predictor.stream_weights(tokens.detach(), mask)
        if self.config.stream_weights == "query":
            return self.modular_vector_mapping.stream_weights(tokens, mask)
        return tokens.new_full((len(tokens), len(self.stream_sizes)), 1 / len(self.stream_sizes))

    def weighed_by_type(self, queries: Any, batch: PairBatch) -> tuple[Any, dict[str, Tensor]]:
        """Queries of a training step, and the loss of their weights, by name; the same and none if not apart.

        A query that subtitles alone answer (type t) trains their stream, all others that of the pictures.

        Raises:
            InvalidValue: the types are unknown.
        """
        if not self.apart:
            return queries, {}
        if batch.spoken is None:
            raise InvalidValue(
                "stream_weights 'type': a training query has no type; give a pair file with the field 'type' "
                "(v, t or vt), or leave the setting out"
            )
        stream = batch.spoken.long()
        missed = functional.nll_loss(queries.weights.clamp(min=1e-12).log(), stream)
        return replace(queries, weights=functional.one_hot(stream, 2).to(queries.weights)), {"type": missed}

    def boundaries(self, curve: Tensor, mask: Tensor, said: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits of start and end, (..., L) each, from the similarity (..., L) of a query with each clip.

        ``said`` is the similarity with what is said, where it is not in ``curve``: of streams that are apart.
        """
        start = self._boundary(curve, mask, self.merged_st_predictor)
        end = self._boundary(curve, mask, self.merged_ed_predictor)
        if said is None:
            return start, end
        return (
            start + self._boundary(said, mask, self.sub_merged_st_predictor),
            end + self._boundary(said, mask, self.sub_merged_ed_predictor),
        )

    def _boundary(self, curve: Tensor, mask: Tensor, predictor: nn.Conv1d) -> Tensor:
        return span_logits(curve, mask, predictor, reference_padding=self.reference_padding)

    def boundaries_in(self, queries: Any, context: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of start and end of each query in its own T videos, ``rows`` (Q, T): (Q, T, L) each."""
        raise NotImplementedError

    # ---- ranking -----------------------------------------------------------------------------------------

    def rank(self, query: Tensor, query_mask: Tensor, context: Any) -> Ranked:
        """Moments of the whole corpus (VCMR): exp(alpha s) p(start) p(end), over the best videos.

        Args:
            query, query_mask: (Q, Lq, query_size) and (Q, Lq) float32.
            context: the corpus; of any size, work is cut so that memory stays bounded.

        Returns:
            :class:`Ranked` (Q, top_moments), or fewer columns where there are fewer spans. The time of a
            missing moment is 0 to 0 and its score -inf.
        """
        queries = self.encode_query(query, query_mask)
        best, rows = top_scores(self.corpus_scores(queries, context), self.config.top_videos)
        return self.rank_in(queries, context, rows, (self.config.alpha * best).exp())

    def rank_in(self, queries: Any, context: Any, rows: Tensor, weight: Tensor) -> Ranked:
        """The best spans of each query over its videos ``rows`` (Q, T), weighed by ``weight`` (Q, T)."""
        config, length = self.config, context.mask.shape[1]
        size = len(self.stream_sizes) * config.hidden_size
        chunk = rows_at_once(rows.shape[1] * length * max(size, config.longest_span))
        parts = []
        for first in range(0, max(1, len(queries)), chunk):
            some = slice(first, first + chunk)
            start, end = self.boundaries_in(queries.select(some), context, rows[some])
            place, spans = corpus_spans(
                weight[some], start.softmax(dim=-1), end.softmax(dim=-1), shortest=config.shortest_span,
                longest=config.longest_span, k=config.top_moments,
            )  # fmt: skip
            numbers = rows[some].gather(1, place.clamp(min=0)).masked_fill(place < 0, -1)
            stop = LABELS[config.labels].end_clip(spans.end) + self.later
            parts.append(ranked_spans(numbers, spans, stop, config.clip_seconds))
        return Ranked.joined(parts)

    def rank_videos(
        self, query: Tensor, query_mask: Tensor, context: Any, *, keep: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Videos (VR): rows (Q, T) int64 of the best, and exp(alpha s) (Q, T), falling.

        Args are those of :meth:`rank`; T is ``keep`` (default ``top_videos``), or fewer in a smaller corpus.
        """
        scores = self.corpus_scores(self.encode_query(query, query_mask), context)
        best, rows = top_scores(scores, keep or self.config.top_videos)
        return rows, (self.config.alpha * best).exp()

    def corpus_scores(self, queries: Any, context: Any) -> Tensor:
        """Scores s (Q, V) float32 of all videos for all queries, some videos at a time."""
        length, size = context.mask.shape[1], len(self.stream_sizes) * self.config.hidden_size
        block = rows_at_once(length * max(len(queries), size))
        parts = [context.select(slice(at, at + block)) for at in range(0, max(1, len(context)), block)]
        return torch.cat([self.video_scores(queries, part) for part in parts], dim=1)

    def _first_block(self, stream: str, features: Tensor, mask: Tensor) -> Tensor:
        positions = self.sub_ctx_pos_embed if self.apart and stream == "sub" else self.ctx_pos_embed
        clips = positions(self.part(stream, "input_proj", features))
        return self.attend("encoder1", {stream: clips}, {stream: mask})[stream]
