"""Answers, moments before ranking, and where their videos are now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from moviola.library import Catalogue, VideoRow, present_path, taken_of
from moviola.search.notes import Note
from moviola.search.queries import SearchQuery
from moviola.types import Band, CopiedMoment, Moment, Reason, SnippetKind, Span, band_of

__all__ = ["Candidate", "SearchResult", "present_videos", "still_there", "whereabouts"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A moment before ranking.

    Attributes:
        row: row number of its video in the catalogue.
        score: in [0, 1].
        source: evidence that found it: ``"visual"``, the kind of a cue, ``"sound"``, ``"named"`` for a video
            that is known by its name alone, or ``"both"`` for several.
        snippet: matching speech or text, or the name of a sound, if any.
        match: the matching score behind ``score``; orders moments whose scores are equal.
        steps: of a sequence, in order.
        snippet_kind: kind of the snippet's cues; empty without a snippet, and where steps of a sequence quote
            several kinds.
        why: reasons, in any order.
        folded: spans of overlapping moments folded into it, best first.
        copies: moments of other videos that show the same, folded into it.
    """

    row: int
    span: Span
    score: float
    source: str
    snippet: str = ""
    match: float = 0.0
    steps: tuple[Candidate, ...] = ()
    snippet_kind: SnippetKind = ""
    why: tuple[Reason, ...] = ()
    folded: tuple[Span, ...] = ()
    copies: tuple[CopiedMoment, ...] = ()

    @property
    def band(self) -> Band:
        """The band of the score."""
        return band_of(self.score)

    def moment(self, video_id: str, rank: int, by_key_frames: float = inf) -> Moment:
        """The moment of an answer, with its reasons sorted, the strongest first. From the second
        ``by_key_frames`` on its video is known by key frames alone.
        """
        return Moment(
            video_id, self.span.start, self.span.end, self.score, rank, self.source, self.snippet,
            tuple(step.moment(video_id, rank, by_key_frames) for step in self.steps), self.snippet_kind,
            self.band,
            self.folded, tuple(sorted(self.why, key=lambda reason: (-reason.score, reason.kind))),
            self.copies, self.source != "named" and self.span.end > by_key_frames,
        )  # fmt: skip


class SearchResult(list[Moment]):
    """An answer: a list of moments, best first, with ranks from 1.

    Attributes:
        timings: seconds of the stages of :data:`moviola.timing.STAGES` that ran, and ``"total"``; of all
            queries of a batch together.
        videos: number of videos that were searched, those that pass the filter; None where unknown.
        query: the query as it was read; None where unknown.
        notes: on how it was read, and on what is not known.
    """

    def __init__(self, moments: Iterable[Moment] = (), *, confident: bool | None = None) -> None:
        super().__init__(moments)
        self.confident: bool = any(m.strong for m in self) if confident is None else confident
        """Whether a strong moment exists, also where options leave it out. False: nothing is certain."""
        self.timings: dict[str, float] = {}
        self.videos: int | None = None
        self.query: SearchQuery | None = None
        self.notes: tuple[Note, ...] = ()
        self.still: Callable[[str, float], bytes | None] | None = None
        """Gives the small still of a video (WebP) nearest to a time in seconds, for a notebook."""

    def _repr_html_(self) -> str:
        from moviola.search.notebook import as_html

        return as_html(self, map(str, self.notes), confident=self.confident, still=self.still)

    @property
    def strong(self) -> list[Moment]:
        """The strong moments."""
        return self.of_band("strong")

    @property
    def possible(self) -> list[Moment]:
        """The possible moments."""
        return self.of_band("possible")

    @property
    def weak(self) -> list[Moment]:
        """The weak moments."""
        return self.of_band("weak")

    def of_band(self, band: Band) -> list[Moment]:
        """The moments of a band, best first."""
        return [moment for moment in self if moment.band == band]


def still_there(
    found: SearchResult, catalogue: Catalogue
) -> tuple[SearchResult, dict[str, VideoRow], set[str]]:
    """The moments of an answer whose videos still exist: another process may have removed some meanwhile.

    Returns:
        the answer without moments of removed videos, ranked without gaps; the videos by id, each with an
        existing path if there is one; and the ids of those that are away.
    """
    videos, away = present_videos({moment.video_id for moment in found}, catalogue)
    kept = [moment for moment in found if moment.video_id in videos]
    ranked = (replace(moment, rank=rank) for rank, moment in enumerate(kept, 1))
    answer = SearchResult(ranked, confident=found.confident)
    answer.timings, answer.videos = found.timings, found.videos
    answer.query, answer.notes, answer.still = found.query, found.notes, found.still
    return answer, videos, away


def present_videos(video_ids: Collection[str], catalogue: Catalogue) -> tuple[dict[str, VideoRow], set[str]]:
    """Videos that exist, by id, each with an existing path if there is one; and the ids of those that are
    away.
    """
    videos, roots = catalogue.videos_named(video_ids), catalogue.roots()
    away: set[str] = set()
    for video_id, video in videos.items():
        path = present_path(video, catalogue.copies_of(video.row), roots)
        if path is None:
            away.add(video_id)
        else:
            videos[video_id] = replace(video, path=str(path))
    return videos, away


def whereabouts(video: VideoRow, catalogue: Catalogue) -> dict[str, Any]:
    """Facts about a video by name: its paths, whether all are away, its time, place and camera.

    Raises:
        NotFound: the video was removed meanwhile.
    """
    copies, capture = catalogue.copies_of(video.row), catalogue.capture(video.row)
    taken = taken_of(video, capture)
    return {
        "paths": [catalogue.video(video.video_id).path, *(copy.path for copy in copies)],
        "away": present_path(video, copies, catalogue.roots()) is None,
        "taken": str(taken),
        "taken_from": taken.source,
        "taken_zone": taken.zone,
        "latitude": capture.latitude,
        "longitude": capture.longitude,
        "camera": capture.camera,
    }
