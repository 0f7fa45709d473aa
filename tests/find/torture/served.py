"""`moviola serve` as a process of its own, to be asked and measured."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["ENDED", "PATIENCE", "Given", "Server", "Wrong"]

PATIENCE = 120
"""Seconds after which a server that does not answer, or does not come to rest, is given up."""

ENDED = (130, 0)
"""Interrupted; 0 where a film was being converted, which is not waited for."""


@dataclass(frozen=True)
class Given:
    """An answer: status, headers with small letters, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Wrong(Exception):
    """An answer that must not be given."""


class Server:
    """``moviola serve`` as a process, with what it writes to its log, and with its own temporary folder."""

    def __init__(self, library: Path, inbox: Path, temporary: Path) -> None:
        temporary.mkdir()
        command = [sys.executable, "-m", "moviola", "serve", "-l", str(library), "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [*command, "--allow-ingest", str(inbox)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary), "MOVIOLA_CONFIG": ""},
        )  # fmt: skip
        self.log: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        assert self.process.stdout is not None
        self.port = urlsplit(json.loads(self.process.stdout.readline())["url"]).port or 0

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log += self.process.stderr

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Given:
        """Ask on a connection of its own.

        Raises:
            Wrong: there is no answer.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name.title(): value for name, value in headers.items()})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Given(answer.status, found, answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise Wrong(f"no answer: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def half(self, data: bytes) -> socket.socket:
        """A connection on which only this was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.sendall(data)
        return connection

    def allow_files(self, most_bytes: int) -> None:
        """Let files of the process, and of those that it starts, be no longer than this."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (most_bytes, hard))

    def memory(self) -> int:
        """Bytes in memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def handles(self) -> int:
        """Open files and connections."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self) -> int:
        """Interrupt it; its exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it, however it is."""
        self.process.kill()
        self.process.wait()
        self._reading.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def is_at_rest(self) -> bool:
        """Whether nothing is being worked on."""
        metrics = self.ask("GET", "/metrics").body.decode()
        working = [line for line in metrics.splitlines() if line.startswith("moviola_pool_calls{")]
        return all(line.endswith(" 0.0") for line in working)
