"""How many threads compute.

The BLAS of NumPy uses one while a text is encoded.

A text tower is a chain of small matrix products. On all cores it is somewhat faster than on one as long as
nothing else runs; beside other work it is many times slower, because the threads of each product spin while
they wait for one another (``benchmarks/text_threads.py`` measures both). On one thread a query takes what it
takes, whatever else runs.

The number is one of the whole process, so it is lowered when the first text is begun and put back when the
last one is done, whichever threads of the program these belong to.

Runtimes that have threads of their own (ONNX Runtime, CTranslate2) get :func:`compute_threads`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

__all__ = ["compute_threads", "one_blas_thread"]


def compute_threads() -> int:
    """Threads for a runtime that has its own: ``OMP_NUM_THREADS``, as torch has it, else one per core."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1


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
