"""Threads for what takes time: as many as cores, and a queue that ends somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
        self._inside = 0
        self._lock = Lock()

    @property
    def inside(self) -> int:
        """Calls that run or wait."""
        return self._inside

    async def run(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread and wait for what it gives.

        Raises:
            Busy: too many calls are waiting.
        """
        with self._lock:
            if self._inside >= self._most:
                raise Busy(f"{self._most} requests are being worked on ({self.name}); try again in a second")
            self._inside += 1
        future = self._executor.submit(partial(function, *args, **options))
        # A thread goes on when nobody waits for it any more, so the future knows when it has ended.
        future.add_done_callback(self._left)
        return await asyncio.wrap_future(future)

    def _left(self, _: Future[Any]) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Take nothing more on; what runs goes on to its end."""
        self._executor.shutdown(wait=False, cancel_futures=True)
