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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moviola.library import NameTable, stems_of
from moviola.retrieval.spellings import forms_of, umlauts_of, words_in
from moviola.search.found import Found
from moviola.search.fusion import with_odds_times
from moviola.types import Reason

__all__ = ["KNOWN_BY_NAME", "name_shares", "with_names"]

KNOWN_BY_NAME = 0.5
"""Share from which a video is searched for moments because of its name alone."""

# Added log odds of a name that matches wholly.
_LOG_ODDS = 5.0
# Its value where the pictures say nothing.
_BY_ITSELF = 0.5
_MEANING = 0.25


def name_shares(names: NameTable, text: str, vector: NDArray[np.float32] | None) -> dict[int, float]:
    """How well names of videos match a text, in (0, 1], by row number; other names do not match.

    ``vector`` (d,) is the text's unit sentence vector; None where meanings are not compared.
    """
    shares: dict[int, float] = defaultdict(float)
    spelt = _spellings(text)
    weights = {stem: min(map(names.weight, spelt[stem])) for stem in sorted(spelt)}
    total = sum(weights.values())
    for stem, weight in weights.items():
        rows = {row for form in spelt[stem] for row in names.videos_with(form).tolist()}
        for row in sorted(rows) if weight > 0 else ():
            shares[row] += weight / total
    if vector is not None and len(names.rows):
        meant = ((names.vectors @ vector - _MEANING) / (1 - _MEANING))[names.meanings]
        alike = np.flatnonzero(meant > 0)
        for row, share in zip(names.rows[alike].tolist(), meant[alike].tolist(), strict=True):
            shares[row] = max(shares[row], share)
    return dict(shares)


def _spellings(text: str) -> dict[str, set[str]]:
    """Stems of a text, and those of other spellings of the same word (``Koeln``, ``OBrien``)."""
    spelt = {stem: {stem} for stem in stems_of(text)}
    for word in words_in(text):
        alike = {stem for form in (*forms_of(word), umlauts_of(word)) for stem in stems_of(form)}
        for stem in alike & spelt.keys():
            spelt[stem] |= alike
    return spelt


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
