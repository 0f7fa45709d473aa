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
    """Matches between texts and the names of a library's videos, in one state of the library."""

    names: NameTable

    @classmethod
    def of(cls, store: LibraryStore, view: View) -> NameSearch:
        return cls(names_in(store, view.generation, view.videos))

    @property
    def has_meanings(self) -> bool:
        """Whether names are also compared by meaning."""
        return bool(len(self.names.rows))

    def shares(self, text: str, vector: NDArray[np.float32] | None) -> dict[int, float]:
        """How well names match a text, in (0, 1], by row number; other names do not match.

        ``vector`` (d,) is its unit sentence vector; None where meanings are not compared.
        """
        names, shares = self.names, defaultdict[int, float](float)
        weights = {stem: names.weight(stem) for stem in sorted(stems_of(text))}
        total = sum(weights.values())
        for stem, weight in weights.items():
            for row in names.videos_with(stem).tolist() if weight > 0 else ():
                shares[row] += weight / total
        if vector is not None and self.has_meanings:
            meant = ((names.vectors @ vector - _MEANING) / (1 - _MEANING))[names.meanings]
            alike = np.flatnonzero(meant > 0)
            for row, share in zip(names.rows[alike].tolist(), meant[alike].tolist(), strict=True):
                shares[row] = max(shares[row], share)
        return dict(shares)


def with_names(found: Sequence[Found], shares: Mapping[int, float]) -> list[Found]:
    """Moments with the evidence of their videos' names added; ``shares`` of matches by row number."""
    added = []
    for one in found:
        if share := min(1.0, shares.get(one.row, 0.0)):
            score = with_odds_times(one, math.exp(_LOG_ODDS * share)).score
            score = 1 - (1 - score) * (1 - _BY_ITSELF * share**2)
            added.append(replace(one, score=score, why=(*one.why, Reason("named", share))))
        else:
            added.append(one)
    return added
