"""What measurements left in ``benchmarks/``, as the pages print it: means and deviations, shares, gains."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from comparison.findings import _late_gain

__all__ = [
    "AT_K",
    "BENCHMARKS",
    "LARGE",
    "OVERLAPS",
    "POOL_STUDY",
    "ROOT",
    "SMALL",
    "THIRD",
    "TYPES",
    "Comparison",
    "agreement",
    "cell",
    "noise",
    "read",
    "rows",
    "selected",
    "selections",
    "self_agreement",
    "tied",
]

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
OVERLAPS = (0.3, 0.5, 0.7)
TYPES = ("v", "t", "vt")
Numbers = list[float]


@cache
def read(name: str) -> Any:
    """A JSON file under ``benchmarks/``."""
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


@cache
def rows(name: str) -> list[dict[str, str]]:
    """A CSV file of the repository."""
    with (ROOT / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell(name: str, column: str, where: dict[str, str]) -> float:
    """A number of a CSV file, of the first row that has some values."""
    for row in rows(name):
        if where.items() <= row.items():
            return float(row[column])
    raise KeyError(f"{name}: no row with {where}")


@dataclass(frozen=True)
class Comparison:
    """The finished trainings of one preset."""

    name: str

    def job(self, job: str) -> Any:
        """What a training found."""
        return read(f"comparison/{self.name}/{job}.json")

    def seeds(self, job: str) -> list[Any]:
        """The same with each of its seeds, the first one first."""
        folder = BENCHMARKS / "comparison" / self.name
        further = sorted(path.stem for path in folder.glob(f"{job}-seed[0-9].json"))
        return [self.job(name) for name in (job, *further)]

    def ndcg(self, job: str, over: float = 0.5, split: str = "test", depth: int = 20) -> float:
        """nDCG of one training."""
        return float(self.job(job)[split][f"nDCG@{depth},IoU>={over}"])

    def three(self, job: str) -> Numbers:
        """nDCG@20 on test at the three overlaps, one training."""
        return [self.ndcg(job, over) for over in OVERLAPS]

    def types(self, job: str, kinds: tuple[str, ...] = TYPES) -> Numbers:
        """nDCG@20 at IoU >= 0.5 by type of query."""
        return [float(self.job(job)["types"][kind]["nDCG@20,IoU>=0.5"]) for kind in kinds]

    def spread(self, job: str, *overs: float) -> Numbers:
        """Mean and deviation over seeds at each overlap, by default .5."""
        return [
            number
            for over in overs or (0.5,)
            for number in self.over_seeds(job, lambda own, name=f"nDCG@20,IoU>={over}": own["test"][name])
        ]

    def over_seeds(self, job: str, value: Callable[[Any], float]) -> Numbers:
        """Mean and deviation over seeds of what a function takes of each."""
        values = [value(own) for own in self.seeds(job)]
        return [statistics.mean(values), *([statistics.stdev(values)] if len(values) > 1 else [])]

    def spread_of_type(self, job: str, kind: str) -> Numbers:
        """Mean and deviation over seeds of one type of query."""
        return self.over_seeds(job, lambda own: own["types"][kind]["nDCG@20,IoU>=0.5"])

    def val(self, job: str) -> float:
        """nDCG@20 at IoU >= 0.5 on val, one training."""
        return self.ndcg(job, split="val")

    def mean_val(self, job: str) -> float:
        """The same, mean over seeds."""
        return self.over_seeds(job, lambda own: own["val"]["nDCG@20,IoU>=0.5"])[0]

    def recall(self, job: str, name: str) -> float:
        """A recall on test, one training."""
        return float(self.job(job)["recall"][name])

    def late_gain(self, job: str) -> float:
        """By what share val's best value rose in the last quarter of the last phase."""
        return _late_gain(self.job(job)["phases"][-1])

    def latest_gain(self, job: str) -> float:
        """The greatest of :meth:`late_gain` over seeds."""
        return max(_late_gain(own["phases"][-1]) for own in self.seeds(job))

    def untrained(self, job: str) -> float:
        """nDCG of the mean-pooled encoder on the features of a stage 1."""
        return float(self.job(job)["untrained"]["CLIP, mean pooled"]["nDCG@20,IoU>=0.5"])

    def part_of_bound(self, job: str, *, lines: bool = False) -> float:
        """Part of its stage 1's practical upper bound that a training reaches."""
        first = self.job(self.job(job)["job"]["stage1"])
        return self.ndcg(job) / (first["with_lines"]["beside"] if lines else first["bound"])


THIRD, LARGE, SMALL = Comparison("third"), Comparison("large"), Comparison("pool-small")

# ---- AxIoU on trained models -----------------------------------------------------------------------------

MEASURES, POOL_STUDY = "docs/benchmark/third/measures", "benchmarks/comparison/pool-small/measures"
AT_K = [f"R@{k},IoU>{theta}" for k in (1, 5, 10) for theta in OVERLAPS]


def agreement(first: str, *second: str, study: str = MEASURES) -> Numbers:
    """Least and greatest tau of a measure with others."""
    found = [
        float(row["tau_b"])
        for row in rows(f"{study}/agreement.csv")
        if row["first"] == first and row["second"] in second and row["second"] != first
    ]
    return [min(found), max(found)]


def self_agreement(study: str = MEASURES) -> Numbers:
    """Of halves of the queries, by AxIoU@10, @5, @1, and the least and the greatest R@K."""
    table = rows(f"{study}/self-agreement.csv")
    half = max(int(row["size"]) for row in table) // 2
    found = {row["measure"]: float(row["mean"]) for row in table if row["size"] == str(half)}
    others = [found[name] for name in AT_K]
    return [*(found[f"AxIoU@{k}"] for k in (10, 5, 1)), min(others), max(others)]


def tied(study: str = MEASURES) -> float:
    """The greatest share of queries on which all systems tie by an R@K."""
    return max(float(row["share"]) for row in rows(f"{study}/tied.csv"))


def noise(study: str = MEASURES) -> Numbers:
    """How far labels of level 2 move the measures with K = 1."""
    found = {(row["measure"], row["level"]): float(row["rmse"]) for row in rows(f"{study}/noise.csv")}
    return [found[name, "2"] for name in ("R@1,IoU>0.7", "AxIoU@1", "R@1,IoU>0.3")]


def selected(measure: str, study: str = MEASURES) -> float:
    """Mean z over all measures of the model that a measure picks on val."""
    found = [float(row["z"]) for row in rows(f"{study}/selection.csv") if row["picked_by"] == measure]
    return statistics.mean(found)


def selections(study: str = MEASURES) -> Numbers:
    """Of AxIoU@10, of AxIoU@1, and of the best and the worst of R@10."""
    tens = [selected(f"R@10,IoU>{theta}", study) for theta in OVERLAPS]
    return [selected("AxIoU@10", study), selected("AxIoU@1", study), max(tens), min(tens)]
