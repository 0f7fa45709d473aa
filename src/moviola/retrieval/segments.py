"""Segments, the indexed unit, from clips: their embedding without training, ids and times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError
from moviola.features import Integers, VideoFeatures

__all__ = [
    "mean_pooled", "normalised", "pack_ids", "segment_counts", "segment_ids", "segment_spans", "unpack_ids",
    "whole_segments",
]  # fmt: skip

# A segment's id is its video's number and its position in it: no table is needed, and a library never uses a
# number twice. 2^20 segments of 4 s are 48 days.
_POSITION_BITS = 20


def pack_ids(key: int, count: int) -> Integers:
    """Ids of the ``count`` segments (or cues) of the video with number ``key``, (count,) int64.

    Raises:
        LibraryError: more than 2^20 of them.
    """
    if count > 1 << _POSITION_BITS:
        raise LibraryError(
            f"{count} segments in one video: at most {1 << _POSITION_BITS} fit; split the video"
        )
    return segment_ids(np.int64(key), np.arange(count, dtype=np.int64))


def segment_ids(keys: Integers | np.int64, positions: Integers) -> Integers:
    """Ids (n,) int64 of segments by the numbers of their videos and their positions there."""
    return (keys << _POSITION_BITS) + positions


def unpack_ids(ids: Integers) -> tuple[Integers, Integers]:
    """Numbers of videos and positions in them, of ids of any shape."""
    return ids >> _POSITION_BITS, ids & ((1 << _POSITION_BITS) - 1)


def segment_counts(features: VideoFeatures, segment_clips: int) -> Integers:
    """(V,) int64, segments of each video; the last one of a video may hold fewer clips."""
    return -(-features.counts // segment_clips)


def segment_spans(
    features: VideoFeatures, video: Integers, first: Integers, last: Integers, segment_clips: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Start and end in seconds of stretches of segments, cut to their videos.

    Stretches run from the ``first`` to the ``last`` position (n,), inclusive, of videos by place (n,).
    """
    seconds = segment_clips * features.clip_seconds
    return features.clip_spans(video, first * seconds, (last + 1) * seconds)


def mean_pooled(clips: NDArray[np.floating[Any]], segment_clips: int) -> NDArray[np.float32]:
    """Segment embeddings without training: the mean of the segment's normalised clips, normalised.

    The paper's CLIP_mp (SPR, appendix B.2, Table 7): of clips (n, d), n >= 1, in order, (ceil(n / T), d)
    float32, with T ``segment_clips``; the last segment may hold fewer.
    """
    return normalised(np.add.reduceat(normalised(clips), np.arange(0, len(clips), segment_clips), axis=0))


def whole_segments(clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
    """Clips (n, d), n >= 1, as segments (ceil(n / T), T, d); a short last one repeats its last clip (SPR)."""
    filled = np.pad(clips, ((0, -len(clips) % segment_clips), (0, 0)), mode="edge")
    return filled.reshape(-1, segment_clips, clips.shape[1])


def normalised(rows: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Rows scaled to length 1, float32; a row of zeros becomes the first axis, so that it can be indexed."""
    values = np.asarray(rows, dtype=np.float32)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    empty = norms[:, 0] == 0
    if empty.any():
        values = values.copy()
        values[empty, 0] = 1.0
        norms[empty] = 1.0
    return np.asarray(values / norms)
