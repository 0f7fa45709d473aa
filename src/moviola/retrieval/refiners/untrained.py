"""Common base of refiners without training: cosines in the encoder's space, no calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import VideoFeatures

__all__ = ["UntrainedRefiner"]


class UntrainedRefiner:
    """The part of :class:`moviola.retrieval.refiners.contract.Refiner` that all of them share."""

    __slots__ = ()

    @property
    def needs_tokens(self) -> bool:
        """False: the query's vector is enough."""
        return False

    @property
    def in_encoder_space(self) -> bool:
        """True: scores are cosines."""
        return True

    @property
    def calibration(self) -> None:
        """None: no training, so no measurement."""
        return None

    @property
    def suppress_above(self) -> float:
        """1: every refined proposal stays."""
        return 1.0

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The cosines themselves, (n,)."""
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Nothing to precompute."""
