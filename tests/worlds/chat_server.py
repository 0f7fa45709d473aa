"""A stand-in for a server of OpenAI's chat form: in this process without a network, and on a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any

from moviola.looker import Endpoint
from moviola.search.limited import Answer
from socket_server import SocketServer

__all__ = ["ChatModel", "ChatServer", "said", "verdict"]


def said(text: Any, **more: Any) -> Answer:
    """A reply of the chat form."""
    return Answer(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text, **more}}]}))


def verdict(word: str, why: str = "so it is") -> Answer:
    """A reply with a verdict."""
    return said(json.dumps({"verdict": word, "why": why}))


class ChatModel:
    """Answers requests in this process, one after the other.

    Args:
        replies: what is answered: an answer, an error that is raised, or a function of the messages. The last
            one is repeated.

    Attributes:
        asked: the messages of each request.
        headers: those of each request.
        waits: seconds that were waited for.
        limits: seconds that each request was given.
    """

    def __init__(self, *replies: Answer | Exception | Callable[[Any], Answer]) -> None:
        self._replies = list(replies)
        self.asked: list[Any] = []
        self.headers: list[Mapping[str, str]] = []
        self.waits: list[float] = []
        self.limits: list[float] = []

    def endpoint(self, url: str = "http://localhost:1/v1", key: str = "", **more: Any) -> Endpoint:
        """The model as an endpoint."""
        return Endpoint(
            url, "stand-in", key, send=self._send, pause=lambda _, wait: self.waits.append(wait), **more
        )

    def _send(self, method: str, address: str, body: str, **about: Any) -> Answer:
        assert (method, address) == ("POST", "http://localhost:1/v1/chat/completions")
        sent = json.loads(body)
        assert sent.keys() == {"model", "messages", "stream"}
        self.asked.append(sent["messages"])
        self.headers.append(about["headers"])
        self.limits.append(about["seconds"])
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Answer) else reply(sent["messages"])


class ChatServer(SocketServer):
    """A server on a socket of this machine, that answers requests with bytes.

    Attributes:
        body, later: of the first answer, and of those after it; the last one is repeated.
        requests: path and headers of each.
        gate: answers wait for it; it is open.
    """

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.body, self.status, self.headers = body, status, headers or {}
        self.later: list[bytes] = []
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.gate = Event()
        self.gate.set()
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        """Its base address."""
        return f"{super().url}/v1"


class _Handler(BaseHTTPRequestHandler):
    own: ChatServer

    def do_POST(self) -> None:
        body = self.own.body
        if self.own.later:  # before the client has its answer, and asks again
            self.own.body = self.own.later.pop(0)
        self.own.requests.append((self.path, dict(self.headers)))
        self.rfile.read(int(self.headers["Content-Length"]))
        self.own.gate.wait()
        self.send_response(self.own.status)
        for name, value in self.own.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:  # a client that has read enough
            return

    do_GET = do_POST  # noqa: N815 - as the base class names it

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
