"""What the tables of a report are made from: each figure computed once, however many tables show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moviola.benchmark.bounds import upper_bounds
from moviola.benchmark.plan import Preset
from moviola.benchmark.run import Bench
from moviola.measures import Results, Run, evaluate, read_run
from moviola.models.description import revision_of
from moviola.retrieval import (
    MeanPooling,
    Proposals,
    Retrieval,
    Stage1,
    TrainedStage1,
    load_stage1,
    segment_index,
)
from moviola.retrieval.segments import normalised, whole_segments
from moviola.training.data import Split
from moviola.training.judging import MEASURES, run_of
from moviola.training.tasks.segments import SegmentGrid

__all__ = ["FINE", "MAIN", "OVER", "Findings", "MiddleClip"]

OVER = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
_, MAIN, FINE = OVER
"""The measures of most tables; the one at 0.5 is what is said where one figure has to do."""


@dataclass(frozen=True)
class MiddleClip(MeanPooling):
    """A segment is its middle clip: CLIP without training on one frame (SPR, appendix B.2)."""

    @property
    def recipe(self) -> str:
        """The name of the vectors."""
        return "middle frame"

    def segments(self, clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
        """(ceil(n / T), d) float32, L2-normalised."""
        return normalised(whole_segments(clips, segment_clips)[:, segment_clips // 2])


class Findings:
    """The jobs of a comparison that are done, and what follows from them for the test queries.

    Args:
        bench: where the jobs wrote.
        preset: what was planned.
    """

    def __init__(self, bench: Bench, preset: Preset) -> None:
        self.bench, self.preset = bench, preset
        self._stage1: dict[str, TrainedStage1] = {}
        self._retrievals: dict[str, Retrieval] = {}
        self._proposals: dict[tuple[str, int], Proposals] = {}
        self._coarse: dict[str, Results] = {}
        self._of: dict[str, Results] = {}

    @cached_property
    def test(self) -> Split:
        """The test queries with their videos and judgements."""
        return self.bench.world.split("test")

    @cached_property
    def grid(self) -> SegmentGrid:
        """The segments of the test videos."""
        return SegmentGrid(self.test.features, self.bench.world.features.facts.segment_clips)

    @property
    def first(self) -> str:
        """The job whose stage 1 everything is compared with."""
        return f"spr-stage1-n{self.preset.top}"

    def done(self, name: str) -> bool:
        """Whether a job is done."""
        return self.bench.result_file(name).is_file()

    def stage1(self, name: str) -> TrainedStage1:
        """A job's trained stage 1."""
        if name not in self._stage1:
            folder = self.bench.model(name)
            self._stage1[name] = load_stage1(folder, revision_of(folder))
        return self._stage1[name]

    def retrieval(self, stage1: Stage1) -> Retrieval:
        """The test videos' segments as a stage 1 embeds them."""
        if stage1.recipe not in self._retrievals:
            features, length = self.test.features, self.grid.segment_clips
            index = segment_index(stage1, features, length)
            retrieval = Retrieval(features, index, stage1, None, length, segments=self.bench.segments)
            self._retrievals[stage1.recipe] = retrieval
        return self._retrievals[stage1.recipe]

    def proposed(self, stage1: Stage1, count: int | None = None) -> Proposals:
        """Proposals of the test queries after so many segments of a stage 1."""
        key = stage1.recipe, count or self.bench.segments
        if key not in self._proposals:
            retrieval = replace(self.retrieval(stage1), segments=key[1])
            self._proposals[key] = retrieval.proposals(self.test.queries)
        return self._proposals[key]

    def proposals(self, name: str | None = None, count: int | None = None) -> Proposals:
        """Those of a job's stage 1, by default :attr:`first`'s."""
        return self.proposed(self.stage1(name or self.first), count)

    def run(self, proposals: Proposals) -> Run:
        """Proposals as answers to the test queries."""
        coarse = self.retrieval(MeanPooling()).moments(self.test.queries, proposals, scored=False)
        return run_of(coarse, self.test)

    def results(self, run: Run) -> Results:
        """What answers to the test queries are worth."""
        return evaluate(run, self.test.pairs.qrels, MEASURES)

    def coarse(self, name: str | None = None) -> Results:
        """Results of a job's proposals (default :attr:`first`) as they are."""
        name = name or self.first
        if name not in self._coarse:
            self._coarse[name] = self.results(self.run(self.proposals(name)))
        return self._coarse[name]

    @cached_property
    def mean_pooled(self) -> Results:
        """Results of the segments' mean frame features, CLIP without training."""
        return self.results(self.run(self.proposed(MeanPooling())))

    def val(self, name: str) -> dict[str, float]:
        """NDCG of a trained job on val, by which rows are chosen."""
        values: dict[str, float] = self.bench.result(name)["val"]
        return values

    def converged(self, name: str) -> bool:
        """Whether val had stopped rising when a training ended: its last evaluation was not the best."""
        return bool(self.bench.result(name)["converged"])

    def of(self, name: str) -> Results:
        """A trained job's results, from its answers."""
        if name not in self._of:
            self._of[name] = self.results(read_run(self.bench.run_file(name)))
        return self._of[name]

    @cached_property
    def bound(self) -> float:
        """The practical upper bound of refining :attr:`first`'s proposals, in :data:`MAIN`."""
        return self.bound_of(self.proposals())

    def bound_of(self, proposals: Proposals) -> float:
        """The practical upper bound (edges at whole seconds, 8 s of context) of refining some proposals."""
        return upper_bounds(self.test, proposals, context=8.0, overlaps=(0.5,), grid=1.0)[MAIN]
