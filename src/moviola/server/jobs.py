"""Indexing beside the searches of a server: jobs, one process at a time, ended at any point; watched folders.

The process is :mod:`moviola.server.worker`. If it is killed, a library loses at most the videos in flight
(:mod:`moviola.library`). Jobs are remembered while the server runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from moviola.errors import NotFound
from moviola.search.alerts import AlertOptions
from moviola.server.inside import require_inside, resolved
from moviola.server.problems import Busy, Forbidden, unexpected
from moviola.server.progress import Progress
from moviola.server.schemas import Job, Refusal, Why

__all__ = ["ENDED", "Event", "Jobs", "watch"]

log = logging.getLogger("moviola.server")

ENDED = {"done", "failed", "cancelled"}
"""Final states of a job."""
HEARTBEAT = 15.0  # seconds between signs of life to listeners, so that no proxy closes the connection
_MOST_JOBS, _MOST_EVENTS = 100, 1000  # remembered jobs, and events of each
_PATIENCE = 5.0  # seconds that a process has to end itself
_PAUSE = 10.0  # seconds before a failed process that watches is restarted
_LONGEST_LINE = 64 * 2**20  # bytes of a line of the worker: a report on a whole library may be long


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a job: its number from 1, rising; its name, finally ``"done"``; the job at that time."""

    number: int
    name: Literal["progress", "refused", "done"]
    job: Job


@dataclass(eq=False)
class Run:
    """A job as it stands, and its events so far."""

    job: Job
    library: Path
    ocr: bool | None
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_MOST_EVENTS))
    happened: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    progress: Progress = field(default_factory=Progress)

    def note(self, name: Literal["progress", "refused", "done"], **changes: Any) -> None:
        self.job = self.job.model_copy(update=changes)
        number = self.events[-1].number + 1 if self.events else 1
        self.events.append(Event(number, name, self.job))
        self.happened.set()
        self.happened = asyncio.Event()

    def take(self, line: Mapping[str, Any]) -> None:
        if "progress" in line:
            self.progress.at(line["progress"]["share"])
            self.note("progress", **line["progress"], seconds_left=self.progress.seconds_left)
        elif "refused" in line:
            one = Refusal(**line["refused"], why=Why.of(line["refused"]["reason"]))
            self.note("refused", refused=[*self.job.refused, one])
        else:  # its last line: an error, or the numbers of videos and copies
            self.job = self.job.model_copy(update=line)


class Jobs:
    """All jobs since the server started, of all libraries.

    Args:
        allowed: folders from which videos may be indexed.
        most: maximum number of waiting and running jobs.
        patient: wait while another process is writing to the library.
        device: as in :class:`moviola.Library`.
    """

    def __init__(
        self,
        allowed: Iterable[Path],
        most: int,
        *,
        patient: bool = False,
        device: str = "auto",
    ) -> None:
        self._most, self._patient, self._device = most, patient, device
        self._allowed = [folder.resolve() for folder in allowed]
        self._runs: dict[str, Run] = {}
        self._turn = asyncio.Lock()
        self.closing = asyncio.Event()

    async def add(self, library: Path, name: str, sources: Iterable[str], ocr: bool | None = None) -> Job:
        """Queue a job that indexes files and folders into a library; ``name`` is said of it, and ``ocr`` is
        as in :meth:`moviola.library.Indexer.index`.

        Raises:
            Forbidden: a path is outside the allowed folders, or no folder is allowed.
            NotFound: no such file or folder.
            Busy: too many jobs.
        """
        paths = await asyncio.to_thread(lambda: [str(self._checked(source)) for source in sources])
        self.require_room()
        job = Job(
            job=secrets.token_hex(8), state="queued", library=name, sources=paths, done=0, total=0,
            share=0.0, seconds_left=None, step="", video="", seconds=0.0, refused=[], added=0,
            copies=0, started=None, finished=None, error="",
        )  # fmt: skip
        run = self._runs[job.job] = Run(job, library, ocr)
        run.note("progress")
        run.task = asyncio.create_task(self._work(run))
        ended = [one for one, run in self._runs.items() if run.job.state in ENDED]
        for one in ended[: max(0, len(self._runs) - _MOST_JOBS)]:
            del self._runs[one]
        return job

    def require_room(self) -> None:
        """Raise Busy where as many jobs wait or run as may."""
        if sum(run.job.state not in ENDED for run in self._runs.values()) >= self._most:
            raise Busy(f"{self._most} jobs wait or run; try again when one is done")

    def _checked(self, source: str) -> Path:
        """Path of a source, links followed; a relative one is searched in each allowed folder."""
        places = [(folder, resolved(folder / source)) for folder in self._allowed]
        inside = [(folder, path) for folder, path in places if path.is_relative_to(folder)]
        if not inside:
            allowed = (
                ", ".join(map(str, self._allowed)) or "none; start the server with --allow-ingest FOLDER"
            )
            raise Forbidden(f"{source}: not in an allowed folder ({allowed})")
        for folder, path in inside:
            if os.path.exists(path):  # noqa: PTH110 -- no error for a name longer than names can be
                require_inside(path, folder)
                return path
        raise NotFound(f"{source}: no such file or folder in the allowed folders; check its name")

    def all(self) -> list[Job]:
        """All remembered jobs, newest first."""
        return [run.job for run in reversed(self._runs.values())]

    def get(self, name: str) -> Run:
        """One job; NotFound where there is none since the server started."""
        if run := self._runs.get(name):
            return run
        raise NotFound(
            f"job {name[:100]!r}: unknown since the server started; videos of an earlier job are in the "
            "library, so start it again for the rest"
        )

    async def cancel(self, name: str) -> Job:
        """End a job; finished videos stay in the library. A job that has ended stays as it is."""
        run = self.get(name)
        if run.task is not None and not run.task.done():
            await asyncio.sleep(0)  # a task that never began would not end the job
            run.task.cancel()
            await asyncio.wait([run.task])
        return run.job

    async def events(self, name: str, after: int) -> AsyncIterator[Event | None]:
        """Events of a job with numbers above ``after``, until it has ended.

        None is a sign of life after some time without an event.
        """
        run = self.get(name)
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
        self.closing.set()
        for name in list(self._runs):
            await self.cancel(name)

    async def _work(self, run: Run) -> None:
        state: Literal["done", "failed", "cancelled"] = "failed"
        order = {
            "library": str(run.library), "sources": run.job.sources, "ocr": run.ocr,
            "allowed": [str(folder) for folder in self._allowed], "patient": self._patient,
            "device": self._device,
        }  # fmt: skip
        try:
            async with self._turn:
                run.progress.at(0)
                run.note("progress", state="running", started=_now())
                code = await run_worker(order, run.take)
                state = "failed" if code else "done"
                if code and not run.job.error:
                    run.take({"error": f"the process ended with code {code}; the server's log may say more"})
        except asyncio.CancelledError:
            state = "cancelled"
        except Exception as error:
            log.exception("job %s failed", run.job.job)
            run.take({"error": unexpected(error)})
        finally:
            job = run.job
            # The last word of the process on its progress is from before the last video of the last step.
            done, share = (job.total, 1.0) if state == "done" else (job.done, job.share)
            run.note(
                "done", state=state, finished=_now(), done=done, video="", seconds=0.0, share=share,
                seconds_left=None,
            )  # fmt: skip
            fields = {"job": job.job, "state": state, "added": job.added, "refused": len(job.refused)}
            log.info("job", extra={"fields": {**fields, "error": job.error}})


async def watch(
    library: Path, folders: Sequence[Path], reading: Mapping[str, Any], alerts: AlertOptions, device: str
) -> None:
    """Keep a library in step with folders, see :mod:`moviola.library.ingest.watching`, until cancelled.

    ``reading`` are options of :meth:`moviola.library.Indexer.index`; ``alerts`` reports new findings of saved
    searches.
    """
    order = {
        "library": str(library), "watch": [str(folder) for folder in folders], "reading": dict(reading),
        "alerts": asdict(alerts), "device": device,
    }  # fmt: skip

    def report(line: Mapping[str, object]) -> None:
        for kind, what in line.items():
            (log.info if kind == "watched" else log.warning)("%s: %s", kind, what)

    while True:
        await run_worker(order, report)
        log.warning("watching ended; it restarts in %g s", _PAUSE)
        await asyncio.sleep(_PAUSE)


async def run_worker(order: Mapping[str, Any], take: Callable[[Mapping[str, Any]], None]) -> int:
    """Run :mod:`moviola.server.worker`; the process is gone when this ends, however it ends.

    ``order`` is its first line, ``take`` gets each line that it writes; returns its exit code.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "moviola.server.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE,
        )  # fmt: skip
    except OSError as error:
        take({"error": f"no process can be started on the server ({error.strerror}); try again later"})
        return 1
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        async for line in process.stdout:
            if line.startswith(b"{"):  # a plug-in or a C library may print, too
                take(json.loads(line))
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _PATIENCE)
            except TimeoutError:
                process.kill()
                await process.wait()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
