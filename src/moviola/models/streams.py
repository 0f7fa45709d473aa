"""Videos of two streams, pictures and subtitles: the part of the encoder that XML and ReLoCLNet share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.layers import LearnedPositions, ModularQuery, cross_attention_bias, self_attention_bias
from moviola.models.spans import top_scores

__all__ = ["STREAM_WEIGHTS", "TwoStreams"]

STREAM_WEIGHTS = ("mean", "query")
"""Weighting of streams in their sum: equal, or by the query (:meth:`ModularQuery.stream_weights`)."""


class TwoStreams(nn.Module):
    """A model with parts per stream (``video_encoder1``, ``sub_encoder1``) and one embedding of positions.

    Attributes:
        config: the model's; of its settings this part reads ``visual_size``, ``subtitle_size``,
            ``reference_padding``, ``mask_silent`` and ``stream_weights``, and for ranking ``alpha`` and
            ``top_videos``.
        stream_sizes: size of the features of each stream that there is, pictures (``video``) before subtitles
            (``sub``).
        reference_padding: let padding matter as it does in the releases (:mod:`moviola.models.layers`).
        mask_silent: leave clips without a subtitle out of the stream of subtitles (likewise).
        endpoints: numbers at the end of a clip's features that say where the clip is, not what is in it.
    """

    ctx_pos_embed: LearnedPositions
    modular_vector_mapping: ModularQuery
    encode_query: Callable[[Tensor, Tensor], Any]

    def __init__(self, config: Any, *, endpoints: int = 0) -> None:
        super().__init__()
        if config.stream_weights not in STREAM_WEIGHTS:
            raise InvalidValue(
                f"stream_weights {config.stream_weights!r}: unknown; choose {', '.join(STREAM_WEIGHTS)}"
            )
        self.config, self.endpoints = config, endpoints
        self.mask_silent, self.reference_padding = config.mask_silent, config.reference_padding
        sizes = {"video": config.visual_size, "sub": config.subtitle_size}
        self.stream_sizes: dict[str, int] = {stream: size for stream, size in sizes.items() if size}

    def part(self, stream: str, name: str, *inputs: Tensor) -> Tensor:
        """Result of a part of a stream."""
        return cast("Tensor", self.get_submodule(f"{stream}_{name}")(*inputs))

    def attended_streams(
        self, visual: Tensor, mask: Tensor, subtitles: Tensor | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        """Clips after the first block of their stream, and then after they attended to the other stream.

        What is made of silent clips is not zero yet: :meth:`without_silence`.

        Args:
            visual: (V, L, visual_size) float32, zero where padded.
            mask: (V, L) float32, 1 for a clip and 0 for padding.
            subtitles: (V, L, subtitle_size) float32; None exactly where the model has no such stream.

        Returns:
            (V, L, hidden_size) per stream, twice (the same twice where there is one stream), and the mask of
            each stream (V, L), in which silent clips are 0 too.

        Raises:
            InvalidValue: subtitles are missing or too many, or a video is too long.
        """
        if (subtitles is None) == ("sub" in self.stream_sizes):
            size = self.stream_sizes.get("sub", 0)
            raise InvalidValue(
                f"subtitles {'missing' if subtitles is None else 'given'}: this model has subtitle_size "
                f"{size}; give features of that size, or None where it is 0"
            )
        masks = {"video": mask}
        first = {"video": self._first_block("video", visual, mask)}
        if subtitles is None:
            return first, first, masks
        masks["sub"] = mask
        if self.mask_silent:
            said = subtitles[..., : subtitles.shape[-1] - self.endpoints]
            masks["sub"] = mask * (said != 0).any(dim=-1)
        first["sub"] = self._first_block("sub", subtitles, masks["sub"])
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

    def weights_of(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Weight of each stream for a query, (Q, S), sum 1, from its tokens (Q, Lq, D) and their mask."""
        if self.config.stream_weights == "query":
            return self.modular_vector_mapping.stream_weights(tokens, mask)
        streams = len(self.stream_sizes)
        return tokens.new_full((len(tokens), streams), 1 / streams)

    def rank_videos(
        self, query: Tensor, query_mask: Tensor, context: Any, *, keep: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Videos (VR): rows (Q, T) int64 of the best, and exp(alpha s) (Q, T), falling.

        Args are those of ``rank``; T is ``keep`` (default ``top_videos``), or fewer in a smaller corpus.
        """
        scores = self.corpus_scores(self.encode_query(query, query_mask), context)
        best, rows = top_scores(scores, keep or self.config.top_videos)
        return rows, (self.config.alpha * best).exp()

    def corpus_scores(self, queries: Any, context: Any) -> Tensor:
        """Scores s (Q, V) float32 of all videos for all queries, in parts that bound the memory."""
        raise NotImplementedError

    def _first_block(self, stream: str, features: Tensor, mask: Tensor) -> Tensor:
        clips = self.ctx_pos_embed(self.part(stream, "input_proj", features))
        return self.attend("encoder1", {stream: clips}, {stream: mask})[stream]
