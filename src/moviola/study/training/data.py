"""Training data: features of videos and of queries, and pairs of queries and moments.

Features stay where they are, memory-mapped; only what a batch needs is copied, padded to its longest member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from moviola.errors import DataError, InvalidValue, counted
from moviola.features import FeatureSource, Integers, QueryFeatures, VideoFeatures
from moviola.files.rows import number, span, text
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.stage1 import VideoScores
from moviola.study.datasets.annotations import Collector, Flaw
from moviola.study.datasets.readers import asked_rows
from moviola.study.measures import Qrels

__all__ = [
    "Lists", "Pairs", "Sizes", "Split", "batches_by_length", "largest",
]  # fmt: skip

Number = TypeVar("Number", np.float32, np.float64)

_BEYOND = np.dtype([("query", np.int64), ("video", np.int64), ("start", np.float64), ("end", np.float64)])


@dataclass(frozen=True)
class Lists:
    """N lists of rows in one array: list i is ``rows[begin[i] : begin[i + 1]]``."""

    begin: Integers
    rows: Integers

    @classmethod
    def of(cls, parts: Sequence[Integers]) -> Lists:
        """From the lists themselves."""
        counts = np.array([len(part) for part in parts], dtype=np.int64)
        rows = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        return cls(np.concatenate([[0], np.cumsum(counts)]), rows.astype(np.int64))

    def rows_of(self, number: int) -> Integers:
        """The rows of one list."""
        return self.rows[self.begin[number] : self.begin[number + 1]]

    @cached_property
    def counts(self) -> Integers:
        """(N,) int64, how long each list is."""
        return np.diff(self.begin)

    def draw(self, lists: Integers, draw: Generator) -> Integers:
        """One row at random out of each of some lists, none of which may be empty."""
        return self.rows[draw.integers(self.begin[lists], self.begin[lists + 1])]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query and a moment, as columns; every query and every moment is stored once.

    Attributes:
        query_ids, texts: of Q queries.
        video, start, end, captions: of M moments: (M,) int64 rows in ``videos``, float64 seconds, and texts.
        query, moment: (P,) int64 rows.
        similarity: (P,) float32 in [0, 1], 1 where the file has none, 0 where it is negative there.
        relevance: (P,) float64, 1 where the file has none.
        left_out: number of pairs of the file in other videos.
        types: of the Q queries, the evidence that answers them (v: pictures, t: subtitles, vt: both); ""
            where the file has none.
        unanswered: rows of the queries that nothing answers, rising: without a moment in the file, or with
            moments of relevance 0 alone.
        beyond: moments that the file lists after the first N of a query, which are no positives, and no hard
            negatives of SPR's refiners: (K,) records of ``query`` and ``video``, rows, ``start`` and ``end``.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    videos: tuple[str, ...]
    video: Integers
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    captions: tuple[str, ...]
    query: Integers
    moment: Integers
    similarity: NDArray[np.float32]
    relevance: NDArray[np.float64]
    left_out: int = 0
    types: tuple[str, ...] = ()
    unanswered: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    beyond: NDArray[Any] = field(default_factory=lambda: np.empty(0, _BEYOND))

    def __len__(self) -> int:
        return len(self.query)

    @classmethod
    def read(cls, path: Path, videos: Sequence[str], *, top: int | None = None) -> Pairs:
        """Read a TVR-Ranking pair file; moments of other videos are left out.

        ``videos`` are ids, in the order of the rows that ``video`` refers to; of each query at most ``top``
        moments are read, the first in the file.

        Raises:
            InvalidValue: no pair is left, or ``top`` is no integer from 1 on.
            DataError: the file has no pair; or a malformed moment: the message names file, row and field.
        """
        if top is not None and not (isinstance(top, int | np.integer) and top >= 1):
            raise InvalidValue(f"top {top!r:.200}: give an integer, 1 or more; None for all moments")
        row_of = {name: row for row, name in enumerate(videos)}
        queries: dict[str, tuple[int, str, str]] = {}
        moments: dict[tuple[str, float, float, str], int] = {}
        taken: dict[str, int] = {}
        table: list[tuple[int, int, float, float]] = []
        beyond: list[tuple[int, int, float, float]] = []
        answered: set[int] = set()
        left_out = 0
        for where, query_id, query_text, kind, moment in asked_rows(path):
            row, *_ = queries.setdefault(query_id, (len(queries), query_text, kind))
            if moment is None:
                continue
            relevance = number(moment.get("relevance", 1), "relevance", where)
            if relevance > 0:
                answered.add(row)
            name = text(moment, "video_name", where)
            if name not in row_of:
                left_out += 1
                continue
            start, end = span(moment.get("timestamp"), "timestamp", where)
            if end < start:
                raise DataError(f"{where}: timestamp: [{start}, {end}] ends before it starts; correct it")
            if taken.get(query_id, 0) == top:
                beyond.append((row, row_of[name], start, end))
                continue
            taken[query_id] = taken.get(query_id, 0) + 1
            key = (name, start, end, str(moment.get("caption") or ""))
            place = moments.setdefault(key, len(moments))
            # A cosine; rounding may carry it a little past 1.
            similarity = number(moment.get("similarity", 1), "similarity", where, -1.01, 1.01)
            table.append((row, place, similarity, relevance))
        if not table and not left_out:
            raise DataError(f"{path}: holds no query with a moment; give a pair file that has some")
        if not table:
            raise InvalidValue(
                f"{path}: no moment of the {counted(len(videos), 'video')}; are these its videos?"
            )
        query, moment_rows, similarities, relevances = zip(*table, strict=True)
        return cls(
            query_ids=tuple(queries),
            texts=tuple(query_text for _, query_text, _ in queries.values()),
            types=tuple(kind for *_, kind in queries.values()),
            videos=tuple(videos),
            video=np.array([row_of[name] for name, *_ in moments], dtype=np.int64),
            start=np.array([start for _, start, _, _ in moments]),
            end=np.array([end for _, _, end, _ in moments]),
            captions=tuple(caption for *_, caption in moments),
            query=np.array(query, dtype=np.int64),
            moment=np.array(moment_rows, dtype=np.int64),
            similarity=np.clip(np.array(similarities, dtype=np.float32), 0, 1),
            relevance=np.array(relevances, dtype=np.float64),
            left_out=left_out,
            unanswered=np.array(sorted(set(range(len(queries))) - answered), dtype=np.int64),
            beyond=np.array(beyond, _BEYOND),
        )

    def of_answers(self) -> Pairs:
        """The same without pairs of relevance 0, which do not answer.

        Raises:
            InvalidValue: there is no other.
        """
        keep = np.flatnonzero(self.relevance > 0)
        if not len(keep):
            raise InvalidValue("all pairs have relevance 0, so no moment answers a query; give other pairs")
        return self.select(keep)

    def select(self, rows: Integers, **changes: Any) -> Pairs:
        """Some of the pairs (n,), columns of which may be changed."""
        taken = {name: getattr(self, name)[rows] for name in ("query", "moment", "similarity", "relevance")}
        return replace(self, **(taken | changes))

    def of_own_videos(self) -> Pairs:
        """The same with the videos that hold a moment here alone, in their old order."""
        own, video = np.unique(self.video, return_inverse=True)
        beyond = self.beyond[np.isin(self.beyond["video"], own)]
        beyond["video"] = np.searchsorted(own, beyond["video"])
        return replace(self, videos=tuple(self.videos[row] for row in own), video=video, beyond=beyond)

    @cached_property
    def of_query(self) -> Lists:
        """The pairs of each query, as in the file: the best first."""
        counts = np.bincount(self.query, minlength=len(self.query_ids))
        return Lists(np.concatenate([[0], np.cumsum(counts)]), np.argsort(self.query, kind="stable"))

    @cached_property
    def answers(self) -> sparse.csr_array:
        """(Q, M) bool, which moments answer which query."""
        return self._marked(self.moment, len(self.video))

    @cached_property
    def related(self) -> sparse.csr_array:
        """(Q, V) bool, which queries have an answer in which videos: at most P entries are stored."""
        return self._marked(self.video[self.moment], len(self.videos))

    def _marked(self, column: Integers, count: int) -> sparse.csr_array:
        """(Q, count) bool: the column (P,) of each pair."""
        ones = np.ones(len(self), dtype=bool)
        return sparse.csr_array((ones, (self.query, column)), shape=(len(self.query_ids), count))

    def spoken(self, rows: Integers) -> Tensor | None:
        """Whether subtitles alone answer the query of each pair (type t), (B,) bool; None without types."""
        if not self.types or "" in self.types:
            return None
        return torch.from_numpy(np.array(self.types)[self.query[rows]] == "t")

    def positives(self, rows: Integers) -> Tensor:
        """The positive pair mask of B pairs (TVR-Ranking, appendix C.1): (B, B) bool, True on the diagonal.

        It says whether the query of pair i (row) has an answer in the video of pair j (column), in the batch
        or not.
        """
        chosen = self.related[self.query[rows]][:, self.video[self.moment[rows]]]
        return torch.from_numpy(chosen.toarray())

    @property
    def qrels(self) -> Qrels:
        """The same as judgements; queries without a moment here are included, with none.

        A moment of zero length overlaps nothing, but counts as one to be found, as in the release.
        """
        return Qrels.from_columns(
            [self.query_ids[q] for q in self.query],
            [self.videos[v] for v in self.video[self.moment]],
            self.start[self.moment],
            self.end[self.moment],
            self.relevance,
            queries=list(self.query_ids),
            zero_length=True,
        )


@dataclass(frozen=True)
class Sizes:
    """Sizes that a model is built for: numbers in a row of each kind of features (``subtitle``: 0 without
    them), length of a clip in seconds, and maximum clips of a video.
    """

    visual: int
    subtitle: int
    query: int
    clip_seconds: float
    longest: int

    def settings(self, more: int = 0) -> dict[str, Any]:
        """Settings of a model that are the features' sizes; its clips have ``more`` numbers besides."""
        return {
            "visual_size": self.visual + more,
            "subtitle_size": self.subtitle + more if self.subtitle else 0,
            "query_size": self.query,
            "clip_seconds": self.clip_seconds,
        }

    def of_one_space(self, model: str) -> int:
        """Numbers in a row of clips and of queries, which a model compares as they are.

        Raises:
            InvalidValue: they differ.
        """
        if self.query != self.visual:
            raise InvalidValue(
                f"{model}: clips have {self.visual} features and queries {self.query}; give both of one "
                "image-text encoder, such as a CLIP"
            )
        return self.visual


@dataclass(frozen=True)
class Split:
    """Videos, queries about them, and the moments that answer these.

    Attributes:
        queries: in the order of ``pairs.query_ids``.
        pairs: which moments answer; ``pairs.videos`` are those of ``features``.
        proposals: coarse proposals of each query, best first; for refiners.
        first_stage: a retriever's scores of all videos, above 0, computed for some queries at a time; for
            CONQUER.
    """

    features: VideoFeatures
    queries: QueryFeatures
    pairs: Pairs
    proposals: Proposals | None = None
    first_stage: VideoScores | None = None

    @classmethod
    def read(
        cls, source: FeatureSource, path: Path, videos: Sequence[str] | None = None, *, top: int | None = None
    ) -> Split:
        """A split from its pair file, of the videos named, or all with features; see :meth:`Pairs.read`.

        Raises:
            NotFound: a video or a query has no features; and errors of :meth:`Pairs.read`.
        """
        features = source.videos(videos)
        pairs = Pairs.read(path, features.video_ids, top=top)
        return cls(features, source.queries(pairs.query_ids, pairs.texts), pairs)

    def require_answers(self, path: Path) -> None:
        """Raise :class:`InvalidValue` if no moment of its pair file answers a query in its videos."""
        if not (self.pairs.relevance > 0).any():
            raise InvalidValue(
                f"{path}: no moment of the {counted(len(self.features), 'video')} has a relevance above 0, "
                "so none answers a query; give pairs and videos that have some"
            )

    def of_own_videos(self) -> Split:
        """Without the videos that hold no moment of it, which may belong to another split."""
        pairs = self.pairs.of_own_videos()
        return replace(self, features=self.features.named(pairs.videos), pairs=pairs)

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """Flaws of its pairs: moments without extent or beyond their video, and queries without words."""
        pairs, durations = self.pairs, self.features.durations.tolist()
        checked = Collector("", dict(zip(pairs.videos, durations, strict=True)), captioned=False)
        for query, moment in zip(pairs.query.tolist(), pairs.moment.tolist(), strict=True):
            span = float(pairs.start[moment]), float(pairs.end[moment])
            checked.add(pairs.videos[pairs.video[moment]], *span, "", moment_id=pairs.query_ids[query])
        queries = zip(pairs.query_ids, pairs.texts, strict=True)
        return (
            *checked.flaws,
            *(Flaw("no words", query_id) for query_id, text in queries if not text.strip()),
        )

    @property
    def sizes(self) -> Sizes:
        """Sizes that a model for it is built for."""
        subtitles = self.features.subtitles
        return Sizes(
            visual=self.features.visual.dim,
            subtitle=0 if subtitles is None else subtitles.dim,
            query=self.queries.dim,
            clip_seconds=self.features.clip_seconds,
            longest=int(self.features.counts.max()),
        )


def largest(cells: Integers, values: NDArray[Number]) -> tuple[Integers, NDArray[Number]]:
    """Different cells (N,) int64, rising, and the largest of the values of each."""
    known, place = np.unique(cells, return_inverse=True)
    best = np.full(len(known), -np.inf, values.dtype)
    np.maximum.at(best, place, values)
    return known, best


def batches_by_length(lengths: Integers, size: int, draw: Generator, *, pool: int = 8) -> Iterator[Integers]:
    """Shuffled batches of ``size`` rows of similar length (N,), so that little is padded.

    Rows are shuffled, cut into pools of ``pool`` batches, sorted by length within a pool and cut into
    batches, which are shuffled again. Every row is in one batch; the last ones may be smaller.
    """
    order = draw.permutation(len(lengths))
    batches: list[Integers] = []
    for begin in range(0, len(order), pool * size):
        chunk = order[begin : begin + pool * size]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += [chunk[at : at + size] for at in range(0, len(chunk), size)]
    for place in draw.permutation(len(batches)):
        yield batches[place]
