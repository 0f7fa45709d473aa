"""What a cosine of an encoder says by itself, whatever is in the library.

However little a library holds of what is asked, one of its frames is the nearest. So how well a frame fits
at all is judged against a background that is not the library's. It belongs to the encoder (see
:class:`moviola.encoders.Match`) and is made of two things:

- *texts about everything* (``unrelated_queries.txt``): their mean vector is taken off a query's, so that a
  frame that is close to every text (a hub) gains nothing by it;
- *references*, where the encoder has some: vectors of pictures, or of what stands for pictures. What counts
  is then how many standard deviations a cosine stands above those of the same query with the references.

The log odds of a match rise linearly with that. ``docs/scores.md`` has what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval.calibration import Calibration
from moviola.retrieval.segments import normalised

__all__ = ["Background", "unrelated_queries"]

Floats = NDArray[np.float32]

# Of the standard deviation of cosines with references; a query of zeros has none.
_LEAST = 1e-6


@cache
def unrelated_queries() -> tuple[str, ...]:
    """Queries about everything."""
    text = Path(__file__).with_name("unrelated_queries.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


@dataclass(frozen=True, eq=False)
class Background:
    """What is known of an encoder's cosines.

    Attributes:
        centre: (d,) float32, taken off the unit vectors of queries; zeros where nothing is.
        slope: log odds per unit of what is compared, above 0.
        line: of what is compared, where a match is as likely as not.
        references: (k, d) float32, unit vectors of pictures; None without.
    """

    centre: Floats
    slope: float
    line: float
    references: Floats | None = None

    def centred(self, vectors: Floats) -> Floats:
        """Vectors of queries (Q, d), without what all texts have in common, of length 1."""
        return normalised(normalised(vectors) - self.centre)

    def calibration(self, vector: Floats) -> Calibration:
        """From the cosines of a centred query to probabilities of a match.

        Args:
            vector: (d,) float32, of the query as the encoder gives it.
        """
        unit = normalised(vector[None])[0]
        rest = unit - self.centre
        if self.references is None:
            # The product with the difference, which is the centred query times its length.
            length = max(float(np.linalg.norm(rest)), _LEAST)
            return Calibration(self.slope * length, -self.slope * self.line)
        cosines = self.references @ normalised(rest[None])[0]
        deviation = max(float(cosines.std()), _LEAST)
        steepness = self.slope / deviation
        return Calibration(steepness, -steepness * float(cosines.mean()) - self.slope * self.line)
