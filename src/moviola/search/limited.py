"""Programs and HTTP requests whose time is limited as a whole, and that can be ended before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from moviola.errors import MoviolaError
from moviola.search import asking

__all__ = ["Answer", "NotDone", "ask", "run"]

# Seconds between two looks at whether a program is to end.
_PATIENCE = 0.2


class NotDone(MoviolaError):
    """A program or a request that did not come to its end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered.

    Attributes:
        location: where it points to, empty if nowhere.
        retry_after: when it may be asked again, as it says; empty if it does not.
        cut: whether the body is longer than what was read of it.
    """

    status: int
    body: str
    location: str = ""
    retry_after: str = ""
    cut: bool = False


def run(
    command: Sequence[str], body: bytes, seconds: float, stop: Event | None = None, *, out: bool = False
) -> tuple[int, bytes]:
    """Run a program, without a shell, with a body on its standard input.

    Args:
        seconds: that it may take.
        stop: ends it, too, when set.
        out: whether its standard output is wanted.

    Returns:
        its exit code, and its output, empty if it is not wanted.

    Raises:
        NotDone: it cannot be started, or was ended.
    """
    where, stop = subprocess.PIPE if out else subprocess.DEVNULL, stop or Event()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=where, start_new_session=True)
    except OSError as error:
        raise NotDone(f"{command[0]}: {error.strerror}") from error
    # Not by `communicate`: after a timeout it writes nothing more of a body that no pipe holds as a whole.
    pipe, process.stdin = process.stdin, None
    Thread(target=_feed, args=(pipe, body), name="feeding a program", daemon=True).start()
    with process:
        left = seconds
        while True:
            try:
                said, _ = process.communicate(timeout=min(_PATIENCE, left))
                return process.returncode, said or b""
            except KeyboardInterrupt:  # it is in a session of its own, so that it has heard nothing
                _kill(process)
                raise
            except subprocess.TimeoutExpired:
                left -= _PATIENCE
                if left > 0 and not stop.is_set():
                    continue
                _kill(process)
                process.communicate()
                raise NotDone("stopped" if stop.is_set() else f"not done within {seconds:g} s") from None


def ask(
    method: str,
    address: str,
    body: str | None = None,
    *,
    seconds: float,
    stop: Event | None = None,
    headers: Mapping[str, str] | None = None,
    most: int = 1 << 16,
) -> Answer:
    """Ask a server; the limit of seconds is one of the whole, from the first look for the host on, and of the
    body at most ``most`` bytes are read. Redirects are not followed.

    Raises:
        NotDone: there is no answer.
    """
    own = {"User-Agent": "moviola", **({} if body is None else {"Content-Type": "application/json"})}
    order = {
        "method": method, "address": address, "body": body, "headers": {**own, **(headers or {})},
        "seconds": seconds, "most": most,
    }  # fmt: skip
    # By standard input: other users see the arguments of a process, and an address may hold a secret.
    program = (sys.executable, "-I", str(Path(asking.__file__)))
    _, written = run(program, json.dumps(order).encode(), seconds, stop, out=True)
    try:
        outcome = json.loads(written)
        if "error" in outcome:
            raise NotDone(f"{outcome['error']:.300}")
        said, location, retry_after = (str(outcome[name]) for name in ("body", "location", "retry_after"))
        return Answer(int(outcome["status"]), said, location, retry_after, bool(outcome["cut"]))
    except (ValueError, KeyError, TypeError) as error:
        raise NotDone("no answer that can be read") from error


def _feed(pipe: Any, body: bytes) -> None:
    """Write a body; a program that ends before it has read all of it has read enough."""
    with suppress(OSError), pipe:
        pipe.write(body)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program with those that it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
