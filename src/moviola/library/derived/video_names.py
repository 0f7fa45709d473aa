"""Words in names of videos (names of files, and titles inside of them), and in keywords, descriptions and
people: how rare each word is, and which words of a name distinguish its video from others.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from moviola.files.names import composed
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.places import Copy
from moviola.retrieval.phrases import FUNCTION_WORDS, content_words
from moviola.types import Saying
from moviola.words import fold, letters_of, pairs_of, terms_of_word
from moviola.words.spellings import words_at
from moviola.words.terms import word_of_term

__all__ = ["VideoNames", "Words", "described", "most_in_common", "named", "stems_in", "words_by_video"]

# A word is distinctive if it is in one name only, or in at most one of this many.
_ONE_IN = 8
_NUMBER = re.compile(r"\d+")
# A join of two words: "BottleDetection".
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Words(NamedTuple):
    """Words of the names of a video: all stems, and of each word, in the order of the names, its own;
    function words are left out of these where a name has others.
    """

    stems: frozenset[str]
    words: Mapping[str, frozenset[str]]

    def distinctive(self, is_common: Callable[[str], bool]) -> str:
        """The words that part the video from others: those with a stem that is not common."""
        return " ".join(word for word, own in self.words.items() if not all(map(is_common, own)))


def most_in_common(count: int) -> int:
    """A stem is common if more than this many of ``count`` videos have it."""
    return max(1, count // _ONE_IN) if count > 1 else 0


def words_by_video(texts: Iterable[tuple[int, str]], languages: Collection[str] = ()) -> dict[int, Words]:
    """Words of texts with the row numbers of their videos, read in English and some languages."""
    names: dict[int, dict[str, None]] = defaultdict(dict)
    for row, text in texts:
        names[row][text] = None
    found = {}
    for row, own in names.items():
        stems = (
            frozenset(letters_of(fold(text))).union(*stems_in(text, languages, every=True).values())
            for text in own
        )
        words = dict.fromkeys(word for text in own for word in words_of_name(text))
        found[row] = Words(frozenset().union(*stems), {word: _stems(word, languages) for word in words})
    return found


def named(
    videos: Mapping[int, VideoRow], copies: Iterable[Copy], sayings: Mapping[int, Sequence[Saying]]
) -> Iterator[tuple[int, str]]:
    """Names of some videos by row number: of their files, of further files of the same videos, and titles in
    files; folders and suffixes do not count.
    """
    paths = [(row, video.path) for row, video in videos.items()]
    paths += [(copy.video, copy.path) for copy in copies if copy.video in videos]
    yield from ((row, Path(path).stem) for row, path in paths)
    yield from ((row, one.text) for row, one in _said(videos, sayings) if one.kind == "title")


def described(
    videos: Mapping[int, VideoRow], sayings: Mapping[int, Sequence[Saying]]
) -> Iterator[tuple[int, str]]:
    """All that files say of some videos."""
    return ((row, one.text) for row, one in _said(videos, sayings))


@dataclass(frozen=True)
class VideoNames:
    """Words of the file names of a library's videos.

    Attributes:
        words: of each video that has some, by row number.
        videos: row numbers of all videos, rising.
        more: words are weighed as if there were this number of videos more.
    """

    words: Mapping[int, Words]
    videos: Sequence[int]
    more: int = 0

    @classmethod
    def of(
        cls,
        videos: Mapping[int, VideoRow],
        copies: Iterable[Copy] = (),
        sayings: Mapping[int, Sequence[Saying]] = MappingProxyType({}),
        languages: Collection[str] = (),
    ) -> VideoNames:
        """From :func:`named`, read in English and some languages."""
        return cls(words_by_video(named(videos, copies, sayings), languages), sorted(videos))

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
        return cls(words_by_video(described(videos, sayings), languages), sorted(videos), more=1)

    @property
    def count(self) -> int:
        """Number of videos."""
        return len(self.videos)

    @cached_property
    def holding(self) -> Mapping[str, set[int]]:
        """Row numbers of the videos whose names have a stem."""
        holding: dict[str, set[int]] = defaultdict(set)
        for row, own in self.words.items():
            for stem in own.stems:
                holding[stem].add(row)
        return dict(holding)

    @cached_property
    def weight(self) -> Mapping[str, float]:
        """Of each stem, ln(N / n), with n of N videos that have it; 0 if all have it."""
        return {stem: math.log((self.count + self.more) / len(rows)) for stem, rows in self.holding.items()}

    @cached_property
    def distinctive(self) -> Mapping[int, str]:
        """Distinctive words by row number, where there are some."""
        most = most_in_common(self.count)
        common = frozenset(stem for stem, rows in self.holding.items() if len(rows) > most)
        return {
            row: text for row, own in self.words.items() if (text := own.distinctive(common.__contains__))
        }


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
