"""Relevance feedback: pieces marked right and wrong change the scores of all others.

Examples:
    >>> import numpy as np
    >>> from moviola.retrieval import Marks
    >>> seen = np.eye(3, dtype=np.float32)
    >>> marks = Marks.of(seen[:1], seen[1:2])
    >>> marks.evidence(seen).round(1).tolist()
    [7.2, -2.9, 0.0]

A piece x is similar to a marked one by k(x, m) = exp((cos(x, m) - 1) / 0.07), which is 1 for the same
picture, a quarter at a cosine of .9, and next to nothing at .5. With S the sum of that over some marks, their
evidence is ln(1 + S / 0.1), so that a fifth mark of one shot adds little to four. The log odds of a piece
rise by

    3 * (evidence of the right ones - 0.4 * (1 - k of the most similar right one) * evidence of the wrong
    ones)

That is a ratio of kernel densities (Parzen 1962) with the text's score as the prior; 0.1 is the density of
everything else. It follows that

- without marks, and far from all marks, a piece keeps the score that it had;
- one more right mark lowers no score, one more wrong mark raises none;
- a piece that was marked right never falls below the score it had, whatever is marked wrong beside it.

Features are those that compare pictures with each other; adding those for texts gains nothing.
``benchmarks/marks/README.md`` compares this with Rocchio's rule, nearest marked pieces, SOMHunter's rule, a
linear support vector machine, Gaussian-process and logistic regression on the residual of the text's score,
and documents the choice of the four numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.retrieval.calibration import sigmoid
from moviola.retrieval.segments import normalised
from moviola.types import require_positive

__all__ = ["Marks"]

_WIDTH = 0.07
_ELSEWHERE = 0.1
_WEIGHT = 3.0
_WRONG = 0.4

# Log odds of a piece without a text, before any mark: the same picture as one right mark scores .9.
_UNASKED = np.log(9) - _WEIGHT * np.log1p(1 / _ELSEWHERE)
# Distance of scores from 0 and 1 before their odds are computed.
_LEAST = 1e-12


@dataclass(frozen=True)
class Marks:
    """Marked pieces, right and wrong; made by :meth:`of`.

    Attributes:
        right, wrong: (r, d) and (w, d) float32, L2-normalised, none twice, in the order of their bytes.
    """

    right: NDArray[np.float32]
    wrong: NDArray[np.float32]

    @classmethod
    def of(cls, right: NDArray[np.floating[Any]], wrong: NDArray[np.floating[Any]]) -> Marks:
        """From the features of marked pieces.

        Args:
            right, wrong: (r, d) and (w, d), r, w >= 0, one row per piece (several, if it shows several
                things), features that compare pictures with each other; of any length, also zeros.

        Raises:
            InvalidValue: not two arrays of rows of one length, or a number is not finite.
        """
        if right.ndim != 2 or wrong.ndim != 2 or right.shape[1] != wrong.shape[1]:
            raise InvalidValue(
                f"marks of shapes {right.shape} and {wrong.shape}: give (r, d) right ones and (w, d) wrong "
                "ones, an array (0, d) for none"
            )
        return cls(_distinct(_rows(right, "right marks")), _distinct(_rows(wrong, "wrong marks")))

    def probes(self, most: int = 4) -> NDArray[np.float32]:
        """Vectors to search an index with, to find pieces that the text does not reach.

        Right marks, chosen one by one so that each adds most to the similarity of all right marks to the
        nearest chosen one. A dozen marks of two shots give two vectors, then variants of them.

        Returns:
            (k, d) float32, L2-normalised, k = min(most, r); none without right marks.

        Raises:
            InvalidValue: ``most`` is below 1.
        """
        require_positive(most=most)
        alike = _alike(self.right, self.right)
        chosen: list[int] = []
        covered = np.zeros(len(self.right))
        for _ in range(min(most, len(self.right))):
            gains = np.maximum(alike - covered, 0).sum(axis=1)
            gains[chosen] = -1
            chosen.append(int(gains.argmax()))
            covered = np.maximum(covered, alike[chosen[-1]])
        return self.right[chosen]

    def evidence(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Change of the log odds of some pieces by the marks, (n,) float64, finite; 0 without marks.

        Args:
            vectors: (n, d), features of the pieces of the kind of the marks', of any length.

        Raises:
            InvalidValue: another width than the marks', or a number is not finite.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.right.shape[1]:
            raise InvalidValue(
                f"pieces of shape {vectors.shape}: these marks are compared with (n, {self.right.shape[1]})"
            )
        pieces = _rows(vectors, "pieces")
        right, wrong = _alike(pieces, self.right), _alike(pieces, self.wrong)
        apart = 1 - right.max(axis=1, initial=0.0)
        against = _WRONG * apart * np.log1p(wrong.sum(axis=1) / _ELSEWHERE)
        return np.asarray(_WEIGHT * (np.log1p(right.sum(axis=1) / _ELSEWHERE) - against))

    def scores(
        self, vectors: NDArray[np.floating[Any]], scores: NDArray[np.floating[Any]] | None = None
    ) -> NDArray[np.float64]:
        """Scores of some pieces, changed by the marks.

        Args:
            vectors: see :meth:`evidence`, also for errors.
            scores: (n,) in [0, 1], scores of the pieces for the query without marks, on the scale of
                :mod:`moviola.retrieval.calibration`; None if the marks are the whole query. Then the same
                picture as one right mark scores .9.

        Returns:
            (n,) float64 in [0, 1]; ``scores`` unchanged where the evidence is 0.

        Raises:
            InvalidValue: ``scores`` of another shape, or outside [0, 1].
        """
        added = self.evidence(vectors)
        if scores is None:
            return sigmoid(_UNASKED + added)
        given = np.asarray(scores, dtype=np.float64)
        if given.shape != added.shape or not ((given >= 0) & (given <= 1)).all():
            raise InvalidValue(
                f"scores of shape {given.shape} for {len(added)} pieces: give one in [0, 1] a piece"
            )
        inside = np.clip(given, _LEAST, 1 - _LEAST)
        moved = sigmoid(np.log(inside) - np.log1p(-inside) + added)
        # Rounding must not reverse the effect of marks.
        bound = np.where(added > 0, np.maximum(moved, given), np.minimum(moved, given))
        return np.where(added == 0, given, bound)


def _rows(vectors: NDArray[np.floating[Any]], what: str) -> NDArray[np.float32]:
    """Unit rows, float32; raises :class:`InvalidValue` where a number is not finite."""
    if not np.isfinite(vectors).all():
        raise InvalidValue(f"{what}: a feature is not finite; index the video again")
    return normalised(vectors)


def _distinct(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows in the order of their bytes, each once."""
    places = {row.tobytes(): place for place, row in enumerate(rows)}
    return rows[np.array([place for _, place in sorted(places.items())], np.int64)]


def _alike(pieces: NDArray[np.float32], marked: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, m) float64 in (0, 1], similarity of (n, d) pieces to (m, d) marked ones."""
    cosines = np.minimum((pieces @ marked.T).astype(np.float64), 1.0)
    return np.exp((cosines - 1) / _WIDTH)
