"""The comparison of a library's videos, which takes long in a large one: beside requests, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moviola.errors import MoviolaError
from moviola.server.progress import Progress

__all__ = ["Comparing"]

Compare = Callable[[Callable[[float], None]], Awaitable[object]]
"""Compares, and calls a function with the share that is done, from 0 to 1."""


class _Cancelled(Exception):
    """The comparison is not wanted any more."""


class Comparing:
    """The comparison that runs, if any. For one event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._progress, self._wanted = Progress(), True
        self.error: MoviolaError | None = None
        """Why the last one failed."""

    @property
    def progress(self) -> Progress | None:
        """Of the one that runs; None where none does."""
        return self._progress if self._task is not None and not self._task.done() else None

    async def begin(self, compare: Compare, patience: float) -> None:
        """Begin one, where none runs, and wait some seconds for it.

        Raises:
            MoviolaError: it has failed within that time.
        """
        if self._task is None or self._task.done():
            self._progress, self._wanted, self.error = Progress(), True, None
            self._task = asyncio.create_task(self._run(compare))
        await asyncio.wait([self._task], timeout=patience)
        if self.error is not None:
            raise self.error

    async def _run(self, compare: Compare) -> None:
        try:
            await compare(self._at)
        except _Cancelled:
            pass
        except MoviolaError as error:
            self.error = error

    def _at(self, share: float) -> None:
        if not self._wanted:
            raise _Cancelled
        self._progress.at(share)

    def cancel(self) -> None:
        """End the one that runs with its next video; what it has found is kept."""
        self._wanted = False
