"""Search by the words in names of videos: their weights, and their meaning as vectors; and by the words in
what files say of them besides (keywords, descriptions, people), which have no vectors. Names are those of
files, and the titles that files have within.

``cache/names.table`` and ``cache/descriptions.table``, which writers make, hold them as mapped columns, so
that a query reads only the names that match. Where it is of another generation than the catalogue, that is
read; where a vector is missing, a name is found by its words alone until the next run of indexing.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.features import Integers, place_in
from moviola.files.array_file import map_sealed_arrays, write_sealed_arrays
from moviola.files.names import composed
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.places import Copy
from moviola.library.disk.store import LibraryStore
from moviola.retrieval.phrases import FUNCTION_WORDS, content_words
from moviola.retrieval.segments import normalised
from moviola.types import Saying
from moviola.values import dataclass
from moviola.words import fold, letters_of, pairs_of, terms_of_word
from moviola.words.spellings import words_at
from moviola.words.terms import word_of_term

__all__ = [
    "NameTable", "VideoNames", "descriptions_in", "names_in", "publish_names", "stems_in", "words_of_name",
]  # fmt: skip

# A word is distinctive if it is in one name only, or in at most one of this many.
_ONE_IN = 8
_NUMBER = re.compile(r"\d+")
# A join of two words: "BottleDetection".
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class VideoNames:
    """Words of the file names of a library's videos.

    Attributes:
        holding: row numbers of the videos whose name has a stem.
        weight: of each stem, ln(N / n), with n of N videos that have it; 0 if all have it.
        count: N.
        distinctive: distinctive words by row number, where there are some.
    """

    holding: Mapping[str, set[int]]
    weight: Mapping[str, float]
    count: int
    distinctive: Mapping[int, str]

    @classmethod
    def of(
        cls,
        videos: Mapping[int, VideoRow],
        copies: Iterable[Copy] = (),
        sayings: Mapping[int, Sequence[Saying]] = MappingProxyType({}),
        languages: Collection[str] = (),
    ) -> VideoNames:
        """From the files of some videos by row number, further paths of the same videos, and their titles
        among what their files say, read in English and some languages; folders and suffixes do not count.
        """
        paths = [(row, video.path) for row, video in videos.items()]
        paths += [(copy.video, copy.path) for copy in copies if copy.video in videos]
        titles = ((row, one.text) for row, one in _said(videos, sayings) if one.kind == "title")
        return cls._of_texts(
            len(videos), [*((row, Path(path).stem) for row, path in paths), *titles], languages
        )

    @classmethod
    def described(
        cls,
        videos: Mapping[int, VideoRow],
        sayings: Mapping[int, Sequence[Saying]],
        languages: Collection[str] = (),
    ) -> VideoNames:
        """The same of all that files say. A word of all videos weighs little, and not nothing as in names: a
        film that says so is one, however many others do.
        """
        return cls._of_texts(
            len(videos), ((row, one.text) for row, one in _said(videos, sayings)), languages, more=1
        )

    @classmethod
    def _of_texts(
        cls, count: int, texts: Iterable[tuple[int, str]], languages: Collection[str], more: int = 0
    ) -> VideoNames:
        """From texts with the row numbers of ``count`` videos; words are weighed as if there were
        ``more``.
        """
        names: dict[int, dict[str, None]] = defaultdict(dict)
        holding: dict[str, set[int]] = defaultdict(set)
        for row, name in texts:
            names[row][name] = None
            stems = stems_in(name, languages, every=True).values()
            for stem in frozenset(letters_of(fold(name))).union(*stems):
                holding[stem].add(row)
        most = max(1, count // _ONE_IN) if count > 1 else 0
        weight = {stem: math.log((count + more) / len(rows)) for stem, rows in holding.items()}
        distinctive = {}
        for row, own in names.items():
            words = (word for name in own for word in words_of_name(name))
            rare = [word for word in words if any(len(holding[s]) <= most for s in _stems(word, languages))]
            if rare:
                distinctive[row] = " ".join(dict.fromkeys(rare))
        return cls(dict(holding), weight, count, distinctive)


def _said(
    videos: Mapping[int, VideoRow], sayings: Mapping[int, Sequence[Saying]]
) -> Iterator[tuple[int, Saying]]:
    """What files say, with the row numbers of the videos."""
    return ((row, one) for row, own in sayings.items() if row in videos for one in own)


def stems_in(text: str, languages: Collection[str] = (), *, every: bool = False) -> dict[str, frozenset[str]]:
    """The words of a text with their stems in English and some languages, numbers and single letters left
    out; also function words where it has others, but with ``every``. In scripts without spaces, pairs of
    letters.

    >>> stems_in("BottleDetection_2019"), stems_in("the Häuser", ["de"])["häuser"] >= {"haus"}
    ({'bottle': frozenset({'bottl'}), 'detection': frozenset({'detect'})}, True)
    """
    pairs = dict.fromkeys(pairs_of(fold(text)))
    words = _words(text)
    if not every:
        words = [word for word in words if word not in FUNCTION_WORDS] if pairs else content_words(words)
    return {word: _stems(word, languages) for word in words} | {pair: frozenset({pair}) for pair in pairs}


def words_of_name(name: str) -> list[str]:
    """The words of a name in lower case, without numbers and single letters, and without function words where
    it has others.
    """
    return content_words(_words(name))


def _words(name: str) -> list[str]:
    parts = (_NUMBER.split(written.word) for written in words_at(_HUMP.sub(" ", composed(name))))
    return [part for own in parts for part in own if len(part) > 1]


def _stems(word: str, languages: Collection[str]) -> frozenset[str]:
    stems = (terms_of_word(word, language) for language in ("en", *languages))
    return frozenset(map(word_of_term, frozenset().union(*stems)))


_NAMES, _DESCRIPTIONS = "names.table", "descriptions.table"
# Of the file, and of those of earlier versions whose vectors are the same, but not all stems.
_KIND, _EARLIER = "8", ("4", "5", "6", "7")
_COLUMNS = {
    "stems": "<u8", "weights": "<f8", "ends": "<i8", "holding": "<i8", "counts": "<i8", "rows": "<i8",
    "meanings": "<i8", "texts": "u1", "vectors": "<f4",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class NameTable:
    """:class:`VideoNames` as columns.

    Attributes:
        stems: (S,) uint64 rising, a number for each stem (:func:`_number`).
        weights, ends: (S,) of each stem, and where in ``holding``, row numbers of videos, those with it end.
        counts: (2,) int64, number of videos, and of those with distinctive names.
        rows: (n,) int64 rising, row numbers of the videos whose names have a meaning.
        meanings: (n,) int64, places of these in ``vectors``.
        texts: UTF-8, distinctive words that have a vector, one name a line; also of removed videos, which may
            be restored.
        vectors: (m, d) float32, unit sentence vectors of these.
    """

    stems: NDArray[np.uint64]
    weights: NDArray[np.float64]
    ends: Integers
    holding: Integers
    counts: Integers
    rows: Integers
    meanings: Integers
    texts: NDArray[np.uint8]
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, names: VideoNames, vectors: Mapping[str, NDArray[np.float32]]) -> Self:
        """From names, and unit vectors (d,) of distinctive words, not all of which need be there."""
        by_number = sorted((_number(stem), stem) for stem in names.holding)
        holding = [sorted(names.holding[stem]) for _, stem in by_number]
        texts = sorted(vectors)
        place = {text: number for number, text in enumerate(texts)}
        places = [(row, place[text]) for row, text in sorted(names.distinctive.items()) if text in place]
        rows, meanings = np.array(places, np.int64).reshape(-1, 2).T
        return cls(
            np.array([number for number, _ in by_number], np.uint64),
            np.array([names.weight[stem] for _, stem in by_number], np.float64),
            np.cumsum([len(rows) for rows in holding], dtype=np.int64),
            np.array([row for rows in holding for row in rows], np.int64),
            np.array([names.count, len(names.distinctive)], np.int64),
            rows,
            meanings,
            np.frombuffer("\n".join(texts).encode(), np.uint8),
            np.array([vectors[text] for text in texts], np.float32).reshape(len(texts), -1 if texts else 0),
        )

    @property
    def whole(self) -> bool:
        """Whether all distinctive names have a vector."""
        return len(self.rows) == int(self.counts[1])

    @property
    def distinguishable(self) -> int:
        """Number of videos with a word in their names that not all have."""
        return len(self.distinguished())

    def distinguished(self) -> set[int]:
        """Row numbers of these."""
        distinctive = np.repeat(self.weights > 0, np.diff(self.ends, prepend=0))
        return set(np.unique(self.holding[distinctive]).tolist())

    def weight(self, stem: str) -> float:
        """ln(N / n), with n of N videos that have a stem; ln(N + 1) of one that none has."""
        place = place_in(self.stems, np.uint64(_number(stem)))
        return math.log(int(self.counts[0]) + 1) if place is None else float(self.weights[place])

    def videos_with(self, stem: str) -> Integers:
        """Row numbers (n,) of the videos with a stem in their names, rising."""
        place = place_in(self.stems, np.uint64(_number(stem)))
        if place is None:
            return self.holding[:0]
        return self.holding[self.ends[place - 1] if place else 0 : self.ends[place]]

    def vector_of(self) -> dict[str, NDArray[np.float32]]:
        texts = self.texts.tobytes().decode()
        return dict(zip(texts.split("\n"), self.vectors, strict=True)) if texts else {}

    def words(self) -> set[str]:
        """Distinctive words that have a vector."""
        return set(self.texts.tobytes().decode().split())


def names_in(store: LibraryStore, generation: int, videos: Mapping[int, VideoRow]) -> NameTable:
    """The names of the searchable videos of a library; mapped where the file is of this generation.
    Of several libraries, words weigh as in all names.
    """
    published = None if store.parts else _read(store)
    if published is not None and published[1] == generation:
        return published[0]
    names = VideoNames.of(
        videos, store.catalogue.copies(), store.catalogue.sayings(), store.catalogue.languages()
    )
    if not store.parts:
        return NameTable.of(names, published[0].vector_of() if published else {})
    known = [of_part[0].vector_of() for part in store.parts if (of_part := _read(part))]
    texts = set(names.distinctive.values())
    vectors = {text: vector for own in known for text, vector in own.items() if text in texts}
    # A word that is distinctive among all may not have been in its own library.
    return _table_of(store, names, vectors, encode=bool(store.settings.sentence_encoder))


def descriptions_in(store: LibraryStore, generation: int, videos: Mapping[int, VideoRow]) -> NameTable:
    """The same of what files say of these videos beside their titles; no text has a vector."""
    published = None if store.parts else _read(store, _DESCRIPTIONS)
    if published is not None and published[1] == generation:
        return published[0]
    return NameTable.of(
        VideoNames.described(videos, store.catalogue.sayings(), store.catalogue.languages()), {}
    )


def publish_names(store: LibraryStore, *, encode: bool = True) -> None:
    """Update the file; under the library's write lock. ``encode`` computes missing vectors, which may load
    the sentence encoder.
    """
    encode = encode and bool(store.settings.sentence_encoder)
    generation, published = store.catalogue.generation, _read(store)
    if published is not None and published[1] == generation and (published[0].whole or not encode):
        return
    videos, sayings, languages = store.searchable(), store.catalogue.sayings(), store.catalogue.languages()
    described = VideoNames.described(videos, sayings, languages)
    _write(store, NameTable.of(described, {}), generation, _DESCRIPTIONS)
    names = VideoNames.of(videos, store.catalogue.copies(), sayings, languages)
    vectors = published[0].vector_of() if published else {}
    if not store.catalogue.removed():
        texts = set(names.distinctive.values())
        vectors = {text: vector for text, vector in vectors.items() if text in texts}
    _write(store, _table_of(store, names, vectors, encode=encode), generation, _NAMES)


def _table_of(
    store: LibraryStore, names: VideoNames, vectors: Mapping[str, NDArray[np.float32]], *, encode: bool
) -> NameTable:
    """Names as columns, with the vectors that are known, and where ``encode`` those that are missing."""
    new = sorted(set(names.distinctive.values()) - vectors.keys())
    encoder = store.encoders.sentences_of_all if new and encode else None
    if encoder is None:
        return NameTable.of(names, vectors)
    # Rounded to half precision, as all features.
    rows = normalised(encoder.encode_text(new).astype(np.float16))
    return NameTable.of(names, {**vectors, **dict(zip(new, rows, strict=True))})


def _write(store: LibraryStore, table: NameTable, generation: int, name: str) -> None:
    recipe = np.frombuffer(_recipe(store).encode(), np.uint8)
    arrays = {name: (getattr(table, name), dtype) for name, dtype in _COLUMNS.items()}
    known = {"generation": (np.array([generation]), "<i8"), "recipe": (recipe, "u1")}
    write_sealed_arrays(_path(store, name), {**arrays, **known})


def _read(store: LibraryStore, name: str = _NAMES) -> tuple[NameTable, int] | None:
    """The published names with vectors of the library's sentence encoder, and their generation, -1 where
    their stems are of an earlier kind.
    """
    try:
        columns = map_sealed_arrays(_path(store, name), ["generation", "recipe", *_COLUMNS])
    except DataError:
        return None
    generation, recipe = int(columns.pop("generation")[0]), columns.pop("recipe").tobytes().decode()
    kind, _, revision = recipe.partition(" ")
    if revision != store.settings.sentence_revision or kind not in (_KIND, *_EARLIER):
        return None
    return NameTable(**columns), generation if kind == _KIND else -1


@lru_cache(maxsize=1 << 16)
def _number(stem: str) -> int:
    return int.from_bytes(hashlib.blake2b(stem.encode(), digest_size=8).digest(), "little")


def _path(store: LibraryStore, name: str) -> Path:
    return store.folder / "cache" / name


def _recipe(store: LibraryStore) -> str:
    return f"{_KIND} {store.settings.sentence_revision}"
