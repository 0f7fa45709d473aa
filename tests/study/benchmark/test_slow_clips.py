"""A row on clips of 1.5 s refines what the stage 1 of clips of a second proposes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from comparison.bench import Bench
from comparison.plan import Preset
from comparison.run import run_pieces
from moviola.study.training.first_stage import Candidates
from toy_world import MANY_EVENTS, toy_world

SLOW = 1.5


def write_slow_features(bench: Bench) -> None:
    """The toy films with every clip 1.5 s after the one before."""
    world = bench.world("report-1.5s")
    toy = toy_world(bench.preset.videos, events=MANY_EVENTS)

    def fewer(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: own[np.arange(0, len(own), SLOW).astype(int)] for name, own in rows.items()}

    folder = world.of_clips("features")
    replace(toy, visual=fewer(toy.visual), subtitles=fewer(toy.subtitles)).write_features(
        folder, subtitles=True
    )
    about = json.loads((folder / "features.json").read_text())
    (folder / "features.json").write_text(
        json.dumps(about | {"clip_seconds": SLOW, "durations": toy.durations})
    )


def test_a_row_of_slow_clips_is_trained_and_answers(bench: Bench, toy: Preset, tmp_path: Path) -> None:
    shutil.copytree(bench.out, tmp_path / "comparison")
    own = Bench(tmp_path / "comparison", replace(toy, slow_clips=True))
    write_slow_features(own)
    run_pieces(own, only=["spr-stage1*", "spr-relo-1.5s"], note=lambda _: None)
    job = next(job for job in own.jobs() if job.name == "spr-relo-1.5s")
    found, answering = own.result(job.name), own.answering(job)
    assert found["test"] and found["val"] and "recall" in found
    assert isinstance(answering.built_on, Candidates)
    assert own.world(job.world).features.facts.clip_seconds == SLOW
    first = next(job for job in own.jobs() if job.name == "spr-stage1-n20")
    usual = own.answering(first).run(own.world("report").split("test"))
    here = answering.built_on.proposals(own.world(job.world).split("test"))
    assert len(here.video) == len(usual.query)
    np.testing.assert_allclose(here.start, usual.start)
