"""What scores mean: the probability that a moment is right.

A refiner's matching score has a scale of its own, comparable within one query. Its *evidence* is the part
that is linear in the log odds: a cosine, Reel's score itself (a logit), and the logarithm of the score of
SPR's refiners, a product of probabilities and an exponential. A rising scale turns evidence into a score in
[0, 1]:

- :class:`Calibration`: the probability of being right, of a trained refiner as measured on val (which
  its folder says), without training by the encoder's own background
  (:mod:`moviola.retrieval.background`);
- :class:`Chance`, of a trained refiner or stage 1 without a calibration: the evidence is compared with that
  of random pieces of the library. With z its standard score among them, and sqrt(2 ln n) the expected best of
  n random ones, the log odds are 2 (z - sqrt(2 ln n)) - ln 4. That separates better moments from worse ones,
  but does not say whether there is an answer, so it is cautious: the luckiest of n pieces is just possible.

:data:`moviola.types.BANDS` names what a score is worth; `docs/scores.md` has the figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue
from moviola.types import POSSIBLE

__all__ = [
    "KEY", "Calibration", "Chance", "Scale", "logarithm", "mean_log_odds", "sigmoid", "words_of",
]  # fmt: skip

KEY = "calibration"
"""Key of the calibration in ``config.json``."""

Floats = NDArray[np.float64]

# Decrease of the log odds for each word that is not in a closed language, the log odds of .99: what would be
# next to certain is then even.
_UNKNOWN_WORD = 4.6
# Lower limit of positive scores before their logarithm, so that it stays finite.
_LEAST = 1e-38


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in lower case."""
    return frozenset(re.findall(r"\w+", text.lower()))


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
        words: words of the training queries, in lower case, where these are a closed language (the measured
            queries have no other words); each other word lowers the log odds by 4.6. Empty where it is open.
        certainty: log odds per unit by which it is more certain than usual what the pictures show
            (:meth:`moviola.retrieval.Background.certainty_of`).
        answerable: log odds per unit of the log odds, as the model has them, that the query has an answer at
            all; >= 0.
    """

    slope: float
    intercept: float
    words: frozenset[str] = frozenset()
    certainty: float = 0.0
    answerable: float = 0.0

    def __post_init__(self) -> None:
        numbers = (self.slope, self.intercept, self.certainty, self.answerable)
        if not (all(map(math.isfinite, numbers)) and self.slope > 0 and self.answerable >= 0):
            raise InvalidValue(
                f"calibration with slope {self.slope}, intercept {self.intercept}, certainty "
                f"{self.certainty}, answerable {self.answerable}: give finite numbers, the slope above 0, "
                "answerable from 0 on"
            )

    def of_text(self, text: str) -> Calibration:
        """The scale for one query, which may have unknown words."""
        unknown = words_of(text) - self.words if self.words else frozenset()
        return replace(self, intercept=self.intercept - _UNKNOWN_WORD * len(unknown))

    def given(self, answerable: float | None) -> Calibration:
        """The scale for one query, which has an answer with these log odds; None: the model does not say."""
        if answerable is None:
            return self
        return replace(self, intercept=self.intercept + self.answerable * answerable)

    def scores(self, evidence: Floats) -> Floats:
        """Probabilities (n,) in (0, 1)."""
        return sigmoid(self.slope * np.asarray(evidence, dtype=np.float64) + self.intercept)

    @classmethod
    def of(cls, extra: Mapping[str, Any], folder: Path) -> Calibration | None:
        """The calibration in what the description of a model's folder has as ``extra``; None without.

        Raises:
            DataError: it is malformed.
        """
        kept = extra.get(KEY)
        if kept is None:
            return None
        try:
            words = kept.get("words", [])
            if not all(isinstance(word, str) for word in words):
                raise ValueError("words that are no texts")
            return cls(
                float(kept["slope"]), float(kept["intercept"]), frozenset(words),
                answerable=float(kept.get("answerable", 0.0)),
            )  # fmt: skip
        except (AttributeError, TypeError, KeyError, ValueError, InvalidValue) as error:
            raise DataError(
                f"{folder / 'config.json'}: extra.{KEY} = {kept!r} is no slope above 0 with an intercept; "
                "train the model again, or remove the entry (scores are then set against chance)"
            ) from error


def mean_log_odds(
    vectors: NDArray[np.float32], scales: Sequence[Calibration], weights: Sequence[float]
) -> tuple[NDArray[np.float32], Calibration]:
    """One vector (d,), and the calibration of its cosines, for the weighted mean of the log odds of several.

    Log odds are linear in a cosine, so their mean is too: of the cosine with the sum of the vectors, each by
    its weight and slope.

    Args:
        vectors: (n, d) float32, of length 1, as the result.
        scales: the calibration of the cosines with each.
        weights: of each, >= 0, with the sum 1.
    """
    pairs = list(zip(weights, scales, strict=True))
    total = np.array([weight * scale.slope for weight, scale in pairs], np.float32) @ vectors
    length = max(float(np.linalg.norm(total)), 1e-12)
    intercept = sum(weight * scale.intercept for weight, scale in pairs)
    certainty = sum(weight * scale.certainty for weight, scale in pairs)
    return total / np.float32(length), Calibration(length, intercept, certainty=certainty)


@dataclass(frozen=True, slots=True)
class Chance:
    """The evidence of random pieces of a library for a query.

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
        """Standard scores (n,) of evidence (n,): deviations above the mean of random pieces."""
        return (np.asarray(evidence, dtype=np.float64) - self.mean) / self.deviation

    def evidence(self, standing: Floats) -> Floats:
        """Evidence (n,) of standard scores (n,), the inverse of :meth:`standing`."""
        return self.mean + standing * self.deviation

    def scores(self, evidence: Floats) -> Floats:
        """Scores (n,) in (0, 1): log odds are twice the deviations above the best of ``count`` draws, which
        itself is just possible.
        """
        above = self.standing(evidence) - math.sqrt(2 * math.log(max(self.count, 2)))
        return sigmoid(2 * np.clip(above, -300.0, 300.0) + math.log(POSSIBLE / (1 - POSSIBLE)))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities of log odds."""
    return 1 / (1 + np.exp(-np.clip(logits, -700.0, 700.0)))
