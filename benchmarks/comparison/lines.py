"""Subtitle lines as a second list of candidates, beside a stage 1 that reads pictures alone.

`moviola search` finds subtitles by their meaning and fuses them with what pictures say. Models that refine
the proposals of a stage 1 see none of that: what is said alone is a candidate by luck. Here the lines
nearest to a query, by the cosine of its sentence vector and theirs (:mod:`comparison.streams`), are proposals
too, and a video is as good a candidate as its best segment or its best line. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.features import VideoFeatures, normalise_rows
from moviola.retrieval import Proposals
from moviola.retrieval.stage1 import VideoScores
from moviola.study.measures import Run
from moviola.study.models.spr import SegmentRetriever
from moviola.study.training.data import Split
from moviola.study.training.first_stage import Candidates, FirstStage

__all__ = ["Line", "WithLines", "lines_of", "nearest_lines", "proposals_and_lines", "with_lines"]


@dataclass(frozen=True)
class Line:
    """Speech in some clips of a video, in seconds, with its sentence vector."""

    video: str
    start: float
    end: float
    vector: NDArray[np.float32]


@dataclass(frozen=True)
class WithLines(FirstStage):
    """A first stage and, of each query, the subtitle lines that are nearest to it.

    Attributes:
        before: whose proposals come first.
        lines: how many lines of each query.
    """

    before: FirstStage
    lines: int = 20

    @property
    def model(self) -> SegmentRetriever | None:
        """What models may start from."""
        return self.before.model

    @property
    def mark(self) -> str:
        """Changes with what is before and with the number of lines."""
        return f"{self.before.mark}, {self.lines} lines"

    def proposals(self, split: Split) -> Proposals:
        """The proposals of each query and, behind them, its lines, best first each."""
        return proposals_and_lines(self.before.proposals(split), split, self.lines)

    def first_stage(self, split: Split) -> VideoScores:
        """The better one of what is before and exp of the cosine of a video's best line; above 0."""
        before, cosines = self.before.first_stage(split), _cosines(split)
        spoken = np.full((len(split.queries), len(split.features)), -np.inf)
        videos = np.array([split.features.row_of[line.video] for line in lines_of(split)])
        np.maximum.at(spoken.T, videos, cosines.T)

        def scores(some: slice) -> NDArray[np.float32]:
            better: NDArray[np.float32] = np.maximum(before(some), np.exp(spoken[some])).astype(np.float32)
            return better

        return scores


def with_lines(before: FirstStage | None, lines: int) -> FirstStage | None:
    """The same with some lines of each query as candidates too; 0 changes nothing."""
    return WithLines(before, lines) if before is not None and lines else before


def proposals_and_lines(proposals: Proposals, split: Split, count: int) -> Proposals:
    """The proposals of each query and, behind them, the lines nearest to it, best first each."""
    parts = proposals, Candidates(nearest_lines(split, count)).proposals(split)
    names = ("query", "video", "start", "end", "score")
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    order = np.argsort(columns[0], kind="stable")
    return Proposals.of_columns(*(column[order] for column in columns), queries=len(split.queries))


def nearest_lines(split: Split, count: int) -> Run:
    """The lines nearest to each query of a split, as moments that score by their cosine."""
    lines, cosines, names = lines_of(split), _cosines(split), split.queries.query_ids
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    chosen = [lines[place] for place in best.ravel()]
    return Run.from_columns(
        np.repeat(np.array(names, dtype=object), best.shape[1]),
        np.array([line.video for line in chosen], dtype=object),
        np.array([line.start for line in chosen]),
        np.array([line.end for line in chosen]),
        np.take_along_axis(cosines, best, axis=1).ravel().astype(np.float64),
        queries=names,
    )


def lines_of(split: Split) -> list[Line]:
    """All lines of a split's videos, in their order."""
    return [line for video in split.features.video_ids for line in _said_in(split.features, video)]


def _cosines(split: Split) -> NDArray[np.float32]:
    """(Q, n) of each query with each line."""
    vectors = normalise_rows(np.stack([line.vector for line in lines_of(split)]))
    # The first row of a query is its sentence vector, on the axes of the lines.
    query_vectors = normalise_rows(np.stack([rows[0].astype(np.float32) for rows in split.queries.rows]))
    if query_vectors.shape[1] != vectors.shape[1]:
        raise InvalidValue(
            f"queries of {query_vectors.shape[1]} numbers and subtitles of {vectors.shape[1]}: a query's "
            "first row must lie on the axes of the subtitles; export features as comparison.streams does"
        )
    found: NDArray[np.float32] = query_vectors @ vectors.T
    return found


def _said_in(features: VideoFeatures, video: str) -> Iterator[Line]:
    """The lines of a video: clips in a row with the same vector, which is not zero."""
    assert features.subtitles is not None
    rows = features.subtitles.read(features.row_of[video]).astype(np.float32)
    changes = np.flatnonzero(np.any(rows[1:] != rows[:-1], axis=1)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(rows)]):
        if rows[first].any():
            yield Line(video, first * features.clip_seconds, last * features.clip_seconds, rows[first])
