"""Frames to segments: which frames belong together, what a segment's id is, and its embedding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError
from moviola.types import Segment, Span

__all__ = [
    "POOLING",
    "mean_pooled",
    "normalised",
    "pack_ids",
    "segment",
    "trained_pooling",
    "unpack_id",
    "unpack_ids",
    "whole_segments",
]

# A piece's id is the video's row number and the piece's position in it: nothing has to be looked up, and a
# row number is never used twice. 2^20 segments of 4 s are 48 days.
_POSITION_BITS = 20

# Names the recipe behind the vectors of an index, so that one made by another recipe is rebuilt.
POOLING = "mean of normalised frames"


def trained_pooling(revision: str) -> str:
    """The same of a trained stage 1 of SPR."""
    return f"spr-stage1 {revision}"


def pack_ids(row: int, count: int) -> NDArray[np.int64]:
    """Ids of a video's ``count`` pieces, (count,) int64."""
    if count > 1 << _POSITION_BITS:
        raise LibraryError(
            f"{count} segments in one video: at most {1 << _POSITION_BITS} fit; split the video"
        )
    return (np.int64(row) << _POSITION_BITS) + np.arange(count, dtype=np.int64)


def unpack_ids(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers and positions of ids."""
    return ids >> _POSITION_BITS, ids & ((1 << _POSITION_BITS) - 1)


def unpack_id(piece: int) -> tuple[int, int]:
    """Row number and position of one id."""
    return piece >> _POSITION_BITS, piece & ((1 << _POSITION_BITS) - 1)


def segment(video_id: str, position: int, seconds: float, duration: float) -> Segment:
    """The ``position``-th segment of a video, its span clipped to the duration (seconds)."""
    start = position * seconds
    return Segment(video_id, position, Span(start, max(min(start + seconds, duration), start + 1e-3)))


def mean_pooled(frames: NDArray[np.floating], frames_per_segment: int) -> NDArray[np.float32]:
    """Segment embeddings without training: the mean of the segment's normalised frames, normalised.

    The paper's CLIP_mp (SPR, appendix B.2, Table 7).

    Args:
        frames: (n, d), n >= 1, raw frame features in order.
        frames_per_segment: T; the last segment may hold fewer frames.

    Returns:
        (ceil(n / T), d) float32, L2-normalised.
    """
    unit = normalised(frames)
    starts = np.arange(0, len(unit), frames_per_segment)
    return normalised(np.add.reduceat(unit, starts, axis=0))


def whole_segments(frames: NDArray[np.float32], frames_per_segment: int) -> NDArray[np.float32]:
    """Frames (n, d), n >= 1, as segments (ceil(n / T), T, d); a short last one repeats its last frame."""
    missing = -len(frames) % frames_per_segment
    filled = np.concatenate([frames, np.repeat(frames[-1:], missing, axis=0)])
    return filled.reshape(-1, frames_per_segment, frames.shape[1])


def normalised(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows scaled to length 1, float32; a row of zeros becomes the first axis, so that it can be indexed."""
    values = np.asarray(rows, dtype=np.float32)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    empty = norms[:, 0] == 0
    if empty.any():
        values = values.copy()
        values[empty, 0] = 1.0
        norms[empty] = 1.0
    unit: NDArray[np.float32] = values / norms
    return unit
