"""What the tables of a report are made from: each figure computed once, however many tables show it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch.nn.functional as F

from moviola.benchmark.bounds import upper_bounds
from moviola.benchmark.plan import Preset
from moviola.benchmark.run import Bench
from moviola.measures import Results, Run, evaluate, read_run
from moviola.models.spr import SegmentRetriever
from moviola.training.recipes import MEASURES, Split
from moviola.training.segments import SegmentGrid, coarse_run, mean_pooled, proposals_of, propose_for
from moviola.types import Proposal

__all__ = ["FINE", "MAIN", "OVER", "Findings"]

OVER = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
_, MAIN, FINE = OVER
"""The measures of most tables; the one at 0.5 is what is said where one figure has to do."""


class Findings:
    """The jobs of a comparison that are done, and what follows from them for the test queries.

    Args:
        bench: where the jobs wrote.
        preset: what was planned.
    """

    def __init__(self, bench: Bench, preset: Preset) -> None:
        self.bench, self.preset = bench, preset
        self._proposals: dict[tuple[str, int], list[list[Proposal]]] = {}
        self._coarse: dict[str, Results] = {}
        self._of: dict[str, Results] = {}

    @cached_property
    def test(self) -> Split:
        """The test queries with their videos and judgements."""
        return self.bench.world.split("test")

    @cached_property
    def grid(self) -> SegmentGrid:
        """The segments of the test videos."""
        return SegmentGrid.of(self.test.clips, self.bench.world.features.segment_clips)

    @property
    def first(self) -> str:
        """The job whose stage 1 everything is compared with."""
        return f"spr-stage1-n{self.preset.top}"

    def done(self, name: str) -> bool:
        """Whether a job is done."""
        return self.bench.result_file(name).is_file()

    def stage1(self, name: str) -> SegmentRetriever:
        """A job's trained stage 1."""
        return self.bench.stage1(name)

    def proposals(self, name: str | None = None, count: int | None = None) -> list[list[Proposal]]:
        """One list per test query, of a job's stage 1 (default :attr:`first`) and so many segments."""
        key = name or self.first, count or self.bench.segments
        if key not in self._proposals:
            self._proposals[key] = propose_for(self.stage1(key[0]), self.test, count=key[1])
        return self._proposals[key]

    def run(self, proposals: Sequence[Sequence[Proposal]]) -> Run:
        """Proposals as answers to the test queries."""
        return coarse_run(proposals, self.test.queries.query_ids)

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
        queries = F.normalize(self.test.queries.vectors, dim=-1)
        pooled = proposals_of(queries, mean_pooled(self.grid), self.grid, count=self.bench.segments)
        return self.results(self.run(pooled))

    def of(self, name: str) -> Results:
        """A trained job's results, from its answers."""
        if name not in self._of:
            self._of[name] = self.results(read_run(self.bench.run_file(name)))
        return self._of[name]

    @cached_property
    def bound(self) -> float:
        """The practical upper bound of refining :attr:`first`'s proposals, in :data:`MAIN`."""
        return self.bound_of(self.proposals())

    def bound_of(self, proposals: Sequence[Sequence[Proposal]]) -> float:
        """The practical upper bound (edges at whole seconds, 8 s of context) of refining some proposals."""
        return upper_bounds(self.test, proposals, context=8.0, overlaps=(0.5,), grid=1.0)[MAIN]
