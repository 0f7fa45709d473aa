"""A function in a process of its own, with a budget of processor time and memory."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["in_child"]

_MEMORY = 6 << 30
"""Bytes of address space, most of it libraries and the stacks of their threads."""

_STALLED = 300
"""Seconds after which a process that needs no processor time either is given up: it waits for something."""


def in_child(task: Callable[..., str], *args: Any, seconds: int) -> str:
    """What a function gives, or how its process ended.

    Args:
        task: a function of a module; an exception that it lets through is given as ``"TYPE: message"`` too.
        args: what it is called with.
        seconds: of processor time.

    Returns:
        what the task gave; ``"SIGSEGV"``, ``"SIGXCPU"`` (its time is up), ``"SIGALRM"`` (it waits for what
        does not come) or the like where a signal ended it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["moviola.media", "moviola.cli", "moviola.mcp", "mutants", "inputs"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, seconds, task, args))
    process.start()
    theirs.close()
    try:
        outcome: str = ours.recv()
    except EOFError:
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
    try:
        answer.send(task(*args))
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}"[:500])
