"""Moments found by what is said or written: cues whose words match (BM25), or whose meaning is close."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from itertools import groupby
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, VideoRow, View
from moviola.retrieval import Chance
from moviola.retrieval.segments import normalised, segment_ids, unpack_ids
from moviola.search.found import Found
from moviola.search.fusion import fused
from moviola.types import CUE_KINDS, Cue, CueKind, Span

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
    """Search in the cues of a library: subtitles, speech, text in the picture. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._lock = Lock()
        self._background: tuple[int, NDArray[np.float32]] | None = None

    def moments(
        self,
        view: View,
        text: str,
        rows: set[int] | None,
        kinds: Collection[CueKind] = CUE_KINDS,
        meant: Collection[CueKind] | None = None,
    ) -> list[Found]:
        """Moments in which what is said or written matches a text, in no order.

        Cues of one kind with short pauses between them are one moment; moments of several kinds at the same
        time support each other.

        Args:
            view: of the library.
            text: the query.
            rows: row numbers of the videos to look into; None for all.
            kinds: which cues to look at.
            meant: those of them that are compared by their meaning too, not by their words alone; None: all.
        """
        meant = kinds if meant is None else meant
        evidence: dict[tuple[int, int], float] = defaultdict(float)
        matches = (*self._by_words(text, rows, kinds), *self._by_meaning(view, text, rows, meant))
        for (row, number), score in matches:
            if score >= _CHANCE and row in view.videos and (rows is None or row in rows):
                evidence[row, number] = max(evidence[row, number], score)
        found: dict[CueKind, list[Found]] = {kind: [] for kind in CUE_KINDS}
        for row, places in groupby(sorted(evidence), key=lambda piece: piece[0]):
            cues = self._store.catalogue.cues(row)
            scored = [(cues[number], evidence[row, number]) for _, number in places]
            for kind in found:
                same = [match for match in scored if match[0].kind == kind]
                found[kind] += _joined(row, same, view.videos[row])
        return reduce(fused, found.values(), [])

    def _by_words(self, text: str, rows: set[int] | None, kinds: Collection[CueKind]) -> Evidence:
        """Share of the query's weight (idf) that a cue covers; BM25 of an average cue with all words is 1."""
        catalogue = self._store.catalogue
        words = list(dict.fromkeys(re.findall(r"\w+", text.lower())))
        total, weight = sum(catalogue.cue_counts().values()), 0.0
        for word in words:
            holding = catalogue.cues_with(word)
            weight += max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)
        for match in catalogue.match_cues(words, _CUES, rows, kinds):
            yield (match.video, match.number), _WORDS_CEILING * min(1.0, match.score / weight)

    def _by_meaning(
        self, view: View, text: str, rows: set[int] | None, kinds: Collection[CueKind]
    ) -> Evidence:
        sentences = self._store.encoders.sentences
        if sentences is None or view.cues is None or len(view.cues) == 0 or not kinds:
            return
        query = normalised(sentences.encode_text([text]))
        scores, pieces = view.cues.search(query, _CUES, allowed=self._allowed(view.cues.ids(), rows, kinds))
        chance = Chance.of(self._random_cues(view) @ query[0], len(view.cues))
        found, numbers = unpack_ids(pieces[0])
        columns = (found.tolist(), numbers.tolist(), chance.scores(scores[0]).tolist())
        yield from (((row, number), score) for row, number, score in zip(*columns, strict=True))

    def _allowed(
        self, ids: NDArray[np.int64], rows: set[int] | None, kinds: Collection[CueKind]
    ) -> NDArray[np.int64] | None:
        """Those ids of the index that are to be searched; None for all."""
        wanted = np.ones(len(ids), bool)
        if rows is not None:
            wanted &= np.isin(unpack_ids(ids)[0], list(rows))
        if others := set(CUE_KINDS) - set(kinds):
            said = "subtitle" in kinds
            pieces = self._store.catalogue.recognised_cues(others if said else set(kinds))
            videos, numbers = np.array(pieces, dtype=np.int64).reshape(-1, 2).T
            wanted &= np.isin(ids, segment_ids(videos, numbers), invert=said)
        return None if wanted.all() else ids[wanted]

    def _random_cues(self, view: View) -> NDArray[np.float32]:
        """Cues of some videos, (m, d): the same ones for every query on one state of a library."""
        with self._lock:
            if self._background is None or self._background[0] != view.generation:
                generator = np.random.default_rng(0)
                rows = generator.permutation(view.videos.rows)[:_BACKGROUND_VIDEOS].tolist()
                cues = np.concatenate([self._store.cue_vectors(view.videos[row]) for row in rows])
                keep = generator.permutation(len(cues))[:_BACKGROUND_CUES]
                self._background = view.generation, cues[keep]
            return self._background[1]


def _joined(row: int, matches: Sequence[tuple[Cue, float]], video: VideoRow) -> list[Found]:
    """Matching cues of one kind in one video as moments: those with short pauses between are one."""
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
        cue = best[0]
        found.append(Found(row, span, best[1], cue.kind, cue.text, snippet_kind=cue.kind))
    return found
