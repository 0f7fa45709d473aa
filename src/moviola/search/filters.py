"""Filters: which videos to search, and which of their moments count."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from moviola.errors import InvalidValue, NotFound
from moviola.files.names import composed, folded, nearest
from moviola.search.fields import Field, declared, fields_of
from moviola.search.forms import (
    CHOICE,
    LANGUAGES,
    LINES,
    PATHS,
    PLACE,
    POSITIONS,
    SECONDS,
    TIMES,
    UNKNOWN_LANGUAGE,
    Bounds,
    Near,
    Position,
    lines_of,
)
from moviola.types import Span
from moviola.words import same_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from moviola.features import Integers
    from moviola.library import Catalogue, VideoRow
    from moviola.library.disk.kinds import Routes, TextValues

    Passing = NDArray[np.bool_]
    Tagged = Callable[[], Mapping[str, Collection[str]]]

__all__ = ["COLUMNS", "FILTERS", "Filter", "absolute_folders"]

# Known cameras or tags that an error lists where none is like the unknown one.
_LISTED = 10


# -- what passes ---------------------------------------------------------------------------------------------


def _in_folder(folder: str, paths: TextValues) -> Passing:
    lines = lines_of(folder)
    patterns = [re.compile(translate(composed(line))) for line in lines if _is_pattern(line)]
    # A folder's name may look like a pattern.
    folders = tuple(_compared(str(_resolved(line))).rstrip(os.sep) + os.sep for line in lines)
    named = [f"{os.sep}{_compared(line).strip(os.sep)}{os.sep}" for line in lines if _is_name(line)]
    # Most paths are as they are composed, and looking for that is cheaper.
    written = paths.texts
    if not all(map(str.isascii, written)):
        written = [path if path.isascii() else composed(path) for path in written]
    cased = written if os.sep == "/" else [os.path.normcase(path) for path in written]
    there = [path.startswith(folders) for path in cased]
    if named:
        there = [held or any(name in path for name in named) for held, path in zip(there, cased, strict=True)]
    for pattern in patterns:
        there = [held or bool(pattern.match(path)) for held, path in zip(there, written, strict=True)]
    if not any(there):
        raise NotFound(
            f"{folder:.200}: no video of this library is in this folder; "
            "`moviola list --json` shows the paths"
        )
    return paths.having(there)


def _modified(bounds: tuple[datetime | None, datetime | None], changed: Integers) -> Passing:
    since, until = (None if bound is None else bound.timestamp() for bound in bounds)
    return _within(changed / 1e9, since, until)


def _taken(bounds: tuple[datetime | None, datetime | None], clocks: Integers) -> Passing:
    import numpy as np

    from moviola.search.clocks import instants, microseconds, walls

    passing = np.ones(len(clocks), np.bool_)
    for place, bound in enumerate(bounds):
        if bound is not None:
            ours = instants(clocks) if bound.tzinfo else walls(clocks)
            passing &= ours <= microseconds(bound) if place else ours >= microseconds(bound)
    return passing


def _near(near: Near, routes: Routes) -> Passing:
    return routes.having(near.reached(routes.points))


def _by_camera(camera: str, cameras: TextValues) -> Passing:
    wanted = [folded(line) for line in lines_of(camera)]
    held = [any(_is_camera(folded(known), one) for one in wanted) for known in cameras.texts]
    if not any(held):
        raise _unknown("camera", camera, "was taken with it", cameras.texts)
    return cameras.having(held)


def _tagged(tag: str, tags: TextValues) -> Passing:
    wanted = {folded(line) for line in lines_of(tag)}
    borne = [folded(known) in wanted for known in tags.texts]
    if not any(borne):
        raise _unknown("tag", tag, "bears it", tags.texts)
    return tags.having(borne)


def _live(wanted: str, live: NDArray[np.int64]) -> Passing:
    passing: Passing = (live != 0) == (wanted == "only")
    return passing


def _speaking(language: str, languages: TextValues) -> Passing:
    wanted = _tags(language)
    spoken = [any(same_language(_known_tag(tag), one) for one in wanted) for tag in languages.texts]
    if not any(spoken):
        raise _unknown("language", language, "has lines in it", languages.texts)
    return languages.having(spoken)


def _tags(language: str) -> set[str]:
    """The tags that are meant."""
    return {*map(_known_tag, lines_of(language))}


def _known_tag(tag: str) -> str:
    """A tag as cues have it: the empty one for lines whose language is not known."""
    return "" if tag == UNKNOWN_LANGUAGE else tag


def _long(bounds: Bounds, lengths: NDArray[np.float64]) -> Passing:
    return _within(lengths, *bounds)


def _lasting(bounds: Bounds, span: Span) -> bool:
    low, high = bounds
    return (low is None or span.duration >= low) and (high is None or span.duration <= high)


# -- the filter ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on an answer; all that are given must hold.

    There may be several folders, cameras, tags and languages, one a line: one of them is enough.

    Raises:
        InvalidValue: bounds the wrong way round, negative or no numbers; an empty text; a value of
            another type.
    """

    folder: str | os.PathLike[str] | None = declared(
        PATHS,
        "Files below a folder, or a pattern: `*/beach/*.mov`.",
        of=lambda facts: facts.paths, kept="texts", passes=_in_folder,
        label="Folder", short="in", example="*/holiday/*",
    )  # fmt: skip
    """Only videos in this folder or below; with ``*``, ``?`` or ``[`` also a pattern for the whole path of a
    file."""
    modified: tuple[datetime | None, datetime | None] = declared(
        TIMES,
        "Last change: 2024-05..2024-06-15.",
        of=lambda facts: facts.video.mtime_ns, kept="integers", passes=_modified,
        label="Last change", short="changed", example="2024-05-01..2024-05-31",
    )  # fmt: skip
    """Only videos whose files were last changed between these times; local times without a zone."""
    video_length: Bounds = declared(
        SECONDS,
        "Length of the video: 60.. or ..10:00.",
        of=lambda facts: facts.video.duration, kept="numbers", passes=_long,
        label="Length of the video", short="video", unit="s", example="60..10:00",
    )  # fmt: skip
    """Seconds."""
    taken: tuple[datetime | None, datetime | None] = declared(
        TIMES,
        "Date of recording: 2021..2023-05.",
        of=lambda facts: facts.clock, kept="integers", passes=_taken,
        label="When it was taken", short="taken", example="2021..2023-05",
    )  # fmt: skip
    """Only videos taken between these times, see :mod:`moviola.library.disk.captures`; times without a zone
    are compared with local clock times."""
    near: Near | None = declared(
        PLACE,
        "Videos taken there: 52.52,13.40,300m; 1km by default.",
        of=lambda facts: facts.places, kept="places", passes=_near,
        label="Place", short="near", example="52.52,13.40,5km",
    )  # fmt: skip
    """Only videos taken within a distance of a point; of those that move only what was filmed there."""
    camera: str | None = declared(
        LINES,
        "Part of the camera's make and model: 'iphone 15'.",
        of=lambda facts: filter(None, [facts.capture.camera]), kept="texts", passes=_by_camera,
        label="Camera", short="camera", example="iphone 15",
    )  # fmt: skip
    """Only videos of cameras whose make and model contain this, case ignored; with ``*``, ``?`` or ``[`` a
    pattern for all of it; after ``=`` all of it as it stands."""
    tag: str | None = declared(
        LINES,
        "Videos with this tag, as a whole or on a moment.",
        of=lambda facts: [facts.video.video_id], kept="tags", passes=_tagged,
        label="Tags", short="tagged", example="favourite",
    )  # fmt: skip
    """Case ignored."""
    live_photos: str | None = declared(
        CHOICE,
        "Films of Live Photos, which phones take with a picture: without them, or only them.",
        of=lambda facts: facts.live, kept="integers", passes=_live, choices=("without", "only"),
        label="Live Photos", short="Live Photos", example="without",
    )  # fmt: skip
    """``"without"`` or ``"only"``; None: films of both kinds."""
    language: str | None = declared(
        LANGUAGES,
        "Lines in this language: de, or German.",
        of=lambda facts: [tag or UNKNOWN_LANGUAGE for tag in facts.languages], kept="texts", passes=_speaking,
        label="Language", short="language", example="de",
    )  # fmt: skip
    """Only videos with subtitles, speech or text in this language, and of what is said and written in them
    only what is in it; ``und`` where the language is not known."""
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
        return any(field.passes is None for field, _ in self._given())

    @property
    def of_tags(self) -> bool:
        """Whether the filter asks for what people may change without a change to the library."""
        return any(field.kept == "tags" for field, _ in self._given())

    def passing(self, columns: Mapping[str, Any], tagged: Tagged = dict) -> Passing | None:
        """Which of V videos to search, (V,) bool; None for all.

        Args:
            columns: of the videos, by the name of the filter (:data:`COLUMNS`).
            tagged: gives ids of videos by tag.

        Raises:
            NotFound: no file lies in the folder, no video was taken with the camera, or none bears the tag.
        """
        passing = None
        for field, value in self._given():
            if field.passes is not None:
                column = columns[field.name]
                own = field.passes(value, column.tagged(tagged()) if field.kept == "tags" else column)
                passing = own if passing is None else passing & own
        return passing

    def rows(
        self, videos: Mapping[int, VideoRow], catalogue: Catalogue | None = None, tagged: Tagged = dict
    ) -> set[int] | None:
        """Row numbers of those of some videos, by row number, that are to be searched; None for all.

        Further paths, and when and where videos were taken, are those of the catalogue; errors and ``tagged``
        as in :meth:`passing`.
        """
        from moviola.library.disk.columns import Columns, facts_of

        columns = Columns(COLUMNS, lambda: facts_of(videos.values(), catalogue), len(videos))
        passing = self.passing(columns, tagged)
        return (
            None if passing is None else {row for row, passes in zip(videos, passing, strict=True) if passes}
        )

    def stretch(self, duration: float) -> tuple[float, float]:
        """Start and end in seconds of the part of a video to search."""
        low, high = self.where
        return low.seconds(duration) if low else 0.0, high.seconds(duration) if high else duration

    def stretches(self, durations: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """:meth:`stretch` of videos (V,) by their lengths in seconds: starts and ends (V,)."""
        import numpy as np

        low, high = self.where
        starts = np.zeros(len(durations)) if low is None else low.all_seconds(durations)
        return starts, durations if high is None else high.all_seconds(durations)

    @property
    def languages(self) -> set[str]:
        """The languages of what is said and written that counts; none: all."""
        return _tags(self.language) if self.language else set()

    def moving(self, columns: Mapping[str, Any]) -> dict[int, list[tuple[float, float]]]:
        """Of films that move, by their places among the videos of the columns, the seconds in which they were
        where the filter asks for; the others were there as a whole.
        """
        if self.near is None:
            return {}
        routes: Routes = columns["near"]
        return routes.stretches(self.near.reached(routes.points))

    def fits(self, span: Span) -> bool:
        """Whether a moment passes, wherever in its video it is."""
        return all(field.moment(value, span) for field, value in self._given() if field.moment is not None)


FILTERS: dict[str, Field] = fields_of(Filter)
"""The filters by name, in the order of the command line."""
COLUMNS: dict[str, Field] = {name: field for name, field in FILTERS.items() if field.passes is not None}
"""Those of videos, whose columns a library keeps."""


def absolute_folders(text: str) -> str:
    """The folders of a filter, one a line, as they are meant in the working directory; patterns stay, and
    names of folders that are not there.

    Raises:
        NotFound: links that cannot be followed.
    """
    lines = [(line, _resolved(line)) for line in lines_of(text)]
    as_given = [(_is_pattern(line) and not path.is_dir()) or _is_name(line) for line, path in lines]
    return "\n".join(
        line if stays else str(path) for (line, path), stays in zip(lines, as_given, strict=True)
    )


def _is_name(line: str) -> bool:
    """Whether a line is the name of a folder wherever it lies, as ids of videos have it, or of several."""
    path = Path(line)
    elsewhere = path.is_absolute() or path.parts[:1] in ((), ("~",), ("..",))
    return not elsewhere and not os.path.isdir(_resolved(line))  # noqa: PTH112 - takes any name


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


def _within(values: NDArray[Any], low: float | None, high: float | None) -> Passing:
    passing = values >= (-math.inf if low is None else low)
    return passing if high is None else passing & (values <= high)
