"""How a query is answered: one set of options for Python, the command line, HTTP and agents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from moviola.errors import InvalidValue
from moviola.search.filters import Filter
from moviola.types import CUE_KINDS, CueKind

__all__ = ["KINDS", "By", "SearchOptions"]

By = Literal["all", "visual", "subtitles", "speech", "said", "text"]
"""Which evidence to use."""

KINDS: dict[By, tuple[CueKind, ...]] = {
    "all": CUE_KINDS,
    "visual": (),
    "subtitles": ("subtitle",),
    "speech": ("speech",),
    "said": ("subtitle", "speech"),
    "text": ("text",),
}
"""Which cues each kind of evidence looks at."""


_EVERYTHING = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How a query is answered.

    Attributes:
        top_k: number of moments, >= 1.
        per_video: number of moments of one video, >= 1; None for no limit.
        videos: ids of the videos to look into; None for all.
        filter: which videos to look into, and which of their moments are wanted. Where few moments pass, up
            to 12,800 segments are retrieved to find ``top_k``.
        min_score: least score, in [0, 1].
        by: evidence to use: ``"all"`` that the library has, ``"visual"`` its pictures,
            ``"subtitles"``, ``"speech"`` (recognised) and ``"text"`` (in pictures) one kind of cues,
            ``"said"`` subtitles and speech.
        refine: False gives the coarse proposals of stage 2 (visual evidence).
        weak: False leaves out weak moments, see :data:`moviola.retrieval.STRONG`.

    Raises:
        InvalidValue: a number outside its range, or unknown evidence.
    """

    top_k: int = 10
    per_video: int | None = None
    videos: Collection[str] | None = None
    filter: Filter = _EVERYTHING
    min_score: float = 0.0
    by: By = "all"
    refine: bool = True
    weak: bool = True

    def __post_init__(self) -> None:
        if self.top_k < 1 or (self.per_video is not None and self.per_video < 1):
            raise InvalidValue(f"top_k={self.top_k}, per_video={self.per_video}: ask for at least one moment")
        if not 0 <= self.min_score <= 1:
            raise InvalidValue(f"min_score={self.min_score}: scores lie in [0, 1]")
        if self.by not in KINDS:
            raise InvalidValue(f"by={self.by!r}: choose {', '.join(KINDS)}")
        if self.videos is not None:
            object.__setattr__(self, "videos", frozenset(self.videos))
