"""Studies of measures (paper 001) on human annotations at full size, with made systems.

    python benchmarks/real_annotations/studies.py DATA [--out RESULTS] [--trials 1000] [--noisy 5]
    python benchmarks/real_annotations/studies.py DATA --figures FOLDER

DATA holds the published files that the paper used: `charades-sta/charades_sta_test.txt` with
`durations_test.csv`, 3,720 queries, and `activitynet-captions/val_2.json`, 17,031.

The paper's six systems are not here, so six are made, of the same kinds: one that has never seen a video
and answers with spans that are frequent in the data set (Blind); three that find the moment, each better
than the one before; and two of these that leave out suppression, so that their list repeats its first
answer (nonms). Results that depend on systems (agreement, self-agreement, ties and errors by label noise)
hold for these six; how far noise moves labels depends on the annotations alone. With --figures, the
effectiveness of the systems is drawn instead (the paper's figure 5).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.readers import read_annotations
from moviola.study.measures import Qrels, Run, evaluate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measure_studies import reports
from measure_studies.reports import STUDY_MEASURES, Study

Floats = NDArray[np.float64]

FILES: dict[str, tuple[str, str, str | None]] = {
    "charades-sta-test": (
        "charades", "charades-sta/charades_sta_test.txt", "charades-sta/durations_test.csv",
    ),
    "activitynet-val_2": ("activitynet", "activitynet-captions/val_2.json", None),
}  # fmt: skip
DEPTH = 10
SEED = 0


@dataclass(frozen=True, slots=True)
class System:
    """A made system.

    Attributes:
        found: how often the first answer is about the true moment; each further rank half as often.
        blur: deviation of its ends, as a share of the moment's length.
        repeats: the list repeats its first answer, blurred, instead of looking elsewhere.
    """

    found: float
    blur: float
    repeats: bool = False


SYSTEMS: dict[str, System] = {
    "blind": System(0.0, 0.0),
    "weak": System(0.25, 0.4),
    "middle": System(0.35, 0.3),
    "middle-nonms": System(0.35, 0.3, repeats=True),
    "strong": System(0.45, 0.2),
    "strong-nonms": System(0.45, 0.2, repeats=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of published annotations")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    parser.add_argument("--trials", type=int, default=1000, help="pairs of subsets per size (paper: 5000)")
    parser.add_argument("--noisy", type=int, default=5, help="noisy data sets per level (paper: 100)")
    parser.add_argument(
        "--figures", type=Path, help="folder: draw the systems' effectiveness, and nothing else"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (kind, path, durations) in FILES.items():
        found = read_annotations(options.data / path, kind, options.data / durations if durations else None)
        qrels, runs = judgements(found), made_runs(found)
        if options.figures:
            made = replace(reports.effectiveness(runs, qrels), name=f"effectiveness-{name}")
            print(*made.write(options.figures), flush=True)
            continue
        path_out = options.out / f"studies-{name}.json"
        result = studied(qrels, runs, options.trials, options.noisy)
        path_out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(path_out, flush=True)


def studied(qrels: Qrels, runs: Mapping[str, Run], trials: int, noisy: int) -> dict[str, Any]:
    """All studies of one data set."""
    queries = len(qrels.query_ids)
    sizes = [size for size in (50, 100, 200, 400, 800, 1600, 3200) if size <= queries // 2]
    return {
        "queries": queries,
        "effectiveness": {name: evaluate(run, qrels, STUDY_MEASURES).measures for name, run in runs.items()},
        "label_iou": table(reports.label_iou(qrels, datasets=noisy, seed=SEED)),
        "agreement": table(reports.agreement(runs, qrels)),
        "self_agreement": table(reports.self_agreement(runs, qrels, sizes=sizes, trials=trials, seed=SEED)),
        "tied": table(reports.tied(runs, qrels)),
        "label_noise": table(reports.label_noise(runs, qrels, datasets=noisy, seed=SEED)),
    }


def judgements(found: Annotations) -> Qrels:
    """Each caption as a query that its own moment answers."""
    videos = [found.videos[video] for video in found.video]
    return Qrels.from_columns(found.moment_ids, videos, found.start, found.end, np.ones(len(found)))


def made_runs(found: Annotations) -> dict[str, Run]:
    """The answers of all made systems, by name."""
    return {name: answers(found, system, SEED + n) for n, (name, system) in enumerate(SYSTEMS.items())}


def answers(found: Annotations, system: System, seed: int) -> Run:
    """Ten ranked moments of the right video for each query."""
    random = np.random.default_rng(seed)
    count = len(found)
    duration = found.durations[found.video]
    # As shares of the video; some annotated ends lie beyond it.
    start, end = found.start / duration, np.minimum(found.end / duration, 1.0)
    shape = (count, DEPTH)
    # A span that is frequent in the data set: another query's moment.
    guess = random.integers(0, count, shape)
    starts, ends = start[guess], end[guess]
    right = random.random(shape) < system.found * 0.5 ** np.arange(DEPTH)
    if system.repeats:
        starts, ends = (np.repeat(side[:, :1], DEPTH, axis=1) for side in (starts, ends))
        right = np.repeat(right[:, :1], DEPTH, axis=1)
    starts, ends = np.where(right, start[:, None], starts), np.where(right, end[:, None], ends)
    length = ends - starts
    blur = max(system.blur, 0.05 if system.repeats else 0.0)
    starts = np.clip(starts + random.normal(0, 1, shape) * blur * length, 0, 0.99)
    ends = np.clip(np.maximum(ends + random.normal(0, 1, shape) * blur * length, starts + 0.01), 0, 1)
    rows = np.repeat(np.arange(count), DEPTH)
    seconds = duration[rows]
    return Run.from_columns(
        [found.moment_ids[row] for row in rows], [found.videos[found.video[row]] for row in rows],
        starts.ravel() * seconds, ends.ravel() * seconds, np.tile(-np.arange(DEPTH, dtype=np.float64), count),
        queries=found.moment_ids,
    )  # fmt: skip


def table(study: Study) -> list[Mapping[str, Any]]:
    """A study's rows for JSON, rounded; what is not defined is null."""

    def cell(value: object) -> object:
        if isinstance(value, float):
            return round(value, 4) if np.isfinite(value) else None
        return value

    return [dict(zip(study.header, map(cell, row), strict=True)) for row in study.rows]


if __name__ == "__main__":
    main()
