"""Moments from cues of speech and text whose words match (BM25), or whose meaning is close.

Words come first. A word that no cue of the library holds weighs nothing and is named; the others weigh by how
rare they are. Cues of one moment that hold all words of the query score .75 to .9, less where these have
other marks than in the query ("cho", "chó"); those that hold a share of the words half of that share at most:
possible, never strong. Clocks and counters hold any short number: one that stands in a longer one, or by
itself is all that is asked of a picture, is such a share, too. By meaning cues are compared only where the
sentence encoder reads both the query and the cue (:mod:`moviola.search.meaning`), and score less than those
that hold all words.
``benchmarks/no_match/lines.py`` measures it.

The title of a chapter is the name of a stretch of its film. Each is a moment by itself, and possible at
most: how often such a stretch shows what its title says has not been measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, VideoRow, View, WantedCues
from moviola.retrieval.phrases import FUNCTION_WORDS, content_words, unframed
from moviola.retrieval.segments import segment_ids, unpack_ids
from moviola.search.found import Candidate
from moviola.search.fusion import fused
from moviola.search.meaning import EXACT, Meaning
from moviola.search.understanding import says_only_what_not
from moviola.types import CUE_KINDS, STRONG, Cue, CueKind, Reason, ReasonKind, Span
from moviola.words import (
    Asked,
    asked_of,
    base_language,
    fold,
    is_short_number,
    joined_numbers,
    letters_of,
    marks_differ,
    script_language,
    short_numbers_within,
    terms_of_text,
    words_in,
    written_as,
)

__all__ = ["CueSearch", "Said"]

# Number of cues to examine, and the pause in seconds within which matching cues belong to one moment.
_CUES = 100
_PAUSE = 2.0
# Words can match by accident; a moment both seen and said should still stand above one that is only said.
_CEILING = 0.9
# Moments below this score are ignored.
_LEAST = 0.05
# Pairs of letters that are looked for.
_MOST_PAIRS = 32
# What a compound of a word counts of it, where what stands beside it is no word of the library; and what a
# query's letters count, where their pairs are not held.
_PART, _LETTERS = 0.9, 0.5
# What words with other marks lose of what lines that hold all words are above others.
_MARKS = 0.5

_REASONS: dict[CueKind, ReasonKind] = {
    "subtitle": "said", "speech": "said", "text": "written", "chapter": "titled"
}  # fmt: skip

_CHAPTER = CUE_KINDS.index("chapter")
_TITLED = 0.45  # at most, of a chapter

Place = tuple[int, int]
"""Row number of a video, and number of a cue in it."""

_Among = tuple[frozenset[CueKind], frozenset[str]]
"""Kinds and languages of cues; of no language all."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What a text holds of a query: words and pairs, of these those with other marks, compounds of words, the
    share of letters, in [0, 1].
    """

    whole: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    letters: float = 0.0
    marked: frozenset[str] = frozenset()

    def and_of(self, other: _Held) -> _Held:
        """What two texts hold together."""
        whole = self.whole | other.whole
        marked = (self.marked - (other.whole - other.marked)) | (other.marked - (self.whole - self.marked))
        return _Held(whole, (self.parts | other.parts) - whole, max(self.letters, other.letters), marked)

    @property
    def order(self) -> tuple[float, ...]:
        """More for what is held better."""
        return (len(self.whole), -len(self.marked), len(self.parts), self.letters)


@dataclass(frozen=True, slots=True)
class _Words:
    """What a query asks of cues: its words, in scripts without spaces pairs of letters.

    Attributes:
        asked: words, pairs and letters, read in the languages of the library.
        weights: of the words and pairs that the library holds, >= 0.
        unknown: the other words.
        joined: numbers of the query that signs join, such as times.
    """

    asked: Asked
    weights: Mapping[str, float]
    unknown: tuple[str, ...]
    joined: tuple[str, ...] = ()

    def held_by(self, cue: Cue) -> _Held:
        """What a cue holds."""
        terms, letters = (
            {*terms_of_text(cue.text, base_language(cue.language))},
            {*letters_of(fold(cue.text))},
        )
        terms |= letters
        units = self.asked.units
        found = frozenset(unit.text for unit in units if not unit.terms.isdisjoint(terms))
        whole = found - self._digits_in(cue)
        parts = frozenset(unit.text for unit in units if not unit.parts.isdisjoint(terms)) | found
        parts -= whole
        own = self.asked.letters
        share = sum(letter in letters for letter in own) / len(own) if own else 0.0
        return _Held(whole, parts, share, frozenset(self._marked_in(cue, whole)))

    def _digits_in(self, cue: Cue) -> frozenset[str]:
        """Short numbers that say little: parts of longer ones which are not those of the query; in a picture
        all, if nothing else is asked.
        """
        words = {unit.text for unit in self.asked.units}
        if cue.kind == "text" and not self.joined and all(map(is_short_number, words)):
            return frozenset(words)
        own = (one for one in self.joined if one in cue.text)
        return short_numbers_within(cue.text) - frozenset().union(*map(short_numbers_within, own))

    def _marked_in(self, cue: Cue, held: frozenset[str]) -> Iterator[str]:
        """Words that a cue holds with other marks than the query has: Vietnamese "cho" is not "chó"."""
        for unit in self.asked.words:
            if unit.text in held and not (unit.text.isascii() and cue.text.isascii()):
                written = written_as(cue.text, base_language(cue.language), unit.terms)
                if all(marks_differ(unit.text, word) for word in written):
                    yield unit.text

    def written_in(self, text: str, language: str) -> list[str]:
        """What a text in a language holds, as it stands there."""
        terms = {term for unit in self.asked.units for term in (*unit.terms, *unit.parts)}
        base = base_language(language)
        return written_as(text, base, terms) or written_as(text, base, self.asked.letters)

    def score(self, held: _Held, bm25: float) -> float:
        """The score of cues that hold some of it.

        ``bm25`` is the best of theirs as a share of that of an average cue with all words, >= 0.
        """
        count = len(self.asked.units)
        if count and len(held.whole) == count:
            spelt = 1 - _MARKS * len(held.marked) / count
            return EXACT + (_CEILING - EXACT) * min(bm25, 1.0) * spelt
        known = sum(self.weights.values())
        weight = sum(self.weights.get(word, 0.0) for word in held.whole)
        weight += _PART * sum(self.weights.get(word, 0.0) for word in held.parts)
        share = weight / known * len(self.weights) / count if known else 0.0
        return STRONG * max(share, _LETTERS * held.letters)


@dataclass
class Said:
    """Moments by speech and text for one query, in no order, and words of it that no cue holds."""

    found: list[Candidate] = field(default_factory=list)
    unknown: tuple[str, ...] = ()


class CueSearch:
    """Search in the cues of a library: subtitles, speech, text in the picture. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._known: tuple[int, dict[_Among, NDArray[np.int64]]] = -1, {}
        self._languages: tuple[int, frozenset[str]] = -1, frozenset()

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
        languages: Collection[str] = (),
    ) -> Said:
        """Moments whose speech or text matches a query.

        Cues of one kind and one language with short pauses between them are one moment; moments of several
        kinds or languages at the same time support each other.

        Args:
            view: of the library.
            text, vector: the query, and (d,) its unit sentence vector; None: words alone are compared, as
                where the encoder does not read the query.
            meaning: what the vector's cosines are worth.
            rows: row numbers of the videos to search; None for all.
            kinds, meant: kinds of cues to search, and those of them that are also compared by meaning.
            languages: of the cues to search; none: all.
        """
        words, by_words = self._by_words(text, self.languages(view), rows, kinds, languages)
        by_meaning: dict[Place, float] = {}
        if meaning is not None and vector is not None:
            by_meaning = self._by_meaning(view, vector, meaning, rows=rows, kinds=meant, languages=languages)
        by_track: dict[tuple[int, str], list[Candidate]] = defaultdict(list)
        places = {place for place in (*by_words, *by_meaning) if place[0] in view.videos}
        for row, own in groupby(sorted(places), key=lambda place: place[0]):
            if rows is not None and row not in rows:
                continue
            cues = self._store.catalogue.cues(row)
            # Some or all may be gone: the video was read again, or removed, this moment.
            matches = [
                _Match(
                    cues[number], words.held_by(cues[number]), by_words.get((row, number), 0.0),
                    _meant(by_meaning.get((row, number), 0.0), cues[number], meaning),
                )
                for _, number in own
                if number < len(cues)
            ]  # fmt: skip
            tracks: dict[tuple[int, str], list[_Match]] = defaultdict(list)
            for match in matches:
                kind, language = CUE_KINDS.index(match.cue.kind), base_language(match.cue.language)
                tracks[kind, language].append(match)
            for track, same in tracks.items():
                by_track[track] += _joined(row, same, view.videos[row], words, alone=track[0] == _CHAPTER)
        return Said(reduce(fused, (by_track[track] for track in sorted(by_track)), []), words.unknown)

    def languages(self, view: View) -> frozenset[str]:
        """The languages of a library's cues; read once per state of it."""
        generation, known = self._languages
        if generation != view.generation:
            known = frozenset(self._store.catalogue.languages())
            self._languages = view.generation, known
        return known

    def _by_words(
        self,
        text: str,
        read_in: Collection[str],
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
        languages: Collection[str],
    ) -> tuple[_Words, dict[Place, float]]:
        """The words of a query, and BM25 of cues with some of them; 1 is that of an average cue with all."""
        catalogue = self._store.catalogue
        words = words_in(unframed(text))
        counted = content_words(words)
        # "no dog" is not said where a dog is.
        words = words if says_only_what_not(text) else counted
        # Short lines show no language, but the letters of a query may.
        wanted = asked_of(words, text, {*read_in, script_language(text)} - {""})
        if wanted.pairs and FUNCTION_WORDS.issuperset(words):
            wanted = replace(wanted, words=())
        wanted = replace(
            wanted,
            words=tuple(catalogue.with_compounds(wanted.words, read_in)),
            pairs=wanted.pairs[:_MOST_PAIRS],
        )
        holding = {unit.text: catalogue.cues_with(unit.terms | unit.parts) for unit in wanted.units}
        total = sum(catalogue.cue_counts().values())
        pairs = {pair.text for pair in wanted.pairs}
        weights = {
            # Cues may come in between two counts.
            word: max(math.log((max(total - count, 0) + 0.5) / (count + 0.5)), 1e-6)
            for word, count in holding.items()
            if count and (word in counted or word in pairs)
        }
        terms = {term for unit in wanted.units if unit.text in weights for term in (*unit.terms, *unit.parts)}
        letters = wanted.letters if pairs != {*wanted.letters} else ()
        matches = catalogue.match_cues(WantedCues(terms, letters, rows, kinds, languages), _CUES)
        unknown = tuple(word.text for word in wanted.words if not holding[word.text])
        most = sum(weights.values()) or 1.0
        return _Words(wanted, weights, unknown, tuple(joined_numbers(text))), {
            (one.video, one.number): one.score / most for one in matches
        }

    def _by_meaning(
        self,
        view: View,
        vector: NDArray[np.float32],
        meaning: Meaning,
        *,
        rows: frozenset[int] | None,
        kinds: Collection[CueKind],
        languages: Collection[str],
    ) -> dict[Place, float]:
        """Scores of the nearest cues by meaning, whether or not the encoder reads them."""
        if not view.cues or not kinds:
            return {}
        # Those of all ids of the index that are to be searched.
        ids = view.cues.sorted_ids()
        allowed = ids
        if set(kinds) != set(CUE_KINDS) or languages:
            allowed = self._among(view, ids, (frozenset(kinds), frozenset(languages)))
        if rows is not None:
            allowed = allowed[np.isin(unpack_ids(allowed)[0], list(rows))]
        only = None if len(allowed) == len(ids) else allowed
        cosines, pieces = view.cues.search(vector[None], _CUES, allowed=only)
        scores = meaning.line_scores(cosines[0])
        likely = np.flatnonzero(scores >= _LEAST)
        places = np.transpose(unpack_ids(pieces[0][likely])).tolist()
        return dict(zip(map(tuple, places), scores[likely].tolist(), strict=True))

    def _among(self, view: View, ids: NDArray[np.int64], among: _Among) -> NDArray[np.int64]:
        """Those of the ids that are cues of some kinds and languages; read once per state of the library."""
        generation, known = self._known
        if generation != view.generation:
            known = {}
        if among not in known:
            kinds, languages = among
            catalogue, found = self._store.catalogue, ids
            if kinds != set(CUE_KINDS):
                said = "subtitle" in kinds
                others = catalogue.recognised_cues(set(CUE_KINDS) - kinds if said else kinds)
                found = found[np.isin(found, _ids(others), invert=said)]
            if languages:
                found = found[np.isin(found, _ids(catalogue.cues_in(languages)))]
            known = known | {among: found}
            self._known = view.generation, known
        return known[among]


def _ids(places: Sequence[Place]) -> NDArray[np.int64]:
    """The ids of cues."""
    videos, numbers = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return segment_ids(videos, numbers)


@dataclass(frozen=True, slots=True)
class _Match:
    """A cue with what it holds, its BM25 as a share, and its score by meaning, 0 for none."""

    cue: Cue
    held: _Held
    bm25: float
    meant: float


def _meant(score: float, cue: Cue, meaning: Meaning | None) -> float:
    """A score by meaning, 0 for a cue that the encoder does not read."""
    reads = meaning is not None and meaning.reads(cue.text, base_language(cue.language))
    return score if score and reads else 0.0


def _joined(
    row: int, matches: Sequence[_Match], video: VideoRow, words: _Words, *, alone: bool = False
) -> Iterator[Candidate]:
    """Matching cues of one kind in one video as moments; ``alone``: each by itself."""
    there = [match for match in matches if match.cue.start < video.duration]  # a file may run past the end
    runs = [[match] for match in there] if alone else _runs(there)
    for group in chain.from_iterable(_without_lesser(group, words) for group in runs):
        score = max(_score(words, group), *(match.meant for match in group))
        if group[0].cue.kind == "chapter":
            score = min(score, _TITLED)
        if score < _LEAST:
            continue
        first, last = _first_second(words, group[0]), max(match.cue.end for match in group)
        span = Span(first, min(last, video.duration))
        best = max(group, key=lambda match: (match.held.order, match.bm25, match.meant))
        kind, written = (
            best.cue.kind,
            [word for match in group for word in words.written_in(match.cue.text, match.cue.language)],
        )
        why = Reason(_REASONS[kind], score, tuple(sorted(set(written))))
        yield Candidate(row, span, score, kind, best.cue.text, snippet_kind=kind, why=(why,))


def _first_second(words: _Words, match: _Match) -> float:
    """When the first matching word of a cue is said, if the times of its words are known; else its start."""
    if match.held == _Held():
        return match.cue.start
    within = (one for one in match.cue.words if one.start < match.cue.end)  # which ends with the video
    said = (one.start for one in within if words.written_in(one.text, match.cue.language))
    return next(said, match.cue.start)


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
    held = reduce(_Held.and_of, (match.held for match in group))
    return words.score(held, max(match.bm25 for match in group)) if any(held.order) else 0.0
