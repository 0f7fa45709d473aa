"""The words of cues, by the full-text index of the catalogue.

The index knows stems of English words, and no marks on letters; an apostrophe and a comma part words.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from Stemmer import Stemmer

from moviola.files.names import folded
from moviola.library.disk.database import Database
from moviola.retrieval.phrases import FIRST_UNSPACED, spaced
from moviola.retrieval.spellings import forms_of
from moviola.types import CUE_KINDS, CueKind

__all__ = ["MEMBERS", "CueRow", "CueWords"]

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


@dataclass(frozen=True, slots=True)
class CueRow:
    """A matching cue: the video's row number, the cue's number in the video, and BM25 (> 0)."""

    video: int
    number: int
    score: float


class CueWords(Database):
    """Cues by what they say."""

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
        self._rows("CREATE VIRTUAL TABLE IF NOT EXISTS temp.cue_terms USING fts5vocab (main, cues, row)")
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


def _expression(words: Sequence[str]) -> str:
    """A full-text query for any of the words."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


def _plain(word: str) -> str:
    """A word as full-text search spells it, without marks on its letters."""
    letters = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
