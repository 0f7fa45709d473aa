"""Moments from cues of speech and text whose words match (BM25), or whose meaning is close.

Words come first. A word that no cue of the library holds weighs nothing and is named; the others weigh by how
rare they are. Cues of one moment that hold all words of the query score .75 to .9, those that hold a share
of the words half of that share at most: possible, never strong. By meaning cues are compared only where the
sentence encoder reads both the query and the cue (:mod:`moviola.search.meaning`), and score less than
those that hold all words. ``benchmarks/no_match/lines.py`` measures it.

The title of a chapter is the name of a stretch of its film. Each is a moment by itself, and scores at most
what the name of a video does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, VideoRow, View, terms_in, terms_of
from moviola.retrieval.phrases import FUNCTION_WORDS, content_words, pairs_of, unframed
from moviola.retrieval.segments import segment_ids, unpack_ids
from moviola.retrieval.spellings import umlauts_of, words_in
from moviola.search.found import Candidate
from moviola.search.fusion import fused
from moviola.search.meaning import EXACT, Meaning
from moviola.search.name_evidence import BY_NAME
from moviola.search.understanding import says_only_what_not
from moviola.types import CUE_KINDS, STRONG, Cue, CueKind, Reason, ReasonKind, Span

__all__ = ["CueSearch", "Said"]

# Number of cues to examine, and the pause in seconds within which matching cues belong to one moment.
_CUES = 100
_PAUSE = 2.0
# Words can match by accident; a moment both seen and said should still stand above one that is only said.
_CEILING = 0.9
# Moments below this score are ignored.
_LEAST = 0.05
# Each pair of letters is looked for in all cues, 100,000 in .03 s of processor time.
_MOST_PAIRS = 32

_REASONS: dict[CueKind, ReasonKind] = {
    "subtitle": "said", "speech": "said", "text": "written", "chapter": "titled"
}  # fmt: skip

Place = tuple[int, int]
"""Row number of a video, and number of a cue in it."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What a query asks of cues: its words, in scripts without spaces pairs of letters.

    Attributes:
        terms: of each word, see :func:`moviola.library.terms_of`.
        pairs: of letters.
        weights: of the words and pairs that the library holds, >= 0.
        unknown: the other words.
    """

    terms: Mapping[str, frozenset[str]]
    pairs: Sequence[str]
    weights: Mapping[str, float]
    unknown: tuple[str, ...]

    def held_by(self, text: str) -> set[str]:
        """The words and pairs that a text holds."""
        terms = terms_in(text)
        held = {word for word, own in self.terms.items() if own & terms}
        return held | {pair for pair in self.pairs if pair in text}

    def score(self, held: Collection[str], bm25: float) -> float:
        """The score of cues that hold some of the words.

        ``bm25`` is the best of theirs as a share of that of an average cue with all words, >= 0.
        """
        count = len(self.terms) + len(self.pairs)
        if len(held) == count:
            return EXACT + (_CEILING - EXACT) * min(bm25, 1.0)
        known = sum(self.weights.values())
        weight = sum(self.weights.get(word, 0.0) for word in held) / known if known else 0.0
        return STRONG * weight * len(self.weights) / count


@dataclass
class Said:
    """Moments by speech and text for one query, in no order, and words of it that no cue holds."""

    found: list[Candidate] = field(default_factory=list)
    unknown: tuple[str, ...] = ()


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
        meaning: Meaning | None,
        *,
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
        meant: Collection[CueKind],
    ) -> Said:
        """Moments whose speech or text matches a query.

        Cues of one kind with short pauses between them are one moment; moments of several kinds at the same
        time support each other.

        Args:
            view: of the library.
            text, vector: the query, and (d,) its unit sentence vector; None: words alone are compared, as
                where the encoder does not read the query.
            meaning: what the vector's cosines are worth.
            rows: row numbers of the videos to search; None for all.
            kinds, meant: kinds of cues to search, and those of them that are also compared by meaning.
        """
        words, by_words = self._by_words(text, rows, kinds)
        by_meaning: dict[Place, float] = {}
        if meaning is not None and vector is not None:
            by_meaning = self._by_meaning(view, vector, meaning, rows, meant)
        by_kind: dict[CueKind, list[Candidate]] = {kind: [] for kind in CUE_KINDS}
        places = {place for place in (*by_words, *by_meaning) if place[0] in view.videos}
        for row, own in groupby(sorted(places), key=lambda place: place[0]):
            if rows is not None and row not in rows:
                continue
            cues = self._store.catalogue.cues(row)
            # Some or all may be gone: the video was read again, or removed, this moment.
            matches = [
                _Match(
                    cues[number], words.held_by(cues[number].text), by_words.get((row, number), 0.0),
                    _meant(by_meaning.get((row, number), 0.0), cues[number], meaning),
                )
                for _, number in own
                if number < len(cues)
            ]  # fmt: skip
            for kind, moments in by_kind.items():
                same = [match for match in matches if match.cue.kind == kind]
                moments += _joined(row, same, view.videos[row], words, alone=kind == "chapter")
        return Said(reduce(fused, by_kind.values(), []), words.unknown)

    def _by_words(
        self, text: str, rows: frozenset[int] | None, kinds: Collection[CueKind]
    ) -> tuple[_Words, dict[Place, float]]:
        """The words of a query, and BM25 of cues with some of them; 1 is that of an average cue with all."""
        catalogue, pairs = self._store.catalogue, pairs_of(text)[:_MOST_PAIRS]
        words = words_in(unframed(text))
        counted = content_words(words)
        # "no dog" is not said where a dog is.
        words = words if says_only_what_not(text) else counted
        if pairs and FUNCTION_WORDS.issuperset(words):
            words = []
        terms = catalogue.terms_with(words)
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
            if count and (word in counted or word in pairs)
        }
        found: dict[Place, float] = defaultdict(float)
        known = [*chain(*(own for word, own in terms.items() if word in weights))]
        for match in catalogue.match_cues(known, _CUES, rows, kinds):
            found[match.video, match.number] += match.score
        for word, places in spelt.items():
            for place in places:
                found[place] += weights.get(word, 0.0)
        for row, number, own in unspaced:
            found[row, number] += sum(weights[pair] for pair in pairs if pair in own)
        best = sorted(found, key=lambda place: (-found[place], place))[:_CUES]
        unknown = tuple(word for word in words if not holding[word])
        wanted = _Words({word: terms_of(word) for word in words}, pairs, weights, unknown)
        return wanted, {place: found[place] / sum(weights.values()) for place in best}

    def _by_meaning(
        self,
        view: View,
        vector: NDArray[np.float32],
        meaning: Meaning,
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
    ) -> dict[Place, float]:
        """Scores of the nearest cues by meaning, whether or not the encoder reads them."""
        if not view.cues or not kinds:
            return {}
        # Those of all ids of the index that are to be searched.
        ids = view.cues.sorted_ids()
        allowed = ids if set(kinds) == set(CUE_KINDS) else self._of_kinds(view, ids, frozenset(kinds))
        if rows is not None:
            allowed = allowed[np.isin(unpack_ids(allowed)[0], list(rows))]
        only = None if len(allowed) == len(ids) else allowed
        cosines, pieces = view.cues.search(vector[None], _CUES, allowed=only)
        scores = meaning.line_scores(cosines[0])
        likely = np.flatnonzero(scores >= _LEAST)
        places = np.transpose(unpack_ids(pieces[0][likely])).tolist()
        return dict(zip(map(tuple, places), scores[likely].tolist(), strict=True))

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


@dataclass(frozen=True, slots=True)
class _Match:
    """A cue with the words that it holds, their BM25 as a share, and its score by meaning, 0 for none."""

    cue: Cue
    held: set[str]
    bm25: float
    meant: float


def _meant(score: float, cue: Cue, meaning: Meaning | None) -> float:
    """A score by meaning, 0 for a cue that the encoder does not read."""
    return score if score and meaning is not None and meaning.reads(cue.text) else 0.0


def _joined(
    row: int, matches: Sequence[_Match], video: VideoRow, words: _Words, *, alone: bool = False
) -> Iterator[Candidate]:
    """Matching cues of one kind in one video as moments; ``alone``: each by itself."""
    there = [match for match in matches if match.cue.start < video.duration]  # a file may run past the end
    runs = [[match] for match in there] if alone else _runs(there)
    for group in chain.from_iterable(_without_lesser(group, words) for group in runs):
        score = max(_score(words, group), *(match.meant for match in group))
        if group[0].cue.kind == "chapter":
            score = min(score, BY_NAME)
        if score < _LEAST:
            continue
        span = Span(group[0].cue.start, min(max(match.cue.end for match in group), video.duration))
        best = max(group, key=lambda match: (len(match.held), match.bm25, match.meant))
        kind, held = best.cue.kind, set().union(*(match.held for match in group))
        why = Reason(_REASONS[kind], score, tuple(sorted(held)))
        yield Candidate(row, span, score, kind, best.cue.text, snippet_kind=kind, why=(why,))


def _runs(matches: Sequence[_Match]) -> list[list[_Match]]:
    """Cues in order of time, divided where a pause is long."""
    groups: list[list[_Match]] = []
    for match in sorted(matches, key=lambda one: one.cue.start):
        if groups and match.cue.start - max(other.cue.end for other in groups[-1]) <= _PAUSE:
            groups[-1].append(match)
        else:
            groups.append([match])
    return groups


def _without_lesser(group: Sequence[_Match], words: _Words) -> list[list[_Match]]:
    """A run without those cues that say much less than its best, which would only make the moment longer."""
    scores = [max(_score(words, [match]), match.meant) for match in group]
    least = max(scores) / 2
    return _runs([match for match, score in zip(group, scores, strict=True) if score >= least > 0])


def _score(words: _Words, group: Sequence[_Match]) -> float:
    """The score of cues by the words that they hold together."""
    held = set().union(*(match.held for match in group))
    return words.score(held, max(match.bm25 for match in group)) if held else 0.0
