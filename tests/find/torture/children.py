"""A function in a process of its own, with a budget of processor time and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running
from typing import Any
from unittest import mock

__all__ = ["in_child"]

_MEMORY = 6 << 30
"""Bytes of address space, most of it libraries and the stacks of their threads."""

_STALLED = 300
"""Seconds after which a process that needs no processor time either is given up: it waits for something."""


def in_child(
    task: Callable[..., str], *args: Any, seconds: int, begin: Callable[[int], object] = lambda _: None
) -> str:
    """What a function gives, or how its process ended.

    Args:
        task: a function of a module; an exception that it lets through is given as ``"TYPE: message"`` too.
        args: what it is called with.
        seconds: of processor time.
        begin: called with the number of the process; the task begins when it has returned.

    Returns:
        what the task gave; ``"SIGSEGV"``, ``"SIGXCPU"`` (its time is up), ``"SIGALRM"`` (it waits for what
        does not come) or the like where a signal ended it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["moviola.media", "moviola.cli", "moviola.mcp", "run"])
    # Python before 3.13 looks for these modules by the environment alone, and goes on without them.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        ensure_running()
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, seconds, task, args))
    process.start()
    theirs.close()
    assert process.pid is not None
    try:
        ours.recv()
        begin(process.pid)
        ours.send("begin")
        outcome: str = ours.recv()
    except (EOFError, ConnectionError):
        outcome = ""
    process.join()
    if process.exitcode is not None and process.exitcode < 0:
        return signal.Signals(-process.exitcode).name
    return outcome or f"exit code {process.exitcode}"


def _run(answer: Connection, seconds: int, task: Callable[..., str], args: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(_STALLED)
    answer.send("ready")
    answer.recv()
    try:
        answer.send(task(*args))
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}"[:500])
