"""Facts of the searchable videos as columns, by which filters choose.

Which columns there are is said by those who ask for them (:class:`moviola.search.fields.Field`).
``cache/facts/columns.json`` names the parts in which they lie (:mod:`moviola.library.disk.row_parts`). Others
are made of the catalogue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from moviola.features import Integers
from moviola.library.disk.captures import Clock, clock_of
from moviola.library.disk.catalogue import Catalogue, VideoRow
from moviola.library.disk.kinds import KINDS, Arrays, Texts
from moviola.library.disk.row_parts import RowSet
from moviola.types import Capture, Waypoint

__all__ = ["Column", "Columns", "Facts", "JoinedColumns", "column_set", "columns_made", "facts_of"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What columns are made of, of one video: its row, capture data, the paths of all its files, whether it
    is the film of a Live Photo, the languages of its cues, tags of BCP 47, empty for an unknown one, and
    where its camera was while it recorded, if that is known.
    """

    video: VideoRow
    capture: Capture
    paths: tuple[str, ...]
    live: bool = False
    languages: tuple[str, ...] = ()
    route: tuple[Waypoint, ...] = ()

    @property
    def clock(self) -> Clock:
        """When it was taken."""
        return clock_of(self.video, self.capture)

    @property
    def places(self) -> tuple[Waypoint, ...]:
        """Where it was taken: the camera's route, or the one place that is known, from the beginning on."""
        north, east = self.capture.latitude, self.capture.longitude
        return self.route or (() if north is None or east is None else ((0.0, north, east),))


def facts_of(
    videos: Iterable[VideoRow], catalogue: Catalogue | None, rows: Sequence[int] | None = None
) -> list[Facts]:
    """Facts of some videos; without a catalogue, their rows are all that is known. ``rows`` are their row
    numbers where they are few.
    """
    captures = catalogue.captures(rows) if catalogue else {}
    live = catalogue.live_photos(rows) if catalogue else set()
    routes = catalogue.routes(rows) if catalogue else {}
    further: dict[int, list[str]] = defaultdict(list)
    for copy in catalogue.copies(rows) if catalogue else ():
        further[copy.video].append(copy.path)
    tracks = catalogue.tracks(rows) if catalogue else {}
    return [
        Facts(
            video,
            captures.get(video.row, Capture()),
            (video.path, *further.get(video.row, ())),
            video.row in live,
            tuple(dict.fromkeys(track.language for track in tracks.get(video.row, ()))),
            routes.get(video.row, ()),
        )
        for video in videos
    ]  # fmt: skip


class Column(Protocol):
    """A fact of each video; a :class:`moviola.search.fields.Field` is one."""

    @property
    def of(self) -> Callable[[Facts], Any]:
        """Gives it, of a video."""

    @property
    def kept(self) -> str:
        """A name of :data:`moviola.library.disk.kinds.KINDS`."""

    @property
    def version(self) -> int:
        """Raised when the same facts give other values, so that what is stored is made again."""


class Columns(Mapping[str, Any]):
    """Columns of some videos, read when they are asked for; those that are not stored are then made, all at
    once. Safe for threads, which at worst make them twice.

    Args:
        columns: by name.
        facts: gives those of the videos.
        count: number of videos.
        stored: arrays of columns that need not be made, by name.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        facts: Callable[[], Sequence[Facts]],
        count: int,
        stored: Mapping[str, Arrays] | None = None,
    ) -> None:
        self._columns, self._facts, self.count = columns, facts, count
        self._stored: Mapping[str, Arrays] = {} if stored is None else stored
        self._made: dict[str, Arrays] = {}
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            kind = KINDS[self._columns[name].kept]
            self._known[name] = kind.read(self.arrays(name), self.count)
        return self._known[name]

    def arrays(self, name: str) -> Arrays:
        """What a column is read of."""
        if name in self._stored:
            return self._stored[name]
        if name not in self._made:
            facts = self._facts()
            missing = {other: one for other, one in self._columns.items() if other not in self._stored}
            self._made |= {other: _made(column, facts) for other, column in missing.items()}
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class JoinedColumns(Columns):
    """The columns of several libraries' videos, those of each after those of the one before.

    Args:
        columns: by name.
        parts: of each library.
        ids: of all videos, which differ from those of their libraries where several have one id.
    """

    def __init__(self, columns: Mapping[str, Column], parts: Sequence[Columns], ids: Sequence[str]) -> None:
        super().__init__(columns, list, len(ids))
        self._parts, self._ids = parts, ids

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            if self._columns[name].kept == "tags":
                self._known[name] = Texts().read(Texts().made([[one] for one in self._ids]), self.count)
            else:
                ends = np.cumsum([part.count for part in self._parts]).tolist()
                placed = [
                    (part.arrays(name), np.arange(end - part.count, end))
                    for part, end in zip(self._parts, ends, strict=True)
                ]
                kind = KINDS[self._columns[name].kept]
                self._known[name] = kind.read(kind.joined(placed, self.count), self.count)
        return self._known[name]


def column_set(folder: Path, columns: Mapping[str, Column]) -> RowSet:
    """Columns as they are published in a folder."""
    kinds = {name: KINDS[column.kept] for name, column in columns.items()}
    return RowSet(folder, "columns", kinds, {name: _form(column) for name, column in columns.items()})


def columns_made(
    columns: Mapping[str, Column], videos: Sequence[VideoRow], catalogue: Catalogue
) -> tuple[Integers, Mapping[str, Arrays]]:
    """Row numbers of some videos, rising, and the arrays of their columns."""
    facts = facts_of(videos, catalogue, [video.row for video in videos])
    made = {name: _made(column, facts) for name, column in columns.items()}
    return np.array([video.row for video in videos], np.int64), made


def _made(column: Column, facts: Sequence[Facts]) -> Arrays:
    return KINDS[column.kept].made([column.of(one) for one in facts])


def _form(column: Column) -> str:
    return f"{column.kept} {column.version}"
