"""Proposals with context as windows of clips: input of refiners in training and in use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers, VideoFeatures
from moviola.models.clip_windows import ClipWindows, clip_windows
from moviola.retrieval.proposals import Proposals

__all__ = ["context_windows", "proposal_windows"]


def context_windows(
    features: VideoFeatures,
    video: Integers,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    context: float,
    max_clips: int,
) -> ClipWindows:
    """Stretches of videos with ``context`` seconds on both sides (tau_C; SPR, section 3.3), in whole clips.

    Args:
        features: the videos.
        video: (N,) places of videos.
        start, end: (N,) seconds.
        context: in seconds, >= 0.
        max_clips: maximum clips of a model; a longer window is pooled.
    """
    return clip_windows(
        np.maximum(start - context, 0),
        np.minimum(end + context, features.durations[video]),
        features.counts[video],
        clip_seconds=features.clip_seconds,
        longest=max_clips,
    )


def proposal_windows(
    features: VideoFeatures, proposals: Proposals, *, context: float, max_clips: int
) -> ClipWindows:
    """:func:`context_windows` of proposals."""
    return context_windows(
        features, proposals.video, proposals.start, proposals.end, context=context, max_clips=max_clips
    )
