"""Scores of whole videos, block by block: for ranking videos (VR), and for CONQUER's candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["VideoScores", "score_blocks"]

VideoScores = Callable[[slice], NDArray[np.float32]]
"""A retriever's scores of all V videos for a slice of queries: (n, V) float32, computed on request.

So no table of all queries and all videos is held: on TVR-Ranking it would be 5 GB.
"""


def score_blocks(
    scores: VideoScores, queries: int, videos: int, *, most: int = 256, cells: int = 1 << 22
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """The queries block by block, at most ``most``, each with its scores (n, V) float32.

    A block has at most ``cells`` scores, which bounds the memory; one query is always scored whole.
    """
    step = max(1, min(most, cells // max(1, videos)))
    for first in range(0, queries, step):
        some = slice(first, min(first + step, queries))
        yield some, scores(some)
