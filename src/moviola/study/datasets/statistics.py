"""The columns of TVR-Ranking's Tables 1 and 4 for any annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.english import verb_forms

__all__ = ["Spread", "Statistics", "statistics", "words"]

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Spread:
    """Smallest, mean and largest of some numbers; NaN for none."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Spread:
        """Of (n,) numbers, of which NaN do not count."""
        known = values[~np.isnan(values)] if not np.isnan(values).all() else np.array([np.nan])
        return cls(float(known.min()), float(known.mean()), float(known.max()))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Table 1: queries, moments, videos with a moment, vocabulary, verbs (different forms that a tagger takes
    for verbs; None where they were not counted), total hours of moments and videos.
    Table 4: spread of query length (words), moment and video duration (seconds), their mean ratio.
    """

    queries: int
    moments: int
    videos: int
    vocabulary: int
    verbs: int | None
    moment_hours: float
    video_hours: float
    query_length: Spread
    moment_seconds: Spread
    video_seconds: Spread
    ratio: float


def statistics(
    found: Annotations, queries: Sequence[str] | None = None, *, count_verbs: bool = False
) -> Statistics:
    """Count and measure. Videos are those with a moment.

    Moments are counted once per video and span, in the spreads too: in the paper's tables hours divided by
    moments are the mean duration.

    Args:
        queries: texts to count as queries; those of the annotations when None, each once.
        count_verbs: count verbs too, see :func:`moviola.study.datasets.english.verb_forms`.

    Raises:
        MissingDependency: verbs are to be counted, and spaCy is not installed.
    """
    texts = [text for _, text in found.queries] if queries is None else queries
    spans = np.unique(np.stack([found.video, found.start, found.end], axis=1), axis=0)
    video = spans[:, 0].astype(np.int64)
    used = np.unique(video)
    lengths = spans[:, 2] - spans[:, 1]
    durations = found.durations[used]
    spoken = [words(text) for text in texts]
    return Statistics(
        queries=len(texts),
        moments=len(spans),
        videos=len(used),
        vocabulary=len(set(chain.from_iterable(spoken))),
        verbs=len(verb_forms(texts)) if count_verbs else None,
        moment_hours=float(lengths.sum()) / 3600,
        video_hours=float(np.nansum(durations)) / 3600,
        query_length=Spread.of(np.array([*map(len, spoken)], dtype=np.float64)),
        moment_seconds=Spread.of(lengths),
        video_seconds=Spread.of(durations),
        ratio=Spread.of(lengths / found.durations[video]).mean,
    )


def words(text: str) -> list[str]:
    """Words of a sentence in lower case."""
    return _WORD.findall(text.lower())
