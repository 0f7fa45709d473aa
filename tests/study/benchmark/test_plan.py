"""The plans: every job has its own name, settings that its recipe takes, and a stage 1 that is planned."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from comparison.plan import (
    CHOSEN_ON,
    CONQUERS,
    HARD,
    HARD_SHARE,
    LARGE,
    LINES_APART,
    MODELS,
    MORE_QUERIES,
    ORDER,
    OTHER_LABELS,
    OWN_STAGE1,
    PRESETS,
    RELEVANT,
    SENTENCES,
    SETTINGS,
    STRATEGIES,
    TOPS,
    TRUTH,
    WITH_LINES,
    WORLDS,
    Cut,
    Job,
    Preset,
    jobs,
    strategy_job,
)
from moviola.retrieval.trained_models import STAGE1S
from moviola.study.models.pretrained import build
from moviola.study.training.data import Sizes
from moviola.study.training.recipes import RECIPES, recipe
from moviola.study.training.settings import TrainingSettings, read_settings
from moviola.study.training.validation import OVER_TYPES

SIZES = Sizes(visual=128, subtitle=128, query=128, clip_seconds=1.0, longest=80)
THIRD = PRESETS["third"]
RESULTS = Path(__file__).parents[3] / "benchmarks/comparison/results"


@pytest.fixture(params=list(PRESETS))
def plan(request: pytest.FixtureRequest) -> list[Job]:
    return jobs(PRESETS[request.param])


def settings_of(job: Job) -> TrainingSettings:
    return read_settings(recipe(job.recipe), overrides=job.overrides)


def effective(job: Job) -> frozenset[tuple[str, str]]:
    """Overrides as they act: the last of a name counts."""
    return frozenset(dict(value.split("=", 1) for value in job.overrides).items())


def test_names_are_unique_and_good_for_files(plan: list[Job]) -> None:
    assert [name for name, count in Counter(job.name for job in plan).items() if count > 1] == []
    assert all(set(job.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.") for job in plan)


def test_every_stage_1_is_a_job_of_the_same_films_and_labels(plan: list[Job]) -> None:
    by_name = {job.name: job for job in plan}
    for job in plan:
        assert (job.stage1 is None) == (job.recipe in STAGE1S)
        if job.stage1:
            first = by_name[job.stage1]
            assert first.recipe == (OWN_STAGE1 if job.group == OWN_STAGE1 else "spr-stage1")
            assert (first.top, first.seed) == (job.top, job.seed)
            theirs, ours = WORLDS[first.world], WORLDS[job.world]
            assert theirs.similarity == ours.similarity
    assert all(job.stage1 for job in plan if recipe(job.recipe).needs)


def test_a_seeded_job_is_trained_with_its_seed(plan: list[Job]) -> None:
    for job in plan:
        assert {loop.seed for loop in settings_of(job).loops.values()} == {job.seed}


def test_every_setting_is_one_that_its_recipe_and_model_take(plan: list[Job]) -> None:
    for job in {(job.recipe, job.overrides): job for job in plan}.values():
        how, settings = recipe(job.recipe), settings_of(job)
        assert all(loop.steps for loop in settings.loops.values())
        model = build(how.architecture, {**how.sized(SIZES), **settings.model})
        assert sum(p.numel() for p in model.parameters()) < 3_000_000


def test_every_recipe_has_the_setting_that_was_best_on_val_of_other_films() -> None:
    """Of the three that were tried of each, as their results are kept; no other film is used for it."""
    assert SETTINGS.keys() == RECIPES.keys() - {OWN_STAGE1}
    for name in ORDER:
        tried = [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"develop-{name}-[1-3].json"))]
        assert len(tried) == 3
        best = max(tried, key=lambda one: one["selected"])
        assert set(SETTINGS[name]) <= set(best["job"]["overrides"])
    assert CHOSEN_ON not in {preset.films for preset in PRESETS.values()}
    assert len({preset.films for preset in PRESETS.values()}) == len(PRESETS)


def test_main_rows_have_three_seeds_at_n_20_and_one_elsewhere() -> None:
    rows = {job.name for job in jobs(THIRD) if job.world == "report"}
    models = [name for name in MODELS if name != "conquer"] + [f"conquer-{kind}" for kind in CONQUERS]
    assert THIRD.tops == TOPS == (1, 20, 40)
    for name in ("spr-stage1", *models):
        assert {f"{name}-n{top}" for top in TOPS} | {f"{name}-n20-seed{seed}" for seed in (1, 2)} <= rows


def test_table_5_is_whole_and_nothing_is_trained_twice() -> None:
    rows = {job.name: job for job in jobs(THIRD)}
    settings = [
        (job.recipe, job.seed, job.top, job.world, job.relevant, job.phi, job.stage1, job.lines,
         effective(job))
        for job in rows.values()
    ]  # fmt: skip
    assert len(set(settings)) == len(settings)
    for model in ("spr-clip", "spr-relo", "spr-relo-large"):
        for name in STRATEGIES:
            job = rows[strategy_job(model, name, THIRD)]
            sampling = settings_of(job).sampling
            assert job.top == 40
            strong, weak = (int(count) for count in name.split("-")) if name[0].isdigit() else (0, 0)
            expected = "strong-weak" if strong else name
            assert sampling.strategy == expected
            assert not strong or (sampling.strong, sampling.weak) == (strong, weak)


def test_hard_negatives_begin_within_the_budget() -> None:
    """At about the same share of the steps, whatever N and however long an epoch of a strategy is."""
    for job in jobs(THIRD):
        if job.recipe not in HARD or job.group == "hard":
            continue
        settings = settings_of(job)
        loop, sampling = settings.loops["train"], settings.sampling
        first = getattr(sampling, HARD[job.recipe].split(".")[1])
        assert first >= 1
        by_query = getattr(sampling, "strategy", "") == "strong-weak"
        examples = WORLDS[job.world].times * THIRD.queries * (1 if by_query else job.top)
        begins = first * -(-examples // loop.batch_size)
        assert loop.steps and 0.3 < begins / loop.steps < 0.7
        assert abs(begins - HARD_SHARE * loop.steps) <= -(-examples // loop.batch_size)


def test_rows_with_streams_weigh_them_and_weights_are_chosen_by_types() -> None:
    rows = {job.name: job for job in jobs(THIRD)}
    for name in ("xml-n20", "reloclnet-n20", "spr-relo-n20", "reel-n20", "prem-n20", "conquer-disjoint-n20"):
        assert list(settings_of(rows[name]).loops.values())[-1].select == OVER_TYPES
    small, large = (
        settings_of(rows[f"{name}-n20"]).loops["train"] for name in ("spr-relo", "spr-relo-large")
    )
    assert (small.steps, small.batch_size) == (large.steps, large.batch_size)
    for name in ("xml", "reloclnet"):
        settings = settings_of(rows[f"{name}-n20"])
        assert settings.model["stream_weights"] == "query"
        assert settings.sampling.even_types
    assert sum(bool(job.lines) for job in rows.values()) == len(WITH_LINES) + len(LINES_APART) + 1
    assert rows["reel-second-lines"].lines


def test_main_rows_have_the_settings_of_their_recipes_and_longer_rows_are_those_of_the_plan() -> None:
    plan = jobs(THIRD)
    assert {job.name for job in plan if job.group == "longer"} == {f"{row}-longer" for row in THIRD.longer}
    for job in plan:
        if job.group in ("stage1", "main", "seeds"):
            assert set(SETTINGS[job.recipe]) <= set(job.overrides)


def test_every_training_has_its_whole_budget(plan: list[Job]) -> None:
    for job in plan:
        assert all(loop.steps and not loop.patience for loop in settings_of(job).loops.values())


@pytest.mark.parametrize("name", ["third", "large"])
def test_longer_rows_have_the_same_schedule_over_more_steps(name: str) -> None:
    preset, rows = PRESETS[name], {job.name: job for job in jobs(PRESETS[name])}
    whole = [(model, f"{model}-n20", f"{model}-longer", times) for model, times in preset.longer.items()]
    fifth = [
        (model, f"{model}-fifth", f"{model}-fifth-longer", times)
        for model, times in preset.fifth_longer.items()
    ]
    assert bool(fifth) == (name == "large")
    for model, job, more, times in (*whole, *fifth):
        assert (rows[job].world, rows[job].stage1) == (rows[more].world, rows[more].stage1)
        usual, longer = (settings_of(rows[own]) for own in (job, more))
        for phase, loop in usual.loops.items():
            assert longer.loops[phase].steps == times * loop.steps
            assert longer.loops[phase].evaluate_every == pytest.approx(times * loop.evaluate_every, abs=times)
        if model in HARD:
            setting = HARD[model].split(".")[1]
            first, later = (getattr(settings.sampling, setting) for settings in (usual, longer))
            assert later == pytest.approx(times * first, abs=1)


def test_rows_of_the_second_edition_differ_from_the_first_by_a_running_mean_alone() -> None:
    rows = {job.name: job for job in jobs(THIRD)}
    for mark in ("", "-seed1", "-seed2"):
        first, second = rows[f"reel-n20{mark}"], rows[f"reel-second{mark}"]
        assert (first.stage1, first.seed) == (second.stage1, second.seed)
        loops = [settings_of(job).loops["train"] for job in (first, second)]
        assert (loops[0].average, loops[1].average) == (0, recipe("reel").settings.loops["train"].average)
        assert replace(loops[0], average=loops[1].average) == loops[1]
        assert settings_of(first).model == settings_of(second).model


def test_small_and_third_train_every_recipe_and_every_study() -> None:
    small, third = (jobs(PRESETS[name]) for name in ("small", "third"))
    for plan in (small, third):
        assert {job.recipe for job in plan} >= set(ORDER)
        assert {job.name for job in plan if job.relevant and not job.seed} == set(RELEVANT)
    fifth = {f"{model}-fifth" for model in LARGE}
    assert {job.name for job in small} - fifth < {job.name for job in third}
    assert {job.group for job in third} | {"fifth"} == (
        {job.group for job in small} | {"seeds", OWN_STAGE1, "clips", "lines"}
    )


@pytest.mark.parametrize("preset", ["small", "large"])
def test_rows_of_a_fifth_have_the_settings_and_steps_of_the_main_rows(preset: str) -> None:
    rows = {job.name: job for job in jobs(PRESETS[preset])}
    for model in PRESETS[preset].fifth:
        usual, fifth = rows[f"{model}-n20"], rows[f"{model}-fifth"]
        assert (fifth.recipe, fifth.top, fifth.seed) == (usual.recipe, usual.top, usual.seed)
        assert [WORLDS[job.world] for job in (usual, fifth)] == [Cut(), Cut(share=0.2)]
        assert fifth.stage1 == (usual.stage1 and "spr-stage1-fifth")
        own, other = ({value for value in job.overrides if "hard" not in value} for job in (usual, fifth))
        assert own == other


def test_large_has_the_rows_of_its_plan() -> None:
    assert {job.group for job in jobs(PRESETS["large"])} - {"longer"} == {"stage1", "main", "fifth"}


def test_studies_with_seeds_have_all_of_them_beside_the_main_row_that_they_are_compared_with() -> None:
    rows = {job.name: job for job in jobs(THIRD)}
    streams = [f"{model}-{kind}" for model in ("xml", "reloclnet") for kind in ("apart", "pictures")]
    strategies = [
        strategy_job(model, name, THIRD)
        for model in ("spr-clip", "spr-relo", "spr-relo-large")
        for name in STRATEGIES
    ]
    main = [job.name for job in rows.values() if job.group in ("main", "stage1") and not job.seed]
    studies = [*main, *streams, "prem-apart", "prem-image", *strategies, *RELEVANT]
    for name, seed in product(studies, THIRD.seeds[1:]):
        usual, other = rows[name], rows[f"{name}-seed{seed}"]
        assert other.seed == seed
        assert other.stage1 == (usual.stage1 and f"{usual.stage1}-seed{seed}")
        assert set(other.overrides) - set(usual.overrides) == {f"loop.seed={seed}"}


@pytest.mark.parametrize("preset", [PRESETS["small"], THIRD], ids=["small", "third"])
@pytest.mark.parametrize("similarity", [SENTENCES, TRUTH])
def test_rows_of_other_labels_differ_from_the_main_rows_by_their_world_alone(
    preset: Preset, similarity: str
) -> None:
    rows = {job.name: job for job in jobs(preset)}
    for model in OTHER_LABELS:
        usual, other = rows[f"{model}-n20"], rows[f"{model}-{similarity}"]
        assert (other.recipe, other.top, other.seed, other.overrides) == (
            usual.recipe, usual.top, usual.seed, usual.overrides,
        )  # fmt: skip
        assert [WORLDS[job.world] for job in (usual, other)] == [Cut(), Cut(similarity)]


def test_prem_on_true_labels_differs_by_its_world_alone() -> None:
    rows = {job.name: job for job in jobs(THIRD)}
    for usual, other in (("prem-n20", "prem-truth"), ("prem-video-only", "prem-video-only-truth")):
        own, true = rows[usual], rows[other]
        assert (true.recipe, true.top, true.seed, true.overrides) == (
            own.recipe, own.top, own.seed, own.overrides,
        )  # fmt: skip
        assert (true.world, true.stage1) == ("report-truth", "spr-stage1-truth")


@pytest.mark.parametrize("preset", [PRESETS["small"], THIRD], ids=["small", "third"])
def test_rows_with_more_queries_have_as_many_steps(preset: Preset) -> None:
    rows = {job.name: job for job in jobs(preset)}
    for row, (model, strategy) in MORE_QUERIES.items():
        name = strategy_job(model, strategy, preset) if strategy else f"{row}-n20"
        usual, more = rows[name], rows[f"{row}-more-queries"]
        assert (more.recipe, more.top, more.stage1) == (usual.recipe, usual.top, usual.stage1)
        assert [WORLDS[job.world] for job in (usual, more)] == [Cut(), Cut(times=2)]
        own, other = (
            {setting for setting in job.overrides if "hard" not in setting} for job in (usual, more)
        )
        assert own == other


def test_a_plan_without_studies_has_the_main_rows_alone() -> None:
    preset: Preset = replace(PRESETS["small"], studies=False, fifth=(), longer={})
    plan = jobs(preset)
    assert {job.group for job in plan} == {"stage1", "main"}
    assert {job.recipe for job in plan} == set(ORDER)
