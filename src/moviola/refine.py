"""Stage 3 of SPR: proposals become moments with finer times and a better order (paper, section 3.3).

:class:`CurveRefiner` needs no training: it reads the curve of query-frame similarities around a proposal.
Trained refiners fill the same contract, :class:`Refiner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.types import Proposal, Span

__all__ = ["CurveRefiner", "Refined", "Refiner", "Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """A proposal with the frames around it.

    Attributes:
        proposal: the coarse moment.
        frames: (n, d) float32, L2-normalised features of the frames of the padded proposal, n >= 1.
        start: time of the first frame in seconds.
        rate: frames a second.
        duration: of the video, in seconds; no refined span reaches beyond it.
    """

    proposal: Proposal
    frames: NDArray[np.float32]
    start: float
    rate: float
    duration: float


@dataclass(frozen=True, slots=True)
class Refined:
    """The best span of a window and its matching score (phi of the paper; a cosine here)."""

    span: Span
    score: float


class Refiner(Protocol):
    """Proposals to moments. ``context`` is the padding on both sides that it wants, in seconds (tau_C)."""

    @property
    def context(self) -> float: ...

    def refine(self, query: NDArray[np.float32], windows: Sequence[Window]) -> list[Refined]:
        """One span and score a window, in the order of the windows; ``query`` is (d,), L2-normalised."""
        ...


@dataclass(frozen=True, slots=True)
class CurveRefiner:
    """The span that holds most of the similarity above a threshold; no training.

    With s the smoothed similarity of each frame to the query, low its ``floor`` quantile in the window and
    peak its maximum inside the proposal, the threshold is low + ``level`` (peak - low). The span is the run
    of frames with the largest sum of (s - threshold): dips that later frames make up for are bridged.
    ``before`` and ``after`` widen the span by what a moment is known to hold besides its telling frames.

    The score is the proposal's own similarity and the span's mean similarity, weighted by ``coarse_share``:
    a whole span that fits says more than one segment that does.
    """

    context: float = 8.0
    level: float = 0.5
    floor: float = 0.2
    before: float = 0.0
    after: float = 0.0
    coarse_share: float = 0.5

    def refine(self, query: NDArray[np.float32], windows: Sequence[Window]) -> list[Refined]:
        """See :meth:`Refiner.refine`."""
        return [self._refine(query, window) for window in windows]

    def _refine(self, query: NDArray[np.float32], window: Window) -> Refined:
        curve = _smoothed(window.frames @ query)
        first, last = self._best_run(curve, self._inside(window, len(curve)))
        start = window.start + first / window.rate - self.before
        end = window.start + (last + 1) / window.rate + self.after
        span = Span(max(0.0, start), max(min(end, window.duration), max(0.0, start) + 1e-3))
        own = float(curve[first : last + 1].mean())
        return Refined(span, self.coarse_share * window.proposal.score + (1 - self.coarse_share) * own)

    @staticmethod
    def _inside(window: Window, count: int) -> slice:
        """The frames of the proposal itself, without the padding."""
        span = window.proposal.span
        first = int(np.clip(round((span.start - window.start) * window.rate), 0, count - 1))
        last = int(np.clip(np.ceil((span.end - window.start) * window.rate), first + 1, count))
        return slice(first, last)

    def _best_run(self, curve: NDArray[np.float32], inside: slice) -> tuple[int, int]:
        """First and last frame, inclusive, of the run with the largest sum above the threshold."""
        low = float(np.quantile(curve, self.floor))
        peak = float(curve[inside].max())
        gains = np.concatenate(([0.0], np.cumsum(curve - (low + self.level * (peak - low)))))
        # The best end for each start: a running maximum from the right.
        best_end = np.maximum.accumulate(gains[::-1])[::-1]
        first = int(np.argmax(best_end[1:] - gains[:-1]))
        last = first + int(np.argmax(gains[first + 1 :]))
        return first, last


def _smoothed(curve: NDArray[np.float32]) -> NDArray[np.float32]:
    """A binomial filter of width 3; the ends stand for what lies beyond them."""
    padded = np.pad(curve, 1, mode="edge")
    smooth: NDArray[np.float32] = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return smooth
