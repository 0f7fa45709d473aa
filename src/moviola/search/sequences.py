"""Sequences: chains of one candidate per step, in order, in one video.

A step follows another if neither reaches over the middle of the other and the pause is at most the gap. A
chain is as strong as its weakest step: its score is the lowest of theirs, and of equal chains the one with
the larger sum of matching scores comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from moviola.search.found import Found
from moviola.search.fusion import columns_of
from moviola.temporal import suppress
from moviola.types import Span

__all__ = ["chains"]

# Overlap (IoU) above which two chains of moments in one video are one.
_SAME_CHAIN = 0.5


def chains(steps: Sequence[Sequence[Found]], gaps: Sequence[float]) -> list[Found]:
    """The best chain for each candidate of the last step; of chains that overlap much the best.

    ``gaps`` are, for each step but the first, most seconds from the end of the one before to its start.
    """
    chained = [replace(first, steps=(first,)) for first in steps[0]]
    for gap, later in zip(gaps, steps[1:], strict=True):
        by_row: dict[int, list[Found]] = defaultdict(list)
        for chain in chained:
            by_row[chain.row].append(chain)
        longer = (_best_chain(by_row[one.row], one, gap) for one in later)
        chained = [chain for chain in longer if chain is not None]
    ordered = sorted(chained, key=lambda chain: (-chain.score, -chain.match))
    start, end, order, rows = columns_of(ordered)
    return [ordered[place] for place in suppress(start, end, order, _SAME_CHAIN, video=rows).tolist()]


def _best_chain(chains: Iterable[Found], later: Found, gap: float) -> Found | None:
    """A step after the best chain that it can follow; None if after none. Of equal chains the one with the
    larger sum of matching scores is better, then the one that begins first.
    """
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
        why=min(later, best, key=lambda one: one.score).why,  # of the weakest step
    )


def _follows(earlier: Span, later: Span, gap: float) -> bool:
    """Whether one moment comes after another, with a pause of at most ``gap`` seconds."""
    apart = earlier.end <= (later.start + later.end) / 2 and (earlier.start + earlier.end) / 2 <= later.start
    return apart and later.start - earlier.end <= gap
