"""Programs whose time is limited as a whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

from moviola.search import limited

COUNTING = "import sys; print(len(sys.stdin.buffer.read()))"


def test_a_body_that_no_pipe_holds_reaches_a_program_that_starts_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the first look at the program came before it had read all, the rest was never written, and the
    program waited for it until its time was over: stills on a busy machine.
    """
    monkeypatch.setattr(limited, "_PATIENCE", 1e-3)
    code, said = limited.run([sys.executable, "-c", COUNTING], b"x" * (1 << 20), 60, out=True)
    assert (code, said.strip()) == (0, b"1048576")


def test_a_program_may_end_without_its_body() -> None:
    assert limited.run([sys.executable, "-c", "pass"], b"x" * (1 << 20), 60)[0] == 0


def test_an_interruption_ends_the_program_that_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went on, in its session of its own, with what nobody wanted any more."""
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *_: Any, **__: Any) -> Any:
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        limited.run([sys.executable, "-c", "import signal; signal.pause()"], b"", 60)
    assert started[0].wait(60) == -signal.SIGKILL
