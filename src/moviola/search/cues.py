"""Moments found by what is said: cues whose words match (BM25), or whose meaning is close."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, VideoRow, View
from moviola.retrieval import Chance
from moviola.retrieval.segments import normalised, unpack_ids
from moviola.search.found import Found
from moviola.types import Cue, Span

__all__ = ["CueSearch"]

# Cues that are looked at, and the pause in seconds within which matching cues belong to one moment.
_CUES = 100
_PAUSE = 2.0
# Below this score a cue is no better than the luckiest of the library would be.
_CHANCE = 0.5
# Words can match by accident; a moment seen and said should still stand above one that is only said.
_WORDS_CEILING = 0.9
# Videos whose cues are drawn as the background of a query's cosines, and how many cues.
_BACKGROUND_VIDEOS = 64
_BACKGROUND_CUES = 4096

Evidence = Iterable[tuple[tuple[int, int], float]]


class CueSearch:
    """Search in the subtitles of a library. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._lock = Lock()
        self._background: tuple[int, NDArray[np.float32]] | None = None

    def moments(self, view: View, text: str, rows: set[int] | None) -> list[Found]:
        """Moments in which what is said matches a text, in no order.

        Args:
            view: of the library.
            text: the query.
            rows: row numbers of the videos to look into; None for all.
        """
        evidence: dict[tuple[int, int], float] = defaultdict(float)
        for (row, number), score in (*self._by_words(text, rows), *self._by_meaning(view, text, rows)):
            if score >= _CHANCE and row in view.videos and (rows is None or row in rows):
                evidence[row, number] = max(evidence[row, number], score)
        found: list[Found] = []
        for row, matches in groupby(sorted(evidence), key=lambda piece: piece[0]):
            cues = self._store.catalogue.cues(row)
            found += _joined(row, [(cues[n], evidence[row, n]) for _, n in matches], view.videos[row])
        return found

    def _by_words(self, text: str, rows: set[int] | None) -> Evidence:
        """Share of the query's weight (idf) that a cue covers; BM25 of an average cue with all words is 1."""
        catalogue = self._store.catalogue
        words = list(dict.fromkeys(re.findall(r"\w+", text.lower())))
        total, weight = catalogue.cue_count(), 0.0
        for word in words:
            holding = catalogue.cues_with(word)
            weight += max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)
        for match in catalogue.match_cues(words, _CUES, rows):
            yield (match.video, match.number), _WORDS_CEILING * min(1.0, match.score / weight)

    def _by_meaning(self, view: View, text: str, rows: set[int] | None) -> Evidence:
        sentences = self._store.encoders.sentences
        if sentences is None or view.cues is None or len(view.cues) == 0:
            return
        query = normalised(sentences.encode_text([text]))
        allowed = None
        if rows is not None:
            ids = view.cues.ids()
            allowed = ids[np.isin(unpack_ids(ids)[0], list(rows))]
        scores, pieces = view.cues.search(query, _CUES, allowed=allowed)
        chance = Chance.of(self._random_cues(view) @ query[0], len(view.cues))
        found, numbers = unpack_ids(pieces[0])
        columns = (found.tolist(), numbers.tolist(), chance.scores(scores[0]).tolist())
        yield from (((row, number), score) for row, number, score in zip(*columns, strict=True))

    def _random_cues(self, view: View) -> NDArray[np.float32]:
        """Cues of some videos, (m, d): the same ones for every query on one state of a library."""
        with self._lock:
            if self._background is None or self._background[0] != view.generation:
                generator = np.random.default_rng(0)
                rows = generator.permutation(sorted(view.videos))[:_BACKGROUND_VIDEOS].tolist()
                cues = np.concatenate([self._store.cue_vectors(view.videos[row]) for row in rows])
                keep = generator.permutation(len(cues))[:_BACKGROUND_CUES]
                self._background = view.generation, cues[keep]
            return self._background[1]


def _joined(row: int, matches: Sequence[tuple[Cue, float]], video: VideoRow) -> list[Found]:
    """Matching cues of one video as moments: those with short pauses between them are one."""
    groups: list[list[tuple[Cue, float]]] = []
    for cue, score in sorted(matches, key=lambda match: match[0].start):
        if cue.start >= video.duration:
            continue  # a subtitle file that runs on after the pictures have ended
        if groups and cue.start - max(other.end for other, _ in groups[-1]) <= _PAUSE:
            groups[-1].append((cue, score))
        else:
            groups.append([(cue, score)])
    found = []
    for group in groups:
        span = Span(group[0][0].start, min(max(cue.end for cue, _ in group), video.duration))
        best = max(group, key=lambda match: match[1])
        found.append(Found(row, span, best[1], "subtitle", best[0].text))
    return found
