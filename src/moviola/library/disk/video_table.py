"""The searchable videos as columns of mapped files.

``cache/facts/videos.json`` names the parts in which they lie (:mod:`moviola.library.disk.row_parts`), which
are written when a writer finishes. A query reads only the rows that it needs, whatever the number of videos.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from moviola.features import Extent, Integers, place_in
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.kinds import Arrays, Bytes, Kind, Numbers
from moviola.library.disk.row_parts import Part, RowParts, RowSet

__all__ = ["VideoTable", "video_set", "videos_made"]

_KINDS: dict[str, Kind] = {
    "durations": Numbers("<f8"), "numbers": Numbers("<i8"), "frames": Numbers("<i8"), "cues": Numbers("<i8"),
    "texts": Bytes(),
}  # fmt: skip
_ABSENT = (-1, 0, 0, 0)
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class _MadeOfRows(Sequence[Made]):
    """Values made of rows (n, ...) when read."""

    rows: NDArray[Any]
    make: Callable[[Any], Made]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Made: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Made]: ...
    def __getitem__(self, place: int | slice) -> Made | Sequence[Made]:
        rows = self.rows[place]
        return replace(self, rows=rows) if isinstance(place, slice) else self.make(rows)


@dataclass(frozen=True, eq=False)
class VideoTable(Mapping[int, VideoRow]):
    """Videos by row number; a row is decoded when read.

    Attributes:
        rows: (V,) int64 rising, row numbers.
        durations: (V,) float64 seconds.
        numbers: (V, 4) int64, size, mtime_ns, width and height.
        frames, cues: (V, 4) int64, shard, offset, count and CRC of features; the shard is -1 without any.
        texts: UTF-8 of some videos each, the other fields of a video as a JSON list.
        spans: (V, 3) int64, number of the text in which that lies, where it begins and ends.
    """

    rows: Integers
    durations: NDArray[np.float64]
    numbers: Integers
    frames: Integers
    cues: Integers
    texts: tuple[NDArray[np.uint8], ...]
    spans: Integers

    @classmethod
    def of(cls, videos: Iterable[VideoRow]) -> Self:
        rows, columns = videos_made(sorted(videos, key=lambda video: video.row))
        return cls.of_parts(RowParts(_KINDS, (Part(rows, columns, rows[:0]),)))

    @classmethod
    def of_parts(cls, parts: RowParts) -> Self:
        """The videos of parts, whose texts stay where they are."""
        spans = np.empty((len(parts.rows), 3), np.int64)
        for number, (part, places) in enumerate(zip(parts.parts, parts.places, strict=True)):
            ends = part.columns["texts"]["ends"]
            begins = np.concatenate([ends[:0], [0], ends[:-1]])[: len(ends)]
            own = np.stack([np.full(len(ends), number), begins, ends], axis=1)
            spans[places[part.there]] = own[part.there]
        durations, *others = (parts[name]["numbers"] for name in ("durations", "numbers", "frames", "cues"))
        numbers, frames, cues = (one.reshape(-1, 4) for one in others)
        texts = tuple(part.columns["texts"]["bytes"] for part in parts.parts)
        return cls(parts.rows, durations, numbers, frames, cues, texts, spans)

    @classmethod
    def joined(cls, tables: Mapping[int, Self]) -> Self:
        """The videos of several tables, by what is added to the row numbers of each, rising by more than its
        largest. Features are those of each one's own shards.
        """
        begins = np.cumsum([0, *(len(table.texts) for table in tables.values())])
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables.values()])
            for name in ("durations", "numbers", "frames", "cues")
        }
        return cls(
            rows=np.concatenate([table.rows + first for first, table in tables.items()]),
            texts=tuple(text for table in tables.values() for text in table.texts),
            spans=np.concatenate(
                [
                    table.spans + np.array([begin, 0, 0])
                    for table, begin in zip(tables.values(), begins[:-1], strict=True)
                ]
            ),
            **columns,
        )

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same videos, some with another id, by the one that they have."""
        if not names:
            return self
        return type(self).of(
            replace(video, video_id=names.get(video.video_id, video.video_id)) for video in self.values()
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and place_in(self.rows, row) is not None

    def __getitem__(self, row: int) -> VideoRow:
        place = place_in(self.rows, row)
        if place is None:
            raise KeyError(row)
        return self._at(place)

    def _at(self, place: int) -> VideoRow:
        number, begin, end = self.spans[place].tolist()
        video_id, path, hash_, sidecars, state, error, codec = json.loads(
            self.texts[number][begin:end].tobytes()
        )
        size, mtime_ns, width, height = self.numbers[place].tolist()
        return VideoRow(
            int(self.rows[place]), video_id, path, size, mtime_ns, hash_, sidecars, state, error,
            float(self.durations[place]), width, height, codec,
            _extent(self.frames[place]), _extent(self.cues[place]),
        )  # fmt: skip

    @cached_property
    def with_frames(self) -> Integers:
        """Places (n,) of the videos with frames."""
        return np.flatnonzero(self.frames[:, 0] >= 0)

    def ids(self, places: Integers) -> Sequence[str]:
        """Ids of the videos at some places (n,)."""
        return _MadeOfRows(places, lambda place: self._at(int(place)).video_id)

    def extents(self, places: Integers) -> Sequence[Extent]:
        """Where the frames of the videos at some places (n,) are stored; none without frames."""
        return _MadeOfRows(self.frames[places], lambda row: Extent(*row.tolist()))


def video_set(folder: Path) -> RowSet:
    """Videos as they are published in a folder."""
    return RowSet(folder, "videos", _KINDS, dict.fromkeys(_KINDS, "1"))


def videos_made(videos: Sequence[VideoRow]) -> tuple[Integers, Mapping[str, Arrays]]:
    """Row numbers of videos, by row number, and the arrays of their columns."""
    values: dict[str, Any] = {
        "durations": [v.duration for v in videos],
        "numbers": [(v.size, v.mtime_ns, v.width, v.height) for v in videos],
        "frames": _places([v.frames for v in videos]),
        "cues": _places([v.cues for v in videos]),
        "texts": [
            json.dumps([v.video_id, v.path, v.hash, v.sidecars, v.state, v.error, v.codec]).encode()
            for v in videos
        ],
    }
    rows = np.array([v.row for v in videos], np.int64)
    return rows, {name: kind.made(values[name]) for name, kind in _KINDS.items()}


def _places(extents: Sequence[Extent | None]) -> list[tuple[int, int, int, int]]:
    return [(e.shard, e.offset, e.count, e.crc) if e else _ABSENT for e in extents]


def _extent(place: Integers) -> Extent | None:
    return None if place[0] < 0 else Extent(*place.tolist())
