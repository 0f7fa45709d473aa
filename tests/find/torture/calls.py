"""*System calls*: the n-th call of the system that changes a file fails, or is the last one, for every n.

What :mod:`writes` does where Python calls, this does where the system is called, by Python and by the C
libraries below it: SQLite in the middle of its commit, libav, faiss. ``strace`` counts the calls of an
operation that nothing disturbs, and then lets one fail in a process of its own, or kills it there. Changes
that are made through a mapping are no calls (SQLite's ``-shm``, which it makes again).

What must hold is what :mod:`writes` says. The n-th call of a run is not always the n-th of another, since
threads take turns: a call that failed elsewhere than in the folder is counted as such, and is no trial.
Alerts are left out: programs that they run are followed, too, and would fail at their own n-th call.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from children import in_child
from disturbed import Disturbed
from moviola.errors import MoviolaError
from operations import OPERATIONS
from writes import WAYS

__all__ = ["STRACE", "SystemCalls"]

STRACE = shutil.which("strace")
"""The program; None where it is not installed."""

_SECONDS = 120
"""Of processor time, for an operation on a library of three films."""

_CHANGING = (
    "openat", "open", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2", "fsync", "fdatasync",
    "ftruncate", "truncate", "fallocate", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir",
    "mkdirat", "rmdir", "link", "linkat", "copy_file_range", "sendfile",
)  # fmt: skip
_TRACED = ",".join(f"?{name}" for name in _CHANGING)  # not every machine has each
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_OPENS = ("openat", "open")
_FOR_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT")


class SystemCalls(Disturbed[str, int, str]):
    """Each call by its name and number among those of a thread, and how it ends."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self._log = folder / "calls"

    def points(self) -> list[tuple[str, str, int, str]]:
        """Every call of every operation, in each way."""
        return [
            (name, call, number, way)
            for name, operation in OPERATIONS.items()
            if not operation.tries
            for call, number in self._calls(name)
            for way in WAYS
        ]

    def _calls(self, name: str) -> list[tuple[str, int]]:
        """The calls of an operation that change something in the folder, each with its number."""
        self.fresh(name)
        outcome = self._operate(name)
        assert outcome == "done", f"{name}, undisturbed: {outcome}"
        before: Counter[tuple[str, str]] = Counter()
        found = {}
        for line in self._log.read_text(errors="replace").splitlines():
            if made := _CALL.match(line):
                thread, call, rest = made.groups()
                before[thread, call] += 1
                if str(self.folder) in rest and (call not in _OPENS or _FOR_WRITING.search(rest)):
                    found[call, before[thread, call]] = True
        return list(found)

    def disturb(self, name: str, call: str, number: int, way: str) -> Iterator[str]:
        """Let one call of an operation fail; gives what must not happen."""
        self.fresh(name)
        what = "signal=KILL" if way == "kill" else f"error={way}"
        outcome = self._operate(name, f"inject={call}:{what}:when={number}")
        disturbed = [
            line for line in self._log.read_text(errors="replace").splitlines() if "(INJECTED)" in line
        ]
        if outcome != "SIGKILL" and not any(str(self.folder) in line for line in disturbed):
            self.counts["failed elsewhere"] += 1
            return
        known = {"done": "succeeded all the same", "SIGKILL": "killed"}
        self.counts[known.get(outcome, "refused")] += 1
        if outcome not in known and not outcome.startswith("refused: "):
            yield outcome
        elif outcome not in known and str(self.folder) not in outcome:
            yield f"no file is named: {outcome}"
        yield from self.usable(name, done=outcome == "done")
        yield from self.done_again(name)

    def _operate(self, name: str, *disturbance: str) -> str:
        """Operate in a process of which all changing calls are taken down: how it ended."""
        task = in_child(
            _operated,
            name,
            self.library,
            self.films,
            seconds=_SECONDS,
            begin=partial(self._trace, disturbance),
        )
        self._tracer.communicate()
        return task

    def _trace(self, disturbance: tuple[str, ...], process: int) -> None:
        """Attach to a process; return when no call is missed any more."""
        options = [option for one in (f"trace={_TRACED}", *disturbance) for option in ("-e", one)]
        command = [STRACE or "strace", "-f", "-y", "-s", "0", "-o", self._log, *options, "-p", str(process)]
        self._tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._tracer.stderr is not None
        said = self._tracer.stderr.readline()
        assert "attached" in said, f"strace cannot look into other processes here: {said}"


def _operated(name: str, folder: Path, films: Path) -> str:
    try:
        OPERATIONS[name].run(folder, films)
    except MoviolaError as error:
        return f"refused: {error}"
    return "done"
