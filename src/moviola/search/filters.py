"""Filters: which videos to search, and which of their moments count."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from moviola.errors import InvalidValue, NotFound
from moviola.files.names import composed, folded, nearest
from moviola.search.fields import Field, Scope, declared, fields_of
from moviola.search.forms import (
    LINES,
    PATHS,
    PLACE,
    POSITIONS,
    SECONDS,
    TIMES,
    Bounds,
    Near,
    Position,
    lines_of,
)
from moviola.types import Span

if TYPE_CHECKING:
    from moviola.library import Catalogue, VideoRow

__all__ = ["FILTERS", "Filter", "absolute_folders"]

# Known cameras or tags that an error lists where none is like the unknown one.
_LISTED = 10


# -- what passes ---------------------------------------------------------------------------------------------


def _in_folder(folder: str, scope: Scope) -> set[int]:
    copies = scope.catalogue.copies() if scope.catalogue else ()
    paths = chain(
        ((row, video.path) for row, video in scope.videos.items()),
        ((copy.video, copy.path) for copy in copies if copy.video in scope.videos),
    )
    lines = lines_of(folder)
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
            f"{folder:.200}: no video of this library is in this folder; "
            "`moviola list --json` shows the paths"
        )
    return found


def _modified(bounds: tuple[datetime | None, datetime | None], scope: Scope) -> set[int]:
    since, until = (None if bound is None else bound.timestamp() for bound in bounds)
    return {row for row, video in scope.videos.items() if _within(video.mtime_ns / 1e9, since, until)}


def _taken(bounds: tuple[datetime | None, datetime | None], scope: Scope) -> set[int]:
    from moviola.library import taken_of

    def holds(row: int, video: VideoRow) -> bool:
        taken = taken_of(video, scope.capture(row))
        for bound, sign in zip(bounds, (1, -1), strict=True):
            if bound is not None:
                ours = taken.instant if bound.tzinfo else taken.wall
                if sign * (ours - bound).total_seconds() < 0:
                    return False
        return True

    return {row for row, video in scope.videos.items() if holds(row, video)}


def _near(near: Near, scope: Scope) -> set[int]:
    return {row for row in scope.videos if near.holds(scope.capture(row))}


def _by_camera(camera: str, scope: Scope) -> set[int]:
    wanted = lines_of(folded(camera))

    def holds(known: str) -> bool:
        return any(_is_camera(folded(known), one) for one in wanted)

    known = {capture.camera for capture in scope.captures.values()} - {""}
    if not any(map(holds, known)):
        raise _unknown("camera", camera, "was taken with it", known)
    return {row for row in scope.videos if holds(scope.capture(row).camera)}


def _tagged(tag: str, scope: Scope) -> set[int]:
    wanted, tagged = {folded(one) for one in lines_of(tag)}, scope.tagged()
    bearing = [videos for one, videos in tagged.items() if folded(one) in wanted]
    if not bearing:
        raise _unknown("tag", tag, "bears it", tagged)
    ids = {video for videos in bearing for video in videos}
    return {row for row, video in scope.videos.items() if video.video_id in ids}


def _long(bounds: Bounds, scope: Scope) -> set[int]:
    return {row for row, video in scope.videos.items() if _within(video.duration, *bounds)}


def _lasting(bounds: Bounds, span: Span) -> bool:
    return _within(span.duration, *bounds)


# -- the filter ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on an answer; all that are given must hold.

    There may be several folders, cameras and tags, one a line: one of them is enough.

    Raises:
        InvalidValue: bounds the wrong way round, negative or no numbers; an empty text; a value of
            another type.
    """

    folder: str | os.PathLike[str] | None = declared(
        PATHS,
        "Files below a folder, or a pattern: `*/beach/*.mov`.",
        rows=_in_folder, label="Folder", short="in", example="*/holiday/*",
    )  # fmt: skip
    """Only videos in this folder or below; with ``*``, ``?`` or ``[`` also a pattern for the whole path of a
    file."""
    modified: tuple[datetime | None, datetime | None] = declared(
        TIMES,
        "Last change: 2024-05..2024-06-15.",
        rows=_modified, label="Last change", short="changed", example="2024-05-01..2024-05-31",
    )  # fmt: skip
    """Only videos whose files were last changed between these times; local times without a zone."""
    video_length: Bounds = declared(
        SECONDS,
        "Length of the video: 60.. or ..10:00.",
        rows=_long, label="Length of the video", short="video", unit="s", example="60..10:00",
    )  # fmt: skip
    """Seconds."""
    taken: tuple[datetime | None, datetime | None] = declared(
        TIMES,
        "Date of recording: 2021..2023-05.",
        rows=_taken, label="When it was taken", short="taken", example="2021..2023-05",
    )  # fmt: skip
    """Only videos taken between these times, see :mod:`moviola.library.disk.captures`; times without a zone
    are compared with local clock times."""
    near: Near | None = declared(
        PLACE,
        "Videos taken there: 52.52,13.40,300m; 1km by default.",
        rows=_near, label="Place", short="near", example="52.52,13.40,5km",
    )  # fmt: skip
    """Only videos taken within a distance of a point."""
    camera: str | None = declared(
        LINES,
        "Part of the camera's make and model: 'iphone 15'.",
        rows=_by_camera, label="Camera", short="camera", example="iphone 15",
    )  # fmt: skip
    """Only videos of cameras whose make and model contain this, case ignored; with ``*``, ``?`` or ``[`` a
    pattern for all of it; after ``=`` all of it as it stands."""
    tag: str | None = declared(
        LINES,
        "Videos with this tag, as a whole or on a moment.",
        rows=_tagged, label="Tags", short="tagged", example="favourite",
    )  # fmt: skip
    """Case ignored."""
    moment_length: Bounds = declared(
        SECONDS,
        "Length of the moment: 5..30.",
        moment=_lasting, label="Length of the moment", short="moment", unit="s", example="2..30",
    )  # fmt: skip
    """Seconds."""
    where: tuple[Position | None, Position | None] = declared(
        POSITIONS,
        "Part of each video: 0..10%, or -1:00.. for its last minute.",
        label="Where in the video", short="at", example="0..50%",
    )  # fmt: skip
    """Only moments whose middle is between these positions in the video, the second one excluded; in a
    sequence each step."""

    def __post_init__(self) -> None:
        for field in FILTERS.values():
            object.__setattr__(self, field.name, field.checked(getattr(self, field.name)))

    @classmethod
    def parse(cls, **texts: str | None) -> Self:
        """From texts by name, as on the command line; None asks for nothing.

        Ranges are ``LOW..HIGH``, with one of them optional: ``video_length="10..1:30"``,
        ``where="0..10%"``, ``where="-1:00.."``. Times are ``2021..2023-05``, both included whole,
        ``2023-05`` alone, or with a time of day ``2024-05-01T18:30..``. A place is ``52.52,13.40,5km``:
        degrees north and east, and a distance; 1 km without one.

        Raises:
            InvalidValue: another form, or no such filter. Its ``place`` is the name.
        """
        if unknown := texts.keys() - FILTERS.keys():
            raise InvalidValue(f"filter {min(unknown)!r} does not exist; choose {', '.join(FILTERS)}")
        return cls(**{name: FILTERS[name].value(text) for name, text in texts.items() if text is not None})

    def texts(self) -> dict[str, str]:
        """The conditions by name, as texts that :meth:`parse` reads as an equal filter."""
        return {field.name: field.form.written(value) for field, value in self._given()}

    def _given(self) -> list[tuple[Field, Any]]:
        """The fields that ask for something, with their values."""
        given = [(field, getattr(self, field.name)) for field in FILTERS.values()]
        return [(field, value) for field, value in given if value != field.default]

    @property
    def of_moments(self) -> bool:
        """Whether the filter can reject candidates that the index found."""
        return any(field.rows is None for field, _ in self._given())

    def rows(
        self,
        videos: Mapping[int, VideoRow],
        catalogue: Catalogue | None = None,
        tagged: Callable[[], Mapping[str, Collection[str]]] = dict,
    ) -> set[int] | None:
        """Row numbers of the videos to search, of those given by row number; None for all.

        Arguments are those of :class:`moviola.search.fields.Scope`.

        Raises:
            NotFound: no file lies in the folder, no video was taken with the camera, or none bears the tag.
        """
        scope = Scope(videos, catalogue, tagged)
        passing = [field.rows(value, scope) for field, value in self._given() if field.rows is not None]
        return set.intersection(*passing) if passing else None

    def stretch(self, duration: float) -> tuple[float, float]:
        """Start and end in seconds of the part of a video to search."""
        low, high = self.where
        return low.seconds(duration) if low else 0.0, high.seconds(duration) if high else duration

    def is_there(self, span: Span, duration: float) -> bool:
        """Whether a moment is in the allowed part of a video."""
        start, end = self.stretch(duration)
        return self.where == (None, None) or start <= (span.start + span.end) / 2 < end

    def fits(self, span: Span) -> bool:
        """Whether a moment passes, wherever in its video it is."""
        return all(field.moment(value, span) for field, value in self._given() if field.moment is not None)


FILTERS: dict[str, Field] = fields_of(Filter)
"""The filters by name, in the order of the command line."""


def absolute_folders(text: str) -> str:
    """The folders of a filter, one a line, as they are meant in the working directory; patterns stay.

    Raises:
        NotFound: links that cannot be followed.
    """
    lines = [(line, _resolved(line)) for line in lines_of(text)]
    return "\n".join(line if _is_pattern(line) and not path.is_dir() else str(path) for line, path in lines)


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
    near = [one for line in lines_of(given) for one in nearest(line, spelt)]
    listed = spelt[:_LISTED]
    if len(spelt) > _LISTED:
        listed.append(f"{len(spelt) - _LISTED:,} more")
    hint = f"known ones are {', '.join(listed)}" if known else f"no {name} is known yet"
    if near:
        hint = f"did you mean {', '.join(near)}?"
    return NotFound(f"{name} {given!r:.200}: no video of this library {does}; {hint}")


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
