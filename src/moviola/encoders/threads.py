"""How many threads the BLAS of NumPy may use while a text is encoded: one.

A text tower is a chain of small matrix products. On all cores it is somewhat faster than on one as long as
nothing else runs; beside other work it is many times slower, because the threads of each product spin while
they wait for one another (``benchmarks/text_threads.py`` measures both). On one thread a query takes what it
takes, whatever else runs.

The number is one of the whole process, so it is lowered when the first text is begun and put back when the
last one is done, whichever threads of the program these belong to.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

__all__ = ["one_blas_thread"]


class _Limit:
    """Lowers the BLAS to one thread from the first entry to the last exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._applied: Any = None

    @cached_property
    def _blas(self) -> Any:
        """The BLAS libraries of this process; to find them takes a hundred times as long as to set them."""
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController().select(user_api="blas")

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._applied = self._blas.limit(limits=1)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._applied.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While inside, NumPy's matrix products use one thread; usable as a decorator, too."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
