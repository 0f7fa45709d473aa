"""Videos of two streams, pictures and subtitles: the part of the encoder that XML and ReLoCLNet share."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.layers import LearnedPositions, cross_attention_bias, self_attention_bias

__all__ = ["TwoStreams"]


class TwoStreams(nn.Module):
    """A model with parts per stream (``video_encoder1``, ``sub_encoder1``) and one embedding of positions.

    Attributes:
        stream_sizes: size of the features of each stream that there is, pictures (``video``) before subtitles
            (``sub``).
        reference_padding: let padding matter as it does in the releases (:mod:`moviola.models.layers`).
    """

    ctx_pos_embed: LearnedPositions

    def __init__(self, visual_size: int, subtitle_size: int, *, reference_padding: bool) -> None:
        super().__init__()
        self.stream_sizes = {"video": visual_size} | ({"sub": subtitle_size} if subtitle_size else {})
        self.reference_padding = reference_padding

    def part(self, stream: str, name: str, *inputs: Tensor) -> Tensor:
        """What a part of a stream makes of its inputs."""
        return cast("Tensor", self.get_submodule(f"{stream}_{name}")(*inputs))

    def attended_streams(
        self, visual: Tensor, mask: Tensor, subtitles: Tensor | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Clips after the first block of their stream, and then after they attended to the other stream.

        Args:
            visual: (V, L, visual_size) float32, zero where padded.
            mask: (V, L) float32, 1 for a clip and 0 for padding.
            subtitles: (V, L, subtitle_size) float32; None exactly where the model has no such stream.

        Returns:
            (V, L, hidden_size) per stream, twice; the same twice where there is one stream.

        Raises:
            InvalidValue: subtitles are missing or too many, or a video is too long.
        """
        if (subtitles is None) == ("sub" in self.stream_sizes):
            size = self.stream_sizes.get("sub", 0)
            raise InvalidValue(
                f"subtitles {'missing' if subtitles is None else 'given'}: this model has subtitle_size "
                f"{size}; give features of that size, or None where it is 0"
            )
        bias = self_attention_bias(mask, reference_padding=self.reference_padding)
        first = {"video": self._first_block("video", visual, bias)}
        if subtitles is None:
            return first, first
        first["sub"] = self._first_block("sub", subtitles, bias)
        bias = cross_attention_bias(mask, mask, reference_padding=self.reference_padding)
        crossed = {}
        for stream, other in (("video", "sub"), ("sub", "video")):
            attended = self.part(stream, "cross_att", first[stream], first[other], bias)
            crossed[stream] = self.part(stream, "cross_layernorm", attended + first[stream])
        return first, crossed

    def _first_block(self, stream: str, features: Tensor, bias: Tensor) -> Tensor:
        clips = self.ctx_pos_embed(self.part(stream, "input_proj", features))
        return self.part(stream, "encoder1", clips, bias)
