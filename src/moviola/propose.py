"""Stage 2 of SPR: neighbouring segment hits become coarse moments (paper, section 3.2). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from moviola.errors import InvalidValue
from moviola.types import Hit, Proposal, Span

__all__ = ["propose"]


@dataclass(slots=True)
class _Run:
    """Hits of one video that belong together: first and last segment position, best rank, its score."""

    first: Hit
    last: Hit
    rank: int
    score: float

    @property
    def length(self) -> int:
        """In segments, gaps included."""
        return self.last.segment.position - self.first.segment.position + 1

    def missing_before(self, other: _Run) -> int:
        """Segments between this run and a later one that were not retrieved."""
        return other.first.segment.position - self.last.segment.position - 1

    def absorb(self, other: _Run) -> None:
        self.last = other.last
        if other.rank < self.rank:
            self.rank, self.score = other.rank, other.score


def _join(runs: Sequence[_Run], gap: int, adaptive_gap: float) -> list[_Run]:
    """Left to right, the left run growing: join where the gap is small enough."""
    joined = [runs[0]]
    for run in runs[1:]:
        left = joined[-1]
        allowed = max(gap, adaptive_gap * (left.length + run.length))
        if left.missing_before(run) <= allowed:
            left.absorb(run)
        else:
            joined.append(run)
    return joined


def propose(hits: Sequence[Hit], *, gap: int = 0, adaptive_gap: float = 0.0) -> list[Proposal]:
    """Merge the segment hits of one query into proposals.

    Args:
        hits: the answer of the index, best first; a segment occurs at most once.
        gap: runs with at most this many missing segments between them are joined too; 0, the paper's
            choice, joins adjacent segments only.
        adaptive_gap: runs are also joined when at most this share of their two lengths (in segments, gaps
            that were already absorbed included) is missing between them; >= 0.

    Returns:
        Proposals, best first. The rank of a proposal is the best rank of its hits, from 1, so ranks of
        absorbed hits are missing; its span runs from the first segment's start to the last one's end.

    Raises:
        InvalidValue: a negative gap.
    """
    if gap < 0 or adaptive_gap < 0:
        raise InvalidValue(f"gap {gap}, adaptive gap {adaptive_gap}: neither may be negative")
    ranked = sorted(
        ((hit.segment.video_id, hit.segment.position, rank, hit) for rank, hit in enumerate(hits, start=1)),
        key=lambda row: row[:2],
    )
    proposals = []
    for video_id, rows in groupby(ranked, key=lambda row: row[0]):
        runs = _join([_Run(hit, hit, rank, hit.score) for _, _, rank, hit in rows], 0, 0.0)
        if gap or adaptive_gap:
            runs = _join(runs, gap, adaptive_gap)
        for run in runs:
            span = Span(run.first.segment.span.start, run.last.segment.span.end)
            proposals.append(Proposal(video_id, span, run.score, run.rank))
    return sorted(proposals, key=lambda proposal: proposal.rank)
