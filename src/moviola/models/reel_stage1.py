"""Reel's stage 1: segments and queries in one space, by the encoder of :mod:`moviola.models.reel`.

SPR's stage 1 (section 3.1) sees the clips of one segment alone and one vector of the query. Here a clip knows
what comes before and after it, and the query is read token by token. A segment is the mean of its clips' unit
vectors. One list-wise loss, softmax over all segments of the batch's videos against how much of each lies in
an answer, times similarity, is close to the recall that a stage 1 is there for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.losses import list_wise
from moviola.models.reel import AnswerBatch
from moviola.models.role_encoder import RoleEncoder, RoleEncoderConfig

__all__ = ["ReelStage1", "ReelStage1Config"]


@dataclass(frozen=True)
class ReelStage1Config(RoleEncoderConfig):
    """Settings besides the sizes.

    Attributes:
        similarity_power: a segment's gain is its share times similarity to this power.
    """

    similarity_power: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subtitle_size:
            raise InvalidValue(f"subtitle_size {self.subtitle_size}: segments are pictures alone; give 0")


class ReelStage1(RoleEncoder):
    """Encodes clips and queries with one vector each, whose cosine says how well they match."""

    config: ReelStage1Config

    def __init__(self, config: ReelStage1Config) -> None:
        super().__init__(config, roles=1)
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def loss(self, batch: AnswerBatch, segment_clips: int, least_share: float) -> dict[str, Tensor]:
        """The list-wise loss over all segments of the batch's videos.

        Args:
            segment_clips: T, clips of a segment.
            least_share: a segment answers a query if at least this share of it lies in an answer.
        """
        clips = self.encode_clips(batch.visual, batch.mask)[:, :, 0] * batch.mask[..., None]
        segments = F.normalize(_blocks(clips, segment_clips), dim=-1)
        there = _blocks(batch.mask[..., None], segment_clips)[..., 0] > 0
        cosine = torch.einsum("qh,vsh->qvs", self.encode_query(batch.query, batch.query_mask)[:, 0], segments)
        scores = (self.log_scale.exp() * cosine).masked_fill(~there, -1e9)
        gains = self.gains(batch, segment_clips, least_share) * there  # an answer may end after its video
        return {"list": list_wise(scores.flatten(1), gains.flatten(1))}

    def gains(self, batch: AnswerBatch, segment_clips: int, least_share: float) -> Tensor:
        """(Q, V, S) float32 in [0, 1], how much each segment is worth to each query; see :meth:`loss`."""
        first = torch.arange(0, batch.mask.shape[1], segment_clips, device=batch.mask.device)
        start, end = batch.span[:, :1], batch.span[:, 1:]
        shared = torch.minimum(first + segment_clips, end) - torch.maximum(first, start)
        share = shared.clamp(min=0) / segment_clips
        similarity = batch.similarity[:, None] ** self.config.similarity_power
        return batch.largest(torch.where(share >= least_share, share, 0) * similarity)


def _blocks(rows: Tensor, size: int) -> Tensor:
    """(N, L, d) to (N, ceil(L / size), d), sums of ``size`` neighbours."""
    whole = F.pad(rows, (0, 0, 0, -rows.shape[1] % size))
    return whole.view(len(rows), -1, size, rows.shape[2]).sum(dim=2)
