"""TVR-Ranking's Figures 4 and 5 for any data set built the same way: a table and a figure each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from measure_studies import figures
from measure_studies.judged_pairs import Judged, ranks
from measure_studies.reports import Study
from moviola.study.datasets.building.consensus import LEVELS, Rating, agreement

__all__ = ["rating_study", "relevance_study"]


def relevance_study(judged: Judged, *, queries: int = 10, seed: int = 0) -> Study:
    """Relevance over similarity, and over the rank by it, of some queries (Figure 4).

    Args:
        judged: pairs of a val or test file.
        queries: number of queries, drawn at random; all if there are fewer.
        seed: of the draw.
    """
    count = len(judged.queries)
    drawn = np.random.default_rng(seed).choice(count, min(queries, count), replace=False)
    rank = ranks(judged) + 1
    chosen = {judged.queries[query]: np.flatnonzero(judged.query == query) for query in np.sort(drawn)}
    chosen = {name: rows[np.argsort(rank[rows])] for name, rows in chosen.items()}
    points = {
        name: (judged.similarity[rows], rank[rows], judged.relevance[rows]) for name, rows in chosen.items()
    }
    cells = [
        (name, *(column[place].item() for column in columns))
        for name, columns in points.items()
        for place in range(len(columns[0]))
    ]
    figure = figures.relevance_points(points, "Relevance by query-caption similarity")
    return Study.of("relevance", "query similarity rank relevance", cells, figure)


def rating_study(ratings: Iterable[Rating]) -> Study:
    """Pairs by the lowest and the highest of all their ratings, and by final level (Figure 5, a and b).

    Shares are those of the pairs with at least two ratings, and of the pairs that raters agreed on.
    """
    agreed = agreement(ratings)
    every, final = max(agreed.low_high.sum(), 1), max(agreed.histogram.sum(), 1)
    spread = [
        ("ratings", low, high, int(agreed.low_high[low, high]), float(agreed.low_high[low, high] / every))
        for low in range(LEVELS)
        for high in range(low, LEVELS)
    ]
    levels = [
        ("final", level, level, int(pairs), float(pairs / final))
        for level, pairs in enumerate(agreed.histogram)
    ]
    figure = figures.rating_spread(agreed.low_high / every, agreed.histogram / final, "Ratings of the pairs")
    return Study.of("ratings", "part lowest highest pairs share", [*spread, *levels], figure)
