"""Evidence from file names: people name a video after its content.

A name matches a text by the larger of two shares: the part of the text's weight whose words are in the name,
each word weighted by ln(N / n) with n of N videos that have it; and (c - m) / (1 - m), with c the cosine of
the text with the distinctive words of the name and m = .25. A share s of the name multiplies the odds of a
moment by exp(5 s), and alone makes it right with a probability of s^2 / 2. A name does not say *where* in the
video, so it adds to moments that were found; a matching video without a moment is searched for one, or stands
as a whole where pictures are not searched.
`benchmarks/footage/report.py` measures the gain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, NameTable, View, names_in, stems_of
from moviola.search.found import Found
from moviola.search.fusion import with_odds_times
from moviola.types import Reason

__all__ = ["KNOWN_BY_NAME", "NameSearch", "with_names"]

KNOWN_BY_NAME = 0.5
"""Share from which a video is searched for moments because of its name alone."""

# Added log odds of a name that matches wholly.
_LOG_ODDS = 5.0
# Its value where the pictures say nothing.
_BY_ITSELF = 0.5
_MEANING = 0.25


@dataclass(frozen=True)
class NameSearch:
    """Matches between texts and the names of a library's videos, in one state of the library.

    Attributes:
        names: the names.
    """

    names: NameTable

    @classmethod
    def of(cls, store: LibraryStore, view: View) -> NameSearch:
        """The names of a library in a view."""
        return cls(names_in(store, view.generation, view.videos))

    @property
    def has_meanings(self) -> bool:
        """Whether names are also compared by meaning."""
        return bool(len(self.names.rows))

    def shares(self, text: str, vector: NDArray[np.float32] | None) -> dict[int, float]:
        """How well names match a text, in (0, 1], by row number; other names do not match.

        Args:
            text: the text.
            vector: (d,) its unit sentence vector; None where meanings are not compared.
        """
        of_words = self._of_words(text)
        of_meaning = self._of_meaning(vector) if vector is not None else {}
        both = of_words.keys() & of_meaning.keys()
        return of_words | of_meaning | {row: max(of_words[row], of_meaning[row]) for row in both}

    def _of_meaning(self, vector: NDArray[np.float32]) -> dict[int, float]:
        names = self.names
        if not self.has_meanings:
            return {}
        meant = ((names.vectors @ vector - _MEANING) / (1 - _MEANING))[names.meanings]
        alike = np.flatnonzero(meant > 0)
        return dict(zip(names.rows[alike].tolist(), meant[alike].tolist(), strict=True))

    def _of_words(self, text: str) -> dict[int, float]:
        names = self.names
        weights = {stem: names.weight(stem) for stem in sorted(stems_of(text))}
        total = sum(weights.values())
        shares: dict[int, float] = defaultdict(float)
        for stem, weight in weights.items():
            for row in names.videos_with(stem).tolist() if weight > 0 else ():
                shares[row] += weight / total
        return dict(shares)


def with_names(found: Sequence[Found], shares: Mapping[int, float]) -> list[Found]:
    """Moments with the evidence of their videos' names added.

    Args:
        found: moments in any order.
        shares: how well names match the query, in [0, 1], by row number.
    """
    return [
        one if (share := min(1.0, shares.get(one.row, 0.0))) == 0 else _with_name(one, share) for one in found
    ]


def _with_name(found: Found, share: float) -> Found:
    named = with_odds_times(found, math.exp(_LOG_ODDS * share))
    named = replace(named, score=1 - (1 - named.score) * (1 - _BY_ITSELF * share**2))
    return replace(named, why=(*found.why, Reason("named", share)))
