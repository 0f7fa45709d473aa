"""*Server*: fifty clients at once ask ``moviola serve`` for all that it does, in good times and in bad ones.

Each round has three times: a good one; one in which no file can be written (by a limit of the system, as on a
full disk); and one in which the library's folder is away. Some clients send half a head or half a body and
wait, or a letter a second, or leave before the answer comes. What must hold:

- Every answer in good times is right, or a 503 that says when to come back; in bad times it may also be a 4xx
  that says why. It is never a 500, and no connection is closed without an answer.
- Who sends half a request is not waited for, and keeps nobody waiting.
- After each round memory, open handles and files are as they were after the first ones, and no draft is left.
- In the end the server ends in peace, without a traceback in its log, and the library is sound.
"""

from __future__ import annotations

import base64
import io
import json
import random
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from PIL import Image

from moviola.library import verify
from moviola.library.disk.row_parts import FACTS
from moviola.search import Library
from rewrapped import to_matroska
from sample import QUERIES, films_in, library_of
from served import ENDED, PATIENCE, Given, Server, Wrong

__all__ = ["Served"]

CLIENTS = 50
_ROUNDS = 3
"""At least: the later ones are compared with the earlier ones."""
_GOOD, _BAD = 250, 60
"""Requests of a good time, and of a bad one."""
_MORE_MEMORY, _MORE_HANDLES, _MORE_FILES = 96 << 20, 64, 20
"""What the last round may have more than the first ones: caches fill, and threads get memory of their own."""
_FILLED = 8
"""Rounds after which all this is filled."""
_LEAK = 2048
"""Bytes for a request by which memory may grow after that: less than what a request consists of in Python, so
that none of it is kept. Measured: 200 to 400."""
_VIDEOS = ("a", "b", "c")
_TIMES = (0.0, 1.25, 2.5, 5.0)
_PICTURES, _KEPT_PICTURES = 150, 100
"""Different ones that are sent, and as many as a server keeps."""


class Served:
    """A server of a small library, with a folder from which videos are brought in.

    Args:
        folder: an empty one to work in.
        seed: of what is asked.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._seed, self._lock = seed, threading.Lock()
        self._films = films_in(folder / "films", "".join(_VIDEOS))
        to_matroska(films_in(folder / "films", "d") / "d.mp4")
        self._library = library_of(self._films, folder / "library", model=False)
        self._inbox, self._temporary = folder / "inbox", folder / "temporary"
        self._film = (films_in(folder / "sent", "z") / "z.mp4").read_bytes()
        films_in(self._inbox, "x")
        self._expected: dict[str, list[Any]] = {}
        self._unfinished: list[str] = []  # addresses of uploads of which a part was refused
        self._bad = False
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Ask in rounds until ``goes_on`` says no after one."""
        server = Server(self._library, self._inbox, self._temporary)
        try:
            self._expected = {query: self._moments(server, query) for query in QUERIES}
            waiting = [server.half(data) for data in _HALVES]
            rests: list[tuple[int, int, int]] = []
            while len(rests) < _ROUNDS or goes_on():
                self._round(server, len(rests))
                rests.append(self._at_rest(server))
            self._not_waited_for(waiting)
            self._is_flat(rests)
            self.counts["rounds"] = len(rests)
            if (code := server.end()) not in ENDED:
                self.failures.append(f"the server ended with {code}")
        finally:
            server.kill()
        self._left_behind(server)

    def _round(self, server: Server, number: int) -> None:
        self._storm(server, f"{number} good", _GOOD)
        server.allow_files(0)
        try:
            self._storm(server, f"{number} full", _BAD)
        finally:
            server.allow_files(resource.RLIM_INFINITY)
        self._end_jobs(server)
        elsewhere = self._library.with_name("elsewhere")
        self._library.rename(elsewhere)
        try:
            self._storm(server, f"{number} away", _BAD)
        finally:
            if self._library.exists():
                self.failures.append("where the library was, the server has made files while it was away")
                self._library.rename(self._library.with_name(f"made {number}"))
            elsewhere.rename(self._library)
        self._end_jobs(server)
        self._end_uploads(server)
        for query in QUERIES:
            if self._moments(server, query) != self._expected[query]:
                self.failures.append(f"{query!r}: another answer after round {number}")

    def _end_uploads(self, server: Server) -> None:
        """Cancel what could not be sent: it would wait for two days."""
        for address in self._unfinished:
            gone = server.ask("DELETE", address, **_TUS)
            if gone.status not in (204, 404):
                self.failures.append(f"{address} cannot be cancelled: {gone.status} {gone.body[:200]!r}")
        self._unfinished.clear()

    # -- clients -----------------------------------------------------------------------------------------

    def _storm(self, server: Server, when: str, requests: int) -> None:
        """All clients at once, each with its share of the requests."""
        self._bad = "good" not in when
        clients = [
            threading.Thread(target=self._client, args=(server, when, number, requests // CLIENTS))
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _client(self, server: Server, when: str, number: int, requests: int) -> None:
        draw = random.Random(f"{self._seed} {when} {number}")
        for _ in range(max(1, requests)):
            request = draw.choice(_REQUESTS)
            try:
                outcome = request(self, server, draw)
            except Exception as error:  # that none comes is what is tried
                outcome, said = "failed", f"{type(error).__name__}: {error}"
            else:
                said = ""
            with self._lock:
                self.counts["tried"] += 1
                self.counts[outcome] += 1
                if said:
                    self.failures.append(f"{when}, {request.__name__}: {said}"[:700])

    def _took(self, answer: Given, *right: int) -> bool:
        """Whether an answer is one of those that are right; if not, it must be a clear refusal."""
        if answer.status in right:
            return True
        if not (answer.status == 503 or (self._bad and 400 <= answer.status < 500)):
            raise Wrong(f"status {answer.status}: {answer.body[:300]!r}")
        problem = answer.json["error"]
        if not (problem["code"] and problem["message"]) or "Traceback" in problem["message"]:
            raise Wrong(f"refused without a reason: {problem}")
        if answer.status == 503 and "retry-after" not in answer.headers:
            raise Wrong("busy, and not a word when to come back")
        return False

    def _moments(self, server: Server, query: str | dict[str, Any]) -> list[Any]:
        """Moments of an answer, of the videos that are always there; none where it is refused."""
        body = {"query": query, "top_k": 50, "videos": _VIDEOS}
        answer = server.ask("POST", "/api/search", json.dumps(body).encode(), **_JSON)
        if not self._took(answer, 200):
            return []
        return [
            (m["video_id"], round(m["start"], 3), round(m["end"], 3), round(m["score"], 4))
            for m in answer.json["moments"]
        ]

    def _search(self, server: Server, draw: random.Random) -> str:
        query = draw.choice(QUERIES)
        found = self._moments(server, query)
        if found and found != self._expected[query]:
            raise Wrong(f"{query!r}: another answer: {found[:3]}")
        return "as before" if found else "refused with a reason"

    def _still(self, server: Server, draw: random.Random) -> str:
        # All times past the end are one still, so that these are few files.
        time = draw.choice((*_TIMES, draw.uniform(10, 10_000)))
        answer = server.ask("GET", f"/api/videos/{draw.choice(_VIDEOS)}/still?time={time}&width=32")
        if not self._took(answer, 200):
            return "refused with a reason"
        if Image.open(io.BytesIO(answer.body)).size != (32, 32):
            raise Wrong("not the still that was wanted")
        return "right"

    def _strip(self, server: Server, draw: random.Random) -> str:
        count = draw.choice((3, 5))
        answer = server.ask("GET", f"/api/videos/{draw.choice(_VIDEOS)}/strip?count={count}&width=32")
        if not self._took(answer, 200):
            return "refused with a reason"
        if Image.open(io.BytesIO(answer.body)).width != 32 * count:
            raise Wrong("not the strip that was wanted")
        return "right"

    def _stream(self, server: Server, draw: random.Random) -> str:
        video = draw.choice(_VIDEOS)
        whole = (self._films / f"{video}.mp4").read_bytes()
        first = draw.randrange(len(whole))
        last = draw.randrange(first, len(whole))
        answer = server.ask("GET", f"/api/videos/{video}/stream", range=f"bytes={first}-{last}")
        if not self._took(answer, 206):
            return "refused with a reason"
        if answer.body != whole[first : last + 1]:
            raise Wrong(f"not the bytes {first} to {last} of {video}")
        return "right"

    def _converted(self, server: Server, draw: random.Random) -> str:
        path = draw.choice(("stream", "clip?start=0&end=1", "clip?start=1&end=3&mode=key-frames"))
        answer = server.ask("GET", f"/api/videos/d/{path}")
        if not self._took(answer, 200):
            return "refused with a reason"
        if answer.body[4:8] != b"ftyp" or len(answer.body) != int(answer.headers["content-length"]):
            raise Wrong("not an MP4, or not a whole one")
        return "right"

    def _picture(self, server: Server, draw: random.Random) -> str:
        """Send a picture, and search with it: it may have made room for those of others."""
        shade = draw.randrange(_PICTURES)
        out = io.BytesIO()
        Image.new("RGB", (32, 32), (shade, 255 - shade, 7)).save(out, "PNG")
        sent = server.ask("POST", "/api/pictures", out.getvalue())
        if not self._took(sent, 200):
            return "refused with a reason"
        query = {"terms": [{"picture": sent.json["picture"]}]}
        answer = server.ask("POST", "/api/search", json.dumps({"query": query}).encode(), **_JSON)
        if not self._took(answer, 200, 404):
            return "refused with a reason"
        return "right"

    def _upload(self, server: Server, draw: random.Random) -> str:
        """Send a film in two parts, by tus."""
        name = base64.b64encode(f"sent {draw.randrange(10**9)}.mp4".encode()).decode()
        about = {"upload-length": str(len(self._film)), "upload-metadata": f"filename {name}"}
        begun = server.ask("POST", "/api/uploads", b"", **_TUS, **about)
        if not self._took(begun, 201):
            return "refused with a reason"
        address, middle = urlsplit(begun.headers["location"]).path, len(self._film) // 2
        for offset, part in ((0, self._film[:middle]), (middle, self._film[middle:])):
            sent = server.ask("PATCH", address, part, **_TUS, **_PART, **{"upload-offset": str(offset)})
            if not self._took(sent, 204):
                self._unfinished.append(address)
                return "refused with a reason"
        if not self._took(whole := server.ask("GET", address), 200):
            self._unfinished.append(address)
            return "refused with a reason"
        path = Path(whole.json["path"])
        if path.read_bytes() != self._film:
            raise Wrong(f"{path}: not what was sent")
        path.unlink()
        return "right"

    def _job(self, server: Server, draw: random.Random) -> str:
        order = json.dumps({"sources": ["x.mp4"], "ocr": False}).encode()
        answer = server.ask("POST", "/api/jobs", order, **_JSON)
        if not self._took(answer, 201):
            return "refused with a reason"
        if draw.random() < 0.8:
            name = answer.json["job"]
            if self._took(gone := server.ask("DELETE", f"/api/jobs/{name}"), 200):
                state = gone.json["state"]
                if state not in ("cancelled", "done", "failed"):
                    raise Wrong(f"a cancelled job is {state}")
        return "right"

    def _kept(self, server: Server, draw: random.Random) -> str:
        name = f"search {draw.randrange(20)}"
        entry = {"kind": "search", "name": name, "value": {"query": "a red square"}}
        answer = server.ask("PUT", "/api/kept", json.dumps(entry).encode(), **_JSON)
        if not self._took(answer, 200):
            return "refused with a reason"
        return "right"

    def _any_route(self, server: Server, draw: random.Random) -> str:
        """A route of the program's own list, without options: an answer, or what is missing."""
        paths = server.ask("GET", "/api/openapi.json").json["paths"]
        path = draw.choice([one for one, how in sorted(paths.items()) if "get" in how])
        for name in ("video_id", "pair", "job", "name"):
            path = path.replace(f"{{{name}}}", "a" if name == "video_id" else "nothing")
        answer = server.ask("GET", quote(path))
        if answer.status >= 500 and answer.status != 503:
            raise Wrong(f"{path}: status {answer.status}: {answer.body[:300]!r}")
        return "right" if answer.status < 400 else "refused with a reason"

    def _wrong(self, server: Server, draw: random.Random) -> str:
        """Requests that are wrong at any time."""
        method, path, body, status = draw.choice(_WRONG_REQUESTS)
        answer = server.ask(method, path, body, **_JSON)
        if answer.status not in (status, 409, 503) or not answer.json["error"]["message"]:
            raise Wrong(f"{method} {path}: {answer.status} {answer.body[:200]!r}")
        return "refused with a reason"

    def _gone(self, server: Server, draw: random.Random) -> str:
        """Ask, and leave at once."""
        path = draw.choice(("/api/videos/b/strip?count=60", "/metrics", "/api/videos/d/clip?start=0&end=6"))
        with server.half(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()):
            return "left before the answer"

    # -- afterwards --------------------------------------------------------------------------------------

    def _end_jobs(self, server: Server) -> None:
        for job in server.ask("GET", "/api/jobs").json["jobs"]:
            server.ask("DELETE", f"/api/jobs/{job['job']}")

    def _at_rest(self, server: Server) -> tuple[int, int, int]:
        """Bytes in memory, handles and files, when nothing is being worked on any more."""
        end, before = time.monotonic() + PATIENCE, (-1, -1)
        while time.monotonic() < end:
            now = server.handles(), sum("moviola-pictures-" not in str(path) for path in self._made())
            if now == before and server.is_at_rest():
                if (pictures := len(list(self._temporary.glob("moviola-pictures-*/[!.]*")))) > _KEPT_PICTURES:
                    self.failures.append(f"{pictures} pictures are kept")
                return server.memory(), *now
            before = now
            time.sleep(0.2)
        raise AssertionError(f"the server does not come to rest: {before}")

    def _made(self) -> list[Path]:
        """Files of the library, and those that the server has made elsewhere."""
        folders = (self._library, self._temporary, self._inbox)
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]

    def _not_waited_for(self, waiting: list[socket.socket]) -> None:
        """Who has sent half a request is cut off, or refused."""
        for data, connection in zip(_HALVES, waiting, strict=True):
            with connection:
                try:
                    while connection.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass
                except TimeoutError:
                    self.failures.append(f"half a request is waited for: {data[:60]!r}")
                    continue
            self.counts["half requests cut off"] += 1

    def _is_flat(self, rests: list[tuple[int, int, int]]) -> None:
        """Compare the last round with the larger of the first two: caches fill in these."""
        limits = {"bytes of memory": _MORE_MEMORY, "handles": _MORE_HANDLES, "files": _MORE_FILES}
        later = [memory for memory, _, _ in rests[_FILLED:]]
        requests = (len(later) - 1) * (_GOOD + 2 * _BAD)
        if len(later) > _FILLED and later[-1] - later[0] > requests * _LEAK:
            self.failures.append(f"memory grows by {(later[-1] - later[0]) / requests:.0f} bytes a request")
        for (name, more), values in zip(limits.items(), zip(*rests, strict=True), strict=True):
            self.counts[f"{name} after the first round"] = values[0]
            self.counts[f"{name} after the last round"] = values[-1]
            if values[-1] > max(values[:2]) + more:
                self.failures.append(f"{name} grow: {', '.join(map(str, values))}")

    def _left_behind(self, server: Server) -> None:
        # A job that is cancelled dies where it is; what it had begun is cleared away by the next writer.
        with Library(self._library) as library:
            library.index(self._inbox, ocr=False)
        # Parts of published sets are named by their manifests.
        named = "".join(path.read_text() for path in (self._library / FACTS).glob("*.json"))
        drafts = [
            path for path in self._made() if path.suffix in (".tmp", ".part") and path.name not in named
        ]
        others = [path.name for path in self._temporary.iterdir() if path.name.startswith("moviola-")]
        if drafts or others:
            self.failures.append(f"left behind: {[path.name for path in drafts] + others}")
        if "Traceback" in (log := "".join(server.log)):
            self.failures.append(f"a traceback in the log: …{log[-2000:]}")
        with Library(self._library, read_only=True) as library:
            self.failures += [f"at the end: {problem.message}" for problem in verify(library.store)]


_JSON = {"content-type": "application/json"}
_TUS = {"tus-resumable": "1.0.0"}
_PART = {"content-type": "application/offset+octet-stream"}

_REQUESTS = (
    Served._search, Served._search, Served._still, Served._strip, Served._stream, Served._converted,
    Served._picture, Served._upload, Served._job, Served._kept, Served._any_route, Served._wrong,
    Served._gone,
)  # fmt: skip
"""What clients do."""

_WRONG_REQUESTS: tuple[tuple[str, str, bytes | None, int], ...] = (
    ("POST", "/api/search", b"{", 422),
    ("POST", "/api/search", b'{"query": 3}', 422),
    ("POST", "/api/search", json.dumps({"query": "a" * 3000}).encode(), 422),
    ("GET", "/api/videos/nothing", None, 404),
    ("GET", "/api/videos/a/still?width=100000", None, 422),
    ("POST", "/api/jobs", b'{"sources": ["/etc"]}', 403),
    ("POST", "/api/uploads", b"x", 412),
    ("POST", "/api/pictures", b"no picture", 422),
    ("PATCH", "/api/search", b"", 405),
    ("GET", "/nothing", None, 404),
)
"""Method, path and body, with the status of the refusal."""

_HEAD = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
_HALVES = (
    b"", b"G", b"GET /api/library HTTP/1.1\r\nHost: local", _HEAD, _HEAD + b"\r\n",
    _HEAD + b'\r\n{"query": "a',
    _HEAD.replace(b"Content-Length: 100000", b"Transfer-Encoding: chunked") + b"\r\n5\r\nab",
    _HEAD.replace(b"POST /api/search", b"PATCH /api/uploads/half") + b"\r\nhalf a film",
)  # fmt: skip
