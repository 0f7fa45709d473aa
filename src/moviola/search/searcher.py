"""A query's way through a library: by pictures, by what is said, fused and ranked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import RLock
from typing import Literal

import numpy as np

from moviola.errors import InvalidValue, LibraryError
from moviola.features import QueryFeatures
from moviola.library import LibraryStore, View
from moviola.retrieval import Moments, Refiner, Retrieval, Scope
from moviola.search.cues import CueSearch
from moviola.search.found import Found
from moviola.search.fusion import fused, ranked
from moviola.types import Moment, Query, Span

__all__ = ["Evidence", "Searcher"]

Evidence = Literal["both", "visual", "subtitles"]


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
        self._cues = CueSearch(store)
        self._lock = RLock()
        self._retrievals: dict[bool, tuple[View, Refiner | None, Retrieval]] = {}

    def search_many(
        self,
        queries: Sequence[Query],
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Moment]]:
        """Moments that answer each query, best first; see :meth:`moviola.search.Library.search`."""
        if top_k < 1 or (per_video is not None and per_video < 1):
            raise InvalidValue(f"top_k={top_k}, per_video={per_video}: ask for at least one moment")
        for query in queries:
            if not query.text.strip():
                raise InvalidValue(f"query {query.query_id!r}: the text is empty; say what to look for")
        view = self._store.view()
        rows = None if videos is None else {self._store.catalogue.video(video).row for video in videos}
        visual, said = self._evidence(by)
        seen = self._by_pictures(view, queries, rows, refine) if visual else [[] for _ in queries]
        names = {row: video.video_id for row, video in view.videos.items()}
        answers = []
        for number, (query, moments) in enumerate(zip(queries, seen, strict=True), start=1):
            heard = self._cues.moments(view, query.text, rows) if said else []
            found = fused(moments, heard)
            answers.append(ranked(found, names, top_k=top_k, per_video=per_video, min_score=min_score))
            if progress:
                progress(number)
        return answers

    def _evidence(self, by: Evidence) -> tuple[bool, bool]:
        """Whether to use pictures and subtitles."""
        store = self._store
        has_visual, has_said = bool(store.settings.encoder), store.catalogue.cue_count() > 0
        if by == "visual" and not has_visual:
            raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
        if by == "subtitles" and not has_said:
            raise LibraryError(f"{store.folder}: holds no subtitles; search it by pictures")
        return has_visual and by != "subtitles", has_said and by != "visual"

    def _by_pictures(
        self, view: View, queries: Sequence[Query], rows: set[int] | None, refine: bool
    ) -> list[list[Found]]:
        retrieval = self.retrieval(view, refine=refine)
        if not queries or not len(retrieval.index):
            return [[] for _ in queries]
        within = None if rows is None else Scope.whole(np.flatnonzero(np.isin(view.features.keys, list(rows))))
        found = retrieval.moments(self._encoded(queries, retrieval.refiner), within=within)
        return [_found(view, found, query) for query in range(len(queries))]

    def _encoded(self, queries: Sequence[Query], refiner: Refiner | None) -> QueryFeatures:
        encoder = self._store.encoders.visual
        assert encoder is not None
        texts = [query.text for query in queries]
        tokens = refiner is not None and refiner.needs_tokens
        rows = encoder.encode_tokens(texts) if tokens else encoder.encode_text(texts)
        return QueryFeatures.of([query.query_id for query in queries], texts, list(rows))

    def retrieval(self, view: View, *, refine: bool = True) -> Retrieval:
        """The stages over a state of the library; what they learn of its background is kept."""
        store = self._store
        with self._lock:
            refiner = (self.refiner or store.models.refiner) if refine else None
            known = self._retrievals.get(refine)
            if known is not None and known[0] is view and known[1] is refiner:
                return known[2]
            if view.segments is None:
                raise LibraryError(f"{store.folder}: built without a visual encoder; search it by subtitles")
            made = Retrieval(
                view.features, view.segments, store.models.stage1, refiner, store.settings.frames_per_segment
            )
            self._retrievals[refine] = view, refiner, made
            return made


def _found(view: View, moments: Moments, query: int) -> list[Found]:
    rows = moments.rows(query)
    columns = (moments.video, moments.start, moments.end, moments.score, moments.match)
    keys = view.features.keys.tolist()
    return [
        Found(keys[video], Span(start, end), score, "visual", match=match)
        for video, start, end, score, match in zip(*(c[rows].tolist() for c in columns), strict=True)
    ]
