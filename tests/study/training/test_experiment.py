"""Training and answering from Python: a folder, a card and a calibration; scores as search shows them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.errors import DataError, EncoderMismatch, InvalidValue
from moviola.features import FeatureFolder
from moviola.retrieval import Calibration, load_refiner
from moviola.retrieval.saved.description import read_description
from moviola.study.measures import Run
from moviola.study.training.answering import AnsweringModel, answer
from moviola.study.training.experiment import Experiment, TrainedModel

SETTINGS: dict[str, list[str]] = {
    "spr-stage1": ["model.layers=1", "model.heads=2", "loop.steps=30"],
    "reel-stage1": ["model.hidden_size=16", "model.heads=2", "loop.steps=60"],
    "reel": ["model.hidden_size=16", "model.heads=2", "model.longest_span=8", "loop.steps=60"],
    "spr-relo": ["model.hidden_size=16", "model.heads=2", "sampling.strategy=standard", "loop.steps=3"],
    "xml": ["model.hidden_size=16", "model.heads=2", "loop.steps=2"],
}
QUICK = ["loop.optimizer.lr=1e-2", "loop.batch_size=8", "loop.evaluate_every=30"]


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TrainedModel]:
    """``trained(model)``, trained once."""
    out, done = tmp_path_factory.mktemp("models"), dict[str, TrainedModel]()

    def make(name: str) -> TrainedModel:
        if name not in done:
            refines = name in {"reel", "spr-relo"}
            done[name] = Experiment.prepare(
                name, world.features, train=world.folder / "train.json", val=world.folder / "val.json",
                train_videos=world.train_videos, val_videos=world.val_videos,
                stage1=make("spr-stage1").folder if refines else None, segments=6,
                overrides=[*SETTINGS[name], *QUICK],
            ).train(out / name)  # fmt: skip
        return done[name]

    return make


def asked(world: Any, model: TrainedModel, **how: Any) -> Any:
    val = world.folder / "val.json"
    return answer(model.folder, world.features, val, videos=world.val_videos, **{"segments": 6, **how})


def columns(run: Run) -> list[tuple[str, str, float, float]]:
    """Every moment of a run, in order."""
    return [(q, m["video_id"], m["start"], m["end"]) for q, rows in run.rows().items() for m in rows]


def scores(run: Run) -> np.ndarray:
    return np.array([m["score"] for rows in run.rows().values() for m in rows])


def test_a_model_is_trained_calibrated_and_saved(world: Any, trained: Callable[[str], TrainedModel]) -> None:
    made = trained("reel")
    assert made.calibrated is True
    about = read_description(made.folder)
    assert about.extra == dict(made.facts)
    assert about.extra["stage1"] == "spr-stage1"
    assert Calibration.of(about.extra, made.folder) is not None
    assert (made.folder / "README.md").read_text().startswith("# reel\n")
    assert (made.folder / "run" / "log.csv").is_file()
    assert trained("spr-stage1").calibrated is None  # not a refiner


def test_without_a_calibration_proposals_have_no_weight(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.study.training.fit_calibration.fit", lambda *_: None)
    monkeypatch.setattr("moviola.study.training.recipes.reel.ReelRecipe.proposal_weight", lambda *_: 50.0)
    stage1 = trained("spr-stage1").folder
    made = Experiment.prepare(
        "reel", world.features, train=world.folder / "train.json", val=world.folder / "val.json",
        train_videos=world.train_videos, val_videos=world.val_videos, stage1=stage1, segments=6,
        overrides=[*SETTINGS["reel"], *QUICK],
    ).train(tmp_path / "reel")  # fmt: skip
    assert "proposal_weight" not in made.facts
    assert asked(world, made, stage1=stage1).figures == pytest.approx(made.facts["val"])


def test_the_weight_of_proposals_is_kept_and_used(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path
) -> None:
    made, stage1 = trained("reel"), trained("spr-stage1").folder
    folder = shutil.copytree(made.folder, tmp_path / "reel")
    content = json.loads((folder / "config.json").read_text())
    for weight in (3.0, 0):
        content["extra"]["proposal_weight"] = weight
        (folder / "config.json").write_text(json.dumps(content))
        assert getattr(load_refiner(folder, "a"), "proposal_weight") == weight  # noqa: B009 - of trained ones
        ready = AnsweringModel.open(folder, world.features.facts, stage1=stage1, segments=6)
        assert ready.how.proposal_weight == weight
    for weight in (-1, "3", True, float("nan")):
        content["extra"]["proposal_weight"] = weight
        (folder / "config.json").write_text(json.dumps(content))
        with pytest.raises(DataError, match=r"proposal_weight = .* is no number"):
            load_refiner(folder, "a")


@pytest.mark.parametrize("segments", [0, -1])
def test_numbers_of_segments_below_1_are_refused(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path, segments: int
) -> None:
    stage1 = trained("spr-stage1")
    with pytest.raises(InvalidValue, match=f"segments={segments}: give at least 1"):
        asked(world, stage1, segments=segments)
    with pytest.raises(InvalidValue, match=f"segments={segments}: give at least 1"):
        Experiment.prepare(
            "reel", world.features, train=world.folder / "train.json", val=world.folder / "val.json",
            stage1=stage1.folder, segments=segments,
        ).train(tmp_path / "reel")  # fmt: skip


def test_reels_own_stage_1_finds_what_it_is_built_on(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path
) -> None:
    first = trained("reel-stage1")
    assert asked(world, first).run.query_ids == world.val.queries.query_ids
    made = Experiment.prepare(
        "reel", world.features, train=world.folder / "train.json", val=world.folder / "val.json",
        train_videos=world.train_videos, val_videos=world.val_videos, stage1=first.folder, segments=6,
        overrides=[*SETTINGS["reel"], *QUICK],
    ).train(tmp_path / "reel")  # fmt: skip
    assert asked(world, made, stage1=first.folder).figures == pytest.approx(made.facts["val"])


@pytest.mark.parametrize("name", ["reel", "spr-relo"])
def test_answers_are_those_that_chose_the_weights(
    world: Any, trained: Callable[[str], TrainedModel], name: str
) -> None:
    made = trained(name)
    found = asked(world, made, stage1=trained("spr-stage1").folder)
    assert found.figures == pytest.approx(made.facts["val"])
    assert (found.videos, found.left_out) == (4, 0)
    assert found.run.query_ids == world.val.queries.query_ids


def test_scores_as_search_shows_them_are_calibrated_and_keep_the_order(
    world: Any, trained: Callable[[str], TrainedModel]
) -> None:
    made, stage1 = trained("reel"), trained("spr-stage1").folder
    own = asked(world, made, stage1=stage1).run
    shown = asked(world, made, stage1=stage1, as_search=True).run
    assert columns(shown) == columns(own)
    known = Calibration.of(made.facts, made.folder)
    assert known is not None
    np.testing.assert_allclose(scores(shown), known.scores(scores(own)), rtol=1e-12)
    assert ((scores(shown) > 0) & (scores(shown) < 1)).all()


def test_scores_of_an_uncalibrated_model_are_set_against_chance(
    world: Any, trained: Callable[[str], TrainedModel]
) -> None:
    stage1 = trained("spr-stage1")
    own, shown = (asked(world, stage1, as_search=as_search).run for as_search in (False, True))
    assert columns(shown) == columns(own)
    assert ((scores(shown) > 0) & (scores(shown) < 1)).all()
    for rows, other in zip(shown.rows().values(), own.rows().values(), strict=True):
        assert np.argsort([-m["score"] for m in rows], kind="stable").tolist() == list(range(len(other)))


def test_chance_is_that_of_the_searched_videos(world: Any, trained: Callable[[str], TrainedModel]) -> None:
    """A moment's own score is the same in four videos and in one of them, but what chance gives is not."""

    def shown(videos: tuple[str, ...], as_search: bool) -> dict[tuple[str, str, float, float], float]:
        folder, queries = trained("spr-stage1").folder, world.folder / "val.json"
        found = answer(folder, world.features, queries, videos=videos, segments=20, as_search=as_search).run
        return dict(zip(columns(found), scores(found).tolist(), strict=True))

    for as_search in (False, True):
        every, alone = (shown(videos, as_search) for videos in (world.val_videos, world.val_videos[:1]))
        both = [(every[moment], alone[moment]) for moment in every.keys() & alone.keys()]
        assert both and all((one != pytest.approx(other)) == as_search for one, other in both)


def test_all_refined_moments_may_be_wanted(world: Any, trained: Callable[[str], TrainedModel]) -> None:
    made, stage1 = trained("spr-relo"), trained("spr-stage1").folder
    thinned, every = (asked(world, made, stage1=stage1, suppress_above=above).run for above in (0.5, 1.0))
    ready = AnsweringModel.open(made.folder, world.features.facts, stage1=stage1, segments=6)
    proposals = ready.completed(world.val).proposals
    assert proposals is not None
    assert len(every) == len(proposals.video)
    assert set(columns(thinned)) <= set(columns(every))
    with pytest.raises(InvalidValue, match=r"suppress_above=1\.5: an overlap"):
        asked(world, made, stage1=stage1, suppress_above=1.5)


def test_prepared_features_can_be_looked_at_before_training(world: Any, tmp_path: Path) -> None:
    """Val takes all videos by default, train those that its file names."""
    experiment = Experiment.prepare(
        "xml", world.features, train=world.folder / "train.json", val=world.folder / "val.json",
        overrides=SETTINGS["xml"],
    )  # fmt: skip
    assert sorted(experiment.learned.features.video_ids) == sorted(world.train_videos)
    assert len(experiment.val.features) == 14
    assert experiment.shared == 10
    made = experiment.train(tmp_path / "xml")
    assert made.facts["data"]["val"]["videos_learned_from"] == 10
    assert made.facts["steps"] == 2
    with pytest.raises(InvalidValue, match="holds a training"):
        experiment.train(tmp_path / "xml")
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InvalidValue, match=r"has a README.md, which would be written over"):
        experiment.train(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine" and not (tmp_path / "run").exists()


def test_one_run_answers_no_two_texts_under_one_id(world: Any, tmp_path: Path) -> None:
    clash = json.loads((world.folder / "val.json").read_text())
    clash[1]["query"], clash[2]["query"] = clash[2]["query"], clash[1]["query"]
    val, run, other = tmp_path / "val.json", tmp_path / "run.csv", tmp_path / "other.csv"
    val.write_text(json.dumps(clash))
    for path in (run, other):
        path.write_text("query_id,video_id,start,end,score\n1,v,0,1,1\n")

    def prepared(**runs: Any) -> Experiment:
        train = world.folder / "train.json"
        return Experiment.prepare("reel", world.features, train=train, val=val, **runs)

    both = "run.csv: query '1' is 'the robot takes a key' in train, but 'the robot drops a ball' in val"
    for runs in ({}, {"val_candidates": run}):
        with pytest.raises(InvalidValue, match=f"{both}.*--candidates again with"):
            prepared(candidates=run, **runs)
    assert prepared(candidates=run, val_candidates=other).val.pairs.texts[1] == clash[1]["query"]


def test_a_training_is_resumed_with_the_same_pairs_and_features_alone(world: Any, tmp_path: Path) -> None:
    pairs = Path(shutil.copy(world.folder / "train.json", tmp_path))

    def prepared() -> Experiment:
        return Experiment.prepare(
            "xml", world.features, train=pairs, val=world.folder / "val.json", overrides=SETTINGS["xml"]
        )

    out, experiment = tmp_path / "xml", prepared()
    made = experiment.train(out)
    first, *others = json.loads(pairs.read_text())
    first["relevant_moment"][0]["similarity"] = 0.123
    pairs.write_text(json.dumps([first, *others]))
    assert prepared().data == experiment.data
    with pytest.raises(InvalidValue, match="begun with other contents of the pair files; give what"):
        prepared().train(out, resume=True)
    begun = json.loads((out / "run/settings.json").read_text())
    begun["settings"]["loops"]["train"]["device"] = "cuda"  # as it was written once; any may go on with it
    (out / "run/settings.json").write_text(json.dumps(begun))
    newer = replace(experiment.source, encoder_revision="newer")
    with pytest.raises(InvalidValue, match=r"other features \(encoder_revision .*, now newer\); give what"):
        replace(experiment, source=newer).train(out, resume=True)
    known = out / "run" / "settings.json"
    said = json.loads(known.read_text())
    known.write_text(json.dumps({name: value for name, value in said.items() if name != "features"}))
    with pytest.raises(InvalidValue, match="begun with other features; give what"):
        experiment.train(out, resume=True)
    known.write_text(json.dumps(said))
    assert experiment.train(out, resume=True).facts["data"] == made.facts["data"]


def test_a_model_is_refused_on_features_of_others(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path
) -> None:
    folder = tmp_path / "features"
    folder.mkdir()
    for part in ("visual", "queries"):
        (folder / part).symlink_to(world.folder / "features" / part)
    about = (world.folder / "features" / "features.json").read_text()
    (folder / "features.json").write_text(about.replace('"encoder": "toy"', '"encoder": "other"'))
    with pytest.raises(EncoderMismatch, match=r"features of toy \(revision 1\), but these are of other"):
        answer(trained("spr-stage1").folder, FeatureFolder.open(folder), world.folder / "val.json")


def test_scores_of_search_are_asked_of_models_that_search_uses(
    world: Any, trained: Callable[[str], TrainedModel]
) -> None:
    with pytest.raises(InvalidValue, match="xml: `moviola search` does not use it"):
        asked(world, trained("xml"), as_search=True)


@pytest.mark.parametrize("stream", ["visual_size", "subtitle_size"])
def test_a_model_of_one_stream_answers_from_features_of_two(
    heard_world: Any, tmp_path: Path, stream: str
) -> None:
    """PREM's rows "Text" and "Image" are asked like any other saved model."""
    phases = [
        f"{phase}.{limit}" for phase in ("retriever", "localizer") for limit in ("steps=1", "batch_size=4")
    ]
    made = Experiment.prepare(
        "prem", heard_world.features, train=heard_world.folder / "train.json",
        val=heard_world.folder / "val.json", train_videos=heard_world.train_videos,
        val_videos=heard_world.val_videos,
        overrides=[
            f"model.{stream}=0", "model.hidden_size=16", "model.heads=2", "sampling.negatives=1", *phases,
        ],
    ).train(tmp_path / "prem")  # fmt: skip
    assert read_description(made.folder).config[stream] == 0
    assert len(asked(heard_world, made).run) > 0


def test_a_pair_of_level_0_is_not_learned_from(world: Any, tmp_path: Path) -> None:
    first, *others = json.loads((world.folder / "train.json").read_text())
    first["relevant_moment"][0]["relevance"] = 0
    pairs = tmp_path / "train.json"
    pairs.write_text(json.dumps([first, *others]))
    learned = [
        len(
            Experiment.prepare("xml", world.features, train=path, val=world.folder / "val.json").learned.pairs
        )
        for path in (world.folder / "train.json", pairs)
    ]
    assert learned[0] - learned[1] == 1


def test_the_words_of_a_model_are_those_of_the_queries_that_it_learned_from(
    world: Any, trained: Callable[[str], TrainedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Any, ...]] = []
    monkeypatch.setattr("moviola.study.training.experiment.calibration_of", lambda *args: given.append(args))
    few = json.loads((world.folder / "val.json").read_text())[:3]
    (tmp_path / "val.json").write_text(json.dumps(few))
    Experiment.prepare(
        "reel", world.features, train=world.folder / "train.json", val=tmp_path / "val.json",
        train_videos=world.train_videos, val_videos=world.val_videos, stage1=trained("spr-stage1").folder,
        segments=6, overrides=[*SETTINGS["reel"], *QUICK, "loop.steps=1"],
    ).train(tmp_path / "reel")  # fmt: skip
    ((*_, val, _, learned),) = given
    assert len(val.queries.texts) == 3 and learned == world.train.queries.texts
