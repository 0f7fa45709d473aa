"""What scores mean: the probability that a moment is right, or how far it stands above chance.

A refiner's matching score is a number on a scale of its own, comparable within one query. Its *evidence* is
what of that is linear in the log odds: Reel's score as it is (a logit), and of SPR's refiners, whose score
is a product of probabilities and an exponential, the logarithm. Evidence becomes a score in [0, 1] in one of
two ways, both of which rise, so that the order stays:

- :class:`Calibration`: the probability of being right, as measured on val when the model was trained (the fit
  is in :mod:`moviola.training.calibration`);
- :class:`Chance`: without that, the evidence is set against what chance gives. With z its standard score
  among that of random pieces of the library, and sqrt(2 ln n) what the best of n random ones would reach,
  the score is sigmoid(2 (z - sqrt(2 ln n))). One half is what the luckiest of n pieces gets without any
  relevance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue

__all__ = ["KEY", "Calibration", "Chance", "Scale", "logarithm"]

KEY = "calibration"
"""Where it stands among the facts that ``config.json`` keeps beside a model."""

Floats = NDArray[np.float64]

# Positive scores are at least this before their logarithm is taken, so that it stays finite.
_LEAST = 1e-38


def logarithm(score: NDArray[np.floating[Any]]) -> Floats:
    """The evidence of scores > 0 that are products of probabilities, (n,) float64."""
    return np.log(np.maximum(np.asarray(score, dtype=np.float64), _LEAST))


class Scale(Protocol):
    """From evidence to scores."""

    def scores(self, evidence: Floats) -> Floats:
        """(n,) float64 in [0, 1], rising with the evidence (n,)."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probability of being right = sigmoid(slope * evidence + intercept).

    Attributes:
        slope: above 0, per unit of evidence.
        intercept: log odds at an evidence of 0.
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept) and self.slope > 0):
            raise InvalidValue(
                f"calibration with slope {self.slope}, intercept {self.intercept}: give finite numbers, the "
                "slope above 0"
            )

    def scores(self, evidence: Floats) -> Floats:
        """Probabilities (n,) in (0, 1)."""
        return _sigmoid(self.slope * np.asarray(evidence, dtype=np.float64) + self.intercept)

    @classmethod
    def of(cls, extra: Mapping[str, Any], folder: Path) -> Calibration | None:
        """What a model's folder keeps; None where it keeps none.

        Args:
            extra: see :class:`moviola.models.description.Description`.
            folder: for messages.

        Raises:
            DataError: it is malformed.
        """
        kept = extra.get(KEY)
        if kept is None:
            return None
        try:
            return cls(float(kept["slope"]), float(kept["intercept"]))
        except (TypeError, KeyError, ValueError, InvalidValue) as error:
            raise DataError(
                f"{folder / 'config.json'}: extra.{KEY} = {kept!r} is no slope above 0 with an intercept; "
                "train the model again, or take the entry out (scores are then set against chance)"
            ) from error


@dataclass(frozen=True, slots=True)
class Chance:
    """The evidence that random pieces of a library give for a query.

    Attributes:
        mean, deviation: of that evidence; the deviation is above 0.
        count: pieces of the library.
    """

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, evidence: NDArray[np.floating[Any]], count: int) -> Chance:
        """From the evidence of a sample of pieces, (m,), m >= 1."""
        return cls(float(evidence.mean()), max(float(evidence.std()), 1e-6), count)

    def standing(self, evidence: NDArray[np.floating[Any]]) -> Floats:
        """Standard scores."""
        return (np.asarray(evidence, dtype=np.float64) - self.mean) / self.deviation

    def evidence(self, standing: Floats) -> Floats:
        """The evidence that has these standard scores."""
        return self.mean + standing * self.deviation

    def scores(self, evidence: Floats) -> Floats:
        """Scores (n,) in (0, 1)."""
        above = self.standing(evidence) - math.sqrt(2 * math.log(max(self.count, 2)))
        return _sigmoid(2 * np.clip(above, -300.0, 300.0))


def _sigmoid(logits: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(logits, -700.0, 700.0)))
