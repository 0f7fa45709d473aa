"""Kinds of columns: how a fact of each of many videos is stored, joined of several parts, and read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers
from moviola.types import Waypoint

__all__ = [
    "KINDS", "Arrays", "Bytes", "Holders", "Kind", "Numbers", "Placed", "Routes", "TextValues", "Texts",
]  # fmt: skip

Arrays = Mapping[str, NDArray[Any]]
"""Arrays of a column by name."""
Placed = Sequence[tuple[Arrays, Integers]]
"""Arrays of several parts, and of each part the places (n,) int64 that its videos have among all; -1: none,
since they are gone."""


class Kind(Protocol):
    """How columns of a kind are stored.

    Attributes:
        parts: stored types of its arrays, by name.
    """

    parts: Mapping[str, str]

    def made(self, values: Sequence[Any]) -> Arrays:
        """The arrays of V videos, of what is known of each."""

    def joined(self, placed: Placed, count: int) -> Arrays:
        """The arrays of ``count`` videos that lie in several parts, at least one: to the byte as they are
        made at once.
        """

    def read(self, arrays: Arrays, count: int) -> Any:
        """What filters read, of such arrays of ``count`` videos."""


class Numbers(Kind):
    """A number of each video, or a row of several: an array (V, ...), NaN for what is unknown."""

    def __init__(self, stored: str) -> None:
        self.parts = {"numbers": stored}

    def made(self, values: Sequence[Any]) -> Arrays:
        """One array."""
        return {"numbers": np.array(values, self.parts["numbers"])}

    def joined(self, placed: Placed, count: int) -> Arrays:
        """Each row at its place."""
        shape = max((arrays["numbers"].shape[1:] for arrays, _ in placed), key=len)
        numbers = np.empty((count, *shape), self.parts["numbers"])
        for arrays, places in placed:
            there = places >= 0
            numbers[places[there]] = arrays["numbers"][there]
        return {"numbers": numbers}

    def read(self, arrays: Arrays, count: int) -> NDArray[Any]:
        """The array."""
        return arrays["numbers"]


class Texts(Kind):
    """Any number of texts of each video, each text once: :class:`TextValues`."""

    parts: Mapping[str, str] = {"bytes": "u1", "ends": "<i8", "videos": "<i4", "numbers": "<i4"}

    def made(self, values: Sequence[Iterable[str]]) -> Arrays:
        """The texts as bytes, where each ends, and pairs of a video's place and a text's number."""
        return _of_pairs((text, place) for place, texts in enumerate(values) for text in texts)

    def joined(self, placed: Placed, count: int) -> Arrays:
        """Each text that a video has, once."""
        tables = [Texts().read(arrays, len(places)) for arrays, places in placed]
        pairs = []
        for table, (_, places) in zip(tables, placed, strict=True):
            videos = places[table.videos]
            pairs.append((videos[videos >= 0], table.numbers[videos >= 0]))
        # Of each part its texts that are still had, by their numbers there.
        had = [np.unique(numbers) for _, numbers in pairs]
        texts = [
            table.texts if len(own) == len(table.texts) else [table.texts[number] for number in own.tolist()]
            for table, own in zip(tables, had, strict=True)
        ]
        # Those of a part are in order, which sorting makes use of.
        every = [*dict.fromkeys(sorted(chain.from_iterable(texts)))]
        number_of = {text: number for number, text in enumerate(every)}
        numbers = [
            np.array([number_of[text] for text in own], np.int32)[np.searchsorted(known, mine)]
            for own, known, (_, mine) in zip(texts, had, pairs, strict=True)
        ]
        videos, own = np.concatenate([one for one, _ in pairs]), np.concatenate(numbers)
        order = np.lexsort((videos, own))
        return {
            **_encoded(every), "videos": videos[order].astype(np.int32), "numbers": own[order],
        }  # fmt: skip

    def read(self, arrays: Arrays, count: int) -> TextValues:
        """The texts, decoded when they are asked for."""
        return TextValues(arrays["bytes"], arrays["ends"], arrays["videos"], arrays["numbers"], count)


def _of_pairs(pairs: Iterable[tuple[str, int]], texts: Iterable[str] = ()) -> Arrays:
    """The arrays of pairs of a text and the place of a video that has it, with texts that need have none."""
    ordered = sorted(set(pairs))
    number = {text: at for at, text in enumerate(sorted({*texts, *(text for text, _ in ordered)}))}
    return {
        **_encoded(number),
        "videos": np.array([place for _, place in ordered], np.int32),
        "numbers": np.array([number[text] for text, _ in ordered], np.int32),
    }


def _encoded(texts: Collection[str]) -> Arrays:
    """Texts as bytes, and where each ends."""
    if (whole := "".join(texts)).isascii():
        ends = np.cumsum([*map(len, texts)], dtype=np.int64)
        return {"bytes": np.frombuffer(whole.encode(), np.uint8), "ends": ends}
    return Bytes().made([text.encode("utf-8", "surrogatepass") for text in texts])


class Bytes(Kind):
    """Some bytes of each video."""

    parts: Mapping[str, str] = {"bytes": "u1", "ends": "<i8"}

    def made(self, values: Sequence[bytes]) -> Arrays:
        """The bytes of all videos, one after the other, and where those of each end."""
        ends = np.cumsum([len(one) for one in values], dtype=np.int64)
        return {"bytes": np.frombuffer(b"".join(values), np.uint8), "ends": ends}

    def joined(self, placed: Placed, count: int) -> Arrays:
        """The bytes of each video in their turn."""
        values = [b""] * count
        for arrays, places in placed:
            ends = arrays["ends"].tolist()
            for place, begin, end in zip(places.tolist(), [0, *ends], ends, strict=False):
                if place >= 0:
                    values[place] = arrays["bytes"][begin:end].tobytes()
        return self.made(values)

    def read(self, arrays: Arrays, count: int) -> Arrays:
        """The arrays."""
        return arrays


class Holders(Kind):
    """Any number of 64-bit numbers of each video, such as those of words: each once, with the videos that
    have it.
    """

    parts: Mapping[str, str] = {"numbers": "<u8", "ends": "<i8", "videos": "<i4"}

    def made(self, values: Sequence[Collection[int]]) -> Arrays:
        """Numbers, rising, where the videos of each end, and places of these, rising for each number."""
        numbers = np.array([number for own in values for number in own], np.uint64)
        videos = np.repeat(np.arange(len(values), dtype=np.int32), [len(own) for own in values])
        return _held(numbers, videos)

    def joined(self, placed: Placed, count: int) -> Arrays:
        """Each number that a video has, once."""
        numbers, videos = [], []
        for arrays, places in placed:
            own = places[arrays["videos"]]
            there = own >= 0
            numbers.append(np.repeat(arrays["numbers"], np.diff(arrays["ends"], prepend=0))[there])
            videos.append(own[there].astype(np.int32))
        return _held(np.concatenate(numbers), np.concatenate(videos))

    def read(self, arrays: Arrays, count: int) -> Arrays:
        """The arrays."""
        return arrays


def _held(numbers: NDArray[np.uint64], videos: NDArray[np.int32]) -> Arrays:
    order = np.lexsort((videos, numbers))
    found, counts = np.unique(numbers[order], return_counts=True)
    return {"numbers": found, "ends": np.cumsum(counts, dtype=np.int64), "videos": videos[order]}


class Places(Kind):
    """Any number of places of each video: :class:`Routes`."""

    parts: Mapping[str, str] = {"videos": "<i4", "seconds": "<f8", "points": "<f8"}

    def made(self, values: Sequence[Sequence[Waypoint]]) -> Arrays:
        """The places of all videos, one after the other."""
        every = np.array([point for route in values for point in route], np.float64).reshape(-1, 3)
        videos = np.repeat(np.arange(len(values), dtype=np.int32), [len(route) for route in values])
        return {"videos": videos, "seconds": every[:, 0].copy(), "points": every[:, 1:].copy()}

    def joined(self, placed: Placed, count: int) -> Arrays:
        """The places of each video in their turn."""
        videos = np.concatenate([places[arrays["videos"]] for arrays, places in placed])
        order = np.argsort(videos, kind="stable")[np.count_nonzero(videos < 0) :]
        found = {
            name: np.concatenate([arrays[name] for arrays, _ in placed])[order]
            for name in ("seconds", "points")
        }
        return {"videos": videos[order].astype(np.int32), **found}

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
