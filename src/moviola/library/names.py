"""The words in the names of videos: which of them tell a video from the others, and what they mean.

``cache/names.npz`` holds sentence vectors of the telling words; made when a library is written to. Where a
vector is missing, a name is found by its words alone until the next run of indexing.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.files.writing import atomic_write
from moviola.library.catalogue import VideoRow
from moviola.library.store import LibraryStore

if TYPE_CHECKING:
    from snowballstemmer.basestemmer import BaseStemmer

__all__ = ["VideoNames", "publish_names", "read_name_vectors", "stems_of"]

# A word tells something of a video if at most one in so many videos has it in its name, or this one alone.
_ONE_IN = 8
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after an and are as at be before behind below beside between by during
        for from get gets has have he her his in into is it its near no not of off on onto or out
        over she so some somebody someone something than that the their them then there they this
        through to under up was were while who with""",
    )
)
_WORD = re.compile(r"[^\W\d_]{2,}")
# Where one piece is two words: "BottleDetection".
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class VideoNames:
    """What the file names of a library's videos say.

    Attributes:
        holding: row numbers of the videos that have a stem in their name.
        weight: of each stem, ln(N / n), with n of N videos that have it; 0 of one that all have.
        unknown: of a stem that none has, ln(N + 1).
        telling: the telling words of each video that has some, by row number.
    """

    holding: Mapping[str, set[int]]
    weight: Mapping[str, float]
    unknown: float
    telling: Mapping[int, str]

    @classmethod
    def of(cls, videos: Mapping[int, VideoRow]) -> VideoNames:
        """Of the files of some videos by row number; folders and endings do not count."""
        words = {row: _words(Path(video.path).stem) for row, video in videos.items()}
        holding: dict[str, set[int]] = defaultdict(set)
        for row, own in words.items():
            for word in own:
                holding[_stem(word)].add(row)
        most = max(1, len(videos) // _ONE_IN) if len(videos) > 1 else 0
        telling = {
            row: " ".join(word for word in own if len(holding[_stem(word)]) <= most)
            for row, own in words.items()
        }
        return cls(
            dict(holding),
            {stem: math.log(len(videos) / len(rows)) for stem, rows in holding.items()},
            math.log(len(videos) + 1),
            {row: text for row, text in telling.items() if text},
        )


def stems_of(text: str) -> set[str]:
    """Stems of the words of a text; function words, numbers and single letters do not count."""
    return {_stem(word) for word in _words(text)}


def publish_names(store: LibraryStore) -> None:
    """Bring the vectors up to date; under the library's write lock."""
    texts = sorted(set(VideoNames.of(store.searchable()).telling.values()))
    vectors = read_name_vectors(store)
    if texts == sorted(vectors) or not store.settings.sentence_encoder:
        return
    if new := [text for text in texts if text not in vectors]:
        encoder = store.encoders.sentences
        assert encoder is not None
        vectors |= dict(zip(new, encoder.encode_text(new).astype(np.float16), strict=True))
    rows = np.array([vectors[text] for text in texts], np.float16).reshape(len(texts), -1)
    with atomic_write(_path(store), "wb") as file:
        np.savez(file, texts=np.array(texts, dtype=np.str_), vectors=rows, recipe=_recipe(store))


def read_name_vectors(store: LibraryStore) -> dict[str, NDArray[np.float16]]:
    """Sentence vectors (d,) of telling words that were published with the library's sentence encoder."""
    try:
        with np.load(_path(store)) as file:
            if str(file["recipe"]) != _recipe(store):
                return {}
            return dict(zip(file["texts"].tolist(), file["vectors"], strict=True))
    except (OSError, ValueError, KeyError, EOFError, zlib.error):
        return {}


def _words(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(_HUMP.sub(" ", text)))
    return [word for word in words if word not in _FUNCTION_WORDS]


@cache
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> BaseStemmer:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def _path(store: LibraryStore) -> Path:
    return store.folder / "cache" / "names.npz"


def _recipe(store: LibraryStore) -> str:
    return f"1 {store.settings.sentence_revision}"
