"""A query's way through a library: candidates by pictures and by what is said, filtered, ranked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError
from moviola.features import QueryFeatures
from moviola.library import LibraryStore, View, Viewer, read_unrelated
from moviola.retrieval import NEAREST, SEGMENTS, Hits, MeanPooling, Refiner, Retrieval, Unrelated, level_of
from moviola.search.cues import CueSearch
from moviola.search.curve import score_curve
from moviola.search.filters import Filter
from moviola.search.finder import Finder
from moviola.search.found import Found, SearchResult
from moviola.search.fusion import ranked
from moviola.search.names import NameSearch
from moviola.search.queries import SearchQuery, Text, as_query, texts_of
from moviola.threads import one_blas_thread
from moviola.timing import recorded, stage
from moviola.types import CUE_KINDS, CueKind, Query

__all__ = ["Evidence", "Searcher"]

Evidence = Literal["both", "visual", "subtitles", "speech", "said", "text"]

KINDS: dict[Evidence, tuple[CueKind, ...]] = {
    "both": CUE_KINDS,
    "visual": (),
    "subtitles": ("subtitle",),
    "speech": ("speech",),
    "said": ("subtitle", "speech"),
    "text": ("text",),
}
"""Which cues each evidence looks at."""

# What to do about a library that has no cue of the kinds asked for.
_LACKING: dict[Evidence, str] = {
    "subtitles": "holds no subtitles; search it by pictures",
    "speech": "holds no recognised speech; `moviola index --speech NAME` reads it, or search by pictures",
    "said": "holds no subtitles and no recognised speech; `moviola index --speech NAME` reads it",
    "text": "holds no text read in pictures; `moviola index --ocr` reads it, or search by pictures",
}

EVERYTHING = Filter()
"""Refuses nothing."""

# Most segments that are retrieved where a filter refuses many moments.
_DEEPEST = 64 * SEGMENTS
# What is said or a name answers a query confidently from here on: most of its words, or clearly its meaning.
_SAID_CONFIDENTLY = 0.8


@dataclass(frozen=True, slots=True)
class _Judged:
    """Whether a query has an answer, see :class:`moviola.search.found.SearchResult`."""

    confident: bool | None
    lead: float | None = None


class Searcher:
    """Answers queries on a library; safe for threads.

    Args:
        store: the library.

    Attributes:
        refiner: stage 3 instead of the library's own one; None for that.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self.refiner: Refiner | None = None
        self._viewer, self._cues = Viewer(store), CueSearch(store)
        self._lock = RLock()
        self._retrievals: dict[bool, tuple[View, Refiner | None, Retrieval, Retrieval]] = {}
        self._unrelated: tuple[View, Unrelated | None] | None = None
        self._names: tuple[View, NameSearch] | None = None

    @one_blas_thread()
    def search_many(
        self,
        queries: Sequence[Query | SearchQuery],
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        filter: Filter = EVERYTHING,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[SearchResult]:
        """The answer to each query; see :meth:`moviola.search.Library.search`."""
        if top_k < 1 or (per_video is not None and per_video < 1):
            raise InvalidValue(f"top_k={top_k}, per_video={per_video}: ask for at least one moment")
        asked = [_checked(query) for query in queries]
        answers = []
        with recorded() as timings:
            with stage("opening"):
                view = self._viewer.view()
                rows = filter.rows(view.videos)
                if videos is not None:
                    named = {self._store.catalogue.video(video).row for video in videos}
                    rows = named if rows is None else rows & named
                finder = self._finder(view, by, refine, filter)
            plain = self._texts(finder, [query.text for query in asked if isinstance(query, Text)], rows)
            for query in asked:
                found, judged = (
                    next(plain) if isinstance(query, Text) else self._composed(finder, query, rows)
                )
                found = self._deepened(finder, query, rows, found, top_k)
                with stage("fusion"):
                    names = {row: view.videos[row].video_id for row in {one.row for one in found}}
                    moments = ranked(found, names, top_k=top_k, per_video=per_video, min_score=min_score)
                answers.append(SearchResult(moments, confident=judged.confident, lead=judged.lead))
                if progress:
                    progress(len(answers))
        for answer in answers:
            answer.timings = timings
        return answers

    def curve(
        self, query: SearchQuery | str, video_id: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and scores of the clips of a video; see :meth:`moviola.search.Library.curve`."""
        view = self._viewer.view()
        video = self._store.catalogue.video(video_id)
        if video.row not in view.videos:
            raise LibraryError(f"{video_id}: cannot be searched ({video.error or 'just changed'})")
        return score_curve(self._finder(view, "both", True, EVERYTHING), as_query(query), video)

    # -- candidates ----------------------------------------------------------------------------------------

    def _finder(self, view: View, by: Evidence, refine: bool, filter: Filter) -> Finder:
        visual, kinds = self._evidence(by)
        texts, vectors = self._stages(view, refine) if visual else (None, None)
        names = self._names_in(view) if by == "both" else None
        return Finder(self._store, view, texts, vectors, self._cues, kinds, names, filter)

    def _evidence(self, by: Evidence) -> tuple[bool, tuple[CueKind, ...]]:
        """Whether to use pictures, and which cues."""
        if by not in KINDS:
            raise InvalidValue(f"by={by!r}: choose {', '.join(KINDS)}")
        store, has_visual = self._store, bool(self._store.settings.encoder)
        counts = store.catalogue.cue_counts()
        kinds = tuple(kind for kind in KINDS[by] if counts[kind])
        if by == "visual" and not has_visual:
            raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
        if by in _LACKING and not kinds:
            raise LibraryError(f"{store.folder}: {_LACKING[by]}")
        return has_visual and by not in _LACKING, kinds

    def _texts(
        self, finder: Finder, texts: Sequence[str], rows: set[int] | None
    ) -> Iterator[tuple[list[Found], _Judged]]:
        """Candidates for each text, and whether they are an answer; encoded and searched all at once."""
        retrieval = finder.texts
        seen: list[list[Found]] = [[] for _ in texts]
        features: Sequence[QueryFeatures | None] = [None] * len(texts)
        leads: Sequence[float | None] = [None] * len(texts)
        if texts and retrieval is not None and len(retrieval.index):
            queries = finder.text_features([""] * len(texts), texts)
            hits = retrieval.hits(queries, within=finder.scope(rows))
            moments = retrieval.moments(queries, retrieval.merged(hits))
            seen = [finder.found(moments, query) for query in range(len(texts))]
            features = [queries.select([query]) for query in range(len(texts))]
            leads = self._leads(finder, hits)
        for text, shown, own, lead in zip(texts, seen, features, leads, strict=True):
            query = Text(text)
            said, shares = finder.said(query, rows), finder.name_shares(query, rows)
            found = finder.joined(shown, said, query, own, shares)
            yield found, self._judged(finder, lead, said, shares)

    def _composed(
        self, finder: Finder, query: SearchQuery, rows: set[int] | None
    ) -> tuple[list[Found], _Judged]:
        """The same of a query that is no text: it has an answer if each of its texts has one."""
        found = finder.find(query, rows, SEGMENTS)
        each = [self._of_text(finder, text, rows).confident for text in texts_of(query)]
        return found, _Judged(False if False in each else None if None in each else True)

    def _of_text(self, finder: Finder, text: Text, rows: set[int] | None) -> _Judged:
        lead = None
        if (retrieval := finder.texts) is not None:
            hits = retrieval.hits(finder.features(text), within=finder.scope(rows), segments=NEAREST)
            (lead,) = self._leads(finder, hits)
        return self._judged(finder, lead, finder.said(text, rows), finder.name_shares(text, rows))

    def _leads(self, finder: Finder, hits: Hits) -> Sequence[float | None]:
        unrelated, retrieval = self._unrelated_in(finder.view), finder.texts
        if unrelated is None or retrieval is None:
            return [None] * len(hits.score)
        with stage("confidence"):
            leads: list[float | None] = unrelated.leads_of(retrieval, hits).tolist()
        return leads

    def _judged(
        self, finder: Finder, lead: float | None, said: Sequence[Found], shares: Mapping[int, float]
    ) -> _Judged:
        """Whether a text has an answer, by what is shown, said, and in the names of videos."""
        evidence = (*(found.score for found in said), *shares.values())
        if max(evidence, default=0.0) >= _SAID_CONFIDENTLY:
            return _Judged(True, lead)
        if finder.texts is None:
            return _Judged(False)
        unrelated = self._unrelated_in(finder.view)
        if unrelated is None or lead is None:
            return _Judged(None)
        level = level_of(self._store.settings.encoder)
        with stage("confidence"):
            return _Judged(bool(unrelated.confident([lead], level)[0]), lead)

    def _deepened(
        self, finder: Finder, query: SearchQuery, rows: set[int] | None, found: list[Found], top_k: int
    ) -> list[Found]:
        """Candidates that pass the filter; more segments are retrieved where too few are left."""
        kept, segments, retrieval = finder.passing(found), SEGMENTS, finder.texts
        most = min(_DEEPEST, len(retrieval.index)) if retrieval is not None else 0
        while finder.filter.of_moments and len(kept) < top_k and segments < most:
            segments *= 4
            kept = finder.passing(finder.find(query, rows, segments))
        return kept

    # -- what is kept of a state of the library --------------------------------------------------------------

    def _stages(self, view: View, refine: bool) -> tuple[Retrieval, Retrieval]:
        """The stages for texts, and for what has no tokens; what they learn of the background is kept."""
        store = self._store
        with self._lock:
            refiner = (self.refiner or store.models.refiner) if refine else None
            known = self._retrievals.get(refine)
            if known is not None and known[0] is view and known[1] is refiner:
                return known[2:]
            if view.segments is None:
                raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
            length = store.settings.frames_per_segment
            texts = Retrieval(view.features, view.segments, store.models.stage1, refiner, length)
            vectors = texts
            if refiner is not None and not refiner.in_encoder_space:
                vectors = replace(texts, refiner=store.models.untrained_refiner)
            if view.pictures is not None:
                vectors = replace(
                    vectors, features=view.picture_features, index=view.pictures, stage1=MeanPooling()
                )
            self._retrievals[refine] = view, refiner, texts, vectors
            return texts, vectors

    def _names_in(self, view: View) -> NameSearch:
        with self._lock:
            if self._names is None or self._names[0] is not view:
                self._names = view, NameSearch.of(self._store, view)
            return self._names[1]

    def _unrelated_in(self, view: View) -> Unrelated | None:
        with self._lock, stage("opening"):
            if self._unrelated is None or self._unrelated[0] is not view:
                self._unrelated = view, read_unrelated(self._store)
            return self._unrelated[1]


def _checked(query: Query | SearchQuery) -> SearchQuery:
    if not isinstance(query, Query):
        return as_query(query)
    if not query.text.strip():
        raise InvalidValue(f"query {query.query_id!r}: the text is empty; say what to look for")
    return Text(query.text)
