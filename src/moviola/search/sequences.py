"""Sequences: chains of one candidate per step, in order, in one video.

A step follows another if neither reaches over the middle of the other and the pause is at most the gap. A
chain is as strong as its weakest step: its score is the lowest of theirs, and of equal chains the one with
the larger sum of matching scores comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from moviola.search.found import Found
from moviola.temporal import suppress
from moviola.types import Reason, Span

__all__ = ["chains"]

# Overlap (IoU) above which two chains of moments in one video are one.
_SAME_CHAIN = 0.5


def chains(steps: Sequence[Sequence[Found]], gaps: Sequence[float]) -> list[Found]:
    """The best chain for each moment of the last step; of chains that overlap much the best.

    Args:
        steps: candidates of each step.
        gaps: for each step but the first, most seconds from the end of the one before to its start.
    """
    chained = [replace(first, steps=(first,)) for first in steps[0]]
    for gap, later in zip(gaps, steps[1:], strict=True):
        by_row: dict[int, list[Found]] = {}
        for chain in chained:
            by_row.setdefault(chain.row, []).append(chain)
        longer = (_best_chain(by_row.get(one.row, ()), one, gap) for one in later)
        chained = [chain for chain in longer if chain is not None]
    return _distinct(chained)


def _best_chain(chains: Iterable[Found], later: Found, gap: float) -> Found | None:
    fitting = [chain for chain in chains if _follows(chain.steps[-1].span, later.span, gap)]
    if not fitting:
        return None
    best = max(fitting, key=lambda chain: (chain.score, chain.match, -chain.span.start))
    kinds = {one.snippet_kind for one in (best, later) if one.snippet}
    return Found(
        best.row,
        Span(best.span.start, max(best.span.end, later.span.end)),
        min(best.score, later.score),
        best.source if best.source == later.source else "both",
        " … ".join(filter(None, (best.snippet, later.snippet))),
        best.match + later.match,
        (*best.steps, later),
        kinds.pop() if len(kinds) == 1 else "",
        why=_of_weakest(best, later),
    )


def _of_weakest(earlier: Found, later: Found) -> tuple[Reason, ...]:
    """Reasons of the weaker step, and so of the whole chain."""
    return min(later, earlier, key=lambda one: one.score).why


def _follows(earlier: Span, later: Span, gap: float) -> bool:
    """Whether one moment comes after another, with a pause of at most ``gap`` seconds."""
    middles = ((earlier.start + earlier.end) / 2, (later.start + later.end) / 2)
    apart = earlier.end <= middles[1] and middles[0] <= later.start
    return apart and later.start - earlier.end <= gap


def _distinct(chains: Sequence[Found]) -> list[Found]:
    """Of chains of one video that overlap much, the best."""
    ordered = sorted(chains, key=lambda chain: (-chain.score, -chain.match))
    start, end = (np.array([getattr(one.span, side) for one in ordered], float) for side in ("start", "end"))
    rows, order = np.array([one.row for one in ordered], np.int64), -np.arange(len(ordered))
    return [ordered[place] for place in suppress(start, end, order, _SAME_CHAIN, video=rows).tolist()]
