"""Run the command line in this process, as a person would: words in; exit code, output, messages back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from moviola.cli import main
from moviola.cli.app import console


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
        monkeypatch.setattr(console.rich, "width", int(os.environ.get("COLUMNS", "80")))
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
