"""Does Reel know when nothing answers a query: its learned log odds beside its calibrated score.

    python benchmarks/answerable.py FILMS OUT [--steps 500] [--seeds 0 1 2]

FILMS is a gridhouse of `moviola gridhouse`, without a narrator. Its annotations are written to OUT, in
one pool, with half as many queries that nothing answers as others, in the same words. Reel is trained on the
demo's stage 1 with and without ``model.answerable``, on the same pair files; without it, such queries are not
learned from, but calibrate its scores on val, too. The library then answers the test queries as `moviola
search` does, and the measures of Generalized Moment Retrieval judge its answers. Without the option a query
is as sure of its answer as its best score; with it the log odds are in the scores, and alone in a column of
their own. Then each query is about one video, as in Soccer-GMR: that of its first best moment, one by chance
where nothing answers, and the measures are those of that benchmark's evaluator.

A training is a piece: OUT/NAME.json is kept, not made again; OUT/table.csv has a line for each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from measuring import arguments
from moviola import Library
from moviola.files.rows import read_json
from moviola.files.writing import write_csv, write_json
from moviola.library import open_features
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.retrieval.saved.description import read_description
from moviola.search import SearchOptions
from moviola.study.datasets.gridhouse import annotate
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Run, auroc, auroc_interval, evaluate, read_qrels
from moviola.study.measures.public import Answered, soccer_gmr
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.data import Split
from moviola.study.training.experiment import Experiment

ABSENT, TOP, DEPTH = 0.5, 20, 40
MEASURES = (
    "AUROC", "Rej-F1,score<=0.2", "Rej-F1,score<=0.5", "Rej-Acc,score<=0.5", "G-mIoU@5,score<=0.5", "mR@5",
    "mR+@5", "nDCG@20,IoU>=0.5",
)  # fmt: skip
ROWS = {"reel": "false", "reel-answerable": "true"}


def main() -> None:
    options = arguments(__doc__, "films", "out", steps=500, seeds=[0, 1, 2])
    torch.set_num_threads(1)
    pairs = options.out / "annotations"
    if not (pairs / "test.json").is_file():
        annotate(pairs, options.films, similarity="slots", one_pool=True, tops=(TOP,), absent=ABSENT)
    with Library(options.out / "library", encoder="demo", sentence_encoder="none") as library:
        library.index(options.films / "videos", ocr=False)
        library.indexer.use(stage1="demo", refiner="none")
    for seed in options.seeds:
        for name in ROWS:
            if not (path := options.out / f"{name}-{seed}.json").is_file():
                write_json(path, measured(options.out, name, seed, options.steps))
                print(path, read_json(path)["measures"], flush=True)
    write_csv(options.out / "table.csv", *table(options.out))


def measured(out: Path, name: str, seed: int, steps: int) -> dict[str, Any]:
    """Train a row, and measure the library's answers with it."""
    begun, pairs, model = time.process_time(), out / "annotations", out / "models" / f"{name}-{seed}"
    source, stage1 = open_features(out / "library"), DEMO_MODELS["stage1"]
    settings = (
        f"model.answerable={ROWS[name]}", "model.hidden_size=128", "model.longest_span=16",
        f"loop.steps={steps}", "loop.epochs=1000000", f"loop.evaluate_every={-(-steps // 8)}",
        "loop.optimizer.lr=2e-3", f"loop.seed={seed}",
    )  # fmt: skip
    if not (model / "config.json").is_file():
        _train(model, source, pairs, stage1, settings)
    qrels, found = read_qrels(pairs / "test.json"), {}
    calibration = read_description(model).extra.get("calibration", {})
    run = searched(out, model, pairs / "test.json")
    results = evaluate(run, qrels, MEASURES)
    found = {measure: round(float(results.measures[measure]), 4) for measure in MEASURES}
    return {
        "queries": {split: counts(pairs / file) for split, file in FILES.items()},
        "steps": steps, "measures": found, "interval": interval(run, pairs / "test.json"),
        "alone": alone(model, source, stage1, pairs / "test.json"),
        "soccer_gmr": in_one_video(out, model, pairs / "test.json"),
        "calibration": {key: value for key, value in calibration.items() if key != "words"},
        "cpu_seconds": round(time.process_time() - begun, 1),
    }  # fmt: skip


def _train(model: Path, source: Any, pairs: Path, stage1: Path, settings: Sequence[str]) -> None:
    Experiment.prepare(
        "reel", source, train=pairs / f"train_top{TOP}.json", val=pairs / "val.json", stage1=stage1,
        overrides=settings,
    ).train(model)  # fmt: skip


FILES = {"train": f"train_top{TOP}.json", "val": "val.json", "test": "test.json"}


def counts(path: Path) -> list[int]:
    """Queries that something answers, and others."""
    answered = [bool(entry["relevant_moment"]) for entry in read_json(path)]
    return [sum(answered), len(answered) - sum(answered)]


def searched(out: Path, model: Path, queries: Path) -> Run:
    """What `moviola search` answers with a model."""
    given = read_queries(queries)
    with Library(out / "library") as library:
        library.indexer.use(refiner=str(model))
        answers = library.search_many(given, SearchOptions(top_k=DEPTH, by="visual"))
    rows = [
        (query.query_id, moment.video_id, moment.start, moment.end, moment.score)
        for query, moments in zip(given, answers, strict=True)
        for moment in moments
    ]
    return Run.from_columns(
        *zip(*rows, strict=True), queries=[query.query_id for query in given], ranked=True
    )


def interval(run: Run, queries: Path) -> list[float]:
    """The 95 % interval of AUROC over queries, by the best score of each."""
    best = {query: max((own["score"] for own in rows), default=-np.inf) for query, rows in run.rows().items()}
    sure: dict[bool, list[float]] = {True: [], False: []}
    for entry in read_json(queries):
        sure[bool(entry["relevant_moment"])].append(best[str(entry["query_id"])])
    return [round(bound, 4) for bound in auroc_interval(sure[True], sure[False])]


def alone(model: Path, source: Any, stage1: Path, queries: Path) -> list[float] | None:
    """AUROC of the log odds alone, with the interval over queries; None without them."""
    split = Split.read(source, queries)
    sure = AnsweringModel.open(model, source.facts, stage1=stage1).moments(split).answerable
    if sure is None:
        return None
    absent = np.isin(np.arange(len(sure)), split.pairs.unanswered)
    sure = np.nan_to_num(sure, nan=-np.inf)
    return [
        round(v, 4)
        for v in (auroc(sure[~absent], sure[absent]), *auroc_interval(sure[~absent], sure[absent]))
    ]


SHOWN = ("AUROC", "Rej-F1@0.4", "Acc@0.4", "mAP", "mR@5", "mR+@5", "G-mIoU@1 (paper)")


def in_one_video(out: Path, model: Path, queries: Path) -> dict[str, float]:
    """Soccer-GMR's measures, in percent, of searches in the one video that each query is about."""
    draw, answers = np.random.default_rng(0), []
    with Library(out / "library") as library:
        library.indexer.use(refiner=str(model))
        films = sorted(read_json(out / "annotations" / "video_corpus.json"))
        for entry in read_json(queries):
            truths, film = entry["relevant_moment"], films[int(draw.integers(len(films)))]
            film = max(truths, key=lambda own: own["relevance"])["video_name"] if truths else film
            found = library.search(entry["query"], SearchOptions(top_k=10, by="visual", videos=[film]))
            answers.append(Answered.of(
                [own["timestamp"] for own in truths if own["video_name"] == film],
                [[moment.start, moment.end, moment.score] for moment in found],
            ))  # fmt: skip
    figures = soccer_gmr(answers)
    return {name: round(figures[name], 2) for name in SHOWN}


def table(out: Path) -> tuple[list[str], list[list[object]]]:
    """Header and rows of what is there."""
    rows: list[list[object]] = []
    for name in ROWS:
        for path in sorted(out.glob(f"{name}-[0-9].json")):
            found = read_json(path)
            named = [found["soccer_gmr"][measure] for measure in SHOWN]
            rows.append([
                name, path.stem[-1], *found["measures"].values(), (found["alone"] or [""])[0], *named,
            ])  # fmt: skip
    columns = (f"one video: {measure}" for measure in SHOWN)
    return ["row", "seed", *MEASURES, "AUROC of the log odds alone", *columns], rows


if __name__ == "__main__":
    main()
