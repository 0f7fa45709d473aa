"""Deliveries to one receiver, one after the other in a thread of their own: who is slow keeps nothing else
waiting, and the end of the process waits for none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Event, Thread
from typing import Any

from moviola.errors import MoviolaError
from moviola.search.limited import NotDone, ask, run

__all__ = ["Deliveries", "NotDelivered", "post", "run_command"]

log = logging.getLogger("moviola.alerts")

# Seconds that a command and a try of a webhook may take as a whole.
COMMAND_SECONDS, WEBHOOK_SECONDS = 60.0, 10.0
# Answers after which the next findings would fare no better.
_UNAVAILABLE = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405, 410, 429})


class NotDelivered(MoviolaError):
    """A receiver has not taken a finding.

    Attributes:
        all: whether it takes no other one now, either.
    """

    def __init__(self, reason: str, *, all: bool) -> None:
        super().__init__(reason)
        self.all = all


class Deliveries:
    """What waits for one receiver.

    Args:
        receiver: its name, for the log.
        give: delivers one body; raises :class:`NotDelivered`.
        done: called with a key, and whether it was delivered.
        stop: ends everything when set; what was not delivered is then as if it had failed.
    """

    def __init__(
        self, receiver: str, give: Callable[[bytes], None], done: Callable[[Any, bool], None], stop: Event
    ) -> None:
        self.receiver, self._give, self._done, self._stop = receiver, give, done, stop
        self._waiting: deque[tuple[Any, bytes]] = deque()
        self._changed = Condition()
        self._busy = False
        self._thread: Thread | None = None

    def add(self, key: Any, body: bytes) -> None:
        """Hand over a finding."""
        with self._changed:
            self._waiting.append((key, body))
            if self._thread is None:  # a daemon: the end of the process does not wait for it
                self._thread = Thread(target=self._run, name=f"alerts: {self.receiver}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self) -> None:
        """Until nothing waits or is underway."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or not (self._waiting or self._busy))

    def end(self, seconds: float) -> None:
        """Wait for the thread, after ``stop`` was set."""
        with self._changed:
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        try:
            while self._next():
                pass
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _next(self) -> bool:
        """Deliver what has waited longest; False at the end."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._stop.is_set())
            if not self._waiting:
                return False
            self._busy = True
            key, body = self._waiting.popleft()
        self._deliver(key, body)
        return True

    def _deliver(self, key: Any, body: bytes) -> None:
        gone: list[Any] = [key]
        try:
            if self._stop.is_set():
                raise NotDelivered("stopped", all=True)
            self._give(body)
        except NotDelivered as error:
            if error.all:
                with self._changed:
                    gone += [waiting for waiting, _ in self._waiting]
                    self._waiting.clear()
            if not self._stop.is_set():
                more = f", nor {len(gone) - 1} more" if gone[1:] else ""
                log.warning("%s: not reported to the %s%s: %s", key, self.receiver, more, error)
            for one in gone:
                self._done(one, False)
        except Exception:  # a fault of moviola's own keeps nothing else from the receiver
            log.exception("%s: not reported to the %s", key, self.receiver)
            self._done(key, False)
        else:
            self._done(key, True)


def run_command(command: Sequence[str], body: bytes, stop: Event, seconds: float = COMMAND_SECONDS) -> None:
    """Run a program with a body on its standard input, until it ends by itself, ``stop`` is set, or its time
    is up. Raises NotDelivered: it did not end with code 0.
    """
    try:
        code, _ = run(command, body, seconds, stop)
    except NotDone as error:
        raise NotDelivered(str(error), all=True) from error
    if code:
        raise NotDelivered(f"{command[0]} ended with code {code}", all=False)


def post(address: str, body: bytes, stop: Event, seconds: float = WEBHOOK_SECONDS) -> None:
    """Post a body to an address. Raises NotDelivered: no answer of 200 to 299 came within some seconds."""
    try:
        answer = ask("POST", address, body.decode(), seconds=seconds, stop=stop, most=0)
    except NotDone as error:
        raise NotDelivered(str(error), all=True) from error
    if not 200 <= answer.status < 300:
        where = f" to {answer.location:.200}; redirects are not followed, give that address"
        unavailable = answer.status >= 500 or answer.status in _UNAVAILABLE
        raise NotDelivered(f"it answers {answer.status}{where if answer.location else ''}", all=unavailable)
