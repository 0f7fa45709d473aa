"""Thread pools with bounded queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from moviola.server.problems import Busy

__all__ = ["Pool"]

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """Some threads, named for messages and metrics, and at most ``waiting`` calls that wait for them."""

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self.name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"moviola-{name}")
        self._most = threads + waiting
        self._calls: set[Future[Any]] = set()
        self._lock = Lock()

    @property
    def inside(self) -> int:
        """Running and waiting calls."""
        return len(self._calls)

    async def run(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """The result of a function, called in a thread; Busy where too many calls are waiting."""
        with self._lock:
            if self.inside >= self._most:
                raise Busy(f"{self._most} requests are being worked on ({self.name}); try again in a second")
            call = self._executor.submit(partial(function, *args, **options))
            self._calls.add(call)
        # A thread goes on when its client has gone, so the call itself records its end.
        call.add_done_callback(self._left)
        return await asyncio.wrap_future(call)

    def _left(self, call: Future[Any]) -> None:
        with self._lock:
            self._calls.discard(call)

    def close(self, patience: float) -> bool:
        """Refuse new calls and wait some seconds for running ones; whether all have ended."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            calls = list(self._calls)
        return not wait(calls, patience).not_done
