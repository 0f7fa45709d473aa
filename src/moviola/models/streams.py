"""Videos of two streams, pictures and subtitles: the part of the encoder that XML and ReLoCLNet share."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.layers import LearnedPositions, ModularQuery, cross_attention_bias, self_attention_bias

__all__ = ["STREAM_WEIGHTS", "TwoStreams"]

STREAM_WEIGHTS = ("mean", "query")
"""Weighting of streams in their sum: equal, or by the query (:meth:`ModularQuery.stream_weights`)."""


class TwoStreams(nn.Module):
    """A model with parts per stream (``video_encoder1``, ``sub_encoder1``) and one embedding of positions.

    Attributes:
        stream_sizes: size of the features of each stream that there is, pictures (``video``) before subtitles
            (``sub``).
        reference_padding: let padding matter as it does in the releases (:mod:`moviola.models.layers`).
        mask_silent: leave clips without a subtitle out of the stream of subtitles (likewise).
        endpoints: numbers at the end of a clip's features that say where the clip is, not what is in it.
        stream_weights: a name in :data:`STREAM_WEIGHTS`.
    """

    ctx_pos_embed: LearnedPositions
    modular_vector_mapping: ModularQuery

    def __init__(
        self,
        visual_size: int,
        subtitle_size: int,
        *,
        reference_padding: bool,
        mask_silent: bool,
        stream_weights: str,
        endpoints: int = 0,
    ) -> None:
        super().__init__()
        if stream_weights not in STREAM_WEIGHTS:
            raise InvalidValue(
                f"stream_weights {stream_weights!r}: unknown; choose {', '.join(STREAM_WEIGHTS)}"
            )
        self.mask_silent, self.stream_weights, self.endpoints = mask_silent, stream_weights, endpoints
        self.stream_sizes = {"video": visual_size} | ({"sub": subtitle_size} if subtitle_size else {})
        self.reference_padding = reference_padding

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
        if self.stream_weights == "query":
            return self.modular_vector_mapping.stream_weights(tokens, mask)
        streams = len(self.stream_sizes)
        return tokens.new_full((len(tokens), streams), 1 / streams)

    def _first_block(self, stream: str, features: Tensor, mask: Tensor) -> Tensor:
        clips = self.ctx_pos_embed(self.part(stream, "input_proj", features))
        return self.attend("encoder1", {stream: clips}, {stream: mask})[stream]
