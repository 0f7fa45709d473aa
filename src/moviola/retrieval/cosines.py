"""What cosines say over some videos: against chance among them, or against the encoder's background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.index import Index
from moviola.retrieval.background import Background
from moviola.retrieval.calibration import Chance, Scale
from moviola.retrieval.segments import mean_pooled, segment_counts, segment_ids
from moviola.retrieval.stage1 import Stage1

__all__ = ["Cosines"]

Integers = NDArray[np.int64]

# Videos whose pieces are drawn as the background of a query's cosines, and how many pieces.
_VIDEOS, _PIECES = 64, 4096
# Segments that are compared with something in one search.
_COMPARED_AT_ONCE = 4096


@dataclass(frozen=True)
class Cosines:
    """Cosines of queries with the segments of some videos, and what they mean; attributes as in
    :class:`moviola.retrieval.Retrieval`.
    """

    features: VideoFeatures
    index: Index
    stage1: Stage1
    segment_clips: int
    background: Background | None

    def in_space(self, queries: QueryFeatures) -> QueryFeatures:
        """Queries as they are compared in the encoder's space: texts are centred, if it has a background."""
        if self.background is None or queries.segment_vectors is not None:
            return queries
        return queries.with_vectors(self.background.centred(queries.vectors))

    def of_segments(
        self, vectors: NDArray[np.float32], video: Integers, position: Integers
    ) -> NDArray[np.float32]:
        """Cosines (m, ...) float32 of vectors with some segments, as the index has them.

        Args:
            vectors: (m, d) float32, L2-normalised, among the segments of the index.
            video, position: places of videos and positions in them, of one shape (...); all in the index.
        """
        ids, place = np.unique(segment_ids(self.features.keys[video], position), return_inverse=True)
        cosines = np.empty((len(vectors), len(ids)), np.float32)
        for begin in range(0, len(ids), _COMPARED_AT_ONCE):
            part = ids[begin : begin + _COMPARED_AT_ONCE]
            scores, found = self.index.search(vectors, len(part), allowed=part)
            in_order = np.argsort(found, axis=1)
            cosines[:, begin : begin + len(part)] = np.take_along_axis(scores, in_order, axis=1)
        return np.take(cosines, place.reshape(video.shape), axis=1)

    def encoder_scale(self, query: QueryFeatures) -> Scale:
        """What cosines with one query's vector say, in the space of the encoder."""
        if self.background is None or query.segment_vectors is not None:
            return self.encoder_chance(query.vectors[0])
        return self.background.calibration(query.vectors[0])

    def encoder_chance(self, vector: NDArray[np.float32]) -> Chance:
        """What cosines chance gives a query's vector (d,) in the space of the encoder."""
        return Chance.of(self._mean_segments @ vector, len(self.index))

    def segment_chance(self, vector: NDArray[np.float32]) -> Chance:
        """What cosines chance gives a query's vector (d,) among the segments of the index."""
        if not self.stage1.trained:
            return self.encoder_chance(vector)
        # Embeddings of a trained stage 1 are slow to make; the index gives the same cosines.
        sample = self._sampled_ids
        cosines, _ = self.index.search(vector[None], len(sample), allowed=sample)
        return Chance.of(cosines[0], len(self.index))

    def standing(
        self,
        vector: NDArray[np.float32],
        video: Integers,
        start: NDArray[np.float64],
        end: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Standard deviations (n,) by which the best segment of each of some moments stands above chance.

        Args:
            vector: (d,) float32, a query among the segments of the index.
            video: (n,) places of videos.
            start, end: (n,) seconds. Segments count whose middle lies between; in a moment that holds no
                middle of a segment, the segment at its own middle.
        """
        seconds = self.segment_clips * self.features.clip_seconds
        last = segment_counts(self.features, self.segment_clips)[video] - 1
        first = np.ceil(start / seconds - 0.5)
        stop = np.floor(end / seconds - 0.5) + 1
        none = stop <= first
        first = np.clip(np.where(none, (start + end) / 2 // seconds, first), 0, last).astype(np.int64)
        stop = np.clip(np.where(none, first + 1, stop), first + 1, last + 1).astype(np.int64)
        counts = stop - first
        begin = np.cumsum(counts) - counts
        position = np.arange(counts.sum()) - np.repeat(begin - first, counts)
        if not len(position):
            return np.empty(0)
        cosines = self.of_segments(vector[None], np.repeat(video, counts), position)[0]
        return self.segment_chance(vector).standing(np.maximum.reduceat(cosines, begin))

    @cached_property
    def _sampled_ids(self) -> Integers:
        return np.random.default_rng(0).permutation(self.index.sorted_ids())[:_PIECES]

    @cached_property
    def _mean_segments(self) -> NDArray[np.float32]:
        """Mean-pooled segments of some videos, (m, d): the same ones for every query."""
        generator = np.random.default_rng(0)
        videos = generator.permutation(len(self.features))[:_VIDEOS]
        sample = np.concatenate(
            [mean_pooled(self.features.visual.read(int(video)), self.segment_clips) for video in videos]
        )
        return sample[generator.permutation(len(sample))[:_PIECES]]
