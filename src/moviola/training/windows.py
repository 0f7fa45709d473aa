"""Proposals as windows of clips: what a refiner is trained on, and running one over many queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from moviola.measures import Run
from moviola.models.spans import ClipWindows, clip_windows
from moviola.training.data import Clips, Queries, Rows
from moviola.types import Proposal

__all__ = ["Decoded", "ProposalWindows", "context_windows", "refined_run", "windows_of"]

Decoded = Callable[[int, Rows, ClipWindows], tuple[Tensor, Tensor, Tensor]]
"""Refines the N windows of one query: its row, rows of videos and windows, to score, first and last clip."""


@dataclass(frozen=True)
class ProposalWindows:
    """Padded proposals of one query: the video of each (N,) and its clips."""

    video: Rows
    clips: ClipWindows


def windows_of(
    proposals: Sequence[Proposal], clips: Clips, *, context: float, longest: int
) -> ProposalWindows:
    """Proposals with ``context`` seconds on both sides (tau_C of SPR, section 3.3), in whole clips."""
    video = np.array([clips.row_of[p.video_id] for p in proposals], dtype=np.int64)
    start = np.array([p.span.start for p in proposals])
    end = np.array([p.span.end for p in proposals])
    return ProposalWindows(video, context_windows(video, start, end, clips, context=context, longest=longest))


def context_windows(
    video: Rows,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    clips: Clips,
    *,
    context: float,
    longest: int,
) -> ClipWindows:
    """The same of N stretches (N,) in seconds of their videos, which are rows of ``clips``."""
    return clip_windows(
        np.maximum(start - context, 0),
        np.minimum(end + context, clips.durations[video]),
        clips.counts[video],
        clip_seconds=clips.clip_seconds,
        longest=longest,
    )


def refined_run(
    refine: Decoded,
    proposals: Sequence[Sequence[Proposal]],
    clips: Clips,
    queries: Queries,
    *,
    context: float,
    longest: int,
) -> Run:
    """Refine and re-rank the proposals of all queries (SPR, section 3.3).

    Args:
        refine: see :data:`Decoded`; its last clip is inside the moment.
        proposals: of each query.
        clips, queries: what they refer to.
        context: padding on both sides in seconds.
        longest: most clips of a window.
    """
    columns: list[tuple[NDArray[Any], ...]] = []
    names = np.array(clips.videos, dtype=object)
    for row, own in enumerate(proposals):
        if not own:
            continue
        windows = windows_of(own, clips, context=context, longest=longest)
        score, first, last = (x.cpu().numpy() for x in refine(row, windows.video, windows.clips))
        start = windows.clips.start + first * windows.clips.clip_seconds
        end = windows.clips.start + (last + 1) * windows.clips.clip_seconds
        end = np.maximum(np.minimum(end, clips.durations[windows.video]), start + 1e-3)
        order = np.argsort(-score, kind="stable")
        asked = np.full(len(order), queries.query_ids[row], dtype=object)
        columns.append((asked, names[windows.video[order]], start[order], end[order], score[order]))
    query, video, start, end, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Run.from_columns(query, video, start, end, score, queries=queries.query_ids, ranked=True)
