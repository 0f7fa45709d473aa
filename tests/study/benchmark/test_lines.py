"""Subtitle lines are candidates beside those of a first stage, and rows are trained and answer with them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from comparison.bench import Bench
from comparison.lines import WithLines, lines_of, nearest_lines
from comparison.plan import LINES_APART, PRESETS, WITH_LINES, Preset, jobs
from comparison.run import run_pieces
from comparison.world import World
from moviola.errors import InvalidValue
from moviola.features import FeatureRows, QueryFeatures, VideoFeatures, normalise_rows
from moviola.retrieval import Proposals
from moviola.retrieval.stage1 import VideoScores
from moviola.study.training.data import Pairs, Split
from moviola.study.training.first_stage import FirstStage

DIM, CLIPS = 4, 6
EAST, NORTH, UP = np.eye(DIM, dtype=np.float32)[:3]
SAID = {"a": [EAST, EAST, None, NORTH, None, None], "b": [None, UP, UP, UP, None, EAST]}
LINES = [("a", 0, 2), ("a", 3, 4), ("b", 1, 4), ("b", 5, 6)]


@dataclass(frozen=True)
class Deaf(FirstStage):
    """Proposes the start of the first video, and likes all videos alike."""

    @property
    def mark(self) -> str:
        return "deaf"

    def proposals(self, split: Split) -> Proposals:
        count = len(split.queries)
        nothing = np.zeros(count)
        return Proposals.of_columns(
            np.arange(count), np.zeros(count, np.int64), nothing, nothing + 4, nothing + 0.5, queries=count
        )

    def first_stage(self, split: Split) -> VideoScores:
        def scores(some: slice) -> NDArray[np.float32]:
            return np.full((some.stop - some.start, len(split.features)), np.exp(0.25), np.float32)

        return scores


@pytest.fixture
def split() -> Split:
    """Two films with four lines, and two queries: about the east, and about what is up and a little north."""
    rows = [
        np.stack([np.zeros(DIM, np.float32) if line is None else line for line in own])
        for own in SAID.values()
    ]
    subtitles = FeatureRows(DIM, (0, 1), lambda key: rows[key].astype(np.float16))
    visual = FeatureRows(DIM, (0, 1), lambda key: np.ones((CLIPS, DIM), np.float16))
    durations = np.full(2, float(CLIPS))
    features = VideoFeatures(tuple(SAID), durations, 1.0, np.full(2, CLIPS), visual, subtitles)
    vectors = [np.stack([EAST, NORTH]), np.stack([UP + 0.5 * NORTH, EAST])]
    queries = QueryFeatures.of(["1", "2"], ["x", "y"], vectors)
    one = np.array([0])
    pairs = Pairs(
        ("1", "2"), ("x", "y"), tuple(SAID), one, one * 0.0, one + 1.0, ("c",), one, one,
        np.ones(1, np.float32), np.ones(1),
    )  # fmt: skip
    return Split(features, queries, pairs)


def test_lines_are_clips_in_a_row_that_say_the_same(split: Split) -> None:
    assert [(line.video, line.start, line.end) for line in lines_of(split)] == LINES


def test_the_nearest_lines_come_first(split: Split) -> None:
    found = nearest_lines(split, 2)
    names = np.array(found.video_ids)[found.video]
    spans = list(zip(names.tolist(), found.start.tolist(), found.end.tolist(), strict=True))
    assert spans == [LINES[0], LINES[3], LINES[2], LINES[1]]
    expected = normalise_rows((UP + 0.5 * NORTH)[None])[0] @ np.stack([UP, NORTH]).T
    np.testing.assert_allclose(found.score, [1, 1, *expected], rtol=1e-3)


def test_lines_stand_behind_what_was_proposed(split: Split) -> None:
    both = WithLines(Deaf(), 2).proposals(split)
    assert both.query.tolist() == [0, 0, 0, 1, 1, 1]
    names = np.array(list(SAID))[both.video]
    spans = list(zip(names.tolist(), both.start.tolist(), both.end.tolist(), strict=True))
    assert spans == [("a", 0, 4), LINES[0], LINES[3], ("a", 0, 4), LINES[2], LINES[1]]


def test_a_video_is_as_good_as_its_best_line_or_as_before(split: Split) -> None:
    scores = WithLines(Deaf(), 2).first_stage(split)
    up, north = normalise_rows((UP + 0.5 * NORTH)[None])[0] @ np.stack([UP, NORTH]).T
    expected = np.exp([[1.0, 1.0], [max(0.25, north), up]])
    np.testing.assert_allclose(scores(slice(0, 2)), expected, rtol=1e-3)
    np.testing.assert_allclose(scores(slice(1, 2)), expected[1:], rtol=1e-3)


def test_rows_with_lines_differ_from_the_main_rows_by_them_alone() -> None:
    preset = replace(PRESETS["small"], lines=7)
    rows = {job.name: job for job in jobs(preset)}
    apart = {f"{row}-lines-apart" for row in LINES_APART}
    heard = {f"{row}-lines" for row in WITH_LINES} | apart | {"reel-second-lines"}
    assert {name for name, job in rows.items() if job.lines} == heard
    for name in apart:
        own, usual = asdict(rows[name]), asdict(rows[name.removesuffix("-apart")])
        assert {*own.pop("overrides")} - {*usual.pop("overrides")} == {"model.stream_weights=type"}
        assert own | {"name": usual["name"]} == usual
    for row in WITH_LINES:
        own, usual = asdict(rows[f"{row}-lines"]), asdict(rows[f"{row}-n20"])
        differ = {name for name in own if own[name] != usual[name]}
        assert differ == {"name", "group", "lines"}
        assert own["lines"] == 7
    own, usual = (asdict(rows[name]) for name in ("reel-second-lines", "reel-second"))
    assert {name for name in own if own[name] != usual[name]} == {"name", "lines"}


@pytest.fixture
def own_bench(bench: Bench, tmp_path: Path) -> Bench:
    """A copy, since all tests share the other one."""
    shutil.copytree(bench.out, tmp_path / "comparison")
    return replace(bench, out=tmp_path / "comparison")


@pytest.mark.usefixtures("lines_by_chance")
def test_a_row_with_lines_is_trained_and_answers_with_them(own_bench: Bench, toy: Preset) -> None:
    own = Bench(own_bench.out, replace(toy, lines=3))
    run_pieces(own, only=["spr-stage1*", "reel-lines"], note=lambda _: None)
    job = next(job for job in own.jobs() if job.name == "reel-lines")
    assert own.result("reel-lines")["job"]["lines"] == 3
    answering = own.answering(job)
    assert isinstance(answering.built_on, WithLines)
    test = own.world("report").split("test")
    before, after = answering.built_on.before.proposals(test), answering.built_on.proposals(test)
    assert len(after.video) == len(before.video) + 3 * len(test.queries)


def test_queries_that_do_not_lie_in_the_space_of_the_subtitles_are_refused(world: World) -> None:
    with pytest.raises(InvalidValue, match="queries of 16 numbers and subtitles of 6"):
        nearest_lines(world.split("test"), 3)


def test_results_of_before_a_field_was_there_count(own_bench: Bench) -> None:
    bench = own_bench
    run_pieces(bench, only=["spr-stage1-n20"], note=lambda _: None)
    path = bench.result_file("spr-stage1-n20")
    found = json.loads(path.read_text())
    del found["job"]["lines"]
    path.write_text(json.dumps(found))
    run_pieces(bench, only=["spr-stage1-n20"], note=lambda _: None)  # is not refused
