"""How many threads faiss computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_faiss_thread"]


@contextmanager
def one_faiss_thread(wanted: bool) -> Iterator[None]:
    """While inside, and where it is wanted, what this thread asks of faiss is computed by this thread alone.

    The number belongs to the thread that sets it, so searches in other threads are not concerned.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
