"""Evidence from the names of videos, and from what their files say of them: people name a video after its
content.

A name matches a text by the larger of two shares: the part of the text's weight whose words are in the name,
each word weighted by ln(N / n) with n of N videos that have it; and, by meaning, how far the cosine of the
text with the distinctive words of the name is above the one that one in a thousand pairs of unrelated words
reaches (:meth:`moviola.search.meaning.Meaning.name_shares`). A video has the words of all names of its files.

A name belongs to a video and does not say *where* in it. So it gives one result, the video as a whole. By the
name alone its score is .75 times the root of the share s: of the videos whose names fit wholly four in five
show what is asked, of those whose names have half of the words two in three (`benchmarks/no_match`). Pictures
and sounds of it speak for that or against it: the log odds move by .6 for each unit by which those of
its best moment are above -3.5, one chance in 34. They move down only where pictures were searched, only by
the share 1 - s that the name lacks, and no further than for a moment with log odds of -6
(`docs/decisions/bands.md` has figures). And a name multiplies the odds of the video's moments by 4 to the
power of sqrt(s), so that it makes none strong that is not possible by what is seen or heard.

A title in the file is a name. All that the file says (title, keywords, description, people) is compared by
words alone, and counts for two fifths of a name: long texts hold words by accident, and nobody measured them,
so by itself a description makes a video possible, never strong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moviola.library import NameTable, stems_in
from moviola.retrieval.phrases import unframed
from moviola.search.found import Candidate
from moviola.search.fusion import MOST, with_odds_times
from moviola.search.meaning import Meaning
from moviola.search.understanding import says_only_what_not
from moviola.types import POSSIBLE, STRONG, Reason, ReasonKind, Span

__all__ = ["Shares", "name_shares", "named", "share_of", "shares_in", "with_names"]

Shares = Mapping[int, tuple[Reason, ...]]
"""What speaks for videos as a whole, by row number: names, descriptions."""

DESCRIBED = 0.4
"""The part of a name for which a description counts: it makes no video strong by itself."""

BY_NAME = 0.75
"""The score of a video whose name fits wholly."""

# Largest factor for the odds of moments, by which one that is just possible is just strong.
_ODDS = STRONG / (1 - STRONG) / (POSSIBLE / (1 - POSSIBLE))
# Log odds of the best moment of a video from which on it speaks for the name, the lowest that count, and how
# much they do.
_USUAL, _LOWEST, _SUPPORT = -3.5, -6.0, 0.6
# Videos that are named so, of one answer; a lower share of a name is no result.
_MOST, _LEAST_SHARE = 200, 0.02


def name_shares(
    names: NameTable,
    text: str,
    vector: NDArray[np.float32] | None,
    meaning: Meaning | None,
    languages: Collection[str] = (),
) -> dict[int, float]:
    """How well names of videos match a text, read in English and some languages, in (0, 1], by row number;
    other names do not match.

    ``vector`` (d,) is the text's unit sentence vector, of the encoder that ``meaning`` calibrates; None where
    meanings are not compared.
    """
    shares: dict[int, float] = defaultdict(float)
    # A video that is called dog is not called "no dog".
    only_not = says_only_what_not(text)
    stems = stems_in(text if only_not else unframed(text), languages, every=only_not)
    weights = {word: min(map(names.weight, own)) for word, own in stems.items()}
    total = sum(weights.values())
    for word, weight in weights.items():
        rows = {row for stem in stems[word] for row in names.videos_with(stem).tolist()}
        for row in sorted(rows) if weight > 0 else ():
            shares[row] += weight / total
    if vector is not None and meaning is not None:
        for row, share in names.alike(vector, meaning.name_shares):
            shares[row] = max(shares[row], share)
    return {row: min(1.0, share) for row, share in shares.items()}


def shares_in(
    tables: Mapping[ReasonKind, NameTable],
    texts: Sequence[tuple[str, NDArray[np.float32] | None, Meaning | None, float]],
    inside: Sequence[Container[int]],
    languages: Collection[str] = (),
) -> Shares:
    """What speaks for videos as a whole, by tables of names (``"named"``) and descriptions (``"described"``).

    ``texts`` have the vectors and meanings of :func:`name_shares`, and shares of the whole weight;
    videos are searched whose row numbers are in all of ``inside``; ``languages`` are those in which texts are
    read besides English.
    """
    reasons: dict[int, tuple[Reason, ...]] = {}
    for kind, names in tables.items():
        shares: dict[int, float] = defaultdict(float)
        for text, vector, meaning, weight in texts:
            for row, share in name_shares(names, text, vector, meaning, languages).items():
                if all(row in rows for rows in inside):
                    shares[row] += share * weight
        counts = DESCRIBED if kind == "described" else 1.0
        for row, share in shares.items():
            reasons[row] = (*reasons.get(row, ()), Reason(kind, counts * min(1.0, share)))
    return reasons


def share_of(reasons: Sequence[Reason]) -> float:
    """How much speaks for a video as a whole, in [0, 1]: a name and a description say the same twice."""
    return max((reason.score for reason in reasons), default=0.0)


def with_names(found: Sequence[Candidate], shares: Shares) -> list[Candidate]:
    """Moments with what speaks for their videos as a whole added."""
    added = []
    for one in found:
        if share := share_of(why := shares.get(one.row, ())):
            raised = with_odds_times(one, _ODDS ** math.sqrt(share))
            added.append(replace(raised, why=(*one.why, *why)))
        else:
            added.append(one)
    return added


def named(
    shares: Shares,
    moments: Sequence[Candidate],
    stretch: Callable[[int], tuple[float, float]],
    shows: Callable[[int], bool],
) -> list[Candidate]:
    """The videos whose names or descriptions match, as one result each, the best first.

    Args:
        shares: of these videos.
        moments: of the same answer, without the evidence of names.
        stretch: the seconds of a video, by row number, that are searched.
        shows: whether pictures of a video, by row number, were searched, which may speak against its name.
    """
    seen: dict[int, float] = defaultdict(float)
    for one in moments:
        seen[one.row] = max(seen[one.row], one.score)
    best = sorted(((share_of(why), -row) for row, why in shares.items()), reverse=True)
    results = []
    for share, row in [pair for pair in best if pair[0] >= _LEAST_SHARE][:_MOST]:
        start, end = stretch(-row)
        if start < end:
            score = _named_score(share, seen[-row], shows(-row))
            why = shares[-row]
            results.append(Candidate(-row, Span(start, end), score, "named", match=seen[-row], why=why))
    return results


def _named_score(share: float, best: float, shown: bool) -> float:
    """The score of a video whose name has a share of the text, by that of its best moment, 0 for none."""
    alone, odds = BY_NAME * math.sqrt(share), math.exp(_LOWEST)
    odds = max(odds, min(best, MOST) / (1 - min(best, MOST)))
    support = _SUPPORT * (math.log(odds) - _USUAL)
    if support < 0:
        support *= (1 - share) if shown else 0
    return alone / (alone + (1 - alone) * math.exp(-support))
