"""The columns of TVR-Ranking's Tables 1 and 4 for any annotations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moviola.datasets.annotations import Annotations

__all__ = ["Spread", "Statistics", "statistics", "verbs", "words"]

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_VOWELS = "aeiou"
# Forms that no ending gives away.
_IRREGULAR = frozenset({
    "is", "are", "was", "were", "be", "has", "have", "had", "does", "did", "goes", "went", "gone", "took",
    "taken", "gave", "given", "got", "came", "ran", "sat", "stood", "held", "put", "puts", "said", "told",
    "saw", "seen", "left", "made", "threw", "thrown", "fell", "fallen", "spoke", "drove", "ate", "drank",
    "wore", "laid", "let",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spread:
    """Smallest, mean and largest of some numbers; NaN for none."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Spread:
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(float("nan"), float("nan"), float("nan"))
        return cls(float(known.min()), float(known.mean()), float(known.max()))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Table 1: queries, moments, videos with a moment, vocabulary, verbs, total hours of moments and videos.
    Table 4: spread of query length (words), moment and video duration (seconds), their mean ratio.
    """

    queries: int
    moments: int
    videos: int
    vocabulary: int
    verbs: int
    moment_hours: float
    video_hours: float
    query_length: Spread
    moment_seconds: Spread
    video_seconds: Spread
    ratio: float


def statistics(found: Annotations, queries: Sequence[str] | None = None) -> Statistics:
    """Count and measure.

    Args:
        found: the annotations.
        queries: texts to count as queries; the captions when None.

    Moments are counted once per video and span; videos are those with a moment.
    """
    texts = found.captions if queries is None else tuple(queries)
    spans = {(int(v), s, e) for v, s, e in zip(found.video, found.start, found.end, strict=True)}
    used = np.unique(found.video)
    lengths = found.end - found.start
    durations = found.durations[used]
    vocabulary = {word for text in texts for word in words(text)}
    ratios = lengths / found.durations[found.video]
    return Statistics(
        queries=len(texts),
        moments=len(spans),
        videos=len(used),
        vocabulary=len(vocabulary),
        verbs=len(verbs(vocabulary)),
        moment_hours=sum(end - start for _, start, end in spans) / 3600,
        video_hours=float(np.nansum(durations)) / 3600,
        query_length=Spread.of(np.array([len(words(text)) for text in texts], dtype=np.float64)),
        moment_seconds=Spread.of(lengths),
        video_seconds=Spread.of(durations),
        ratio=Spread.of(ratios).mean,
    )


def words(text: str) -> list[str]:
    """Words of a sentence in lower case."""
    return _WORD.findall(text.lower())


def verbs(vocabulary: Iterable[str]) -> set[str]:
    """Words that are verb forms, as far as their endings tell.

    The paper counts with a tagger; without one all forms of a stem count that occurs with -ed or -ing and in
    one more form (walk, walks, walked, walking), and irregular forms that are common in captions. Nouns that
    are verbs too are counted, rare verbs in a single form are not: an estimate, good for comparing sets.
    """
    endings: dict[str, set[str]] = defaultdict(set)
    forms: dict[str, set[str]] = defaultdict(set)
    for word in vocabulary:
        for stem, ending in _stems(word):
            endings[stem].add(ending)
            forms[stem].add(word)
    regular = {
        word
        for stem, seen in endings.items()
        if len(seen) >= 2 and seen & {"ed", "ing"}
        for word in forms[stem]
    }
    return regular | (_IRREGULAR & set(vocabulary))


def _stems(word: str) -> list[tuple[str, str]]:
    """Possible stems of a word with the ending that was taken off; a final e and a doubled letter go too."""
    found = [(word.removesuffix("e"), "")]
    for suffix, ending in (("ing", "ing"), ("ed", "ed"), ("es", "s"), ("s", "s")):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= 2 and any(letter in _VOWELS + "y" for letter in stem):
            if len(stem) > 3 and stem[-1] == stem[-2]:
                stem = stem[:-1]
            found.append((stem.removesuffix("e"), ending))
    return found
