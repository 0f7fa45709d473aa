"""*Floods*: many clients ask a server for one kind of thing alone, each kind in its turn.

What must hold of each flood, when the one before it has filled all caches:

- Each answer is right, or a clear refusal: a 503 that says when to come back, or what else that kind says
  where there is too much of it. A plain search beside it is answered.
- When it is over, memory has grown by less than what is kept if anything is kept of each request, and there
  are no more handles; of files (inodes) there is at most a fixed number more.
"""

from __future__ import annotations

import base64
import io
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from sample import films_in, library_of
from served import ENDED, PATIENCE, Given, Server, Wrong

__all__ = ["Floods"]

_CLIENTS, _REQUESTS = 20, 1000
"""Of a flood."""
_LEAK = 2048
"""Bytes for a request by which memory may grow. Measured: up to 900; 3,000 where the server was made to keep
a copy of what it knows of each request."""
_MOST_FLOODS = 12
"""Of one kind, while memory grows: a leak grows with each flood; threads that first work in one, up to the
sixth, add what each holds."""
_MORE_HANDLES = 40
"""Threads of pools open connections to the catalogue when they first work."""
_MOST_FILES = 500
"""As many as there may be at any time, stills left out: 100 pictures, 100 uploads of two files each, 20
exports. Stills are bounded by the bytes that they take on the disk
(tests/find/server/test_keeps_working.py)."""

_JSON = {"content-type": "application/json"}
_TUS = {"tus-resumable": "1.0.0"}


def _posted(server: Server, path: str, value: object) -> Given:
    return server.ask("POST", path, json.dumps(value).encode(), **_JSON)


def _upload(server: Server, draw: random.Random) -> Given:
    """Begin one, and never send it."""
    name = base64.b64encode(f"film {draw.random()}.mp4".encode()).decode()
    return server.ask(
        "POST",
        "/api/uploads",
        b"",
        **_TUS,
        **{"upload-length": "9999", "upload-metadata": f"filename {name}"},
    )


def _picture(server: Server, draw: random.Random) -> Given:
    out = io.BytesIO()
    Image.new("RGB", (32, 32), (draw.randrange(256), draw.randrange(256), draw.randrange(256))).save(
        out, "PNG"
    )
    return server.ask("POST", "/api/pictures", out.getvalue())


def _kept(server: Server, draw: random.Random) -> Given:
    entry = {"kind": "search", "name": f"{draw.randrange(50)}", "value": {"query": f"walls {draw.random()}"}}
    return server.ask("PUT", "/api/kept", json.dumps(entry).encode(), **_JSON)


def _export(server: Server, draw: random.Random) -> Given:
    moments = [{"video_id": "a", "start": 0, "end": draw.uniform(1, 5)}]
    return _posted(server, "/api/exports", {"format": "clips", "moments": moments})


KINDS: dict[str, Callable[[Server, random.Random], Given]] = {
    "jobs": lambda server, _: _posted(server, "/api/jobs", {"sources": ["x.mp4"], "ocr": False}),
    "uploads": _upload,
    "stills": lambda server, draw: server.ask(
        "GET", f"/api/videos/a/still?time={draw.uniform(0, 100)}&width=32"
    ),
    "pictures": _picture,
    "saved searches": _kept,
    "facets": lambda server, _: server.ask("GET", "/api/facets"),
    "completions": lambda server, draw: server.ask(
        "GET", f"/api/completions?text={quote(str(draw.random()))}"
    ),
    "examples": lambda server, _: server.ask("GET", "/api/examples"),
    "searches": lambda server, draw: _posted(server, "/api/search", {"query": f"walls {draw.random()}"}),
    "curves": lambda server, draw: _posted(
        server, "/api/curve", {"query": f"walls {draw.random()}", "video_id": "a"}
    ),
    "exports": _export,
    "wrong": lambda server, draw: server.ask("GET", f"/api/videos/{draw.random()}"),
}
"""Requests, by kind."""


class Floods:
    """A server of a small library, with a folder from which videos are brought in.

    Args:
        folder: an empty one to work in.
        seed: of what is asked, and of the order.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._draw, self._lock = random.Random(seed), threading.Lock()
        self._folders = [folder / name for name in ("library", "inbox", "temporary")]
        library_of(films_in(folder / "films"), self._folders[0], model=False)
        films_in(self._folders[1], "x")
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Flood with one kind after the other until ``goes_on`` says no."""
        server = Server(*self._folders)
        kinds = list(KINDS)
        try:
            while goes_on():
                self._draw.shuffle(kinds)
                for kind in kinds:
                    if not goes_on():
                        break
                    self._flood(server, kind)
                    rests = [self._at_rest(server)]
                    while len(rests) < 2 or (len(rests) < _MOST_FLOODS and _grows(*rests[-2:])):
                        self._flood(server, kind)
                        rests.append(self._at_rest(server))
                    self._is_flat(kind, *rests[-2:])
            if (code := server.end()) not in ENDED:
                self.failures.append(f"the server ended with {code}")
        finally:
            server.kill()
        if "Traceback" in (log := "".join(server.log)):
            self.failures.append(f"a traceback in the log: …{log[-2000:]}")

    def _flood(self, server: Server, kind: str) -> None:
        """All clients at once, and one that searches meanwhile; then the jobs are cancelled."""
        over = threading.Event()
        searching = threading.Thread(target=self._search, args=(server, kind, over))
        clients = [
            threading.Thread(target=self._client, args=(server, kind, self._draw.random()))
            for _ in range(_CLIENTS)
        ]
        for thread in (searching, *clients):
            thread.start()
        for client in clients:
            client.join()
        over.set()
        searching.join()
        for job in server.ask("GET", "/api/jobs").json["jobs"]:
            server.ask("DELETE", f"/api/jobs/{job['job']}")

    def _client(self, server: Server, kind: str, seed: float) -> None:
        draw = random.Random(seed)
        for _ in range(_REQUESTS // _CLIENTS):
            try:
                outcome = self._judged(KINDS[kind](server, draw), kind)
            except Exception as error:  # that none comes is what is tried
                outcome = "failed"
                with self._lock:
                    self.failures.append(f"{kind}: {type(error).__name__}: {error}"[:700])
            with self._lock:
                self.counts["tried"] += 1
                self.counts[outcome] += 1

    def _judged(self, answer: Given, kind: str) -> str:
        if answer.status < 300:
            return "answered"
        problem = answer.json["error"]["message"]
        if answer.status == 503 and "retry-after" in answer.headers:
            return "refused for now"
        if answer.status == 404 and kind == "wrong":
            return "answered"  # as is right
        raise Wrong(f"status {answer.status}: {problem}")

    def _search(self, server: Server, kind: str, over: threading.Event) -> None:
        """A plain search again and again: one that comes too late for its queue may have to ask again."""
        answered = 0
        while not (over.is_set() and answered):
            try:
                answer = _posted(server, "/api/search", {"query": "a red square"})
                answered += self._judged(answer, kind) == "answered"
            except Wrong as error:
                self.failures.append(f"a search beside {kind}: {error}")
                return
        self.counts["searches beside floods"] += answered

    def _at_rest(self, server: Server) -> tuple[int, int, int]:
        """Bytes in memory, handles and files, when nothing is being worked on any more."""
        end, before = time.monotonic() + PATIENCE, (-1, -1)
        while time.monotonic() < end:
            files = sum(
                path.is_file() and "stills" not in path.parts
                for folder in self._folders
                for path in folder.rglob("*")
            )
            now = server.handles(), files
            if now == before and server.is_at_rest():
                return server.memory(), *now
            before = now
            time.sleep(0.2)
        raise AssertionError(f"the server does not come to rest: {before}")

    def _is_flat(self, kind: str, before: tuple[int, int, int], after: tuple[int, int, int]) -> None:
        self.counts["floods"] += 1
        if _grows(before, after):
            self.failures.append(f"{kind}: memory grows from {before[0]} to {after[0]} bytes")
        if after[1] > before[1] + _MORE_HANDLES:
            self.failures.append(f"{kind}: handles grow from {before[1]} to {after[1]}")
        if after[2] > _MOST_FILES:
            self.failures.append(f"{kind}: {after[2]} files")


def _grows(before: tuple[int, int, int], after: tuple[int, int, int]) -> bool:
    return after[0] > before[0] + _REQUESTS * _LEAK
