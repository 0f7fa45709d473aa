"""What scores mean: the probability that a moment is right.

A refiner's matching score is a number on a scale of its own, comparable within one query. Its *evidence* is
what of that is linear in the log odds: a cosine, Reel's score as it is (a logit), and of SPR's refiners,
whose score is a product of probabilities and an exponential, the logarithm. Evidence becomes a score in [0,
1] by a scale; all of them rise, so that the order stays:

- :class:`Calibration`, of a trained refiner: the probability of being right, as measured on val when the
  model was trained (the fit is in :mod:`moviola.training.fit_calibration`);
- :class:`Calibration`, without training: the probability of a match, from the encoder's own background
  (:mod:`moviola.retrieval.background`);
- :class:`Chance`, of a trained refiner or stage 1 without a calibration: the evidence is set against that of
  random pieces of the library. With z its standard score among them, and sqrt(2 ln n) what the best of n
  random ones would reach, the score is sigmoid(2 (z - sqrt(2 ln n))). That tells better moments from worse
  ones, not whether there is an answer: the luckiest of n pieces has one half.

A moment is *strong* from a score of :data:`STRONG` on, else *weak*; an answer is confident if it has a strong
moment. `docs/scores.md` has the figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue

__all__ = ["KEY", "STRONG", "Calibration", "Chance", "Scale", "logarithm", "words_of"]

STRONG = 0.25
"""A moment with at least this score is strong: at worst one chance in four of being right."""

KEY = "calibration"
"""Where it stands among the facts that ``config.json`` keeps beside a model."""

Floats = NDArray[np.float64]

# By how much a word that a closed language does not have lowers the log odds of a match.
_UNKNOWN_WORD = 4.0
# Positive scores are at least this before their logarithm is taken, so that it stays finite.
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
        words: of the queries that the model learned from, in lower case, where these are a closed language
            (no other word occurs in the queries that it was measured on). A model cannot know what any other
            word means; each lowers the log odds by 4. Empty where the language is open.
    """

    slope: float
    intercept: float
    words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept) and self.slope > 0):
            raise InvalidValue(
                f"calibration with slope {self.slope}, intercept {self.intercept}: give finite numbers, the "
                "slope above 0"
            )

    def of_text(self, text: str) -> Calibration:
        """For one query, whose words may be unknown."""
        unknown = words_of(text) - self.words if self.words else frozenset()
        return replace(self, intercept=self.intercept - _UNKNOWN_WORD * len(unknown))

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
            words = kept.get("words", [])
            if not all(isinstance(word, str) for word in words):
                raise ValueError("words that are no texts")
            return cls(float(kept["slope"]), float(kept["intercept"]), frozenset(words))
        except (AttributeError, TypeError, KeyError, ValueError, InvalidValue) as error:
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
