"""Jobs are trained once, interrupted or not; the report has every table, and says which rows are missing."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moviola.benchmark import run as running
from moviola.benchmark.findings import Findings
from moviola.benchmark.plan import PRESETS, Job, Preset, jobs
from moviola.benchmark.report import write_report
from moviola.benchmark.run import Bench, run_jobs
from moviola.benchmark.tables import BASELINES, NAMES, REFINERS, TABLES
from moviola.benchmark.world import World, prepare
from moviola.errors import InvalidValue
from moviola.measures import read_run
from moviola.retrieval import Retrieval
from moviola.training.judging import judge

SMALLER = ("model.hidden_size=16", "model.heads=2")
TOY = Preset(
    videos=20,
    seed=0,
    tops=(20,),
    top=20,
    seeds=(0,),
    segments=6,
    steps=dict.fromkeys(PRESETS["small"].steps, 2),
    sizes={
        "spr-stage1": ("model.layers=1",),
        "spr-clip": ("model.layers=1",),
        "spr-relo": SMALLER,
        "spr-relo-large": SMALLER,
        "reel": (*SMALLER, "loop.steps=60", "loop.optimizer.lr=1e-2"),
        "xml": ("model.hidden_size=16",),
        "reloclnet": SMALLER,
        "conquer": (*SMALLER, "model.feed_forward_size=32", "loop.batch_size=8", "sampling.negatives=2"),
        "prem": (*SMALLER, "model.feed_forward_size=32", "localizer.batch_size=4", "sampling.negatives=2"),
    },
    studies=False,
)


class Here:
    """Runs the jobs in this process, where a test can watch them."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work: Callable[..., Any], *columns: Iterable[Any]) -> Iterator[Any]:
        return map(work, *columns)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ProcessPoolExecutor", Here)


@pytest.fixture(scope="module")
def trained(world: World, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Every main job of the toy world, trained for next to nothing."""
    bench = Bench(world, tmp_path_factory.mktemp("trained"), TOY.segments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "ProcessPoolExecutor", Here)
        run_jobs(bench, jobs(TOY), workers=1, tell=lambda _: None)
    return bench


def without(trained: Bench, where: Path, *names: str) -> Bench:
    """The same with some results missing."""
    bench = replace(trained, out=where / "trained")
    shutil.copytree(trained.out, bench.out)
    for name in names:
        bench.result_file(name).unlink()
    return bench


@pytest.mark.parametrize("job", jobs(TOY), ids=lambda job: job.name)
def test_a_job_keeps_its_model_its_answers_and_its_figures(trained: Bench, job: Job) -> None:
    found, test = trained.result(job.name), trained.world.split("test")
    assert found["job"] == json.loads(json.dumps(vars(job)))
    assert found["test"] == pytest.approx(judge(read_run(trained.run_file(job.name)), test))
    val = trained.world.split("val")
    assert found["val"] == pytest.approx(judge(trained.answering(job).run(val), val))
    recalls = {"VCMR", "VR"} if job.stage1 is None else {"VCMR", "VR", "SVMR"}
    assert {name.split()[0] for name in found["recall"]} == recalls
    assert all(0 <= value <= 1 for value in found["recall"].values())
    assert found["parameters"] > 0
    assert (trained.model(job.name) / "config.json").is_file()


def test_what_is_done_is_not_done_again(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path, "reel-n20")
    before = {path: path.stat().st_mtime_ns for path in (bench.out / "results").iterdir()}
    told: list[str] = []
    run_jobs(bench, jobs(TOY), workers=1, tell=told.append)
    assert [line.split(":")[0] for line in told] == [f"{len(jobs(TOY))}/{len(jobs(TOY))} reel-n20"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    # The same seed on the same machine finds the same.
    assert bench.result("reel-n20")["test"] == trained.result("reel-n20")["test"]
    run_jobs(bench, jobs(TOY), workers=1, tell=told.append)
    assert len(told) == 1


def test_a_result_of_other_settings_is_refused(trained: Bench) -> None:
    other = [replace(job, overrides=(*job.overrides, "loop.seed=7")) for job in jobs(TOY)]
    with pytest.raises(InvalidValue, match=r"spr-stage1-n20\.json: was made with other settings"):
        run_jobs(trained, other, workers=1)


def test_a_world_of_other_films_is_refused(world: World) -> None:
    assert prepare(world.folder, videos=20, seed=0, workers=1) == world
    with pytest.raises(InvalidValue, match="holds 20 films of seed 0, not 40 of seed 32"):
        prepare(world.folder, videos=40, seed=32, workers=1)


def test_the_splits_share_no_film(world: World) -> None:
    train, val, test = (world.videos(name) for name in ("train", "val", "test"))
    assert (len(train), len(val), len(test)) == (12, 2, 6)
    assert sorted([*train, *val, *test]) == sorted(world.features.durations)
    assert world.split("train", 1).pairs.query.tolist() == sorted(set(world.split("train").pairs.query))


def report(bench: Bench, out: Path) -> tuple[str, dict[str, list[list[str]]]]:
    """The report's text and its tables by name."""
    told: list[str] = []
    text = write_report(bench, TOY, out, title="Toy", tell=told.append).read_text()
    assert told == [f"table: {name}" for name in TABLES]
    assert {path.stem for path in out.glob("*.csv")} == set(TABLES)
    tables = {}
    for name in TABLES:
        with (out / f"{name}.csv").open(newline="") as file:
            tables[name] = list(csv.reader(file))
    assert (out / "ndcg.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for table in tables.values():
        assert {len(row) for row in table} == {len(table[0])}
        for row in table:
            assert f"| {' | '.join(row)} |" in text
    return text, tables


def test_the_report_says_what_was_found(trained: Bench, tmp_path: Path) -> None:
    text, tables = report(trained, tmp_path)
    assert text.startswith("# Toy\n")
    assert "Not trained" not in text
    # 2 rows without training, 2 of stage 1, 10 models.
    assert [row[0] for row in tables["all-models"]][1:3] == ["random spans", "CLIP, mean pooled, coarse"]
    assert len(tables["all-models"]) == 1 + 2 + 2 + 10
    reel = next(row for row in tables["all-models"] if row[0] == "Reel (ours)")
    values = trained.result("reel-n20")["test"]
    assert reel[2:] == [f"{values[name]:.4f}" for name in tables["all-models"][0][2:]]
    assert len(tables["claims"]) == 1 + 5 + 9
    on_val = next(row for row in tables["all-models-val"] if row[0] == "Reel (ours)")
    values = trained.result("reel-n20")["val"]
    assert on_val[2:] == [f"{values[name]:.4f}" for name in tables["all-models-val"][0][2:]]


def changed(bench: Bench, name: str, **values: Any) -> None:
    path = bench.result_file(name)
    path.write_text(json.dumps({**bench.result(name), **values}))


def claims(bench: Bench) -> dict[str, str]:
    return {row[0]: row[2] for row in TABLES["claims"](Findings(bench, TOY)).rows}


def test_the_best_are_chosen_on_val(trained: Bench, tmp_path: Path) -> None:
    """However good another one is on test: val likes what test likes least."""
    bench, main = without(trained, tmp_path), "nDCG@20,IoU>=0.5"
    chosen = []
    for rivals in (REFINERS[:3], BASELINES):
        test = {name: bench.result(f"{name}-n20")["test"][main] for name in rivals}
        worst = min(rivals, key=lambda name: test[name])
        assert test[worst] < max(test.values())
        for name in rivals:
            values = bench.result(f"{name}-n20")["val"] | {main: float(name == worst)}
            changed(bench, f"{name}-n20", val=values)
        chosen.append(NAMES[worst])
    best = "best SPR ({}) over best baseline ({})".format(*chosen)
    assert any(claim.startswith(best) for claim in claims(bench))


def test_p_is_printed_only_where_something_follows(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    of_reel = "Reel minus SPR_CLIP, nDCG@20,IoU>=0.5"
    for converged in (True, False):
        for name in ("reel", "spr-clip"):
            changed(bench, f"{name}-n20", converged=converged or name == "reel")
        said = claims(bench)[of_reel]
        assert ("p = " in said) == converged
        assert ("val still rose: nothing follows" in said) != converged


def test_a_result_of_an_earlier_version_is_refused(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    changed(bench, "xml-n20", val=0.3)
    with pytest.raises(InvalidValue, match="has no figures on val"):
        bench.result("xml-n20")


def test_nothing_is_retrieved_twice_for_one_report(
    trained: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def counted(retrieval: Retrieval, queries: Any, **how: Any) -> Any:
        asked.append((retrieval.stage1.recipe, retrieval.segments))
        return propose(retrieval, queries, **how)

    propose = Retrieval.proposals
    monkeypatch.setattr(Retrieval, "proposals", counted)
    report(trained, tmp_path)
    assert len(asked) == len(set(asked)) > 1
    assert TOY.segments in {count for _, count in asked}


def test_tables_leave_out_what_is_missing_and_name_it(trained: Bench, tmp_path: Path) -> None:
    gone = ("reel-n20", "xml-n20", "spr-relo-large-n20")
    text, tables = report(without(trained, tmp_path, *gone), tmp_path / "report")
    assert f"Not trained, and missing below: {', '.join(sorted(gone, key=text.index))}." in text
    assert len(tables["all-models"]) == 1 + 2 + 2 + 7
    for table in tables.values():
        assert not {"Reel (ours)", "XML", "SPR_ReLo-L"} & {row[0] for row in table}
    assert not any("Reel" in cell for row in tables["claims"] for cell in row)
    assert all(row[3] == "–" for row in tables["number-of-segments"][1:])


def test_stage_1_alone_makes_a_report(trained: Bench, tmp_path: Path) -> None:
    rest = [job.name for job in jobs(TOY) if job.stage1]
    _, tables = report(without(trained, tmp_path, *rest), tmp_path / "report")
    assert len(tables["all-models"]) == 1 + 2 + 2
    assert [row[1] for row in tables["claims"][1:]] == ["several times"]
    of_jobs = list(TABLES)[list(TABLES).index("longer-training") :]
    assert [len(tables[name]) for name in of_jobs] == [1] * 6


def test_without_stage_1_there_is_no_report(world: World, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="spr-stage1-n20 is not trained yet"):
        write_report(Bench(world, tmp_path / "trained", 6), TOY, tmp_path / "report", title="Toy")
    assert not (tmp_path / "report").exists()
