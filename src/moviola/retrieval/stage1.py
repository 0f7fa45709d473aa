"""Stage 1 of SPR, segment retrieval: segments and queries as vectors of one space (paper, section 3.1)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.index import FlatIndex, Index
from moviola.retrieval.segments import mean_pooled, normalised, pack_ids, segment_counts, whole_segments
from moviola.threads import ONE, compute_threads

if TYPE_CHECKING:
    from moviola.retrieval.model_parts import RoleParts, Runner

__all__ = [
    "EmbeddedSegments", "MeanPooling", "PooledStage1", "Stage1", "TrainedStage1",
    "TrainedVectors", "VideoScores", "score_blocks", "segment_index", "trained_recipe", "video_scores",
]  # fmt: skip

Vectors = NDArray[np.float32]

VideoScores = Callable[[slice], NDArray[np.float32]]
"""A retriever's scores of all V videos for a slice of queries: (n, V) float32, computed on request.

So no table of all queries and all videos is held: on TVR-Ranking it would be 5 GB.
"""

# Segments that pass through a trained stage 1 together; so few that one thread is enough, like those of one
# query.
_BATCH, _FEW = 1024, 64
# Length of free axes in the arrays for planning.
_SOME = 3


class Stage1(Protocol):
    """Segments of clips and queries as unit vectors whose inner product is their similarity."""

    @property
    def recipe(self) -> str:
        """Recipe of the vectors, by which an index made in another way is recognised."""

    @property
    def trained(self) -> bool:
        """Whether the vectors are in another space than the encoder's."""

    @property
    def needs_tokens(self) -> bool:
        """Whether a query's tokens are read, not its one vector."""

    def segments(self, clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
        """(ceil(n / T), d) float32, L2-normalised, of the n >= 1 clips (n, d) of a video."""

    def queries(self, queries: QueryFeatures) -> NDArray[np.float32]:
        """(Q, d) float32, L2-normalised."""


@dataclass(frozen=True)
class MeanPooling:
    """Without training: a segment is the mean of its clips, a query the encoder's vector."""

    recipe = "mean of normalised frames"
    trained = False
    """Vectors are in the encoder's space."""
    needs_tokens = False

    def segments(self, clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
        """(ceil(n / T), d) float32, L2-normalised; see :func:`moviola.retrieval.segments.mean_pooled`."""
        return mean_pooled(clips, segment_clips)

    def queries(self, queries: QueryFeatures) -> NDArray[np.float32]:
        """(Q, d) float32, the encoder's vectors, L2-normalised."""
        return normalised(queries.vectors)


class TrainedVectors(Stage1):
    """A trained :class:`Stage1`.

    Attributes:
        revision: changes with the model's weights and settings.
        dim: d, the size of its vectors.
    """

    trained = True
    """Vectors are in the model's own space."""
    needs_tokens = False

    revision: str

    @property
    @abstractmethod
    def dim(self) -> int: ...

    @property
    def recipe(self) -> str:
        """The recipe of the vectors, with the model's revision."""
        return trained_recipe(self.revision)


@dataclass(frozen=True)
class TrainedStage1(TrainedVectors):
    """A trained segment retriever (SPR, section 3.1.2)."""

    model: Runner
    revision: str

    @property
    def dim(self) -> int:
        return self.model.number("hidden_size")

    def segments(self, clips: Vectors, segment_clips: int) -> Vectors:
        whole = whole_segments(clips, segment_clips)
        threads = ONE if len(whole) <= _FEW else compute_threads()
        begins = range(0, len(whole), _BATCH)
        parts = [
            self.model.run("segments", whole[begin : begin + _BATCH], threads=threads)[0] for begin in begins
        ]
        return normalised(np.concatenate(parts))

    def queries(self, queries: QueryFeatures) -> Vectors:
        # One at a time: a query's vector does not depend on what is asked beside it.
        vectors = [self.model.run("queries", row[None])[0][0] for row in queries.vectors]
        return normalised(np.array(vectors, np.float32).reshape(-1, self.dim))

    def make(self) -> None:
        """Make the missing graphs, by running both parts once."""
        rows = np.eye(_SOME, self.dim, dtype=np.float32)
        self.segments(rows, 1)
        self.model.run("queries", rows)


@dataclass(frozen=True)
class PooledStage1(TrainedVectors):
    """Reel's stage 1: a segment is the mean of its clips' vectors.

    A segment knows what is around it, so that :meth:`segments` wants whole videos.
    """

    model: RoleParts
    revision: str
    needs_tokens = True

    @property
    def dim(self) -> int:
        return int(self.model.settings["hidden_size"])

    def segments(self, clips: Vectors, segment_clips: int) -> Vectors:
        return mean_pooled(self.model.encode_clips(clips, None)[:, 0], segment_clips)

    def queries(self, queries: QueryFeatures) -> Vectors:
        cut = queries.cut(int(self.model.settings["max_tokens"]))
        vectors = [self.model.encode_query(cut.tokens(query))[0] for query in range(len(cut))]
        return np.array(vectors, np.float32).reshape(-1, self.dim)


def trained_recipe(revision: str) -> str:
    """:attr:`Stage1.recipe` of a trained stage 1, known without loading it; the word is historical."""
    return f"spr-stage1 {revision}"


def segment_index(stage1: Stage1, features: VideoFeatures, segment_clips: int) -> Index:
    """An exact index in memory of all segments, of ``segment_clips`` clips (T), of some videos."""
    vectors = _embedded(stage1, features, segment_clips)
    ids = [pack_ids(key, len(own)) for key, own in zip(features.keys.tolist(), vectors, strict=True)]
    index = FlatIndex(vectors[0].shape[1] if vectors else features.visual.dim)
    if vectors:
        index.add(np.concatenate(ids), np.concatenate(vectors))
    return index


def _embedded(stage1: Stage1, features: VideoFeatures, segment_clips: int) -> list[NDArray[np.float32]]:
    return [stage1.segments(features.read(video), segment_clips) for video in range(len(features))]


@dataclass(frozen=True)
class EmbeddedSegments:
    """All segments of some videos, embedded, to rank whole videos by their best segment.

    Attributes:
        stage1: makes the vectors.
        segment_clips: T, clips of a segment.
    """

    stage1: Stage1
    features: VideoFeatures
    segment_clips: int

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(S, d) float32, L2-normalised, by video and position."""
        return np.concatenate(_embedded(self.stage1, self.features, self.segment_clips))

    def best(self, queries: QueryFeatures) -> NDArray[np.float32]:
        """(Q, V) float32, each video's best cosine, of each query by itself."""
        counts = segment_counts(self.features, self.segment_clips)
        begin = np.cumsum(counts) - counts
        best = np.empty((len(queries), len(counts)), dtype=np.float32)
        for row, vector in zip(best, self.stage1.queries(queries), strict=True):
            np.maximum.reduceat(self.vectors @ vector, begin, out=row)
        return best


def video_scores(
    stage1: Stage1, features: VideoFeatures, queries: QueryFeatures, segment_clips: int
) -> VideoScores:
    """Above 0: exp of the best cosine of each video's segments, a first stage for CONQUER."""
    videos = EmbeddedSegments(stage1, features, segment_clips)

    def scores(some: slice) -> NDArray[np.float32]:
        return np.exp(videos.best(queries.select(np.arange(some.start, some.stop))))

    return scores


def score_blocks(
    scores: VideoScores, queries: int, videos: int, *, most: int = 256, cells: int = 1 << 22
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """The queries block by block, at most ``most``, each with its scores (n, V) float32.

    A block has at most ``cells`` scores, which bounds the memory; one query is always scored whole.
    """
    step = max(1, min(most, cells // max(1, videos)))
    for first in range(0, queries, step):
        some = slice(first, min(first + step, queries))
        yield some, scores(some)
