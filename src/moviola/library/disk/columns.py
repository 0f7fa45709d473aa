"""Facts of the searchable videos as columns of one mapped file, by which filters choose.

Which columns there are is said by those who ask for them (:class:`moviola.search.fields.Field`).
``cache/columns.table`` is written when a writer finishes, with a digest and the generation of its catalogue.
Where it is of another generation, or lacks a column, that is made of the catalogue.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.features import Integers
from moviola.files.array_file import map_sealed_arrays, write_sealed_arrays
from moviola.library.disk.captures import Clock, clock_of
from moviola.library.disk.catalogue import Catalogue, VideoRow
from moviola.types import Capture, Waypoint

__all__ = [
    "KINDS", "Column", "Columns", "Facts", "Routes", "TextValues", "facts_of", "read_columns",
    "write_columns",
]  # fmt: skip

Arrays = Mapping[str, NDArray[Any]]


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
        """Where it was taken; one place, from its beginning on, of a camera of which no more is known."""
        north, east = self.capture.latitude, self.capture.longitude
        return self.route or (() if north is None or east is None else ((0.0, north, east),))


def facts_of(videos: Iterable[VideoRow], catalogue: Catalogue | None) -> list[Facts]:
    """Facts of some videos; without a catalogue, their rows are all that is known."""
    captures = catalogue.captures() if catalogue else {}
    live = catalogue.live_photos() if catalogue else set()
    routes = catalogue.routes() if catalogue else {}
    further: dict[int, list[str]] = defaultdict(list)
    for copy in catalogue.copies() if catalogue else ():
        further[copy.video].append(copy.path)
    tracks = catalogue.tracks() if catalogue else {}
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
        """A name of :data:`KINDS`."""

    @property
    def version(self) -> int:
        """Raised when the same facts give other values, so that what is stored is made again."""


class Kind(Protocol):
    """How columns of a kind are stored.

    Attributes:
        parts: stored types of its arrays, by name.
    """

    parts: Mapping[str, str]

    def made(self, values: Sequence[Any]) -> Arrays:
        """The arrays of V videos, of what is known of each."""

    def read(self, arrays: Arrays, count: int) -> Any:
        """What filters read, of such arrays of ``count`` videos."""


class Numbers(Kind):
    """A number of each video, or a row of several: an array (V, ...), NaN for what is unknown."""

    def __init__(self, stored: str) -> None:
        self.parts = {"numbers": stored}

    def made(self, values: Sequence[Any]) -> Arrays:
        """One array."""
        return {"numbers": np.array(values, self.parts["numbers"])}

    def read(self, arrays: Arrays, count: int) -> NDArray[Any]:
        """The array."""
        return arrays["numbers"]


class Texts(Kind):
    """Any number of texts of each video, each text once: :class:`TextValues`."""

    parts: Mapping[str, str] = {"bytes": "u1", "ends": "<i8", "videos": "<i4", "numbers": "<i4"}

    def made(self, values: Sequence[Iterable[str]]) -> Arrays:
        """The texts as bytes, where each ends, and pairs of a video's place and a text's number."""
        return _of_pairs((text, place) for place, texts in enumerate(values) for text in texts)

    def read(self, arrays: Arrays, count: int) -> TextValues:
        """The texts, decoded when they are asked for."""
        return TextValues(arrays["bytes"], arrays["ends"], arrays["videos"], arrays["numbers"], count)


def _of_pairs(pairs: Iterable[tuple[str, int]], texts: Iterable[str] = ()) -> Arrays:
    """The arrays of pairs of a text and the place of a video that has it, with texts that need have none."""
    ordered = sorted(set(pairs))
    number = {text: at for at, text in enumerate(sorted({*texts, *(text for text, _ in ordered)}))}
    encoded = [text.encode("utf-8", "surrogatepass") for text in number]
    return {
        "bytes": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([len(text) for text in encoded], dtype=np.int64),
        "videos": np.array([place for _, place in ordered], np.int32),
        "numbers": np.array([number[text] for text, _ in ordered], np.int32),
    }


class Places(Kind):
    """Any number of places of each video: :class:`Routes`."""

    parts: Mapping[str, str] = {"videos": "<i4", "seconds": "<f8", "points": "<f8"}

    def made(self, values: Sequence[Sequence[Waypoint]]) -> Arrays:
        """The places of all videos, one after the other."""
        every = np.array([point for route in values for point in route], np.float64).reshape(-1, 3)
        videos = np.repeat(np.arange(len(values), dtype=np.int32), [len(route) for route in values])
        return {"videos": videos, "seconds": every[:, 0].copy(), "points": every[:, 1:].copy()}

    def read(self, arrays: Arrays, count: int) -> Routes:
        """The routes."""
        return Routes(arrays["videos"], arrays["seconds"], arrays["points"], count)


KINDS: dict[str, Kind] = {
    "numbers": Numbers("<f8"), "integers": Numbers("<i8"), "texts": Texts(), "tags": Texts(),
    "places": Places(),
}  # fmt: skip
"""Kinds of columns by name. Of ``"tags"`` the ids of videos are kept; what people have tagged is joined with
them when it is read (:meth:`TextValues.tagged`).
"""


@dataclass(frozen=True, eq=False)
class Routes:
    """Where V videos were taken; some may have no place, films that move have several.

    Attributes:
        videos: (n,) int32, rising: places of videos.
        seconds: (n,) float64, rising in each video: from when on it was there.
        points: (n, 2) float64, degrees north and east.
        count: V.
    """

    videos: NDArray[np.int32]
    seconds: NDArray[np.float64]
    points: NDArray[np.float64]
    count: int

    def having(self, reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which videos were at one of the reached points, (V,) bool; reached are a bool of each point."""
        having = np.zeros(self.count, np.bool_)
        having[self.videos[reached]] = True
        return having

    def stretches(self, reached: NDArray[np.bool_]) -> dict[int, list[tuple[float, float]]]:
        """By the place of each video that moved and was at a reached point: the seconds from its coming there
        to its leaving, infinite where it stayed; a film begins at its first place.
        """
        first = np.diff(self.videos, prepend=-1) != 0
        last = np.diff(self.videos, append=-1) != 0
        starts = np.where(first, 0.0, self.seconds)
        ends = np.where(last, np.inf, np.roll(self.seconds, -1))
        found: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for at in np.flatnonzero(reached & ~(first & last)).tolist():
            own, start, end = found[int(self.videos[at])], float(starts[at]), float(ends[at])
            if own and own[-1][1] == start:
                start = own.pop()[0]
            own.append((start, end))
        return dict(found)


@dataclass(frozen=True, eq=False)
class TextValues:
    """Texts of V videos; some may have none, or several.

    Attributes:
        encoded, ends: UTF-8 of each text, one after the other, and where it ends.
        videos, numbers: (n,) int32, rising by number: the video at a place has the text with a number.
        count: V.
    """

    encoded: NDArray[np.uint8]
    ends: Integers
    videos: NDArray[np.int32]
    numbers: NDArray[np.int32]
    count: int

    @cached_property
    def texts(self) -> list[str]:
        """The texts, rising."""
        whole, ends = self.encoded.tobytes(), self.ends.tolist()
        begins = [0, *ends][: len(ends)]
        if whole.isascii():
            plain = whole.decode("ascii")
            return [plain[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return [
            whole[begin:end].decode("utf-8", "surrogatepass") for begin, end in zip(begins, ends, strict=True)
        ]

    def having(self, chosen: Sequence[bool]) -> NDArray[np.bool_]:
        """Which videos have one of the chosen texts, (V,) bool; chosen are a bool of each text."""
        wanted = np.array(chosen, np.bool_)
        having = np.zeros(self.count, np.bool_)
        having[self.videos[wanted[self.numbers]]] = True
        return having

    def tagged(self, tagged: Mapping[str, Collection[str]]) -> TextValues:
        """Tags of the videos whose ids these are; ``tagged``: ids of videos by tag, also of others."""
        some = frozenset().union(*tagged.values())
        place = {text: at for text, at in zip(self.texts, self.videos.tolist(), strict=True) if text in some}
        pairs = ((tag, place[one]) for tag, ids in tagged.items() for one in ids if one in place)
        return Texts().read(_of_pairs(pairs, tagged), self.count)

    def counts(self, order: Integers | None = None) -> Counter[str]:
        """Number of videos by text: the texts rising, or as the first of their videos come in an order (V,)
        of their places.
        """
        counts, numbers = np.bincount(self.numbers, minlength=len(self.ends)), range(len(self.ends))
        if order is not None:
            turn, first = np.argsort(order), np.full(len(self.ends), self.count)
            np.minimum.at(first, self.numbers, turn[self.videos])
            numbers = np.argsort(first).tolist()
        return Counter({self.texts[number]: int(counts[number]) for number in numbers})


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
        self._columns, self._facts, self._count = columns, facts, count
        self._stored = dict(stored or {})
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            if name not in self._stored:
                facts = self._facts()
                missing = {
                    other: column for other, column in self._columns.items() if other not in self._stored
                }
                self._stored |= {other: _made(column, facts) for other, column in missing.items()}
            self._known[name] = KINDS[self._columns[name].kept].read(self._stored[name], self._count)
        return self._known[name]

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
                self._known[name] = Texts().read(Texts().made([[one] for one in self._ids]), self._count)
            else:
                self._known[name] = _joined([part[name] for part in self._parts], self._count)
        return self._known[name]


def _joined(parts: Sequence[Any], count: int) -> Any:
    """One column of several libraries, of ``count`` videos together."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    begins = np.cumsum([0, *(part.count for part in parts)])[:-1].tolist()
    if isinstance(first, Routes):
        videos = np.concatenate([p.videos + np.int32(at) for p, at in zip(parts, begins, strict=True)])
        seconds, points = (
            np.concatenate([getattr(p, name) for p in parts]) for name in ("seconds", "points")
        )
        return Routes(videos, seconds, points, count)
    pairs = (
        (part.texts[number], at + video)
        for part, at in zip(parts, begins, strict=True)
        for video, number in zip(part.videos.tolist(), part.numbers.tolist(), strict=True)
    )
    return Texts().read(_of_pairs(pairs), count)


def read_columns(path: Path, generation: int, columns: Mapping[str, Column]) -> dict[str, Arrays] | None:
    """Arrays of the mapped columns, of those that the file has as they are made now; None where it is
    missing, incomplete or of another generation.
    """
    try:
        arrays = map_sealed_arrays(path)
        made = json.loads(arrays["made"].tobytes())
        if arrays["generation"].tolist() != [generation]:
            return None
        return {
            name: {part: arrays[f"{name} {part}"] for part in KINDS[column.kept].parts}
            for name, column in columns.items()
            if made.get(name) == _form(column)
        }
    except (DataError, ValueError, LookupError, AttributeError):
        return None


def write_columns(path: Path, generation: int, columns: Mapping[str, Column], facts: Sequence[Facts]) -> None:
    """Write the file in one step."""
    made = json.dumps({name: _form(column) for name, column in columns.items()}).encode()
    arrays = {
        f"{name} {part}": (array, KINDS[column.kept].parts[part])
        for name, column in columns.items()
        for part, array in _made(column, facts).items()
    }
    about = {"generation": (np.array([generation]), "<i8"), "made": (np.frombuffer(made, "u1"), "u1")}
    write_sealed_arrays(path, {**about, **arrays})


def _made(column: Column, facts: Sequence[Facts]) -> Arrays:
    return KINDS[column.kept].made([column.of(one) for one in facts])


def _form(column: Column) -> str:
    return f"{column.kept} {column.version}"
