"""Run the command line in this process, as a person would: words in; exit code, output, messages back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from moviola.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command gave back."""

    code: int
    out: str
    err: str


@pytest.fixture
def moviola(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """``moviola("search", "a dog")`` -> :class:`Outcome`."""

    def run(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["moviola", *map(str, words)])
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
