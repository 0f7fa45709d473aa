"""A stand-in for a DRES evaluation server: sign-in, evaluations and submissions of its API, version 2."""

from __future__ import annotations

import json
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import Any

from socket_server import SocketServer

__all__ = ["DresServer"]


class DresServer(SocketServer):
    """An evaluation server in a thread.

    Attributes:
        evaluations: as the API lists them.
        outcome: status and body of the answer to a submission.
        submitted: evaluation and body of each submission.
        sessions: those that are valid.
        addresses: those that were requested.
    """

    user, password = "team", "secret"

    def __init__(self) -> None:
        self.evaluations = [
            {"id": "e-1", "name": "VBS 2026", "type": "SYNCHRONOUS", "status": "ACTIVE"},
            {"id": "e-0", "name": "a rehearsal", "type": "SYNCHRONOUS", "status": "TERMINATED"},
        ]
        self.outcome: tuple[int, Any] = (
            200, {"status": True, "submission": "CORRECT", "description": "Submission correct!"},
        )  # fmt: skip
        self.submitted: list[tuple[str, Any]] = []
        self.sessions: set[str] = set()
        self.addresses: list[str] = []
        self.signed_in = 0
        super().__init__(_Handler)

    def answer(self, method: str, path: str, session: str, body: Any) -> tuple[int, Any]:
        """Status and body of the answer to a request."""
        if (method, path) == ("POST", "/api/v2/login"):
            if body != {"username": self.user, "password": self.password}:
                return 401, {"status": False, "description": "Invalid credentials."}
            self.signed_in += 1
            self.sessions.add(f"session-{self.signed_in}")
            account = {"id": "u-1", "username": self.user, "role": "PARTICIPANT"}
            return 200, {**account, "sessionId": f"session-{self.signed_in}"}
        if session not in self.sessions:
            return 401, {"status": False, "description": "Unauthorized request!"}
        if (method, path) == ("GET", "/api/v2/client/evaluation/list"):
            return 200, self.evaluations
        if method == "POST" and path.startswith("/api/v2/submit/"):
            self.submitted.append((path.rpartition("/")[2], body))
            return self.outcome
        return 404, {"status": False, "description": "Not found"}


class _Handler(BaseHTTPRequestHandler):
    own: DresServer

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        self.own.addresses.append(self.path)
        session = SimpleCookie(self.headers.get("Cookie", "")).get("SESSIONID")
        status, said = self.own.answer(self.command, self.path, session.value if session else "", body)
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output quiet."""
