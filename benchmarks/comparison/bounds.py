"""How good refinement and re-ranking of given proposals could be at best (SPR, section 4.6, Table 4).

UB(tau_C, mu): every answer that a padded proposal touches is cut to the window, and counts where what is left
overlaps it enough; then all that count are ranked ideally. PUB, the practical bound: the same with spans of
whole clips, as refiners answer: of 1 s for SPR_CLIP, 1.5 s for SPR_ReLo (the paper's "minimum time scale").
Clips are counted from the start of the padded proposal, as the paper cuts a proposal into intervals, and the
last one ends with it. So a span never leaves the window, and PUB is never above UB.

An answer that counts stands in the ideal run with its own span. A part of it might overlap another answer
more, which the greedy matching would then give it; so the bound would be none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers
from moviola.retrieval import Proposals
from moviola.study.measures import Measure, Run, evaluate
from moviola.study.training.data import Split
from moviola.temporal import overlap

__all__ = ["upper_bounds"]

Floats = NDArray[np.float64]


def upper_bounds(
    split: Split,
    proposals: Proposals,
    *,
    context: float,
    overlaps: Sequence[float] = (0.3, 0.5, 0.7),
    k: int = 20,
    grid: float | None = None,
) -> dict[str, float]:
    """NDCG@k of ideal refinement and re-ranking, by name of the measure.

    Args:
        split: queries and judgements.
        proposals: of each query.
        context: padding of a proposal on both sides, in seconds (tau_C).
        overlaps: thresholds mu.
        k: depth of NDCG.
        grid: length of a clip in seconds for the practical bound PUB; None for UB.
    """
    best = _best_overlaps(split, proposals, context, grid)
    found: dict[str, float] = {}
    for least in overlaps:
        measure = Measure("nDCG", k, least)
        run = _ideal(split, np.flatnonzero(best >= least))
        found[str(measure)] = evaluate(run, split.pairs.qrels, [measure]).measures[str(measure)]
    return found


def _ideal(split: Split, keep: Integers) -> Run:
    """Some of the pairs as answers, as they are, with their grade as score."""
    pairs, moment = split.pairs, split.pairs.moment[keep]
    queries, videos = (np.array(names, dtype=object) for names in (pairs.query_ids, pairs.videos))
    return Run.from_columns(
        queries[pairs.query[keep]],
        videos[pairs.video[moment]],
        pairs.start[moment],
        pairs.end[moment],
        pairs.relevance[keep],
        queries=pairs.query_ids,
        zero_length=True,
    )


def _best_overlaps(split: Split, proposals: Proposals, context: float, grid: float | None) -> Floats:
    """(P,) how much of each pair's moment a span in some padded proposal of its query can overlap."""
    pairs, durations = split.pairs, split.features.durations
    best = np.zeros(len(pairs))
    for pair, (query, moment) in enumerate(zip(pairs.query.tolist(), pairs.moment.tolist(), strict=True)):
        own, video = proposals.of(query), int(pairs.video[moment])
        there = own.video == video
        first = np.maximum(own.start[there] - context, 0.0)
        last = np.minimum(own.end[there] + context, durations[video])
        answer = (pairs.start[moment], pairs.end[moment])
        reached = _reached(answer, first, last, grid)
        best[pair] = reached.max(initial=0.0)
    return best


def _reached(answer: tuple[float, float], first: Floats, last: Floats, grid: float | None) -> Floats:
    """(n,) the largest overlap of a span in each window with one answer; 0 where the window misses it."""
    start, end = map(np.asarray, answer)
    left, right = np.maximum(start, first), np.minimum(end, last)
    if grid is None:
        lefts, rights = [left], [right]
    else:
        lefts, rights = (
            [first + rounded((edge - first) / grid) * grid for rounded in (np.floor, np.ceil)]
            for edge in (left, right)
        )
        rights = [np.minimum(edge, last) for edge in rights]
    tried = [overlap(start, end, a, b) for a in lefts for b in rights]
    best: Floats = np.where(right > left, np.max(tried, axis=0), 0.0)
    return best
