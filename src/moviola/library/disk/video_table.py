"""The searchable videos as columns of one mapped file.

``cache/videos.table`` is written when a writer finishes, with a digest and the generation of its catalogue.
If that is not the present generation (a writer was killed or is at work), or the file is damaged, the
catalogue itself is read. A query reads only the rows that it needs, whatever the number of videos.
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

from moviola.errors import DataError
from moviola.features import Extent, Integers, place_in
from moviola.files.array_file import map_sealed_arrays, write_sealed_arrays
from moviola.library.disk.catalogue import VideoRow

__all__ = ["VideoTable", "read_video_table", "write_video_table"]

# Stored types of the arrays in the file.
_COLUMNS = {
    "rows": "<i8", "durations": "<f8", "numbers": "<i8", "frames": "<i8", "cues": "<i8", "texts": "u1",
    "ends": "<i8",
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
        texts, ends: UTF-8, the other fields of each video as a JSON list, and where that ends.
    """

    rows: Integers
    durations: NDArray[np.float64]
    numbers: Integers
    frames: Integers
    cues: Integers
    texts: NDArray[np.uint8]
    ends: Integers

    @classmethod
    def of(cls, videos: Iterable[VideoRow]) -> Self:
        ordered = sorted(videos, key=lambda video: video.row)
        texts = [
            json.dumps([v.video_id, v.path, v.hash, v.sidecars, v.state, v.error, v.codec]).encode()
            for v in ordered
        ]
        return cls(
            np.array([v.row for v in ordered], np.int64),
            np.array([v.duration for v in ordered], np.float64),
            np.array([(v.size, v.mtime_ns, v.width, v.height) for v in ordered], np.int64).reshape(-1, 4),
            _places([v.frames for v in ordered]),
            _places([v.cues for v in ordered]),
            np.frombuffer(b"".join(texts), np.uint8),
            np.cumsum([len(text) for text in texts], dtype=np.int64),
        )

    @classmethod
    def joined(cls, tables: Mapping[int, Self]) -> Self:
        """The videos of several tables, by what is added to the row numbers of each, rising by more than its
        largest. Features are those of each one's own shards.
        """
        ends = np.cumsum([0, *(len(table.texts) for table in tables.values())], dtype=np.int64)
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables.values()])
            for name in ("durations", "numbers", "frames", "cues", "texts")
        }
        return cls(
            rows=np.concatenate([table.rows + first for first, table in tables.items()]),
            ends=np.concatenate(
                [table.ends + end for table, end in zip(tables.values(), ends[:-1], strict=True)]
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
        begin = int(self.ends[place - 1]) if place else 0
        video_id, path, hash_, sidecars, state, error, codec = json.loads(
            self.texts[begin : int(self.ends[place])].tobytes()
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


def read_video_table(path: Path, generation: int) -> VideoTable | None:
    """The mapped file; None where it is missing, incomplete or of another generation."""
    try:
        columns = map_sealed_arrays(path, ["generation", *_COLUMNS])
    except DataError:
        return None
    return VideoTable(**columns) if columns.pop("generation").tolist() == [generation] else None


def write_video_table(path: Path, generation: int, table: VideoTable) -> None:
    """Write the file in one step."""
    arrays = {name: (getattr(table, name), dtype) for name, dtype in _COLUMNS.items()}
    write_sealed_arrays(path, {"generation": (np.array([generation]), "<i8"), **arrays})


def _places(extents: Sequence[Extent | None]) -> Integers:
    rows = [(e.shard, e.offset, e.count, e.crc) if e else _ABSENT for e in extents]
    return np.array(rows, np.int64).reshape(-1, 4)


def _extent(place: Integers) -> Extent | None:
    return None if place[0] < 0 else Extent(*place.tolist())
