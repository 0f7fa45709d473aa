"""The words of cues, by the full-text index of the catalogue, which holds terms (:mod:`moviola.words`)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moviola.files.spelling import alike_in_spelling, most_edits
from moviola.library.disk.bm25 import OF_LETTER, OF_TERM, WordCounts, bounds, totals_of
from moviola.library.disk.database import Database
from moviola.library.disk.schema import ADDED, CUES, CUES_BY_VIDEO, CUES_OF
from moviola.types import CUE_KINDS, Cue, CueKind
from moviola.words import (
    AskedWord,
    base_language,
    each_detected,
    fold,
    letters_of,
    same_language,
    terms_of_text,
    terms_of_word,
)
from moviola.words.spellings import words_at
from moviola.words.terms import COMPOUNDING, MARK, word_of_term

__all__ = [
    "COLUMNS", "MEMBERS", "CueRow", "CueTrack", "CueWords", "WantedCues", "indexed", "tracks_counted",
    "with_terms",
]  # fmt: skip

MEMBERS = "SELECT value FROM json_each(?)"
"""Members of a JSON list given as a parameter."""

COLUMNS = ("text", "video", "number", "start", "stop", "language", "form", "terms", "letters")
"""The columns of a row of :func:`indexed`."""

# The kind of a row of cues.
_KIND = (
    "coalesce((SELECT kind FROM recognised AS r WHERE r.video = c.video AND r.number = c.number), 'subtitle')"
)
_COUNT_TRACKS_OF = (
    f"INSERT INTO cue_tracks SELECT c.video, {_KIND}, c.language, c.form, count(*) FROM cues AS c"
)
_COUNT_TRACKS = f"{_COUNT_TRACKS_OF} GROUP BY 1, 2, 3, 4"
_BM25 = f"bm25({{}}, 0, 0, 0, 0, 0, 0, 0, {OF_TERM}, {OF_LETTER})"
# Words that are offered for an unknown one, letters of the shortest word whose compounds are found, and of
# what stands beside it, and letters between the two.
_MOST_NEAR, _LEAST_PART, _LEAST_REST, _MOST_COMPOUNDS = 3, 4, 3, 100
_JOINTS = ("", "s", "es", "n", "en", "er", "e")


@dataclass(frozen=True, slots=True)
class CueRow:
    """A matching cue: the video's row number, the cue's number in the video, and BM25 (> 0)."""

    video: int
    number: int
    score: float


@dataclass(frozen=True, slots=True)
class WantedCues:
    """Cues that hold any of some terms, or letters.

    Attributes:
        terms, letters: as :func:`indexed` gives them.
        videos: row numbers of those to search; None for all.
        kinds: kinds of cues.
        languages: as in :meth:`CueWords.cues_in`; empty for all.
    """

    terms: Collection[str]
    letters: Collection[str] = ()
    videos: Collection[int] | None = None
    kinds: Collection[CueKind] = CUE_KINDS
    languages: Collection[str] = ()


def indexed(text: str, language: str) -> tuple[str, str]:
    """The terms and the letters of a cue, as the index of words holds them."""
    terms = terms_of_text(text, base_language(language))
    return " ".join(terms), " ".join(letters_of(fold(text)))


@dataclass(frozen=True, slots=True)
class CueTrack:
    """Cues of one kind, one language (a tag of BCP 47, empty: not known) and one form, and how many there
    are.
    """

    kind: CueKind
    language: str
    form: str
    cues: int


def with_terms(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one video's cues, by column, which may be of an earlier format, as :data:`COLUMNS` has them."""
    if not rows or "terms" in rows[0]:
        return [*map(dict, rows)]
    languages = each_detected([row["text"] for row in rows])
    return [
        dict(
            zip(
                COLUMNS,
                (*map(row.get, COLUMNS[:5]), language, "", *indexed(row["text"], language)),
                strict=True,
            )
        )
        for row, language in zip(rows, languages, strict=True)
    ]


def tracks_counted(row: int) -> tuple[str, tuple[int]]:
    """A statement that counts the tracks of a video's cues again, and its values."""
    return f"{_COUNT_TRACKS_OF} WHERE c.video = ? GROUP BY 1, 2, 3, 4", (row,)


class CueWords(Database):
    """Cues by what they say."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__(path, read_only=read_only)
        self._known_terms = False
        self._made_index = threading.local()
        self._of_compounds: tuple[object, dict[str, str]] = None, {}

    def recognised_cues(self, kinds: Collection[CueKind]) -> list[tuple[int, int]]:
        """Row numbers of videos and numbers of cues in them, for all cues of some kinds but subtitles."""
        of_kinds = f"SELECT video, number FROM recognised WHERE kind IN ({MEMBERS})"
        return self._rows_of("recognised", of_kinds, (json.dumps([*kinds]),))

    def match_cues(self, wanted: WantedCues, limit: int, among: WordCounts | None = None) -> list[CueRow]:
        """At most ``limit`` cues, best BM25 first, by how often words are in ``among``, by default in this
        catalogue.
        """
        if not wanted.terms and not wanted.letters:
            return []
        if among is not None:
            return self._match_among(wanted, limit, among)
        index = self._word_index()
        within, values = self._cues_within(wanted)
        bm25 = _BM25.format(index)
        # Rows have the order of videos and of their cues; what is stored of cues is read of the best alone.
        best = (
            f"SELECT c.rowid AS place, -{bm25} AS score FROM {index} AS c WHERE {index} MATCH ?{within} "
            "ORDER BY score DESC, place LIMIT ?"
        )
        read = f"SELECT c.video, c.number, score FROM ({best}) JOIN {index} AS c ON c.rowid = place"
        match = _expression(wanted.terms, wanted.letters)
        found = self._rows(f"{read} ORDER BY score DESC, place", (match, *values, limit))
        return [CueRow(*row) for row in found]

    def word_counts(self, terms: Collection[str], letters: Collection[str]) -> WordCounts:
        """What :meth:`match_cues` counts over all cues for terms and letters."""
        index = self._word_index()
        ((totals,),) = self._rows(f"SELECT block FROM {index}_data WHERE id = 1")
        counted = f"SELECT count(*) FROM {index} WHERE {index} MATCH ?"
        holding = (self._rows(counted, (phrase,))[0][0] for phrase in _phrases(terms, letters))
        return WordCounts(*totals_of(totals), tuple(holding))

    def _match_among(self, wanted: WantedCues, limit: int, among: WordCounts) -> list[CueRow]:
        """:meth:`match_cues` by given counts: no cue is read whose score here shows that it is not among the
        best by these.
        """
        index, (where, values) = self._word_index(), self._cues_within(wanted)
        terms, letters = wanted.terms, wanted.letters
        bm25, match = _BM25.format(index), _expression(terms, letters)
        scored = f"SELECT c.rowid AS place, -{bm25} AS score FROM {index} AS c WHERE {index} MATCH ?{where}"
        best = f"SELECT score FROM ({scored}) ORDER BY score DESC LIMIT 1 OFFSET ?"
        last = self._rows(best, (match, *values, limit - 1))
        low, high = bounds(self.word_counts(terms, letters), among)
        least = last[0][0] * low / high * (1 - 1e-9) if last else 0.0
        read = (
            f"SELECT c.rowid, c.video, c.number, c.terms, c.letters FROM ({scored}) "
            f"JOIN {index} AS c ON c.rowid = place WHERE score >= ?"
        )
        phrases = [(term, False) for term in sorted(terms)] + [(letter, True) for letter in sorted(letters)]
        score = among.scorer(phrases)
        found = [
            (-score(own, its), place, video, number)
            for place, video, number, own, its in self._rows(read, (match, *values, least))
        ]
        return [CueRow(video, number, -lost) for lost, _, video, number in sorted(found)[:limit]]

    def _cues_within(self, wanted: WantedCues) -> tuple[str, list[str]]:
        """Conditions on a row of cues besides its words, and their values."""
        where, values = "", []
        if wanted.videos is not None:
            where += f" AND c.video IN ({MEMBERS})"
            values.append(json.dumps(sorted(wanted.videos)))
        if wanted.languages:
            where += f" AND c.language IN ({MEMBERS})"
            values.append(json.dumps([*self._tags_of(wanted.languages)]))
        if not {kind for kind, count in self.cue_counts().items() if count} <= {*wanted.kinds}:
            if self._has("recognised"):
                where += f" AND {_KIND} IN ({MEMBERS})"
                values.append(json.dumps([*wanted.kinds]))
            elif "subtitle" not in wanted.kinds:
                where += " AND 0"
        return where, values

    def cue_counts(self) -> dict[CueKind, int]:
        """Number of cues in the library by kind."""
        counts: dict[CueKind, int] = dict.fromkeys(CUE_KINDS, 0)
        if self.has_terms:
            return counts | dict(self._rows("SELECT kind, sum(cues) FROM cue_tracks GROUP BY kind"))
        counts |= dict(self._rows_of("recognised", "SELECT kind, count(*) FROM recognised GROUP BY kind"))
        total = int(self._rows("SELECT count(*) FROM cues")[0][0])
        return counts | {"subtitle": total - sum(counts.values())}

    def cues_with(self, terms: Collection[str]) -> int:
        """Number of cues that hold any of the terms."""
        index = self._word_index()
        counted = f"SELECT count(*) FROM {index} WHERE {index} MATCH ?"
        return int(self._rows(counted, (_expression(terms),))[0][0]) if terms else 0

    def cues_in(self, languages: Collection[str]) -> list[tuple[int, int]]:
        """Video and number of the cues in some languages, tags of BCP 47 as
        :func:`moviola.words.same_language` compares them; the empty one means that it is not known.
        """
        within, values = self._cues_within(WantedCues((), languages=languages))
        return self._rows(f"SELECT video, number FROM {self._word_index()} AS c WHERE 1{within}", values)

    def languages(self) -> set[str]:
        """The languages of the cues, without region and script."""
        return {*map(base_language, self._tags())} - {""}

    def _tags(self) -> list[str]:
        """The languages of the cues as they are kept."""
        table = "cue_tracks" if self._has("cue_tracks") else self._word_index()
        return [language for (language,) in self._rows(f"SELECT DISTINCT language FROM {table}")]

    def _tags_of(self, languages: Collection[str]) -> list[str]:
        """Those of them that are in one of some languages."""
        return [tag for tag in self._tags() if any(same_language(tag, one) for one in languages)]

    def with_compounds(self, words: Sequence[AskedWord], languages: Collection[str]) -> list[AskedWord]:
        """Words with the terms of compounds that begin or end with one of them, in languages that write these
        as one word. The rest of a compound is a word of the library, else the word is a part alone.
        """
        stems = {
            (word_of_term(term), term.partition(MARK)[2]): word
            for word in words
            for term in word.terms
            if len(word_of_term(term)) >= _LEAST_PART
            and term.partition(MARK)[2] in COMPOUNDING & {*languages}
        }
        if not stems:
            return [*words]
        whole: dict[str, set[str]] = {word.text: set(word.terms) for word in words}
        parts: dict[str, set[str]] = {word.text: set(word.parts) for word in words}
        for (stem, language), word in stems.items():
            for compound in self._compounds_of(stem, language):
                rest, term = _beside(compound, stem), f"{compound}{MARK}{language}"
                if rest and term not in word.terms:
                    (whole if self._is_word(rest, language) else parts)[word.text].add(term)
        return [
            replace(word, terms=frozenset(whole[word.text]), parts=frozenset(parts[word.text]))
            for word in words
        ]

    def _compounds_of(self, stem: str, language: str) -> list[str]:
        """Terms of a language that begin or end with a stem, without their language."""
        generation = self._state()
        if self._of_compounds[0] != generation:
            self._of_compounds = generation, {}
        known = self._of_compounds[1]
        if language not in known:
            known[language] = "\n".join(["", *self.terms_in(language), ""])
        return _lines_with(known[language], stem)[:_MOST_COMPOUNDS]

    def terms_in(self, language: str) -> list[str]:
        """The terms of a language that the cues hold, rising, without their language."""
        ending = f"{MARK}{language}"
        rows = self._rows(f"SELECT term FROM {self._vocabulary()} WHERE term LIKE ?", (f"%{ending}",))
        return [term.removesuffix(ending) for (term,) in rows]

    def _state(self) -> object:
        """Another one after each change."""
        return self._rows("SELECT value FROM meta WHERE key = 'generation'")

    def _is_word(self, rest: str, language: str) -> bool:
        """Whether a part of a compound is a word of the library, with what joins it to the other or not."""
        forms = {rest.removesuffix(joint) for joint in _JOINTS} | {
            rest.removeprefix(joint) for joint in _JOINTS
        }
        terms = [term for form in forms if len(form) >= _LEAST_REST for term in terms_of_word(form, language)]
        return bool(self.cues_with(terms))

    def words_near(self, word: str) -> list[str]:
        """At most three words of the cues that are spelt like a word which none of them holds, stemmed or not
        (:func:`moviola.files.spelling.alike_in_spelling`), the nearest first, of these the most frequent.
        """
        stems = map(word_of_term, sorted(terms_of_word(word, "")))
        forms, limit = list(dict.fromkeys([fold(word), *stems])), most_edits(word)
        lengths = (min(map(len, forms)) - limit, max(map(len, forms)) + limit)
        terms: dict[str, list[str]] = {}
        for term, _ in sorted(self.terms_of_length(*lengths), key=lambda one: (-one[1], one[0])):
            terms.setdefault(word_of_term(term), []).append(term)
        near = dict.fromkeys(one for form in forms for one in alike_in_spelling(form, list(terms)))
        written = (self.as_written(term) for one in near for term in terms[one])
        return list(dict.fromkeys(filter(None, written)))[:_MOST_NEAR]

    def terms_of_length(self, least: int, most: int) -> list[tuple[str, int]]:
        """Terms with a number of letters, without their language, and how many cues hold each."""
        alike = (
            f"SELECT term, doc FROM {self._vocabulary()} "
            f"WHERE instr(term || '{MARK}', '{MARK}') - 1 BETWEEN ? AND ?"
        )
        return self._rows(alike, (least, most))

    def as_written(self, term: str) -> str:
        """A term of the index as one of its cues has it, in lower case; empty where that is gone."""
        index = self._word_index()
        first = f"SELECT text, language FROM {index} WHERE {index} MATCH ? LIMIT 1"
        for text, language in self._rows(first, (_expression([term]),)):
            for written in words_at(text):
                if term in terms_of_word(written.word, base_language(language)):
                    return written.word
        return ""

    # -- the index -----------------------------------------------------------------------------------------

    def _word_index(self) -> str:
        """The table of the cues' terms: ``cues``; of a library of an earlier format, which nobody may change,
        one of this connection, made of what the library holds now.
        """
        if self.has_terms:
            return "cues"
        made = self._made_index
        generation = self._state()
        if getattr(made, "state", None) != (id(self._db), generation):
            self._rows("DROP TABLE IF EXISTS temp.cue_index")
            self._rows(f"CREATE VIRTUAL TABLE temp.{CUES.replace('cues', 'cue_index', 1)}")
            self._put_all(f"temp.cue_index ({', '.join(COLUMNS)})", self._as_indexed())
            made.state = id(self._db), generation
        return "cue_index"

    def _vocabulary(self) -> str:
        index = self._word_index()
        schema = "main" if index == "cues" else "temp"
        self._rows(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms_of_{index} "
            f"USING fts5vocab ({schema}, {index}, row)"
        )
        return f"temp.terms_of_{index}"

    @property
    def has_terms(self) -> bool:
        """Whether cues have a language and terms, as since format 5."""
        # Once they have, they keep them.
        if not self._known_terms:
            self._known_terms = bool(
                self._rows("SELECT 1 FROM pragma_table_info('cues') WHERE name = 'terms'")
            )
        return self._known_terms

    def _as_indexed(self) -> list[tuple[Any, ...]]:
        """The cues of an earlier format as rows of :data:`COLUMNS`, in languages that their texts show."""
        noted = self._rows_of("readings", "SELECT video, kind, language FROM readings")
        said = {(video, kind): language for video, kind, language in noted}
        kinds = {
            (video, number): kind
            for video, number, kind in self._rows_of(
                "recognised", "SELECT video, number, kind FROM recognised"
            )
        }
        tracks: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        for row in self._rows("SELECT text, video, number, start, stop FROM cues ORDER BY video, number"):
            tracks.setdefault((row[1], kinds.get(row[1:3], "subtitle")), []).append(row)
        found = []
        for (video, kind), rows in tracks.items():
            languages = each_detected([row[0] for row in rows], said.get((video, kind), ""))
            found += [
                (*row, language, "", *indexed(row[0], language))
                for row, language in zip(rows, languages, strict=True)
            ]
        return sorted(found, key=lambda row: row[1:3])

    def make_terms(self) -> None:
        """Give the cues of an earlier format the languages that their texts show, and terms."""
        if self.has_terms:
            return
        rows = self._as_indexed()
        with self._changing():
            self._rows("DROP INDEX IF EXISTS cues_by_video")
            self._rows("ALTER TABLE cues RENAME TO earlier_cues")
            self._rows(f"CREATE VIRTUAL TABLE {CUES}")
            self._put_all(f"cues ({', '.join(COLUMNS)})", rows)
            self._rows("DROP TABLE earlier_cues")
            for script in (CUES_BY_VIDEO, ADDED["cue_tracks"], ADDED["recognised"]):
                self._rows(script)
            self._rows(_COUNT_TRACKS)

    def put_cues(self, row: int, cues: Sequence[Cue], said: Mapping[tuple[str, str], str]) -> None:
        """Store the cues of a video, which has none, with their terms; ``said`` are languages that people
        said, by kind and by the one that was found.
        """
        known = [replace(cue, language=said.get((cue.kind, cue.language), cue.language)) for cue in cues]
        rows = [
            (
                cue.text,
                row,
                number,
                cue.start,
                cue.end,
                cue.language,
                cue.form,
                *indexed(cue.text, cue.language),
            )
            for number, cue in enumerate(known)
        ]
        self._put_all(f"cues ({', '.join(COLUMNS)})", rows)
        tracks = Counter((cue.kind, cue.language, cue.form) for cue in known)
        counts = [(row, *track, count) for track, count in tracks.items()]
        self._put_all("cue_tracks (video, kind, language, form, cues)", counts)

    def tracks(self, videos: Collection[int] | None = None) -> dict[int, list[CueTrack]]:
        """The tracks of cues of some videos, by row number, None for all; empty in a library of an earlier
        format.
        """
        within, values = (
            ("", []) if videos is None else (f" WHERE video IN ({MEMBERS})", [json.dumps([*videos])])
        )
        found: dict[int, list[CueTrack]] = {}
        order = "ORDER BY video, kind, language, form"
        listed = f"SELECT video, kind, language, form, cues FROM cue_tracks{within} {order}"
        for video, *track in self._rows_of("cue_tracks", listed, values):
            found.setdefault(video, []).append(CueTrack(*track))
        return found

    def say_language(self, row: int, kind: CueKind, before: str, language: str) -> int:
        """Set another language for the cues of a video, a kind and a language, which later readings keep;
        returns the number of cues.
        """
        cues = self._rows(
            f"SELECT rowid, number, text FROM cues AS c WHERE {CUES_OF} AND language = ? AND {_KIND} = ?",
            (row, before, kind),
        )
        for rowid, _, text in cues:
            values = (language, *indexed(text, language), rowid)
            self._rows("UPDATE cues SET language = ?, terms = ?, letters = ? WHERE rowid = ?", values)
        moved = "UPDATE said_languages SET language = ? WHERE video = ? AND kind = ? AND language = ?"
        self._rows(moved, (language, row, kind, before))
        self._put_all("said_languages (video, kind, found, language)", [(row, kind, before, language)])
        self._rows("DELETE FROM cue_tracks WHERE video = ?", (row,))
        self._rows(*tracks_counted(row))
        return len(cues)


def _lines_with(lines: str, stem: str) -> list[str]:
    """Those of lines, each after a line feed and before one, that begin or end with a stem."""
    found: dict[str, None] = {}
    for wanted in (f"\n{stem}", f"{stem}\n"):
        at = lines.find(wanted)
        while at >= 0:
            begin, end = lines.rfind("\n", 0, at + 1) + 1, lines.find("\n", at + 1)
            found[lines[begin:end]] = None
            at = lines.find(wanted, at + 1)
    return list(found)


def _beside(compound: str, stem: str) -> str:
    """The part before or after a word in a compound; empty for what is no compound of it."""
    rest = compound.removesuffix(stem) if compound.endswith(stem) else compound.removeprefix(stem)
    return rest if _LEAST_REST < len(rest) < len(compound) else ""


def _expression(terms: Iterable[str], letters: Iterable[str] = ()) -> str:
    """A full-text query for any of the terms, or of the letters."""
    quoted = [f'"{term}"' for term in sorted(terms)]
    among = " OR ".join(f'"{letter}"' for letter in sorted(letters))
    return " OR ".join([*quoted, *([f"letters : ({among})"] if among else [])])


def _phrases(terms: Iterable[str], letters: Iterable[str]) -> list[str]:
    """The phrases of that query, each as a query of its own."""
    return [_expression([term]) for term in sorted(terms)] + [
        _expression([], [one]) for one in sorted(letters)
    ]
