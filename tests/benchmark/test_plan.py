"""The plans: every job has its own name, settings that its recipe takes, and a stage 1 that is planned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from moviola.benchmark.plan import FULL_STEPS, PRESETS, RELEVANT, SMALL_STEPS, TOPS, Job, jobs
from moviola.models.pretrained import build
from moviola.training.data import Sizes
from moviola.training.recipes import RECIPES, recipe
from moviola.training.settings import read_settings

SIZES = Sizes(visual=128, subtitle=0, query=128, clip_seconds=1.0, longest=80)


@pytest.fixture(params=list(PRESETS))
def plan(request: pytest.FixtureRequest) -> list[Job]:
    return jobs(PRESETS[request.param])


def test_names_are_unique_and_good_for_files(plan: list[Job]) -> None:
    assert [name for name, count in Counter(job.name for job in plan).items() if count > 1] == []
    assert all(set(job.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.") for job in plan)


def test_every_stage_1_is_a_job_before_those_that_need_it(plan: list[Job]) -> None:
    before: set[str] = set()
    for job in plan:
        assert job.stage1 is None or job.stage1 in before
        assert (job.stage1 is None) == (job.recipe == "spr-stage1")
        if job.recipe == "spr-stage1":
            before.add(job.name)
    assert all(job.stage1 for job in plan if recipe(job.recipe).needs)


def test_a_seeded_job_learns_from_a_stage_1_of_its_seed_and_size(plan: list[Job]) -> None:
    by_name = {job.name: job for job in plan}
    for job in plan:
        first = by_name.get(job.stage1 or "", job)
        assert (first.top, first.seed) == (job.top, job.seed)
        seeds = {
            loop.seed for loop in read_settings(recipe(job.recipe), overrides=job.overrides).loops.values()
        }
        assert seeds == {job.seed}


def test_every_setting_is_one_that_its_recipe_and_model_take(plan: list[Job]) -> None:
    for job in {(job.recipe, job.overrides): job for job in plan}.values():
        how = recipe(job.recipe)
        settings = read_settings(how, overrides=job.overrides)
        assert all(loop.steps for loop in settings.loops.values())
        model = build(how.architecture, {**how.sized(SIZES), **settings.model})
        assert sum(p.numel() for p in model.parameters()) < 3_000_000


def test_both_presets_train_every_recipe_and_every_study() -> None:
    small, full = (jobs(PRESETS[name]) for name in ("small", "full"))
    for plan in (small, full):
        assert {job.recipe for job in plan} == set(RECIPES)
        assert {job.name for job in plan if job.relevant} == set(RELEVANT)
    assert {job.name for job in small} < {job.name for job in full}
    assert {job.group for job in full} == {job.group for job in small} | {"seeds"}
    assert PRESETS["full"].tops == TOPS == (1, 20, 40)
    assert len(PRESETS["full"].seeds) == 3
    assert SMALL_STEPS.keys() == FULL_STEPS.keys() == RECIPES.keys()
    assert all(SMALL_STEPS[name] < FULL_STEPS[name] for name in RECIPES)


def test_a_plan_without_studies_has_the_main_rows_alone() -> None:
    plan = jobs(replace(PRESETS["small"], studies=False))
    assert {job.group for job in plan} == {"stage1", "main"}
    assert {job.recipe for job in plan} == set(RECIPES)
