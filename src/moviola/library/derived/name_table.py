"""Search by the words in names of videos, and by the meaning of these as vectors; and by the words in what
files say of them besides, which have no vectors.

They are sets in parts (:mod:`moviola.library.disk.row_parts`), so that a writer writes what is new and a
query reads only the names that match: ``cache/facts/names.json`` and ``descriptions.json``, by row numbers of
videos, and ``meanings.json``, vectors of the distinctive words of names by a number for these words. Which
words of a name are distinctive depends on how many names have them, so that names of videos that have not
changed are written again where one of their words has become common, or is no more. Where a set is missing or
damaged, the catalogue is read; where a vector is missing, a name is found by its words alone until the next
run of indexing.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.features import Integers, place_in
from moviola.files.array_file import map_sealed_arrays
from moviola.library.derived.video_names import (
    VideoNames,
    Words,
    described,
    most_in_common,
    named,
    words_by_video,
)
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.kinds import Arrays, Bytes, Holders, Kind, Numbers
from moviola.library.disk.row_parts import AT_ONCE, FACTS, Part, RowParts, RowSet, are_among
from moviola.library.disk.store import LibraryStore
from moviola.retrieval.segments import normalised

__all__ = ["NameTable", "descriptions_in", "names_in", "publish_names"]

Floats = NDArray[np.float32]

_NAMES: Mapping[str, Kind] = {"stems": Holders(), "texts": Bytes(), "meanings": Numbers("<i8")}
"""Columns of names: numbers of stems, distinctive words, and the number of these, -1 without any."""
_DESCRIPTIONS: Mapping[str, Kind] = {"stems": Holders()}
_MEANINGS: Mapping[str, Kind] = {"texts": Bytes(), "vectors": Numbers("<f4")}
_VERSION = "9"
"""Raised when names have other stems."""
# Of one file, `cache/names.table`, in which names lay before, kinds whose vectors are the same.
_EARLIER = ("4", "5", "6", "7", "8")
# Names whose vectors a reader makes where they are lost; more would keep a search waiting for many seconds.
_FEW_NAMES = 2_000


@dataclass(frozen=True, eq=False)
class NameTable:
    """:class:`VideoNames` as columns in parts.

    Attributes:
        names: of all videos, by row number.
        meanings: unit vectors (d,) of distinctive words by their number; also of removed videos, which may be
            restored.
        more: words are weighed as if there were this number of videos more.
    """

    names: RowParts
    meanings: RowParts
    more: int = 0

    @classmethod
    def of(cls, names: VideoNames, vectors: Mapping[str, Floats]) -> Self:
        """From names, and unit vectors (d,) of distinctive words, not all of which need be there."""
        words = [names.words.get(row, _NOTHING) for row in names.videos]
        made = _columns(words, [names.distinctive.get(row, "") for row in names.videos])
        return cls(_part(_NAMES, names.videos, made), _in_memory(vectors), names.more)

    @cached_property
    def count(self) -> int:
        """Number of videos."""
        return sum(part.live for part in self.names.parts)

    @property
    def whole(self) -> bool:
        """Whether all distinctive names have a vector."""
        return len(self.rows) == int(self.counts[1])

    @property
    def counts(self) -> Integers:
        """(2,) int64, number of videos, and of those with distinctive names."""
        distinctive = sum(int((_meanings(part) >= 0).sum()) for part in self.names.parts)
        return np.array([self.count, distinctive], np.int64)

    @cached_property
    def rows(self) -> Integers:
        """(n,) int64 rising, row numbers of the videos whose names have a vector."""
        known = self.meanings.rows
        found = [part.rows[part.there][are_among(_meanings(part), known)] for part in self.names.parts]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    @property
    def has_meanings(self) -> bool:
        """Whether any name has a vector."""
        return bool(self.meanings.parts) and bool(len(self.rows))

    @property
    def distinguishable(self) -> int:
        """Number of videos with a word in their names that not all have."""
        return len(self.distinguished())

    def distinguished(self) -> set[int]:
        """Row numbers of these."""
        universal = [] if self.more else [*held_by_more(self.names, self.count - 1)]
        found: set[int] = set()
        for part in self.names.parts:
            stems = part.columns["stems"]
            distinct = np.repeat(
                ~np.isin(stems["numbers"], np.array(universal, np.uint64)), np.diff(stems["ends"], prepend=0)
            )
            having = np.zeros(len(part.rows), np.bool_)
            having[stems["videos"][distinct]] = True
            found.update(part.rows[having & part.there].tolist())
        return found

    def weight(self, stem: str) -> float:
        """ln(N / n), with n of N videos that have a stem; ln(N + 1) of one that none has."""
        holding = len(self.videos_with(stem))
        return math.log((self.count + self.more) / holding) if holding else math.log(self.count + 1)

    def videos_with(self, stem: str) -> Integers:
        """Row numbers (n,) of the videos with a stem in their names, rising."""
        return holders(self.names, _number(stem))

    def alike(
        self, vector: Floats, shares: Callable[[Floats], NDArray[np.float64]]
    ) -> Iterator[tuple[int, float]]:
        """Row numbers of the videos whose names' meanings have a share above 0, and this, of ``shares`` (n,)
        of cosines (n,) with a unit vector (d,).
        """
        near: list[Integers] = [np.empty(0, np.int64)]
        found: list[NDArray[np.float64]] = [np.empty(0, np.float64)]
        for part in self.meanings.parts:
            # Each by itself: the last bits of a product depend on how many are multiplied together.
            given = shares(np.einsum("nd,d->n", part.columns["vectors"]["numbers"], vector))
            there = np.flatnonzero(part.there & (given > 0))
            near.append(part.rows[there])
            found.append(given[there])
        share_of = dict(zip(np.concatenate(near).tolist(), np.concatenate(found).tolist(), strict=True))
        numbers = np.array([*share_of], np.int64)
        for part in self.names.parts if share_of else ():
            own = _meanings(part)
            alike = np.isin(own, numbers)
            for row, number in zip(part.rows[part.there][alike].tolist(), own[alike].tolist(), strict=True):
                yield row, share_of[number]

    def vector_of(self) -> dict[str, Floats]:
        """Vectors (d,) by distinctive words."""
        return dict(_vectors_of(self.meanings))

    def words(self) -> set[str]:
        """Distinctive words that have a vector."""
        return {word for text in self.vector_of() for word in text.split()}


def holders(names: RowParts, number: int) -> Integers:
    """Row numbers (n,) of the videos with the number of a stem, rising."""
    found = [np.empty(0, np.int64)]
    for part in names.parts:
        stems = part.columns["stems"]
        place = place_in(stems["numbers"], np.uint64(number))
        if place is not None:
            begin = int(stems["ends"][place - 1]) if place else 0
            own = stems["videos"][begin : int(stems["ends"][place])]
            found.append(part.rows[own[part.there[own]]])
    return np.sort(np.concatenate(found))


def held_by_more(names: RowParts, most: int, new: Mapping[int, int] = MappingProxyType({})) -> frozenset[int]:
    """Numbers of the stems that more than ``most`` videos have; ``new`` are counts of further videos."""
    count, candidates = sum(part.live for part in names.parts), {*new}
    for part in names.parts:
        stems = part.columns["stems"]
        # What more than a share of all have, more than that share of some part has.
        often = np.diff(stems["ends"], prepend=0) * count > most * part.live
        candidates.update(stems["numbers"][often].tolist())
    return frozenset(
        number for number in candidates if len(holders(names, number)) + new.get(number, 0) > most
    )


def names_in(store: LibraryStore, generation: int, videos: Mapping[int, VideoRow]) -> NameTable:
    """The names of the searchable videos of a library; mapped where they are of this generation. Of several
    libraries, words weigh as in all names.
    """
    if not store.parts and (parts := _NamesOf(store).at(generation)):
        return NameTable(parts, _meanings_of(store, parts))
    catalogue = store.catalogue
    names = VideoNames.of(videos, catalogue.copies(), catalogue.sayings(), catalogue.languages())
    texts = {*names.distinctive.values()}
    known = [_meanings_of(part) for part in store.parts or (store,)]
    vectors = {text: vector for own in known for text, vector in _vectors_of(own) if text in texts}
    if store.parts and store.settings.sentence_encoder and (missing := sorted(texts - vectors.keys())):
        # A word that is distinctive among all may not have been in its own library.
        vectors |= zip(missing, _encoded(store, missing), strict=True)
    return NameTable.of(names, vectors)


def descriptions_in(store: LibraryStore, generation: int, videos: Mapping[int, VideoRow]) -> NameTable:
    """The same of what files say of these videos beside their titles; no text has a vector."""
    if not store.parts and (parts := _DescriptionsOf(store).at(generation)):
        return NameTable(parts, _in_memory({}), more=1)
    catalogue = store.catalogue
    return NameTable.of(VideoNames.described(videos, catalogue.sayings(), catalogue.languages()), {})


def publish_names(store: LibraryStore, *, encode: bool = True) -> None:
    """Publish what has changed; under the library's write lock. ``encode`` computes missing vectors, which
    may load the sentence encoder.
    """
    with store.catalogue.one_state():
        names = _NamesOf(store)
        names.publish()
        _DescriptionsOf(store).publish()
        _publish_meanings(store, names, encode=encode and bool(store.settings.sentence_encoder))
    for name in ("names.table", "descriptions.table"):  # of earlier versions
        (store.folder / "cache" / name).unlink(missing_ok=True)


class _DescriptionsOf:
    """Words of what files say of the videos of a library."""

    name, kinds = "descriptions", _DESCRIPTIONS

    def __init__(self, store: LibraryStore) -> None:
        self._catalogue = store.catalogue
        self._languages = sorted(store.catalogue.languages())
        self._common: frozenset[int] = frozenset()
        self._wanted: set[int] = set()
        self._read: dict[int, Words] = {}
        form = " ".join([_VERSION, *self._languages])
        self.set = RowSet(store.folder / FACTS, self.name, self.kinds, dict.fromkeys(self.kinds, form))

    def at(self, generation: int) -> RowParts | None:
        """The set as it is at a generation of the catalogue; None where it is not known of its files."""
        with self._catalogue.one_state():
            if self._catalogue.generation != generation:
                return None
            return self.set.at(generation, self._catalogue.changed_since, self._made, self._widened)

    def publish(self) -> None:
        """Publish what has changed, in one state of the catalogue."""
        catalogue = self._catalogue
        self.set.publish(
            catalogue.generation, catalogue.changed_since, self._all_rows, self._made, self._widened
        )

    def _texts(self, videos: Mapping[int, VideoRow], rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        return described(videos, self._catalogue.sayings(rows))

    def _words(self, rows: Sequence[int]) -> dict[int, Words]:
        """The words of those of some videos that are there, read once if they are few."""
        if not self._wanted >= {*rows}:
            self._wanted = {*rows}
            videos = {video.row: video for video in self._catalogue.searchable(rows)}
            found = words_by_video(self._texts(videos, rows), self._languages)
            self._read = {row: found.get(row, _NOTHING) for row in videos}
        return {row: self._read[row] for row in rows if row in self._read}

    def _all_rows(self) -> Sequence[int]:
        return self._catalogue.searchable_rows()

    def _widened(self, _: RowParts, changed: Collection[int]) -> Collection[int]:
        return changed

    def _made(self, rows: Sequence[int]) -> tuple[Integers, Mapping[str, Arrays]]:
        words = self._words(rows)
        texts = [own.distinctive(self._is_common) for own in words.values()]
        columns = _columns([*words.values()], texts)
        return np.array([*words], np.int64), {name: columns[name] for name in self.kinds}

    def _is_common(self, stem: str) -> bool:
        return _number(stem) in self._common


class _NamesOf(_DescriptionsOf):
    """Words of names of the videos of a library."""

    name, kinds = "names", _NAMES

    def _texts(self, videos: Mapping[int, VideoRow], rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        return named(videos, self._catalogue.copies(rows), self._catalogue.sayings(rows))

    def _all_rows(self) -> Sequence[int]:
        rows = self._catalogue.searchable_rows()
        counts: Counter[int] = Counter()
        for begin in range(0, len(rows), AT_ONCE):
            counts.update(_stem_numbers(self._words(rows[begin : begin + AT_ONCE])))
        most = most_in_common(len(rows))
        self._common = frozenset(number for number, count in counts.items() if count > most)
        return rows

    def _widened(self, parts: RowParts, changed: Collection[int]) -> Collection[int]:
        """With the videos that have a word which has become common, or is no more."""
        new, touched = self._words(sorted(changed)), np.array(sorted(changed), np.int64)
        before = held_by_more(parts, most_in_common(sum(part.live for part in parts.parts)))
        others = RowParts(parts.kinds, tuple(part.without(touched) for part in parts.parts))
        count = sum(part.live for part in others.parts) + len(new)
        self._common = held_by_more(others, most_in_common(count), Counter(_stem_numbers(new)))
        turned = [holders(others, number) for number in before ^ self._common]
        return {*changed, *(row for rows in turned for row in rows.tolist())}


def _stem_numbers(words: Mapping[int, Words]) -> Iterator[int]:
    return (_number(stem) for own in words.values() for stem in own.stems)


_NOTHING = Words(frozenset(), {})


def _columns(words: Sequence[Words], texts: Sequence[str]) -> Mapping[str, Arrays]:
    """Columns of videos, of their words and of those that are distinctive."""
    return {
        "stems": _NAMES["stems"].made([{_number(stem) for stem in own.stems} for own in words]),
        "texts": _NAMES["texts"].made([text.encode() for text in texts]),
        "meanings": _NAMES["meanings"].made([_number(text) >> 1 if text else -1 for text in texts]),
    }


def _part(kinds: Mapping[str, Kind], rows: Sequence[int], columns: Mapping[str, Arrays]) -> RowParts:
    """Columns in memory as a part, if there are some."""
    there = np.array(rows, np.int64)
    return RowParts(kinds, (Part(there, columns, there[:0]),) if len(rows) else ())


def _meanings(part: Part) -> Integers:
    """Numbers of the distinctive words of a part's videos that are there."""
    numbers: Integers = part.columns["meanings"]["numbers"][part.there]
    return numbers


def _texts_in(part: Part, places: Integers) -> Iterator[str]:
    """The texts at some places."""
    content, ends = part.columns["texts"]["bytes"], part.columns["texts"]["ends"]
    for place in places.tolist():
        yield content[int(ends[place - 1]) if place else 0 : int(ends[place])].tobytes().decode()


# ---- meanings ----------------------------------------------------------------------------------------------


def _meaning_set(store: LibraryStore) -> RowSet:
    form = f"1 {store.settings.sentence_revision}"
    return RowSet(store.folder / FACTS, "meanings", _MEANINGS, dict.fromkeys(_MEANINGS, form))


def _meanings_of(store: LibraryStore, names: RowParts | None = None) -> RowParts:
    """Published vectors of distinctive words. Where their files are damaged or away, those of ``names`` are
    made in memory, if they are not very many.
    """
    if known := _meaning_set(store).known(content=True):
        return known[0]
    vectors = _earlier(store)
    if names is not None and store.settings.sentence_encoder:
        texts = {*_texts_without(names, np.empty(0, np.int64)).values()}
        if 0 < len(missing := sorted(texts - vectors.keys())) <= _FEW_NAMES:
            vectors |= zip(missing, _encoded(store, missing), strict=True)
    return _in_memory(vectors)


def _publish_meanings(store: LibraryStore, names: _NamesOf, *, encode: bool) -> None:
    published, meanings = names.set.known(content=False), _meaning_set(store)
    assert published is not None  # just now
    known, number = meanings.known(content=False) or (RowParts(_MEANINGS, ()), -1)
    vectors = {} if number >= 0 else _earlier(store)
    texts = _texts_without(published[0], known.rows)
    if store.catalogue.removed():  # whose names may come back
        texts |= {_number(text) >> 1: text for text in vectors}
        gone: set[int] = set()
    else:
        gone = {*known.rows[~are_among(known.rows, _numbers_in(published[0]))].tolist()}
    new = any(text not in vectors for text in texts.values())
    if new and not (encode and store.encoders.sentences_of_all):
        texts = {one: text for one, text in texts.items() if text in vectors}

    def made(numbers: Sequence[int]) -> tuple[Integers, Mapping[str, Arrays]]:
        new = {one: texts[one] for one in numbers if one in texts}
        found = {text: vectors[text] for text in new.values() if text in vectors}
        if missing := [text for text in new.values() if text not in found]:
            found |= zip(missing, _encoded(store, missing), strict=True)
        return np.array([*new], np.int64), _vector_columns(new.values(), found)

    if texts or gone:
        changed = texts.keys() | gone
        meanings.publish(number + 1, lambda _: changed, lambda: sorted(texts), made)


def _texts_without(names: RowParts, known: Integers) -> dict[int, str]:
    """Distinctive words that are not known, by their number."""
    texts: dict[int, str] = {}
    every = _numbers_in(names)
    new = every[(every >= 0) & ~are_among(every, known)]
    for part in names.parts if len(new) else ():
        numbers = part.columns["meanings"]["numbers"]
        places = np.flatnonzero(part.there & are_among(numbers, new))
        texts |= zip(numbers[places].tolist(), _texts_in(part, places), strict=True)
    return texts


def _numbers_in(names: RowParts) -> Integers:
    """Numbers of the distinctive words of all names, rising: what rises is found among others sooner."""
    return np.sort(np.concatenate([np.empty(0, np.int64), *map(_meanings, names.parts)]))


def _encoded(store: LibraryStore, texts: Sequence[str]) -> Sequence[Floats]:
    """Unit vectors (d,) of texts, of what is rounded to half precision, as all features."""
    encoder = store.encoders.sentences_of_all
    assert encoder is not None
    return [*normalised(encoder.encode_text(texts).astype(np.float16))]


def _vector_columns(texts: Collection[str], vectors: Mapping[str, Floats]) -> Mapping[str, Arrays]:
    return {
        "texts": _MEANINGS["texts"].made([text.encode() for text in texts]),
        "vectors": _MEANINGS["vectors"].made([vectors[text] for text in texts]),
    }


def _in_memory(vectors: Mapping[str, Floats]) -> RowParts:
    by_number = {_number(text) >> 1: text for text in vectors}
    texts = [by_number[one] for one in sorted(by_number)]
    return _part(_MEANINGS, sorted(by_number), _vector_columns(texts, vectors))


def _vectors_of(meanings: RowParts) -> Iterator[tuple[str, Floats]]:
    """Texts with their vectors (d,)."""
    for part in meanings.parts:
        places = np.flatnonzero(part.there)
        yield from zip(_texts_in(part, places), part.columns["vectors"]["numbers"][places], strict=True)


def _earlier(store: LibraryStore) -> dict[str, Floats]:
    """Vectors by texts in the file of earlier versions, where they are of the library's sentence encoder."""
    path = store.folder / "cache" / "names.table"
    try:
        columns = map_sealed_arrays(path, ["recipe", "texts", "vectors"])
    except DataError:
        return {}
    kind, _, revision = columns["recipe"].tobytes().decode().partition(" ")
    texts = columns["texts"].tobytes().decode()
    if revision != store.settings.sentence_revision or kind not in _EARLIER or not texts:
        return {}
    return dict(zip(texts.split("\n"), columns["vectors"], strict=True))


@lru_cache(maxsize=1 << 16)
def _number(text: str) -> int:
    """A number of 64 bits for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
