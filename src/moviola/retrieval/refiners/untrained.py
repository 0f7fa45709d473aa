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

    needs_tokens = False
    """The query's vector is enough."""
    in_encoder_space = True
    """Scores are cosines."""
    calibration = None
    """No training, so no measurement."""
    suppress_above = 1.0
    """Every refined proposal stays."""

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The cosines themselves, (n,)."""
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Nothing to precompute."""
