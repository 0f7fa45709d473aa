"""A chat model on a server: one request, one reply, within limits of time and size.

Only what every server of OpenAI's chat form takes is sent: a model and messages. No redirect is followed, so
that neither key nor pictures go to a host that nobody named.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from moviola.errors import InvalidValue, MoviolaError
from moviola.search.limited import Answer, NotDone
from moviola.search.limited import ask as ask_server

__all__ = ["KEY", "STOPPED", "Endpoint", "NoReply"]

KEY = "MOVIOLA_LOOKER_KEY"
"""Environment variable with the key of the server; there is no option for it, and no line of a file."""

STOPPED = "stopped"
"""Cause of a reply that nobody waits for any more."""

_MOST_BYTES = 1 << 18  # of a reply; a verdict takes some hundred
_SHORTEST_SECRET = 8  # letters; servers that want no key get a word such as "none"
_ESCAPE = re.compile(r"\\(?:u00([0-7][0-9a-fA-F])|([\"\\/]))")
_LONGEST_PAUSE = 20.0  # seconds that a busy server is waited for
_BUSY = frozenset({429, 503})
# Statuses after which no other request would fare better.
_HOPELESS = frozenset({401, 402, 403, 404, 405, 410})
_REASONS = {
    401: f"the server wants another key ({KEY})", 403: f"the server refuses this key ({KEY})",
    404: "the server has no such model, or no chat at this address; does it end with /v1?",
    413: "the server takes no request of this size",
    429: "the server is busy",
}  # fmt: skip


class NoReply(MoviolaError):
    """The model gave no reply that can be used.

    Attributes:
        all: whether it would give none to another request, either.
    """

    def __init__(self, reason: str, *, all: bool = False) -> None:
        super().__init__(reason)
        self.all = all


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A chat model on a server.

    Attributes:
        url: base address, as ``http://localhost:11434/v1``; ``/chat/completions`` is added.
        model: its name there.
        key: bearer token; by default of :data:`KEY`, empty for none.
        seconds: for a whole reply, above 0.
        send: asks a server, as :func:`moviola.search.limited.ask`.
        pause: waits for some seconds, or until an event is set.

    Raises:
        InvalidValue: no address of HTTP, one with a name, a password, a query or a fragment, a model without
            a name, a key that does not fit a header, or seconds outside their range.
    """

    url: str
    model: str
    key: str = field(default_factory=lambda: os.environ.get(KEY, ""), repr=False)
    seconds: float = 60.0
    send: Callable[..., Answer] = field(default=ask_server, repr=False)
    pause: Callable[[Event, float], Any] = field(default=Event.wait, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            # Read for its errors, too.
            odd = parts.username or parts.password or parts.query or parts.fragment or parts.port == 0
        except ValueError:
            raise InvalidValue(f"--looker: no address; give one as {_EXAMPLE}") from None
        if odd or not (self.url.isascii() and self.url.isprintable() and " " not in self.url):
            # Not quoted, here and above: what does not belong there may be a secret.
            raise InvalidValue(
                f"--looker: give scheme, host, port and path alone, as {_EXAMPLE}; a key comes in {KEY}"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValue(f"--looker {self.url!r:.200}: give an address as {_EXAMPLE}")
        if not self.model.strip():
            raise InvalidValue(f"--looker {self.url}: name the model in --looker-model")
        if not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise InvalidValue(f"{KEY}: holds a letter that a request cannot; correct it")
        if not 0 < self.seconds < 86_400:
            raise InvalidValue(f"looker_seconds {self.seconds!r:.100}: give seconds above 0, below a day")

    @property
    def host(self) -> str:
        """Host and port, for people; with a word where what is sent can be read on the way."""
        parts = urlsplit(self.url)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        return parts.netloc + ("" if local or parts.scheme == "https" else " (unencrypted)")

    def reply(self, messages: Sequence[Any], seconds: float | None = None, stop: Event | None = None) -> str:
        """What the model says to messages, as the chat form has them.

        Args:
            seconds: for the whole reply; by default those of the endpoint.
            stop: ends the request when set.

        Raises:
            NoReply: none came in time, or none that is a reply. Its text is a short cause.
        """
        body = json.dumps({"model": self.model, "messages": messages, "stream": False})
        left, stop = self.seconds if seconds is None else min(seconds, self.seconds), stop or Event()
        answer = self._sent(body, left, stop)
        if answer.status in _BUSY and (wait := _seconds_of(answer.retry_after)) is not None:
            if wait > _LONGEST_PAUSE or wait >= left:
                raise NoReply(f"the server is busy for another {wait:g} s", all=True)
            self.pause(stop, wait)
            answer = self._sent(body, left - wait, stop)
        said = _content(answer)
        if len(self.key) >= _SHORTEST_SECRET and self.key in _ESCAPE.sub(_letter, said):
            # It would be printed, kept and handed on with what the model says.
            raise NoReply(f"a reply with the key of {KEY} in it, which is not read")
        return said

    def _sent(self, body: str, seconds: float, stop: Event) -> Answer:
        if stop.is_set():
            raise NoReply(STOPPED, all=True)
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            return self.send(
                "POST", f"{self.url.rstrip('/')}/chat/completions", body, seconds=seconds, stop=stop,
                headers=headers, most=_MOST_BYTES,
            )  # fmt: skip
        except NotDone as error:
            if stop.is_set():
                raise NoReply(STOPPED, all=True) from error
            said = str(error)
            late = said.startswith("not done within") or "timed out" in said
            # A server that does not listen is not asked again; one that was slow may be fast once.
            raise NoReply("timed out" if late else f"no connection ({said:.100})", all=not late) from error


_EXAMPLE = "http://localhost:11434/v1"


def _letter(escape: re.Match[str]) -> str:
    """What an escape of JSON stands for."""
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _seconds_of(retry_after: str) -> float | None:
    """Seconds of a Retry-After; None where it has a date, or nothing."""
    text = retry_after.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _content(answer: Answer) -> str:
    """The text of the first choice."""
    if 300 <= answer.status < 400:
        raise NoReply("the server points to another address, which is not followed", all=True)
    if answer.status != 200:
        cause = _REASONS.get(answer.status, f"the server answered with HTTP {answer.status}")
        raise NoReply(cause, all=answer.status in _HOPELESS)
    if answer.cut:
        raise NoReply(f"a reply of more than {_MOST_BYTES >> 10} KiB")
    try:
        message = json.loads(answer.body)["choices"][0]["message"]
        said, refusal = message.get("content"), message.get("refusal")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise NoReply("a reply that is not of the chat form") from error
    if isinstance(said, list):  # as some servers write it, in parts
        said = "".join(str(part.get("text", "")) for part in said if isinstance(part, dict))
    if isinstance(said, str) and said.strip():
        return said
    raise NoReply("the model refused" if refusal else "an empty reply")
