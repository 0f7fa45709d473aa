"""Threads for what takes time: as many as cores, and a queue that ends somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from moviola.server.refusals import Busy

__all__ = ["Pool"]

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """Threads with a bounded queue before them.

    Args:
        name: in messages and metrics.
        threads: that work at once.
        waiting: most calls that wait for a thread.
    """

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self.name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"moviola-{name}")
        self._most = threads + waiting
        self._calls: set[Future[Any]] = set()
        self._lock = Lock()

    @property
    def inside(self) -> int:
        """Calls that run or wait."""
        return len(self._calls)

    async def run(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread and wait for what it gives.

        Raises:
            Busy: too many calls are waiting.
        """
        with self._lock:
            if self.inside >= self._most:
                raise Busy(f"{self._most} requests are being worked on ({self.name}); try again in a second")
            call = self._executor.submit(partial(function, *args, **options))
            self._calls.add(call)
        # A thread goes on when nobody waits for it any more, so the call itself knows when it has ended.
        call.add_done_callback(self._left)
        return await asyncio.wrap_future(call)

    def _left(self, call: Future[Any]) -> None:
        with self._lock:
            self._calls.discard(call)

    def close(self, patience: float) -> bool:
        """Take nothing more on, and wait so many seconds for what runs; whether all of it has ended."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            calls = list(self._calls)
        return not wait(calls, patience).not_done
