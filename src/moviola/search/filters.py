"""Which videos are looked into, and which moments of them are wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

from moviola.errors import InvalidValue, NotFound
from moviola.library import VideoRow
from moviola.search.times import parse_range, parse_seconds
from moviola.types import Span

__all__ = ["Bounds", "Filter", "Position"]

Bounds = tuple[float | None, float | None]
"""Least and most, both included; None for no limit."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a video: seconds, or a share of its length where ``share`` is set; below 0 from its end."""

    value: float
    share: bool = False

    def seconds(self, duration: float) -> float:
        """Seconds from the start of a video of some length, in [0, duration]."""
        value = self.value * duration if self.share else self.value
        return min(max(value + duration if self.value < 0 else value, 0.0), duration)

    @classmethod
    def parse(cls, text: str, what: str) -> Self:
        """``12.5``, ``1:30``, ``25%``; with ``-`` in front from the end. ``what`` names it in the message."""
        bare = text.strip().removeprefix("-")
        sign = -1 if bare != text.strip() else 1
        if bare.endswith("%"):
            share = parse_seconds(bare[:-1], what) / 100
            if share > 1:
                raise InvalidValue(f"{what} {text!r}: at most 100%")
            return cls(sign * share, True)
        return cls(sign * parse_seconds(bare, what))


@dataclass(frozen=True, slots=True)
class Filter:
    """What an answer may consist of. All that is given must hold.

    Attributes:
        folder: only videos whose files lie in this folder or below; with ``*``, ``?`` or ``[`` a pattern that
            the whole path of a file must match, such as ``*/holiday/*.mov``.
        modified: only videos whose files were last changed between these times; times without a zone are
            local.
        video_length: of the whole video, seconds.
        moment_length: of the moment, seconds.
        where: the moment's middle lies between these positions in its video, the second one excluded. With a
            sequence, that of each step.

    Raises:
        InvalidValue: bounds the wrong way round, negative or no numbers.
    """

    folder: str | None = None
    modified: tuple[datetime | None, datetime | None] = (None, None)
    video_length: Bounds = (None, None)
    moment_length: Bounds = (None, None)
    where: tuple[Position | None, Position | None] = (None, None)

    def __post_init__(self) -> None:
        for name in ("video_length", "moment_length"):
            low, high = getattr(self, name)
            for bound in (low, high):
                if bound is not None and not bound >= 0:
                    raise InvalidValue(f"{name} {bound}: give seconds, 0 or more")
            _require_order(name, low, high)
        since, until = (bound and bound.astimezone() for bound in self.modified)
        _require_order("modified", since, until)
        for bound in self.where:
            if bound is not None and not math.isfinite(bound.value):
                raise InvalidValue(f"where {bound.value}: give finite positions")

    @classmethod
    def parse(
        cls,
        *,
        folder: str | None = None,
        modified: str | None = None,
        video_length: str | None = None,
        moment_length: str | None = None,
        where: str | None = None,
    ) -> Self:
        """From text: ranges are ``LOW..HIGH``, of which one may be left out.

        Args:
            folder: see above.
            modified: ``2024-05-01..2024-05-31``, both days included; times as ``2024-05-01T18:30``.
            video_length, moment_length: ``10..1:30``.
            where: ``0..10%``, ``-1:00..``.

        Raises:
            InvalidValue: something is written otherwise.
        """

        def lengths(text: str | None, what: str) -> Bounds:
            return parse_range(text, what, parse_seconds) if text is not None else (None, None)

        return cls(
            folder=folder,
            modified=_dates(modified) if modified is not None else (None, None),
            video_length=lengths(video_length, "video length"),
            moment_length=lengths(moment_length, "moment length"),
            where=parse_range(where, "where", Position.parse) if where is not None else (None, None),
        )

    @property
    def of_moments(self) -> bool:
        """Whether candidates may be refused that the index has found."""
        return self.moment_length != (None, None) or self.where != (None, None)

    def rows(self, videos: Mapping[int, VideoRow]) -> set[int] | None:
        """Row numbers of the videos to look into; None for all.

        Raises:
            NotFound: no file lies in the folder.
        """
        if (self.folder, self.modified, self.video_length) == (None, (None, None), (None, None)):
            return None
        placed = self._in_folder(videos)
        since, until = (None if bound is None else bound.timestamp() for bound in self.modified)
        return {
            row
            for row in placed
            if _within(videos[row].duration, *self.video_length)
            and _within(videos[row].mtime_ns / 1e9, since, until)
        }

    def _in_folder(self, videos: Mapping[int, VideoRow]) -> set[int]:
        if self.folder is None:
            return set(videos)
        if any(sign in self.folder for sign in "*?["):
            found = {row for row, video in videos.items() if fnmatchcase(video.path, self.folder)}
        else:
            folder = Path(self.folder).expanduser().resolve()
            found = {row for row, video in videos.items() if folder in Path(video.path).parents}
        if not found:
            raise NotFound(
                f"{self.folder}: no video of this library lies there; `moviola list --json` shows the paths"
            )
        return found

    def stretch(self, duration: float) -> tuple[float, float]:
        """Start and end in seconds of where in a video of some length to look."""
        low, high = self.where
        return low.seconds(duration) if low else 0.0, high.seconds(duration) if high else duration

    def is_there(self, span: Span, duration: float) -> bool:
        """Whether a moment lies where it should in a video of some length."""
        if self.where == (None, None):
            return True
        start, end = self.stretch(duration)
        return start <= (span.start + span.end) / 2 < end

    def fits(self, span: Span) -> bool:
        """Whether a moment is as long as it should be."""
        return _within(span.duration, *self.moment_length)


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _require_order(name: str, low: float | datetime | None, high: float | datetime | None) -> None:
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        raise InvalidValue(f"{name} {low}..{high}: the first must not be above the second")


def _dates(text: str) -> tuple[datetime | None, datetime | None]:
    since, until = parse_range(text, "date", _date)
    if until is not None and "T" not in text.partition("..")[2]:
        until = datetime.combine(until.date(), time.max)
    return since, until


def _date(text: str, what: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
        found.astimezone().timestamp()  # years at both ends of the calendar have no time in every zone
        return found
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidValue(
            f"{what} {text!r}: write it as 2024-05-31, or with a time as 2024-05-31T18:30"
        ) from error
