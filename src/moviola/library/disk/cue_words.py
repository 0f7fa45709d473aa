"""The words of cues, by the full-text index of the catalogue.

The index knows stems of English words, and no marks on letters; an apostrophe and a comma part words.
:func:`terms_of` and :func:`terms_in` say the same of single texts; they are the one place where a word of a
query is compared with those of a text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from Stemmer import Stemmer

from moviola.files.names import folded
from moviola.files.spelling import alike_in_spelling, most_edits
from moviola.library.disk.database import Database
from moviola.retrieval.phrases import FIRST_UNSPACED, spaced
from moviola.retrieval.spellings import forms_of, words_in
from moviola.types import CUE_KINDS, CueKind

__all__ = ["MEMBERS", "CueRow", "CueWords", "terms_in", "terms_of"]

MEMBERS = "SELECT value FROM json_each(?)"
"""Members of a JSON list given as a parameter."""

# The kind of a row of ``cues``.
_KIND = (
    "coalesce((SELECT kind FROM recognised AS r WHERE r.video = cues.video AND r.number = cues.number), "
    "'subtitle')"
)
# Maximum words that are looked for within scripts without spaces, and maximum terms of each of them.
_MOST_WORDS, _MOST_TERMS = 32, 500
# Cues that are read to look for an umlaut in them.
_MOST_READ = 10_000
# Words that are offered for an unknown one.
_MOST_NEAR = 3

_TERMS = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.cue_terms USING fts5vocab (main, cues, row)"
_PLACES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.cue_term_places USING fts5vocab (main, cues, instance)"


@dataclass(frozen=True, slots=True)
class CueRow:
    """A matching cue: the video's row number, the cue's number in the video, and BM25 (> 0)."""

    video: int
    number: int
    score: float


@lru_cache(maxsize=100_000)
def terms_of(word: str) -> frozenset[str]:
    """What a word is compared by: its spellings, stemmed and without marks on their letters; those with a
    blank are of several words.

    >>> sorted(terms_of("cyclists")), sorted(terms_of("dont"))
    (['cyclist'], ['don t', 'dont'])
    """
    return frozenset(map(_term, forms_of(word)))


def terms_in(text: str) -> frozenset[str]:
    """The terms of all words of a text, and of two and three that follow each other, as spellings have it."""
    plain = re.findall(r"[^\W_]+", _plain(folded(text)))
    runs = (" ".join(plain[at : at + length]) for length in (2, 3) for at in range(len(plain)))
    return frozenset().union(*map(terms_of, words_in(text)), runs)


def _term(form: str) -> str:
    if " " in form:
        return _plain(form)
    # A stemmer of its own: one may not serve two threads.
    return str(Stemmer("porter").stemWord(_plain(form.replace("ß", "ss"))))


class CueWords(Database):
    """Cues by what they say."""

    def recognised_cues(self, kinds: Collection[CueKind]) -> list[tuple[int, int]]:
        """Row numbers of videos and numbers of cues in them, for all cues of some kinds but subtitles."""
        of_kinds = f"SELECT video, number FROM recognised WHERE kind IN ({MEMBERS})"
        return self._rows_of("recognised", of_kinds, (json.dumps([*kinds]),))

    def match_cues(
        self,
        words: Sequence[str],
        limit: int,
        videos: Collection[int] | None = None,
        kinds: Collection[CueKind] = CUE_KINDS,
    ) -> list[CueRow]:
        """At most ``limit`` cues of some kinds that hold any of the words (stemmed), best BM25 first;
        ``videos`` are row numbers of those to search, None for all.
        """
        if not words:
            return []
        within, values = self._cues_within(videos, kinds)
        statement = f"SELECT video, number, -bm25(cues) FROM cues WHERE cues MATCH ?{within}"
        order = "ORDER BY bm25(cues), video, number LIMIT ?"
        return [
            CueRow(*row) for row in self._rows(f"{statement} {order}", (_expression(words), *values, limit))
        ]

    def cues_with_any(
        self,
        pieces: Sequence[str],
        videos: Collection[int] | None = None,
        kinds: Collection[CueKind] = CUE_KINDS,
    ) -> list[tuple[int, int, str]]:
        """Video, number and text of the cues of some kinds that contain one of the pieces exactly, also
        within a word; reads all cues.
        """
        if not pieces:
            return []
        within, values = self._cues_within(videos, kinds)
        holds = " OR ".join(["instr(text, ?)"] * len(pieces))
        return self._rows(f"SELECT video, number, text FROM cues WHERE ({holds}){within}", (*pieces, *values))

    def _cues_within(
        self, videos: Collection[int] | None, kinds: Collection[CueKind]
    ) -> tuple[str, list[str]]:
        """Further conditions on a row of ``cues``, and their values."""
        where, values = "", []
        if videos is not None:
            where += f" AND video IN ({MEMBERS})"
            values.append(json.dumps(sorted(videos)))
        if set(kinds) < set(CUE_KINDS):
            if self._has("recognised"):
                where += f" AND {_KIND} IN ({MEMBERS})"
                values.append(json.dumps([*kinds]))
            elif "subtitle" not in kinds:
                where += " AND 0"
        return where, values

    def cues_with(self, words: Sequence[str]) -> int:
        """Number of cues that contain any of the words (stemmed)."""
        return int(self._rows("SELECT count(*) FROM cues WHERE cues MATCH ?", (_expression(words),))[0][0])

    def cues_with_umlauts(
        self, word: str, videos: Collection[int] | None, kinds: Collection[CueKind]
    ) -> list[tuple[int, int]]:
        """Video and number of the cues of some kinds with a word that begins so; the full-text index knows
        nothing of marks on letters.
        """
        within, values = self._cues_within(videos, kinds)
        statement = f"SELECT video, number, text FROM cues WHERE cues MATCH ?{within} LIMIT {_MOST_READ}"
        rows = self._rows(statement, (_expression([_plain(word)]), *values))
        begins = re.compile(rf"\b{re.escape(word)}")
        return [(row, number) for row, number, text in rows if begins.search(folded(text))]

    def terms_with(self, words: Sequence[str]) -> dict[str, list[str]]:
        """The terms of the full-text index that contain a word, by word in lower case: its spellings
        (:func:`moviola.retrieval.spellings.forms_of`), and runs of letters in which it stands between letters
        of a script without spaces, since the index takes the whole run for a term.
        """
        terms = {word: forms_of(word) for word in words}
        if not words:
            return terms
        self._rows(_TERMS)
        if not self._rows("SELECT 1 FROM cue_terms WHERE term >= ? LIMIT 1", (FIRST_UNSPACED,)):
            return terms
        stemmer = Stemmer("porter")
        spelt = {
            _plain(form): word for word in words[:_MOST_WORDS] for form in (word, stemmer.stemWord(word))
        }
        holds = " OR ".join(["instr(term, ?)"] * len(spelt))
        for (term,) in self._rows(f"SELECT term FROM cue_terms WHERE {holds}", [*spelt]):
            for word in {spelt[part] for part in spaced(term).split() if part in spelt and part != term}:
                if len(terms[word]) < _MOST_TERMS:
                    terms[word].append(term)
        return terms

    def words_near(self, word: str) -> list[str]:
        """At most three words of the cues that are spelt like a word which none of them holds, stemmed or not
        (:func:`moviola.files.spelling.alike_in_spelling`), the nearest first, of these the most frequent.
        """
        forms, limit = dict.fromkeys((_plain(word), _term(word))), most_edits(word)
        self._rows(_TERMS)
        self._rows(_PLACES)
        lengths = (min(map(len, forms)) - limit, max(map(len, forms)) + limit)
        alike = "SELECT term FROM cue_terms WHERE length(term) BETWEEN ? AND ? ORDER BY cnt DESC, term"
        known = [term for (term,) in self._rows(alike, lengths)]
        terms = dict.fromkeys(term for form in forms for term in alike_in_spelling(form, known))
        return list(dict.fromkeys(filter(None, map(self._as_written, terms))))[:_MOST_NEAR]

    def _as_written(self, term: str) -> str:
        """A term of the index as one of its cues has it; empty where that is gone."""
        place = "SELECT doc FROM cue_term_places WHERE term = ? LIMIT 1"
        texts = self._rows(f"SELECT text FROM cues WHERE rowid IN ({place})", (term,))
        written = (word for (text,) in texts for word in words_in(str(text)))
        return next((word for word in written if term in terms_of(word)), "")


def _expression(words: Sequence[str]) -> str:
    """A full-text query for any of the words."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


def _plain(word: str) -> str:
    """A word as full-text search spells it, without marks on its letters."""
    letters = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
