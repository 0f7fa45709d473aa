"""Fusion of moments by pictures, speech and text into one ranked answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval.refiners import SAME_MOMENT
from moviola.search.found import Candidate
from moviola.search.options import SearchOptions
from moviola.temporal import fold
from moviola.types import CopiedMoment, Moment, Span

if TYPE_CHECKING:
    from moviola.library.near_copies import KnownCopies

__all__ = ["MOST", "columns_of", "folded", "fused", "ranked", "with_odds_times", "without_copies"]

MOST = 1 - 1e-12
"""Upper limit of a score before its odds are computed."""


def fused(shown: Sequence[Candidate], said: Sequence[Candidate]) -> list[Candidate]:
    """Moments of two kinds of evidence, those that overlap joined.

    Each moment of ``said`` joins the best moment of ``shown`` that it overlaps; moments of one list are never
    joined because they overlap each other. Joined scores combine as 1 - (1 - shown) (1 - said), and the span
    is that of the larger score.
    """
    moments = list(shown)
    by_row: dict[int, list[int]] = defaultdict(list)
    for place, moment in enumerate(moments):
        by_row[moment.row].append(place)
    for spoken in said:
        together = (at for at in by_row[spoken.row] if moments[at].span.intersection(spoken.span) > 0)
        place = max(together, key=lambda at: moments[at].score, default=-1)
        if place < 0:
            moments.append(spoken)
            continue
        other = moments[place]
        stronger = other if other.score >= spoken.score else spoken
        quoted = stronger if stronger.snippet else spoken
        moments[place] = replace(
            other,
            span=stronger.span,
            score=1 - (1 - other.score) * (1 - spoken.score),
            source=other.source if other.source == spoken.source else "both",
            why=(*other.why, *spoken.why),
            snippet=quoted.snippet,
            snippet_kind=quoted.snippet_kind,
        )
    return moments


def with_odds_times(found: Candidate, factor: float) -> Candidate:
    """A moment with its odds p / (1 - p) multiplied; rounding never reverses the direction."""
    score = found.score if factor >= 1 else min(found.score, MOST)
    moved = score * factor / (1 - score + score * factor)
    return replace(found, score=max(score, moved) if factor >= 1 else min(score, moved))


def columns_of(
    found: Sequence[Candidate],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Start and end in seconds, falling numbers, and rows of the videos, of moments that are best first."""
    spans = np.array([(one.span.start, one.span.end) for one in found], np.float64).reshape(-1, 2)
    return *spans.T, -np.arange(len(found)), np.array([one.row for one in found], np.int64)


def folded(found: Sequence[Candidate]) -> list[Candidate]:
    """Of moments, best first, that overlap much in one video or contain one another, the best, in order.

    It keeps the spans of the others. Duplicates come from several proposals, from cuts at the same shots, or
    from fusion with the same words, so this step comes last. A video that is named so is a result of its own,
    beside its moments.
    """
    start, end, order, rows = columns_of(found)
    by_name = np.array([one.source == "named" for one in found], dtype=bool)
    rows = np.where(by_name, -1 - rows, rows)
    stands = fold(start, end, order, SAME_MOMENT, video=rows).tolist()
    others: dict[int, list[Span]] = defaultdict(list)
    for place, best in enumerate(stands):
        if place != best and found[place].span != found[best].span and found[place].span not in others[best]:
            others[best].append(found[place].span)
    return [
        replace(one, folded=tuple(others[place])) if others[place] else one
        for place, one in enumerate(found)
        if stands[place] == place
    ]


def without_copies(
    found: Sequence[Candidate], video_ids: Mapping[int, str], known: KnownCopies
) -> list[Candidate]:
    """Moments, best first, of which those that show the same in several videos are folded into the best."""
    kept: list[Candidate] = []
    places: dict[int, list[int]] = defaultdict(list)
    for moment in found:
        same = [
            place
            for row in known.copies_of(moment.row) & places.keys()
            if (there := known.there(moment.row, moment.span, row))
            for place in places[row]
            if kept[place].span.intersection(there) >= there.duration / 2
        ]
        if same:
            best = kept[min(same)]
            copied = CopiedMoment(video_ids[moment.row], moment.span.start, moment.span.end)
            kept[min(same)] = replace(best, copies=(*best.copies, copied))
        else:
            places[moment.row].append(len(kept))
            kept.append(moment)
    return kept


def ranked(
    found: Sequence[Candidate],
    video_ids: Mapping[int, str],
    options: SearchOptions,
    known: KnownCopies | None = None,
    by_key_frames: Mapping[int, float] = MappingProxyType({}),
) -> list[Moment]:
    """The best moments in order, with ranks from 1, without duplicates.

    Of equal scores the one with the larger matching score comes first, then the earlier video id and start.

    Args:
        found: moments in any order.
        video_ids: by row number.
        options: number and minimum score.
        by_key_frames: seconds from which on videos are known by key frames alone, by row number.
    """
    answer: list[Moment] = []
    shown: dict[int, int] = defaultdict(int)
    different = folded(sorted(found, key=lambda m: (-m.score, -m.match, video_ids[m.row], m.span.start)))
    for moment in without_copies(different, video_ids, known) if known else different:
        if moment.score < options.least_score or len(answer) == options.top_k:
            break
        if options.per_video is not None and shown[moment.row] == options.per_video:
            continue
        shown[moment.row] += 1
        since = by_key_frames.get(moment.row, inf)
        answer.append(moment.moment(video_ids[moment.row], len(answer) + 1, since))
    return answer
