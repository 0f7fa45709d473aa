"""The videos of a library in an order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Literal

from moviola.library import LibraryStore, VideoRow, taken_of
from moviola.types import Capture

__all__ = ["Order", "VideoOrders"]

Order = Literal["name", "date", "length", "added"]
"""By id, by the time at which they were taken, by length, or by when they came in."""


class VideoOrders:
    """All videos in each order, read again when the library has changed. Safe for threads.

    Args:
        store: the library.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store, self._lock = store, Lock()
        self._generation, self._known = -1, dict[Order, list[VideoRow]]()

    def videos(self, order: Order = "name") -> list[VideoRow]:
        """All videos, refused ones included. Not to be changed."""
        with self._lock:
            generation = self._store.catalogue.generation
            if generation != self._generation:
                self._generation, self._known = generation, {"name": self._store.catalogue.videos()}
            if order not in self._known:
                self._known[order] = sorted(self._known["name"], key=self._key(order))
            return self._known[order]

    def _key(self, order: Order) -> Callable[[VideoRow], float | datetime]:
        if order == "length":
            return lambda video: video.duration
        if order == "added":
            return lambda video: video.row
        captures = self._store.catalogue.captures()
        return lambda video: taken_of(video, captures.get(video.row, Capture())).instant
