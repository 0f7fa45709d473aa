"""Moment annotations of any data set, as columns; flaws are reported, not dropped silently."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["Annotations", "Collector", "Flaw"]

_ROUNDING = 0.5
"""Seconds by which times of one thing may differ, as files round them."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A flaw of an annotation: its kind, and its place, by name."""

    kind: str
    where: str


LEFT_OUT = frozenset({"missing video", "no extent", "no answer"})
"""Kinds of flaws whose moment or query is left out."""


@dataclass(frozen=True, eq=False)
class Annotations:
    """Videos and the moments described in them.

    Attributes:
        name: of the data set.
        videos: ids, each once, in file order.
        durations: (v,) float64 seconds; NaN where unknown.
        moment_ids: (m,) ids of moments as the data set has them, else "1", "2", … in file order, those that
            are left out counted.
        query_ids: (m,) ids of the queries that the captions are: the moment's own, unless a data set lists
            several moments of a query.
        video: (m,) int64 positions in ``videos``.
        start, end: (m,) float64 seconds as annotated, end > start; NaN where a split hides the answers.
        captions: (m,) sentences.
        types: (m,) TVR's v, t or vt; empty where a data set has no types.
        flaws: flaws by name. A moment beyond its video, without a caption, or with an id that another one
            has, stays unchanged; one of zero length, or in no video, is left out, and so is a query without
            an answer.
    """

    name: str
    videos: tuple[str, ...]
    durations: NDArray[np.float64]
    moment_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    video: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    captions: tuple[str, ...]
    types: tuple[str, ...]
    flaws: tuple[Flaw, ...]

    def __len__(self) -> int:
        return len(self.captions)

    @property
    def flaw_counts(self) -> dict[str, int]:
        """Number of flaws of each kind."""
        return dict(Counter(flaw.kind for flaw in self.flaws))

    @property
    def queries(self) -> tuple[tuple[str, str], ...]:
        """Id and text of each query, once, in the order of the moments."""
        return tuple(dict.fromkeys(zip(self.query_ids, self.captions, strict=True)))

    def require_durations(self) -> None:
        """Raise :class:`InvalidValue` if the duration of a moment's video is unknown."""
        unknown = np.isnan(self.durations[self.video])
        if unknown.any():
            video = self.videos[int(self.video[int(np.argmax(unknown))])]
            raise InvalidValue(
                f"{video}: its duration is unknown; put a file of durations (CSV with id, length) "
                "beside the annotations, as durations.csv"
            )

    def require_different_ids(self) -> None:
        """Raise :class:`InvalidValue` if two moments have the same id."""
        for moment_id, times in Counter(self.moment_ids).most_common(1):
            if times > 1:
                raise InvalidValue(
                    f"{self.name}: moment {moment_id} is given {times} times; give each an id of its own,"
                    " also where files were joined (desc_id of TVR's jsonl)"
                )

    def pair(self, place: int) -> dict[str, Any]:
        """A moment as TVR-Ranking's pair files have it."""
        video = int(self.video[place])
        return {
            "pair_id": self.moment_ids[place], "video_name": self.videos[video],
            "timestamp": [float(self.start[place]), float(self.end[place])],
            "duration": float(self.durations[video]), "caption": self.captions[place],
        }  # fmt: skip

    def select(self, keep: NDArray[np.bool_]) -> Annotations:
        """Only some moments, (m,) bool; all videos stay."""
        columns = {name: getattr(self, name)[keep] for name in ("video", "start", "end")}
        for name in ("moment_ids", "query_ids", "captions", "types"):
            columns[name] = tuple(compress(getattr(self, name), keep))
        return replace(self, **columns)


@dataclass(slots=True)
class Collector:
    """Gathers moments row by row, checks them, and makes :class:`Annotations`.

    ``captioned``: a moment without a caption is a flaw; not so where searches find them.
    """

    name: str
    durations: dict[str, float] = field(default_factory=dict)
    captioned: bool = True
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    given: int = 0

    def add_video(self, video: str, duration: float = math.nan) -> None:
        """Add a video, with its duration in seconds if known; a known one is kept where none is given.

        Where another one is given, that counts, and is a flaw.
        """
        if abs(duration - self.durations.get(video, duration)) > _ROUNDING:
            self.flaws.append(Flaw("other duration", video))
        if not math.isnan(duration) or video not in self.durations:
            self.durations[video] = duration

    def add(
        self,
        video: str,
        start: float,
        end: float,
        caption: str,
        *,
        moment_id: str = "",
        query_id: str = "",
        type: str = "",
    ) -> None:
        """Add a moment of a known video; flaws are recorded. Its query's id is by default its own."""
        self.given += 1
        name = moment_id or str(self.given)
        where = f"{name} ({video})"
        if video not in self.durations:
            self.flaws.append(Flaw("missing video", where))
            return
        if end <= start:
            self.flaws.append(Flaw("no extent", where))
            return
        duration = self.durations[video]
        if end > duration + _ROUNDING or start >= duration:
            self.flaws.append(Flaw("beyond the video", where))
        if self.captioned and not caption.strip():
            self.flaws.append(Flaw("no caption", where))
        self.rows.append((name, query_id or name, video, start, end, caption.strip(), type))

    def add_unanswered(self, query_id: str, video: str) -> None:
        """Record a query that has no moment."""
        self.flaws.append(Flaw("no answer", f"{query_id} ({video})"))

    def made(self) -> Annotations:
        """Everything gathered so far as one table."""
        place = {video: number for number, video in enumerate(self.durations)}
        columns = zip(*self.rows, strict=True) if self.rows else [()] * 7
        moments, queries, videos, starts, ends, captions, types = columns
        twice = [Flaw("same id", name) for name, times in Counter(moments).items() if times > 1]
        return Annotations(
            name=self.name,
            videos=tuple(self.durations),
            durations=np.array(list(self.durations.values()), dtype=np.float64),
            moment_ids=moments,
            query_ids=queries,
            video=np.array([place[video] for video in videos], dtype=np.int64),
            start=np.array(starts, dtype=np.float64),
            end=np.array(ends, dtype=np.float64),
            captions=captions,
            types=types,
            flaws=(*self.flaws, *twice),
        )
