"""Bringing videos in while the library is searched: progress, refusals, ends of every kind."""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from filelock import FileLock

from distinct import film_like
from http_calls import error, events, index, job_of, ok, search
from moviola.library import compact, verify
from moviola.search import Library
from moviola.server.jobs import Jobs, Run, run_worker
from moviola.server.schemas import Job

Serving = Callable[..., TestClient]


@pytest.fixture
def empty(folder: Path) -> Path:
    """The library without its videos."""
    with Library(folder) as library:
        library.indexer.remove([video.video_id for video in library.catalogue.videos()])
        compact(library.store)  # else they would come back without being encoded
    return folder


@pytest.mark.slow
def test_a_job_brings_videos_in_and_says_what_it_refuses(serving: Serving, empty: Path, films: Path) -> None:
    with serving(empty, allow_ingest=(films.parent,)) as http:
        assert search(http, "umbrella")["moments"] == []
        job = index(http, films.name)["job"]
        received = list(events(http, job))
        names, last = [name for name, _ in received], received[-1][1]
        assert names[-1] == "done" and {"progress", "refused"} <= set(names)
        assert (last["state"], last["added"], last["error"]) == ("done", 3, "")
        shares = [one["share"] for _, one in received]
        assert shares == sorted(shares) and (shares[0], shares[-1]) == (0, 1)
        assert [refusal["video"] for refusal in last["refused"]] == ["broken"]
        assert "text file" in last["refused"][0]["reason"]
        assert search(http, "umbrella")["moments"][0]["video_id"] == "harbour"
        assert ok(http.get("/api/jobs"))["jobs"] == [job_of(http, job)] == [last]
        # Who was cut off hears the rest, and nothing twice.
        address = f"/api/jobs/{job}/events"
        rest = http.get(address, headers={"Last-Event-ID": str(len(received) - 2)}).text
        assert [line for line in rest.splitlines() if line.startswith("event")] == [
            f"event: {name}" for name in names[-2:]
        ]
        assert http.get(address, headers={"Last-Event-ID": str(len(received))}).status_code == 204
        assert ok(http.delete(f"/api/jobs/{job}"))["state"] == "done"


@pytest.mark.slow
def test_jobs_wait_for_each_other_and_can_be_ended(serving: Serving, empty: Path, films: Path) -> None:
    with serving(empty, allow_ingest=(films,)) as http:
        first, second = (index(http, source)["job"] for source in (str(films), "harbour.mp4"))
        assert job_of(http, second)["state"] == "queued"
        for job in (second, first):
            assert ok(http.delete(f"/api/jobs/{job}"))["state"] == "cancelled"
        third = index(http, "harbour.mp4")["job"]
        assert [job for _, job in events(http, third)][-1]["state"] == "done"
        assert [job["job"] for job in ok(http.get("/api/jobs"))["jobs"]] == [third, second, first]
    with Library(empty) as library:
        assert verify(library.store) == []


def test_no_more_jobs_wait_than_the_limit(serving: Serving, empty: Path, films: Path) -> None:
    from moviola.server.options import Limits

    with serving(empty, allow_ingest=(films,), limits=Limits(jobs=1)) as http:
        index(http, "harbour.mp4")
        refused = error(http.post("/api/jobs", json={"sources": ["harbour.mp4"], "ocr": False}))
        assert refused[:2] == (503, "busy") and "try again" in refused[2]


def test_a_library_that_another_process_writes_fails_the_job(
    serving: Serving, empty: Path, films: Path
) -> None:
    with serving(empty, allow_ingest=(films,)) as http, Library(empty) as other, other.store.writing():
        *_, (name, job) = events(http, index(http, "harbour.mp4")["job"])
    assert (name, job["state"]) == ("done", "failed")
    assert "is writing to this library" in job["error"]


def test_searches_and_jobs_compute_on_the_device_of_the_server(
    serving: Serving, folder: Path, films: Path, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    other_bytes = (films / "harbour.mp4").read_bytes() + bytes(8)
    (inbox / "harbour.mp4").write_bytes(other_bytes)  # so that it is encoded
    with serving(folder, allow_ingest=(inbox,), device="abacus") as http:
        answer = http.post("/api/search", json={"query": "a lighthouse"})
        *_, (_, job) = events(http, index(http, "harbour.mp4")["job"])
    for said in (answer.text, job["error"]):
        assert "device 'abacus': unknown" in said


def test_who_listens_hears_that_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviola.server.jobs.HEARTBEAT", 0.0)
    jobs = Jobs([tmp_path], most=1)

    async def listen() -> list[str | None]:
        async with jobs._turn:  # so that the job waits
            job = await jobs.add(tmp_path, "films", ["."])
            heard: list[str | None] = []
            async for event in jobs.events(job.job, 0):
                heard.append(event and event.name)
                if event is None:
                    await jobs.cancel(job.job)
        return heard

    assert asyncio.run(listen()) == ["progress", None, "done"]


def test_a_job_that_is_cancelled_at_once_has_ended(tmp_path: Path) -> None:
    jobs = Jobs([tmp_path], most=1)

    async def cancelled() -> Job:
        return await jobs.cancel((await jobs.add(tmp_path, "films", ["."])).job)

    assert asyncio.run(cancelled()).state == "cancelled"


def ended_job(folder: Path) -> Job:
    """A job of one folder, at its end."""
    jobs = Jobs([folder], most=1)

    async def last() -> Job:
        job = await jobs.add(folder, "films", ["."])
        return [event.job async for event in jobs.events(job.job, 0) if event is not None][-1]

    return asyncio.run(last())


@pytest.mark.parametrize(("code", "state", "done"), [(0, "done", 3), (1, "failed", 2)])
def test_a_job_that_is_done_has_done_all_videos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, state: str, done: int
) -> None:
    async def worker(_: object, take: Callable[[Mapping[str, Any]], None]) -> int:
        line = {"done": 2, "total": 3, "video": "c", "seconds": 1.0, "step": "text", "share": 0.9}
        take({"progress": line})
        return code

    monkeypatch.setattr("moviola.server.jobs.run_worker", worker)
    job = ended_job(tmp_path)
    assert (job.state, job.done, job.total) == (state, done, 3)


def test_a_process_that_cannot_be_started_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    job = ended_job(tmp_path)
    assert (job.state, "Too many open files" in job.error) == ("failed", True)


def test_an_unexpected_error_is_the_reason_of_a_job_that_fails_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def worker(*_: object) -> int:
        raise KeyError("share")

    monkeypatch.setattr("moviola.server.jobs.run_worker", worker)
    job = ended_job(tmp_path)
    assert (job.state, "KeyError: 'share'" in job.error) == ("failed", True)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.name == "moviola.server" and job.job in record.getMessage()


FAILS = """
import sys
from contextlib import nullcontext
from moviola.server import worker

worker.Library, worker._indexed = lambda library, **_: nullcontext(), lambda *_: {}["frames"]
sys.exit(worker.main())
"""


def test_an_unexpected_error_of_the_process_is_the_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = asyncio.create_subprocess_exec

    async def fails(*_: object, **options: Any) -> asyncio.subprocess.Process:
        return await begin(sys.executable, "-c", FAILS, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fails)
    lines: list[Mapping[str, Any]] = []
    order = {"library": "films", "device": "auto", "sources": [], "allowed": []}
    assert asyncio.run(run_worker(order, lines.append)) == 1
    assert "KeyError: 'frames'" in lines[0]["error"]


def test_what_else_a_process_prints_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = asyncio.create_subprocess_exec
    prints = "print('loading a model'); print(); print('{\"added\": 2}')"

    async def printing(*_: object, **options: Any) -> asyncio.subprocess.Process:
        return await begin(sys.executable, "-c", prints, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", printing)
    lines: list[Mapping[str, Any]] = []
    assert (asyncio.run(run_worker({}, lines.append)), lines) == (0, [{"added": 2}])


INDEXES_NOISILY = """
import os, sys
from contextlib import nullcontext
from moviola.library import IngestReport
from moviola.server import worker

def indexed(*_):
    print("{'loading': 'a model'}", flush=True)
    os.write(1, b"half a line")
    return IngestReport(added=["a"])

worker.Library, worker._indexed = lambda library, **_: nullcontext(), indexed
sys.exit(worker.main())
"""


def test_output_while_videos_are_indexed_is_no_line_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = asyncio.create_subprocess_exec

    async def noisy(*_: object, **options: Any) -> asyncio.subprocess.Process:
        return await begin(sys.executable, "-c", INDEXES_NOISILY, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noisy)
    lines: list[Mapping[str, Any]] = []
    order = {"library": "films", "device": "auto", "sources": [], "allowed": []}
    assert (asyncio.run(run_worker(order, lines.append)), lines) == (0, [{"added": 1, "copies": 0}])


# ---- where from --------------------------------------------------------------------------------------------


@pytest.fixture
def inbox(tmp_path: Path, films: Path) -> Path:
    """A folder to bring in from, with links out of it, beside one whose name begins alike."""
    folder = tmp_path / "inbox"
    (folder / "linked").mkdir(parents=True)
    (tmp_path / "inbox-secret").mkdir()
    (folder / "way-out").symlink_to(films)
    (folder / "linked" / "film.mp4").symlink_to(films / "harbour.mp4")
    (folder / "loop").symlink_to(folder / "loop")
    return folder


@pytest.mark.parametrize(
    "source",
    ["..", "../inbox-secret", "{inbox}-secret", "/", "/etc/passwd", "way-out", "way-out/harbour.mp4",
     "linked/film.mp4", "linked", ".", "linked/../..", "{films}", "way-out/nix.mp4"],
)  # fmt: skip
def test_sources_stay_in_the_folders_that_were_allowed(
    serving: Serving, folder: Path, inbox: Path, films: Path, source: str
) -> None:
    with serving(folder, allow_ingest=(inbox,)) as http:
        answer = http.post("/api/jobs", json={"sources": [source.format(inbox=inbox, films=films)]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), answer.text
        assert http.get("/api/jobs").json()["jobs"] == []


@pytest.mark.parametrize("source", ["nix", "loop", "linked/nix", "x" * 4000, "nix/" * 900])
def test_sources_that_are_not_there_are_named(
    serving: Serving, folder: Path, inbox: Path, source: str
) -> None:
    with serving(folder, allow_ingest=(inbox,)) as http:
        answer = http.post("/api/jobs", json={"sources": [source]})
    assert answer.status_code == 404, answer.text


def test_nothing_is_brought_in_unless_that_was_allowed(client: TestClient, films: Path) -> None:
    answer = client.post("/api/jobs", json={"sources": [str(films)]})
    assert answer.status_code == 403 and "--allow-ingest" in answer.json()["error"]["message"]


# ---- a server that crashes ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crash_of_the_server_ends_the_job_and_leaves_the_library_sound(
    start: Callable[..., Any], empty: Path, films: Path
) -> None:
    server = start("--allow-ingest", str(films))
    with httpx2.Client(base_url=server.url) as http:
        job = index(http, ".")["job"]
        received = events(http, job)
        assert any(now["total"] for _, now in received)  # the process is at work
        server.kill()
        received.close()
    with FileLock(empty / ".lock", timeout=60):  # until the process has ended, too
        pass
    with Library(empty) as library:
        assert verify(library.store) == []
    with httpx2.Client(base_url=start("--allow-ingest", str(films)).url) as http:
        gone = error(http.get(f"/api/jobs/{job}"))
        assert gone[0] == 404 and "start it again" in gone[2]
        again = [now for _, now in events(http, index(http, ".")["job"])][-1]
        assert again["state"] == "done" and ok(http.get("/api/library"))["videos"] == 3


@pytest.mark.slow
def test_a_watched_folder_comes_in_by_itself(start: Callable[..., Any], films: Path, tmp_path: Path) -> None:
    """Beside searches and jobs; and the process that watches ends with a server that is killed."""
    (tmp_path / "incoming").mkdir()
    server = start("--watch", str(tmp_path / "incoming"), "--allow-ingest", str(tmp_path / "incoming"))
    film_like(films / "harbour.mp4", tmp_path / "incoming" / "dropped.mp4")
    with httpx2.Client(base_url=server.url) as http:
        deadline = time.monotonic() + 120
        while not ok(http.get("/api/videos", params={"text": "dropped"}))["total"]:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        film_like(films / "harbour.mp4", tmp_path / "incoming" / "asked.mp4", 2)
        job = index(http, "asked.mp4")["job"]
        while (state := job_of(http, job)["state"]) not in ("done", "failed"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert state == "done"


def test_the_time_that_is_left_is_over_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the server's clock: a browser's may be another."""
    clock = {"now": 0.0}
    monkeypatch.setattr("moviola.server.progress.monotonic", lambda: clock["now"])
    job = Job(
        job="x", state="running", library="films", sources=[], done=0, total=0, share=0.0,
        seconds_left=None, step="", video="", seconds=0.0, refused=[], added=0, copies=0, started=None,
        finished=None, error="",
    )  # fmt: skip
    run = Run(job, Path("films"), None)
    run.progress.at(0)
    line = {"done": 1, "total": 4, "video": "a", "seconds": 1.0}
    left = []
    for seconds, share, step in ((30.0, 0.25, "pictures"), (80.0, 0.8, "text")):
        clock["now"] = seconds
        run.take({"progress": {**line, "share": share, "step": step}})
        left.append((run.job.share, run.job.seconds_left))
    assert left == [(0.25, pytest.approx(90)), (0.8, pytest.approx(20))]
