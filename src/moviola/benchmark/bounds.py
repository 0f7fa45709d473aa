"""How good refinement and re-ranking of given proposals could be at best (SPR, section 4.6, Table 4).

UB(tau_C, mu): every answer that a padded proposal touches is cut to the window, and counts where what is left
overlaps it enough; then all that count are ranked ideally. PUB: the same with spans on the grid of the clips.

An answer that counts stands in the ideal run with its own span. What is left of it may overlap another answer
more, which the greedy matching would then give it; so the bound would be none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from moviola.measures import Measure, Run, evaluate
from moviola.training.data import Rows
from moviola.training.recipes import Split
from moviola.types import Proposal

__all__ = ["upper_bounds"]


def upper_bounds(
    split: Split,
    proposals: Sequence[Sequence[Proposal]],
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
        grid: length of a clip in seconds for the practical bound; None for the exact one.
    """
    found: dict[str, float] = {}
    by_query = [np.flatnonzero(split.pairs.query == row) for row in range(len(split.queries))]
    for overlap in overlaps:
        rows: Mapping[str, list[dict[str, object]]] = {
            name: _ideal(split, _windows(own, context), answers, overlap, grid)
            for name, own, answers in zip(split.queries.query_ids, proposals, by_query, strict=True)
        }
        measure = Measure("nDCG", k, overlap)
        run = Run.from_dict(rows)
        found[str(measure)] = evaluate(run, split.pairs.qrels, [measure]).measures[str(measure)]
    return found


Window = tuple[float, float]


def _windows(own: Sequence[Proposal], context: float) -> dict[str, list[Window]]:
    """Padded proposals by video."""
    windows: dict[str, list[Window]] = {}
    for p in own:
        windows.setdefault(p.video_id, []).append((max(0.0, p.span.start - context), p.span.end + context))
    return windows


def _ideal(
    split: Split, windows: Mapping[str, list[Window]], answers: Rows, overlap: float, grid: float | None
) -> list[dict[str, object]]:
    """The answers that some window lets be found, as they are, with their grade as score."""
    ideal: list[dict[str, object]] = []
    for pair in answers.tolist():
        moment = int(split.pairs.moment[pair])
        video = split.pairs.videos[int(split.pairs.video[moment])]
        start, end = float(split.pairs.start[moment]), float(split.pairs.end[moment])
        spans = (_closest(start, end, window, grid) for window in windows.get(video, []))
        if any(_iou(start, end, span) >= overlap for span in spans if span is not None):
            grade = float(split.pairs.relevance[pair])
            ideal.append({"video_id": video, "start": start, "end": end, "score": grade})
    return ideal


def _closest(start: float, end: float, window: Window, grid: float | None) -> Window | None:
    """The span in the window that overlaps [start, end) most; None where the window misses it."""
    left, right = max(start, window[0]), min(end, window[1])
    if right <= left:
        return None
    if grid is None:
        return left, right
    lefts = [np.floor(left / grid) * grid, np.ceil(left / grid) * grid]
    rights = [np.floor(right / grid) * grid, np.ceil(right / grid) * grid]
    options = [(float(a), float(b)) for a in lefts for b in rights if b > a]
    return max(options, key=lambda span: _iou(start, end, span))


def _iou(start: float, end: float, span: tuple[float, float]) -> float:
    shared = max(0.0, min(end, span[1]) - max(start, span[0]))
    return shared / (end - start + span[1] - span[0] - shared)
