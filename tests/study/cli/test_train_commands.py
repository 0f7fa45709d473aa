"""Features from files, training and answering from the command line, on a toy world."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from moviola.errors import InvalidValue
from moviola.features import FeatureFolder, KeyedShards, normalise_rows
from moviola.retrieval import load_refiner
from moviola.study.datasets.readers import read_videos
from moviola.study.training.answering import answer
from moviola.study.training.recipes import RECIPES, recipe
from toy_world import DIM, MANY_EVENTS, SUBTITLE_DIM, toy_world

Command = Callable[..., Any]

TRAIN, VAL = [f"v{n:02d}" for n in range(8)], [f"v{n:02d}" for n in range(8, 12)]

SMALL: dict[str, list[str]] = {
    "spr-stage1": ["model.layers=1", "model.heads=2", "loop.batch_size=8"],
    "spr-clip": ["model.layers=1", "model.heads=2", "sampling.strategy=standard"],
    "spr-relo": ["model.hidden_size=16", "model.heads=2", "sampling.strategy=standard"],
    "spr-relo-large": ["model.hidden_size=32", "model.heads=2", "sampling.strategy=standard"],
    "reel": ["model.hidden_size=16", "loop.batch_size=4"],
    "xml": ["model.hidden_size=16", "model.heads=2", "model.shortest_span=1"],
    "reloclnet": ["model.hidden_size=16", "model.heads=2", "model.shortest_span=1"],
    "conquer": [
        "model.hidden_size=16",
        "model.heads=2",
        "model.feed_forward_size=16",
        "sampling.negatives=1",
    ],
    "prem": ["model.hidden_size=16", "model.heads=2", "model.feed_forward_size=16", "sampling.negatives=1"],
}
SMALL["prem-given"] = SMALL["prem"]
SMALL["prem-apart"] = [*SMALL["prem"], "model.shared_encoder=false"]
BUILD_ON = ("spr-clip", "spr-relo", "spr-relo-large", "reel", "conquer", "prem-given")


@dataclass(frozen=True)
class World:
    """A folder with feature files, pair files, ``corpus.json``, ``splits.json`` and ``features``."""

    moviola: Command
    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def train(self, name: str, out: Path, *words: object, steps: int = 4) -> Any:
        """``moviola train`` in a few steps; nothing is said of stage 1."""
        options = [*SMALL.get(name, ()), f"loop.steps={steps}", "loop.evaluate_every=2"]
        return self.moviola(
            "train", name, "--features", self / "features", "--train", self / "train.json",
            "--val", self / "val.json", "--val-videos", f"{self / 'splits.json'}:val", "--out", out,
            *(word for option in options for word in ("--set", option)), *words,
        )  # fmt: skip

    def answer(self, model: Path, out: Path, *words: object, queries: Path | None = None) -> Any:
        return self.moviola(
            "answer", queries or self / "val.json", "--model", model, "--features", self / "features",
            "--videos", f"{self / 'splits.json'}:val", "--out", out, *words,
        )  # fmt: skip

    def gather(self, out: Path, *words: object, **instead: object) -> Any:
        """``moviola features from-files``; ``instead`` replaces files, or leaves them out."""
        files = {
            "visual": self / "visual.h5", "subtitles": self / "subtitles.h5", "queries": self / "tokens.h5",
            "query_vectors": self / "vectors.h5", "durations": self / "corpus.json", "encoder": "toy",
            "annotations": self / "train.json", "clip_seconds": 1.0, "out": out,
        } | instead  # fmt: skip
        given = [(f"--{name.replace('_', '-')}", value) for name, value in files.items() if value is not None]
        return self.moviola("features", "from-files", *(word for pair in given for word in pair), *words)


def h5(path: Path, arrays: Mapping[str, NDArray[np.float32]]) -> Path:
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file[key] = array
    return path


def make_world(folder: Path) -> None:
    """The toy world in files of the kind that papers release."""
    toy = toy_world(videos=12, events=MANY_EVENTS, seed=5)
    h5(folder / "visual.h5", toy.visual)
    h5(folder / "subtitles.h5", toy.subtitles)
    h5(folder / "tokens.h5", {str(n): rows[:-1] for n, rows in enumerate(toy.tokens.values())})
    h5(folder / "vectors.h5", {str(number): row for number, row in enumerate(toy.vectors)})
    (folder / "corpus.json").write_text(json.dumps({name: [s, 0] for name, s in toy.durations.items()}))
    (folder / "splits.json").write_text(json.dumps({"train": TRAIN, "val": VAL}))
    for part, own in (("train", TRAIN), ("val", [*TRAIN, *VAL])):  # all videos are judged, as in gridhouse
        (folder / f"{part}.json").write_text(json.dumps(toy.queries(own)))


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


@pytest.fixture
def world(moviola: Command, shared_folder: Path) -> World:
    """The world with its features and a trained stage 1, made when they are first asked for."""
    world = World(moviola, shared_folder)
    if not (world / "features").exists():
        assert world.gather(world / "features").code == 0
    if not (world / "stage1").exists():
        trained = world.train("spr-stage1", world / "stage1")
        assert trained.code == 0, trained.err
    return world


def building_on(world: World, name: str) -> tuple[object, ...]:
    return ("--stage1", world / "stage1") if name in BUILD_ON else ()


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert ours.keys() == theirs.keys()
    return all(np.array_equal(ours[key], theirs[key]) for key in ours)


def fails_with(outcome: Any, *said: str) -> None:
    """One clear line, exit code 1."""
    assert outcome.code == 1, outcome.err
    lines = outcome.err.strip().splitlines()
    assert lines[-1].startswith("error: ")
    assert "Traceback" not in outcome.err
    for part in said:
        assert part in lines[-1]


# ---- features from files ---------------------------------------------------------------------------------


def stored(path: Path) -> dict[str, NDArray[np.float32]]:
    with h5py.File(path) as file:
        return {key: np.atleast_2d(file[key][()]) for key in file}


def test_the_folder_holds_what_the_files_hold(world: World) -> None:
    folder = FeatureFolder.open(world / "features")
    facts = folder.facts
    assert (facts.encoder, facts.encoder_revision) == ("toy", "1")
    assert (facts.clip_seconds, facts.segment_clips, facts.unit) == (1.0, 4, True)
    assert (facts.visual_dim, facts.subtitle_dim, facts.query_dim) == (DIM, SUBTITLE_DIM, DIM)
    shards = {part: KeyedShards(world / "features" / part) for part in ("visual", "subtitles", "queries")}
    assert shards["visual"].keys() == tuple(folder.durations) == tuple(TRAIN + VAL)
    for part in ("visual", "subtitles"):
        for name, rows in stored(world / f"{part}.h5").items():
            np.testing.assert_allclose(shards[part].read(name), rows, rtol=1e-3, atol=1e-3)
            assert folder.durations[name] == len(rows)
    tokens, vectors = stored(world / "tokens.h5"), stored(world / "vectors.h5")
    for number, event in enumerate(MANY_EVENTS):
        expected = np.concatenate([tokens[str(number)], vectors[str(number)]])
        found = shards["queries"].read(f"the robot {event}")
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("key", ["text", "desc_id"])
def test_queries_may_have_keys_of_another_form(world: World, tmp_path: Path, key: str) -> None:
    texts = [f"the robot {event}" for event in MANY_EVENTS]
    names = {"text": texts, "desc_id": [str(900 + n) for n in range(len(MANY_EVENTS))]}[key]
    tokens = h5(tmp_path / "t.h5", {name: np.full((2, 3), n) for n, name in enumerate(names)})
    annotations = world / "train.json"
    if key == "desc_id":
        annotations = tmp_path / "tvr.jsonl"
        rows = [{"desc_id": int(name), "desc": text} for name, text in zip(names, texts, strict=True)]
        annotations.write_text("\n".join(map(json.dumps, rows)))
    made = world.gather(
        tmp_path / "out", "--json", queries=tokens, query_vectors=None, annotations=annotations
    )
    assert json.loads(made.out)["queries"] == len(MANY_EVENTS)
    queries = KeyedShards(tmp_path / "out" / "queries")
    assert [queries.read(text)[-1, 0] for text in texts] == list(range(len(MANY_EVENTS)))


def test_joined_cut_and_raw(world: World, tmp_path: Path) -> None:
    visual = stored(world / "visual.h5")
    longer = {name: np.concatenate([rows, rows[-1:]]) * 5 for name, rows in visual.items()}
    words = ("--visual", h5(tmp_path / "more.h5", longer), "--raw", "--max-tokens", 3, "--slack", 1)
    made = world.gather(tmp_path / "out", *words, "--videos", f"{world / 'splits.json'}:val", encoder="toy@b")
    assert made.code == 0, made.err
    folder = FeatureFolder.open(tmp_path / "out")
    facts, shards = folder.facts, KeyedShards(tmp_path / "out" / "visual")
    assert (facts.encoder, facts.encoder_revision, facts.unit) == ("toy", "b", False)
    assert list(folder.durations) == VAL
    for name in VAL:
        once = normalise_rows(visual[name])
        np.testing.assert_allclose(shards.read(name), np.concatenate([once, once], axis=1), atol=2e-3)
    np.testing.assert_array_equal(folder.videos().read(0), shards.read(VAL[0]))  # raw stays raw
    last = KeyedShards(tmp_path / "out" / "queries").read(f"the robot {MANY_EVENTS[4]}")
    assert len(last) == 3
    np.testing.assert_allclose(last[-1], stored(world / "vectors.h5")["4"][0], atol=1e-2)


def test_the_vector_of_a_long_query_is_kept(world: World, tmp_path: Path) -> None:
    """The last row of a file without vectors of its own, as with CLIP's tokens."""
    rows = {str(n): np.arange(5.0)[:, None] + np.zeros(3) for n in range(len(MANY_EVENTS))}
    tokens = h5(tmp_path / "t.h5", rows)
    made = world.gather(tmp_path / "out", "--max-tokens", 3, queries=tokens, query_vectors=None)
    assert made.code == 0, made.err
    found = KeyedShards(tmp_path / "out" / "queries").read(f"the robot {MANY_EVENTS[0]}")
    assert found[:, 0].tolist() == [0, 1, 4]


def test_features_are_gathered_without_torch(world: World, tmp_path: Path, torchless: Command) -> None:
    plain = replace(world, moviola=torchless)
    made = plain.gather(tmp_path / "out", "--videos", f"{world / 'splits.json'}:val")
    assert made.code == 0, made.err


def without(path: Path, key: str) -> dict[str, NDArray[np.float32]]:
    return {name: rows for name, rows in stored(path).items() if name != key}


def test_files_that_do_not_fit(world: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    fewer = h5(tmp_path / "fewer.h5", without(world / "visual.h5", "v03"))
    fails_with(world.gather(out, visual=fewer), "fewer.h5: no features of 1 of 12 videos, the first 'v03'")
    silent = h5(tmp_path / "silent.h5", without(world / "tokens.h5", "2"))
    fails_with(
        world.gather(out, queries=silent), "no features of 1 of 10 queries (by query_id), the first '2'"
    )
    short = h5(tmp_path / "short.h5", {n: r[:-2] for n, r in stored(world / "subtitles.h5").items()})
    fails_with(world.gather(out, subtitles=short), "v00: ", "short.h5", "--slack 2")
    empty = h5(tmp_path / "empty.h5", stored(world / "visual.h5") | {"v01": np.zeros((0, DIM), np.float32)})
    fails_with(world.gather(out, visual=empty, subtitles=None), "v01: no rows")
    mute = h5(tmp_path / "mute.h5", stored(world / "tokens.h5") | {"2": np.zeros((0, DIM), np.float32)})
    fails_with(world.gather(out, queries=mute, query_vectors=None), "mute.h5: 2: no rows")
    endless = stored(world / "tokens.h5") | {"2": np.full((3, DIM), np.inf, np.float32)}
    fails_with(world.gather(out, queries=h5(tmp_path / "endless.h5", endless)), "a number is not finite")
    assert not out.exists()  # though the videos were written before, and the same command can be given again
    fails_with(world.gather(out, clip_seconds=1.5), "clips of 1.5 s", "'v00'")
    wide = h5(tmp_path / "wide.h5", {str(n): np.zeros(DIM + 1) for n in range(len(MANY_EVENTS))})
    fails_with(world.gather(out, query_vectors=wide), "wide.h5: 0: shape (1, 17); one row of 16 is expected")
    other = tmp_path / "other.json"
    other.write_text((world / "train.json").read_text().replace("the robot", "a robot"))
    fails_with(
        world.gather(tmp_path / "twice", "--annotations", other),
        "query_id 0 is 'a robot opens a door', but was 'the robot opens a door' before",
    )
    fails_with(world.gather(out, durations=tmp_path / "nowhere.json"), "nowhere.json: no such file")
    still = tmp_path / "still.json"
    still.write_text(json.dumps(json.loads((world / "corpus.json").read_text()) | {"v04": 0}))
    fails_with(
        world.gather(out, durations=still), "1 video with a duration", "'v04' with 0 s", "leave the video out"
    )
    (tmp_path / "ids.json").write_text('["v00", "elsewhere"]')
    fails_with(world.gather(out, "--videos", tmp_path / "ids.json"), "no duration of 1 video: elsewhere")
    fails_with(world.gather(world / "features"), "not empty")


def test_videos_by_name_and_by_split(tmp_path: Path) -> None:
    def kept(value: object) -> str:
        (tmp_path / "f.json").write_text(json.dumps(value))
        return str(tmp_path / "f.json")

    assert read_videos(kept(["b", "a", "b"])) == ["b", "a"]
    assert read_videos(kept({"b": 1.5, "a": [2.5, 0]})) == ["b", "a"]
    assert read_videos(kept({"train": {"b": [1.5, 0]}, "val": {"a": 2}})) == ["b", "a"]
    assert read_videos(f"{kept({'train': {'b': [1.5, 0]}, 'val': {'a': 2}})}:val") == ["a"]
    assert read_videos(f"{kept({'train': ['b'], 'val': ['a', 'c']})}:val") == ["a", "c"]


# ---- training and answering ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_every_model_learns_and_answers(world: World, tmp_path: Path, name: str) -> None:
    on = building_on(world, name)
    trained = world.train(name, tmp_path / "model", *on, "--json")
    assert trained.code == 0, trained.err
    extra = config_of(tmp_path / "model")["extra"]
    printed = json.loads(trained.out)
    assert printed["val"] == extra["val"] and extra["val"]
    assert extra["recipe"] == name
    assert extra["encoder"] == "toy"
    assert extra["steps"] == 4 * len(extra["settings"]["loops"])
    assert extra["stage1"] == ("stage1" if on else None)
    assert extra["data"]["train"]["videos"] == len(TRAIN)
    assert extra["data"]["val"] == {
        "file": "val.json", "queries": 10, "pairs": extra["data"]["val"]["pairs"], "videos": 4,
        "videos_learned_from": 0,
    }  # fmt: skip
    card = (tmp_path / "model" / "README.md").read_text()
    for said in ("train.json", "val.json", "`toy`", f"{next(iter(extra['val'].values())):.4f}"):
        assert said in card
    for log in (tmp_path / "model" / "run").glob("**/log.csv"):
        names = next(csv.reader(log.read_text().splitlines()))
        measured = recipe(name).measured(log.parent.name)
        assert (names[0], tuple(names[-len(measured) :])) == ("step", measured)

    judged, run = tmp_path / "judged.json", tmp_path / "run.jsonl"
    answered = world.answer(tmp_path / "model", run, *on, "--judgements", judged, "--json")
    assert answered.code == 0, answered.err
    assert "outside the" in answered.err
    found = json.loads(answered.out)["measures"]
    chosen = [f"nDCG@{k},IoU>={overlap}" for k in (10, 40) for overlap in (0.3, 0.7)]
    words = [word for measure in chosen for word in ("-m", measure)]
    theirs = json.loads(world.moviola("evaluate", run, judged, *words, "--json").out)
    assert theirs["measures"] == {measure: pytest.approx(found[measure], abs=1e-12) for measure in chosen}
    if chosen[0] in extra["val"]:  # the kept weights are those that were measured
        assert found[chosen[0]] == pytest.approx(extra["val"][chosen[0]], abs=1e-9)
    shown = world.moviola("models", "show", tmp_path / "model")
    assert shown.code == 0
    assert card.splitlines()[0] in shown.out


@pytest.mark.parametrize("name", ["reel", pytest.param("prem", marks=pytest.mark.slow)])
def test_same_seed_same_weights(world: World, tmp_path: Path, name: str) -> None:
    on = building_on(world, name)
    for folder, seed in (("one", 3), ("two", 3), ("three", 4)):
        assert world.train(name, tmp_path / folder, *on, "--seed", seed).code == 0
    assert same_weights(tmp_path / "one", tmp_path / "two")
    assert not same_weights(tmp_path / "one", tmp_path / "three")


class Stopped(Exception):
    """Stands for whatever ends a program."""


@pytest.mark.parametrize("name", ["spr-stage1", pytest.param("conquer", marks=pytest.mark.slow)])
def test_an_interrupted_training_goes_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    on = building_on(world, name)

    def stop(step: int, total: int, values: Mapping[str, float]) -> None:
        if step == 5:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("moviola.study.cli.train._shown_on", lambda bar, loops: stop)
        with pytest.raises(Stopped):
            world.train(name, tmp_path / "one", *on, steps=8)
    fails_with(world.train(name, tmp_path / "one", *on, steps=8), "holds a training", "--resume")
    longer = world.train(name, tmp_path / "one", *on, "--resume", steps=9)
    fails_with(longer, "begun with other settings (loops.train.steps 8, now 9); give what")
    if on:
        assert world.train("spr-stage1", tmp_path / "stage1", "--seed", 1).code == 0
        other = world.train(name, tmp_path / "one", "--stage1", tmp_path / "stage1", "--resume", steps=8)
        fails_with(other, "begun with other stage 1 or candidates")
    resumed = world.train(name, tmp_path / "one", *on, "--resume", steps=8)
    assert resumed.code == 0, resumed.err
    assert world.train(name, tmp_path / "whole", *on, steps=8).code == 0
    assert same_weights(tmp_path / "one", tmp_path / "whole")
    val = [config_of(tmp_path / folder)["extra"]["val"] for folder in ("one", "whole")]
    assert val[0] == val[1]


_KILLED = """
import contextlib, json, os, signal, sys
from moviola.cli import main
from moviola.study.cli import train
from moviola.study.models import pretrained
from moviola.study.training import loop

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def at_step(number):
    def listen(step, total, values):
        if step == number:
            die()
    train._shown_on = lambda bar, loops: listen

def at_state(number):
    own, left = loop.draft_of, [number]
    @contextlib.contextmanager
    def draft_of(path, **how):
        with own(path, **how) as draft:
            yield draft
            left[0] -= 1
            if not left[0]:
                os.truncate(draft, os.path.getsize(draft) // 2)
                die()
    loop.draft_of = draft_of

def at_model(_):
    pretrained.save = lambda *_, **__: die()

def run(words, kill=None, number=0):
    if not (child := os.fork()):
        if kill:
            globals()["at_" + kill](number)
        sys.argv = ["moviola", *words]
        try:
            main()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        sys.stdout.flush(); sys.stderr.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for words, kill, number in json.loads(sys.stdin.read()):
    print("code", run(words, kill, number), flush=True)
"""


@pytest.mark.long(3)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes that begin as copies")
def test_a_killed_training_goes_on_as_if_it_had_not_been(world: World, tmp_path: Path) -> None:
    """Killed between two checkpoints, while one is written, and while the model is: nobody has time to clean
    up, and what is half written must not be taken for a state.
    """
    asked: list[list[str]] = []
    kept = replace(world, moviola=lambda *words: asked.append(list(map(str, words))))
    kills = {"between": ("step", 5), "state": ("state", 2), "model": ("model", 0)}
    runs: list[tuple[str, int]] = []
    for name in ("whole", *kills):
        kept.train("spr-stage1", tmp_path / name, steps=8)
        runs.append(kills.get(name, ("", 0)))
        if name in kills:
            kept.train("spr-stage1", tmp_path / name, "--resume", steps=8)
            runs.append(("", 0))
    todo = [(words, *how) for words, how in zip(asked, runs, strict=True)]
    done = subprocess.run(
        [sys.executable, "-c", _KILLED],
        input=json.dumps(todo),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    codes = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("code ")]
    assert codes == [0, *[-signal.SIGKILL, 0] * len(kills)], done.stderr
    for name in kills:
        assert same_weights(tmp_path / name, tmp_path / "whole"), name
        assert not list((tmp_path / name / "run").glob(".*")), name
        ends = (torch.load(tmp_path / one / "run" / "state.pt", weights_only=True) for one in (name, "whole"))
        own, expected = (end["model"] for end in ends)  # of the last step; the model is that of the best
        assert all(torch.equal(own[key], expected[key]) for key in expected), name


def test_settings_come_from_the_file_and_then_from_the_words(world: World, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(
        "[model]\ndropout = 0.25\nhidden_size = 64\n[loop]\nseed = 7\n[loop.optimizer]\nlr = 0.002\n"
    )
    assert world.train("xml", tmp_path / "model", "--config", path).code == 0
    kept = config_of(tmp_path / "model")
    assert kept["config"]["dropout"] == 0.25
    assert kept["config"]["hidden_size"] == 16  # --set
    loop = kept["extra"]["settings"]["loops"]["train"]
    assert (loop["seed"], loop["optimizer"]["lr"], loop["steps"]) == (7, 0.002, 4)


def test_segments_are_as_long_as_the_features_say_or_the_settings(world: World, tmp_path: Path) -> None:
    """Answers have the segments that were learned, whatever the default."""
    for length, words in ((4, ()), (2, ("--set", "sampling.segment_clips=2"))):
        model = tmp_path / f"model{length}"
        assert world.train("spr-stage1", model, *words).code == 0
        assert world.answer(model, tmp_path / "run.json").code == 0
        starts = {m["start"] for own in json.loads((tmp_path / "run.json").read_text()).values() for m in own}
        ends = {m["end"] for own in json.loads((tmp_path / "run.json").read_text()).values() for m in own}
        assert starts and all(start % length == 0 for start in starts)
        assert any(end % 4 for end in ends) or length == 4
    assert config_of(tmp_path / "model2")["extra"]["settings"]["sampling"]["segment_clips"] == 2


def test_videos_of_val_that_are_learned_from_are_reported(world: World, tmp_path: Path) -> None:
    """Train takes the videos that its file names; val all, unless it is given some."""
    trained = world.moviola(
        "train", "xml", "--features", world / "features", "--train", world / "train.json",
        "--val", world / "val.json", "--out", tmp_path / "model", "--set", "loop.steps=1",
        "--set", "model.hidden_size=16",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert "8 of its 12 videos used for training too; --val-videos keeps them apart" in trained.err
    data = config_of(tmp_path / "model")["extra"]["data"]
    assert (data["train"]["videos"], data["val"]["videos"], data["val"]["videos_learned_from"]) == (8, 12, 8)


def moments_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    return found


def test_answers_without_suppression(world: World, tmp_path: Path) -> None:
    on = building_on(world, "reel")
    assert world.train("reel", tmp_path / "reel", *on).code == 0
    for name, words in (("own", ()), ("every", ("--suppress-above", 1))):
        result = world.answer(tmp_path / "reel", tmp_path / f"{name}.json", *on, *words)
        assert result.code == 0, result.err
    own, every = (moments_of(tmp_path / f"{name}.json") for name in ("own", "every"))
    for query, rows in own.items():
        spans = [(m["video_id"], m["start"], m["end"]) for m in rows]
        assert set(spans) <= {(m["video_id"], m["start"], m["end"]) for m in every[query]}
    assert sum(map(len, every.values())) >= sum(map(len, own.values()))
    assert world.answer(tmp_path / "reel", tmp_path / "r.json", *on, "--suppress-above", 2).code == 2
    assert world.train("xml", tmp_path / "xml").code == 0


def test_segments_merge_as_in_the_paper_where_that_is_chosen(world: World, tmp_path: Path) -> None:
    """In training, in answering, which keeps to what a model learned from, and not in search's place.

    The toy world has few segments: by default a quarter of them merge apart, so the best moments of a stage
    1 are shorter than in the paper.
    """
    stage1, on = world / "stage1", building_on(world, "reel")
    for name, words in (("apart", ()), ("all", ("--merge", "paper"))):
        assert world.answer(stage1, tmp_path / f"{name}.json", *words).code == 0
    apart, everything = (moments_of(tmp_path / f"{name}.json") for name in ("apart", "all"))
    for query, rows in everything.items():
        spans = [(m["video_id"], m["start"], m["end"]) for m in rows]
        assert len({(video, end) for video, _, end in spans} & {(v, start) for v, start, _ in spans}) == 0
        assert len(rows) <= len(apart[query])
    assert everything != apart

    trained = world.train("reel", tmp_path / "reel", *on, "--merge", "paper")
    assert trained.code == 0, trained.err
    assert config_of(tmp_path / "reel")["extra"]["merge"] == "paper"
    for name, words in (("own", ()), ("said", ("--merge", "paper")), ("other", ("--merge", "apart"))):
        assert world.answer(tmp_path / "reel", tmp_path / f"{name}.json", *on, *words).code == 0
    own, said, other = (moments_of(tmp_path / f"{name}.json") for name in ("own", "said", "other"))
    assert own == said != other
    with pytest.raises(InvalidValue, match="merged as in the paper"):
        load_refiner(tmp_path / "reel", "a")
    fails_with(world.train("xml", tmp_path / "xml", "--merge", "paper"), "merges no segments", "--merge")
    fails_with(world.train("reel", tmp_path / "odd", *on, "--merge", "none"), "merge 'none'", "apart, paper")


# ---- another system's run instead of a stage 1 -----------------------------------------------------------


@pytest.fixture
def ranking(tmp_path: Path) -> Path:
    """A run of another system: three moments a query, in all videos, scores below 0 too."""
    draw = np.random.default_rng(5)
    path = tmp_path / "other.jsonl"
    rows = [
        {"query_id": str(q), "video_id": v, "start": 1.0, "end": 4.0, "score": float(draw.normal())}
        for q in range(len(MANY_EVENTS))
        for v in (*TRAIN, *VAL)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_moments_of_another_system_are_not_merged(world: World, tmp_path: Path, ranking: Path) -> None:
    words = ("--candidates", ranking, "--merge", "paper")
    fails_with(world.train("spr-relo", tmp_path / "model", *words), "are not merged", "--merge")


@pytest.mark.parametrize("name", ["conquer", "spr-relo"])
def test_a_run_of_another_system_does_for_a_stage_1(
    world: World, tmp_path: Path, ranking: Path, name: str
) -> None:
    trained = world.train(name, tmp_path / "model", "--candidates", ranking)
    assert trained.code == 0, trained.err
    extra = config_of(tmp_path / "model")["extra"]
    assert (extra["stage1"], extra["candidates"]) == (None, "other.jsonl")
    assert "--candidates" in (tmp_path / "model" / "README.md").read_text()
    answered = world.answer(tmp_path / "model", tmp_path / "run.json", "--candidates", ranking)
    assert answered.code == 0, answered.err
    run = json.loads((tmp_path / "run.json").read_text())
    assert {m["video_id"] for own in run.values() for m in own} <= set(VAL)
    assert all(run.values())


def test_videos_of_candidates_without_features_are_named(world: World, tmp_path: Path, ranking: Path) -> None:
    """Those that are merely not searched are not."""
    row = json.loads(ranking.read_text().splitlines()[0])
    strange = tmp_path / "strange.jsonl"
    more = [json.dumps(row | {"video_id": name}) for name in ("gone", "elsewhere")]
    strange.write_text("\n".join([ranking.read_text(), *more]))
    left_out = "candidates: left out: 2 videos without features (elsewhere, gone)\n"
    trained = world.train("spr-relo", tmp_path / "model", "--candidates", strange)
    assert trained.code == 0 and left_out in trained.err
    out = tmp_path / "run.json"
    answered = world.answer(tmp_path / "model", out, "--candidates", strange, "--json")
    assert answered.code == 3 and answered.err.endswith(left_out)
    assert json.loads(answered.out)["unknown_videos"] == ["elsewhere", "gone"] and out.exists()
    plain = world.answer(tmp_path / "model", out, "--candidates", ranking)
    assert plain.code == 0 and "without features" not in plain.err


def test_candidates_past_the_end_of_their_video_are_counted(
    world: World, tmp_path: Path, ranking: Path
) -> None:
    row = json.loads(ranking.read_text().splitlines()[0])
    late = tmp_path / "late.jsonl"
    more = [json.dumps(row | {"start": start, "end": start + 1}) for start in (900.0, 1000.0)]
    late.write_text("\n".join([ranking.read_text(), *more]))
    left_out = "candidates: left out: 2 moments past the end of the video; "
    trained = world.train("spr-relo", tmp_path / "model", "--candidates", late)
    assert trained.code == 0 and left_out in trained.err
    answered = world.answer(tmp_path / "model", tmp_path / "run.json", "--candidates", late, "--json")
    assert answered.code == 3 and left_out in answered.err
    assert json.loads(answered.out)["moments_past_end"] == 2


def test_wrong_candidates(world: World, tmp_path: Path, ranking: Path) -> None:
    lines = ranking.read_text().splitlines()
    (tmp_path / "some.jsonl").write_text("\n".join(line for line in lines if '"query_id": "3"' not in line))
    result = world.train("conquer", tmp_path / "m", "--candidates", tmp_path / "some.jsonl")
    fails_with(result, "none for 1 of 10 queries among the 8 videos, the first is query '3'")
    twice = ("--candidates", ranking, "--candidates", tmp_path / "no")
    fails_with(world.train("conquer", tmp_path / "m", *twice), "no: no such file")
    result = world.train("conquer", tmp_path / "m", *twice, "--candidates", ranking)
    assert result.code == 2 and "one for train and one for val" in result.err
    both = ("--candidates", ranking, "--stage1", world / "stage1")
    fails_with(world.train("conquer", tmp_path / "m", *both), "give --stage1 or --candidates, not both")
    fails_with(world.train("xml", tmp_path / "m", "--candidates", ranking), "leave --candidates out")


# ---- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("clip", (), "model 'clip': unknown; choose spr-stage1"),
        ("xml", ("--set", "loop.stepz=3"), "loop.stepz: unknown; choose"),
        ("xml", ("--set", "model.width=3"), "unknown setting 'width'"),
        ("xml", ("--set", "steps=3"), "write TABLE.NAME=VALUE"),
        ("xml", ("--set", "loop.steps=many"), "loop.steps: "),
        ("xml", ("--set", "loop.batch_size=0"), "error: loop: batch_size=0: give at least 1"),
        ("xml", ("--set", "loop.select=AP"), "train.select 'AP': unknown on val; choose nDCG@10"),
        ("spr-stage1", ("--set", "loop.select=nDCG@20,IoU>=0.5"), "choose recall@10, "),
        ("prem", ("--set", "localizer.select=AP"), "localizer.select 'AP': unknown on val"),
        ("xml", ("--device", "tpu"), "tpu"),
        ("xml", ("--stage1", "WORLD/stage1"), "xml: searches the videos itself; leave --stage1 out"),
        ("reel", (), "reel: needs the proposals of a stage 1; train reel-stage1"),
        ("conquer", (), "conquer: needs the scores of videos of a stage 1; train reel-stage1"),
        ("reel", ("--stage1", "WORLD/nowhere"), "nowhere: there is no such folder"),
        ("xml", ("--config", "WORLD/nowhere.toml"), "nowhere.toml: no such file"),
        ("xml", ("--features", "WORLD"), "features.json: no such file"),
        ("xml", ("--train", "WORLD/nowhere.json"), "nowhere.json: no such file"),
        ("xml", ("--train", "WORLD/corpus.json"), "corpus.json"),
        ("xml", ("--val-videos", "WORLD/splits.json:test"), "no split 'test'; it has train, val"),
        ("xml", ("--val-videos", "WORLD/nowhere.json"), "nowhere.json: no such file"),
        ("xml", ("--resume",), "nothing to resume"),
    ],
)  # fmt: skip
def test_wrong_words(world: World, tmp_path: Path, name: str, words: tuple[str, ...], said: str) -> None:
    placed = [word.replace("WORLD", str(world.folder)) for word in words]
    fails_with(world.train(name, tmp_path / "model", *placed), said)
    assert not list((tmp_path / "model").glob("**/log.csv"))  # nothing was trained


def test_damaged_files(world: World, tmp_path: Path) -> None:
    path, out = tmp_path / "settings.toml", tmp_path / "model"
    path.write_text("[loop\nsteps = 3")
    fails_with(world.train("xml", out, "--config", path), "settings.toml: line 1: not valid TOML")
    path.write_text("steps = 3")
    fails_with(world.train("xml", out, "--config", path), "settings.toml: steps = 3 is in no table")
    pairs = tmp_path / "pairs.json"
    pairs.write_text((world / "val.json").read_text().replace("the robot waits", "the robot sings"))
    result = world.train("xml", out, "--val", pairs)
    fails_with(result, "1 of 10 queries without features, the first 'the robot sings'")
    pairs.write_text("[{")
    fails_with(world.train("xml", out, "--val", pairs), "pairs.json: line 1: not valid JSON")
    (tmp_path / "ids.json").write_text("[]")
    fails_with(world.train("xml", out, "--val-videos", tmp_path / "ids.json"), "names no video")


def test_pair_files_that_answer_nothing_are_refused_before_training(world: World, tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.json", tmp_path / "model"
    entries = json.loads((world / "val.json").read_text())
    for entry in entries:
        for moment in entry["relevant_moment"]:
            moment["relevance"] = 0
    for content, said in (
        (json.dumps(entries), "pairs.json: no moment of the {videos} has a relevance above 0"),
        ("[]", "pairs.json: holds no query with a moment"),
        (json.dumps([entry | {"relevant_moment": []} for entry in entries]), "holds no query with a moment"),
    ):
        pairs.write_text(content)
        fails_with(world.train("xml", out, "--val", pairs), said.format(videos="4 videos"))
        fails_with(world.train("xml", out, "--train", pairs), said.format(videos="12 videos"))
    fails_with(world.answer(world / "stage1", tmp_path / "run.json", queries=pairs), "holds no query")
    assert not out.exists()


def test_data_and_steps_that_differ_from_the_given_ones_are_reported(world: World, tmp_path: Path) -> None:
    """Moments of unknown videos or without extent, and steps that the epochs do not reach."""
    pairs = tmp_path / "pairs.json"
    entries = json.loads((world / "train.json").read_text().replace('"v03"', '"elsewhere"'))
    flawed = next(m for m in entries[0]["relevant_moment"] if m["video_name"] in TRAIN)
    flawed["timestamp"] = [5, 5]
    pairs.write_text(json.dumps(entries))
    trained = world.train("xml", tmp_path / "one", "--train", pairs, "--set", "loop.epochs=1", steps=400)
    assert trained.code == 0, trained.err
    assert "outside the videos with features" in trained.err
    assert "pairs.json: left out: " in trained.err
    assert (
        f"pairs.json: no extent: 1 (first: query {entries[0]['query_id']} ({flawed['video_name']}))"
        in trained.err
    )
    steps = config_of(tmp_path / "one")["extra"]["steps"]
    assert steps < 400
    assert trained.err.count(f"loop.epochs ends it after {steps} steps, before the 400 of loop.steps") == 1
    split = ("--train", pairs, "--train-videos", f"{world / 'splits.json'}:train")
    trained = world.train("xml", tmp_path / "two", *split, steps=2)
    assert "outside the videos of --train-videos" in trained.err
    assert "loop.epochs" not in trained.err


def test_a_training_interrupted_before_its_first_step_goes_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("moviola.study.training.recipe.fit", interrupted)
        assert world.train("xml", tmp_path / "model").code == 130
    resumed = world.train("xml", tmp_path / "model", "--resume")
    assert resumed.code == 0, resumed.err


def test_another_stage_1_than_that_of_training_is_said(world: World, tmp_path: Path) -> None:
    assert world.train("reel", tmp_path / "reel", *building_on(world, "reel")).code == 0
    trained_on = config_of(tmp_path / "reel")["extra"]["stage1_revision"]
    assert world.train("spr-stage1", tmp_path / "other", "--seed", 1).code == 0
    run = tmp_path / "run.json"
    same = world.answer(tmp_path / "reel", run, *building_on(world, "reel"))
    assert same.code == 0 and "trained on" not in same.err
    other = world.answer(tmp_path / "reel", run, "--stage1", tmp_path / "other")
    assert other.code == 0
    said = f"reel: trained on the stage 1 stage1 (revision {trained_on}), but"
    assert said in other.err


def test_features_of_others(world: World, tmp_path: Path) -> None:
    """A model is refused on features of another encoder, size or clip length."""
    out, run = tmp_path / "features", tmp_path / "run.json"
    assert world.train("reel", tmp_path / "reel", *building_on(world, "reel")).code == 0
    assert world.gather(out, encoder="toy@2").code == 0
    elsewhere = replace(world, folder=tmp_path)
    for name in ("train.json", "val.json", "splits.json"):
        (tmp_path / name).write_text((world / name).read_text())
    result = elsewhere.answer(world / "stage1", run)
    fails_with(result, "trained on features of toy (revision 1), but these are of toy (revision 2)")
    result = elsewhere.train("reel", tmp_path / "m", "--stage1", world / "stage1")
    fails_with(result, "stage1: trained on features of toy (revision 1)")
    about = out / "features.json"
    about.write_text(about.read_text().replace('"encoder_revision": "2"', '"encoder_revision": "1"'))
    assert elsewhere.answer(world / "stage1", run).code == 0
    about.write_text(about.read_text().replace('"unit": true', '"unit": false'))
    fails_with(elsewhere.answer(world / "stage1", run), "trained on rows of length 1", "raw rows")
    about.write_text(about.read_text().replace('"unit": false', '"unit": true'))
    about.write_text(about.read_text().replace('"clip_seconds": 1.0', '"clip_seconds": 1.25'))
    fails_with(elsewhere.answer(world / "stage1", run), "clip_seconds 1.0", "ask for 1.25")
    wide = {str(n): np.zeros((2, DIM + 1), np.float32) for n in range(len(MANY_EVENTS))}
    narrow = tmp_path / "narrow" / "features"
    made = world.gather(narrow, queries=h5(tmp_path / "wide.h5", wide), query_vectors=None, subtitles=None)
    assert made.code == 0, made.err
    strange = replace(world, folder=narrow.parent)
    for name in ("train.json", "val.json", "splits.json"):
        (narrow.parent / name).write_text((world / name).read_text())
    fails_with(strange.train("spr-stage1", tmp_path / "m"), "clips have 16 features and queries 17")
    result = strange.answer(tmp_path / "reel", run, "--stage1", world / "stage1")
    fails_with(result, "features of 16 numbers, but these queries have 17")
    assert world.train("xml", tmp_path / "xml").code == 0
    fails_with(strange.answer(tmp_path / "xml", run), "xml: a model with subtitle_size 8", "ask for 0")


def test_wrong_questions(world: World, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    fails_with(world.answer(tmp_path / "nowhere", run), "there is no such folder")
    features = FeatureFolder.open(world / "features")
    for name, said in (("xml", "architecture 'spr-stage1'"), ("clip", "model 'clip': unknown")):
        with pytest.raises(InvalidValue, match=said):
            answer(world / "stage1", features, world / "val.json", recipe_name=name)
    fails_with(world.answer(world / "stage1", tmp_path / "run.pdf"), "run.pdf")
    fails_with(world.answer(world / "stage1", world / "val.json"), "val.json: is read by the command")
    fails_with(world.answer(world / "stage1", run, "--judgements", run), "run.json", "name two files")
    plain = tmp_path / "queries.txt"
    plain.write_text("a red door\n")
    words = ("answer", plain, "--model", world / "stage1", "--features", world / "features", "--out", run)
    fails_with(world.moviola(*words), "queries.txt: --model takes no plain queries; give a TVR-Ranking pair")
    assert not run.exists()
