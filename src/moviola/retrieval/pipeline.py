"""The stages of retrieval composed, for libraries, answers on features, and validation.

queries ─ stage 1 ─▶ index hits ─▶ proposals ─ refiner ─▶ moments ─ suppression ─ order ─ calibration
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.index import BACKENDS, Index
from moviola.retrieval.background import Background
from moviola.retrieval.calibration import Calibration, Chance, Scale
from moviola.retrieval.cosines import Cosines
from moviola.retrieval.proposals import APART, MERGES, ByQuery, Hits, Proposals, cut_at_shots, propose
from moviola.retrieval.refiners.contract import Refined, Refiner
from moviola.retrieval.refiners.curve import clip_rows
from moviola.retrieval.segments import normalised, segment_counts, segment_ids, segment_spans, unpack_ids
from moviola.retrieval.stage1 import MeanPooling, Stage1
from moviola.temporal import fold
from moviola.timing import stage

__all__ = ["SEGMENTS", "Moments", "Retrieval", "Scope"]

SEGMENTS = 200
"""Segments retrieved per query: more add noise, fewer miss moments (SPR, appendix B.1, Table 6)."""

# Moments of a query, the best ones, of which it counts how certain it is what they show, and where in them.
_CERTAIN = 32
_LOOKED_AT = np.array([1 / 6, 1 / 2, 5 / 6])
# Windows, and the videos they are of, that a trained refiner without a calibration scores for every query to
# learn what chance gives.
_BACKGROUND_VIDEOS, _BACKGROUND_WINDOWS = 64, 64


@dataclass(frozen=True)
class Moments(ByQuery):
    """Answers to Q queries as columns, by query, best first.

    Attributes:
        video: (N,) int64, places of videos.
        start, end: (N,) float64 seconds.
        match: (N,) float64, the matching score of its evidence, comparable within one query.
        score: (N,) float64 in [0, 1], see :mod:`moviola.retrieval.calibration`; rises with ``match``.
        answerable: (Q,) float64, log odds that each query has an answer, NaN where it has no moment; None
            of a refiner that does not say.
    """

    video: Integers
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    match: NDArray[np.float64]
    score: NDArray[np.float64]
    answerable: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Scope:
    """Parts of videos to search; what is computed for one is kept as long as it.

    Attributes:
        videos: (n,) int64, places of videos, once for each of its stretches.
        start, end: (n,) float64 seconds, the stretch of each; segments that reach into it are searched.
    """

    videos: Integers
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    @classmethod
    def whole(cls, videos: Integers) -> Scope:
        """Some videos, from their start to their end."""
        return cls(videos, np.zeros(len(videos)), np.full(len(videos), np.inf))


@dataclass(frozen=True)
class Retrieval:
    """The three stages over some videos.

    Attributes:
        index: the segments by id (:func:`moviola.retrieval.segments.pack_ids` of the videos' numbers), made
            by ``stage1``.
        stage1: embeds queries.
        refiner: makes moments of proposals; None leaves them coarse.
        segment_clips: T, clips of a segment.
        segments: number of segments retrieved per query.
        background: calibration of the encoder's cosines; None if unknown: they are then set against chance.
        merge: which hits merge with each other, a name in :data:`moviola.retrieval.proposals.MERGES`.
    """

    features: VideoFeatures
    index: Index
    stage1: Stage1
    refiner: Refiner | None
    segment_clips: int
    segments: int = SEGMENTS
    background: Background | None = None
    merge: str = APART

    @cached_property
    def cosines(self) -> Cosines:
        """Cosines with the segments, and what they mean."""
        return Cosines(self.features, self.index, self.stage1, self.segment_clips, self.background)

    @property
    def in_encoder_space(self) -> bool:
        """Whether all stages compare queries and videos in the space of the encoder."""
        return not self.stage1.trained and (self.refiner is None or self.refiner.in_encoder_space)

    @classmethod
    def of_proposals(cls, features: VideoFeatures, refiner: Refiner, segment_clips: int = 4) -> Retrieval:
        """The third stage alone, for given proposals; their moments cannot be ``scored``."""
        nothing = BACKENDS["flat"](features.visual.dim)
        return cls(features, nothing, MeanPooling(), refiner, segment_clips)

    # -- stages 1 and 2 ------------------------------------------------------------------------------------

    def hits(
        self, queries: QueryFeatures, *, within: Scope | None = None, segments: int | None = None
    ) -> Hits:
        """The best segments of each query (SPR, section 3.1.3).

        Args:
            within: parts of videos to search; None: everything.
            segments: replaces :attr:`segments`.
        """
        with stage("text"):
            vectors = self.vectors(queries)
        with stage("retrieval"):
            allowed = None if within is None else self._allowed(within)
            scores, ids = self.index.search(vectors, segments or self.segments, allowed=allowed)
            keys, position = unpack_ids(ids)
            searched = len(self.index) if allowed is None else len(allowed)
            return Hits(np.searchsorted(self.features.keys, keys), position, scores, searched)

    def proposals(self, queries: QueryFeatures) -> Proposals:
        """Coarse moments of each query (SPR, section 3.2)."""
        return self.merged(self.hits(queries))

    def merged(self, hits: Hits) -> Proposals:
        """Hits as proposals (:func:`moviola.retrieval.propose`), cut at shots if the refiner wants it."""
        with stage("proposals"):
            proposals = propose(
                hits, self.features, self.segment_clips, apart=MERGES[self.merge](hits.searched)
            )
            longest = None if self.refiner is None else self.refiner.longest_shot
            return proposals if longest is None else cut_at_shots(proposals, self.features, longest)

    def vectors(self, queries: QueryFeatures) -> NDArray[np.float32]:
        """(Q, d) float32, the queries in the space of the index's segments."""
        if queries.segment_vectors is not None:
            return queries.segment_vectors
        return self.stage1.queries(queries if self.stage1.trained else self.cosines.in_space(queries))

    def _allowed(self, within: Scope) -> Integers:
        if within not in self._ids_in:
            self._ids_in[within] = ids = self._ids_of(within)
            ids.flags.writeable = False
        return self._ids_in[within]

    @cached_property
    def _ids_in(self) -> WeakKeyDictionary[Scope, Integers]:
        return WeakKeyDictionary()

    def _ids_of(self, within: Scope) -> Integers:
        own, position = _all_segments(self.features, self.segment_clips, within.videos)
        seconds = self.segment_clips * self.features.clip_seconds
        inside = (position * seconds < within.end[own]) & ((position + 1) * seconds > within.start[own])
        ids = segment_ids(self.features.keys[within.videos[own[inside]]], position[inside])
        # A segment may reach into two stretches of a video.
        return ids if len(np.unique(within.videos)) == len(within.videos) else np.unique(ids)

    # -- stage 3 -------------------------------------------------------------------------------------------

    def moments(
        self,
        queries: QueryFeatures,
        proposals: Proposals | None = None,
        *,
        scored: bool = True,
        scale: Scale | None = None,
        distinct: bool = True,
    ) -> Moments:
        """Answers to queries.

        Args:
            proposals: of these queries; None: those of the first two stages.
            scored: set :attr:`Moments.score`; False leaves the matching scores there, which saves windows
                where a refiner without a calibration is set against chance.
            scale: replaces the refiner's or the encoder's own scale.
            distinct: fold duplicates into the best moment (:func:`moviola.temporal.fold`), if the refiner
                wants that; False keeps all, for a caller that folds them later.
        """
        proposals = self.proposals(queries) if proposals is None else proposals
        parts, answerable = [], np.full(len(queries), np.nan)
        for query in range(len(queries)):
            with stage("refinement"):
                one, own = queries.select([query]), proposals.of(query)
                refined = self._refined(one, own)
                if refined.answerable is not None:
                    answerable[query] = refined.answerable
            with stage("calibration"):
                own_scale = None if not scored else scale or self._scale(one)
                parts.append(self._calibrated(own, refined, own_scale, distinct))
        offsets = np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64)
        nothing = (np.empty(0, np.int64), *[np.empty(0)] * 4)
        columns = zip(nothing, *parts, strict=True)
        video, start, end, match, score = (np.concatenate(column) for column in columns)
        known = None if np.isnan(answerable).all() else answerable
        return Moments(offsets, video, start, end, match, score, known)

    def _calibrated(
        self, proposals: Proposals, refined: Refined, scale: Scale | None, distinct: bool
    ) -> tuple[NDArray[Any], ...]:
        """Video, start, end, match and score of one query's moments, best first."""
        match = np.asarray(refined.score, dtype=np.float64)
        if isinstance(scale, Calibration):
            scale = scale.given(refined.answerable)
        video, start, end = proposals.video, refined.start, refined.end
        if isinstance(scale, Calibration) and scale.certainty:
            match = self._with_certainty(match, scale, video, start, end)
        keep, above = np.arange(len(match)), 1.0 if self.refiner is None else self.refiner.suppress_above
        if distinct and above < 1:
            keep = np.flatnonzero(fold(start, end, match, above, video=video) == keep)
        keep = keep[np.lexsort((start[keep], video[keep], -match[keep]))]
        score = match
        if scale is not None:
            score = scale.scores(match if self.refiner is None else self.refiner.evidence(match))
        return tuple(column[keep] for column in (video, start, end, match, score))

    def _with_certainty(
        self,
        match: NDArray[np.float64],
        scale: Calibration,
        video: Integers,
        start: NDArray[np.float64],
        end: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Matching scores (n,) with what is known of the pictures of the best, whatever is asked."""
        background, features, raised = self.background, self.features, match.copy()
        best = np.argsort(-match, kind="stable")[:_CERTAIN]
        if background is None or background.references is None or not len(best):
            return raised
        own, dim = video[best], background.references.shape[1]
        first = np.clip(features.clips_at(start[best]), 0, features.counts[own] - 1)
        stop = np.clip(features.clips_from(end[best]), first + 1, features.counts[own])
        clips = first[:, None] + ((stop - first)[:, None] * _LOOKED_AT).astype(np.int64)
        rows = normalised(clip_rows(features, np.repeat(own, len(_LOOKED_AT)), clips.ravel())[:, :dim])
        pictures = rows.reshape(len(best), len(_LOOKED_AT), dim).mean(axis=1)
        raised[best] += scale.certainty / scale.slope * background.certainty_of(pictures)
        return raised

    def _refined(self, query: QueryFeatures, proposals: Proposals) -> Refined:
        refiner = self.refiner
        if refiner is None or not len(proposals.video):
            return Refined(proposals.start, proposals.end, proposals.score)
        if not refiner.in_encoder_space:
            return refiner.refine(query, 0, self.features, proposals)
        centred = self.cosines.in_space(query)
        if self.stage1.trained:
            # Its cosines have a space of its own; the refiner adds cosines of the encoder's to them.
            among = self.cosines.segment_chance(self.vectors(query)[0])
            alike = self.cosines.encoder_chance(centred.vectors[0]).evidence(among.standing(proposals.score))
            proposals = replace(proposals, score=alike.astype(np.float32))
        return refiner.refine(centred, 0, self.features, proposals)

    # -- scores --------------------------------------------------------------------------------------------

    def _scale(self, query: QueryFeatures) -> Scale:
        refiner = self.refiner
        if refiner is not None and refiner.calibration is not None:
            return refiner.calibration.of_text(query.texts[0])
        if not self.stage1.trained if refiner is None else refiner.in_encoder_space:
            return self.cosines.encoder_scale(query)
        if refiner is None:
            return self.cosines.segment_chance(self.vectors(query)[0])
        random = refiner.refine(query, 0, self.features, self._random_windows)
        return Chance.of(refiner.evidence(random.score), len(self.index))

    @cached_property
    def _random_windows(self) -> Proposals:
        generator = np.random.default_rng(0)
        videos = generator.permutation(len(self.features))[:_BACKGROUND_VIDEOS]
        own, position = _all_segments(self.features, self.segment_clips, videos)
        keep = generator.permutation(len(own))[:_BACKGROUND_WINDOWS]
        video, position = videos[own[keep]], position[keep]
        start, end = segment_spans(self.features, video, position, position, self.segment_clips)
        query = np.zeros(len(keep), np.int64)
        return Proposals.of_columns(query, video, start, end, np.zeros(len(keep)), queries=1)


def _all_segments(features: VideoFeatures, segment_clips: int, videos: Integers) -> tuple[Integers, Integers]:
    """All segments of the videos at some places (n,): place among these, and position in the video."""
    counts = segment_counts(features, segment_clips)[videos]
    own = np.repeat(np.arange(len(videos)), counts)
    return own, np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
