"""Moments from cues of speech and text whose words match (BM25), or whose meaning is close."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, VideoRow, View, stems_of
from moviola.retrieval import Calibration
from moviola.retrieval.phrases import pairs_of
from moviola.retrieval.segments import segment_ids, unpack_ids
from moviola.retrieval.spellings import forms_of, umlauts_of, words_in
from moviola.search.found import Found
from moviola.search.fusion import fused
from moviola.types import CUE_KINDS, Cue, CueKind, Reason, Span

__all__ = ["CueSearch"]

# Number of cues to examine, and the pause in seconds within which matching cues belong to one moment.
_CUES = 100
_PAUSE = 2.0
# Words can match by accident; a moment both seen and said should still stand above one that is only said.
_WORDS_CEILING = 0.9
# Scale of the cosine of two sentences: of pairs of texts about everything, .4 % have more than .45 (MiniLM).
_MEANING = Calibration(slope=20.0, intercept=-9.0)
# Cues below this score are ignored.
_LEAST = 0.5
# Each pair of letters is looked for in all cues, 100,000 in .03 s of processor time.
_MOST_PAIRS = 32

Evidence = Iterable[tuple[tuple[int, int], float]]


class CueSearch:
    """Search in the cues of a library: subtitles, speech, text in the picture. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._known: tuple[int, dict[frozenset[CueKind], NDArray[np.int64]]] = -1, {}

    def moments(
        self,
        view: View,
        text: str,
        vector: NDArray[np.float32] | None,
        *,
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
        meant: Collection[CueKind],
    ) -> list[Found]:
        """Moments whose speech or text matches a query, in no order.

        Cues of one kind with short pauses between them are one moment; moments of several kinds at the same
        time support each other.

        Args:
            view: of the library.
            text, vector: the query, and (d,) its unit sentence vector; None: words alone are compared.
            rows: row numbers of the videos to search; None for all.
            kinds, meant: kinds of cues to search, and those of them that are also compared by meaning.
        """
        pairs = pairs_of(text)[:_MOST_PAIRS]
        words_by_stem = {
            stem: word
            for word in words_in(text)
            for form in (*forms_of(word), umlauts_of(word))
            for stem in stems_of(form)
        }
        evidence: dict[tuple[int, int], float] = defaultdict(float)
        matches = (*self._by_words(text, pairs, rows, kinds), *self._by_meaning(view, vector, rows, meant))
        for (row, number), score in matches:
            if score >= _LEAST and row in view.videos and (rows is None or row in rows):
                evidence[row, number] = max(evidence[row, number], score)
        by_kind: dict[CueKind, list[Found]] = {kind: [] for kind in CUE_KINDS}
        for row, places in groupby(sorted(evidence), key=lambda piece: piece[0]):
            cues = self._store.catalogue.cues(row)
            # Some or all may be gone: the video was read again, or removed, this moment.
            there = (number for _, number in places if number < len(cues))
            scored = [(cues[number], evidence[row, number]) for number in there]
            for kind, moments in by_kind.items():
                same = [match for match in scored if match[0].kind == kind]
                moments += _joined(row, same, view.videos[row], words_by_stem, pairs)
        return reduce(fused, by_kind.values(), [])

    def _by_words(
        self, text: str, pairs: Sequence[str], rows: frozenset[int] | None, kinds: Collection[CueKind]
    ) -> Evidence:
        """Share of the query's weight (idf) in a cue; 1 is the BM25 of an average cue with all words."""
        catalogue = self._store.catalogue
        terms = catalogue.terms_with(words_in(text))
        spelt = {
            word: catalogue.cues_with_umlauts(other, rows, kinds)
            for word in terms
            if (other := umlauts_of(word))
        }
        holding = {word: catalogue.cues_with(own) + len(spelt.get(word, ())) for word, own in terms.items()}
        unspaced = catalogue.cues_with_any(pairs, rows, kinds)
        holding |= {pair: sum(pair in own for _, _, own in unspaced) for pair in pairs}
        total = sum(catalogue.cue_counts().values())
        weights = {
            # Cues may come in between two counts.
            word: max(math.log((max(total - count, 0) + 0.5) / (count + 0.5)), 1e-6)
            for word, count in holding.items()
        }
        found: dict[tuple[int, int], float] = defaultdict(float)
        for match in catalogue.match_cues([*chain(*terms.values())], _CUES, rows, kinds):
            found[match.video, match.number] += match.score
        for word, places in spelt.items():
            for place in places:
                found[place] += weights[word]
        for row, number, own in unspaced:
            found[row, number] += sum(weights[pair] for pair in pairs if pair in own)
        for place in sorted(found, key=lambda place: (-found[place], place))[:_CUES]:
            yield place, _WORDS_CEILING * min(1.0, found[place] / sum(weights.values()))

    def _by_meaning(
        self,
        view: View,
        vector: NDArray[np.float32] | None,
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
    ) -> Evidence:
        if vector is None or not view.cues or not kinds:
            return
        # Those of all ids of the index that are to be searched.
        ids = view.cues.sorted_ids()
        allowed = ids if set(kinds) == set(CUE_KINDS) else self._of_kinds(view, ids, frozenset(kinds))
        if rows is not None:
            allowed = allowed[np.isin(unpack_ids(allowed)[0], list(rows))]
        only = None if len(allowed) == len(ids) else allowed
        scores, pieces = view.cues.search(vector[None], _CUES, allowed=only)
        places = np.transpose(unpack_ids(pieces[0])).tolist()
        yield from zip(map(tuple, places), _MEANING.scores(scores[0]).tolist(), strict=True)

    def _of_kinds(self, view: View, ids: NDArray[np.int64], kinds: frozenset[CueKind]) -> NDArray[np.int64]:
        """Those of the ids that are cues of some kinds; read once per state of the library."""
        generation, known = self._known
        if generation != view.generation:
            known = {}
        if kinds not in known:
            said = "subtitle" in kinds
            pieces = self._store.catalogue.recognised_cues(set(CUE_KINDS) - kinds if said else kinds)
            videos, numbers = np.array(pieces, dtype=np.int64).reshape(-1, 2).T
            known = known | {kinds: ids[np.isin(ids, segment_ids(videos, numbers), invert=said)]}
            self._known = view.generation, known
        return known[kinds]


def _joined(
    row: int,
    matches: Sequence[tuple[Cue, float]],
    video: VideoRow,
    words_by_stem: Mapping[str, str],
    pairs: Sequence[str],
) -> list[Found]:
    """Cues of one kind in one video, with scores, as moments; short pauses do not divide them."""
    groups: list[list[tuple[Cue, float]]] = []
    for cue, score in sorted(matches, key=lambda match: match[0].start):
        if cue.start >= video.duration:
            continue  # a subtitle file that runs past the end of the pictures
        if groups and cue.start - max(other.end for other, _ in groups[-1]) <= _PAUSE:
            groups[-1].append((cue, score))
        else:
            groups.append([(cue, score)])
    joined = []
    for group in groups:
        span = Span(group[0][0].start, min(max(cue.end for cue, _ in group), video.duration))
        cue, score = max(group, key=lambda match: match[1])
        stems = {stem for one, _ in group for stem in stems_of(one.text.lower())}
        words = [word for stem, word in words_by_stem.items() if stem in stems]
        words += [pair for pair in pairs if any(pair in one.text for one, _ in group)]
        why = Reason("written" if cue.kind == "text" else "said", score, tuple(sorted(words)))
        joined.append(Found(row, span, score, cue.kind, cue.text, snippet_kind=cue.kind, why=(why,)))
    return joined
