"""Filters: which videos to search, and which of their moments count."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Self

from moviola.errors import InvalidValue, NotFound
from moviola.files.names import composed, folded, nearest
from moviola.library import Catalogue, VideoRow, taken_of
from moviola.search.times import is_number, parse_range, parse_seconds
from moviola.types import Capture, Span, plain_seconds, require_kind

__all__ = ["Bounds", "Filter", "Near", "Position", "absolute_folders", "assumed_distance"]

_PART = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
# Known cameras or tags that an error lists where none is like the unknown one.
_LISTED = 10
_EARTH = 6_371_008.8
"""Metres, mean radius."""
_NEARBY = 1_000.0
_NEAR = re.compile(r"([+-]?\d+(?:\.\d*)?)\s*,\s*([+-]?\d+(?:\.\d*)?)(?:\s*,\s*(\d+(?:\.\d*)?)\s*(km|m)?)?")

Bounds = tuple[float | None, float | None]
"""Minimum and maximum, both included; None for no limit."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a video: seconds, or a share of its length; from the end if negative, ``-0`` included."""

    value: float
    share: bool = False

    def __post_init__(self) -> None:
        require_kind("position", self.value, Real, "a number")

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        return f"{100 * self.value:g}%" if self.share else plain_seconds(float(self.value))

    def seconds(self, duration: float) -> float:
        """Seconds from the start of a video of some length, in [0, duration]."""
        value = self.value * duration if self.share else self.value
        return min(max(value + duration if self.from_end else value, 0.0), duration)

    @property
    def from_end(self) -> bool:
        """Whether it is counted from the end."""
        return math.copysign(1.0, self.value) < 0

    @classmethod
    def parse(cls, text: str, what: str) -> Self:
        """``12.5``, ``1:30``, ``25%``; with ``-`` in front from the end. ``what`` names it in the message."""
        bare = text.strip().removeprefix("-")
        sign = -1 if bare != text.strip() else 1
        if not bare.endswith("%"):
            return cls(sign * parse_seconds(bare, what))
        share = parse_seconds(bare[:-1], what) / 100
        if share > 1:
            raise InvalidValue(f"{what} {text!r}: at most 100%")
        return cls(sign * share, True)


@dataclass(frozen=True, slots=True)
class Near:
    """At most ``metres`` from a point, in degrees north and east, on a spherical earth.

    Raises:
        InvalidValue: impossible coordinates, or a distance that is no number above 0.
    """

    latitude: float
    longitude: float
    metres: float = _NEARBY

    def __post_init__(self) -> None:
        for name in ("latitude", "longitude", "metres"):
            require_kind(name, getattr(self, name), Real, "a number")
        if not (abs(self.latitude) <= 90 and abs(self.longitude) <= 180 and 0 < self.metres < math.inf):
            raise InvalidValue(
                f"near {self.latitude:g},{self.longitude:g},{self.metres:g}m: give degrees north (-90 to 90) "
                "and east (-180 to 180), and a distance above 0"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """``52.52,13.40,5km`` or ``52.52,13.40,300m``; a number alone are kilometres, no distance 1 km."""
        require_kind("near", text, str, "a text, 52.52,13.40,5km")
        match = _NEAR.fullmatch(text.strip())
        if not match:
            raise InvalidValue(f"near {text!r}: write degrees north, degrees east, distance: 52.52,13.40,5km")
        north, east, distance, unit = match.groups()
        metres = float(distance) * (1.0 if unit == "m" else 1000.0) if distance else _NEARBY
        return cls(float(north), float(east), metres)

    def holds(self, capture: Capture) -> bool:
        """Whether a video was taken there; False where its place is unknown."""
        if capture.latitude is None or capture.longitude is None:
            return False
        here, there = math.radians(self.latitude), math.radians(capture.latitude)
        across = math.radians(capture.longitude - self.longitude)
        # The haversine formula; the mean radius of the earth.
        half = math.sin((there - here) / 2) ** 2
        half += math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
        return 2 * _EARTH * math.asin(min(1.0, math.sqrt(half))) <= self.metres


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on an answer; all that are given must hold.

    There may be several folders, cameras and tags, one a line: one of them is enough.

    Attributes:
        folder: only videos in this folder or below; with ``*``, ``?`` or ``[`` also a pattern for the whole
            path of a file, such as ``*/holiday/*.mov``. A path becomes its text.
        modified: only videos whose files were last changed between these times; local times without a zone.
        video_length, moment_length: seconds.
        taken: only videos taken between these times, see :mod:`moviola.library.disk.captures`; times without
            a zone are compared with local clock times.
        near: only videos taken within a distance of a point.
        camera: only videos of cameras whose make and model contain this, case ignored; with ``*``, ``?`` or
            ``[`` a pattern for all of it; after ``=`` all of it as it stands.
        tag: only videos that bear this tag, as a whole or on a moment, case ignored.
        where: only moments whose middle is between these positions in the video, the second one excluded; in
            a sequence each step.

    Raises:
        InvalidValue: bounds the wrong way round, negative or no numbers; an empty text; a value of
            another type.
    """

    folder: str | os.PathLike[str] | None = None
    modified: tuple[datetime | None, datetime | None] = (None, None)
    video_length: Bounds = (None, None)
    moment_length: Bounds = (None, None)
    taken: tuple[datetime | None, datetime | None] = (None, None)
    near: Near | None = None
    camera: str | None = None
    tag: str | None = None
    where: tuple[Position | None, Position | None] = (None, None)

    def __post_init__(self) -> None:
        if isinstance(self.folder, os.PathLike):
            object.__setattr__(self, "folder", os.fspath(self.folder))
        self._require_kinds()
        for name in ("folder", "camera", "tag"):
            if (text := getattr(self, name)) is not None and not text.strip():
                raise InvalidValue(f"{name} {text!r}: empty; name one, or leave it out")
        for name in ("video_length", "moment_length"):
            for bound in getattr(self, name):
                if bound is not None and not is_number(bound, 0):
                    raise InvalidValue(f"{name} {bound!r:.200}: give seconds, 0 or more")
            _require_order(name, *getattr(self, name))
        for name in ("modified", "taken"):
            first, last = getattr(self, name)
            try:
                bounds = [bound and bound.astimezone() for bound in (first, last)]
            except (ValueError, OverflowError, OSError) as error:
                # The first and the last year do not exist in every zone.
                raise InvalidValue(f"{name} {first}..{last}: give years from 0002 to 9998") from error
            _require_order(name, *bounds)
        for bound in self.where:
            if bound is not None and not math.isfinite(bound.value):
                raise InvalidValue(f"where {bound.value}: give finite positions")
        low, high = self.where
        # Others depend on the length of a video.
        alike = low and high and (low.share, low.from_end) == (high.share, high.from_end)
        if low and high and alike and low.value > high.value:
            raise InvalidValue(f"where {low}..{high}: the first must not be above the second")

    def _require_kinds(self) -> None:
        for name in ("modified", "taken", "where", "video_length", "moment_length"):
            pair = getattr(self, name)
            if not (isinstance(pair, Sequence) and len(pair) == 2):
                raise InvalidValue(f"{name} {pair!r:.200}: give two bounds; None is no limit")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            # A text is a sequence, of letters.
            pair = isinstance(value, Sequence) and kind is not str and not isinstance(value, str)
            for one in value if pair else (value,):
                if one is not None:
                    require_kind(name, one, kind, f"a {kind.__name__}; `Filter.parse` reads texts")

    @classmethod
    def parse(
        cls,
        *,
        folder: str | None = None,
        modified: str | None = None,
        video_length: str | None = None,
        moment_length: str | None = None,
        taken: str | None = None,
        near: str | None = None,
        camera: str | None = None,
        tag: str | None = None,
        where: str | None = None,
    ) -> Self:
        """From text: ranges are ``LOW..HIGH``, with one of them optional.

        Args:
            folder, camera, tag: see above.
            modified, taken: ``2021..2023-05``, both included whole; ``2023-05`` alone; with times
                ``2024-05-01T18:30..``.
            video_length, moment_length: ``10..1:30``.
            near: ``52.52,13.40,5km``: degrees north and east, and a distance; 1 km without one.
            where: ``0..10%``, ``-1:00..``.

        Raises:
            InvalidValue: another form.
        """
        return cls(
            folder=folder,
            modified=_periods(modified, "modified"),
            video_length=parse_range(video_length, "video length", parse_seconds),
            moment_length=parse_range(moment_length, "moment length", parse_seconds),
            taken=_periods(taken, "taken"),
            near=None if near is None else Near.parse(near),
            camera=camera,
            tag=tag,
            where=parse_range(where, "where", Position.parse),
        )

    @property
    def of_moments(self) -> bool:
        """Whether the filter can reject candidates that the index found."""
        return self.moment_length != (None, None) or self.where != (None, None)

    def rows(
        self,
        videos: Mapping[int, VideoRow],
        catalogue: Catalogue | None = None,
        tagged: Mapping[str, Collection[str]] | None = None,
    ) -> set[int] | None:
        """Row numbers of the videos to search, of those given by row number; None for all.

        Args:
            catalogue: holds further paths, and when and where videos were taken; None: these are unknown.
            tagged: ids of videos by tag; None: nothing is tagged.

        Raises:
            NotFound: no file lies in the folder, no video was taken with the camera, or none bears the tag.
        """
        if self == Filter(moment_length=self.moment_length, where=self.where):
            return None
        placed = self._in_folder(videos, catalogue)
        if (self.taken, self.near, self.camera) != ((None, None), None, None):
            captures = catalogue.captures() if catalogue else {}
            if self.camera is not None:
                self._require_camera({capture.camera for capture in captures.values()} - {""})
            placed = {row for row in placed if self._is_of(videos[row], captures.get(row, Capture()))}
        if self.tag is not None:
            bearing = self._bearing(tagged or {})
            placed = {row for row in placed if videos[row].video_id in bearing}
        since, until = (None if bound is None else bound.timestamp() for bound in self.modified)
        return {
            row
            for row in placed
            if _within(videos[row].duration, *self.video_length)
            and _within(videos[row].mtime_ns / 1e9, since, until)
        }

    def _is_of(self, video: VideoRow, capture: Capture) -> bool:
        """Whether a video's time, place and camera satisfy the filter."""
        if self.taken != (None, None):
            taken = taken_of(video, capture)
            for bound, sign in zip(self.taken, (1, -1), strict=True):
                if bound is not None:
                    ours = taken.instant if bound.tzinfo else taken.wall
                    if sign * (ours - bound).total_seconds() < 0:
                        return False
        if self.near is not None and not self.near.holds(capture):
            return False
        return self._is_by(capture.camera)

    def _is_by(self, camera: str) -> bool:
        return self.camera is None or any(
            _is_camera(folded(camera), wanted) for wanted in _lines(folded(self.camera))
        )

    def _require_camera(self, known: Collection[str]) -> None:
        if not any(map(self._is_by, known)):
            assert self.camera is not None
            raise _unknown("camera", self.camera, "was taken with it", known)

    def _bearing(self, tagged: Mapping[str, Collection[str]]) -> set[str]:
        """Ids of the videos with one of the tags."""
        assert self.tag is not None
        wanted = {folded(tag) for tag in _lines(self.tag)}
        bearing = [videos for tag, videos in tagged.items() if folded(tag) in wanted]
        if not bearing:
            raise _unknown("tag", self.tag, "bears it", tagged)
        return {video for videos in bearing for video in videos}

    def _in_folder(self, videos: Mapping[int, VideoRow], catalogue: Catalogue | None) -> set[int]:
        if self.folder is None:
            return set(videos)
        copies = catalogue.copies() if catalogue else ()
        paths = chain(
            ((row, video.path) for row, video in videos.items()),
            ((copy.video, copy.path) for copy in copies if copy.video in videos),
        )
        lines = _lines(str(self.folder))
        patterns = [composed(line) for line in lines if _is_pattern(line)]
        # A folder's name may look like a pattern.
        folders = tuple(_compared(str(_resolved(line))).rstrip(os.sep) + os.sep for line in lines)
        found = {
            row
            for row, path in paths
            if _compared(path).startswith(folders)
            or any(fnmatchcase(composed(path), pattern) for pattern in patterns)
        }
        if not found:
            raise NotFound(
                f"{self.folder!s:.200}: no video of this library is in this folder; "
                "`moviola list --json` shows the paths"
            )
        return found

    def stretch(self, duration: float) -> tuple[float, float]:
        """Start and end in seconds of the part of a video to search."""
        low, high = self.where
        return low.seconds(duration) if low else 0.0, high.seconds(duration) if high else duration

    def is_there(self, span: Span, duration: float) -> bool:
        """Whether a moment is in the allowed part of a video."""
        start, end = self.stretch(duration)
        return self.where == (None, None) or start <= (span.start + span.end) / 2 < end

    def fits(self, span: Span) -> bool:
        """Whether a moment has the allowed length."""
        return _within(span.duration, *self.moment_length)


def absolute_folders(text: str) -> str:
    """The folders of a filter, one a line, as they are meant in the working directory; patterns stay.

    Raises:
        NotFound: links that cannot be followed.
    """
    lines = [(line, _resolved(line)) for line in _lines(text)]
    return "\n".join(line if _is_pattern(line) and not path.is_dir() else str(path) for line, path in lines)


def assumed_distance(near: str | None) -> str:
    """A note on a place, as text of :meth:`Filter.parse`, that has no distance; else an empty text."""
    if near is None or near.count(",") != 1:
        return ""
    return f"near {near}: at most {_NEARBY / 1000:g} km away; another distance: {near},5km"


def _resolved(folder: str) -> Path:
    """A folder without links. ``~`` is the user's own home; other users' homes are not resolved."""
    path = Path(folder)
    try:
        return (path.expanduser() if path.parts[:1] == ("~",) else path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(
            f"{folder!r:.200}: its links cannot be followed ({error!s:.200}); name a folder of videos"
        ) from error


def _unknown(name: str, given: str, does: str, known: Collection[str]) -> NotFound:
    """The error for cameras or tags none of which is in the library."""
    spelt = list({folded(one): one for one in sorted(known)}.values())
    near = [one for line in _lines(given) for one in nearest(line, spelt)]
    listed = spelt[:_LISTED]
    if len(spelt) > _LISTED:
        listed.append(f"{len(spelt) - _LISTED:,} more")
    hint = f"known ones are {', '.join(listed)}" if known else f"no {name} is known yet"
    if near:
        hint = f"did you mean {', '.join(near)}?"
    return NotFound(f"{name} {given!r:.200}: no video of this library {does}; {hint}")


def _lines(text: str) -> list[str]:
    """What stands on the lines of a text, without spaces around."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _compared(path: str) -> str:
    """A path, equal to others that differ only as the system or people write it."""
    return os.path.normcase(composed(path))


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _is_camera(camera: str, wanted: str) -> bool:
    if wanted.startswith("="):
        return camera == wanted[1:]
    return fnmatchcase(camera, wanted) if _is_pattern(wanted) else wanted in camera


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


_KINDS: dict[str, type] = {
    "folder": str, "near": Near, "camera": str, "tag": str, "modified": datetime, "taken": datetime,
    "where": Position,
}  # fmt: skip


def _require_order(name: str, low: float | datetime | None, high: float | datetime | None) -> None:
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        raise InvalidValue(f"{name} {low}..{high}: the first must not be above the second")


def _periods(text: str | None, what: str) -> tuple[datetime | None, datetime | None]:
    """Times of ``FROM..TO``, or of one period; years, months and days count whole."""
    if text is not None:
        require_kind(what, text, str, "a text, FROM..TO")
    if text is not None and ".." not in text:
        text = f"{text}..{text}"
    since, until = parse_range(text, what, _period)
    return since and since[0], until and until[1]


def _period(text: str, what: str) -> tuple[datetime, datetime]:
    """The first and the last moment of a year, a month, a day, or a time."""
    match = _PART.fullmatch(text.strip())
    try:
        if not match:
            moment = datetime.fromisoformat(text.strip())
            return moment, moment
        year, month, day = match.groups()
        first = datetime(int(year), int(month or 1), int(day or 1))
        if day:
            after = first + timedelta(days=1)
        elif month:
            after = (first + timedelta(days=32)).replace(day=1)
        else:
            after = first.replace(year=first.year + 1)
    except (ValueError, OverflowError) as error:
        remedy = "write it as 2024-05-31, or with a time as 2024-05-31T18:30"
        if match:
            remedy = "no such day; write 2021, 2023-05 or 2023-05-31"
        raise InvalidValue(f"{what} {text!r}: {remedy}") from error
    return first, after - timedelta(microseconds=1)
