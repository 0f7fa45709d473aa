"""Scores of whole videos, block by block: what ranks videos (VR), and what CONQUER takes for candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["VideoScores", "score_blocks"]

VideoScores = Callable[[slice], NDArray[np.float32]]
"""What a retriever thinks of all V videos for the queries of a slice: (n, V) float32, made when asked for.

So no table of all queries and all videos is ever held: on TVR-Ranking it would be 5 GB.
"""


def score_blocks(
    scores: VideoScores, queries: int, videos: int, *, most: int = 256, cells: int = 1 << 22
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """The queries block by block, each with its scores (n, V) float32.

    Args:
        scores: gives them.
        queries, videos: how many there are.
        most: queries of a block.
        cells: scores of a block, which bounds the memory; one query is scored whole whatever this says.
    """
    step = max(1, min(most, cells // max(1, videos)))
    for first in range(0, queries, step):
        some = slice(first, min(first + step, queries))
        yield some, scores(some)
