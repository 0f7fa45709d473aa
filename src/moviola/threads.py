"""Thread limits of all pools: set here, and nowhere else.

A search or an indexing run uses libraries with thread pools of their own: OpenBLAS (NumPy), OpenMP (torch,
faiss), TBB (the compiled runtime, readers of text), CTranslate2 (a reader of speech) and FFmpeg (the
decoder). Each would take all cores, and most wait by spinning, which slows the others down.

Two rules. No pool has more threads than there are cores, and small work takes one: a chain of small matrix
products is somewhat faster on all cores of an idle machine, and many times slower beside other work. A
compiled text takes a few: the runtime's threads wait for none that does not run, so beside other work it is
no slower (``benchmarks/online.md``). And waiting threads sleep: :func:`sleep_while_waiting`.

``OMP_NUM_THREADS`` bounds all pools, as in torch; else it is the number of cores that this process may use.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = [
    "DECODING", "ONE", "available_cores", "blas_kernels", "compute_threads", "few_threads", "limit_threads",
    "one_blas_thread", "one_faiss_thread", "reading_threads", "sleep_while_waiting",
]  # fmt: skip

ONE = 1
"""Threads for small work: a query's segments, a text before its tower is compiled."""

_FEW = 4

DECODING = 1
"""Threads of a decoder, which runs ahead of the encoder; more would take CPU time from the encoder."""

_SLEEPING = {
    # OpenMP's threads spin between loops by default. Decoding and encoding run side by side: on two busy
    # cores 22 frames a second were encoded, and 380 with waiting threads asleep.
    "OMP_WAIT_POLICY": "PASSIVE",
    # OpenBLAS's threads spin for 2^26 ticks after a product by default; 2^4 is the least it takes.
    "OPENBLAS_THREAD_TIMEOUT": "4",
}


def sleep_while_waiting(environment: MutableMapping[str, str]) -> None:
    """Let waiting threads sleep, unless these are set. The libraries read them when they are loaded."""
    for name, value in _SLEEPING.items():
        environment.setdefault(name, value)


def available_cores() -> int:
    """Cores that this process may use: fewer than the machine's where it is bound to some (``taskset``)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(count: int) -> None:
    """Limit all pools of this process; to be called before the libraries are loaded, which read it then."""
    os.environ["OMP_NUM_THREADS"] = str(count)


def compute_threads() -> int:
    """Threads for large work: frames, many texts; at least 1, at most one per core."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(wanted) if wanted.isdecimal() else 0
    return min(limit, available_cores()) or available_cores()


def few_threads() -> int:
    """Threads for a compiled text, at least 1: more than four have too little to do each."""
    return min(_FEW, compute_threads())


def reading_threads() -> int:
    """Threads for reading text in pictures: half, since the rest decodes meanwhile."""
    return max(1, compute_threads() // 2)


# Modules that bring BLAS libraries of their own; each is there once its library is.
_BRINGING = ("scipy.linalg._fblas", "faiss.class_wrappers")


def _blas() -> Any:
    """The BLAS libraries of this process so far."""
    return _blas_with(frozenset(name for name in _BRINGING if name in sys.modules))


@cache
def _blas_with(_brought: frozenset[str]) -> Any:
    # Finding them takes a hundred times as long as setting them.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _take_control() -> None:
    """Let this thread set the number for the process: threadpoolctl leaves that to the first one that ever
    did, and what any other sets is ignored without a word.
    """
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread(force=True)


@cache
def blas_kernels() -> frozenset[str]:
    """Names of the kernels of NumPy's products on this CPU, such as ``"Haswell"``; empty where the BLAS
    does not say.
    """
    return frozenset(str(library["architecture"]) for library in _blas().info() if "architecture" in library)


_lock = threading.Lock()
_inside: list[list[Any]] = []  # an entry per block that is inside; the first has the limits that hold for all


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While inside, NumPy's matrix products use one thread; usable as a decorator, too. A question to a
    library is inside, and a server as long as it serves.

    The number belongs to the whole process, so it is restored at the last exit, in whatever thread. A library
    that is loaded meanwhile is limited when the next block is entered.
    """
    with _lock:
        _take_control()
        _inside.append([])
        limited, libraries = _inside[0], _blas()
        if all(known is not libraries for known, _ in limited):
            limited.append((libraries, libraries.limit(limits=ONE)))
    try:
        yield
    finally:
        with _lock:
            _take_control()
            limited = _inside.pop()
            for _, limit in reversed(limited):
                limit.restore_original_limits()
            _take_control()


@contextmanager
def one_faiss_thread(wanted: bool) -> Iterator[None]:
    """While inside, and if wanted, faiss computes this thread's work in this thread alone.

    The number belongs to the thread that sets it, so searches in other threads are not concerned.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(ONE if wanted else before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
