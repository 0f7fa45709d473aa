"""Calls of a library's server as a program makes them, by httpx2 or by a TestClient."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

import httpx2

Http = Any
"""An ``httpx2.Client`` or a ``TestClient``."""


def ok(answer: Any) -> Any:
    """The JSON of an answer that is no error."""
    assert answer.status_code < 400, f"{answer.request.method} {answer.url}: {answer.text}"
    return answer.json() if answer.content else None


def error(answer: Any) -> tuple[int, str, str]:
    """Status, code and message of an answer that is one."""
    problem = answer.json()["error"]
    return answer.status_code, problem["code"], problem["message"]


def of_video(video_id: str, what: str = "") -> str:
    """The address of a video, whose id is one segment of a path."""
    return f"/api/videos/{quote(video_id, safe='')}{f'/{what}' if what else ''}"


def search(http: Http, query: Any, **options: Any) -> Any:
    """The answer to a query."""
    return ok(http.post("/api/search", json={"query": query, **options}))


def index(http: Http, *sources: str) -> Any:
    """A job that has been started; text in pictures is not read."""
    return ok(http.post("/api/jobs", json={"sources": sources, "ocr": False}))


def job_of(http: Http, job: str) -> Any:
    """A job by its id."""
    return ok(http.get(f"/api/jobs/{job}"))


def events(http: Http, job: str) -> Generator[tuple[str, Any], None, None]:
    """Name and job of each event as it happens, until the job has ended."""
    with http.stream("GET", f"/api/jobs/{job}/events", timeout=None) as answer:
        assert answer.status_code == 200
        name = rest = ""
        for text in answer.iter_text():
            *lines, rest = (rest + text).split("\n")  # names of files may hold other ends of lines
            for line in lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)


def kept(http: Http, kind: str | None = None) -> list[Any]:
    """What people keep, of one kind or all."""
    entries: list[Any] = ok(http.get("/api/kept", params={"kind": kind} if kind else {}))["entries"]
    return entries


def keep(http: Http, kind: str, name: str, value: Any, version: int | None = None) -> Any:
    """Keep an entry; the entry as it is stored, or the error."""
    return http.put("/api/kept", json={"kind": kind, "name": name, "value": value, "version": version})


def unkeep(http: Http, kind: str, name: str, version: int | None = None) -> Any:
    """Delete an entry; the answer."""
    params = {"kind": kind, "name": name} | ({} if version is None else {"version": version})
    return http.delete("/api/kept", params=params)


def lines_of_kept(http: Http) -> str:
    """All that people keep, as lines of JSON."""
    return str(http.get("/api/kept/lines").text)


def take_lines(http: Http, lines: str) -> list[Any]:
    """Keep what lines of JSON hold; the entries that are new."""
    entries: list[Any] = ok(http.post("/api/kept/lines", content=lines.encode()))["entries"]
    return entries


def forget_kept(url: str) -> None:
    """Delete all that people keep."""
    with httpx2.Client(base_url=url) as http:
        for entry in kept(http):
            ok(unkeep(http, entry["kind"], entry["name"]))
