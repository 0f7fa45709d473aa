"""What the tables of a report are made from: the figures that finished pieces left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from comparison.bench import Bench
from comparison.figures import MAIN, OVER
from comparison.plan import RISING, Preset
from moviola.study.measures import Results

__all__ = ["Findings"]


class Findings:
    """The jobs of a comparison that are done, and what they found for the test queries.

    Args:
        bench: where the jobs wrote, and what was planned.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._results: dict[str, dict[str, Any]] = {}

    @property
    def preset(self) -> Preset:
        """What was planned."""
        return self.bench.preset

    @property
    def first(self) -> str:
        """The job whose stage 1 everything is compared with."""
        return f"spr-stage1-n{self.preset.top}"

    def done(self, name: str) -> bool:
        """Whether a job is done."""
        return self.bench.done(name)

    def result(self, name: str) -> dict[str, Any]:
        """What a job found."""
        if name not in self._results:
            self._results[name] = self.bench.result(name)
        return self._results[name]

    def test(self, name: str) -> dict[str, float]:
        """NDCG of a job on test, all recalls with it."""
        found = self.result(name)
        values: dict[str, float] = found["test"] | found["recall"]
        return values

    def val(self, name: str) -> dict[str, float]:
        """NDCG of a job on val, by which rows are chosen."""
        values: dict[str, float] = self.result(name)["val"]
        return values

    def of(self, name: str) -> Results:
        """A job's results by query, for tests of significance."""
        found = self.result(name)
        per_query = {measure: np.array(found["per_query"][measure]) for measure in OVER}
        measures = {measure: found["test"][measure] for measure in OVER}
        return Results(measures, per_query, tuple(found["query_ids"]), (), (), ())

    def converged(self, name: str) -> bool:
        """Whether val's best value had stopped rising for a job, or for its model with more steps.

        It had if it rose by less than the preset's share in the last quarter of each phase.
        """
        longer = name.removesuffix(f"-n{self.preset.top}") + "-longer"
        return any(
            all(_late_gain(phase) < RISING for phase in self.result(job)["phases"])
            for job in (name, longer)
            if self.done(job)
        )

    def late_gain(self, name: str) -> float:
        """By what share val's best value rose in the last quarter of a training (of its last phase)."""
        return _late_gain(self.result(name)["phases"][-1])

    def part_of_bound(self, name: str) -> float:
        """The part of the practical upper bound of its candidates, lines among them, that a job reaches.

        In :data:`MAIN`, from 0 to 1; NaN where no bound of its stage 1 was taken.
        """
        job = self.result(name)["job"]
        first = self.result(job["stage1"])
        with_lines = first.get("with_lines", {})
        bound = with_lines.get("beside", np.nan) if job.get("lines") else first.get("bound", np.nan)
        return float(self.test(name)[MAIN] / max(bound, 1e-9))


def _late_gain(phase: Mapping[str, Any]) -> float:
    steps, values = [row[0] for row in phase["curve"]], [row[2] for row in phase["curve"]]
    early = max(value for step, value in zip(steps, values, strict=True) if step <= early_end(steps))
    return float(max(values) / max(early, 1e-9) - 1)


def early_end(steps: list[float]) -> float:
    """The step that three quarters of a training end with, or its first evaluation."""
    return max(steps[0], 0.75 * steps[-1])
