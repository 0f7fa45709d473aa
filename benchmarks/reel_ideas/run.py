"""Ideas for Reel, each alone, beside the Reel of the comparison: three seeds, chosen on val, shown on test.

    python benchmarks/reel_ideas/run.py --preset third --out OUT
    python benchmarks/reel_ideas/run.py --demo DIR --seeds 0

OUT is a folder of `compare_models.py` with its world and trained stage 1 of each seed; what is done there
is kept, and several processes may work side by side. `--table` prints what is finished, and writes it. DIR is
that of `scripts/train_demo_models.py`, whose val alone is asked: 100 films instead of 30.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, its folder is there instead

from comparison.bench import Bench
from comparison.figures import OVER
from comparison.plan import FIRST_EDITION, PRESETS, seed_mark
from comparison.world import World
from moviola.errors import LibraryLocked
from moviola.files.locks import exclusive
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.study.measures import evaluate
from moviola.study.models.reel import Reel, ReelConfig
from moviola.study.training.data import Split
from moviola.study.training.experiment import Experiment
from moviola.study.training.first_stage import FirstStage
from moviola.study.training.loop import fit
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.validation import MEASURES, judge
from reel_ideas.answering import FeedbackRecipe
from reel_ideas.batches import IdeaTask
from reel_ideas.models import Distilled
from reel_ideas.rows import BASELINE, ROWS, Row

DEMO = (
    "model.hidden_size=128", "model.longest_span=16", "model.dropout=0.2", "loop.steps=1600",
    "loop.epochs=1000000", "loop.evaluate_every=320",
)  # fmt: skip
"""As in `scripts/train_demo_models.py`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="third", help="of compare_models.py")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--out", type=Path, help="its folder")
    place.add_argument("--demo", type=Path, help="folder with the films of the demo's models")
    parser.add_argument("--only", default="*", help="rows to train: patterns of names: 'vectors*,finer'")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--device", default="cpu", help="what trains: cpu, cuda, …; figures are made on the CPU"
    )
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="train nothing; print and write what is done"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    work: Ideas = (
        DemoIdeas(options.demo, options.device)
        if options.demo
        else ComparisonIdeas(Bench(options.out, PRESETS[options.preset]), options.device)
    )
    if options.table:
        table = work.table()
        write_json(options.table, table, indent=1)
        print(json.dumps(table, indent=1))
        return
    seeds = [int(seed) for seed in options.seeds.split(",")]
    wanted = [row for row in ROWS if any(fnmatch(row.name, only) for only in options.only.split(","))]
    for row, seed in work.pieces(wanted, seeds):
        found = work.piece(row, seed)
        print(f"{row.name} seed {seed}: val {found['val'][OVER[1]]:.4f}, {found['cpu_seconds']:.0f} s of CPU",
              flush=True)  # fmt: skip


class Ideas(ABC):
    """The rows in a folder.

    Attributes:
        folder: of results, and of the baselines' weights.
        seeds: of the table, and of the baselines that a distilled row learns from.
        device: what trains.
    """

    def __init__(self, folder: Path, seeds: Sequence[int], device: str) -> None:
        self.folder, self.seeds, self.device = folder, tuple(seeds), device

    @abstractmethod
    def prepared(self, seed: int, settings: Sequence[str] = ()) -> Experiment:
        """The training of the baseline with a seed, and with further settings."""

    @abstractmethod
    def test(self) -> Split | None:
        """The split that a row is shown on; None where val alone is asked."""

    def result_file(self, row: Row, seed: int) -> Path:
        """What a row of a seed found."""
        return self.folder / f"{row.name}-seed{seed}.json"

    def weights_file(self, seed: int) -> Path:
        """The weights of the baseline, which other rows need."""
        return self.folder / f"{BASELINE.name}-seed{seed}.pt"

    def pieces(self, rows: Sequence[Row], seeds: Sequence[int]) -> Iterator[tuple[Row, int]]:
        """Rows and seeds that are left and can be begun, each held while it is done."""
        while True:
            for row, seed in ((row, seed) for row in rows for seed in seeds):
                needed = self.seeds if row.model is Distilled else () if row.is_trained else (seed,)
                if self.result_file(row, seed).is_file() or not all(
                    self.weights_file(each).is_file() for each in needed
                ):
                    continue
                lock = self.folder / "locks" / f"{row.name}-seed{seed}"
                lock.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with exclusive(lock):
                        if self.result_file(row, seed).is_file():
                            continue
                        yield row, seed
                except LibraryLocked:
                    continue
                break
            else:
                return

    def piece(self, row: Row, seed: int) -> dict[str, Any]:
        """Train a row, and write what it is worth."""
        self.folder.mkdir(parents=True, exist_ok=True)
        experiment, begun = self.prepared(seed, row.settings), time.process_time()
        before = experiment.built_on[0]
        assert before is not None
        learned, val = (
            before.complete(own, row.recipe.needs) for own in (experiment.learned, experiment.val)
        )
        settings = experiment.settings
        torch.manual_seed(seed)
        model = row.model(ReelConfig(**{**learned.sizes.settings(), **settings.model}))
        if isinstance(model, Distilled):
            model.teachers = [self.baseline(each) for each in self.seeds]
        loop = settings.loops["train"]
        loop = replace(
            loop, steps=row.times * (loop.steps or 0), evaluate_every=row.times * loop.evaluate_every
        )
        course: dict[str, Any] = {}
        if row.is_trained:
            task = IdeaTask(
                model, model.loss, learned.features, learned.queries.cut(model.config.max_tokens),
                learned.pairs, lambda: judge(row.recipe.run(model, val, AnswerSettings()), val),
                loop.batch_size, changes=row.changes,
                proposals=learned.proposals if row.proposals else None, unknown=row.unknown,
            )  # fmt: skip
            fitted = fit(task, loop)
            curve = [[own["step"], round(own[loop.select], 5)] for own in fitted.history]
            course = {
                "steps": fitted.step,
                "best_step": fitted.best_step,
                "curve": curve,
                "device": loop.device,
            }
        else:
            model = self.baseline(seed)
        model = model.to("cpu").eval()
        if row is BASELINE:
            torch.save(model.state_dict(), self.weights_file(seed))
        found = {"row": row.name, "seed": seed, **course, **self._worth(row, model, val, loop.select, before)}
        found["cpu_seconds"] = time.process_time() - begun
        write_json(self.result_file(row, seed), found)
        return found

    def baseline(self, seed: int) -> Reel:
        """The trained baseline of a seed."""
        experiment = self.prepared(seed)
        model = Reel(ReelConfig(**{**experiment.learned.sizes.settings(), **experiment.settings.model}))
        model.load_state_dict(torch.load(self.weights_file(seed), weights_only=True))
        return model.to(self.device).eval().requires_grad_(requires_grad=False)

    def _worth(self, row: Row, model: Reel, val: Split, select: str, before: FirstStage) -> dict[str, Any]:
        """Figures on val and on test, as a row answers with what val chose."""
        recipe, how = row.recipe, AnswerSettings()
        if row.weighs_proposals:
            how = replace(how, proposal_weight=recipe.proposal_weight(model, val, how, select))
        worth: dict[str, Any] = {"proposal_weight": how.proposal_weight}
        worth |= recipe.settle(model, val, how, select)
        if isinstance(recipe, FeedbackRecipe):
            recipe = recipe.chosen(model, val, how, select)
            worth["share"] = recipe.share
        worth["val"] = judge(recipe.run(model, val, how), val)
        if (test := self.test()) is not None:
            begun = time.process_time()
            run = recipe.run(model, before.complete(test, recipe.needs), how)
            worth["query_seconds"] = (time.process_time() - begun) / len(test.queries)
            found = evaluate(run, test.pairs.qrels, MEASURES)
            worth["test"] = judge(run, test)
            worth["per_query"] = {name: found.per_query[name].round(5).tolist() for name in OVER}
        return worth

    def table(self) -> list[dict[str, Any]]:
        """Of each row the mean over its seeds, and by how much each is above the baseline of that seed."""
        table = []
        for row in ROWS:
            results = {
                seed: read_json(self.result_file(row, seed))
                for seed in self.seeds
                if self.result_file(row, seed).is_file()
            }
            if results:
                table.append({"row": row.name, "title": row.title, **self._summary(results)})
        return table

    def _summary(self, results: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
        base = {seed: read_json(self.result_file(BASELINE, seed)) for seed in results}
        summary: dict[str, Any] = {"seeds": list(results)}
        for split in (name for name in ("val", "test") if name in base[next(iter(base))]):
            own = np.array([[found[split][name] for name in OVER] for found in results.values()])
            plain = np.array([[base[seed][split][name] for name in OVER] for seed in results])
            deviation = own.std(axis=0, ddof=1) if len(own) > 1 else np.zeros(len(OVER))
            summary[split] = {
                "mean": own.mean(axis=0).round(4).tolist(),
                "deviation": deviation.round(4).tolist(),
                "above": (own - plain).round(4).tolist(),
                "mean_above": (own - plain).mean(axis=0).round(4).tolist(),
            }
        costs = [found["cpu_seconds"] for found in results.values()]
        summary["cpu_seconds"] = round(float(np.mean(costs)))
        if "test" in summary:
            times = [found["query_seconds"] for found in results.values()]
            summary["query_ms"] = round(1000 * float(np.mean(times)), 1)
        return summary


class ComparisonIdeas(Ideas):
    """On the films of a comparison, beside its Reel."""

    def __init__(self, bench: Bench, device: str = "cpu") -> None:
        super().__init__(bench.out / "ideas", bench.preset.seeds, device)
        self.bench = bench

    def prepared(self, seed: int, settings: Sequence[str] = ()) -> Experiment:
        """The training of the comparison's Reel, first edition, with a seed and with further settings."""
        bench = self.bench
        name = f"reel-n{bench.preset.top}{seed_mark(seed)}"
        (job,) = (job for job in bench.jobs() if job.name == name)
        world, (stage1, _) = bench.world(job.world), bench.sources(job)
        return Experiment.prepare(
            "reel", world.features, train=world.pairs("train"), val=world.pairs("val"),
            train_videos=world.videos("train"), val_videos=world.videos("val"), top=job.top,
            stage1=stage1, segments=bench.preset.segments,
            overrides=(*job.overrides, f"loop.device={self.device}", *settings),
        )  # fmt: skip

    def test(self) -> Split | None:
        """The comparison's."""
        return self.bench.world("report").split("test")


class DemoIdeas(Ideas):
    """On the films of the demo's models, with their settings."""

    def __init__(self, work: Path, device: str = "cpu") -> None:
        super().__init__(work / "ideas", (0,), device)
        self.world = World(work)

    def prepared(self, seed: int, settings: Sequence[str] = ()) -> Experiment:
        """The training of the demo's Reel, first edition, with a seed and with further settings."""
        world = self.world
        return Experiment.prepare(
            "reel", world.features, train=world.pairs("train"), val=world.pairs("val"),
            train_videos=world.videos("train"), val_videos=world.videos("val"), top=20,
            stage1=DEMO_MODELS["stage1"],
            overrides=(*DEMO, *FIRST_EDITION, f"loop.seed={seed}", f"loop.device={self.device}", *settings),
        )  # fmt: skip

    def test(self) -> Split | None:
        """None: it is asked once, by the script."""
        return None


if __name__ == "__main__":
    main()
