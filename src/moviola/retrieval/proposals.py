"""Stage 2 of SPR: neighbouring segment hits become coarse moments (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.features import Integers, VideoFeatures
from moviola.retrieval.segments import segment_spans
from moviola.temporal import places_in_groups

__all__ = [
    "APART", "MERGES", "ByQuery", "Hits", "Proposals", "cut_at_shots", "merged_apart", "offsets_of",
    "propose",
]  # fmt: skip

# Among few segments 200 are a large share, and merging them all makes long proposals: only the best hits, one
# in a hundred segments, merge with each other; the rest merge among themselves. From 20,000 segments on that
# is all of them, as in the paper. Of fewer than 2,000 it is 20, of fewer than 80 a quarter: in a single video
# of a minute 20 would be all of it (benchmarks/one_video.json).
_MERGED_SHARE, _MERGED_LEAST, _SHARE_OF_FEW = 0.01, 20, 0.25


@dataclass(frozen=True)
class Hits:
    """The segments retrieved for Q queries, K each, best first.

    Attributes:
        video: (Q, K) int64, places of videos.
        position: (Q, K) int64, of the segment in its video.
        score: (Q, K) float32, falling along each row; -inf where a query has fewer hits.
        searched: number of segments that were searched.
    """

    video: Integers
    position: Integers
    score: NDArray[np.float32]
    searched: int

    def of(self, query: int) -> Hits:
        """Those of one query by its place."""
        own = slice(query, query + 1)
        return Hits(self.video[own], self.position[own], self.score[own], self.searched)


def offsets_of(query: Integers, queries: int) -> Integers:
    """:attr:`ByQuery.offsets` (Q + 1,) int64 of rows whose query numbers (N,) rise."""
    return np.concatenate([[0], np.cumsum(np.bincount(query, minlength=queries))]).astype(np.int64)


@dataclass(frozen=True)
class ByQuery:
    """Columns of N rows for Q queries, in the order of the queries.

    Attributes:
        offsets: (Q + 1,) int64; those of query q are rows ``offsets[q]`` to ``offsets[q + 1]``.
    """

    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def query(self) -> Integers:
        """(N,) int64, the query of each row."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def rows(self, query: int) -> slice:
        """The rows of a query by its place."""
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))


@dataclass(frozen=True)
class Proposals(ByQuery):
    """Coarse moments of Q queries as columns, by query, best first.

    Attributes:
        video: (N,) int64, places of videos.
        start, end: (N,) float64 seconds.
        score: (N,) float32, the similarity of the best hit.
        rank: (N,) int64, its rank among the query's hits, from 1; ranks of absorbed hits are missing.
    """

    video: Integers
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    score: NDArray[np.float32]
    rank: Integers

    def of(self, query: int) -> Proposals:
        """Those of one query by its place."""
        rows = self.rows(query)
        columns = (self.video, self.start, self.end, self.score, self.rank)
        offsets = np.array([0, rows.stop - rows.start])
        return Proposals(offsets, *(column[rows] for column in columns))  # type: ignore[arg-type]

    @classmethod
    def of_columns(
        cls,
        query: Sequence[int] | Integers,
        video: Sequence[int] | Integers,
        start: Sequence[float] | NDArray[np.float64],
        end: Sequence[float] | NDArray[np.float64],
        score: Sequence[float] | NDArray[np.floating],
        *,
        queries: int,
    ) -> Proposals:
        """From rows in order of rank within each query; ranks are counted from 1."""
        query_row = np.asarray(query, dtype=np.int64)
        order = np.argsort(query_row, kind="stable")
        offsets = offsets_of(query_row, queries)
        rank = np.arange(len(query_row)) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
        return cls(
            offsets, np.asarray(video, np.int64)[order], np.asarray(start, np.float64)[order],
            np.asarray(end, np.float64)[order], np.asarray(score, np.float32)[order], rank,
        )  # fmt: skip


def merged_apart(segments: int) -> int:
    """Number of best hits that merge with each other, where ``segments`` segments were searched."""
    least = min(_MERGED_LEAST, max(1, round(_SHARE_OF_FEW * segments)))
    return max(least, round(_MERGED_SHARE * segments))


def merged_all(segments: int) -> None:
    """None, which merges all hits with each other, as in the paper."""


APART = "apart"
MERGES: dict[str, Callable[[int], int | None]] = {APART: merged_apart, "paper": merged_all}
"""Which hits merge with each other, by name: ``apart`` of :func:`propose` by the number of searched segments.

From 20,000 segments on both are the same for 200 hits.
"""


def propose(
    hits: Hits,
    features: VideoFeatures,
    segment_clips: int,
    *,
    gap: int = 0,
    adaptive_gap: float = 0,
    apart: int | None = None,
) -> Proposals:
    """Merge the segment hits of each query into proposals.

    Args:
        hits: a segment occurs at most once for a query.
        segment_clips: T, clips of a segment.
        gap: runs with at most this many missing segments between them are joined; 0, the paper's choice,
            joins adjacent segments only.
        adaptive_gap: α; runs with at most α times as many missing segments between them as both are long
            are joined too, from left to right, while the left one grows. The third rule of the released
            code, which the paper does not use.
        apart: this many best hits merge only with each other, and the others only with each other; None
            merges all. See :func:`merged_apart`.

    Returns:
        The rank of a proposal is the best rank of its hits, its score that hit's; its span runs from the
        start of its first segment to the end of its last one.

    Raises:
        InvalidValue: a negative gap.
    """
    if gap < 0 or not adaptive_gap >= 0:
        raise InvalidValue(f"gap {gap}, adaptive gap {adaptive_gap}: must not be negative")
    queries, depth = hits.score.shape
    there = np.isfinite(hits.score).reshape(-1)
    query = np.repeat(np.arange(queries), depth)[there]
    rank = np.tile(np.arange(1, depth + 1), queries)[there]
    video, position = hits.video.reshape(-1)[there], hits.position.reshape(-1)[there]
    rest = (rank > (depth if apart is None else apart)).astype(np.int64)
    order = np.lexsort((position, video, rest, query))
    groups = np.stack([query, rest, video])[:, order]
    apart_from_last = np.ones(len(order), dtype=np.bool_)
    apart_from_last[1:] = (np.diff(groups, axis=1) != 0).any(axis=0)
    new = apart_from_last.copy()
    new[1:] |= np.diff(position[order]) > gap + 1
    first = np.flatnonzero(new)
    if not len(first):
        return Proposals.of_columns([], [], [], [], [], queries=queries)
    if adaptive_gap:
        first = _joined(first, apart_from_last, position[order], adaptive_gap)
    last = np.append(first[1:], len(order)) - 1
    best = np.minimum.reduceat(rank[order], first)
    run_query = query[order][first]
    start, end = segment_spans(
        features, video[order][first], position[order][first], position[order][last], segment_clips
    )
    at = np.lexsort((best, run_query))
    run_query, best = run_query[at], best[at]
    return Proposals(
        offsets_of(run_query, queries), video[order][first][at], start[at], end[at],
        hits.score[run_query, best - 1], best,
    )  # fmt: skip


def _joined(first: Integers, apart: NDArray[np.bool_], position: Integers, adaptive_gap: float) -> Integers:
    """Places (m,) where runs begin once those that are near for their lengths are joined.

    Args:
        first: (n,), n >= 1, where runs of adjacent segments begin.
        apart: (hits,) bool, whether a hit is of another query or video than the one before.
        position: (hits,), of the segments, rising within a video.
    """
    opens, closes = position[first], position[np.append(first[1:], len(position)) - 1]
    begins = [0]
    for run in range(1, len(first)):
        both = (closes[run - 1] - opens[begins[-1]] + 1) + (closes[run] - opens[run] + 1)
        if apart[first[run]] or opens[run] - closes[run - 1] - 1 > adaptive_gap * both:
            begins.append(run)
    return first[begins]


def cut_at_shots(proposals: Proposals, features: VideoFeatures, longest: float) -> Proposals:
    """Proposals snapped to shots: every shot that a proposal touches, once per query.

    Of a shot of more than ``longest`` seconds only what the proposal covers is taken, and videos of one shot
    keep their proposals. A piece has the score and the rank of the best proposal that touches it.
    """
    if features.shots is None:
        return proposals
    videos, own = np.unique(proposals.video, return_inverse=True)
    offsets, edges = features.shot_edges_of(videos)
    shots = np.diff(offsets)[own] - 1
    first = np.maximum(places_in_groups(edges, offsets, own, proposals.start, "right") - 1, 0)
    stop = np.minimum(places_in_groups(edges, offsets, own, proposals.end), shots)
    counts = np.where(shots == 1, 1, np.maximum(stop - first, 0))
    row = np.repeat(np.arange(len(own)), counts)
    shot = (offsets[own] + first)[row] + np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    opens, closes = edges[shot], edges[np.minimum(shot + 1, len(edges) - 1)]
    start, end = proposals.start[row], proposals.end[row]
    long, alone = closes - opens > longest, shots[row] == 1
    opens = np.where(alone, start, np.where(long, np.maximum(opens, start), opens))
    closes = np.where(alone, end, np.where(long, np.minimum(closes, end), closes))
    keep = alone | _first_of_equals(proposals.query[row], proposals.video[row], opens, closes)
    row = row[keep]
    return Proposals(
        np.searchsorted(proposals.query[row], np.arange(len(proposals) + 1)),
        proposals.video[row], opens[keep], closes[keep], proposals.score[row], proposals.rank[row],
    )  # fmt: skip


def _first_of_equals(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """(n,) bool, whether no row before has the same values in all columns (n,)."""
    order = np.lexsort(columns)
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    first = np.empty(len(order), np.bool_)
    first[order] = new
    return first
