"""Figures of TVR-Ranking's Table 3, Table 4 and Figure 4, for any data set built the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue
from moviola.files.rows import number
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.consensus import LEVELS
from moviola.study.datasets.readers.tvr_ranking import asked_rows
from moviola.study.datasets.statistics import words

__all__ = [
    "Judged", "Replacement", "SimilarityTable", "caption_changes", "ranks", "read_judged",
    "relevance_by_similarity", "replacements",
]  # fmt: skip

_GENDER: Mapping[str, Literal["M", "F"]] = {
    **dict.fromkeys(words("man men guy guys boy boys he him his himself male gentleman"), "M"),
    **dict.fromkeys(words("woman women girl girls lady ladies she her hers herself female"), "F"),
}


@dataclass(frozen=True, slots=True)
class Replacement:
    """A word introduced by rewriting, its count, and its gender: M, F or N (Table 3)."""

    word: str
    count: int
    gender: Literal["M", "F", "N"]


def caption_changes(before: Annotations, after: Annotations) -> list[tuple[str, str]]:
    """Captions before and after, of the moments with the same id in both; without any an ``InvalidValue``."""
    captions = dict(zip(before.moment_ids, before.captions, strict=True))
    pairs = [(captions[m], c) for m, c in zip(after.moment_ids, after.captions, strict=True) if m in captions]
    if not pairs:
        raise InvalidValue("no moment id is in both annotations; give two states of one data set")
    return pairs


def replacements(pairs: Iterable[tuple[str, str]]) -> list[Replacement]:
    """Words that captions have after rewriting and not before, most frequent first.

    Articles are no replacements of a name and are not counted.

    Args:
        pairs: caption before and after.
    """
    counts: Counter[str] = Counter()
    for before, after in pairs:
        new = Counter(words(after)) - Counter(words(before))
        counts.update({word.removesuffix("'s"): count for word, count in new.items()})
    for article in ("a", "an", "the"):
        del counts[article]
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Replacement(word, count, _GENDER.get(word, "N")) for word, count in order]


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged pairs of a val or test file.

    Attributes:
        query: (p,) int64 positions in ``queries``.
        queries: ids.
        similarity: (p,) float64, sim(q, m.c).
        relevance: (p,) int64 levels 0 to 4.
    """

    query: NDArray[np.int64]
    queries: tuple[str, ...]
    similarity: NDArray[np.float64]
    relevance: NDArray[np.int64]

    @property
    def relevant_per_query(self) -> float:
        """Mean number of moments with relevance 1 to 4 per query (Table 4)."""
        return float((self.relevance > 0).sum() / len(self.queries))


def read_judged(path: Path) -> Judged:
    """Relevance and similarity of a TVR-Ranking pair file.

    Raises:
        NotFound: no such file.
        DataError: a pair without relevance (a pseudo training set has none) or similarity; the message names
            it.
    """
    place: dict[str, int] = {}
    rows: list[tuple[int, float, int]] = []
    for where, query_id, _, _, moment in asked_rows(path):
        if moment is None:
            continue
        rows.append((
            place.setdefault(query_id, len(place)),
            # A cosine; rounding may carry it a little past 1.
            number(moment.get("similarity"), "similarity", where, -1.01, 1.01),
            _level(moment, where),
        ))  # fmt: skip
    if not rows:
        raise DataError(f"{path}: holds no judged pair")
    query, similarity, relevance = zip(*rows, strict=True)
    return Judged(
        np.array(query, np.int64),
        tuple(place),
        np.array(similarity, np.float64),
        np.array(relevance, np.int64),
    )


def _level(moment: Mapping[str, Any], where: str) -> int:
    level = number(moment.get("relevance"), "relevance", where)
    if level != int(level) or level >= LEVELS:
        raise DataError(f"{where}: relevance: {moment.get('relevance')!r} is no level from 0 to {LEVELS - 1}")
    return int(level)


@dataclass(frozen=True, eq=False)
class SimilarityTable:
    """Numbers of Figure 4.

    Attributes:
        edges: (b + 1,) float64, bounds of the similarity bins, rising.
        counts: (5, b) int64; pairs by level and bin.
        by_rank: (k,) float64; mean level of the pairs at rank 1, 2, … by falling similarity in their query.
        rank_correlation: Spearman's of similarity and relevance over all pairs; NaN where one is constant.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    by_rank: NDArray[np.float64]
    rank_correlation: float

    @property
    def means(self) -> NDArray[np.float64]:
        """(b,) mean level of each bin; NaN for an empty one."""
        total = self.counts.sum(axis=0)
        weighted = np.arange(LEVELS) @ self.counts
        means: NDArray[np.float64] = np.full(len(total), np.nan)
        np.divide(weighted, total, out=means, where=total > 0)
        return means


def ranks(judged: Judged) -> NDArray[np.int64]:
    """(p,) rank of each pair by falling similarity in its query, 0 for the first."""
    order = np.lexsort((-judged.similarity, judged.query))
    starts = np.searchsorted(judged.query[order], judged.query[order])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts
    return rank


def relevance_by_similarity(judged: Judged, bins: int = 10) -> SimilarityTable:
    """Relevance by sim(q, m.c), by value and by rank (Figure 4, a and b).

    Args:
        judged: at least one pair.
        bins: of equal width from the least similarity to the largest, >= 1.
    """
    edges = np.histogram_bin_edges(judged.similarity, bins)
    column = np.clip(np.searchsorted(edges, judged.similarity, side="right") - 1, 0, bins - 1)
    counts = np.zeros((LEVELS, bins), np.int64)
    np.add.at(counts, (judged.relevance, column), 1)
    rank = ranks(judged)
    by_rank = np.bincount(rank, weights=judged.relevance) / np.bincount(rank)
    return SimilarityTable(edges, counts, by_rank, _spearman(judged.similarity, judged.relevance))


def _spearman(a: NDArray[Any], b: NDArray[Any]) -> float:
    from scipy.stats import spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)
