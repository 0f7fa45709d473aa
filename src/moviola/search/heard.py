"""Moments by what is heard: classes of sounds joined to texts, as ConSE joins classes of pictures.

Norouzi et al. 2014 (*Zero-shot learning by convex combination of semantic embeddings*): a patch of sound has
the mean of the sentence vectors of "the sound of NAME", weighted by the probabilities of its classes, all
centred by the mean of the classes. Its cosine with the query counts by the root of how sure the likeliest
class is: what is hardly heard says little. Patches with short pauses between them are one moment.

Where other evidence is searched too, what is heard alone is just possible: a car that is heard is rarely
seen at that time (``docs/decisions/bands.md`` has figures).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import HOP, PATCH
from moviola.library import LibraryStore, View, sound_vectors
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

SCALES: Mapping[str, Calibration] = {"minilm": Calibration(8.8, -5.1)}
"""What cosines are worth, by sentence encoder: probabilities, .5 at a cosine of .58
(``benchmarks/readers/README.md``). By other encoders nothing is more than possible."""

# Seconds between patches of one moment, score below which there is none, and moments of a text.
_PAUSE, _LEAST, _MOST = 2.0, 0.05, 200
# Probability from which on a class is sure.
_SURE = 0.5
_BELOW = 0.01


@dataclass(frozen=True, slots=True)
class _Patches:
    """All patches of a library, those of a video one after the other.

    Attributes:
        names, vectors, mean: of :func:`moviola.library.sound_vectors`.
        rows, times: row numbers of their videos, and seconds of their starts, (n,).
        classes, shares: (n, k); shares in [0, 1].
        lengths: (n,) of their vectors, > 0.
    """

    names: list[str]
    vectors: NDArray[np.float32]
    mean: NDArray[np.float32]
    rows: NDArray[np.int64]
    times: NDArray[np.float64]
    classes: NDArray[np.int64]
    shares: NDArray[np.float32]
    lengths: NDArray[np.float32]


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
        wanted = normalised(normalised(both.sum(0, keepdims=True)) - patches.mean)[0]
        alike = patches.vectors @ wanted
        parts = patches.shares * alike[patches.classes]
        sure = np.minimum(patches.shares.max(1, initial=0) / _SURE, 1)
        scale = SCALES.get(encoder.id, SCALES["minilm"])
        scores = scale.scores((parts.sum(1) / patches.lengths * np.sqrt(sure)).astype(np.float64))
        most = POSSIBLE if not alone else 1.0 if encoder.id in SCALES else STRONG - _BELOW
        there = scores >= _LEAST
        if rows is not None:
            there &= np.isin(patches.rows, list(rows))
        found = []
        for first, best, last in _moments(patches, np.flatnonzero(there), scores):
            row, match = int(patches.rows[best]), float(scores[best])
            start, end = float(patches.times[first]), float(patches.times[last]) + PATCH
            if row in view.videos and start < (end := min(end, view.videos[row].duration)):
                name = patches.names[patches.classes[best, np.argmax(parts[best])]]
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
    names, vectors, mean = sound_vectors(store)
    heard = store.catalogue.sounds(store.catalogue.sound_revision())
    counts = [len(one) for one in heard.values()]
    joined = np.concatenate([*heard.values()])
    rows = np.repeat(np.array([*heard], np.int64), counts)
    times = np.concatenate([np.arange(count) * HOP for count in counts])
    audible = joined["share"].max(1, initial=0) > 0
    classes = joined["class"][audible].astype(np.int64)
    shares = joined["share"][audible].astype(np.float32) / 255
    products = vectors @ vectors.T
    squares = sum(
        shares[:, one] * shares[:, other] * products[classes[:, one], classes[:, other]]
        for one, other in product(range(classes.shape[1]), repeat=2)
    )
    lengths = np.sqrt(np.maximum(squares, 1e-12)).astype(np.float32)
    return _Patches(names, vectors, mean, rows[audible], times[audible], classes, shares, lengths)


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
