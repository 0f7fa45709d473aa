"""Moments found by pictures, by what is said and by what is written become one ranked answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from moviola.search.found import Found
from moviola.types import Moment

__all__ = ["fused", "ranked"]


def fused(shown: Sequence[Found], said: Sequence[Found]) -> list[Found]:
    """What is said during a moment that is shown adds to it; the stronger evidence keeps its span.

    Evidence of both for the same moment combines as 1 - (1 - shown) (1 - said).

    Args:
        shown: found by pictures, or by cues of other kinds; of one kind, since these are not joined.
        said: found by cues of one kind.
    """
    moments = list(shown)
    by_row: dict[int, list[int]] = defaultdict(list)
    for place, moment in enumerate(moments):
        by_row[moment.row].append(place)
    for spoken in said:
        together = [
            place for place in by_row[spoken.row] if moments[place].span.intersection(spoken.span) > 0
        ]
        if not together:
            moments.append(spoken)
            continue
        place = max(together, key=lambda place: moments[place].score)
        other = moments[place]
        stronger = other if other.score >= spoken.score else spoken
        quoted = stronger if stronger.snippet else spoken
        moments[place] = replace(
            other,
            span=stronger.span,
            score=1 - (1 - other.score) * (1 - spoken.score),
            source="both",
            snippet=quoted.snippet,
            snippet_kind=quoted.snippet_kind,
        )
    return moments


def ranked(
    found: Sequence[Found],
    video_ids: Mapping[int, str],
    *,
    top_k: int,
    per_video: int | None,
    min_score: float,
) -> list[Moment]:
    """The best moments in order, with ranks from 1.

    Of equal scores the one with the larger matching score comes first, then the earlier video id and start.

    Args:
        found: moments in any order.
        video_ids: by row number.
        top_k: at most so many.
        per_video: at most so many of one video; None for no limit.
        min_score: leave out what scores less.
    """

    def order(moment: Found) -> tuple[float, float, str, float]:
        return -moment.score, -moment.match, video_ids[moment.row], moment.span.start

    answer: list[Moment] = []
    shown: dict[int, int] = defaultdict(int)
    for moment in sorted(found, key=order):
        if moment.score < min_score or len(answer) == top_k:
            break
        if per_video is not None and shown[moment.row] == per_video:
            continue
        shown[moment.row] += 1
        answer.append(moment.moment(video_ids[moment.row], len(answer) + 1))
    return answer
