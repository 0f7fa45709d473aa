"""Killed at any point: nothing that was finished is lost, the next run goes on, verify is clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moviola.library import compact, verify
from moviola.search import Library

# Prints every step of the work, so that the parent can kill it at a chosen one.
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
    for number in range(6):
        film(films / f"{number}.mp4", 40 + number, seed=number)
    generator = np.random.default_rng(int(how))
    before: dict[str, int] = {}
    ended = False
    for _ in range(5):
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
                assert verify(opened.store) == []
    with Library(library, encoder="demo", sentence_encoder="none") as opened:
        report = opened.index(films)
        assert before.items() <= finished(library).items()
        assert len(report.unchanged) == len(before)
        assert len(opened) == 6
        assert verify(opened.store) == []
        job = opened.catalogue.last_job()
        assert job is not None and (job.state == "done" or not report.added)


# Readers that stand in for real ones, in a process that kills itself at a chosen step of the reading, or when
# what was read of a video is written and not yet committed.
READING_CHILD = """
import os, signal, sys
from types import SimpleNamespace
from moviola.features import FeatureShards
from moviola.library.ingest import recognition
from moviola.library.ingest import speech as spoken
from moviola.library.ingest import screen_text as written
from moviola.search import Library
from moviola.types import Cue

folder, films, kill_at = sys.argv[1:]
begun = []

def read(kind, cue):
    begun.append(kind)
    if kill_at == f"{kind} {len(begun)}":
        os.kill(os.getpid(), signal.SIGKILL)
    return cue

def append(*arguments):
    extent = appended(*arguments)
    if kill_at == f"written {len(begun)}":
        os.kill(os.getpid(), signal.SIGKILL)
    return extent

appended, FeatureShards.append = FeatureShards.append, append
named = lambda name, **_: SimpleNamespace(id=name, revision="1")
recognition.load_text_reader = lambda name, languages: named("seer")
recognition.load_speech_reader = named
written.read_text = lambda *_, **__: read("text", [Cue(1, 3, "THE HARBOUR", "text", 0.9)])
spoken.read_speech = lambda *_: (read("speech", [Cue(2, 4, "hello umbrella", "speech", 0.5)]), "en", "")
with Library(folder, encoder="none") as library:
    report = library.index(films, ocr=True, speech="listener")
    print(*begun, *report.read["text"], *report.read["speech"], sep=",")
"""
# Four films are read in order, and three of them heard.
STEPS = ["text"] * 4 + ["speech"] * 3


def read_in_a_process(library: Path, films: Path, kill_at: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", READING_CHILD, str(library), str(films), kill_at],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", ["text 1", "text 3", "written 3", "speech 6", "written 7"])
def test_killed_while_reading_it_goes_on(tmp_path: Path, films: Path, kill_at: str) -> None:
    killed = read_in_a_process(tmp_path / "library", films, kill_at)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = int(kill_at.split()[1]) - 1
    with Library(tmp_path / "library", read_only=True) as library:
        counts = library.catalogue.cue_counts()
        assert len(library.catalogue.videos()) == 4  # the pictures were in before
        assert (counts["text"], counts["speech"]) == (min(done, 4), max(done - 4, 0))
    again = read_in_a_process(tmp_path / "library", films, "never")
    assert again.returncode == 0, again.stderr
    begun = again.stdout.strip().split(",")
    assert begun[: 7 - done] == STEPS[done:] and len(begun) == 2 * (7 - done)
    with Library(tmp_path / "library") as library:
        assert library.catalogue.cue_counts() == {"subtitle": 2, "speech": 3, "text": 4, "chapter": 0}
        assert verify(library.store) == []
        assert {moment.video_id for moment in library.search("harbour", by="text")} == {
            "a",
            "b",
            "d",
            "deep/c",
        }
        assert compact(library.store) >= 0
        assert verify(library.store) == []
