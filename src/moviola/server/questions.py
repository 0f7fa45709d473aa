"""Questions that a model answers by searching and looking: how far each is, its answer, cancellation."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

from moviola.errors import MoviolaError, NotFound
from moviola.looker import Answer, Sending
from moviola.server.pools import Pool
from moviola.server.problems import Busy

__all__ = ["Questioning", "Questions"]

log = logging.getLogger("moviola.server")

_MOST = 20  # questions that are remembered; the oldest that has ended is forgotten first


@dataclass(eq=False)
class Questioning:
    """A question.

    Attributes:
        name: its id.
        text: the question.
        sent: what goes to the model, each time said before it does.
        answer: None until it is done.
        error: why it has failed, in words.
        stop: ends the work when set.
        ended: set when nothing more will become of it.
    """

    name: str
    text: str
    state: Literal["queued", "running", "done", "failed", "cancelled"] = "queued"
    sent: list[Sending] = field(default_factory=list)
    answer: Answer | None = None
    error: str = ""
    stop: Event = field(default_factory=Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


Ask = Callable[[Questioning], Answer]
"""Answers a question, until its ``stop`` is set."""


class Questions:
    """Questions since the server started, answered by a pool. For one event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, Questioning] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, text: str, ask: Ask) -> Questioning:
        """Begin to answer a question.

        Raises:
            Busy: too many wait.
        """
        ended = [one for one in self._known.values() if one.ended.is_set()]
        for one in ended[: max(0, len(self._known) - _MOST + 1)]:
            del self._known[one.name]
        one = Questioning(secrets.token_hex(16), text)
        task = asyncio.create_task(self._run(one, ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)  # until it waits, or is refused
        if task.done():
            task.result()
        self._known[one.name] = one
        return one

    async def _run(self, one: Questioning, ask: Ask) -> None:
        def work() -> Answer | None:
            if one.stop.is_set():
                return None
            one.state = "running"
            return ask(one)

        try:
            answer = await self._pool.run(work)
            if not one.stop.is_set():
                one.state, one.answer = "done", answer
        except Busy:
            raise
        except Exception as error:
            known = isinstance(error, MoviolaError)
            log.warning("a question has failed: %s", error, exc_info=not known)
            if not one.stop.is_set():
                one.state, one.error = "failed", str(error) if known else "the server's log says more"
        finally:
            one.ended.set()

    def get(self, name: str) -> Questioning:
        """A question; NotFound where it is unknown, or was forgotten for later ones."""
        if found := self._known.get(name):
            return found
        raise NotFound(f"question {name[:40]!r}: not here any more; ask it again")

    def cancel(self, name: str) -> None:
        """End the work on a question, a request to the model too, and forget it; errors as in :meth:`get`."""
        one = self.get(name)
        one.state = "cancelled"
        one.stop.set()
        del self._known[name]

    def close(self) -> None:
        """End the work on all."""
        for name in list(self._known):
            self.cancel(name)
