"""Moments by what is heard: classes of sounds joined to texts, as ConSE joins classes of pictures.

Norouzi et al. 2014 (*Zero-shot learning by convex combination of semantic embeddings*): a patch of sound has
the mean of the sentence vectors of "the sound of NAME", weighted by the probabilities of its classes, all
centred by the mean of the classes. Its cosine with the query counts by the root of how sure the likeliest
class is: what is hardly heard says little. Besides counts how likely those classes are that mean what the
query means, however unlikely they are beside others: the mean of their log odds. Patches with short pauses
between them are one moment.

Where other evidence is searched too, what is heard alone is just possible: a car that is heard is rarely
seen at that time (``docs/decisions/bands.md`` has figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import HOP, PATCH
from moviola.library import LibraryStore, SoundClasses, View, log_odds, sound_classes
from moviola.retrieval import Calibration
from moviola.retrieval.segments import normalised
from moviola.search.found import Candidate
from moviola.search.fusion import fused
from moviola.search.queries import Simple, Text, terms_of
from moviola.search.understanding import says_only_what_not
from moviola.timing import stage
from moviola.types import POSSIBLE, STRONG, Reason, Span

if TYPE_CHECKING:
    from moviola.encoders.sentences import SentenceEncoder

__all__ = ["SoundSearch"]

SCALES: Mapping[str, Calibration] = {"minilm": Calibration(4.7, -3.3)}
"""What a cosine and an eighth of the mean log odds are worth, by sentence encoder: probabilities
(``benchmarks/readers/README.md``). By other encoders nothing is more than possible."""

# Seconds between patches of one moment, and moments of a text.
_PAUSE, _MOST = 2.0, 200
# Score below which there is no moment, where nothing else is searched, and beside other evidence.
_LEAST, _LEAST_BESIDE = 0.01, 0.05
# Of a patch the likeliest classes have a part in its vector, from a probability on.
_LIKELIEST, _HEARD = 6, 0.05
# Probability from which on a class is sure.
_SURE = 0.5
# How steeply classes lose weight that mean something else than a query, by exp(20 cosine); from a cosine on
# they mean the same.
_STEEP, _SAME = 20.0, 0.75
_OF_LOG_ODDS = 0.125
# Log odds of classes that are not kept, below the least likely one that is.
_BELOW_KEPT = 1.0
_BELOW = 0.01


@dataclass(frozen=True, slots=True)
class _Patches:
    """All patches of a library, those of a video one after the other.

    Attributes:
        known: the classes.
        rows, times: row numbers of their videos, and seconds of their starts, (n,).
        classes, above: (n, k), of a few hundred classes, and by how much their log odds are above ``lows``.
        lows: (n,), log odds of all other classes.
        shares: (n, _LIKELIEST) probabilities of the first of them in the patch's vector, in [0, 1].
        lengths: (n,) of these vectors, > 0.
    """

    known: SoundClasses
    rows: NDArray[np.int64]
    times: NDArray[np.float64]
    classes: NDArray[np.uint16]
    above: NDArray[np.float16]
    lows: NDArray[np.float32]
    shares: NDArray[np.float32]
    lengths: NDArray[np.float32]

    def parts_of(self, alike: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each class adds to a patch's cosine with a text, (n, _LIKELIEST), by those of the classes."""
        return self.shares * alike[self.classes[:, :_LIKELIEST]] / self.lengths[:, None]

    def log_odds_of(self, alike: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mean log odds (n,) of the classes that mean what a text means, by their cosines with it."""
        nearness = np.minimum(alike, _SAME)
        weights = np.exp(_STEEP * (nearness - nearness.max()))
        weights /= weights.sum()
        return np.asarray(self.lows + np.einsum("nk,nk->n", weights[self.classes], self.above), np.float32)


class SoundSearch:
    """Search in the sounds of a library. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._lock = RLock()
        self._known: tuple[object, _Patches] | None = None

    def moments(
        self, view: View, thing: Simple, rows: frozenset[int] | None, *, alone: bool
    ) -> list[Candidate]:
        """Moments that sound like a part of a query, in no order; terms at the same time support each other.

        Args:
            view: of the library.
            rows: row numbers of the videos to search; None for all.
            alone: whether nothing else is searched; else none is more than just possible.
        """
        total = sum(weight for _, weight in terms_of(thing))
        with stage("sounds"):
            by_term = (
                [replace(one, score=one.score * weight / total) for one in self._of(view, term, rows, alone)]
                for term, weight in terms_of(thing)
                if isinstance(term, Text)
            )
            return reduce(fused, by_term, [])

    def expect(self, texts: Sequence[Text]) -> None:
        """Have the texts of a query encoded along with what else is."""
        if encoder := self._store.encoders.sentences:
            encoder.expect(form for text in texts if _sounds(encoder, text) for form in _forms(text))

    def _of(self, view: View, text: Text, rows: frozenset[int] | None, alone: bool) -> list[Candidate]:
        encoder = self._store.encoders.sentences
        if encoder is None or not _sounds(encoder, text):
            return []
        patches = self._patches(view)
        both = normalised(encoder.encode_text(_forms(text)))
        alike = patches.known.alike(normalised(both.sum(0, keepdims=True)))
        parts = patches.parts_of(alike)
        sure = np.minimum(patches.shares.max(1, initial=0) / _SURE, 1)
        evidence = parts.sum(1) * np.sqrt(sure) + _OF_LOG_ODDS * patches.log_odds_of(alike)
        scores = SCALES.get(encoder.id, SCALES["minilm"]).scores(evidence.astype(np.float64))
        most = POSSIBLE if not alone else 1.0 if encoder.id in SCALES else STRONG - _BELOW
        there = scores >= (_LEAST if alone else _LEAST_BESIDE)
        if rows is not None:
            there &= np.isin(patches.rows, list(rows))
        found = []
        for first, best, last in _moments(patches, np.flatnonzero(there), scores):
            row, match = int(patches.rows[best]), float(scores[best])
            start, end = float(patches.times[first]), float(patches.times[last]) + PATCH
            if row in view.videos and start < (end := min(end, view.videos[row].duration)):
                name = patches.known.names[patches.classes[best, np.argmax(parts[best])]]
                span, score = Span(start, end), min(match, most)
                why = (Reason("heard", score, (name,)),)
                found.append(Candidate(row, span, score, "sound", name, match, (), "sound", why))
        return sorted(found, key=lambda one: (-one.match, one.row, one.span.start))[:_MOST]

    def _patches(self, view: View) -> _Patches:
        state = view.generation, view.settings.sentence_revision
        with self._lock:
            if self._known is None or self._known[0] != state:
                self._known = state, _read(self._store)
            return self._known[1]


def _sounds(encoder: SentenceEncoder, text: Text) -> bool:
    """Whether a text may be compared with sounds; "no dog" does not bark."""
    return not says_only_what_not(text.text) and encoder.reads(text.text)


def _forms(text: Text) -> list[str]:
    """A text as it is, and in the words of the classes: together they find more than either."""
    return [text.text, f"the sound of {text.text}"]


def _read(store: LibraryStore) -> _Patches:
    """The patches of a library, without those in which nothing is heard."""
    known = sound_classes(store)
    heard = store.catalogue.sounds(store.catalogue.sound_revision())
    counts = [len(one) for one in heard.values()]
    joined = np.concatenate([*heard.values()])
    rows = np.repeat(np.array([*heard], np.int64), counts)
    times = np.concatenate([np.arange(count) * HOP for count in counts])
    audible = joined["level"].max(1, initial=0) > 0
    joined = joined[audible]
    classes, kept = joined["class"].astype(np.uint16), joined["level"] > 0
    odds = log_odds(joined["level"])
    lows = np.where(kept, odds, np.inf).min(1, initial=np.inf)
    # Of patches with fewer classes, which earlier versions kept, the others are below those that count.
    lows = np.where(kept.all(1), lows, math.log(_HEARD / (1 - _HEARD))) - np.float32(_BELOW_KEPT)
    above = np.where(kept, odds - lows[:, None], 0).astype(np.float16)
    shares = np.where(kept, 1 / (1 + np.exp(-odds)), 0)[:, :_LIKELIEST].astype(np.float32)
    shares[shares < _HEARD] = 0
    products = known.vectors @ known.vectors.T
    squares = sum(
        shares[:, one] * shares[:, other] * products[classes[:, one], classes[:, other]]
        for one, other in product(range(_LIKELIEST), repeat=2)
    )
    lengths = np.sqrt(np.maximum(squares, 1e-12)).astype(np.float32)
    there = rows[audible], times[audible]
    return _Patches(known, *there, classes, above, lows.astype(np.float32), shares, lengths)


def _moments(
    patches: _Patches, places: NDArray[np.int64], scores: NDArray[np.float64]
) -> Iterator[tuple[int, int, int]]:
    """First, best and last patch of each moment, of patches by their places in rising order."""
    for run in _runs(patches, places):
        # Those that sound much less like it would only make the moment longer.
        near = run[scores[run] >= scores[run].max() / 2]
        for group in _runs(patches, near):
            yield int(group[0]), int(group[np.argmax(scores[group])]), int(group[-1])


def _runs(patches: _Patches, places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Places divided where another video begins, or a pause is long."""
    if not len(places):
        return []
    rows, times = patches.rows[places], patches.times[places]
    apart = (np.diff(rows) != 0) | (np.diff(times) - PATCH > _PAUSE)
    return np.split(places, np.flatnonzero(apart) + 1)
