"""One pool of films, as in the papers: what is common, what is apart, and rows from end to end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from comparison.bench import Bench
from comparison.findings import Findings
from comparison.plan import (
    ALIGNED,
    CONTROLS,
    IN_POOL,
    PHIS,
    POOL,
    PRESETS,
    REGULARISED,
    RELEVANT,
    SCRAMBLED,
    THETAS,
    TOPS,
    Preset,
    jobs,
    seed_mark,
)
from comparison.report import _about
from comparison.run import run_pieces, what_is_left
from comparison.runs import kept_answers, write_runs
from comparison.studies import STUDIES
from comparison.world import World, require_encoder
from moviola.errors import EncoderMismatch
from moviola.study.measures import evaluate
from moviola.study.models.pretrained import build
from moviola.study.training.data import Sizes
from moviola.study.training.optimizers import make_optimizer
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import read_settings
from toy_world import MANY_EVENTS, toy_world

ROWS = ("spr-stage1", "xml", "prem-given")


@pytest.fixture(scope="module")
def pool(bench: Bench, toy: Preset, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The toy comparison in one pool, with the same rows on films that are apart."""
    given = {"prem-given": (*toy.sizes["prem"],)}
    preset = replace(
        toy, world=POOL, recipes=ROWS, unseen=ROWS, conquers=("general",), sizes={**toy.sizes, **given}
    )
    made = Bench(tmp_path_factory.mktemp("pool"), preset)
    shutil.copytree(bench.world("report").folder, made.world(POOL).folder)
    for split in ("train", "val", "test"):
        rows = toy_world(toy.videos, events=MANY_EVENTS).queries(made.world(POOL).videos(split))
        path = made.world(POOL).pairs(split)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps([{**row, "query_id": f"{split}-{row['query_id']}"} for row in rows]))
    run_pieces(made, note=lambda _: None)
    return made


def test_a_row_goes_from_films_to_its_table(pool: Bench, toy: Preset) -> None:
    """All films are searched and learned from in one pool, and each split's own where they are apart."""
    assert what_is_left(pool).names == ()
    whole, apart = pool.world(POOL), pool.world("report")
    for split, own in (("train", 12), ("val", 2), ("test", 6)):
        assert len(whole.split(split).features) == toy.videos
        assert len(apart.split(split).features) == own
    learned = whole.split("train").pairs
    assert len({learned.videos[video] for video in learned.video[learned.moment].tolist()}) == toy.videos
    for job in pool.jobs():
        searched = pool.world(job.world).split("test").features.video_ids
        answered = kept_answers(pool, job.name, "test")
        assert answered is not None
        assert set(answered.video_ids) <= set(searched)
    table = STUDIES["pool"](Findings(pool))
    assert len(table.rows) == 2 * len(ROWS)
    assert "all searched by the queries of each split" in _about(Findings(pool))


def test_kept_answers_do_for_a_model(pool: Bench, tmp_path: Path) -> None:
    """They are those of the row, compressed, and enough for the studies of measures."""
    copy = replace(pool, out=tmp_path / "pool")
    shutil.copytree(pool.out, copy.out)
    shutil.rmtree(copy.out / "models")
    assert write_runs(copy, tmp_path / "runs", lambda _: None) == len(pool.jobs())
    for name in ("xml-n20", "prem-given-n20"):
        run, job = kept_answers(copy, name, "test"), pool.job(name)
        assert run is not None
        qrels = pool.world(job.world).split("test").pairs.qrels
        found = evaluate(run, qrels, ["nDCG@20,IoU>=0.5"]).measures["nDCG@20,IoU>=0.5"]
        assert found == pytest.approx(pool.result(name)["test"]["nDCG@20,IoU>=0.5"], abs=1e-12)
    plain = sum(path.stat().st_size for path in (tmp_path / "runs").glob("t*/*-*.json"))
    assert sum(path.stat().st_size for path in (copy.out / "answers").glob("*-test.json.gz")) < plain / 2


def test_the_plan_has_three_seeds_at_20_and_one_elsewhere() -> None:
    plan, preset = jobs(PRESETS["pool"]), PRESETS["pool"]
    names = {*IN_POOL, *(f"conquer-{kind}" for kind in preset.conquers)} - {"conquer"}
    count = Counter(
        (job.name.split("-n")[0], job.top) for job in plan if job.group in ("stage1", "main", "seeds")
    )
    assert count == {(name, top): 3 if top == 20 else 1 for name in names for top in TOPS}
    assert {job.name for job in plan if job.world == "report"} == {f"{name}-unseen" for name in names}
    assert {job.world for job in plan} == {POOL, SCRAMBLED, "report"}
    assert {job.name for job in plan if job.world == SCRAMBLED} == {f"{name}-scrambled" for name in CONTROLS}
    assert [job.name for job in plan if "model.aligned_start=true" in job.overrides] == [
        f"{name}-aligned" for name in ALIGNED
    ]
    assert [job.name for job in plan if job.group == "readings"] == ["spr-relo-5-20", "spr-relo-5-20-trained"]


def test_the_small_pool_is_the_same_task_on_pictures_alone(tmp_path: Path) -> None:
    """The rows of the pool but regularisation, by a third of its steps; all queries are taken."""
    small, pool = PRESETS["pool-small"], PRESETS["pool"]
    own = replace(small, longer={}, related=False)
    rows, others = (
        {job.name: job for job in jobs(preset) if job.group != "regularised"} for preset in (own, pool)
    )
    assert set(others) == set(rows)
    for name, job in rows.items():
        assert (job.world, job.recipe, job.stage1) == (
            others[name].world,
            others[name].recipe,
            others[name].stage1,
        )
        steps, usual = (
            [
                loop.steps or 0
                for loop in read_settings(recipe(one.recipe), overrides=one.overrides).loops.values()
            ]
            for one in (job, others[name])
        )
        assert [3 * count for count in steps] == pytest.approx(usual, abs=2)
    assert not small.narrator and Bench(tmp_path, small).world(POOL).queries is None
    assert Bench(tmp_path, pool).world(POOL).queries == 500


def test_the_small_pool_has_related_pairs_with_each_seed() -> None:
    """XML at N = 1 beside its variants, each seed; the thresholds that only the small pool has, once."""
    plan = {job.name: job for job in jobs(PRESETS["pool-small"])}
    marks = [seed_mark(seed) for seed in PRESETS["pool-small"].seeds]
    by_phi = {f"xml-pr-{phi}": phi for phi in PHIS}
    names = {f"{name}{mark}" for name in (*RELEVANT, *by_phi) for mark in marks}
    names |= {"xml-pr-0.6", "xml-pr-0.8"}
    assert {name for name, job in plan.items() if job.group == "relevant"} == names
    assert all(f"xml-n1{mark}" in plan for mark in marks)
    assert {(plan[name].top, plan[name].world) for name in names} == {(1, POOL)}
    assert [plan[f"xml-pr-{theta}"].relevant for theta in THETAS] == list(THETAS)
    assert [(plan[name].phi, plan[name].relevant) for name in by_phi] == [(phi, 0.9) for phi in PHIS]


def test_scrambled_texts_are_judged_by_what_they_are_made_of(bench: Bench) -> None:
    """A preset with such rows was refused for features that its first call would have made."""
    scrambled = bench.world(SCRAMBLED)
    assert not (scrambled.folder / "features-scrambled").exists()
    require_encoder(scrambled, "1")
    with pytest.raises(EncoderMismatch, match="but revision 2 is needed"):
        require_encoder(scrambled, "2")


@pytest.mark.parametrize("row", PRESETS["pool"].regularised)
def test_regularisation_reaches_every_part_of_a_baseline(row: str) -> None:
    """Each kind alone, in each phase: all dropout, the decay of the optimiser, the mean, the rate."""
    by_name = {job.name: job for job in jobs(PRESETS["pool"])}
    sizes = Sizes(visual=128, subtitle=128, query=128, clip_seconds=1.0, longest=80)
    found = {}
    for kind in ("n20", *REGULARISED):
        job = by_name[f"{row}-{kind}"]
        how, settings = recipe(job.recipe), read_settings(recipe(job.recipe), overrides=job.overrides)
        model = build(how.architecture, {**how.sized(sizes), **settings.model})
        loops = settings.loops.values()
        decays = {
            group["weight_decay"]
            for loop in loops
            for group in make_optimizer(model, loop.optimizer, 10)[0].param_groups
        } - {0.0}
        found[kind] = {
            "dropout": {part.p for part in model.modules() if isinstance(part, nn.Dropout)},
            "decay": decays,
            "mean": {loop.average for loop in loops},
            "rate": {loop.optimizer.lr for loop in loops},
        }
    usual = found.pop("n20")
    changed = {"dropout": {0.3}, "decay": {0.1}, "mean": {0.99}, "rate": {4e-3}}
    assert all(usual[kind] != value and len(usual[kind]) == 1 for kind, value in changed.items())
    assert found == {kind: {**usual, kind: value} for kind, value in changed.items()}


def test_the_small_pool_regularises_where_films_are_apart() -> None:
    """There val stops rising; each row beside the same without, on the same films and stage 1."""
    plan = {job.name: job for job in jobs(PRESETS["pool-small"])}
    regularised = {name: job for name, job in plan.items() if job.group == "regularised"}
    rows = PRESETS["pool-small"].regularised_unseen
    assert set(regularised) == {f"{row}-unseen-{kind}" for row in rows for kind in REGULARISED}
    for name, job in regularised.items():
        usual = plan[name.rpartition("-")[0]]
        assert (job.world, job.stage1, job.top) == (usual.world, usual.stage1, usual.top)
        assert job.overrides[: len(usual.overrides)] == usual.overrides


def test_a_world_of_one_pool_has_annotations_of_its_own(world: World) -> None:
    whole = replace(world, cut=replace(world.cut, one_pool=True))
    assert whole.pairs("train").parent.name == "annotations-pool"
    assert whole.videos("train") == whole.videos("test") == sorted(world.features.durations)
