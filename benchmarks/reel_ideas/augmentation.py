"""Changes of a batch for Reel, so that it learns from more than the pairs that there are."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.reel import AnswerBatch

__all__ = ["Augmentation"]

_MOST = 0.3  # of another clip in a mixed one


@dataclass(frozen=True)
class Augmentation:
    """How much is changed; 0 leaves it.

    Attributes:
        moved: number of moments that are shown in another video of the batch as well, in shares of the number
            of queries (context swaps).
        mixed: share of the videos in which each clip has up to .3 of another clip of the batch in it.
        dropped: share of the tokens of queries that are left out, as if these said less.
    """

    moved: float = 0.0
    mixed: float = 0.0
    dropped: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= (share := getattr(self, field.name)) <= 1:
                raise InvalidValue(f"{field.name}={share}: give a share from 0 to 1")

    def __call__(self, batch: AnswerBatch, generator: torch.Generator) -> AnswerBatch:
        """The batch as it is learned from; the generator is the only source of randomness."""
        if self.moved:
            batch = _moved(batch, round(self.moved * len(batch)), generator)
        if self.mixed:
            batch = replace(batch, visual=_mixed(batch, self.mixed, generator))
        if self.dropped:
            batch = replace(batch, query_mask=_dropped(batch.query_mask, self.dropped, generator))
        return batch


def _mixed(batch: AnswerBatch, share: float, generator: torch.Generator) -> Tensor:
    """Clips (V, L, d); the length of their vectors stays."""
    visual, mask = batch.visual, batch.mask
    clips = mask.flatten().nonzero()[:, 0]
    drawn = clips[torch.randint(len(clips), (mask.numel(),), generator=generator)]
    other = visual.flatten(0, 1)[drawn].view_as(visual)
    chosen = (torch.rand(len(mask), 1, generator=generator) < share) * mask
    parts = (_MOST * torch.rand(mask.shape, generator=generator) * chosen)[..., None]
    length: Tensor = torch.linalg.vector_norm(visual, dim=-1, keepdim=True)
    return F.normalize((1 - parts) * visual + parts * other, dim=-1) * length


def _dropped(mask: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Mask (Q, Lq) without some tokens; a query that would have none keeps all."""
    kept = (torch.rand(mask.shape, generator=generator) >= share) * mask
    return torch.where(kept.any(dim=1, keepdim=True), kept, mask)


# ---- moments in other videos -----------------------------------------------------------------------------


def _moved(batch: AnswerBatch, count: int, generator: torch.Generator) -> AnswerBatch:
    """The clips of ``count`` answers copied over others of another video, where no answer is touched."""
    stored = [batch.visual, batch.cuts, *(() if batch.subtitles is None else (batch.subtitles,))]
    stored = [rows.clone() for rows in stored]
    clips = torch.stack([batch.span[:, 0].floor(), batch.span[:, 1].ceil()], dim=1).long()
    taken = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for video, (first, stop) in zip(batch.answer[:, 1].tolist(), clips.tolist(), strict=True):
        taken[video, first:stop] = True
    copied: list[Tensor] = []
    places: list[Tensor] = []
    for row in torch.randperm(len(batch.answer), generator=generator)[:count].tolist():
        video, (first, stop) = int(batch.answer[row, 1]), clips[row].tolist()
        goal, place = _goal(batch.mask, stop - first, generator)
        over = slice(place, place + stop - first)
        if goal == video or place < 0 or stop > batch.mask[video].sum() or taken[goal, over].any():
            continue
        for rows in stored:
            rows[goal, over] = rows[video, first:stop]
        taken[goal, over] = True
        # The same moment may answer other queries too.
        same = (batch.answer[:, 1] == video) & (batch.span == batch.span[row]).all(dim=1)
        copied.append(same.nonzero()[:, 0])
        places.append(torch.tensor([[goal, place - first]]).expand(len(copied[-1]), -1))
    if not copied:
        return batch
    own, new = torch.cat(copied), torch.cat(places)
    answer = torch.stack([batch.answer[own, 0], new[:, 0]], dim=1)
    return replace(
        batch, visual=stored[0], cuts=stored[1], subtitles=stored[2] if len(stored) > 2 else None,
        answer=torch.cat([batch.answer, answer]), span=torch.cat([batch.span, batch.span[own] + new[:, 1:]]),
        similarity=torch.cat([batch.similarity, batch.similarity[own]]),
    )  # fmt: skip


def _goal(mask: Tensor, length: int, generator: torch.Generator) -> tuple[int, int]:
    """A video and its clip from which ``length`` clips fit into it; a clip below 0 where they do not."""
    video = int(torch.randint(len(mask), (), generator=generator))
    room = int(mask[video].sum()) - length
    return video, int(torch.randint(room, (), generator=generator)) if room > 0 else -1
