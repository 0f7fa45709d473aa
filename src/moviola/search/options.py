"""Search options, the same for Python, the command line, HTTP and agents; and what a saved search asks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from moviola.errors import InvalidValue
from moviola.search.filters import Filter
from moviola.search.queries import SearchQuery, compose
from moviola.search.times import is_integer, is_number
from moviola.types import CUE_KINDS, CueKind, require_kind, require_kinds, several

if TYPE_CHECKING:
    from moviola.library.kept.values import SavedSearch

__all__ = ["KINDS", "By", "SearchOptions", "asked_by"]

By = Literal["all", "visual", "subtitles", "speech", "said", "text", "named"]
"""Kinds of evidence."""

KINDS: dict[By, tuple[CueKind, ...]] = {
    "all": CUE_KINDS,
    "visual": (),
    "subtitles": ("subtitle",),
    "speech": ("speech",),
    "said": ("subtitle", "speech"),
    "text": ("text",),
    "named": (),
}
"""Kinds of cues that belong to each kind of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Search options.

    Attributes:
        top_k: number of moments, >= 1.
        per_video: maximum number of moments per video, >= 1; None for no limit.
        videos: ids of the videos to search; None for all.
        filter: which videos to search, and which of their moments count. Where few moments pass, up to 12,800
            segments are retrieved to find ``top_k``.
        min_score: minimum score, in [0, 1].
        by: evidence to use: ``"all"`` that the library has, ``"visual"`` pictures, ``"subtitles"``,
            ``"speech"`` (recognised) and ``"text"`` (in pictures) one kind of cues, ``"said"`` subtitles and
            speech, ``"named"`` names of videos (whole videos, then).
        refine: False returns the coarse proposals of stage 2 (visual evidence).
        weak: False omits weak moments, see :data:`moviola.retrieval.STRONG`.

    Raises:
        InvalidValue: a number outside its range, a value of another type, unknown evidence, or one text as
            ``videos``.
    """

    top_k: int = 10
    per_video: int | None = None
    videos: Collection[str] | None = None
    filter: Filter = Filter()  # noqa: RUF009 - immutable
    min_score: float = 0.0
    by: By = "all"
    refine: bool = True
    weak: bool = True

    def __post_init__(self) -> None:
        if not (is_integer(self.top_k, 1) and (self.per_video is None or is_integer(self.per_video, 1))):
            given = f"top_k={self.top_k!r:.200}, per_video={self.per_video!r:.200}"
            raise InvalidValue(f"{given}: give integers; ask for at least one moment")
        if not is_number(self.min_score, 0, 1):
            raise InvalidValue(f"min_score={self.min_score!r:.200}: give a number; scores lie in [0, 1]")
        require_kind("filter", self.filter, Filter, "a Filter; `Filter.parse` reads texts")
        require_kinds(bool, "True or False", refine=self.refine, weak=self.weak)
        if self.by not in [*KINDS]:
            raise InvalidValue(f"by={self.by!r}: choose {', '.join(KINDS)}")
        if self.videos is not None:
            videos = several("videos", self.videos)
            for one in videos:
                require_kind("videos", one, str, "ids of videos")
            object.__setattr__(self, "videos", frozenset(videos))


def asked_by(saved: SavedSearch) -> tuple[SearchQuery, SearchOptions]:
    """The query of a saved search, and its options.

    Raises:
        InvalidValue: it can never run: a part of the query or of the filter cannot be read.
    """
    query = compose(saved.text, then=saved.then, gap=saved.gap, excluded=saved.without)
    known = Filter.__dataclass_fields__
    if unknown := saved.filter.keys() - known.keys():
        raise InvalidValue(f"filter {min(unknown)!r} does not exist; choose {', '.join(known)}")
    return query, SearchOptions(filter=Filter.parse(**saved.filter), by=saved.by)
