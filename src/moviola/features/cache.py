"""Caches of what models compute from whole videos."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncodingCache", "MemoryCache"]


class EncodingCache(Protocol):
    """Encodings of videos by model revision and video."""

    def get(
        self, revision: str, key: int, count: int, make: Callable[[], NDArray[np.float16]]
    ) -> NDArray[np.float16]:
        """Encoding (``count``, ...) float16 of the video of number ``key`` by the model of a revision, which
        changes with its weights; made if missing.
        """


class MemoryCache:
    """Encodings in memory; the least recently used are dropped beyond ``most_bytes``. Safe for threads."""

    def __init__(self, most_bytes: int = 1 << 28) -> None:
        self._most_bytes = most_bytes
        self._recent: OrderedDict[tuple[str, int], NDArray[np.float16]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(
        self, revision: str, key: int, count: int, make: Callable[[], NDArray[np.float16]]
    ) -> NDArray[np.float16]:
        """See :class:`EncodingCache`: the encoding of a video, (count, ...) float16."""
        with self._lock:
            if (revision, key) in self._recent:
                self._recent.move_to_end((revision, key))
                return self._recent[revision, key]
        rows = make()  # outside the lock: two threads may make the same, but none waits for another's video
        with self._lock:
            if (revision, key) not in self._recent:
                self._recent[revision, key] = rows
                self._bytes += rows.nbytes
            while len(self._recent) > 1 and self._bytes > self._most_bytes:
                self._bytes -= self._recent.popitem(last=False)[1].nbytes
        return rows

    def forget(self, wanted: Callable[[str, int], bool]) -> None:
        """Drop everything for which ``wanted(revision, key)`` is false."""
        with self._lock:
            for known in [known for known in self._recent if not wanted(*known)]:
                self._bytes -= self._recent.pop(known).nbytes
