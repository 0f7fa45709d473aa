"""Meaning of an encoder's cosines, independent of the library.

Even a library without any match has a nearest frame. So a match is judged against a background that belongs
to the encoder (see :class:`moviola.encoders.Match`) and has two parts:

- *texts about everything* (``unrelated_queries.txt``): their mean vector is subtracted from a query's, so
  that a frame that is close to every text (a hub) gains nothing by it;
- *references*, for some encoders: vectors of pictures, or of substitutes. The number of standard deviations
  of a cosine above those of the same query with the references is then used in place of the cosine. They
  also say how certain it is what a picture shows: one that is near to none of them, or about as near to
  some as to others, such as an empty wall, is near to many texts by chance.

The log odds of a match rise linearly with that value. ``docs/scores.md`` has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval.calibration import Calibration, mean_log_odds
from moviola.retrieval.segments import normalised

__all__ = ["Background", "unrelated_queries"]

Floats = NDArray[np.float32]

# References that are compared with a picture, the nearest that count, and what is usual of both numbers.
_EACH, _NEAREST, _NEAR, _APART = 4, 5, 0.43, 0.18
# How much the second number counts.
_OF_APART = 1.2
# Of the standard deviation of cosines with references; a query of zeros has none.
_LEAST = 1e-6


@cache
def unrelated_queries() -> tuple[str, ...]:
    """Queries about everything."""
    text = Path(__file__).with_name("unrelated_queries.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


@dataclass(frozen=True, eq=False)
class Background:
    """Calibration of an encoder's cosines.

    Attributes:
        centre: (d,) float32, subtracted from the unit vectors of queries; may be zeros.
        slope: log odds per unit, above 0.
        line: the value at even odds.
        references: (k, d) float32, unit vectors of pictures; None without.
        by_phrases: whether texts are judged by their phrases, see :meth:`of_phrases`.
        certainty: see :class:`moviola.retrieval.Calibration`.
        nearest, unknown: see :meth:`of_phrases`.
    """

    centre: Floats
    slope: float
    line: float
    references: Floats | None = None
    by_phrases: bool = False
    certainty: float = 0.0
    nearest: float = 0.0
    unknown: float = 0.0

    def centred(self, vectors: Floats) -> Floats:
        """Vectors of queries (Q, d), without the component of all texts, of length 1."""
        return normalised(normalised(vectors) - self.centre)

    def calibration(self, vector: Floats) -> Calibration:
        """From cosines of a query, centred, to probabilities of a match, by its (d,) float32 vector."""
        rest = normalised(vector[None])[0] - self.centre
        if self.references is None:
            # The product with the difference, which is the centred query times its length.
            length = max(float(np.linalg.norm(rest)), _LEAST)
            return Calibration(self.slope * length, -self.slope * self.line)
        cosines = self.references @ normalised(rest[None])[0]
        steepness = self.slope / max(float(cosines.std()), _LEAST)
        intercept = -steepness * float(cosines.mean()) - self.slope * self.line
        return Calibration(steepness, intercept, certainty=self.certainty)

    def certainty_of(self, vectors: Floats) -> Floats:
        """How certain it is what pictures show, (n,) float32 about 0, by their vectors (n, d).

        By every fourth reference: the mean of the five largest cosines, less .43, and 1.2 times the standard
        deviation of all, less .18.
        """
        assert self.references is not None
        cosines = normalised(vectors) @ self.references[::_EACH].T
        nearest = np.partition(cosines, -_NEAREST, axis=1)[:, -_NEAREST:].mean(axis=1)
        return np.asarray(nearest - _NEAR + np.float32(_OF_APART) * (cosines.std(axis=1) - _APART))

    def of_phrases(
        self, vectors: Floats, weights: Sequence[float], unknown: int = 0
    ) -> tuple[Floats, Calibration]:
        """A text by its phrases: the ``mean_log_odds`` of :mod:`moviola.retrieval.calibration`, with
        ``nearest`` for each unit of the first phrase's cosine with the reference that is nearest to it, and
        ``self.unknown`` for each unknown word.

        A text that is almost the name of a reference is near to all that resembles it; and of a word that
        the encoder puts together from parts it knows less than of others.

        Args:
            vectors: (n, d) float32, the encoder's vectors of the phrases, the whole text first.
            weights: of the n phrases, >= 0, with the sum 1.
            unknown: number of words that are not one token.
        """
        centred = self.centred(vectors)
        vector, scale = mean_log_odds(centred, list(map(self.calibration, vectors)), weights)
        moved = self.unknown * unknown
        if self.references is not None and self.nearest:
            moved += self.nearest * float((self.references @ centred[0]).max())
        return vector, replace(scale, intercept=scale.intercept + moved)
