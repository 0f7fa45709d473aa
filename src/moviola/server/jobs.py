"""Bringing videos into the library while it is searched: one process at a time, to be ended at any point.

The process is :mod:`moviola.server.worker`. A library loses at most the videos in flight when it is killed
(:mod:`moviola.library`). Jobs are remembered as long as the server runs.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from moviola.errors import NotFound
from moviola.server.inside import require_inside, resolved
from moviola.server.refusals import Busy, Forbidden
from moviola.server.schemas import Job, Refusal

__all__ = ["ENDED", "Event", "Jobs", "ended"]

ENDED = {"done", "failed", "cancelled"}
"""States of a job to which nothing happens any more."""
HEARTBEAT = 15.0
"""Seconds after which listeners hear that nothing has happened, so that no proxy gives the connection up."""
# Jobs and events of one that are remembered.
_MOST_JOBS, _MOST_EVENTS = 100, 1000
# Seconds that a process has to end by itself.
_PATIENCE = 5.0
# A line of the worker: a report on a whole library may be long.
_LONGEST_LINE = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened to a job.

    Attributes:
        number: from 1, rising.
        name: ``"progress"``, ``"refused"``, or ``"done"`` for the last one, however the job ended.
        job: as it was then.
    """

    number: int
    name: Literal["progress", "refused", "done"]
    job: Job


@dataclass(eq=False)
class _Run:
    """A job, what has happened to it, and its process."""

    job: Job
    sources: list[Path]
    ocr: bool | None
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_MOST_EVENTS))
    happened: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    cancelled: bool = False

    def note(self, name: Literal["progress", "refused", "done"], **changes: Any) -> None:
        """Change the job and tell whoever listens."""
        self.job = self.job.model_copy(update=changes)
        number = self.events[-1].number + 1 if self.events else 1
        self.events.append(Event(number, name, self.job))
        self.happened.set()
        self.happened = asyncio.Event()

    def take(self, line: Mapping[str, Any]) -> None:
        """What the process has said."""
        if "progress" in line:
            self.note("progress", **line["progress"])
        elif "refused" in line:
            self.note("refused", refused=[*self.job.refused, Refusal(**line["refused"])])
        elif "error" in line:
            self.job = self.job.model_copy(update={"error": line["error"]})
        elif "added" in line:
            self.job = self.job.model_copy(update={"added": line["added"]})


class Jobs:
    """All jobs since the server was started.

    Args:
        library: folder of the library.
        allowed: folders below which files may be brought in.
        most: jobs that wait or run at once.
        patient: wait while another process is writing to the library.
    """

    def __init__(self, library: Path, allowed: Iterable[Path], most: int, *, patient: bool = False) -> None:
        self._library, self._most, self._patient = library, most, patient
        self._allowed = [folder.resolve() for folder in allowed]
        self._runs: dict[str, _Run] = {}
        self._turn = asyncio.Lock()
        self.closing = asyncio.Event()

    async def add(self, sources: Iterable[str], ocr: bool | None = None) -> Job:
        """Begin to bring files and folders in, when the jobs before are done.

        Args:
            sources: files and folders.
            ocr: read text in pictures, as of :meth:`moviola.Library.index`.

        Raises:
            Forbidden: a path leads out of the folders that were allowed, or none were.
            NotFound: nothing is there.
            Busy: too many jobs wait.
        """
        paths = await asyncio.to_thread(lambda: [self._checked(source) for source in sources])
        if sum(run.job.state not in ENDED for run in self._runs.values()) >= self._most:
            raise Busy(f"{self._most} jobs wait or run; try again when one is done")
        job = Job(
            job=secrets.token_hex(8), state="queued", sources=[str(path) for path in paths], done=0, total=0,
            share=0.0, step="", video="", seconds=0.0, refused=[], added=0, started=None, finished=None,
            error="",
        )  # fmt: skip
        run = self._runs[job.job] = _Run(job, paths, ocr)
        run.note("progress")
        run.task = asyncio.create_task(self._work(run))
        self._forget()
        return job

    def _checked(self, source: str) -> Path:
        """Where a source lies, links followed; one that is relative is looked for in each allowed folder."""
        places = [(folder, resolved(folder / source)) for folder in self._allowed]
        inside = [(folder, path) for folder, path in places if path.is_relative_to(folder)]
        if not inside:
            allowed = (
                ", ".join(map(str, self._allowed)) or "none; start the server with --allow-ingest FOLDER"
            )
            raise Forbidden(f"{source}: not in a folder to ingest from ({allowed})")
        for folder, path in inside:
            if _is_there(path):
                require_inside(path, folder)
                return path
        raise NotFound(f"{source}: no such file or folder where videos may be brought in from")

    def _forget(self) -> None:
        """Drop the oldest jobs that have ended where there are too many."""
        ended = [name for name, run in self._runs.items() if run.job.state in ENDED]
        for name in ended[: max(0, len(self._runs) - _MOST_JOBS)]:
            del self._runs[name]

    def all(self) -> list[Job]:
        """All that are remembered, newest first."""
        return [run.job for run in reversed(self._runs.values())]

    def get(self, name: str) -> Job:
        """One job.

        Raises:
            NotFound: there is none of that name since the server was started.
        """
        return self._run(name).job

    def _run(self, name: str) -> _Run:
        found = self._runs.get(name)
        if found is None:
            raise NotFound(
                f"job {name[:100]!r}: none since the server was started; what a job of a former run has "
                "finished is in the library, so start it again for the rest"
            )
        return found

    def last_event(self, name: str) -> int:
        """Number of a job's newest event."""
        return self._run(name).events[-1].number

    async def cancel(self, name: str) -> Job:
        """End a job; videos that are finished stay in the library. One that has ended stays as it is.

        Raises:
            NotFound: as of :meth:`get`.
        """
        run = self._run(name)
        if run.task is not None and not run.task.done():
            run.cancelled = True
            run.task.cancel()
            await asyncio.wait([run.task])
        return run.job

    async def events(self, name: str, after: int) -> AsyncIterator[Event | None]:
        """What happens to a job: events with larger numbers than ``after``, until it has ended.

        None stands for nothing having happened for a while.
        """
        run = self._run(name)
        while not self.closing.is_set():
            happened = run.happened
            for event in [event for event in run.events if event.number > after]:
                after = event.number
                yield event
            if run.job.state in ENDED:
                return
            try:
                await asyncio.wait_for(happened.wait(), HEARTBEAT)
            except TimeoutError:
                yield None

    async def close(self) -> None:
        """End all jobs."""
        self.closing.set()
        for name in list(self._runs):
            await self.cancel(name)

    async def _work(self, run: _Run) -> None:
        """Wait for the job's turn, and see its process through."""
        state: Literal["done", "failed", "cancelled"] = "failed"
        try:
            async with self._turn:
                run.note("progress", state="running", started=_now())
                code = await self._process(run)
                state = "failed" if code else "done"
                if code and not run.job.error:
                    run.take({"error": f"the process ended with code {code}; the server's log may say more"})
        except asyncio.CancelledError:
            state = "cancelled"
        finally:
            share = 1.0 if state == "done" else run.job.share
            run.note("done", state=state, finished=_now(), video="", seconds=0.0, share=share)

    async def _process(self, run: _Run) -> int:
        """Run the worker; gives its exit code."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "moviola.server.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE,
        )  # fmt: skip
        try:
            assert process.stdin is not None and process.stdout is not None
            sources = [str(path) for path in run.sources]
            order = {
                "library": str(self._library), "sources": sources, "ocr": run.ocr,
                "allowed": [str(folder) for folder in self._allowed], "patient": self._patient,
            }  # fmt: skip
            process.stdin.write(json.dumps(order).encode() + b"\n")
            async for line in process.stdout:
                run.take(json.loads(line))
            return await process.wait()
        finally:
            await ended(process)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than names can be
        return False


async def ended(process: asyncio.subprocess.Process) -> None:
    """See that a process is gone."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
