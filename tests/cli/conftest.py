"""Run the command line in this process, as a person would: words in; exit code, output, messages back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.cli import main
from moviola.cli.app import console
from moviola.media import write_video


@dataclass(frozen=True)
class Outcome:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """The objects of ``--json``, one per line."""
        return [json.loads(line) for line in self.out.split("\n") if line]


@pytest.fixture
def moviola(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """``moviola("search", "a dog")`` -> :class:`Outcome`."""

    def run(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["moviola", *map(str, words)])
        # A console keeps the width that it had when it was made, which pytest's workers are given.
        monkeypatch.setattr(console, "width", int(os.environ.get("COLUMNS", "80")))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
            sys.exit(0)
        captured = capsys.readouterr()
        code = left.value.code
        return Outcome(
            code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err
        )

    return run


_TORCHLESS = """
import sys
sys.modules |= dict.fromkeys(["torch", "transformers", "scipy"])  # not to be imported
from moviola.cli import main
main()
"""


@pytest.fixture
def torchless() -> Callable[..., Outcome]:
    """The same in a process of its own, where what a plain installation lacks cannot be imported."""

    def run(*words: object) -> Outcome:
        command = [sys.executable, "-c", _TORCHLESS, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, one with subtitles, and a file that is none; to be read only."""
    folder = tmp_path_factory.mktemp("films")
    generator = np.random.default_rng(0)
    for name in ("harbour", "street"):
        frames = [generator.integers(0, 255, (72, 96, 3), np.uint8) for _ in range(60)]
        write_video(folder / f"{name}.mp4", frames, rate=5)
    (folder / "harbour.srt").write_text("1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n")
    (folder / "broken.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="session")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of them, to be read only."""
    from moviola.search import Library

    folder = tmp_path_factory.mktemp("library") / "lib"
    with Library(folder, encoder="demo", sentence_encoder="none") as lib:
        lib.index(films)
    return folder
