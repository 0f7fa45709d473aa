"""The videos of a library in an order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from moviola.library import LibraryStore, VideoRow, taken_of
from moviola.search.per_generation import PerGeneration
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
        self._store = store
        self._orders = PerGeneration[dict[Order, list[VideoRow]]](
            store, lambda: {"name": store.catalogue.videos()}
        )

    def videos(self, order: Order = "name") -> list[VideoRow]:
        """All videos, refused ones included. Not to be changed."""
        orders = self._orders.get()
        if order not in orders:
            orders[order] = sorted(orders["name"], key=self._key(order))
        return orders[order]

    def _key(self, order: Order) -> Callable[[VideoRow], float | datetime]:
        if order == "length":
            return lambda video: video.duration
        if order == "added":
            return lambda video: video.row
        captures = self._store.catalogue.captures()
        return lambda video: taken_of(video, captures.get(video.row, Capture())).instant
