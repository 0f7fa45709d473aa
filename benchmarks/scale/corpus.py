"""A library of some size as it is searched: segments, queries, and the videos that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.features import FeatureFolder, FeatureRows, Integers, KeyedShards, QueryFeatures, VideoFeatures
from moviola.files.writing import draft_of
from moviola.retrieval import Hits, MeanPooling, Proposals, propose
from moviola.retrieval.segments import pack_ids, segment_counts, unpack_ids
from moviola.study.measures import Qrels, Run, evaluate
from scale.plan import DEPTH, Preset
from scale.vectors import PER_VIDEO, made_queries, made_segments, unit

__all__ = ["MEASURES", "Corpus", "made_corpus", "ndcg", "real_corpus"]

MEASURES = tuple(f"nDCG@{k},IoU>={iou}" for k in (10, 20, 40) for iou in (0.3, 0.5, 0.7))
"""The columns of SPR's Table 3."""

_SEGMENT_CLIPS = 4
_TOKENS = 12
# Proposals of an exact answer that have grade 4; as many have 3, and so on.
_PER_GRADE, _GRADES = 10, 4


@dataclass(frozen=True)
class Corpus:
    """Segments to search, and queries.

    Attributes:
        made: how the vectors came about, in words.
        features: the videos, with features of every second.
        segments: (n, d) float32, mapped.
        ids: (n,) int64, rising.
        queries: (q, d) float32 by kind, "picture" and "text".
    """

    made: str
    features: VideoFeatures
    segments: NDArray[np.float32]
    ids: Integers
    queries: dict[str, NDArray[np.float32]]

    @property
    def batch(self) -> NDArray[np.float32]:
        """All queries, one kind after the other."""
        return np.concatenate(list(self.queries.values()))

    def proposals(self, scores: NDArray[np.float32], ids: Integers) -> Proposals:
        """The second stage for answers (q, k) of an index."""
        keys, position = unpack_ids(ids)
        hits = Hits(np.searchsorted(self.features.keys, keys), position, scores, len(self.ids))
        return propose(hits, self.features, self.segment_clips)

    @property
    def segment_clips(self) -> int:
        """Seconds, or clips, of a segment."""
        return _SEGMENT_CLIPS

    def query_features(self, kind: str, count: int) -> QueryFeatures:
        """The first queries of a kind as a refiner reads them: tokens made up around the query's vector."""
        draw, vectors = np.random.default_rng(0), self.queries[kind][:count]
        noise = draw.standard_normal((len(vectors), _TOKENS, vectors.shape[1])).astype(np.float32)
        tokens = vectors[:, None] + noise / np.float32(vectors.shape[1] ** 0.5)
        tokens[:, -1] = vectors
        names = [f"{kind} {number}" for number in range(len(vectors))]
        return QueryFeatures.of(names, names, list(tokens))


def made_corpus(work: Path, preset: Preset, size: int) -> Corpus:
    """Made-up videos of 19 segments; see :mod:`scale.vectors`.

    A smaller library is the beginning of a larger one, and all get the same queries.
    """
    segments = made_segments(work / f"segments-{preset.dim}.npy", max(*preset.sizes, size), preset.dim)[:size]
    queries = made_queries(segments[: preset.query_segments], preset.queries)
    videos = -(-size // PER_VIDEO)
    counts = np.full(videos, PER_VIDEO)
    counts[-1] = size - PER_VIDEO * (videos - 1)

    def frames(video: int) -> NDArray[np.float16]:
        own = segments[PER_VIDEO * video : PER_VIDEO * (video + 1)]
        return np.repeat(own, _SEGMENT_CLIPS, axis=0).astype(np.float16)

    features = VideoFeatures(
        video_ids=tuple(f"v{number:06d}" for number in range(videos)),
        durations=(_SEGMENT_CLIPS * counts).astype(np.float64),
        clip_seconds=1.0,
        counts=_SEGMENT_CLIPS * counts,
        visual=FeatureRows(preset.dim, tuple(range(videos)), frames),
    )
    ids = np.concatenate([pack_ids(video, count) for video, count in enumerate(counts.tolist())])
    how = f"made: random walks of {PER_VIDEO} segments in 64 dimensions, taken to {preset.dim} by a network"
    return Corpus(how, features, segments, ids, queries)


def real_corpus(work: Path, folder: Path, queries: int) -> Corpus:
    """The segments of a folder of features (``moviola features``), mean-pooled, and its own queries.

    Queries by picture are segments from the middle of videos.

    Raises:
        NotFound: there is no such folder.
        InvalidValue: it has no text queries, or too few segments.
    """
    source = FeatureFolder.open(folder)
    features = source.videos().without_subtitles()
    counts = segment_counts(features, _SEGMENT_CLIPS)
    texts = KeyedShards(folder / "queries").keys()[:queries]
    if counts.sum() < DEPTH or not texts:
        raise InvalidValue(
            f"{folder}: {counts.sum()} segments and {len(texts)} queries; give {DEPTH} segments and a query"
        )
    segments = _pooled(work / "segments-real.npy", features, int(counts.sum()))
    middles = (np.cumsum(counts) - counts + counts // 2)[:: max(1, len(counts) // queries)][:queries]
    by_kind = {"picture": segments[middles], "text": unit(source.queries(texts, texts).vectors)}
    ids = np.concatenate([pack_ids(video, count) for video, count in enumerate(counts.tolist())])
    return Corpus(f"real: {source.facts.encoder}, mean-pooled", features, segments, ids, by_kind)


def _pooled(path: Path, features: VideoFeatures, count: int) -> NDArray[np.float32]:
    """Mean-pooled segments of all videos as a map of a ``.npy`` file."""
    if not path.is_file():
        with draft_of(path) as draft:
            rows = np.lib.format.open_memmap(draft, "w+", np.float32, (count, features.visual.dim))
            begin = 0
            for video in range(len(features)):
                own = MeanPooling().segments(features.read(video), _SEGMENT_CLIPS)
                rows[begin : begin + len(own)] = own
                begin += len(own)
            rows.flush()
    return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]


def ndcg(corpus: Corpus, found: Proposals, exact: Proposals) -> dict[str, float]:
    """NDCG of coarse proposals by :data:`MEASURES`, against those of exact search.

    The best ten of the exact ones have grade 4, the next ten 3, 2 and 1. Exact search itself has 1.
    """
    grades = _GRADES - (np.arange(_PER_GRADE * _GRADES) // _PER_GRADE)
    place = np.arange(len(exact.query)) - exact.offsets[exact.query]
    judged = np.flatnonzero(place < len(grades))
    queries = range(len(exact))
    qrels = Qrels.from_columns(
        *_columns(corpus, exact, judged), grades[place[judged]].astype(np.float64), queries=queries
    )
    run = Run.from_columns(
        *_columns(corpus, found, np.arange(len(found.query))), found.score, queries=queries, ranked=True
    )
    return evaluate(run, qrels, MEASURES).measures


def _columns(
    corpus: Corpus, proposals: Proposals, rows: Integers
) -> tuple[Sequence[int], Sequence[str], NDArray[np.float64], NDArray[np.float64]]:
    videos = [corpus.features.video_ids[video] for video in proposals.video[rows].tolist()]
    return proposals.query[rows].tolist(), videos, proposals.start[rows], proposals.end[rows]
