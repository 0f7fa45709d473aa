"""What is read of a whole library, once for each of its states."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from moviola.library import LibraryStore

__all__ = ["PerGeneration"]

Value = TypeVar("Value")


class PerGeneration(Generic[Value]):
    """A value of a library, made again when the library has changed. Safe for threads.

    Args:
        store: the library.
        make: makes the value.
    """

    def __init__(self, store: LibraryStore, make: Callable[[], Value]) -> None:
        self._store, self._make, self._lock = store, make, Lock()
        self._known: tuple[int, Value] | None = None

    def get(self) -> Value:
        """The value now."""
        with self._lock:
            # Read before the value: where the library changes meanwhile, it is made once more.
            generation = self._store.catalogue.generation
            if self._known is None or self._known[0] != generation:
                self._known = generation, self._make()
            return self._known[1]
