"""Killed at any point: no finished video is lost, the next run goes on, verify is clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moviola.search import Library

# Tells every step of the work on standard output, so that the parent can kill it at a chosen one.
CHILD = """
import sys
from moviola.search import Library
lib = Library(sys.argv[1], encoder="demo", sentence_encoder="none")
print("begin", flush=True)
lib.index(sys.argv[2], progress=lambda step: print(step.done, step.seconds, flush=True))
print("end", flush=True)
"""


def start(library: Path, films: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(library), str(films)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def finished(library: Path) -> dict[str, int]:
    """Videos that are in, by id, with their row numbers."""
    with Library(library, read_only=True) as reader:
        return {video.video_id: video.row for video in reader.catalogue.videos()}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_work_goes_on(tmp_path: Path, film: Callable[..., Path], how: signal.Signals) -> None:
    films, library = tmp_path / "films", tmp_path / "library"
    for number in range(8):
        film(films / f"{number}.mp4", 40 + number, seed=number)
    generator = np.random.default_rng(int(how))
    before: dict[str, int] = {}
    ended = False
    for _ in range(10):
        process = start(library, films)
        assert process.stdout is not None
        steps = int(generator.integers(0, 5))
        for number, line in enumerate(process.stdout):
            ended = ended or line.startswith("end")
            if number == steps:
                process.send_signal(how)
                break
        process.stdout.close()
        process.wait()
        if (library / "moviola.toml").exists():
            now = finished(library)
            assert before.items() <= now.items(), "a finished video was lost or done again"
            before = now
            with Library(library) as opened:
                assert opened.verify() == []
    with Library(library, encoder="demo", sentence_encoder="none") as opened:
        report = opened.index(films)
        assert before.items() <= finished(library).items()
        assert len(report.unchanged) == len(before)
        assert len(opened) == 8
        assert opened.verify() == []
        job = opened.catalogue.last_job()
        assert job is not None and (job.state == "done" or not report.added)
