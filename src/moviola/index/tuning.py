"""Tuning of the search depth, measured on a library's own vectors and on text queries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from moviola.index.contract import Ids, Index

__all__ = ["DEPTH", "Exact", "Trial", "tune"]

DEPTH = 200
"""Number of compared answers, as many as a search retrieves (SPR, appendix B.1)."""

# Required share of the exact answers, for every kind of query.
_RECALL = 0.99


@dataclass(frozen=True)
class Trial:
    """One setting and its results.

    Attributes:
        recall: share of the :data:`DEPTH` exact answers that were found, by kind of query.
        seconds: median of single queries.
    """

    parameters: Mapping[str, int]
    recall: Mapping[str, float]
    seconds: float


class Exact:
    """The exact answers to queries (q, dim), from vectors that come in parts."""

    def __init__(self, queries: NDArray[np.float32], depth: int = DEPTH) -> None:
        self._queries, self._depth = queries, depth
        self._scores = np.empty((len(queries), 0), np.float32)
        self.ids = np.empty((len(queries), 0), np.int64)
        """(q, depth) int64, in no particular order."""

    def see(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        """Include vectors (n, dim) with ids (n,)."""
        scores = np.concatenate([self._scores, self._queries @ vectors.T], axis=1)
        known = np.concatenate([self.ids, np.broadcast_to(ids, (len(self._queries), len(ids)))], axis=1)
        if scores.shape[1] > self._depth:
            best = np.argpartition(-scores, self._depth - 1, axis=1)[:, : self._depth]
            scores, known = np.take_along_axis(scores, best, axis=1), np.take_along_axis(known, best, axis=1)
        self._scores, self.ids = scores, known


def tune(index: Index, queries: Mapping[str, tuple[NDArray[np.float32], Ids]]) -> list[Trial]:
    """Try the settings of an index, and keep the fastest that finds 99 %, or else the one that finds most.

    Args:
        index: of any type; one without settings is left unchanged.
        queries: by kind, (q, dim) float32 and the ids (q, depth) of their exact answers.

    Returns:
        all trials, in the order of the ladders.
    """
    names = list(index.LADDERS)
    trials = []
    for values in product(*index.LADDERS.values()):
        index.parameters = dict(zip(names, values, strict=True))
        trials.append(_tried(index, queries))

    def least(trial: Trial) -> float:
        return min(trial.recall.values())

    good = [trial for trial in trials if least(trial) >= _RECALL]
    best = min(good, key=lambda trial: trial.seconds) if good else max(trials, key=least)
    index.parameters = dict(best.parameters)
    return trials


def _tried(index: Index, queries: Mapping[str, tuple[NDArray[np.float32], Ids]]) -> Trial:
    recall, seconds = {}, []
    for kind, (vectors, exact) in queries.items():
        found = 0
        for query, wanted in zip(vectors, exact, strict=True):
            started = time.perf_counter()
            _, ids = index.search(query[None], exact.shape[1])
            seconds.append(time.perf_counter() - started)
            found += len(np.intersect1d(ids, wanted))
        recall[kind] = found / exact.size
    return Trial(dict(index.parameters), recall, float(np.median(seconds)))
