"""Contract of refiners: proposals to moments with finer times and a better order (SPR, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval.calibration import Calibration
from moviola.retrieval.proposals import Proposals

__all__ = ["CONTEXT", "SAME_MOMENT", "Refined", "Refiner", "UntrainedRefiner"]

CONTEXT = 8.0
"""Context in seconds on both sides of a proposal (tau_C; SPR, section 4.6)."""

SAME_MOMENT = 0.5
"""Two moments of one video are duplicates if they overlap more than this (IoU), or one contains the other."""


@dataclass(frozen=True)
class Refined:
    """The best span of each of N proposals.

    Attributes:
        start, end: (N,) float64 seconds, inside the video, end > start.
        score: (N,) float, the matching score (phi of the paper), comparable within one query.
        answerable: log odds that the query has an answer among all of them; None of a refiner that does not
            say.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    score: NDArray[np.floating[Any]]
    answerable: float | None = None


class Refiner(Protocol):
    """Proposals to moments."""

    @property
    def needs_tokens(self) -> bool:
        """Whether :meth:`refine` reads the query's tokens, not only its vector."""

    @property
    def in_encoder_space(self) -> bool:
        """Whether scores are cosines in the encoder's space, not on the refiner's own scale."""

    @property
    def longest_shot(self) -> float | None:
        """Seconds of the longest shot proposed as a whole (``cut_at_shots``); None leaves proposals uncut."""

    @property
    def calibration(self) -> Calibration | None:
        """From evidence to the probability of being right; None if not measured."""

    @property
    def suppress_above(self) -> float:
        """IoU above which the worse of two moments is dropped, as where one contains the other; 1: none."""

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Evidence of matching scores (n,): rising, and linear in the log odds (see calibration)."""

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Precompute what does not depend on the query, into the features' cache."""

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """A span and a score for each of the N proposals of one query alone, in their order.

        Args:
            queries, query: with the query, and its place among them.
            features: the videos that proposals refer to by place.
            proposals: of this query.
        """


class UntrainedRefiner:
    """The part of :class:`Refiner` that all of them share."""

    __slots__ = ()

    needs_tokens, in_encoder_space = False, True
    calibration, suppress_above = None, 1.0

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The cosines themselves, (n,)."""
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Nothing to precompute."""
