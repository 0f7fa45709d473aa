"""What a refiner's scores mean: the probability that a moment is right, measured when it was trained.

A refiner's raw score is a number on a scale of its own. What is linear in the evidence is calibrated: Reel's
score as it is (a logit), and of SPR's refiners, whose score is a product of probabilities and an exponential,
the logarithm (:data:`LEAST`). The fit is in :mod:`moviola.training.calibration`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue

__all__ = ["KEY", "LEAST", "Calibration"]

KEY = "calibration"
"""Where it stands among the facts that ``config.json`` keeps beside a model."""

LEAST = 1e-38
"""Positive scores are at least this before their logarithm is taken, so that it stays finite."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probability of being right = sigmoid(slope raw + intercept); it rises, so the order stays.

    Attributes:
        slope: above 0, a unit of the raw score.
        intercept: log odds at a raw score of 0.
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept) and self.slope > 0):
            raise InvalidValue(
                f"calibration with slope {self.slope}, intercept {self.intercept}: give finite numbers, the "
                "slope above 0"
            )

    def score(self, raw: float) -> float:
        """In (0, 1), of a raw score."""
        return 1 / (1 + math.exp(-min(max(self.slope * raw + self.intercept, -700.0), 700.0)))

    @classmethod
    def of(cls, extra: Mapping[str, Any], folder: Path) -> Calibration | None:
        """What a model's folder keeps; None where it keeps none.

        Args:
            extra: see :class:`moviola.models.pretrained.Description`.
            folder: for messages.

        Raises:
            DataError: it is malformed.
        """
        stored = extra.get(KEY)
        if stored is None:
            return None
        try:
            return cls(float(stored["slope"]), float(stored["intercept"]))
        except (TypeError, KeyError, ValueError, InvalidValue) as error:
            raise DataError(
                f"{folder / 'config.json'}: extra.{KEY} = {stored!r} is no slope above 0 with an intercept; "
                "train the model again, or take the entry out (scores are then set against chance)"
            ) from error
