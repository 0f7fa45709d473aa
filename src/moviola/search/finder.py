"""From queries to candidates: every kind of query is answered with moments that have scores in [0, 1].

- A *text* goes through all stages of :class:`moviola.retrieval.Retrieval`, and is looked for in what is said
  and written, by words and by meaning (in what is written by words alone where pictures are looked at too),
  and in what the videos are called (:mod:`moviola.search.names`).
- A *moment* or *picture* is a clip: among the segments of the index it stands where stage 1 puts a segment
  that shows nothing else. It has no tokens, so a trained refiner cannot read it: the refiner without training
  takes its place, and scores are set against chance.
  Pictures are compared by features of their own where the library has them (``picture_dim``), without a
  trained stage 1; its rows then hold both kinds of features side by side, with zeros for what a term does not
  speak of, so that cosines of a text are with the first kind and those of a picture with the second.
- A *sum* has the vector sum_i w_i u_i / s_i, with u_i the unit vector of a term and s_i the standard
  deviation of its cosines with the library, so that terms of equal weight sway the order alike: cosines of
  pictures with pictures spread wider than those of texts. It is refined as a picture is. What is said counts
  for each text by its share of the weight.
- A *sequence* is a chain of one moment per step, see :mod:`moviola.search.sequences`. Steps are looked for
  in the videos of all steps' nearest segments.
- What is *excluded* divides the odds of a moment, p / (1 - p), by exp(z - m) where z > m: z is how many
  standard deviations above chance the best segment of the moment stands for it, and m the median of that over
  all candidates, at least 0 and at most 1, since what is asked often goes with what is excluded. What is said
  then, with score q, multiplies the odds by (1 - q)^2. Nothing rises by an exclusion.
  `benchmarks/exclusions.py` compares that with the answer as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError, MoviolaError
from moviola.features import QueryFeatures
from moviola.library import LibraryStore, View
from moviola.retrieval import SEGMENTS, Moments, Retrieval, Scope
from moviola.retrieval.segments import normalised
from moviola.search.cues import CueSearch
from moviola.search.filters import Filter
from moviola.search.found import Found
from moviola.search.fusion import fused
from moviola.search.names import KNOWN_BY_NAME, NameSearch, with_names
from moviola.search.queries import (
    LikeMoment,
    LikePicture,
    SearchQuery,
    Simple,
    Steps,
    Term,
    Text,
    WeightedSum,
    Without,
)
from moviola.search.sequences import chains
from moviola.timing import stage
from moviola.types import CueKind, Span

__all__ = ["Finder"]

# The odds of a score are taken of at most this.
_MOST = 1 - 1e-12


@dataclass(frozen=True)
class Finder:
    """Looks for candidates in one state of a library.

    Attributes:
        store: the library.
        view: its state.
        texts: the stages for texts; None: pictures are not looked at.
        vectors: the stages for what has no tokens; None likewise.
        cues: what is said and written.
        kinds: which cues to look at; none of them where only pictures count.
        names: what videos are called; None: that does not count.
        filter: where to look.
    """

    store: LibraryStore
    view: View
    texts: Retrieval | None
    vectors: Retrieval | None
    cues: CueSearch
    kinds: Collection[CueKind]
    names: NameSearch | None
    filter: Filter

    # -- where ---------------------------------------------------------------------------------------------

    def scope(self, rows: set[int] | None) -> Scope | None:
        """The stretches of videos to look at; None for everything."""
        if rows is None and self.filter.where == (None, None):
            return None
        features = self.view.features
        chosen = features.keys if rows is None else np.intersect1d(features.keys, list(rows))
        places = np.searchsorted(features.keys, chosen)
        stretches = [self.filter.stretch(length) for length in features.durations[places].tolist()]
        start, end = np.array(stretches, dtype=np.float64).reshape(-1, 2).T
        return Scope(places, start, end)

    def passing(self, found: Iterable[Found]) -> list[Found]:
        """Candidates as long as the filter wants them."""
        return [one for one in found if self.filter.fits(one.span)]

    def there(self, found: Iterable[Found]) -> list[Found]:
        """Candidates that lie where the filter wants them in their videos."""
        if self.filter.where == (None, None):
            return list(found)
        videos = self.view.videos
        return [one for one in found if self.filter.is_there(one.span, videos[one.row].duration)]

    # -- candidates ----------------------------------------------------------------------------------------

    def find(self, query: SearchQuery, rows: set[int] | None, segments: int) -> list[Found]:
        """Candidates for a query, in no order.

        Args:
            query: what to look for.
            rows: row numbers of the videos to look into; None for all.
            segments: how many segments to retrieve for each thing to look for.
        """
        if isinstance(query, Without):
            found = self.find(query.query, rows, segments)
            return reduce(self._discounted, query.excluded, found)
        if isinstance(query, Steps):
            shared = self._videos_of(query.steps, rows, segments)
            found_by_step = [self.find(step, shared, segments) for step in query.steps]
            return chains(found_by_step, query.gaps)
        assert isinstance(query, Text | LikeMoment | LikePicture | WeightedSum)
        seen: list[Found] = []
        features: QueryFeatures | None = None
        if (retrieval := self.stages(query)) is not None and len(retrieval.index):
            features = self.features(query)
            seen = self._by_pictures(retrieval, features, rows, segments)
        return self.joined(seen, self.said(query, rows), query, features, self.name_shares(query, rows))

    def joined(
        self,
        seen: list[Found],
        said: list[Found],
        query: Simple,
        features: QueryFeatures | None,
        shares: Mapping[int, float],
    ) -> list[Found]:
        """Candidates of all evidence, where the filter wants them.

        Args:
            seen, said: found by pictures and by cues.
            query: what is looked for.
            features: as of :meth:`features`; None where no pictures are looked at.
            shares: as of :meth:`name_shares`.
        """
        with stage("fusion"):
            return self.there(self.named(fused(seen, said), query, features, shares))

    def _by_pictures(
        self, retrieval: Retrieval, features: QueryFeatures, rows: set[int] | None, segments: int
    ) -> list[Found]:
        moments = retrieval.moments(features, within=self.scope(rows), segments=segments)
        return self.found(moments, 0)

    def found(self, moments: Moments, query: int) -> list[Found]:
        """The moments of one query by place."""
        rows = moments.rows(query)
        columns = (moments.video, moments.start, moments.end, moments.score, moments.match)
        keys = self.view.features.keys.tolist()
        return [
            Found(keys[video], Span(start, end), score, "visual", match=match)
            for video, start, end, score, match in zip(*(c[rows].tolist() for c in columns), strict=True)
        ]

    def said(self, query: Simple, rows: set[int] | None) -> list[Found]:
        """Moments in which something of a query is said, by its share of the weight."""
        if not self.kinds:
            return []
        with stage("cues"):
            return self._cues_of(query, rows)

    def _cues_of(self, query: Simple, rows: set[int] | None) -> list[Found]:
        terms = query.terms if isinstance(query, WeightedSum) else ((query, 1.0),)
        total = sum(weight for _, weight in terms)
        # A title card that means about what was asked must not stand above the pictures that show it.
        meant = self.kinds if self.texts is None else [kind for kind in self.kinds if kind != "text"]
        return [
            replace(found, score=found.score * weight / total)
            for term, weight in terms
            if isinstance(term, Text)
            for found in self.there(self.cues.moments(self.view, term.text, rows, self.kinds, meant))
        ]

    def named(
        self,
        found: list[Found],
        query: Simple,
        features: QueryFeatures | None,
        shares: Mapping[int, float],
    ) -> list[Found]:
        """Candidates with what names add, and moments of the videos that are known by their names.

        Args:
            found: candidates so far.
            query, features, shares: as of :meth:`joined`.
        """
        known = {row for row, share in shares.items() if share >= KNOWN_BY_NAME}
        missing = known - {one.row for one in found}
        if missing and features is not None and (retrieval := self.stages(query)) is not None:
            found = [*found, *self._by_pictures(retrieval, features, missing, SEGMENTS)]
        return with_names(found, shares)

    def name_shares(self, query: Simple, rows: set[int] | None) -> dict[int, float]:
        """How well names fit the texts of a query, by shares of the weight, in (0, 1], by row number.

        Args:
            query: what is looked for.
            rows: row numbers of the videos to look into, whose names alone count; None for all.
        """
        if self.names is None:
            return {}
        with stage("names"):
            return self._shares(self.names, query, rows)

    def _shares(self, names: NameSearch, query: Simple, rows: set[int] | None) -> dict[int, float]:
        shares: dict[int, float] = defaultdict(float)
        terms = query.terms if isinstance(query, WeightedSum) else ((query, 1.0),)
        total = sum(weight for _, weight in terms)
        for text, weight in ((term.text, weight) for term, weight in terms if isinstance(term, Text)):
            for row, share in names.shares(text).items():
                if rows is None or row in rows:
                    shares[row] += share * weight / total
        return shares

    # -- one thing to look for -----------------------------------------------------------------------------

    def stages(self, query: Simple) -> Retrieval | None:
        """The stages that look for one thing in pictures; None where pictures are not looked at.

        Raises:
            LibraryError: that, and it is no text.
        """
        if self.texts is None and not _texts_only(query):
            raise LibraryError(
                f"{self.store.folder}: {str(query)!r} is looked for in pictures; search by them, in a "
                "library that was built with a visual encoder"
            )
        return self.texts if isinstance(query, Text) else self.vectors

    def features(self, query: Simple) -> QueryFeatures:
        """One thing to look for, as the stages read it."""
        with stage("text"):
            return self._features(query)

    def _features(self, query: Simple) -> QueryFeatures:
        if isinstance(query, Text):
            return self.text_features([""], [query.text])
        retrieval = self.vectors
        assert retrieval is not None
        own: Any = 0.0
        among: Any = 0.0
        for term, weight in query.terms if isinstance(query, WeightedSum) else ((query, 1.0),):
            vector, segment = self._vectors_of(term)
            own = own + vector * np.float32(weight / retrieval.encoder_chance(vector).deviation)
            among = among + segment * np.float32(weight / retrieval.segment_chance(segment).deviation)
        return QueryFeatures.of([""], [str(query)], list(normalised(np.atleast_2d(own)))).among_segments(
            normalised(np.atleast_2d(among))
        )

    def text_features(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryFeatures:
        """Texts, with tokens where the refiner reads them."""
        encoder, retrieval = self.store.encoders.visual, self.texts
        assert encoder is not None and retrieval is not None
        tokens = retrieval.refiner is not None and retrieval.refiner.needs_tokens
        with stage("text"):
            rows = encoder.encode_tokens(texts) if tokens else encoder.encode_text(texts)
            return QueryFeatures.of(query_ids, texts, list(rows))

    def _vectors_of(self, term: Term) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Unit vectors (d,) of a term in the space of the encoder, and among the segments of the index."""
        retrieval = self.vectors
        assert retrieval is not None
        if isinstance(term, Text):
            vectors = self.text_features([""], [term.text]).vectors
            padded = np.pad(vectors, ((0, 0), (0, self.view.settings.picture_dim)))
            queries = QueryFeatures.of([""], [term.text], list(padded))
            return normalised(queries.vectors)[0], retrieval.vectors(queries)[0]
        clip = normalised(self._clip(term))
        return clip[0], retrieval.stage1.segments(clip, retrieval.segment_clips)[0]

    def _clip(self, term: LikeMoment | LikePicture) -> NDArray[np.float32]:
        """(1, d) float32, the features by which one frame is compared with others."""
        clip = self._row(term)
        if self.view.settings.picture_dim:
            clip[:, : self.view.settings.encoder_dim] = 0
        return clip

    def _row(self, term: LikeMoment | LikePicture) -> NDArray[np.float32]:
        """(1, frame_dim) float32, all features of one frame."""
        if isinstance(term, LikePicture):
            return self.store.encoders.picture(term.path)
        features = self.view.picture_features
        video = self.store.catalogue.video(term.video_id)
        place = features.place_of(video.row)
        if place is None or term.time >= video.duration:
            raise _no_frame(term, video.duration, place is not None)
        clip = min(int(term.time / features.clip_seconds), int(features.counts[place]) - 1)
        return features.read(place, clip, clip + 1)

    # -- sequences -----------------------------------------------------------------------------------------

    def _videos_of(
        self, steps: Sequence[Simple | Without], rows: set[int] | None, segments: int
    ) -> set[int] | None:
        """Row numbers of the videos in which to look for all steps."""
        if rows is not None and len(rows) <= segments:
            return rows
        found: set[int] = set()
        for step in steps:
            query = step.query if isinstance(step, Without) else step
            assert not isinstance(query, Steps)
            if (retrieval := self.stages(query)) is not None and len(retrieval.index):
                hits = retrieval.hits(self.features(query), within=self.scope(rows), segments=segments)
                found.update(self.view.features.keys[hits.video[0]].tolist())
            found.update(one.row for one in self.said(query, rows))
        return found

    # -- exclusions ----------------------------------------------------------------------------------------

    def _discounted(self, found: Sequence[Found], excluded: Simple) -> list[Found]:
        """Candidates with scores that something to be excluded has lowered."""
        if not found:
            return []
        factors = np.ones(len(found))
        if (retrieval := self.stages(excluded)) is not None and len(retrieval.index):
            factors = self._seen_factors(retrieval, excluded, found)
        said = self.said(excluded, {one.row for one in found})
        for place, one in enumerate(found):
            heard = (s.score for s in said if s.row == one.row and s.span.intersection(one.span) > 0)
            factors[place] *= (1 - max(heard, default=0.0)) ** 2
        return [_with_odds_times(one, float(factor)) for one, factor in zip(found, factors, strict=True)]

    def _seen_factors(
        self, retrieval: Retrieval, excluded: Simple, found: Sequence[Found]
    ) -> NDArray[np.float64]:
        keys = self.view.features.keys
        rows = np.array([one.row for one in found])
        places = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        shown = np.flatnonzero(keys[places] == rows)  # a video may have subtitles alone
        spans = np.array([(found[place].span.start, found[place].span.end) for place in shown.tolist()])
        start, end = spans.reshape(-1, 2).T
        vector = retrieval.vectors(self.features(excluded))[0]
        factors = np.ones(len(found))
        if len(shown):
            standing = retrieval.standing(vector, places[shown], start, end)
            usual = np.clip(np.median(standing), 0, 1)
            factors[shown] = np.exp(-np.maximum(standing - usual, 0))
        return factors


def _texts_only(query: Simple) -> bool:
    terms = query.terms if isinstance(query, WeightedSum) else ((query, 1.0),)
    return all(isinstance(term, Text) for term, _ in terms)


def _no_frame(term: LikeMoment, duration: float, has_frames: bool) -> MoviolaError:
    if not has_frames:
        return LibraryError(f"{term.video_id}: there are no frames of it in this library; index it again")
    return InvalidValue(f"{term}: the video ends at {duration:g} s; give a time before that")


def _with_odds_times(found: Found, factor: float) -> Found:
    score = min(found.score, _MOST)
    return replace(found, score=score * factor / (1 - score + score * factor))
